import { readMailTemplates } from '../../plugins/outbox/mails/mail-templates.ts'
import type { MailTemplates } from '../../schema/options/mail.ts'
import type { Settings } from '../settings/settings.ts'

/**
 * Returns the templates in the folder that the setting `MAIL_TEMPLATES` names, completed by Usher's own. Without the
 * setting, they are those of the configuration file, or undefined. Throws an `Error` with a sentence if the folder
 * cannot be read or a template is wrong.
 */
export function openMailTemplates (
  { MAIL_TEMPLATES: folder, file }: Pick<Settings, 'MAIL_TEMPLATES' | 'file'>
): MailTemplates | undefined {
  if (folder === undefined) return file?.options.mailTemplates
  try {
    return readMailTemplates({ folder })
  } catch (error) {
    const { code, message } = error as NodeJS.ErrnoException
    throw new Error(
      `MAIL_TEMPLATES must be a folder of mail templates: ${code === undefined ? message : `it cannot be read (${code})`}.`,
      { cause: error }
    )
  }
}
