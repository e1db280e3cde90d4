import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { fileURLToPath } from 'node:url'
import postgres, { type Sql } from 'postgres'
import t, { type Test } from 'tap'
import { sql as raw } from 'kysely'
import { buildIndexes } from '../../db/migrations/indexes.ts'
import { inShortTransaction, type MigrationStep } from '../../db/migrations/steps.ts'
import { migrate, migrations, runMigrations, type MigrateOptions } from '../../db/migrations/index.ts'
import type { Migration } from '../../db/migrations/migration.ts'
import { openConnection } from '../helpers/connection.ts'
import { createDatabase, uniqueSchema } from '../helpers/database.ts'
import { nextMigrations } from '../helpers/next-migrations.ts'
import { until } from '../helpers/until.ts'

const [FIRST, SECOND] = Object.keys(nextMigrations) as [string, string]
// The build of an index waits for all transactions of its database, which are those of other tests in the shared one.
const database = await createDatabase(t, { empty: true })
const connect = (t: Test) => openConnection(t, { database })

const INDEXES = ['next_users_created', 'next_users_key']

/** Migrates a schema as the next release does. */
const upgrade = (db: Parameters<typeof migrate>[0], schema: string, options: MigrateOptions = {}) =>
  migrate(db, schema, { ...options, migrations: { ...migrations, ...nextMigrations } })

/** Creates a schema of this release. */
async function createOlder (t: Test) {
  const schema = uniqueSchema(t.name)
  const { db } = await connect(t)
  await migrate(db, schema)
  const sql = postgres(database, { max: 2, onnotice: () => {}, connection: { search_path: schema } })
  t.teardown(() => sql.end())
  return { schema, db, sql }
}

const indexesOf = async (sql: Sql, schema: string) => (await sql`
  select indexrelid::regclass::text as name from pg_index join pg_class on pg_class.oid = indexrelid
  where relnamespace = ${schema}::regnamespace and indisvalid and relname in ${sql(INDEXES)} order by 1`).map(
  ({ name }) => name
)

t.test('14.3 an older database is migrated by several nodes at once, each migration once, and equals a new one', async (t) => {
  const { schema, sql, db } = await createOlder(t)
  const steps: MigrationStep[] = []
  const others = await Promise.all(Array.from({ length: 3 }, () => connect(t)))
  await Promise.all(
    [db, ...others.map(({ db }) => db)].map((db) => upgrade(db, schema, { report: (step) => steps.push(step) }))
  )
  t.same(await indexesOf(sql, schema), INDEXES)
  t.same(steps.filter(({ state }) => state === 'ended').map(({ migration }) => migration), [FIRST, SECOND])
  const fresh = uniqueSchema(t.name)
  await upgrade(db, fresh)
  t.ok((await describe(sql, fresh)).length > 100)
  t.same(await describe(sql, schema), await describe(sql, fresh))
})

t.test('14.4 a restore creates the tables as they were in the release of the backup, and migrates them when they have rows', async (t) => {
  const [{ db }, schema] = [await connect(t), uniqueSchema(t.name)]
  const sql = postgres(database, { max: 1, onnotice: () => {} })
  t.teardown(() => sql.end())
  const all = { migrations: { ...migrations, ...nextMigrations } }
  await db.transaction().execute(async (trx) => {
    await runMigrations(trx, schema, { ...all, only: new Set(Object.keys(migrations)) })
    await raw`insert into ${raw.id(schema, 'users')} (id, name, email, role)
      values (gen_random_uuid(), 'One', 'one@example.com', 'user')`.execute(trx)
    await runMigrations(trx, schema, all)
  })
  const fresh = uniqueSchema(t.name)
  await upgrade(db, fresh)
  t.same(await describe(sql, schema), await describe(sql, fresh))
})

/** Returns the definitions of everything in a schema, without its name. */
async function describe (sql: Sql, schema: string): Promise<string[]> {
  const own = (column: string) => sql`${sql(column)} = ${schema}::regnamespace`
  const rows = await sql<{ described: string }[]>`
    select described from (
      select format('column %s %s %s %s %s', relname, attname, format_type(atttypid, atttypmod), attnotnull,
          pg_get_expr(adbin, adrelid)) as described
        from pg_class join pg_attribute on attrelid = pg_class.oid
          left join pg_attrdef on adrelid = attrelid and adnum = attnum
        where ${own('relnamespace')} and attnum > 0 and relkind in ('r', 'v', 'p') and not attisdropped
      union all select format('index %s %s', pg_get_indexdef(indexrelid), obj_description(indexrelid)) from pg_index
        join pg_class on pg_class.oid = indrelid where ${own('relnamespace')} and indisvalid
      union all select format('constraint %s %s', conname, pg_get_constraintdef(oid)) from pg_constraint
        where ${own('connamespace')}
      union all select format('trigger %s', pg_get_triggerdef(pg_trigger.oid)) from pg_trigger
        join pg_class on pg_class.oid = tgrelid where ${own('relnamespace')} and not tgisinternal
      union all select format('function %s', pg_get_functiondef(oid)) from pg_proc
        where ${own('pronamespace')}
      union all select format('%s %s %s %s', relname, relkind, relpersistence, reloptions) from pg_class
        where ${own('relnamespace')}
    ) as described order by replace(described, ${schema}, '') collate "C"`
  // Its own search path has one of the schemas, so functions have its name or none.
  return rows.map(({ described }) => described.replaceAll(`${schema}.`, '').replaceAll(schema, ''))
}

