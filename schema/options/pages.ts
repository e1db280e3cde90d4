import { Type, type Static, type TOptional, type TString } from '@sinclair/typebox'
import { pageTexts, type PageText } from './page-texts.ts'
import { line } from '../text/text.ts'

const Texts = Object.fromEntries(Object.keys(pageTexts)
  .map((name) => [name, Type.Optional(line({ minLength: 1, maxLength: 500 }))])) as
  Record<PageText, TOptional<TString>>

/** The option `pages`. The name and the color appear in mails, too. */
export const PagesOptions = Type.Object({
  enabled: Type.Boolean({ default: true, description: 'Whether there are pages' }),
  productName: line({ trim: true, default: 'Usher', minLength: 1, maxLength: 100 }),
  color: Type.String({ default: '#1d4ed8', format: 'color', description: 'The color of buttons' }),
  language: Type.String({
    default: 'en', pattern: '^[A-Za-z]{2,8}(-[A-Za-z0-9]{1,8})*$', description: 'The language of the texts (BCP 47)',
  }),
  texts: Type.Object(Texts, { default: {}, additionalProperties: false }),
}, { default: {}, additionalProperties: false, description: 'The pages for login, sign-up and accounts' })

/** The option `pages` of a host: each member is optional. */
export type GivenPages = {
  [Name in keyof Static<typeof PagesOptions>]?: Static<typeof PagesOptions>[Name] | undefined
}
