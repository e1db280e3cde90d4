import { Type } from '@sinclair/typebox'
import { rejectPersonalWords } from '../../../schema/auth/password.ts'
import { NewPassword } from '../../../schema/text/text.ts'
import { createParser } from '../../../schema/http/validator.ts'
import type { SetPasswordOptions } from '../../../plugins/accounts/set-password.ts'
import { WrongArguments, type Command } from '../command.ts'
import { PASSWORD_HELP, passwordOption, readPassword } from '../password-input.ts'
import { withService, type ServiceContext } from '../with-service.ts'
import { findUser, showUser, USER } from './shown.ts'
import { countWays, describeWays, showWay } from './shown-ways.ts'
import type { UserRow } from '../../../db/tables/index.ts'

const parse = createParser(Type.Object({ password: NewPassword }))

export default {
  details: 'USER is the id or the email address of the user. All links in mails to the user are void, and failed logins are\n' +
    'forgotten. Whatever can log in by itself is removed: passkeys, identities at providers and API keys. An authenticator\n' +
    'app stays. If mails can be sent, the user gets one that says so.\n\n' +
    `  --password-stdin       ${PASSWORD_HELP}\n` +
    '  --keep-ways            keep passkeys, identities and API keys\n' +
    '  --reset-second-factor  remove the authenticator app and the recovery codes as well\n' +
    '  --mail                 only send the user a mail with a link to set a password. The current one works until then',
  arguments: ['USER'],
  json: `{ user: ${USER}, password: the random one or null, endedSessions: number, removed: string[], remaining: { kind, id, name, addedAt }[], mailed: boolean }`,
  options: {
    mail: { type: 'boolean' },
    'keep-ways': { type: 'boolean' },
    'reset-second-factor': { type: 'boolean' },
    ...passwordOption,
  },

  async run (
    { mail, 'password-stdin': isGiven, 'keep-ways': keepWays = false, 'reset-second-factor': resetSecondFactor = false },
    [given = ''], shell
  ) {
    if (mail && isGiven) throw new WrongArguments('Only one of --mail and --password-stdin is possible.')
    if (mail && (keepWays || resetSecondFactor)) {
      throw new WrongArguments('With --mail, the user decides what stays: leave out --keep-ways and --reset-second-factor.')
    }
    return withService(shell, async (context) => {
      const user = await findUser(context.db, given)
      return mail
        ? sendLink(context, user)
        : replace(context, user, await readPassword(isGiven, shell), {
          keepWays: keepWays === true, resetSecondFactor: resetSecondFactor === true,
        })
    })
  },
} satisfies Command

async function replace (
  { app, caller }: ServiceContext, user: UserRow, { password, shown }: { password: string, shown: string | null },
  options: SetPasswordOptions
) {
  rejectPersonalWords(parse({ password }).password, user)
  const passwordHash = await app.usherAuth.passwords.hash(password)
  const { endedSessions, removed, remaining } =
    await app.usherAccounts.setPassword(caller, user.id, passwordHash, options)
  const result = shown === null ? 'was replaced' : `is now ${shown} (not shown again)`
  return {
    text: [
      `The password of ${user.email} ${result}. ${endedSessions} session${endedSessions === 1 ? '' : 's'} ended.`,
      ...removed.length > 0 ? [`Removed: ${countWays(removed)}.`] : [],
      ...remaining.length > 0 ? [describeWays(remaining)] : [],
    ].join('\n'),
    json: {
      user: showUser(user), password: shown, endedSessions, removed, remaining: remaining.map(showWay), mailed: false,
    },
  }
}

async function sendLink ({ app, caller, sendsMails }: ServiceContext, user: UserRow) {
  if (!sendsMails) throw new Error('No mails can be sent: set SMTP_URL and MAIL_FROM, or leave out --mail.')
  if (user.disabled) throw new Error(`${user.email} is disabled: enable the user first.`)
  await app.usherAuth.passwordLinks.invite(user.id, caller)
  return {
    text: `A mail to set a password is sent to ${user.email}.`,
    json: { user: showUser(user), password: null, endedSessions: 0, removed: [], remaining: [], mailed: true },
  }
}
