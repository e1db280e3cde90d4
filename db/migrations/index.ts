import { sql, type Kysely, type RawBuilder } from 'kysely'
import { addColumns, listMissingColumns } from '../users/field-columns.ts'
import { createTables } from './0001.ts'
import { after010 } from './0002.ts'
import { postChanges } from './0003.ts'
import { postLists } from './0004.ts'
import { postDrafts } from './0005.ts'
import { postWords } from './0006.ts'
import { buildIndexes, createIndexes } from './indexes.ts'
import type { Migration, Script } from './migration.ts'
import { inShortTransaction, whileAlone, type Limit, type ReportStep } from './steps.ts'
import { noFields, type UserFields } from '../../schema/users/user-fields.ts'
import { allowPauses, lock } from '../driver/postgres.ts'
import { conflict, OLDEST_POSTGRESQL, StartError } from '../driver/start-errors.ts'
import type { Tables } from '../tables/index.ts'

/** Migrations by name, in the order in which they run. */
export type Migrations = Readonly<Record<string, Migration>>

/** The migrations of this release. Never change what a released migration does; add another one instead. */
export const migrations: Migrations = {
  '0001': createTables,
  '0002': after010,
  '0003': postChanges,
  '0004': postLists,
  '0005': postDrafts,
  '0006': postWords,
}

export interface MigrateOptions {
  fields?: UserFields
  /** Those of this release, unless a test has others. */
  migrations?: Migrations
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
 * schema belongs to another program or is from before release 0.1.0, or if PostgreSQL is too old.
 * docs/operations/upgrading.md has the rules.
 *
 * Kysely's migrator is not used. Its lock belongs to the database session, that is to some connection of the pool, and
 * it lists all tables of the database, which fails if another program drops one of its tables at that moment.
 */
export async function migrate (
  db: Kysely<Tables>, schema: string,
  {
    fields = noFields, migrations: known = migrations, oldest = OLDEST_POSTGRESQL, report = () => {},
    onTables = () => {}, limit = (work) => work,
  }: MigrateOptions = {}
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
  const unchanged = { newer: listNewer(ran, schema, known), hasChanged: false, isStandby: found.isStandby }
  if (Object.keys(known).every((name) => ran.has(name))) {
    if (missing instanceof Error) throw missing
    if (missing?.length === 0) return unchanged
  }
  if (ran.size > 0 || !await create(db, schema, known, fields)) {
    const work = () => change(db, schema, known, fields, report)
    await whileAlone(db, schema, work, () => report({ state: 'waiting' }), limit)
  }
  return { ...unchanged, hasChanged: true }
}

// Creates everything in one transaction. Returns false if another node has just done that.
async function create (
  db: Kysely<Tables>, schema: string, known: Migrations, fields: UserFields
): Promise<boolean> {
  return db.transaction().execute(async (trx) => {
    await sql`set local statement_timeout = 0`.execute(trx)
    // While a node starts, its event loop may be busy with other plugins.
    await allowPauses(trx)
    // The lock is held until the commit, so that the next node sees all migrations.
    await lockMigrations(trx, schema)
    const found = await find(trx, schema)
    if (found.isOurs) return false
    await runMissing(trx, schema, found, Object.entries(known))
    await addColumns(trx, schema, await listMissingColumns(trx, schema, fields))
    return true
  })
}

// Runs the migrations that are missing. Nodes of other releases may migrate at the same time, so each transaction looks
// again.
async function change (
  db: Kysely<Tables>, schema: string, known: Migrations, fields: UserFields, report: ReportStep
): Promise<void> {
  const ran = await listRan(db, schema)
  for (const [name, migration] of Object.entries(known)) {
    if (ran.has(name)) continue
    report({ migration: name, state: 'started' })
    const { beforehand, indexes, afterwards } = stepsOf(migration)
    const waiting = () => report({ migration: name, state: 'waiting' })
    if (beforehand) {
      await inShortTransaction(db, schema, async (trx) => { await beforehand(schema).execute(trx) }, waiting)
    }
    await buildIndexes(db, schema, indexes(schema), (step) => report({ migration: name, ...step }))
    await inShortTransaction(db, schema, async (trx) => {
      if ((await listRan(trx, schema)).has(name)) return
      await together([...afterwards ? [afterwards(schema)] : [], note(schema, [name])]).execute(trx)
    }, waiting)
    report({ migration: name, state: 'ended' })
  }
  if ((await listMissingColumns(db, schema, fields)).length === 0) return
  await inShortTransaction(
    db, schema, async (trx) => addColumns(trx, schema, await listMissingColumns(trx, schema, fields)),
    () => report({ state: 'waiting' })
  )
}

/**
 * Runs the migrations that have not run, in a transaction, on tables that nobody uses, in one round trip. With `only`,
 * it runs only those that it names, to restore a backup of an older release. The caller has the lock.
 */
export async function runMigrations (
  trx: Kysely<Tables>, schema: string,
  { only, migrations: known = migrations }: { only?: ReadonlySet<string>, migrations?: Migrations } = {}
): Promise<void> {
  const found = await find(trx, schema)
  const ran = found.isOurs ? await readRan(trx, schema) : new Set()
  const missing = Object.entries(known).filter(([name]) => !ran.has(name) && (!only || only.has(name)))
  if (!found.isOurs || missing.length > 0) await runMissing(trx, schema, found, missing)
}

async function runMissing (
  trx: Kysely<Tables>, schema: string, { isOurs, hasSchema }: Found, missing: [name: string, migration: Migration][]
): Promise<void> {
  await together([
    ...isOurs ? [] : [createLog(schema, hasSchema)],
    ...missing.flatMap(([, migration]) => {
      const { beforehand, indexes, afterwards } = stepsOf(migration)
      return [beforehand?.(schema), ...createIndexes(indexes(schema)), afterwards?.(schema)]
    }),
    note(schema, missing.map(([name]) => name)),
  ]).execute(trx)
}

const stepsOf = (migration: Migration): Exclude<Migration, Script> =>
  typeof migration === 'function' ? { indexes: () => [], afterwards: migration } : migration

const together = (scripts: readonly (RawBuilder<unknown> | undefined)[]): RawBuilder<unknown> =>
  sql.join(scripts.filter((script) => script !== undefined), sql`;\n`)

function createLog (schema: string, hasSchema: boolean): RawBuilder<unknown> {
  return sql`
${hasSchema ? sql`` : sql`create schema ${sql.id(schema)};`}
create table ${sql.id(schema, 'migrations')} (name text primary key, timestamp text not null)`
}

function note (schema: string, names: readonly string[]): RawBuilder<unknown> {
  const time = sql.lit(new Date().toISOString())
  const log = sql.id(schema, 'migrations')
  return sql.join(names.map((name) => sql`insert into ${log} values (${sql.lit(name)}, ${time})`), sql`;\n`)
}

/** Takes the lock for changes of the schema until the transaction ends. Nodes that want to migrate wait for it. */
export const lockMigrations = (trx: Kysely<Tables>, schema: string): Promise<void> =>
  lock(trx, `migrations of ${schema}`)

/**
 * Returns the names of the migrations that the schema has, in order; none if it is not there. Throws a `StartError` if
 * it is not Usher's, or from before release 0.1.0.
 */
export async function listRanMigrations (db: Kysely<Tables>, schema: string): Promise<string[]> {
  return [...await listRan(db, schema, OLDEST_POSTGRESQL)].sort()
}

/** Returns whether the names of migrations are those of a checkout from before release 0.1.0, whose tables differ. */
export const areBeforeRelease = (ran: Iterable<string>): boolean => new Set(ran).has('0001-users')

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
  const pending = Object.keys(migrations).filter((name) => !ran.has(name))
  return { pending, newer: listNewer(ran, schema, migrations) }
}

