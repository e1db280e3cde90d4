import { sql, type Kysely } from 'kysely'
import { secureAccounts } from './migrations/account-safety.ts'
import { createAccounts } from './migrations/accounts.ts'
import { createDeletedUsers } from './migrations/deleted-users.ts'
import { timeEndedSessions } from './migrations/ended-at.ts'
import { createEpochs } from './migrations/epochs.ts'
import { createIdempotencyKeys } from './migrations/idempotency.ts'
import { createPosts, createSessions, createUploads, createUsers } from './migrations/initial.ts'
import { createOutbox } from './migrations/outbox.ts'
import { createPositions } from './migrations/positions.ts'
import { createRecognisedNetworks } from './migrations/recognised-networks.ts'
import { addRowVersions } from './migrations/row-versions.ts'
import { addSignUpFields } from './migrations/sign-up-fields.ts'
import { createSignUps } from './migrations/sign-ups.ts'
import { indexUserLists } from './migrations/user-lists.ts'
import { addColumns, listMissingColumns } from './field-columns.ts'
import { noFields } from '../schema/user-fields.ts'
import { allowPauses, lock } from './postgres.ts'
import { conflict, OLDEST_POSTGRESQL, StartError } from './start-errors.ts'
import type { Tables } from './tables.ts'

/**
 * Brings the PostgreSQL schema up to date, and adds the columns of the host's fields. If many nodes start at the same time, they wait for one another, and each migration
 * runs once. All pending migrations run in one transaction: if one fails, it throws the cause and nothing has changed. Returns the names
 * of migrations that a newer version has run. Throws a `StartError` if one of them is incompatible, if the schema belongs to another
 * program, or if PostgreSQL is too old.
 *
 * Kysely's migrator is not used. Its lock belongs to the database session, that is to some connection of the pool, and it lists
 * all tables of the database, which fails if another program drops one of its tables at that moment.
 */
export async function migrate (db: Kysely<Tables>, schema: string, { fields = noFields, oldest = OLDEST_POSTGRESQL } = {}): Promise<string[]> {
  // Usually there is nothing to do, so do not wait for the lock.
  const ran = await listRan(db, schema, oldest)
  const newer = listNewer(ran, schema)
  const isCurrent = Object.keys(migrations).every((name) => ran.has(name))
  if (isCurrent && (await listMissingColumns(db, schema, fields)).length === 0) return newer
  await db.transaction().execute(async (trx) => {
    // Changing a table with many rows takes a while, and so does waiting for the lock.
    await sql`set local statement_timeout = 0`.execute(trx)
    // While a node starts, its event loop may be busy with other plugins.
    await allowPauses(trx)
    // The lock is held until the commit, so that the next node sees all migrations.
    await lock(trx, `migrations of ${schema}`)
    if (!await exists(trx, schema)) await createLog(trx, schema)
    const ran = await listRan(trx, schema, oldest)
    for (const [name, run] of Object.entries(migrations)) {
      if (ran.has(name)) continue
      await run(trx.withSchema(schema), schema)
      await logOf(trx, schema).insertInto('migrations').values({ name, timestamp: new Date().toISOString() }).execute()
    }
    await addColumns(trx, schema, await listMissingColumns(trx, schema, fields))
  })
  return newer
}

/** Returns the names of the migrations that `migrate` would run, and of those that a newer version has run. It changes nothing. */
export async function listPending (db: Kysely<Tables>, schema: string): Promise<{ pending: string[], newer: string[] }> {
  const ran = await listRan(db, schema, OLDEST_POSTGRESQL)
  return { pending: Object.keys(migrations).filter((name) => !ran.has(name)), newer: listNewer(ran, schema) }
}

// During a rolling upgrade, older nodes start on a database that a newer one has migrated, so migrations only add what older versions
// can ignore. The name of one with which older versions cannot work ends with an exclamation mark.
function listNewer (ran: ReadonlySet<string>, schema: string): string[] {
  const newer = [...ran].filter((name) => !(name in migrations))
  const incompatible = newer.find((name) => name.endsWith('!'))
  if (!incompatible) return newer
  throw new StartError(`a newer version of Usher has changed the schema "${schema}" so that this version cannot use it (${incompatible}). ` +
    'Start the newer version, or restore a backup from before the upgrade')
}

// They run in this order. Never change a migration that has been released; add another one instead.
const migrations: Record<string, (db: Kysely<Tables>, schema: string) => Promise<void>> = {
  '0001-users': createUsers,
  '0002-sessions': createSessions,
  '0003-posts': createPosts,
  '0004-uploads': createUploads,
  '0005-accounts': createAccounts,
  '0006-positions': createPositions,
  '0007-deleted-users': createDeletedUsers,
  '0008-recognised-networks': createRecognisedNetworks,
  '0009-ended-at': timeEndedSessions,
  '0010-epochs': createEpochs,
  '0011-account-safety': secureAccounts,
  '0012-sign-ups': createSignUps,
  '0013-outbox': createOutbox,
  '0014-sign-up-fields': addSignUpFields,
  '0015-row-versions': addRowVersions,
  '0016-idempotency': createIdempotencyKeys,
  '0017-user-lists': indexUserLists,
}

const logOf = (db: Kysely<Tables>, schema: string) => db.withSchema(schema).withTables<{ migrations: { name: string, timestamp: string } }>()

async function listRan (db: Kysely<Tables>, schema: string, oldest: number): Promise<ReadonlySet<string>> {
  if (!await exists(db, schema, oldest)) return new Set()
  const ran = new Set((await logOf(db, schema).selectFrom('migrations').select('name').execute()).map(({ name }) => name))
  if (ran.size > 0 && !ran.has(FIRST)) throw notOurs(schema)
  return ran
}

const FIRST = '0001-users'

const notOurs = (schema: string) => new StartError(conflict(schema, 'the table migrations'))

// Returns whether the table `migrations` exists. `create table if not exists` would require the right to create tables even if
// everything exists. `to_regclass` is not reliable here: it reads the cache of its connection, which remembers that the table did
// not exist and is not updated while the connection waits for an advisory lock. So this reads the catalogue tables.
async function exists (db: Kysely<Tables>, schema: string, oldest = 0): Promise<boolean> {
  const { rows: [found] } = await sql<{ version: number, shown: string, columns: string }>`
    select current_setting('server_version_num')::integer as version, current_setting('server_version') as shown, (
      select string_agg(attname, ' ' order by attnum) from pg_attribute where attnum > 0 and not attisdropped and attrelid = (
        select pg_class.oid from pg_class join pg_namespace on pg_namespace.oid = relnamespace where nspname = ${schema} and relname = 'migrations')
    ) as columns`.execute(db)
  const { version, shown, columns } = found!
  if (Math.floor(version / 10_000) < oldest) throw new StartError(`PostgreSQL ${oldest} or later is required, but this server has version ${shown}`)
  if (columns !== null && columns !== 'name timestamp') throw notOurs(schema)
  return columns !== null
}

async function createLog (db: Kysely<Tables>, schema: string): Promise<void> {
  const { rows } = await sql`select 1 from pg_namespace where nspname = ${schema}`.execute(db)
  if (rows.length === 0) await db.schema.createSchema(schema).execute()
  await db.withSchema(schema).schema.createTable('migrations')
    .addColumn('name', 'text', (column) => column.primaryKey())
    .addColumn('timestamp', 'text', (column) => column.notNull())
    .execute()
}
