import { existsSync } from 'node:fs'
import { insertAuditEntries } from '../../../db/audit/audit.ts'
import { publishFile } from '../../backup/archive.ts'
import { exportUsers } from '../../imports/export-users.ts'
import { listUserFields } from '../../imports/fields.ts'
import { showProgress } from '../../terminal/progress.ts'
import { terminalContext } from '../audit.ts'
import type { Command } from '../command.ts'
import { withDatabase } from '../with-database.ts'

export default {
  details: 'Nodes may run meanwhile. The file has one user a line, as JSON (NDJSON), all of one moment, as "users import" reads them, and\n' +
    'only its owner may read it. FILE may be - for standard output. It contains personal data and password hashes. Passkeys,\n' +
    'authenticator apps, sessions, posts and uploads are not in it: "backup" has everything.\n\n' +
    '  --schema <name>  the PostgreSQL schema, by default usher',
  arguments: ['FILE'],
  json: '{ file, users: number, admins: number }',
  options: { schema: { type: 'string' } },

  async run ({ schema }, [file = ''], shell) {
    const path = shell.resolve(file)
    if (file !== '-' && existsSync(path)) throw new Error(`${path} exists: choose another name.`)
    if (file === '-' && shell.stdout.isTTY) {
      throw new Error('Hashes of passwords are not written to a terminal: redirect the output, or name a file.')
    }
    const progress = showProgress(shell.messages, 'Exporting', (users) => `${users} users`)
    try {
      const result = await withDatabase(shell, async ({ db, options, settings, databaseUrl }) => {
        const source = {
          database: settings.NOTIFICATIONS_URL ?? databaseUrl,
          schema: options.schema,
          fields: await listUserFields(db, options),
        }
        // First, because whoever reads the output may already have it when something fails.
        await insertAuditEntries(db, [{ ...terminalContext, action: 'users.export' }])
        return file === '-'
          ? exportUsers(source, shell.stdout, progress.update)
          : publishFile(path, (output) => exportUsers(source, output, progress.update))
      }, schema === undefined ? {} : { schema: String(schema) })
      progress.end()
      const { users, admins } = result
      const text = `${users} user${users === 1 ? '' : 's'}, ${admins} admin${admins === 1 ? '' : 's'} among them, ` +
        `${users === 1 ? 'is' : 'are'} in ${file === '-' ? 'standard output' : path}.`
      if (file !== '-') return { text, json: { file: path, ...result } }
      // Standard output has the users.
      if (!shell.isInterrupted) shell.messages.print(text)
    } finally {
      progress.end()
    }
  },
} satisfies Command