// During a rolling upgrade, and to undo one, nodes start on a database that the next release has migrated, so
// migrations only add what the previous release can ignore. A name that ends with an exclamation mark stops every
// release that does not know it. One that also ends with the name of another migration, such as `0021-drop-x!0019-y`,
// stops the releases that do not know that one: it removes what they use.
function listNewer (ran: ReadonlySet<string>, schema: string, known: Migrations): string[] {
  const newer = [...ran].filter((name) => !(name in known)).sort()
  const incompatible = newer.find((name) => name.includes('!') && !(name.slice(name.indexOf('!') + 1) in known))
  if (!incompatible) return newer
  throw new StartError(`a newer version of Usher has changed the schema "${schema}" so that this version cannot use it (${incompatible}): ` +
    `the database is at ${newer.at(-1)}, and this version knows the migrations up to ${Object.keys(known).at(-1)}. ` +
    'Start the newer version, or restore a backup from before the upgrade')
}

async function listRan (db: Kysely<Tables>, schema: string, oldest?: number): Promise<ReadonlySet<string>> {
  return (await find(db, schema, oldest)).isOurs ? readRan(db, schema) : new Set()
}

async function readRan (db: Kysely<Tables>, schema: string): Promise<ReadonlySet<string>> {
  const { rows } = await sql<{ name: string }>`select name from ${sql.id(schema, 'migrations')}`.execute(db)
  const ran = new Set(rows.map(({ name }) => name))
  if (areBeforeRelease(ran)) {
    throw new StartError(`the PostgreSQL schema "${schema}" has the tables of a checkout of Usher from before release 0.1.0, ` +
      'which no release can read. Nothing was changed. Choose another database, schema or data folder, and import the ' +
      'users there that "users export" of that checkout has exported')
  }
  if (ran.size > 0 && !ran.has(FIRST)) throw notOurs(schema)
  return ran
}

const FIRST = '0001'
const notOurs = (schema: string) => new StartError(conflict(schema, 'the table migrations'))

interface Found {
  /** Whether the PostgreSQL schema exists. */
  hasSchema: boolean
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
async function find (db: Kysely<Tables>, schema: string, oldest = 0): Promise<Found> {
  const { rows: [found] } = await sql<Omit<Found, 'isOurs'> & { version: number, shown: string, columns: string }>`
    with tables as (
      select pg_class.oid, relname from pg_class join pg_namespace on pg_namespace.oid = relnamespace
      where nspname = ${sql.lit(schema)})
    select current_setting('server_version_num')::integer as version, current_setting('server_version') as shown, (
      select string_agg(attname, ' ' order by attnum) from pg_attribute where attnum > 0 and not attisdropped and attrelid = (
        select oid from tables where relname = 'migrations')
    ) as columns, pg_is_in_recovery() as "isStandby",
    exists (select from pg_namespace where nspname = ${sql.lit(schema)}) as "hasSchema", (
      select count(*) = ${sql.lit(READ_AT_START.length)} from tables
      where relname in (${sql.join(READ_AT_START.map((name) => sql.lit(name)))})) as "hasTables"`.execute(db)
  const { version, shown, columns, ...rest } = found!
  if (Math.floor(version / 10_000) < oldest) {
    throw new StartError(`PostgreSQL ${oldest} or later is required, but this server has version ${shown}`)
  }
  if (columns !== null && columns !== 'name timestamp') throw notOurs(schema)
  return { ...rest, isOurs: columns !== null, hasTables: columns !== null && rest.hasTables }
}
