import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { fileURLToPath } from 'node:url'
import postgres, { type Sql } from 'postgres'
import t, { type Test } from 'tap'
import { sql as raw } from 'kysely'
import { buildIndexes } from '../../db/migrations/indexes.ts'
import { inShortTransaction, type MigrationStep } from '../../db/migrations/steps.ts'
import { migrate, migrations } from '../../db/migrations/index.ts'
import { userListIndexes } from '../../db/migrations/user-lists.ts'
import { openConnection } from '../helpers/connection.ts'
import { testDatabaseUrl, uniqueSchema } from '../helpers/database.ts'
import { until } from '../helpers/until.ts'

const INDEXES = ['users_name', 'users_role_email', 'users_role_name', 'users_words']

/** Creates a schema as it was before the indexes of users lists and the quotas. */
async function createOlder (t: Test) {
  const schema = uniqueSchema(t.name)
  const { db } = await openConnection(t)
  await migrate(db, schema)
  const sql = postgres(await testDatabaseUrl(), { max: 2, onnotice: () => {}, connection: { search_path: schema } })
  t.teardown(() => sql.end())
  await undo(sql)
  return { schema, db, sql }
}

async function undo (sql: Sql): Promise<void> {
  // A new schema does not have them any more.
  for (const index of INDEXES) await sql`drop index if exists ${sql(index)}`
  for (const event of ['insert', 'update', 'delete', 'truncate']) {
    await sql`drop trigger ${sql(`uploads_counted_${event}`)} on uploads`
  }
  await sql`drop table upload_usage, post_rates cascade`
  await sql`drop function if exists count_uploads(), add_upload_usage(uuid, bigint, bigint, text)`
  await sql`delete from migrations where name in ('0017-user-lists', '0018-quotas')`
}

const indexesOf = async (sql: Sql, schema: string) => (await sql`
  select indexrelid::regclass::text as name from pg_index join pg_class on pg_class.oid = indexrelid
  where relnamespace = ${schema}::regnamespace and indisvalid and relname in ${sql(INDEXES)} order by 1`).map(
  ({ name }) => name
)

t.test('14.3 an older database is migrated by several nodes at once, each migration once, with the same indexes as a new one, and those of the previous release', async (t) => {
  const { schema, sql, db } = await createOlder(t)
  const steps: MigrationStep[] = []
  const others = await Promise.all(Array.from({ length: 3 }, () => openConnection(t)))
  await Promise.all(
    [db, ...others.map(({ db }) => db)].map((db) => migrate(db, schema, { report: (step) => steps.push(step) }))
  )
  t.same(await indexesOf(sql, schema), INDEXES)
  t.same(
    steps.filter(({ state }) => state === 'ended').map(({ migration }) => migration), ['0017-user-lists', '0018-quotas']
  )
  const definitions = async (name: string) => (await sql`
    select replace(replace(indexdef, ${`${name}.`}, ''), ${name}, '') as text
    from pg_indexes where schemaname = ${name} and indexname not in ${sql(INDEXES)} order by indexname`).map(
    ({ text }) => text
  )
  const fresh = uniqueSchema(t.name)
  await migrate(db, fresh)
  t.same(await definitions(schema), await definitions(fresh))
})

t.test('14.3 an index whose build was interrupted is built again', async (t) => {
  const { schema, sql, db } = await createOlder(t)
  await sql`insert into users (id, name, email, role) values (gen_random_uuid(), 'One', 'same@example.com', 'user'), (gen_random_uuid(), 'Two', 'other@example.com', 'user')`
  await t.rejects(
    sql`create unique index concurrently users_name on users (role)`,
    { code: '23505' },
    'the build leaves an invalid index'
  )
  await migrate(db, schema)
  t.same(await indexesOf(sql, schema), INDEXES)
})

