import { randomUUID } from 'node:crypto'
import postgres from 'postgres'
import t, { type Test } from 'tap'
import { sql } from 'kysely'
import { migrate, runMigrations } from '../../db/migrations/index.ts'
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

/** Creates a migrated schema for a test. */
async function createSchema (t: Test): Promise<string> {
  const { db, close } = await openConnection(t)
  const schema = uniqueSchema(t.name)
  await migrate(db, schema)
  await close()
  return schema
}

t.test('8 if several nodes start at the same time, each migration runs once, and all nodes work', async (t) => {
  const schema = uniqueSchema(t.name)
  const database = await testDatabaseUrl()
  const nodes = Array.from({ length: 3 }, () => createUsher(t, { schema }))
  const others =
    Array.from({ length: 5 }, async () => migrate((await openConnection(t, { database, schema })).db, schema))
  const [ushers] = await Promise.all([Promise.all(nodes), Promise.all(others)])
  t.match((await migrationsOf(schema)).slice(0, 4), ALL)
  t.equal(new Set(await migrationsOf(schema)).size, (await migrationsOf(schema)).length)
  const { id } = await ushers[0]!.createUser({ name: 'Everywhere' })
  for (const { inject } of ushers) t.equal((await inject('GET', `/api/users/${id}`)).json().name, 'Everywhere')
})

t.test('8 an older database is migrated at start and keeps its data', async (t) => {
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
  t.match((await migrationsOf(schema)).slice(0, 4), ALL)
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

t.test('8 a new schema is created with few statements, and equals one that was migrated step by step', async (t) => {
  const { db, proxy, query } = await openConnection(t)
  const [together, stepwise] = [uniqueSchema(t.name), uniqueSchema(t.name)]
  await query('select 1')
  const before = proxy.requests
  await migrate(db, together)
  t.ok(proxy.requests - before < 50, `${proxy.requests - before} round trips`)

  await db.transaction().execute(async (trx) => runMigrations(trx, stepwise, { only: new Set(['0001-users']) }))
  await migrate(db, stepwise)
  const describe = async (schema: string) => {
    const own = (column: string) => `${column} = '${schema}'::regnamespace`
    const rows = await query<{ described: string }>(`
      select described from (
        select format('column %s %s %s %s %s', relname, attname, format_type(atttypid, atttypmod), attnotnull,
            pg_get_expr(adbin, adrelid)) as described
          from pg_class join pg_attribute on attrelid = pg_class.oid
            left join pg_attrdef on adrelid = attrelid and adnum = attnum
          where ${own('relnamespace')} and attnum > 0 and relkind in ('r', 'v', 'p') and not attisdropped
        union all select format('index %s', pg_get_indexdef(indexrelid)) from pg_index
          join pg_class on pg_class.oid = indrelid where ${own('relnamespace')}
        union all select format('constraint %s %s', conname, pg_get_constraintdef(oid)) from pg_constraint
          where ${own('connamespace')}
        union all select format('trigger %s', pg_get_triggerdef(pg_trigger.oid)) from pg_trigger
          join pg_class on pg_class.oid = tgrelid where ${own('relnamespace')} and not tgisinternal
        union all select format('function %s', pg_get_functiondef(oid)) from pg_proc
          where ${own('pronamespace')}
        union all select format('%s %s %s %s', relname, relkind, relpersistence, reloptions) from pg_class
          where ${own('relnamespace')}
      ) as described order by described collate "C"`)
    return rows.map(({ described }) => described.replaceAll(schema, 'ours'))
  }
  // What nodes of the previous release use remains where they may serve.
  const ofPrevious = [
    'users_name', 'users_role_name', 'users_role_email', 'users_words', 'sign_ups_email', 'users_disabled',
    'users_service', 'users_verified',
  ]
  for (const index of ofPrevious) await query(`drop index "${stepwise}".${index}`)
  const described = await describe(together)
  t.ok(described.length > 100)
  t.strictSame(described, await describe(stepwise))
  t.strictSame(await migrationsOf(together), await migrationsOf(stepwise))
  for (const schema of [together, stepwise]) await query(`drop schema "${schema}" cascade`)
})
