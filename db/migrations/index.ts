import { sql, type Kysely } from 'kysely'
import { secureAccounts } from './account-safety.ts'
import { createAccounts } from './accounts.ts'
import { addApiKeys } from './api-keys.ts'
import { auditIndexes, dropAuditLogins } from './audit-indexes.ts'
import { foldCases } from './case-folding.ts'
import { addConsole, consoleIndexes } from './console.ts'
import { createDeletedUsers } from './deleted-users.ts'
import { timeEndedSessions } from './ended-at.ts'
import { createEpochs } from './epochs.ts'
import { createIdempotencyKeys } from './idempotency.ts'
import { createPosts, createSessions, createUploads, createUsers } from './initial.ts'
import { addLiveSessions } from './live-sessions.ts'
import { addImports } from './imports.ts'
import { addLoginMails } from './login-by-mail.ts'
import { keepOneRequestAKey } from './one-request-a-key.ts'
import { createMailLimits } from './mail-limits.ts'
import { createOutbox } from './outbox.ts'
import { outboxOwnerIndexes } from './outbox-owners.ts'
import { createPositions } from './positions.ts'
import { createIdentities, providerSessionIndexes } from './providers.ts'
import { createQuotas } from './quotas.ts'
import { createRecognisedNetworks } from './recognised-networks.ts'
import { addRowVersions } from './row-versions.ts'
import { addResumableUploads } from './resumable-uploads.ts'
import { addSignUpFields } from './sign-up-fields.ts'
import { createReplicaMarks } from './replica-marks.ts'
import { createSignUps } from './sign-ups.ts'
import { addUploadVisibility, uploadListIndexes } from './upload-visibility.ts'
import { userListIndexes } from './user-lists.ts'
import { addUserStates } from './user-states.ts'
import { addWaysToSignIn } from './ways-to-sign-in.ts'
import { addColumns, listMissingColumns } from '../users/field-columns.ts'
import { buildIndexes, createIndexes, type IndexesOf } from './indexes.ts'
import { defineTogether } from '../batching/together.ts'
import { inShortTransaction, whileAlone, type Limit, type ReportStep } from './steps.ts'
import { noFields, type UserFields } from '../../schema/users/user-fields.ts'
import { allowPauses, lock } from '../driver/postgres.ts'
import { conflict, OLDEST_POSTGRESQL, StartError } from '../driver/start-errors.ts'
import type { Tables } from '../tables/index.ts'

type Statements = (db: Kysely<Tables>, schema: string) => Promise<void>

/**
 * What a migration does: statements in a transaction, or indexes to build, and statements in a transaction once they
 * are there. What the indexes need is created first, and once more if a build has failed. `whenUnused` runs at last on
 * tables that no node of the previous release uses.
 */
type Migration = Statements | {
  beforehand?: Statements, indexes: IndexesOf, afterwards?: Statements, whenUnused?: Statements
}

const statementsOf = (migration: Migration): Statements | undefined =>
  typeof migration === 'function' ? migration : migration.afterwards

export interface MigrateOptions {
  fields?: UserFields
  /** The oldest supported version of PostgreSQL. */
  oldest?: number
  /** Receives what is being done. */
  report?: ReportStep
  /** Called when all tables have been found, and it is being read whether they are up to date. */
  onTables?: () => void
  /** Limits how long statements may take that wait for no other transaction. By default they have no limit. */
  limit?: Limit
}

/** What `migrate` has found and done. */
export interface Migrated {
  /** The names of migrations that a newer version has run. */
  newer: string[]
  /** Whether this call has changed something. */
  hasChanged: boolean
  /** Whether the server is a standby, which accepts no writes. */
  isStandby: boolean
}

