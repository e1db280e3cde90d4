import type { LanguageTag } from '../languages.ts'
import { en, type ConsoleTexts } from './en.ts'

export type { ConsoleTexts }

// Loaded when they are needed, as those of the pages.
const others: Readonly<Record<Exclude<LanguageTag, 'en'>, () => Promise<ConsoleTexts>>> = {
  de: async () => (await import('./de.ts')).de,
  fr: async () => (await import('./fr.ts')).fr,
  es: async () => (await import('./es.ts')).es,
  pt: async () => (await import('./pt.ts')).pt,
  ja: async () => (await import('./ja.ts')).ja,
  'zh-Hans': async () => (await import('./zh-Hans.ts')).zhHans,
  ar: async () => (await import('./ar.ts')).ar,
}

/** Returns the texts of the console in a language of Usher. */
export const readConsoleTexts = async (tag: LanguageTag): Promise<ConsoleTexts> => tag === 'en' ? en : others[tag]()
