import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { escapeHtml, parseTemplate, type Template } from '../../plugins/support/template.ts'
import type { Options } from '../../schema/options/options.ts'
import { failureTexts, pageTexts, type PageText } from '../../schema/options/page-texts.ts'
import type { Page } from './page-list.ts'

const FOLDER = join(import.meta.dirname, 'templates')

/** What a page shows besides its texts. */
export interface PageValues {
  /** A failure of the form. */
  alert?: string
  /** What has happened. */
  notice?: string
  /** What the user has entered. */
  typedName?: string
  typedEmail?: string
  /** Where the login leads. */
  returnTo?: string
  /** The pages for sign-up and login, with where to go afterwards. */
  signUpUrl?: string
  loginUrl?: string
  /** Not empty if a link to verify the address can be sent. */
  canVerify?: string
}

const values: readonly (keyof PageValues)[] = ['alert', 'notice', 'typedName', 'typedEmail', 'returnTo', 'signUpUrl', 'loginUrl', 'canVerify']
const names = [...Object.keys(pageTexts), ...values, 'title', 'productName', 'language', 'root', 'assets', 'script']
/**
 * Returns a function that renders pages from their templates.
 *
 * @param assets the folder of scripts and styles, relative to the prefix
 */
export function createRenderer ({ pages: { texts: given, productName, language } }: Pick<Options, 'pages'>, assets: string) {
  const texts = { ...pageTexts, ...given }
  const layout = readFileSync(join(FOLDER, 'layout.html'), 'utf8').split('{{content}}')
  const templates = new Map<string, Template>()

  function templateOf (name: string): Template {
    const known = templates.get(name)
    if (known) return known
    const template = parseTemplate(layout.join(readFileSync(join(FOLDER, `${name}.html`), 'utf8')), { names, escape: escapeHtml })
    templates.set(name, template)
    return template
  }

  return {
    texts,

    render ({ path, template, title, script }: Page, values: PageValues): string {
      // URLs are relative to the page, so that it works below a prefix and behind a proxy that changes the path.
      const root = path.lastIndexOf('/') === 0 ? './' : '../'
      const page = { title: texts[title], productName, language, root, assets: `${root}${assets}`, script }
      return templateOf(template)({ ...texts, ...page, ...values })
    },
  }
}

/** Returns the texts of a page for a failure. */
export function explain (error: { code?: string, message: string, errors?: readonly string[] }, texts: Readonly<Record<PageText, string>>): string {
  const textOf = (name: string | undefined) => name !== undefined && Object.hasOwn(failureTexts, name) ? texts[failureTexts[name]!] : undefined
  // A hook of the host may throw something that has no message.
  const sentences = error.errors ?? [error.message ?? texts.failed]
  return sentences.map((sentence) => textOf(error.code) ?? textOf(sentence) ?? `${sentence.slice(0, 1).toUpperCase()}${sentence.slice(1)}.`).join(' ')
}