t.test('14.3 an index whose build was interrupted is built again', async (t) => {
  const { schema, sql, db } = await createOlder(t)
  await sql`insert into users (id, name, email, role) values (gen_random_uuid(), 'One', 'same@example.com', 'user'), (gen_random_uuid(), 'Two', 'other@example.com', 'user')`
  await t.rejects(
    sql`create unique index concurrently next_users_created on users (role)`,
    { code: '23505' },
    'the build leaves an invalid index'
  )
  await upgrade(db, schema)
  t.same(await indexesOf(sql, schema), INDEXES)
})

/** Starts a process that migrates a schema. Returns a function that kills it. */
async function startMigrating (t: Test, schema: string): Promise<() => Promise<void>> {
  const script = fileURLToPath(new URL('fixtures/migrate.ts', import.meta.url))
  const child = spawn(process.execPath, [script, database, schema], { stdio: 'inherit' })
  const ended = once(child, 'exit')
  const kill = async () => {
    child.kill('SIGKILL')
    await ended
  }
  t.teardown(kill)
  return kill
}

/** Holds a lock of a table until the returned function is called. */
async function hold (sql: Sql, table: string): Promise<() => Promise<void>> {
  const [held, release] = [Promise.withResolvers<void>(), Promise.withResolvers<void>()]
  const holding = sql.begin(async (sql) => {
    await sql`lock table ${sql(table)} in row exclusive mode`
    held.resolve()
    await release.promise
  })
  await held.promise
  return async () => {
    release.resolve()
    await holding
  }
}

const noted = async (sql: Sql) => (await sql`
  select name from migrations where name in ${sql([FIRST, SECOND])} order by 1`).map(({ name }) => name)

t.test('14.3 a start that is killed between two migrations is continued by the next one', async (t) => {
  const { schema, sql, db } = await createOlder(t)
  const release = await hold(sql, 'uploads')
  const kill = await startMigrating(t, schema)
  await until('the first migration has ended', async () => (await noted(sql)).length === 1, 20)
  await kill()
  await release()
  t.same(await noted(sql), [FIRST])
  const steps: MigrationStep[] = []
  await upgrade(db, schema, { report: (step) => steps.push(step) })
  t.same(steps.filter(({ state }) => state === 'ended').map(({ migration }) => migration), [SECOND])
  t.same(await noted(sql), [FIRST, SECOND])
})

t.test('14.3 an index whose build was cut off by a kill is built again by the next start', async (t) => {
  const { schema, sql, db } = await createOlder(t)
  const release = await hold(sql, 'users')
  const kill = await startMigrating(t, schema)
  const findInvalid = () => sql`
    select relname as name from pg_index join pg_class on pg_class.oid = indexrelid
    where relnamespace = ${schema}::regnamespace and not indisvalid`
  await until('the build waits for the transaction', async () => (await findInvalid()).length === 1, 20)
  await kill()
  // PostgreSQL notices within seconds that nobody waits for the statement.
  const building = () => sql`
    select from pg_stat_activity where query like 'create index concurrently%' and query like ${`%"${schema}"%`}`
  await until('PostgreSQL has ended the build', async () => (await building()).length === 0, 100)
  await release()
  const invalid = await findInvalid()
  t.equal(invalid.length, 1)
  t.same(await noted(sql), [])
  await upgrade(db, schema)
  t.same(await indexesOf(sql, schema), INDEXES)
  t.same([...await findInvalid()], [])
  t.same(await noted(sql), [FIRST, SECOND])
})