/**
 * Brings the PostgreSQL schema up to date while nodes of the previous release use it, and adds the columns of the
 * host's fields. If many nodes start at the same time, they wait for one another, and each migration runs once. Each
 * has a transaction of its own that waits only briefly for locks, or builds indexes without blocking writers. If one
 * fails, it throws the cause, and the next start continues there. A new schema is created in one transaction. Returns
 * the names of migrations that a newer version has run. Throws a `StartError` if one of them is incompatible, if the
 * schema belongs to another program, or if PostgreSQL is too old. docs/operations/upgrading.md has the rules.
 *
 * Kysely's migrator is not used. Its lock belongs to the database session, that is to some connection of the pool, and
 * it lists all tables of the database, which fails if another program drops one of its tables at that moment.
 */
export async function migrate (
  db: Kysely<Tables>, schema: string,
  { fields = noFields, oldest = OLDEST_POSTGRESQL, report = () => {}, onTables = () => {}, limit = (work) => work }:
  MigrateOptions = {}
): Promise<Migrated> {
  // Usually there is nothing to do, so do not wait for the lock.
  const found = await limit(find(db, schema, oldest))
  if (found.hasTables) onTables()
  const isNew = !found.isOurs
  const [ran, missing] = isNew
    ? [new Set<string>(), undefined] as const
    : await limit(Promise.all([
      readRan(db, schema), listMissingColumns(db, schema, fields).catch((error: Error) => error),
    ]))
  const unchanged = { newer: listNewer(ran, schema), hasChanged: false, isStandby: found.isStandby }
  if (Object.keys(migrations).every((name) => ran.has(name))) {
    if (missing instanceof Error) throw missing
    if (missing?.length === 0) return unchanged
  }
  if (ran.size > 0 || !await create(db, schema, fields)) {
    await whileAlone(db, schema, () => change(db, schema, fields, report), () => report({ state: 'waiting' }), limit)
  }
  return { ...unchanged, hasChanged: true }
}

// Creates everything in one transaction. Returns false if another node has just done that.
async function create (db: Kysely<Tables>, schema: string, fields: UserFields): Promise<boolean> {
  return db.transaction().execute(async (trx) => {
    await sql`set local statement_timeout = 0`.execute(trx)
    // While a node starts, its event loop may be busy with other plugins.
    await allowPauses(trx)
    // The lock is held until the commit, so that the next node sees all migrations.
    await lockMigrations(trx, schema)
    if (await exists(trx, schema)) return false
    await runMigrations(trx, schema)
    await addColumns(trx, schema, await listMissingColumns(trx, schema, fields))
    return true
  })
}

// Runs the migrations that are missing. Nodes of earlier releases may migrate at the same time, so each transaction
// looks again.
async function change (db: Kysely<Tables>, schema: string, fields: UserFields, report: ReportStep): Promise<void> {
  const ran = await listRan(db, schema, 0)
  for (const [name, migration] of Object.entries(migrations)) {
    if (ran.has(name)) continue
    report({ migration: name, state: 'started' })
    const { beforehand, indexes } = typeof migration === 'function' ? { indexes: () => [] } : migration
    const waiting = () => report({ migration: name, state: 'waiting' })
    if (beforehand) await inShortTransaction(db, schema, (trx) => beforehand(trx.withSchema(schema), schema), waiting)
    await buildIndexes(db, schema, indexes(schema), (step) => report({ migration: name, ...step }))
    await inShortTransaction(db, schema, async (trx) => {
      if ((await listRan(trx, schema, 0)).has(name)) return
      await statementsOf(migration)?.(trx.withSchema(schema), schema)
      await note(trx, schema, [name])
    }, waiting)
    report({ migration: name, state: 'ended' })
  }
  if ((await listMissingColumns(db, schema, fields)).length === 0) return
  await inShortTransaction(
    db, schema, async (trx) => addColumns(trx, schema, await listMissingColumns(trx, schema, fields)),
    () => report({ state: 'waiting' })
  )
}

async function note (trx: Kysely<Tables>, schema: string, names: readonly string[]): Promise<void> {
  if (names.length === 0) return
  const timestamp = new Date().toISOString()
  await logOf(trx, schema).insertInto('migrations').values(names.map((name) => ({ name, timestamp }))).execute()
}

