import { Type } from '@sinclair/typebox'
import { insertUsers } from '../../db/users/users.ts'
import { hashPassword } from '../../plugins/sign-in/passwords/passwords.ts'
import { Email, Name, NewPassword } from '../../schema/strings/text.ts'
import { createParser } from '../../schema/http/validator.ts'
import { terminalContext } from './audit.ts'
import { PASSWORD_HELP, passwordOption, readPassword } from './password-input.ts'
import { withDatabase } from './with-database.ts'
import { WrongArguments, type Command } from './command.ts'

const NewAdmin = Type.Object({ email: Email, name: Name, password: NewPassword })
const parse = createParser(NewAdmin)

export default {
  details: '  --email <address>  the email address of the admin, required\n' +
    '  --name <name>      the name of the admin, by default Admin\n' +
    '  --password-stdin   ' + PASSWORD_HELP,
  json: '{ id, email, password: the random one or null }',
  options: { email: { type: 'string' }, name: { type: 'string', default: 'Admin' }, ...passwordOption },

  async run ({ email, name, 'password-stdin': readsPassword }, _, shell) {
    if (email === undefined) throw new WrongArguments('--email is required.')
    const { password, shown } = await readPassword(readsPassword, shell)
    const admin = parse({ email, name, password })
    return withDatabase(shell, async ({ db, options, location }) => {
      const passwordHash = await hashPassword(password, options.passwordHash)
      const [user] = await insertUsers(
        db, [{ name: admin.name, email: admin.email, role: 'admin', passwordHash, context: terminalContext }]
      )
      if (user instanceof Error) {
        throw new Error(`${admin.email} is taken: give that user the role admin instead.`, { cause: user })
      }
      return {
        text: `Admin ${admin.email} was created in ${location}${shown === null ? '.' : `, password ${shown} (not shown again)`}`,
        json: { id: user!.id, email: admin.email, password: shown },
      }
    })
  },
} satisfies Command
