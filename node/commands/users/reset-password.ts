import { randomBytes } from 'node:crypto'
import { Type } from '@sinclair/typebox'
import { rejectPersonalWords } from '../../../schema/sign-in/passwords/passwords.ts'
import { NewPassword } from '../../../schema/strings/text.ts'
import { createParser } from '../../../schema/http/validator.ts'
import type { SetPasswordOptions } from '../../../plugins/accounts/set-password.ts'
import { WrongArguments, type Command } from '../command.ts'
import { PASSWORD_HELP, passwordOption, readPassword } from '../password-input.ts'
import { withService, type ServiceContext } from '../with-service.ts'
import { changeMany, FILE_JSON, fileHelp, fileOptions } from './many.ts'
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
    '  --mail                 only send the user a mail with a link to set a password. The current one works until then\n' +
    `${fileHelp(23)}.\n${''.padEnd(25)}Each gets a random password that is shown to nobody, and sets one by a link, with --mail\n` +
    `${''.padEnd(25)}as for one user`,
  arguments: ['USER'],
  json: `{ user: ${USER}, password: the random one or null, endedSessions: number, removed: string[], remaining: { kind, id, name, addedAt }[], mailed: boolean }, with --file ${FILE_JSON}`,
  insteadOfArguments: ['file'],
  options: {
    ...fileOptions,
    mail: { type: 'boolean' },
    'keep-ways': { type: 'boolean' },
    'reset-second-factor': { type: 'boolean' },
    ...passwordOption,
  },

  async run (values, args, shell) {
    const {
      mail, file, 'password-stdin': isGiven, 'keep-ways': keepWays = false, 'reset-second-factor': resetSecondFactor = false,
    } = values
    const options = { keepWays: keepWays === true, resetSecondFactor: resetSecondFactor === true }
    if (mail && isGiven) throw new WrongArguments('Only one of --mail and --password-stdin is possible.')
    if (mail && (keepWays || resetSecondFactor)) {
      throw new WrongArguments('With --mail, the user decides what stays: leave out --keep-ways and --reset-second-factor.')
    }
    if (file !== undefined) {
      if (isGiven) throw new WrongArguments('Many users cannot have one password: leave out --password-stdin.')
      return changeMany(values, args, shell, {
        task: ['users reset-password', mail === true, options.keepWays, options.resetSecondFactor].join(' '),
        label: mail ? 'Sending links' : 'Resetting',
        done: mail ? 'sent a link' : 'given a random password',
        require: mail ? requireMailer : () => {},
        async change (context, user) {
          if (mail) await sendLink(context, user)
          else await replace(context, user, { password: randomBytes(32).toString('base64url'), shown: null, isChosen: false }, options)
          return true
        },
      })
    }
    return withService(shell, async (context) => {
      const user = await findUser(context.db, args[0] ?? '')
      if (mail) return sendLink(context, user)
      const given = { ...await readPassword(isGiven, shell), isChosen: isGiven === true }
      return replace(context, user, given, options)
    })
  },
} satisfies Command

async function replace (
  { app: { usherAccounts: accounts, usherSignIn: { passwords } }, caller }: ServiceContext, user: UserRow,
  { password, shown, isChosen }: { password: string, shown: string | null, isChosen: boolean },
  options: SetPasswordOptions
) {
  rejectPersonalWords(parse({ password }).password, user)
  const passwordHash = await (isChosen ? passwords.hashChosen(password) : passwords.hash(password))
  const { endedSessions, removed, remaining } = await accounts.setPassword(caller, user.id, passwordHash, options)
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

function requireMailer ({ sendsMails }: ServiceContext): void {
  if (!sendsMails) throw new Error('No mails can be sent: set SMTP_URL and MAIL_FROM, or leave out --mail.')
}

async function sendLink (context: ServiceContext, user: UserRow) {
  const { app, caller } = context
  requireMailer(context)
  if (user.disabled) throw Object.assign(new Error(`${user.email} is disabled: enable the user first.`), { statusCode: 409 })
  await app.usherMailLinks.passwordLinks.inviteAgain(caller, user.id)
  return {
    text: `A mail to set a password is sent to ${user.email}.`,
    json: { user: showUser(user), password: null, endedSessions: 0, removed: [], remaining: [], mailed: true },
  }
}