/**
 * Runs the migrations that have not run, in a transaction, on tables that nobody uses. With `only`, it runs only those
 * that it names, to restore a backup of an older release. The caller has the lock.
 */
export async function runMigrations (
  trx: Kysely<Tables>, schema: string, { only }: { only?: ReadonlySet<string> } = {}
): Promise<void> {
  const isNew = !await exists(trx, schema)
  const ran = isNew ? new Set() : await listRan(trx, schema, 0)
  const missing = Object.entries(migrations).filter(([name]) => !ran.has(name) && (!only || only.has(name)))
  await defineTogether(trx, async (db) => {
    if (isNew) await createLog(db, schema)
    for (const [, migration] of missing) {
      if (typeof migration !== 'function') {
        await migration.beforehand?.(db.withSchema(schema), schema)
        await createIndexes(db, migration.indexes(schema), { isEmpty: isNew })
      }
      await statementsOf(migration)?.(db.withSchema(schema), schema)
      if (typeof migration !== 'function') await migration.whenUnused?.(db.withSchema(schema), schema)
    }
    await note(db, schema, missing.map(([name]) => name))
  })
}

/** Takes the lock for changes of the schema until the transaction ends. Nodes that want to migrate wait for it. */
export const lockMigrations = (trx: Kysely<Tables>, schema: string): Promise<void> =>
  lock(trx, `migrations of ${schema}`)

/**
 * Returns the names of the migrations that the schema has, in order; none if it is not there. Throws a `StartError` if
 * it is not Usher's.
 */
export async function listRanMigrations (db: Kysely<Tables>, schema: string): Promise<string[]> {
  return [...await listRan(db, schema, OLDEST_POSTGRESQL)].sort()
}

/** Returns whether this version has a migration. */
export const hasMigration = (name: string): boolean => Object.hasOwn(migrations, name)

/**
 * Returns the names of the migrations that `migrate` would run, and of those that a newer version has run. It changes
 * nothing.
 */
export async function listPending (
  db: Kysely<Tables>, schema: string
): Promise<{ pending: string[], newer: string[] }> {
  const ran = await listRan(db, schema, OLDEST_POSTGRESQL)
  return { pending: Object.keys(migrations).filter((name) => !ran.has(name)), newer: listNewer(ran, schema) }
}

// During a rolling upgrade, and to undo one, nodes start on a database that the next release has migrated, so
// migrations only add what the previous release can ignore. A name that ends with an exclamation mark stops every
// release that does not know it. One that also ends with the name of another migration, such as `0021-drop-x!0019-y`,
// stops the releases that do not know that one: it removes what they use.
function listNewer (ran: ReadonlySet<string>, schema: string): string[] {
  const newer = [...ran].filter((name) => !(name in migrations)).sort()
  const incompatible = newer.find((name) => name.includes('!') && !(name.slice(name.indexOf('!') + 1) in migrations))
  if (!incompatible) return newer
  throw new StartError(`a newer version of Usher has changed the schema "${schema}" so that this version cannot use it (${incompatible}): ` +
    `the database is at ${newer.at(-1)}, and this version knows the migrations up to ${Object.keys(migrations).at(-1)}. ` +
    'Start the newer version, or restore a backup from before the upgrade')
}

/** They run in this order. Never change what a released migration does; add another one instead. */
export const migrations: Readonly<Record<string, Migration>> = {
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
  '0017-user-lists': { indexes: userListIndexes },
  '0018-quotas': createQuotas,
  '0019-one-request-a-key': keepOneRequestAKey,
  '0020-live-sessions': addLiveSessions,
  '0021-mail-limits': createMailLimits,
  '0022-outbox-owners': { indexes: outboxOwnerIndexes },
  '0023-audit-indexes': { indexes: auditIndexes, afterwards: dropAuditLogins },
  '0024-case-folding': foldCases,
  '0025-ways-to-sign-in': addWaysToSignIn,
  '0026-api-keys': addApiKeys,
  '0027-login-by-mail': addLoginMails,
  '0028-providers': { beforehand: createIdentities, indexes: providerSessionIndexes },
  '0029-imports': addImports,
  '0030-upload-visibility': { indexes: uploadListIndexes, afterwards: addUploadVisibility },
  '0031-resumable-uploads': addResumableUploads,
  '0032-console': { indexes: consoleIndexes, afterwards: addConsole },
  '0033-user-states': addUserStates,
  '0034-replica-marks': createReplicaMarks,
}