/** Starts a process that migrates a schema. Returns a function that kills it. */
async function startMigrating (t: Test, schema: string): Promise<() => Promise<void>> {
  const script = fileURLToPath(new URL('fixtures/migrate.ts', import.meta.url))
  const child = spawn(process.execPath, [script, await testDatabaseUrl(), schema], { stdio: 'inherit' })
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
  select name from migrations where name in ('0017-user-lists', '0018-quotas') order by 1`).map(({ name }) => name)

t.test('14.3 a start that is killed between two migrations is continued by the next one', async (t) => {
  const { schema, sql, db } = await createOlder(t)
  const release = await hold(sql, 'uploads')
  const kill = await startMigrating(t, schema)
  await until('the first migration has ended', async () => (await noted(sql)).length === 1, 20)
  await kill()
  await release()
  t.same(await noted(sql), ['0017-user-lists'])
  const steps: MigrationStep[] = []
  await migrate(db, schema, { report: (step) => steps.push(step) })
  t.same(steps.filter(({ state }) => state === 'ended').map(({ migration }) => migration), ['0018-quotas'])
  t.same(await noted(sql), ['0017-user-lists', '0018-quotas'])
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
  await migrate(db, schema)
  t.same(await indexesOf(sql, schema), INDEXES)
  t.same([...await findInvalid()], [])
  t.same(await noted(sql), ['0017-user-lists', '0018-quotas'])
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
  const migrated = migrate(db, schema, { report: (step) => steps.push(step) })
  await until('the migration has been tried twice', () =>
    steps.filter(({ migration, state }) => migration === '0018-quotas' && state === 'waiting').length >= 2)
  for (let index = 0; index < 5; index++) {
    await sql`insert into uploads (id, filename, media_type, size, sha256, description) values (gen_random_uuid(), '', '', 0, '', '')`
  }
  t.notOk(steps.some(({ migration, state }) => migration === '0018-quotas' && state === 'ended'))
  release.resolve()
  await Promise.all([long, migrated])
  t.equal((await sql`select 1 from migrations where name = '0018-quotas'`).length, 1)
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
  const indexes = userListIndexes(schema)
  await t.rejects(buildIndexes(db, schema, indexes, () => {}, 0), {
    message: /^usher: the build of an index did not get a lock .* End that transaction/,
  })
  const steps: MigrationStep[] = []
  // The invalid index that the first build has left is dropped first, which waits, too.
  const migrated = migrate(db, schema, { report: (step) => steps.push(step) })
  await until('it waits', () => steps.some(({ migration, state, index }) =>
    migration === '0017-user-lists' && state === 'waiting' && index !== undefined))
  release.resolve()
  await Promise.all([long, migrated])
  t.same(await indexesOf(sql, schema), INDEXES)
  // The other indexes may wait for transactions of other tests.
  const repeated = steps.filter(({ state, index }, at) =>
    state === 'waiting' && steps[at - 1]?.state === 'waiting' && steps[at - 1]!.index === index)
  t.same(repeated, [], 'it says so once')
})

t.test('14.3 migrations only add, and build no index that blocks writers of a table that exists', async (t) => {
  t.same(Object.keys(migrations), Object.keys(migrations).toSorted(), 'they are in order')
  t.same(
    Object.keys(migrations).map((name) => Number.parseInt(name)),
    Object.keys(migrations).map((_, index) => index + 1),
    'and none is missing'
  )
  const { db } = await openConnection(t)
  // Those before were released with other rules.
  const later = Object.entries(migrations).filter(([name]) => name > '0015')
  for (const [name, migration] of later) {
    if (typeof migration !== 'function') continue
    const statements: string[] = []
    const recording = recorder(db, statements)
    await migration(recording, 'usher')
    const created = statements.flatMap((text) => /^\s*create table (\S+)/i.exec(text)?.[1] ?? [])
    for (const text of statements) {
      const isSafe = name.includes('!') ||
        !/^\s*alter table \S+ (drop|rename)|^\s*drop (table|column|view|function|trigger)|^\s*truncate/i.test(text)
      t.ok(isSafe, `${name} removes nothing that the previous release uses: ${text.slice(0, 80)}`)
      const table = /^\s*create (?:unique )?index .*? on (\S+)/i.exec(text)?.[1]
      t.ok(
        table === undefined || created.includes(table),
        `${name} builds indexes with { indexes }, not: ${text.slice(0, 80)}`
      )
      t.notMatch(text, /add column (?!.*default).* not null|set not null|alter column \S+ (set data )?type/i)
    }
  }
})

// Returns a database that records statements instead of running them.
function recorder (db: Parameters<typeof migrate>[0], statements: string[]): Parameters<typeof migrate>[0] {
  const executor = db.getExecutor()
  const recording = new Proxy(executor, {
    get (target, name) {
      if (name === 'executeQuery') {
        return async ({ sql }: { sql: string }) => { statements.push(sql); return { rows: [] } }
      }
      if (name.toString().startsWith('with')) return () => recording
      const value = Reflect.get(target, name)
      return typeof value === 'function' ? value.bind(target) : value
    },
  }) as typeof executor
  const props = { executor: recording, config: {}, dialect: {}, driver: {} }
  return new (db.constructor as new (props: unknown) => typeof db)(props)
}
