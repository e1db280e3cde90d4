import { sql } from 'kysely'
import type { Database } from '../tables/index.ts'

/** How far the import of a file is. */
export interface ImportProgress {
  /** Up to which byte of the file, and which line, it is done. */
  position: number
  line: number
  imported: number
  /** What is counted besides: admins among them, members of organisations, or users whom a command has skipped. */
  counted: number
  rejected: number
  /** The size of the file of rejected lines. */
  rejectedBytes: number
}

export interface StoredImport extends ImportProgress {
  /** When all of it was done; null if it was not. */
  finishedAt: Date | null
}

// How long it is known that a file was imported.
const REMEMBERED = '90 days'

const number = (column: string) => sql<number>`${sql.ref(column)}::float8`

/** Returns how far the import of a file is, which may not have begun. */
export async function findImport (db: Database, fileHash: Uint8Array): Promise<StoredImport | undefined> {
  return select(db, fileHash).executeTakeFirst()
}

const select = (db: Database, fileHash: Uint8Array) => db.selectFrom('user_imports').select([
  number('position').as('position'), number('line').as('line'), number('imported').as('imported'),
  number('admins').as('counted'), number('rejected').as('rejected'), number('rejected_bytes').as('rejectedBytes'),
  'finished_at as finishedAt',
]).where('file_hash', '=', fileHash)

/** Begins the import of a file, or begins it anew, and forgets imports that were finished long ago. */
export async function beginImport (db: Database, fileHash: Uint8Array): Promise<void> {
  const fresh = {
    position: '0', line: '0', imported: '0', admins: '0', rejected: '0', rejected_bytes: '0', finished_at: null,
  }
  await db
    .with('old', (cte) => cte.deleteFrom('user_imports').where('file_hash', '<>', fileHash)
      .where('finished_at', '<', sql<Date>`now() - ${sql.lit(REMEMBERED)}::interval`))
    .insertInto('user_imports').values({ file_hash: fileHash, ...fresh })
    .onConflict((conflict) => conflict.column('file_hash').doUpdateSet({ ...fresh, started_at: sql`now()` }))
    .execute()
}

/**
 * Locks the import of a file until the transaction ends. Returns whether it is where this process has left it, and no
 * other one imports the same file.
 */
export async function lockImport (trx: Database, fileHash: Uint8Array, position: number): Promise<boolean> {
  const found = await select(trx, fileHash).forUpdate().executeTakeFirst()
  return found !== undefined && found.position === position && found.finishedAt === null
}

/** Stores how far an import is, in the transaction that has imported the users. */
export async function updateImport (
  trx: Database, fileHash: Uint8Array, { position, line, imported, counted, rejected, rejectedBytes }: ImportProgress,
  isFinished: boolean
): Promise<void> {
  await trx.updateTable('user_imports').set({
    position: String(position),
    line: String(line),
    imported: String(imported),
    admins: String(counted),
    rejected: String(rejected),
    rejected_bytes: String(rejectedBytes),
    ...isFinished && { finished_at: sql<Date>`now()` },
  }).where('file_hash', '=', fileHash).execute()
}
