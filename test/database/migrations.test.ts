import { randomUUID } from 'node:crypto'
import postgres from 'postgres'
import t, { type Test } from 'tap'
import { sql } from 'kysely'
import { listPending, listRanMigrations, migrate, migrations } from '../../db/migrations/index.ts'
import { createUsher } from '../helpers/app.ts'
import { openConnection } from '../helpers/connection.ts'
import { testDatabaseUrl, uniqueSchema } from '../helpers/database.ts'
import { nextMigrations } from '../helpers/next-migrations.ts'
import { nightly } from '../helpers/nightly.ts'

const ALL = Object.keys(migrations)

async function migrationsOf (schema: string): Promise<string[]> {
  const direct = postgres(await testDatabaseUrl(), { max: 1 })
  try {
    return (await direct`select name from ${direct(schema)}.migrations order by name`).map(({ name }) => name)
  } finally {
    await direct.end()
  }
}

/** Creates a migrated schema for a test. */
async function createSchema (t: Test): Promise<string> {
  const { db, close } = await openConnection(t)
  const schema = uniqueSchema(t.name)
  await migrate(db, schema)
  await close()
  return schema
}

nightly('8 if several nodes start at the same time, each migration runs once, and all nodes work', async (t) => {
  const schema = uniqueSchema(t.name)
  const database = await testDatabaseUrl()
  const nodes = Array.from({ length: 3 }, () => createUsher(t, { schema }))
  const others =
    Array.from({ length: 5 }, async () => migrate((await openConnection(t, { database, schema })).db, schema))
  const [ushers] = await Promise.all([Promise.all(nodes), Promise.all(others)])
  t.same(await migrationsOf(schema), ALL)
  const { id } = await ushers[0]!.createUser({ name: 'Everywhere' })
  for (const { inject } of ushers) t.equal((await inject('GET', `/api/users/${id}`)).json().name, 'Everywhere')
})

t.test('8 an older database is migrated and keeps its data', async (t) => {
  const schema = await createSchema(t)
  const { db } = await openConnection(t)
  const id = randomUUID()
  await sql`insert into ${sql.id(schema, 'users')} (id, name, email, role)
    values (${id}, 'From before', 'before@example.com', 'user')`.execute(db)
  await migrate(db, schema, { migrations: { ...migrations, ...nextMigrations } })
  t.same(await migrationsOf(schema), [...ALL, ...Object.keys(nextMigrations)])
  const { inject } = await createUsher(t, { schema })
  t.equal((await inject('GET', `/api/users/${id}`)).json().name, 'From before')
})

t.test('14.3 a schema of a checkout from before release 0.1.0 stops starts and commands with a sentence, and nothing changes', async (t) => {
  const { db, query } = await openConnection(t)
  const schema = uniqueSchema(t.name)
  await query(`create schema ${schema}; create table ${schema}.migrations (name text primary key, timestamp text not null);
    insert into ${schema}.migrations values ('0001-users', 'long ago'), ('0002-sessions', 'long ago');
    create table ${schema}.users (id uuid primary key, name text)`)
  const sentence = {
    message: new RegExp(`^usher: the PostgreSQL schema "${schema}" has the tables of a checkout of Usher from before ` +
      'release 0\\.1\\.0.* Choose another database, schema or data folder, and import the users'),
  }
  await t.rejects(migrate(db, schema), sentence)
  await t.rejects(createUsher(t, { schema }), sentence)
  await t.rejects(listPending(db, schema), sentence)
  await t.rejects(listRanMigrations(db, schema), sentence)
  t.same(await migrationsOf(schema), ['0001-users', '0002-sessions'])
  t.same(
    (await query<{ name: string }>(`select relname as name from pg_class where relnamespace = '${schema}'::regnamespace
      and relkind = 'r' order by 1`)).map(({ name }) => name),
    ['migrations', 'users']
  )
})

t.test('8 a node can start on a database that a newer version has migrated', async (t) => {
  const schema = await createSchema(t)
  const direct = postgres(await testDatabaseUrl(), { max: 1 })
  await direct`insert into ${direct(schema)}.migrations values ('9999-future', 'later')`
  await direct.end()
  const { inject } = await createUsher(t, { schema })
  t.equal((await inject('GET', '/api/users')).statusCode, 200)
})

t.test('8 a failed migration is rolled back, and the next start runs it again', async (t) => {
  const { db } = await openConnection(t)
  const schema = uniqueSchema(t.name)
  await sql`create schema ${sql.id(schema)}`.execute(db)
  await sql`create table ${sql.id(schema, 'posts')} ()`.execute(db)
  await t.rejects(migrate(db, schema), { code: '42P07' }, 'the table exists already')
  const { rows } = await sql`select tablename from pg_tables where schemaname = ${schema}`.execute(db)
  t.strictSame([...rows], [{ tablename: 'posts' }])
  await sql`drop table ${sql.id(schema, 'posts')}`.execute(db)
  await migrate(db, schema)
  t.same(await migrationsOf(schema), ALL)
})

t.test('8 a database role without the right to create tables can start on a database that is up to date', async (t) => {
  const schema = await createSchema(t)
  const database = postgres(await testDatabaseUrl(), { max: 1 })
  t.teardown(() => database.end())
  // The role of the tests may not be allowed to create roles. A read-only connection rejects changes in the same way.
  const { db } = await openConnection(t, { database, schema })
  await database`set default_transaction_read_only = on`
  await t.resolves(migrate(db, schema))
})

t.test('8 a new schema is created in a few round trips, with all migrations in one of them', async (t) => {
  const { db, proxy, query } = await openConnection(t)
  const schema = uniqueSchema(t.name)
  await query('select 1')
  const before = proxy.requests
  await migrate(db, schema, { migrations: { ...migrations, ...nextMigrations } })
  // Most of them open connections, and begin and end the transaction.
  t.ok(proxy.requests - before < 15, `${proxy.requests - before} round trips`)
  t.same(await migrationsOf(schema), [...ALL, ...Object.keys(nextMigrations)])
})
