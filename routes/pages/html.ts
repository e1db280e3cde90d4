import { escapeHtml } from '../../plugins/support/template.ts'

/**
 * How pages are rendered: account pages and console alike.
 *
 *     const row = (user: User) => html`<li id="user-${user.id}">${user.name} ${user.isAdmin && badge('admin')}</li>`
 *     const page = html`<ul>${users.map(row)}</ul>`
 *     reply.type('text/html; charset=utf-8').send(`${page}`)
 *
 * A value is text and is escaped, unless it is `Html` itself: what this tag, a component (components.ts) or `trusted`
 * has returned. Lists are joined; null, undefined, false and '' show nothing. Values stand between tags or in quoted
 * attributes: a template with a value in an unquoted attribute, in a tag or in a script throws. Attributes that may be
 * absent are written with `attributes`. The tag does not check addresses: `href` from users must be a URL of http(s).
 */
export class Html {
  readonly #text: string

  constructor (text: string) {
    this.#text = text
  }

  toString (): string {
    return this.#text
  }
}

export type HtmlValue = string | number | Html | null | undefined | false | readonly HtmlValue[]

const checked = new WeakSet<TemplateStringsArray>()

/** Returns HTML from a template whose values are escaped. Throws an `Error` if a value stands where that is unsafe. */
export function html (strings: TemplateStringsArray, ...values: readonly HtmlValue[]): Html {
  if (!checked.has(strings)) {
    checkPlaces(strings)
    checked.add(strings)
  }
  let text = strings[0]!
  for (let index = 0; index < values.length; index++) text += toText(values[index]) + strings[index + 1]!
  return new Html(text)
}

function toText (value: HtmlValue): string {
  if (typeof value === 'string') return escapeHtml(value)
  if (value instanceof Html) return `${value}`
  if (typeof value === 'number') return `${value}`
  if (value === null || value === undefined || value === false) return ''
  return value.map(toText).join('')
}

// Follows tags and quotes, which is enough for templates: they are Usher's own.
function checkPlaces (strings: TemplateStringsArray): void {
  let quote = ''
  let isInTag = false
  for (const [index, string] of strings.entries()) {
    for (const character of string) {
      if (quote !== '') {
        if (character === quote) quote = ''
      } else if (isInTag && (character === '"' || character === "'")) quote = character
      else if (character === '<') isInTag = true
      else if (character === '>') isInTag = false
    }
    if (/<(script|style)\b[^>]*>(?!.*<\/\1>)/is.test(string)) throw new Error('A template has a value in a script')
    const isLast = index === strings.length - 1
    // `<p${attributes(…)}>` is a value right after a name, which `attributes` begins with a space.
    if (!isLast && isInTag && quote === '' && /[=\s</]$/.test(string)) {
      throw new Error(`A template has a value without quotes after ${string.slice(-40)}`)
    }
  }
}

/** Returns HTML as it stands, which must therefore come from no user: a file of Usher. */
export const trusted = (text: string): Html => new Html(text)

/**
 * Returns attributes, each with a space before it, for `<p${attributes({ id, hidden: true })}>`. Those that are null,
 * undefined or false are absent, and `true` stands for an attribute without a value.
 */
export function attributes (values: Readonly<Record<string, string | number | boolean | null | undefined>>): Html {
  let text = ''
  for (const [name, value] of Object.entries(values)) {
    if (value === null || value === undefined || value === false) continue
    text += value === true ? ` ${name}` : ` ${name}="${escapeHtml(`${value}`)}"`
  }
  return new Html(text)
}
