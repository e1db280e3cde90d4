import { createHash } from 'node:crypto'
import { areBeforeRelease, hasMigration, listRanMigrations, lockMigrations } from '../../db/migrations/index.ts'
import { backupTables, isBackupTable } from '../../db/tables/backup-tables.ts'
import { isUuid } from '../../db/driver/postgres.ts'
import { listSigningKeys, openSigningKey } from '../../db/access/signing-keys.ts'
import { installationOf } from '../../db/uploads/uploads.ts'
import type { StorageBackend } from '../../plugins/uploads/backend.ts'
import { BackupError, RELEASE, type Manifest, type Summary } from './format.ts'
import { createTables, dropTables, finishTables, loadRows, renewEpoch, setInstallation, type Target } from './load.ts'
import { readBackup } from './read.ts'
import { openSession, quote, type Session } from './session.ts'
import { findUndone, listTakenAway, type Undone } from './undone.ts'

/** What to restore, and where. */
export interface Destination {
  readonly file: string
  /** The URL of the database. */
  readonly database: string
  readonly schema: string
  readonly backend: StorageBackend
  /** Whether sessions and signing keys are restored. */
  readonly keepsSessions: boolean
  /** The secret with which nodes will open the signing keys. */
  readonly secret: string | undefined
  /** Asks whether existing data may be replaced. Throws if not. Gets what there is. */
  confirm (existing: string): Promise<void>
  onBytes (total: number): void
}

/** What was restored. */
export interface Restored {
  readonly rows: number
  readonly files: number
  readonly missing: number
  /** What the replaced database says was taken away since the backup, newest first; undefined if there was none. */
  readonly undone: readonly Undone[] | undefined
}

/** Verifies a backup. Returns its manifest. Throws `BackupError` if this release cannot restore it. */
export async function verifyBackup (
  file: string, onBytes: (total: number) => void
): Promise<{ manifest: Manifest, summary: Summary }> {
  let manifest: Manifest | undefined
  const summary = await readBackup(file, {
    manifest (found) {
      manifest = found
      if (areBeforeRelease(found.migrations)) {
        throw new BackupError(
          `${file} was made by a checkout of Usher from before release 0.1.0, whose tables no release can read: import the users that "users export" of that checkout has exported.`
        )
      }
      const newer = found.migrations.find((name) => !hasMigration(name))
      if (newer) {
        throw new BackupError(
          `${file} is from release ${found.release}, and this release ${RELEASE} does not know its tables (${newer}): restore it with release ${found.release} or a later one.`
        )
      }
    },
  }, onBytes)
  return { manifest: manifest!, summary }
}

/**
 * Calls `confirm` if there are data already, and throws `BackupError` if nodes run. Changes nothing. Without a
 * database, only the storage of uploads is looked at.
 */
export async function inspectDestination (
  { database, ...rest }: Pick<Destination, 'schema' | 'backend' | 'confirm'> & { database?: string | undefined }
): Promise<void> {
  if (database === undefined) {
    const files = await rest.backend.count()
    if (files > 0) await rest.confirm(describeExisting(files))
    return
  }
  const session = openSession(database, rest.schema, 'usher-restore')
  try {
    await inspect(session, rest)
  } finally {
    await session.close()
  }
}

/**
 * Restores a backup that was verified. The database changes in one transaction, and files of uploads only become
 * visible to nodes right before its commit, so that a failure leaves the old data. Throws `BackupError`, and the errors
 * of the database.
 */
