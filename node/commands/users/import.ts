import { readFirebaseConfig } from '../../imports/firebase-config.ts'
import { listUserFields } from '../../imports/fields.ts'
import { importUsers } from '../../imports/import-users.ts'
import { importedMembers, members } from '../../../schema/users/members.ts'
import type { Command } from '../command.ts'
import { count, importJson, importOptions, runImport } from '../run-import.ts'
import { withDatabase } from '../with-database.ts'

const needed = importedMembers.filter((name) => members[name].in.import === 'required')
const known = [...importedMembers.filter((name) => members[name].in.import === 'optional'), 'passwordHash']

export default {
  details: 'Nodes may run meanwhile. FILE has one user a line, as JSON (NDJSON):\n' +
    `${needed.join(', ')}, and if they are known ${known.join(', ')},\n` +
    'and the fields of the host. passwordHash is a PHC string of argon2, bcrypt, scrypt, PBKDF2 or firebase-scrypt. The users log in with their old passwords. No existing user is changed, and nobody gets a mail.\n\n' +
    'Lines that are wrong, or whose address or id is taken, are written to FILE.rejected.ndjson with the reason, and the command\n' +
    'exits with 1. If it is interrupted, run it again: it continues where it was.\n\n' +
    '  --dry-run                 check everything and import nobody\n' +
    '  --rejected <file>         the file of rejected lines, by default FILE.rejected.ndjson. It contains password hashes\n' +
    '  --firebase-config <file>  the password hash parameters of a Firebase project, as its console shows them\n' +
    '  --again                   import a file once more that was imported, for example after users were deleted\n' +
    '  --schema <name>           the PostgreSQL schema, by default usher',
  arguments: ['FILE'],
  json: importJson('admins: number'),
  options: { ...importOptions, 'firebase-config': { type: 'string' } },

  async run (values, names, shell) {
    const { 'firebase-config': config } = values
    const firebase = config === undefined ? undefined : await readFirebaseConfig(shell.resolve(String(config)))
    return runImport(values, names, shell, {
      command: 'users import',
      noun: 'user',
      import: (given, schema) => withDatabase(shell, async ({ db, options }) =>
        importUsers({ ...given, db, options, fields: await listUserFields(db, options), firebase }), schema),
      tell: ({ admins }) => `${count(admins, 'admin')} among them`,
    })
  },
} satisfies Command
