import { textColorOn } from '../../../schema/options/color.ts'
import type { MailContent, MailName, MailValues } from '../../../schema/options/mail.ts'
import { directionOf, languageTags, negotiateLanguage } from '../../../schema/translations/languages.ts'
import { mailTexts, type MailTexts } from '../../../schema/translations/mails/index.ts'
import type { Core } from '../../core.ts'
import { durationOf } from './duration.ts'
import { readMailTemplates } from './mail-templates.ts'

type CommonValue = 'productName' | 'color' | 'textColor' | 'language' | 'direction'

/** The values of a mail that are not the same for all. Durations are in seconds. */
export type GivenMailValues<Name extends MailName> =
  { [Value in Exclude<keyof MailValues[Name], CommonValue>]: Value extends 'duration' ? number : MailValues[Name][Value] }

/** A mail, and what a mail in the same language says that has several notices (contract 11.5). */
export interface RenderedMail extends MailContent {
  name: MailName
  several: {
    subject: string
    /** That there were more notices like one. */
    more: string
  }
}

/**
 * Renders mails from templates (contract 15.2). No mail contains the user's name, because a name can be any text, which
 * Usher would then send.
 */
export function createRenderer (
  { lifecycle: { log }, options: { mailTemplates, mailTexts: given = {}, pages } }: Pick<Core, 'lifecycle' | 'options'>
) {
  const { productName, color, language: only } = pages
  const texts: Readonly<Record<string, MailTexts>> = { ...mailTexts, ...given }
  const renderDefault = readMailTemplates({ texts })
  const common = { productName, color, textColor: textColorOn(color) }
  const tags = [...new Set([...languageTags, ...Object.keys(given)])]
  // As for the pages, the language of the options is the only one. One without texts of mails, such as `de-AT`, has
  // those of the nearest.
  const languages = only === undefined ? tags : [negotiateLanguage(only, tags)]

  // A mail with a link must not be lost because of a template, so Usher's own template replaces one that fails.
  function renderGiven (name: MailName, values: Readonly<MailValues[MailName]>): MailContent | undefined {
    try {
      const content: unknown = mailTemplates?.(name, values as never)
      if (content === undefined || isContent(content)) return content
      throw new TypeError('the result must be { subject, text, html? } or undefined')
    } catch (error) {
      // The error itself may contain the values, and with them a link, which must not be in a log.
      log.error(
        { mail: name, type: (error as Error)?.name },
        'The option mailTemplates failed: the mail has its default content'
      )
    }
  }

  return {
    /**
     * Renders a mail: with the option `mailTemplates`, or with Usher's templates. The subject is one line.
     * @param acceptLanguage the header `Accept-Language` of the recipient, if it is known
     */
    render<Name extends MailName> (
      name: Name, acceptLanguage: string | undefined, given: GivenMailValues<Name>
    ): RenderedMail {
      const language = negotiateLanguage(acceptLanguage, languages)
      const { duration } = given as { duration?: number }
      const values = Object.freeze({
        ...common,
        language,
        direction: directionOf(language),
        ...given,
        ...duration !== undefined && { duration: durationOf(duration, language) },
      }) as unknown as MailValues[Name]
      const { subject, text, html } = renderGiven(name, values) ?? renderDefault(name, values)
      const { severalChanges, moreChanges } = (texts[language] ?? mailTexts.en).common
      return {
        name,
        subject: subject.replaceAll(/[\s\p{Cc}]+/gu, ' ').trim(),
        text,
        ...html !== undefined && { html },
        several: { subject: severalChanges, more: moreChanges },
      }
    },
  }
}

function isContent (content: unknown): content is MailContent {
  if (typeof content !== 'object' || content === null) return false
  const { subject, text, html } = content as Record<keyof MailContent, unknown>
  return typeof subject === 'string' && typeof text === 'string' && (html === undefined || typeof html === 'string')
}
