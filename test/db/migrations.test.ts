import { randomUUID } from 'node:crypto'
import postgres from 'postgres'
import t, { type Test } from 'tap'
import { sql } from 'kysely'
import { migrate } from '../../db/migrations.ts'
import { createUsher } from '../helpers/app.ts'
import { openConnection } from '../helpers/connection.ts'
import { testDatabaseUrl, uniqueSchema } from '../helpers/database.ts'

const ALL = ['0001-users', '0002-sessions', '0003-posts', '0004-uploads']

async function migrationsOf (schema: string): Promise<string[]> {
  const direct = postgres(await testDatabaseUrl(), { max: 1 })
  try {
    return (await direct`select name from ${direct(schema)}.migrations order by name`).map(({ name }) => name)
  } finally {
    await direct.end()
  }
}

/** A schema of its own for a test, as a node that started has left it. */
async function createSchema (t: Test): Promise<string> {
  const { db, close } = await openConnection(t)
  const schema = uniqueSchema(t.name)
  await migrate(db, schema)
  await close()
  return schema
}

t.test('8 migrations run once however many nodes start together, and all of them serve', async (t) => {
  const schema = uniqueSchema(t.name)
  const database = await testDatabaseUrl()
  const nodes = Array.from({ length: 3 }, () => createUsher(t, { schema }))
  const others = Array.from({ length: 5 }, async () => migrate((await openConnection(t, { database, schema })).db, schema))
  const [ushers] = await Promise.all([Promise.all(nodes), Promise.all(others)])
  t.match((await migrationsOf(schema)).slice(0, 4), ALL)
  t.equal(new Set(await migrationsOf(schema)).size, (await migrationsOf(schema)).length)
  const { id } = await ushers[0]!.createUser({ name: 'Everywhere' })
  for (const { inject } of ushers) t.equal((await inject('GET', `/api/users/${id}`)).json().name, 'Everywhere')
})

t.test('8 a database from before migrates on start, and keeps its data', async (t) => {
  const schema = await createSchema(t)
  const id = randomUUID()
  const direct = postgres(await testDatabaseUrl(), { max: 1, onnotice: () => {} })
  await direct`insert into ${direct(schema)}.users (id, name, email, role) values (${id}, 'From before', 'before@example.com', 'user')`
  await direct`drop table ${direct(schema)}.uploads`
  await direct`delete from ${direct(schema)}.migrations where name = '0004-uploads'`
  await direct.end()

  const { inject } = await createUsher(t, { schema })
  t.equal((await inject('GET', `/api/users/${id}`)).json().name, 'From before')
  t.ok((await migrationsOf(schema)).includes('0004-uploads'))
})

t.test('8 a node starts beside a newer one, whose migrations it does not know', async (t) => {
  const schema = await createSchema(t)
  const direct = postgres(await testDatabaseUrl(), { max: 1 })
  await direct`insert into ${direct(schema)}.migrations values ('9999-future', 'later')`
  await direct.end()
  const { inject } = await createUsher(t, { schema })
  t.equal((await inject('GET', '/api/users')).statusCode, 200)
})

t.test('8 a migration that fails leaves nothing behind, and the next start begins anew', async (t) => {
  const { db } = await openConnection(t)
  const schema = uniqueSchema(t.name)
  await sql`create schema ${sql.id(schema)}`.execute(db)
  await sql`create table ${sql.id(schema, 'posts')} ()`.execute(db)
  await t.rejects(migrate(db, schema), { code: '42P07' }, 'a table of that name is there')
  const { rows } = await sql`select tablename from pg_tables where schemaname = ${schema}`.execute(db)
  t.strictSame([...rows], [{ tablename: 'posts' }])
  await sql`drop table ${sql.id(schema, 'posts')}`.execute(db)
  await migrate(db, schema)
  t.match((await migrationsOf(schema)).slice(0, 4), ALL)
})

t.test('8 a role that may create nothing starts on a database that is up to date', async (t) => {
  const schema = await createSchema(t)
  const database = postgres(await testDatabaseUrl(), { max: 1 })
  t.teardown(() => database.end())
  // What the rights of a role would do, the session's setting does for whoever cannot make roles.
  const { db } = await openConnection(t, { database, schema })
  await database`set default_transaction_read_only = on`
  await t.resolves(migrate(db, schema))
})
