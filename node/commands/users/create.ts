import { userInputs } from '../../../schema/users/user-inputs.ts'
import { noFields } from '../../../schema/users/user-fields.ts'
import { WrongArguments, type Command } from '../command.ts'
import { readRolesOf } from '../roles.ts'
import { PASSWORD_HELP, passwordOption, readPassword } from '../password-input.ts'
import { withService } from '../with-service.ts'
import { showUser, USER } from './shown.ts'

export default {
  details: '  --email <address>  the email address of the user, required\n' +
    '  --name <name>      the name of the user, required\n' +
    '  --role <role>      admin, user or one of the option roles, by default user\n' +
    `  --password-stdin   ${PASSWORD_HELP}\n` +
    '  --service          create a service user, which has no password and acts with API keys: api-keys create\n' +
    '  --invite           set no password, and send the user a mail with a link to set one',
  json: `{ user: ${USER}, password: the random one or null }`,
  options: {
    email: { type: 'string' },
    name: { type: 'string' },
    role: { type: 'string' },
    invite: { type: 'boolean' },
    service: { type: 'boolean' },
    ...passwordOption,
  },

  async run ({ email, name, role, invite, service, 'password-stdin': isGiven }, _, shell) {
    for (const [option, value] of Object.entries({ email, name })) {
      if (value === undefined) throw new WrongArguments(`--${option} is required.`)
    }
    if ([invite, isGiven, service].filter(Boolean).length > 1) {
      throw new WrongArguments('Only one of --invite, --password-stdin and --service is possible.')
    }
    const { password, shown } =
      invite || service ? { password: undefined, shown: null } : await readPassword(isGiven, shell)
    const roles = await readRolesOf(shell)
    const given = userInputs({ userFields: noFields, roles }).creation.parse({ email, name, role, password, ...service === true && { kind: 'service' } })
    return withService(shell, async ({ app, caller, sendsMails }) => {
      if (invite && !sendsMails) {
        throw new Error('No mails can be sent: set SMTP_URL and MAIL_FROM, or leave out --invite.')
      }
      const user = await app.usherAccounts.newUsers.create(caller, given)
      if (invite) await app.usherMailLinks.passwordLinks.invite(caller, user.id)
      const result = invite
        ? `, and a mail to set a password is sent to ${user.email}`
        : shown === null ? '' : `, password ${shown} (not shown again)`
      return {
        text: `User ${user.email} was created with the id ${user.id}${result}.`.replace(/\)\.$/, ')'),
        json: { user: showUser(user), password: shown },
      }
    })
  },
} satisfies Command
