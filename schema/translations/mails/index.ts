import type { LanguageTag } from '../languages.ts'
import { ar } from './ar.ts'
import { de } from './de.ts'
import { en, type MailTexts } from './en.ts'
import { es } from './es.ts'
import { fr } from './fr.ts'
import { ja } from './ja.ts'
import { pt } from './pt.ts'
import { zhHans } from './zh-Hans.ts'

export type { MailTexts }

/** The texts of mails in Usher's languages. */
export const mailTexts: Readonly<Record<LanguageTag, MailTexts>> = { en, de, fr, es, pt, ja, 'zh-Hans': zhHans, ar }