const logOf = (db: Kysely<Tables>, schema: string) =>
  db.withSchema(schema).withTables<{ migrations: { name: string, timestamp: string } }>()

async function listRan (db: Kysely<Tables>, schema: string, oldest: number): Promise<ReadonlySet<string>> {
  return await exists(db, schema, oldest) ? readRan(db, schema) : new Set()
}

async function readRan (db: Kysely<Tables>, schema: string): Promise<ReadonlySet<string>> {
  const ran = new Set(
    (await logOf(db, schema).selectFrom('migrations').select('name').execute()).map(({ name }) => name)
  )
  if (ran.size > 0 && !ran.has(FIRST)) throw notOurs(schema)
  return ran
}

const FIRST = '0001-users'
const notOurs = (schema: string) => new StartError(conflict(schema, 'the table migrations'))

async function exists (db: Kysely<Tables>, schema: string, oldest = 0): Promise<boolean> {
  return (await find(db, schema, oldest)).isOurs
}

interface Found {
  /** Whether the table `migrations` exists. */
  isOurs: boolean
  /** Whether all tables exist that a start reads. They may be those of an older version. */
  hasTables: boolean
  isStandby: boolean
}

const READ_AT_START = ['event_consumers', 'signing_keys', 'users']

// `create table if not exists` would require the right to create tables even if everything exists. `to_regclass` is
// not reliable here: it reads the cache of its connection, which remembers that the table did not exist and is not
// updated while the connection waits for an advisory lock. So this reads the catalogue tables. Without parameters, a
// statement takes one round trip.
async function find (db: Kysely<Tables>, schema: string, oldest: number): Promise<Found> {
  const { rows: [found] } = await sql<Omit<Found, 'isOurs'> & { version: number, shown: string, columns: string }>`
    with tables as (
      select pg_class.oid, relname from pg_class join pg_namespace on pg_namespace.oid = relnamespace
      where nspname = ${sql.lit(schema)})
    select current_setting('server_version_num')::integer as version, current_setting('server_version') as shown, (
      select string_agg(attname, ' ' order by attnum) from pg_attribute where attnum > 0 and not attisdropped and attrelid = (
        select oid from tables where relname = 'migrations')
    ) as columns, pg_is_in_recovery() as "isStandby", (
      select count(*) = ${sql.lit(READ_AT_START.length)} from tables
      where relname in (${sql.join(READ_AT_START.map((name) => sql.lit(name)))})) as "hasTables"`.execute(db)
  const { version, shown, columns, ...rest } = found!
  if (Math.floor(version / 10_000) < oldest) {
    throw new StartError(`PostgreSQL ${oldest} or later is required, but this server has version ${shown}`)
  }
  if (columns !== null && columns !== 'name timestamp') throw notOurs(schema)
  return { ...rest, isOurs: columns !== null, hasTables: columns !== null && rest.hasTables }
}

async function createLog (db: Kysely<Tables>, schema: string): Promise<void> {
  const { rows } = await sql`select 1 from pg_namespace where nspname = ${schema}`.execute(db)
  if (rows.length === 0) await db.schema.createSchema(schema).execute()
  await db.withSchema(schema).schema.createTable('migrations')
    .addColumn('name', 'text', (column) => column.primaryKey())
    .addColumn('timestamp', 'text', (column) => column.notNull())
    .execute()
}
