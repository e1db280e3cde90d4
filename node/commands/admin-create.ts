import { randomBytes } from 'node:crypto'
import { text } from 'node:stream/consumers'
import { Type } from '@sinclair/typebox'
import { insertUsers } from '../../db/users.ts'
import { hashPassword } from '../../plugins/auth/passwords.ts'
import { Email, Name, NewPassword } from '../../schema/text.ts'
import { createParser } from '../../schema/validator.ts'
import { terminalContext } from './audit.ts'
import { withDatabase } from './with-database.ts'
import type { Command } from './command.ts'

const NewAdmin = Type.Object({ email: Email, name: Name, password: NewPassword })
const parse = createParser(NewAdmin)

export default {
  summary: 'Create an admin.',
  details: '  --email <address>  the email address of the admin, required\n' +
    '  --name <name>      the name of the admin, by default Admin\n' +
    '  --password-stdin   read the password from standard input; by default a random one is created and printed',
  options: { email: { type: 'string' }, name: { type: 'string', default: 'Admin' }, 'password-stdin': { type: 'boolean' } },

  async run ({ email, name, 'password-stdin': readsPassword }) {
    const password = readsPassword ? (await text(process.stdin)).replace(/\r?\n$/, '') : randomBytes(15).toString('base64url')
    const admin = parse({ email, name, password })
    await withDatabase(async ({ db }) => {
      const passwordHash = await hashPassword(password)
      const [user] = await insertUsers(db, [{ name: admin.name, email: admin.email, role: 'admin', passwordHash, context: terminalContext }])
      if (user instanceof Error) throw new Error(`${admin.email} is taken: give that user the role admin instead.`, { cause: user })
      console.log(readsPassword
        ? `Admin ${admin.email} was created.`
        : `Admin ${admin.email} was created, password ${password} (not shown again)`)
    })
  },
} satisfies Command
