import { en, type Texts } from './en.ts'
import type { LanguageTag } from './languages.ts'

// Loaded when they are needed: a host with one language needs no other.
const others: Readonly<Record<Exclude<LanguageTag, 'en'>, () => Promise<Texts>>> = {
  de: async () => (await import('./de.ts')).de,
  fr: async () => (await import('./fr.ts')).fr,
  es: async () => (await import('./es.ts')).es,
  pt: async () => (await import('./pt.ts')).pt,
  ja: async () => (await import('./ja.ts')).ja,
  'zh-Hans': async () => (await import('./zh-Hans.ts')).zhHans,
  ar: async () => (await import('./ar.ts')).ar,
}

/** Returns the texts of a language of Usher. */
export const readCatalogue = async (tag: LanguageTag): Promise<Texts> => tag === 'en' ? en : others[tag]()
