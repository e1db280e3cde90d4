import { CreateApiKey } from '../../../schema/sign-in/api-keys.ts'
import { createParser } from '../../../schema/http/validator.ts'
import { WrongArguments, type Command } from '../command.ts'
import { findUser } from '../users/shown.ts'
import { withService } from '../with-service.ts'

const parse = createParser(CreateApiKey)

export default {
  details: 'USER is the id or the email address of the user, usually a service user: users create --service. Only the key of the\n' +
    'output works, and nothing shows it again. The user gets a mail, if mails can be sent.\n\n' +
    '  --name <name>        what the key is for, required\n' +
    '  --actions <names>    the actions of the policy that it permits, separated by commas; by default all that a key can have\n' +
    '  --expires <instant>  when it expires, for example 2030-01-01T00:00:00Z; by default it does not',
  arguments: ['USER'],
  json: '{ id, userId, name, actions, createdAt, lastUsedAt, expiresAt, key }',
  options: { name: { type: 'string' }, actions: { type: 'string' }, expires: { type: 'string' } },

  async run ({ name, actions, expires }, [given = ''], shell) {
    if (name === undefined) throw new WrongArguments('--name is required.')
    const key = parse({
      name,
      ...actions !== undefined && { actions: String(actions).split(',').map((action) => action.trim()) },
      ...expires !== undefined && { expiresAt: expires },
    })
    return withService(shell, async ({ app, db, caller }) => {
      const { id: userId, email } = await findUser(db, given)
      const created = await app.usherSignIn.apiKeys.create(caller, userId, key)
      const text = `The API key ${created.id} of ${email} was created (not shown again):\n${created.key}`
      return { text, json: { userId, ...created } }
    })
  },
} satisfies Command
