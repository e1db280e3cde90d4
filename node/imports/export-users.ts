import { pipeline } from 'node:stream/promises'
import type { Writable } from 'node:stream'
import { importedMembers, members, type ImportedMembers } from '../../schema/users/members.ts'
import type { UserFields } from '../../schema/users/user-fields.ts'
import { BackupError } from '../backup/format.ts'
import { openSession, quote } from '../backup/session.ts'

// The fields of the host may have 2 MiB a user.
const MAX_ROWS = 1000
const BATCH_BYTES = 4 * 1024 * 1024

// What an export has instead of the column of a member.
const values: { readonly [Name in keyof ImportedMembers]?: string } = {
  // Absent for persons, as in what other systems export.
  kind: 'nullif(account_kind, \'person\')',
  // All digits, of which a `Date` would lose some.
  createdAt: 'to_char(created_at at time zone \'UTC\', \'YYYY-MM-DD"T"HH24:MI:SS.US"Z"\')',
}

type Row = Record<string, unknown> & { role: string }

/** How many users were exported, and how many of them are admins. */
export interface ExportResult { users: number, admins: number }

/**
 * Writes all users to a stream, as of one moment and in constant memory, as `importUsers` reads them. Throws
 * `BackupError` if the reader of the stream has ended.
 * @param onUsers receives the number of users so far
 */
export async function exportUsers (
  { database, schema, fields }: { database: string, schema: string, fields: UserFields }, output: Writable,
  onUsers: (users: number) => void
): Promise<ExportResult> {
  const session = openSession(database, schema, 'usher-export')
  const result = { users: 0, admins: 0 }
  const columns = [
    ...importedMembers.map((name) => `${values[name] ?? members[name].column} as ${quote(name)}`),
    // An integer that is accepted is exact as a double. As a bigint it would be read as text.
    ...fields.map(({ name, type }) =>
      `${quote(name)}${type === 'integer' ? '::double precision' : ''} as ${quote(name)}`),
    'password_hash as "passwordHash"',
  ]
  const bytesPerRow = fields.reduce((sum, { bytes }) => sum + bytes, 1024)
  const rows = Math.max(1, Math.min(MAX_ROWS, Math.floor(BATCH_BYTES / bytesPerRow)))

  async function * lines (): AsyncGenerator<string> {
    await session.query('begin isolation level repeatable read, read only')
    await session.applySettings()
    // In the order of creation, for users who were created here.
    await session.query(`
      declare exported no scroll cursor for select ${columns.join(', ')} from ${quote(schema, 'users')} order by id`)
    for (;;) {
      const page = await session.query<Row>(`fetch forward ${rows} from exported`)
      if (page.length === 0) break
      result.users += page.length
      result.admins += page.filter(({ role }) => role === 'admin').length
      onUsers(result.users)
      yield page.map(toLine).join('')
    }
    await session.query('commit')
  }

  try {
    await pipeline(lines, output).catch((error: NodeJS.ErrnoException) => {
      if (error.code !== 'EPIPE' || error.syscall !== 'write') throw error
      throw new BackupError('The program that reads the output has ended, so the export is incomplete.', { cause: error })
    })
    return result
  } finally {
    await session.close()
  }
}

// A member without a value is absent.
function toLine (row: Row): string {
  return `${JSON.stringify(Object.fromEntries(Object.entries(row).filter(([, value]) => value !== null)))}\n`
}
