import { existsSync, readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import {
  commonMailValues, mailNames, mailValues, type MailContent, type MailName, type MailValues,
} from '../../../schema/options/mail.ts'
import { escapeHtml, parseTemplate, type Template } from '../../support/template.ts'

const DEFAULTS = join(import.meta.dirname, 'templates')
const LAYOUT = 'layout.html'

/** Renders a mail. Unlike those of a host, it has a template for each one. */
export type RenderMail = <Name extends MailName>(name: Name, values: Readonly<MailValues[Name]>) => MailContent

/**
 * Reads the templates of mails: `<name>.txt`, which begins with the subject, `<name>.html`, and `layout.html`, which
 * surrounds the HTML of all mails.
 *
 * @param folder has files that replace Usher's own. Throws an `Error` that names the file if one of them is wrong, or
 * if it belongs to no mail
 */
export function readMailTemplates (folder?: string): RenderMail {
  if (folder !== undefined) rejectUnknownFiles(folder)
  const read = (file: string) => readFileSync(
    folder !== undefined && existsSync(join(folder, file)) ? join(folder, file) : join(DEFAULTS, file), 'utf8'
  )
  const layout = read(LAYOUT).split('{{content}}')
  if (layout.length !== 2) throw new Error(`${LAYOUT} must have {{content}} once`)
  parse(LAYOUT, layout.join(''), commonMailValues)
  const templates = Object.fromEntries(mailNames.map((name) => {
    const [, subject, text] = /^Subject: *(\S.*?)\r?\n\r?\n([^]*)$/.exec(read(`${name}.txt`)) ?? []
    if (subject === undefined || text === undefined) {
      throw new Error(`${name}.txt must begin with a line "Subject: …" and an empty line`)
    }
    return [name, {
      subject: parse(`${name}.txt`, subject, mailValues[name]),
      text: parse(`${name}.txt`, text, mailValues[name]),
      html: parse(`${name}.html`, layout.join(read(`${name}.html`)), mailValues[name]),
    }]
  })) as Record<MailName, Record<keyof MailContent, Template>>
  return (name, given) => {
    const { subject, text, html } = templates[name]
    const values = given as Readonly<Record<string, string>>
    return { subject: subject(values), text: text(values), html: html(values) }
  }
}

function parse (file: string, source: string, names: readonly string[]): Template {
  try {
    return parseTemplate(source, { names, escape: file.endsWith('.html') ? escapeHtml : String })
  } catch (error) {
    throw new Error(`${file} ${(error as Error).message}`, { cause: error })
  }
}

// Otherwise a typing error in the name of a file would have no effect.
function rejectUnknownFiles (folder: string): void {
  const known = new Set([LAYOUT, ...mailNames.flatMap((name) => [`${name}.txt`, `${name}.html`])])
  const unknown = readdirSync(folder).find((file) => /\.(txt|html)$/.test(file) && !known.has(file))
  if (unknown !== undefined) throw new Error(`${unknown} is the name of no mail`)
}
