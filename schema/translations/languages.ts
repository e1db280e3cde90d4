/** A language in which Usher's pages and mails have texts. */
export interface Language {
  /** Its own name, for people who look for it. */
  name: string
  direction: 'ltr' | 'rtl'
}

/** The languages of Usher's own texts, by their tags (BCP 47). The first is the default. */
export const languages = {
  en: { name: 'English', direction: 'ltr' },
  de: { name: 'Deutsch', direction: 'ltr' },
  fr: { name: 'Français', direction: 'ltr' },
  es: { name: 'Español', direction: 'ltr' },
  pt: { name: 'Português', direction: 'ltr' },
  ja: { name: '日本語', direction: 'ltr' },
  'zh-Hans': { name: '简体中文', direction: 'ltr' },
  ar: { name: 'العربية', direction: 'rtl' },
} as const satisfies Record<string, Language>

export type LanguageTag = keyof typeof languages

export const languageTags = Object.keys(languages) as readonly LanguageTag[]

// What browsers send is much shorter.
const MAX_HEADER_LENGTH = 1000
const MAX_RANGES = 20

const RTL_SCRIPTS = new Set(['Arab', 'Hebr', 'Thaa', 'Syrc', 'Nkoo', 'Adlm', 'Rohg'])

interface Parts { tag: string, language: string, script: string }

// `zh-TW` means `zh-Hant-TW`. Undefined if the text is no tag of a language.
function partsOf (tag: string): Parts | undefined {
  try {
    const { language, script = '' } = new Intl.Locale(tag).maximize()
    return { tag: tag.toLowerCase(), language, script }
  } catch {
    return undefined
  }
}

interface Offered<Tag> { own: Tag, parts: Parts | undefined }

// What a server offers stays the same. Only that is remembered, because headers may have anything.
const known = new WeakMap<readonly string[], readonly Offered<string>[]>()

function offeredOf<Tag extends string> (available: readonly Tag[]): readonly Offered<Tag>[] {
  const found = known.get(available) as readonly Offered<Tag>[] | undefined
  if (found) return found
  const offered = available.map((own) => ({ own, parts: partsOf(own) }))
  known.set(available, offered)
  return offered
}

/** Returns in which direction a language is written. */
export const directionOf = (tag: string): 'ltr' | 'rtl' => RTL_SCRIPTS.has(partsOf(tag)?.script ?? '') ? 'rtl' : 'ltr'

/**
 * Returns the language of `available` that a reader prefers, by the header `Accept-Language` (RFC 9110), which may be
 * anything; otherwise the first. A region decides only between several that are available: `de-AT` gets `de`, `pt`
 * gets `pt-BR`, and `zh-CN` gets `zh-Hans`. Another script of the language is better than the default (`zh-TW` gets
 * `zh-Hans`) but not than another language that the reader accepts.
 */
export function negotiateLanguage<Tag extends string> (header: string | undefined, available: readonly Tag[]): Tag {
  const [fallback] = available
  if (fallback === undefined) throw new Error('there is no language to choose from')
  const offered = offeredOf(available)
  const accepted = readRanges(header).map(partsOf).filter((parts) => parts !== undefined)
  // For each range, in the order of preference, the same tag before the same language in the same script.
  for (const { tag, language, script } of accepted) {
    const found = offered.find(({ parts }) => parts?.tag === tag) ??
      offered.find(({ parts }) => parts?.language === language && parts.script === script)
    if (found) return found.own
  }
  const isSpoken = ({ parts }: Offered<Tag>) => accepted.some(({ language }) => language === parts?.language)
  return offered.find(isSpoken)?.own ?? fallback
}

// Returns the ranges before `*`, which stands for any language, the preferred ones first.
function readRanges (header = ''): string[] {
  const ranges = header.slice(0, MAX_HEADER_LENGTH).split(',', MAX_RANGES)
    .map((item) => {
      const [, range = '', q = '1'] = /^\s*([A-Za-z0-9-]+|\*)\s*(?:;\s*q\s*=\s*([01](?:\.\d{0,3})?))?\s*$/.exec(item) ?? []
      return { range, quality: range === '' ? 0 : Number(q) }
    })
    .filter(({ quality }) => quality > 0)
    .sort((one, other) => other.quality - one.quality)
    .map(({ range }) => range)
  return ranges.includes('*') ? ranges.slice(0, ranges.indexOf('*')) : ranges
}
