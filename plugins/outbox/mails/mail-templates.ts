import { readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import {
  commonMailValues, mailNames, mailValues, type MailContent, type MailName, type MailValues,
} from '../../../schema/options/mail.ts'
import { mailTexts, type MailTexts } from '../../../schema/translations/mails/index.ts'
import { escapeHtml, parseTemplate, type Template } from '../../support/template.ts'
import { composeMail, shortenLink, shortNameOf } from './compose.ts'

const LAYOUT = 'layout.html'
const DEFAULT_LAYOUT = join(import.meta.dirname, 'templates', LAYOUT)

/** Renders a mail. Unlike templates of a host, it has each one, in every language. */
export type RenderMail = <Name extends MailName>(name: Name, values: Readonly<MailValues[Name]>) => MailContent

type Templates = Record<keyof MailContent, Template>

/**
 * Returns Usher's own mails. In a folder of an operator, `<name>.txt`, which begins with the subject, and `<name>.html`
 * replace those of all languages, `<name>.<language>.txt` and `<name>.<language>.html` those of one, and `layout.html`
 * surrounds the HTML of all mails.
 *
 * @param options.folder throws an `Error` that names the file if one of its files is wrong, or belongs to no mail
 * @param options.texts those of each language, for what the folder has no file
 */
export function readMailTemplates (
  { folder, texts = mailTexts }: { folder?: string, texts?: Readonly<Record<string, MailTexts>> } = {}
): RenderMail {
  const languages = Object.keys(texts)
  const files = folder === undefined ? new Map<string, string>() : readFiles(folder, languages)
  const [before, after, ...others] =
    (files.get(LAYOUT) ?? readFileSync(DEFAULT_LAYOUT, 'utf8')).split('{{content}}') as [string, string]
  if (after === undefined || others.length > 0) throw new Error(`${LAYOUT} must have {{content}} once`)
  parse(LAYOUT, before + after, commonMailValues)
  const templates = new Map<string, Templates>()
  // The mistakes of an operator stop the start. Usher's own templates are parsed when they are first needed.
  if (folder !== undefined) for (const name of mailNames) for (const tag of languages) templatesOf(name, tag)

  function templatesOf (name: MailName, language: string): Templates {
    const key = `${name}.${language}`
    const known = templates.get(key)
    if (known) return known
    const own = composeMail(name, texts[language] ?? mailTexts.en)
    const find = (type: 'txt' | 'html') =>
      [`${key}.${type}`, `${name}.${type}`].find((file) => files.has(file))
    const [textFile, htmlFile] = [find('txt'), find('html')]
    const { subject, text } = textFile === undefined ? own : splitSubject(textFile, files.get(textFile)!)
    const names = [...mailValues[name], ...mailValues[name].map(shortNameOf)]
    const namesOf = (file: string | undefined) => file === undefined ? names : mailValues[name]
    const made = {
      subject: parse(textFile ?? `${name}.txt`, subject, namesOf(textFile)),
      text: parse(textFile ?? `${name}.txt`, text, namesOf(textFile)),
      html: parse(
        htmlFile ?? `${name}.html`, before + (htmlFile === undefined ? own.html : files.get(htmlFile)) + after,
        namesOf(htmlFile)
      ),
    }
    templates.set(key, made)
    return made
  }

  return (name, given) => {
    const links = Object.entries(given as Readonly<Record<string, string>>)
    const short = links.map(([link, url]) => [shortNameOf(link), shortenLink(url)])
    const values = { ...given, ...Object.fromEntries(short) }
    const { subject, text, html } = templatesOf(name, given.language)
    return { subject: subject(values), text: text(values), html: html(values) }
  }
}

function splitSubject (file: string, source: string): { subject: string, text: string } {
  const [, subject, text] = /^Subject: *(\S.*?)\r?\n\r?\n([^]*)$/.exec(source) ?? []
  if (subject === undefined || text === undefined) {
    throw new Error(`${file} must begin with a line "Subject: …" and an empty line`)
  }
  return { subject, text }
}

function parse (file: string, source: string, names: readonly string[]): Template {
  try {
    return parseTemplate(source, { names, escape: file.endsWith('.html') ? escapeHtml : String })
  } catch (error) {
    throw new Error(`${file} ${(error as Error).message}`, { cause: error })
  }
}

// Returns the contents of the templates in a folder, by their names. A file of no mail is rejected: otherwise a typing
// error in a name would have no effect.
function readFiles (folder: string, languages: readonly string[]): Map<string, string> {
  const known = new Set([LAYOUT, ...mailNames.flatMap((name) =>
    ['', ...languages.map((tag) => `.${tag}`)].flatMap((tag) => [`${name}${tag}.txt`, `${name}${tag}.html`]))])
  const files = readdirSync(folder).filter((file) => /\.(txt|html)$/.test(file))
  const unknown = files.find((file) => !known.has(file))
  if (unknown !== undefined) throw new Error(`${unknown} is the name of no mail`)
  return new Map(files.map((file) => [file, readFileSync(join(folder, file), 'utf8')]))
}
