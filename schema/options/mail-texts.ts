import { mailTexts, type MailTexts } from '../translations/mails/index.ts'

/** The option `mailTexts`: texts of mails by language, which replace Usher's or add a language. */
export type GivenMailTexts = {
  readonly [language: string]: {
    readonly [Mail in keyof MailTexts]?: { readonly [Text in keyof MailTexts[Mail]]?: string | undefined } | undefined
  } | undefined
}

const PLACEHOLDER = /\{\{\w+\}\}/g
const MAX_LENGTH = 2000

/** Returns the placeholders of a text, in alphabetical order. */
export const placeholdersOf = (text: string): string[] => [...new Set(text.match(PLACEHOLDER))].sort()

/**
 * Returns the texts of the languages in the option `mailTexts`, completed by those of Usher: of the same language, or
 * else in English. Throws an `Error` that names what is wrong.
 */
export function readMailTexts (
  given: unknown, errorOf: (problem: string) => Error
): Readonly<Record<string, MailTexts>> {
  try {
    return read(given)
  } catch (error) {
    throw errorOf((error as Error).message)
  }
}

function read (given: unknown): Record<string, MailTexts> {
  return Object.fromEntries(Object.entries(objectOf(given, 'mailTexts')).map(([language, mails]) => {
    const path = `mailTexts.${language}`
    if (!isLanguage(language)) throw new Error(`${path}: a language has a tag such as it or pt-PT (BCP 47)`)
    const known: Record<string, Record<string, string>> = Object.hasOwn(mailTexts, language)
      ? mailTexts[language as keyof typeof mailTexts]
      : mailTexts.en
    const texts = structuredClone(known)
    for (const [mail, replacements] of Object.entries(objectOf(mails, path))) {
      const own = Object.hasOwn(known, mail) ? known[mail]! : undefined
      if (!own) throw new Error(`${path}.${mail}: there is no such mail`)
      for (const [name, text] of Object.entries(objectOf(replacements, `${path}.${mail}`))) {
        if (text === undefined) continue
        texts[mail]![name] = readText(`${path}.${mail}.${name}`, text, Object.hasOwn(own, name) ? own[name] : undefined)
      }
    }
    return [language, texts as MailTexts]
  }))
}

function readText (path: string, text: unknown, own: string | undefined): string {
  if (own === undefined) throw new Error(`${path}: there is no such text`)
  if (typeof text !== 'string' || text.trim() === '' || text.length > MAX_LENGTH || /\p{Cc}/u.test(text)) {
    throw new Error(`${path} must be a text of one line, with at most ${MAX_LENGTH} characters`)
  }
  // Otherwise a mail would lack its duration, for example, or show the braces of a placeholder.
  const [wanted, found] = [placeholdersOf(own).join(' '), placeholdersOf(text).join(' ')]
  if (wanted !== found || text.replaceAll(PLACEHOLDER, '').match(/\{\{|\}\}/)) {
    throw new Error(`${path} must have ${wanted === '' ? 'no placeholder' : `the placeholders ${wanted}`}`)
  }
  return text
}

function objectOf (value: unknown, path: string): object {
  if (typeof value !== 'object' || value === null || Array.isArray(value)) throw new Error(`${path} must be an object`)
  return value
}

function isLanguage (tag: string): boolean {
  try {
    return new Intl.Locale(tag).toString() === tag
  } catch {
    return false
  }
}
