import type { FastifyRequest } from 'fastify'
import type { Options } from '../../../schema/options/options.ts'
import type { PageText } from '../../../schema/options/page-texts.ts'
import { LANGUAGE } from '../../../schema/options/pages.ts'
import { readCatalogue } from '../../../schema/translations/catalogues.ts'
import { en, type Texts } from '../../../schema/translations/en.ts'
import { languageTags, negotiateLanguage, type LanguageTag } from '../../../schema/translations/languages.ts'

export interface PageLanguages {
  /** The texts by language, those of the options included. */
  texts: ReadonlyMap<string, Texts>
  /** Whether pages depend on what readers prefer. */
  isNegotiated: boolean
  /** Returns the language in which a request gets its page. */
  of: (request: FastifyRequest) => string
}

type Given = Readonly<Partial<Record<PageText, string>>>

const isOwn = (tag: string): tag is LanguageTag => (languageTags as readonly string[]).includes(tag)

/**
 * Returns the languages of the pages. Texts of the options that are for no language in particular are in one language,
 * so they make the pages have that one only: the option `language`, or English. Throws an `Error` if a name is neither
 * a text nor a language.
 */
export async function createLanguages ({ pages: { language, texts } }: Pick<Options, 'pages'>): Promise<PageLanguages> {
  const all: Given = Object.fromEntries(Object.entries(texts).filter(([, text]) => typeof text === 'string'))
  const byLanguage = new Map<string, Given>()
  for (const [tag, given] of Object.entries<string | Given | undefined>(texts)) {
    if (typeof given !== 'object') continue
    if (!new RegExp(LANGUAGE).test(tag)) throw new Error(`usher: pages.texts has no member ${tag}`)
    byLanguage.set(tag, given)
  }
  const only = language ?? (Object.keys(all).length > 0 ? 'en' : undefined)
  const tags = only === undefined ? [...new Set([...languageTags, ...byLanguage.keys()])] : [only]
  const result = new Map<string, Texts>()
  for (const tag of tags) {
    // `de-AT` has the texts of `de`, and a language that Usher lacks has English ones where the options have none.
    const base = isOwn(tag) ? tag : negotiateLanguage(tag, languageTags)
    const own = await readCatalogue(base)
    result.set(tag, { ...en, ...own, ...all, ...byLanguage.get(base), ...byLanguage.get(tag) })
  }
  return {
    texts: result,
    isNegotiated: tags.length > 1,
    of: ({ headers }) => negotiateLanguage(headers['accept-language'], tags),
  }
}
