import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { escapeHtml, parseTemplate, type Template } from '../../plugins/support/template.ts'
import type { Options } from '../../schema/options/options.ts'
import type { Provider } from '../../schema/auth/provider.ts'
import { failureTexts, pageTexts, type PageText } from '../../schema/options/page-texts.ts'
import type { MailLink, Page } from './page-list.ts'
import { valueNames, type PageValues } from './page-values.ts'

const FOLDER = join(import.meta.dirname, 'templates')

const ofLinks = ['linkCheck', 'linkAction', 'helpPath', 'helpText', 'linkDone']
const ofPages = ['title', 'productName', 'language', 'root', 'assets', 'script', ...ofLinks]
const names = [...Object.keys(pageTexts), ...valueNames, ...ofPages]

/**
 * Returns a function that renders pages from their templates.
 *
 * @param assets the folder of scripts and styles, relative to the prefix
 * @param providers those with which users sign in
 */
export function createRenderer (
  { pages: { texts: given, productName, language } }: Pick<Options, 'pages'>, assets: string,
  providers: readonly Provider[]
) {
  const texts = { ...pageTexts, ...given }
  const links = providers.map(({ id, name }) => linkTo(id, texts.continueWith.replace('{provider}', () => name)))
  const choice = links.length === 0
    ? ''
    : `<nav class="providers" aria-label="${escapeTemplate(texts.providersTitle)}">\n${links.join('\n')}\n</nav>`
  const [layout, mailLink] = [readFrame('layout'), readFrame('mail-link')]
  const templates = new Map<string, Template>()

  function templateOf (name: string, isMailLink: boolean): Template {
    const known = templates.get(name)
    if (known) return known
    const content = readTemplate(name).replace('{{providers}}', () => choice)
    const source = layout.join(isMailLink ? mailLink.join(content) : content)
    const template = parseTemplate(source, { names, escape: escapeHtml })
    templates.set(name, template)
    return template
  }

  function describeLink ({ check, action, help: [helpPath, helpText], done }: MailLink) {
    return {
      linkCheck: check, linkAction: action, helpPath, helpText: texts[helpText], linkDone: texts[done],
    }
  }

  return {
    texts,

    render ({ path, template, title, script, mailLink }: Page, values: PageValues): string {
      // URLs are relative to the page, so that it works below a prefix and behind a proxy that changes the path.
      const root = '../'.repeat(path.split('/').length - 2) || './'
      const page = { title: texts[title], productName, language, root, assets: `${root}${assets}`, script }
      const link = mailLink && describeLink(mailLink)
      return templateOf(template, mailLink !== undefined)({ ...texts, ...page, ...link, ...values })
    },
  }
}

// The options have the names of providers, and templates have braces that stand for something.
const escapeTemplate = (text: string): string =>
  escapeHtml(text).replace(/[{}]/g, (brace) => `&#${brace.codePointAt(0)};`)

const linkTo = (id: string, text: string): string =>
  `<a class="button plain wide" href="{{root}}api/auth/providers/${id}/start{{returnQuery}}">${escapeTemplate(text)}</a>`

const readTemplate = (name: string): string => readFileSync(join(FOLDER, `${name}.html`), 'utf8')

// Returns what precedes and follows the content that a template is put around.
const readFrame = (name: string): string[] => readTemplate(name).split('{{content}}')

/** Returns the texts of a page for a failure. */
export function explain (
  error: { code?: string, message: string, errors?: readonly string[] }, texts: Readonly<Record<PageText, string>>
): string {
  const textOf = (name: string | undefined) =>
    name !== undefined && Object.hasOwn(failureTexts, name) ? texts[failureTexts[name]!] : undefined
  // A hook of the host may throw something that has no message.
  const sentences = error.errors ?? [error.message ?? texts.failed]
  return sentences.map((sentence) => textOf(error.code) ?? textOf(sentence) ??
    `${sentence.slice(0, 1).toUpperCase()}${sentence.slice(1)}.`).join(' ')
}
