import { Type } from '@sinclair/typebox'
import { rejectPersonalWords } from '../../../schema/auth/password.ts'
import { NewPassword } from '../../../schema/text/text.ts'
import { createParser } from '../../../schema/http/validator.ts'
import type { Command } from '../command.ts'
import { PASSWORD_HELP, passwordOption, readPassword } from '../password-input.ts'
import { withService, type ServiceContext } from '../with-service.ts'
import { findUser, showUser, USER } from './shown.ts'
import type { UserRow } from '../../../db/tables/index.ts'

const parse = createParser(Type.Object({ password: NewPassword }))

export default {
  details: 'USER is the id or the email address of the user. All links in mails to the user are void, identities at\n' +
    'providers are removed, and failed logins are forgotten. If mails can be sent, the user gets one that says so.\n\n' +
    `  --password-stdin  ${PASSWORD_HELP}\n` +
    '  --mail            only send the user a mail with a link to set a password. The current one works until then',
  arguments: ['USER'],
  json: `{ user: ${USER}, password: the random one or null, endedSessions: number, mailed: boolean }`,
  options: { mail: { type: 'boolean' }, ...passwordOption },

  async run ({ mail, 'password-stdin': isGiven }, [given = ''], shell) {
    if (mail && isGiven) throw new Error('Only one of --mail and --password-stdin is possible.')
    return withService(shell, async (context) => {
      const user = await findUser(context.db, given)
      return mail ? sendLink(context, user) : replace(context, user, await readPassword(isGiven, shell))
    })
  },
} satisfies Command

async function replace (
  { app, caller }: ServiceContext, user: UserRow, { password, shown }: { password: string, shown: string | null }
) {
  rejectPersonalWords(parse({ password }).password, user)
  const ended = await app.usherAccounts.setPassword(caller, user.id, await app.usherAuth.passwords.hash(password))
  const result = shown === null ? 'was replaced' : `is now ${shown} (not shown again)`
  return {
    text: `The password of ${user.email} ${result}. ${ended} session${ended === 1 ? '' : 's'} ended.`,
    json: { user: showUser(user), password: shown, endedSessions: ended, mailed: false },
  }
}

async function sendLink ({ app, caller, sendsMails }: ServiceContext, user: UserRow) {
  if (!sendsMails) throw new Error('No mails can be sent: set SMTP_URL and MAIL_FROM, or leave out --mail.')
  if (user.disabled) throw new Error(`${user.email} is disabled: enable the user first.`)
  await app.usherAuth.passwordLinks.invite(user.id, caller)
  return {
    text: `A mail to set a password is sent to ${user.email}.`,
    json: { user: showUser(user), password: null, endedSessions: 0, mailed: true },
  }
}
