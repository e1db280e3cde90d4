import { createHash } from 'node:crypto'
import { insertAuditEntries } from '../../db/audit/audit.ts'
import { setClock } from '../../db/driver/ids.ts'
import { hasMigration } from '../../db/migrations/index.ts'
import { keepUploads } from '../../db/uploads/removal.ts'
import { deleteOwnerlessUploads } from '../../db/uploads/uploads.ts'
import type { StorageBackend } from '../../plugins/uploads/backend.ts'
import { terminalContext } from '../commands/audit.ts'
import { archive, type Archive } from './archive.ts'
import { describeSchema, dumpTable } from './dump.ts'
import { BackupError, fileOf, MANIFEST, partOf, type Manifest, type Summary } from './format.ts'
import { readAhead, type Content } from './read-ahead.ts'
import { openSession, quote, type Session } from './session.ts'

const RECORDS_A_PAGE = 1000
const MISSING_NAMED = 10
const CURSOR = 'usher_backup_files'

/** What to back up. */
export interface Source {
  /** The URL of the database. */
  readonly database: string
  readonly schema: string
  readonly backend: StorageBackend
}

/** What a backup contains. */
export interface Result extends Omit<Summary, 'entries' | 'checksums'> {
  /** The ids of the first uploads whose bytes are missing or differ from their records. */
  readonly missingIds: string[]
}

interface UploadRecord { id: string, size: number, sha256: string, isOwned: boolean }

/**
 * Makes a backup: passes its bytes to `write`, in constant memory. The rows are those of one moment. Files that are
 * deleted from then on are kept until the backup is complete, so each record has its bytes. Throws `BackupError`, and
 * the errors of `write` and of the database.
 */
export async function makeBackup (
  { database, schema, backend }: Source, write: (bytes: AsyncIterable<Uint8Array>) => Promise<void>
): Promise<Result> {
  const [rows, keeper] = [openSession(database, schema, 'usher-backup'), openSession(database, schema, 'usher-backup')]
  const result: Result = { rows: {}, files: 0, fileBytes: 0, missing: 0, missingIds: [] }

  async function fill (archive: Archive): Promise<void> {
    await rows.query('begin isolation level repeatable read read only')
    await rows.applySettings()
    const manifest = await describe(rows, schema)
    const hasUploads = await declareFiles()
    if (hasUploads && !await backend.exists()) {
      throw new BackupError(`There are no uploads in ${backend.root}: check DATA_DIR.`)
    }
    const head = Buffer.from(JSON.stringify(manifest, null, 2))
    await archive.add(MANIFEST, head.length, [head])
    for (const table of manifest.tables) {
      let [parts, count] = [0, 0]
      for await (const part of dumpTable(rows, schema, table)) {
        await archive.add(partOf(table.name, parts++), part.bytes.length, [part.bytes])
        count += part.rows
      }
      result.rows[table.name] = count
    }
    await rows.query('commit')
    if (hasUploads) await files(archive)
    // Fails if the connection was lost, and with it the lock.
    await keeper.query('commit')
    const { missingIds: _, ...summary } = result
    await archive.end(summary)
  }

  // Returns whether there are uploads.
  async function declareFiles (): Promise<boolean> {
    const table = quote(schema, 'uploads')
    await rows.query(`declare ${CURSOR} no scroll cursor with hold for
      select id, size::text, sha256, user_id is not null as "isOwned" from ${table} order by id`)
    const [row] = await rows.query<{ exists: boolean }>(`select exists (select from ${table})`)
    return row!.exists
  }

  // The transaction has ended, because it would delay vacuums and migrations. The cursor has kept the records of its
  // moment, and the lock of the other connection keeps their files.
  async function files (archive: Archive): Promise<void> {
    for await (const [record, bytes] of readAhead(records(), ({ id }) => backend.read(id))) {
      await file(archive, record, bytes)
    }
  }

  async function * records (): AsyncGenerator<UploadRecord> {
    for (;;) {
      const page =
        await rows.query<Omit<UploadRecord, 'size'> & { size: string }>(`fetch ${RECORDS_A_PAGE} from ${CURSOR}`)
      for (const record of page) yield { ...record, size: Number(record.size) }
      if (page.length < RECORDS_A_PAGE) return
    }
  }

  async function file (
    archive: Archive, { id, size, sha256, isOwned }: UploadRecord, bytes: Content | undefined
  ): Promise<void> {
    const hash = createHash('sha256')
    if (bytes) {
      await archive.add(fileOf(id), size, exactly(bytes, size, hash))
      result.files++
      result.fileBytes += size
      if (hash.digest('hex') === sha256) return
    }
    // The bytes of an upload without an owner were being removed when the backup began.
    if (!isOwned) return
    result.missing++
    if (result.missingIds.length < MISSING_NAMED) result.missingIds.push(id)
  }

  try {
    await keeper.query('begin')
    await keeper.applySettings()
    await keepUploads(keeper.db).catch(explainLock)
    await write(archive(fill))
    await removeOwnerless(rows, backend)
    await record(rows)
    return result
  } finally {
    await Promise.all([rows.close(), keeper.close()])
  }
}

// Nodes and commands tell the age of the last backup by this entry.
async function record ({ db, query }: Session): Promise<void> {
  const [row] = await query<{ now: number }>('select extract(epoch from clock_timestamp())::float8 * 1000 as now')
  const now = () => row!.now
  setClock(db, { now, rising: now, uncertainty: 0 })
  await insertAuditEntries(db, [{ ...terminalContext, action: 'backup.create' }])
}

async function describe (session: Session, schema: string): Promise<Manifest> {
  const manifest = await describeSchema(session, schema)
  if (manifest.migrations.length === 0) {
    throw new BackupError(`The database has no schema "${schema}" of Usher, so there is nothing to back up.`)
  }
  const newer = manifest.migrations.find((name) => !hasMigration(name))
  if (newer) {
    throw new BackupError(
      `A newer release of Usher has changed the database (${newer}): make the backup with that release.`
    )
  }
  return manifest
}

// Yields exactly `size` bytes, because the header of the entry has been written: a damaged file is filled up or cut.
async function * exactly (
  bytes: Content, size: number, hash: ReturnType<typeof createHash>
): AsyncGenerator<Uint8Array> {
  let rest = size
  for await (const chunk of bytes) {
    hash.update(chunk)
    const kept = chunk.subarray(0, rest)
    rest -= kept.length
    yield kept
    if (kept.length < chunk.length) break
  }
  for (; rest > 0; rest -= Math.min(rest, 65_536)) yield Buffer.alloc(Math.min(rest, 65_536))
}

function explainLock (error: Error): never {
  const isLocked = (error as { code?: string }).code === '55P03'
  throw isLocked
    ? new BackupError('Another backup of this database is running: wait until it has ended.', { cause: error })
    : error
}

// Nodes have skipped the files of deleted uploads while the backup was running.
async function removeOwnerless ({ db }: Session, backend: StorageBackend): Promise<void> {
  const remove = (id: string) => backend.remove('published', id).then(() => true, () => false)
  while (await deleteOwnerlessUploads(db, RECORDS_A_PAGE, remove) === RECORDS_A_PAGE);
}