export async function restoreBackup (
  destination: Destination, { manifest, summary }: { manifest: Manifest, summary: Summary }
): Promise<Restored> {
  const { database, schema, backend, keepsSessions } = destination
  const session = openSession(database, schema, 'usher-restore')
  try {
    const before = await inspect(session, destination)
    const restored = await session.db.transaction().execute(async (trx) => {
      const target: Target = { session, trx, schema }
      await session.applySettings()
      await lockMigrations(trx, schema)
      await refuseNodes(session)
      const takenAway = before.exists ? await listTakenAway(session, schema, manifest.createdAt) : undefined
      if (before.exists) await dropTables(target)
      const indexes = await createTables(target, manifest)
      // A copy is another installation than the original. If this restore fails, the next one is the same installation.
      await setInstallation(target, before.installation ?? manifest.createdAt)
      const installation = await installationOf(trx, schema)
      await backend.claim(installation)
      await removeTemporary(backend, installation)
      try {
        const rows = await load(target, destination, manifest, summary, keepsSessions)
        await finishTables(target, manifest, indexes)
        await requireSecret(target, destination)
        await renewEpoch(target, Math.max(before.epoch, manifest.epoch))
        const undone = takenAway && await findUndone(session, schema, takenAway)
        return { rows, undone, ...await publish(target, backend) }
      } finally {
        await removeTemporary(backend, installation)
      }
    })
    await session.db.transaction().execute(async () => {
      await session.applySettings()
      await session.query(`analyze ${Object.keys(backupTables).map((name) => quote(schema, name)).join(', ')}`)
    })
    return restored
  } finally {
    await session.close()
  }
}

interface Before { exists: boolean, installation: string | undefined, epoch: number }

// Returns what the database contains. Asks for confirmation if there is something.
async function inspect (
  session: Session, { schema, backend, confirm }: Pick<Destination, 'schema' | 'backend' | 'confirm'>
): Promise<Before> {
  await refuseNodes(session)
  const ran = await listRanMigrations(session.db, schema)
  const newer = ran.find((name) => !hasMigration(name))
  if (newer) {
    throw new BackupError(
      `A newer release of Usher has changed the database (${newer}): restore into another one, with another DATABASE_URL or DATA_DIR.`
    )
  }
  const files = await backend.count()
  const [users] = ran.length > 0
    ? await session.query<{ count: string }>(`select count(*) from ${quote(schema, 'users')}`)
    : []
  if (ran.length > 0 || files > 0) await confirm(describeExisting(files, users?.count))
  const epochs = ran.length > 0
    ? await session.query<{ epoch: number }>(`select epoch from ${quote(schema, 'current_epoch')}`)
    : []
  return {
    exists: ran.length > 0,
    installation: ran.length > 0 ? await timestampOf(session, schema) : undefined,
    epoch: epochs[0]?.epoch ?? 0,
  }
}

const describeExisting = (files: number, users?: string) =>
  `${users === undefined ? 'an empty database' : `a database with ${users} users`} and ${files} files of uploads`

async function timestampOf (session: Session, schema: string): Promise<string> {
  const [row] = await session.query<{ timestamp: string }>(
    `select timestamp from ${quote(schema, 'migrations')} order by name limit 1`
  )
  return row!.timestamp
}

// A node remembers much of the database, such as the sessions that have ended.
async function refuseNodes (session: Session): Promise<void> {
  const [row] = await session.query<{ count: number }>(`
    select count(*)::int from pg_stat_activity where datname = current_database() and application_name in ('usher', 'usher-backup')
    or (datname = current_database() and application_name = 'usher-restore' and pid <> pg_backend_pid())`)
  if (row!.count > 0) {
    throw new BackupError(
      `Nodes or commands of Usher use the database (${row!.count} connections): stop all of them first.`
    )
  }
}

// Loads tables, and stores files as temporary ones.
async function load (
  target: Target, { file, backend, onBytes }: Destination, { tables }: Manifest, summary: Summary,
  keepsSessions: boolean
): Promise<number> {
  const files = checkFiles(target, file, summary)
  let rows = 0
  const skipped = ({ name }: { name: string }) =>
    isBackupTable(name) && backupTables[name] === 'sessions' && !keepsSessions
  await readBackup(file, {
    async table (name, content) {
      const table = tables.find((table) => table.name === name)
      // `readBackup` has refused tables that are not described.
      if (table && !skipped(table)) await loadRows(target, table, content)
    },

    async file (id, size, content) {
      const hash = createHash('sha256')
      async function * hashed (): AsyncGenerator<Buffer> {
        for await (const chunk of content) {
          hash.update(chunk)
          yield chunk
        }
      }
      // A restore that was killed may have left it.
      await backend.remove('temporary', id)
      await backend.write(id, hashed(), 'temporary', { durable: true })
      await files.check(id, size, hash.digest('hex'))
    },
  }, onBytes)
  await files.end()
  for (const { name } of tables.filter((table) => !skipped(table))) {
    const [row] = await target.session.query<{ count: string }>(`select count(*) from ${quote(target.schema, name)}`)
    rows += Number(row!.count)
  }
  return rows
}