t.test('14.3 a migration does not make writers wait behind a long transaction, and is tried again when that has ended', async (t) => {
  const { schema, sql, db } = await createOlder(t)
  const [held, release] = [Promise.withResolvers<void>(), Promise.withResolvers<void>()]
  const long = sql.begin(async (sql) => {
    await sql`insert into uploads (id, filename, media_type, size, sha256, description) values (gen_random_uuid(), '', '', 0, '', '')`
    held.resolve()
    await release.promise
  })
  await held.promise
  const steps: MigrationStep[] = []
  const migrated = upgrade(db, schema, { report: (step) => steps.push(step) })
  await until('the migration has been tried twice', () =>
    steps.filter(({ migration, state }) => migration === SECOND && state === 'waiting').length >= 2)
  for (let index = 0; index < 5; index++) {
    await sql`insert into uploads (id, filename, media_type, size, sha256, description) values (gen_random_uuid(), '', '', 0, '', '')`
  }
  t.notOk(steps.some(({ migration, state }) => migration === SECOND && state === 'ended'))
  release.resolve()
  await Promise.all([long, migrated])
  t.equal((await sql`select 1 from migrations where name = ${SECOND}`).length, 1)
})

t.test('14.3 a migration that gets no lock gives up with a sentence', async (t) => {
  const { schema, sql, db } = await createOlder(t)
  await sql.begin(async (sql) => {
    await sql`lock table uploads in row exclusive mode`
    const migrating = inShortTransaction(
      db, schema, async (trx) => { await raw`lock table ${raw.id(schema, 'uploads')}`.execute(trx) }, () => {}, 0
    )
    await t.rejects(
      migrating, { message: /^usher: a migration of the schema .* did not get a lock .* End that transaction/ }
    )
  })
})

t.test('14.3 a build of an index that waits for a transaction says so, and gives up with a sentence', async (t) => {
  const { schema, sql, db } = await createOlder(t)
  const [held, release] = [Promise.withResolvers<void>(), Promise.withResolvers<void>()]
  const long = sql.begin(async (sql) => {
    await sql`lock table users in row exclusive mode`
    held.resolve()
    await release.promise
  })
  await held.promise
  const indexes = [{ name: INDEXES[0]!, on: raw`${raw.id(schema, 'users')} (created_at, id)` }]
  await t.rejects(buildIndexes(db, schema, indexes, () => {}, 0), {
    message: /^usher: the build of an index did not get a lock .* End that transaction/,
  })
  const steps: MigrationStep[] = []
  // The invalid index that the first build has left is dropped first, which waits, too.
  const migrated = upgrade(db, schema, { report: (step) => steps.push(step) })
  await until('it waits', () => steps.some(({ migration, state, index }) =>
    migration === FIRST && state === 'waiting' && index !== undefined))
  release.resolve()
  await Promise.all([long, migrated])
  t.same(await indexesOf(sql, schema), INDEXES)
  // The other indexes may wait for transactions of other tests.
  const repeated = steps.filter(({ state, index }, at) =>
    state === 'waiting' && steps[at - 1]?.state === 'waiting' && steps[at - 1]!.index === index)
  t.same(repeated, [], 'it says so once')
})

t.test('14.3 migrations only add, and build no index that blocks writers of a table that exists', async (t) => {
  t.same(
    Object.keys(migrations).map((name) => Number.parseInt(name)),
    Object.keys(migrations).map((_, index) => index + 1),
    'they are in order, and none is missing'
  )
  const { db } = await connect(t)
  // The rules are those of migrations of tables that exist.
  const [, ...later] = Object.entries({ ...migrations, ...nextMigrations })
  for (const [name, migration] of later) t.same(faultsOf(db, name, migration), [])
  const faulty = (text: string) => faultsOf(db, '0009-faulty', () => raw.raw(text)).length
  for (const text of [
    'alter table "s"."users" drop column name', 'select 1;\n drop table "s".posts', 'truncate "s".posts',
    'create index i on "s".users (name)', 'alter table "s".users add column c text not null',
    'alter table "s".users alter column name type varchar(9)',
  ]) t.equal(faulty(text), 1, text)
  t.equal(faulty('create table "s".t (a text not null); create index i on "s".t (a)'), 0)
})

/** Returns the statements that break the rules for migrations. */
function faultsOf (db: Parameters<typeof migrate>[0], name: string, migration: Migration): string[] {
  const scripts = typeof migration === 'function' ? [migration] : [migration.beforehand, migration.afterwards]
  const statements = scripts.flatMap((script) =>
    script?.('s').compile(db).sql.replaceAll(/--.*$/gm, '').split(';') ?? [])
  const created = statements.flatMap((text) => /^\s*create table (\S+)/i.exec(text)?.[1] ?? [])
  // A constraint may be replaced by one that allows more.
  const removes =
    /^\s*alter table \S+ (drop(?! constraint (\S+),\s+add constraint \2 )|rename)|^\s*drop (table|column|view|function|trigger)|^\s*truncate/i
  const rewrites = /add column (?!.*default).* not null|set not null|alter column \S+ (set data )?type/i
  return statements.filter((text) => {
    const indexed = /^\s*create (?:unique )?index .*? on (\S+)/i.exec(text)?.[1]
    return (removes.test(text) && !name.includes('!')) || rewrites.test(text) ||
      (indexed !== undefined && !created.includes(indexed))
  })
}
