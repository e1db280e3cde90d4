import { Type, type Static, type TOptional, type TString } from '@sinclair/typebox'
import { pageTexts, type PageText } from './page-texts.ts'
import { line } from '../strings/text.ts'

const text = line({ minLength: 1, maxLength: 500 })
const Texts = Object.fromEntries(Object.keys(pageTexts).map((name) => [name, Type.Optional(text)])) as
  Record<PageText, TOptional<TString>>

/** The pattern of a language (BCP 47), such as `pt-BR`. */
export const LANGUAGE = '^[A-Za-z]{2,8}(-[A-Za-z0-9]{1,8})*$'

/** A path on the same origin. */
export const PATH = '^/(?![/\\\\])[^\\s\\\\]*$'

/** A path, or a URL. */
export const ADDRESS = '^(https?://[^\\s\\\\]+|/(?![/\\\\])[^\\s\\\\]*)$'

const address = (description: string) => Type.Optional(Type.String({ description, pattern: ADDRESS, maxLength: 2048 }))

/** The option `pages`. The name and the color appear in mails, too. */
export const PagesOptions = Type.Object({
  enabled: Type.Boolean({ default: true, description: 'Whether there are pages' }),
  productName: line({ trim: true, default: 'Usher', minLength: 1, maxLength: 100 }),
  color: Type.String({ default: '#1d4ed8', format: 'color', description: 'The color of buttons' }),
  logo: Type.Optional(Type.String({
    pattern: PATH, maxLength: 2048, description: 'The path of an image on the same origin, in place of the name',
  })),
  appUrl: address('Where “Back to …” leads: a path or a URL'),
  termsUrl: address('The terms, to which all pages link'),
  privacyUrl: address('The privacy policy, to which all pages link'),
  language: Type.Optional(Type.String({
    pattern: LANGUAGE, description: 'The only language (BCP 47), whatever readers prefer',
  })),
  texts: Type.Object(Texts, {
    default: {},
    // By language: those that Usher lacks are added.
    additionalProperties: Type.Object(Texts, { additionalProperties: false }),
  }),
}, { default: {}, additionalProperties: false, description: 'The pages for login, sign-up and accounts' })

type GivenTexts = { [Name in PageText]?: string }

/** The option `pages` of a host: each member is optional. */
export type GivenPages = {
  [Name in Exclude<keyof Static<typeof PagesOptions>, 'texts'>]?: Static<typeof PagesOptions>[Name] | undefined
} & {
  /** Texts of all pages, or by language such as `{ de: { logIn: 'Anmelden' } }`. */
  texts?: GivenTexts | { [language: string]: GivenTexts } | undefined
}