/**
 * Compares the files of a backup with their records, which were loaded before them. Both functions throw `BackupError`
 * if they differ by more than the backup has reported.
 */
function checkFiles ({ session, schema }: Target, file: string, { missing: reported }: Summary) {
  const refused = (what: string) => new BackupError(
    `${file} is damaged: ${what}. Nothing was changed: copy the backup again, or restore another one.`)
  let [complete, different] = [0, 0]
  let firstDifferent = ''

  return {
    async check (id: string, size: number, sha256: string): Promise<void> {
      const [record] = await session.query<{ size: string, sha256: string, isOwned: boolean }>(`
        select size::text, sha256, user_id is not null as "isOwned" from ${quote(schema, 'uploads')}
        where id = $1::uuid`, [id])
      if (!record) throw refused(`it has the file of an upload without its record (${id})`)
      // The bytes of an upload without an owner were being removed.
      if (!record.isOwned) return
      if (record.sha256 === sha256 && Number(record.size) === size) {
        complete++
        return
      }
      different++
      firstDifferent ||= id
      if (different > reported) throw refused(`the file of an upload differs from its record (${firstDifferent})`)
    },

    async end (): Promise<void> {
      const [row] = await session.query<{ count: string }>(`
        select count(*) from ${quote(schema, 'uploads')} where user_id is not null`)
      const missing = Number(row!.count) - complete
      if (missing <= reported) return
      throw refused(`the files of ${missing} uploads are missing or differ from their records, and ${reported} did ` +
        'when the backup was made')
    },
  }
}

// A node could not start with another secret.
async function requireSecret ({ trx, schema }: Target, { secret }: Destination): Promise<void> {
  try {
    for (const key of await listSigningKeys(trx.withSchema(schema))) openSigningKey({ secret }, key)
  } catch (cause) {
    throw new BackupError(
      'SECRET does not open the signing keys of the backup: set the one of the source, or leave out --keep-sessions. Nothing was changed.',
      { cause }
    )
  }
}

// Publishes the files that have a record. The others were uploaded while the backup ran. Returns how many uploads have
// a file.
async function publish (
  { session, schema }: Target, backend: StorageBackend
): Promise<{ files: number, missing: number }> {
  let [files, owned] = [0, 0]
  for await (const batch of backend.listOld('temporary', -Infinity, new AbortController().signal)) {
    const ids = batch.map(({ id }) => id).filter(isUuid)
    const recorded = await session.query<{ id: string, isOwned: boolean }>(`
      select id, user_id is not null as "isOwned" from ${quote(schema, 'uploads')} where id = any($1::uuid[])`, [ids])
    await Promise.all(recorded.map(({ id }) => backend.publish(id)))
    files += recorded.length
    owned += recorded.filter(({ isOwned }) => isOwned).length
  }
  const [row] = await session.query<{ count: number }>(
    `select count(*)::int from ${quote(schema, 'uploads')} where user_id is not null`
  )
  return { files, missing: row!.count - owned }
}

// Removes what was not published, also by a restore that was killed. Nodes of other databases may be writing theirs.
async function removeTemporary (backend: StorageBackend, installation: string): Promise<void> {
  if (await backend.isShared(installation)) return
  for await (const batch of backend.listOld('temporary', -Infinity, new AbortController().signal)) {
    await Promise.all(batch.map(({ id }) => backend.remove('temporary', id)))
  }
}
