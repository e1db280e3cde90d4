import type { Command } from '../command.ts'
import { withService } from '../with-service.ts'
import { findUser, showUser, USER } from './shown.ts'

export default {
  details: 'USER is the id or the email address of the user. The recovery codes are removed as well, and the user logs in with the\n' +
    'password alone. All links in mails to the user are void, and wrong codes are forgotten. If mails can be sent, the user\n' +
    'gets one that says so. Make sure that it is the user who asks for it. A user without anything to remove is not changed.\n\n' +
    '  --passkeys    remove all passkeys, too. A user without a password then needs one: users reset-password\n' +
    '  --identities  remove all identities at providers, too',
  arguments: ['USER'],
  json: `{ user: ${USER}, totp: boolean, passkeys: number, identities: number, endedSessions: number }`,
  options: { passkeys: { type: 'boolean' }, identities: { type: 'boolean' } },

  run: ({ passkeys, identities }, [given = ''], shell) => withService(shell, async ({ app, db, caller }) => {
    const user = await findUser(db, given)
    const options = { passkeys: passkeys === true, identities: identities === true }
    const removed = await app.usherSignIn.credentials.resetSecondFactor(caller, user.id, options)
    const what = [
      ...removed.totp ? ['the authenticator app'] : [],
      ...removed.passkeys > 0 ? [`${removed.passkeys} passkey${removed.passkeys === 1 ? '' : 's'}`] : [],
      ...removed.identities > 0 ? [`${removed.identities} identit${removed.identities === 1 ? 'y' : 'ies'}`] : [],
    ]
    const sessions = `${removed.endedSessions} session${removed.endedSessions === 1 ? '' : 's'} ended.`
    const nothing =
      `${user.email} has no authenticator app${options.passkeys ? ' and no passkeys' : ''}${options.identities ? ' and no identities' : ''}: nothing was changed.`
    return {
      text: what.length === 0 ? nothing : `Removed ${what.join(' and ')} of ${user.email}. ${sessions}`,
      json: { user: showUser(user), ...removed },
    }
  }),
} satisfies Command
