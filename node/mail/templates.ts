import { readMailTemplates } from '../../plugins/outbox/mails/mail-templates.ts'
import type { MailTemplates } from '../../schema/options/mail.ts'
import { readMailTexts } from '../../schema/options/mail-texts.ts'
import { mailTexts } from '../../schema/translations/mails/index.ts'
import { pathIn } from '../settings/service-options.ts'
import type { Settings } from '../settings/settings.ts'

/**
 * Returns the templates in the folder that the setting `MAIL_TEMPLATES` names, completed by Usher's own, with the texts
 * of the configuration file. Without the setting, they are the templates of that file, or undefined. Throws an `Error`
 * with a sentence if the folder cannot be read, or a template or a text is wrong.
 */
export function openMailTemplates (
  { MAIL_TEMPLATES, file, place }: Pick<Settings, 'MAIL_TEMPLATES' | 'file' | 'place'>
): MailTemplates | undefined {
  if (MAIL_TEMPLATES === undefined) return file?.options.mailTemplates
  // A file is for one mail as a whole, so it takes precedence over single texts.
  const given = readMailTexts(file?.options.mailTexts ?? {}, (problem) => new Error(`usher: ${problem}`))
  try {
    return readMailTemplates({ folder: pathIn({ place }, MAIL_TEMPLATES), texts: { ...mailTexts, ...given } })
  } catch (error) {
    const { code, message } = error as NodeJS.ErrnoException
    throw new Error(
      `MAIL_TEMPLATES must be a folder of mail templates: ${code === undefined ? message : `it cannot be read (${code})`}.`,
      { cause: error }
    )
  }
}
