const PLACEHOLDER = /\{\{([#^/]?)(\w+)\}\}/g

/** Renders a template with a text for each placeholder. A text that is absent counts as empty. */
export type Template = (values: Readonly<Record<string, string | undefined>>) => string

export interface TemplateOptions {
  /** The names that may occur as placeholders. */
  names: readonly string[]
  /** Makes a value safe in the format of the template. */
  escape: (value: string) => string
}

// What precedes a placeholder, and what the placeholder does: it shows a value, or opens or closes a section that
// appears if the value is empty, or if it is not.
interface Part { text: string, name: string, does: 'show' | 'open' | 'close', ifEmpty?: boolean }

/**
 * Parses a template. `{{name}}` stands for the escaped value of that name; no value can be inserted without being
 * escaped. What is between `{{#name}}` and `{{/name}}` appears only if the value is not empty, and after `{{^name}}`
 * only if it is. Throws an `Error` with the end of a sentence if a name is unknown or a section is not closed.
 */
export function parseTemplate (source: string, { names, escape }: TemplateOptions): Template {
  const parts: Part[] = []
  const open: Part[] = []
  let end = 0
  for (const { 0: found, 1: kind, 2: name = '', index } of source.matchAll(PLACEHOLDER)) {
    if (!names.includes(name)) throw new Error(`has an unknown placeholder ${found}`)
    const part: Part = {
      text: source.slice(end, index),
      name,
      does: kind === '' ? 'show' : kind === '/' ? 'close' : 'open',
      ifEmpty: kind === '^',
    }
    if (part.does === 'open') open.push(part)
    if (part.does === 'close') {
      const opened = open.pop()
      if (opened?.name !== name) throw new Error(`has ${found} where no section of that name can end`)
      part.ifEmpty = opened.ifEmpty!
    }
    parts.push(part)
    end = index + found.length
  }
  if (open.length > 0) throw new Error(`has no {{/${open.at(-1)!.name}}}`)
  const rest = source.slice(end)
  const texts = [...parts.map(({ text }) => text), rest]
  // In other languages, three braces insert a value without escaping it.
  if (/\{{3}\w+\}{3}/.test(source) || texts.some((text) => /\{\{|\}\}/.test(text))) {
    throw new Error('has braces that are no placeholder')
  }
  return (values) => render(parts, values, escape) + rest
}

function render (parts: readonly Part[], values: Parameters<Template>[0], escape: TemplateOptions['escape']): string {
  let output = ''
  // How many of the open sections do not appear.
  let hidden = 0
  for (const { text, name, does, ifEmpty } of parts) {
    if (hidden === 0) output += text
    const value = values[name] ?? ''
    if (does === 'show' && hidden === 0) output += escape(value)
    if (does !== 'show' && (value === '') !== ifEmpty) hidden += does === 'open' ? 1 : -1
  }
  return output
}

const ENTITIES: Readonly<Record<string, string>> = {
  '&': '&amp;', '<': '&lt;', '>': '&gt;', '"': '&quot;', "'": '&#39;',
}

const SPECIAL = /[&<>"']/

/** Escapes a text for HTML: for the content of elements and for quoted attributes. */
export const escapeHtml = (text: string): string =>
  // Few texts have such a character, and looking for one is faster than replacing none.
  SPECIAL.test(text) ? text.replace(/[&<>"']/g, (character) => ENTITIES[character]!) : text
