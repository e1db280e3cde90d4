import Fastify from 'fastify'
import postgres, { type Sql } from 'postgres'
import t, { type Test } from 'tap'
import usher, { migrate, type UsherOptions } from '../../../app.ts'
import { migrate as migrateTo, migrations } from '../../../db/migrations/index.ts'
import { openConnection } from '../../helpers/connection.ts'
import { createDatabase, testDatabaseUrl, uniqueSchema } from '../../helpers/database.ts'
import { mountOptions } from '../../helpers/host.ts'
import { nightly } from '../../helpers/nightly.ts'

/** Returns the error with which Usher does not start. `migrate` must fail with the same one. */
async function failureOf (t: Test, given: { databaseUrl: string, schema: string }): Promise<Error & { code?: string }> {
  const app = Fastify({ pluginTimeout: 0 })
  const options = { ...await mountOptions(t), ...given }
  const error = await app.register(usher, options).then(() => { throw new Error('it has started') }, (error) => error)
  await app.close()
  await t.rejects(migrate(given), { message: error.message, code: error.code })
  return error
}

function connect (t: Test, url: string): Sql {
  const sql = postgres(url, { max: 1, onnotice: () => {} })
  t.teardown(() => sql.end())
  return sql
}

nightly('12.11 a schema with tables of another program: the start fails, and names the schema and the remedy', async (t) => {
  const databaseUrl = await testDatabaseUrl()
  const sql = connect(t, databaseUrl)
  const tables: [table: string, detail: string][] = [
    ['users (id integer)', 'relation "users" already exists'],
    ['migrations (id serial, name text)', 'the table migrations'],
    ["migrations as select 'CreateBooks' as name, 'now' as timestamp", 'the table migrations'],
  ]
  for (const [table, detail] of tables) {
    const schema = uniqueSchema(t.name)
    await sql.unsafe(`create schema ${schema}; create table ${schema}.${table}`)
    const { message } = await failureOf(t, { databaseUrl, schema })
    t.equal(message, `usher: the PostgreSQL schema "${schema}" contains something that is not Usher's (${detail}). Choose another schema with the option schema, or remove it`)
    const found = await sql`select tablename from pg_tables where schemaname = ${schema}`
    t.equal(found.length, 1, 'nothing has changed')
  }
})

t.test('12.11 a database user without privileges: the start fails, and says which to grant', async (t) => {
  const databaseUrl = await createDatabase(t, { empty: true })
  const database = new URL(databaseUrl).pathname.slice(1)
  const sql = connect(t, databaseUrl)
  const schema = uniqueSchema(t.name)
  const refused = async (detail: RegExp) => {
    const { message, code } = await failureOf(t, { databaseUrl, schema })
    t.match(message, `usher: the database user lacks a privilege for the schema "${schema}" (permission denied for `)
    t.match(message, detail)
    t.match(message, `create schema "${schema}" authorization <user>`)
    t.equal(code, '42501')
  }
  // The role of the tests may not create roles, but an owner can take privileges away from itself.
  await sql.unsafe(`revoke create on database ${database} from current_user, public`)
  await refused(/permission denied for database/)
  await sql.unsafe(
    `grant create on database ${database} to current_user; create schema ${schema}; revoke all on schema ${schema} from current_user`
  )
  await refused(/permission denied for schema/)
  await sql.unsafe(`grant all on schema ${schema} to current_user`)
  await migrate({ databaseUrl, schema })
  await sql.unsafe(`revoke usage on schema ${schema} from current_user`)
  await refused(/permission denied for schema/)
  await sql.unsafe(`grant usage on schema ${schema} to current_user; revoke all on ${schema}.users from current_user`)
  const app = Fastify({ pluginTimeout: 0 })
  t.teardown(() => app.close())
  const options = { ...await mountOptions(t), databaseUrl, schema }
  const start = async () => {
    await app.register(usher, options)
    await app.ready()
  }
  await t.rejects(start, { message: /lacks a privilege .*permission denied for table users/, code: '42501' })
})

t.test('12.11 a wrong password, an unknown database and a server that is not there: the start fails without the password', async (t) => {
  const url = new URL(await testDatabaseUrl())
  const schema = uniqueSchema(t.name)
  const at = (changes: Partial<URL>) => Object.assign(new URL(url), { password: 'correct horse', ...changes }).href
  const cases: [url: string, message: RegExp, code: string | RegExp][] = [
    [
      at({ username: 'nobody_here' }),
      /^usher: PostgreSQL rejects the login \(28...: .*nobody_here.*Check the user and the password/,
      /^28/,
    ],
    [
      at({ username: url.username, password: url.password, pathname: '/nowhere' }),
      /^usher: the database cannot be used \(database "nowhere" does not exist\)/,
      '3D000',
    ],
    [at({ port: '1' }), /^usher: the database cannot be reached \(ECONNREFUSED\)$/, 'DATABASE_UNAVAILABLE'],
  ]
  for (const [databaseUrl, message, code] of cases) {
    const error = await failureOf(t, { databaseUrl, schema })
    t.match(error, { message, code })
    t.notMatch(error.message, 'correct horse')
  }
})

nightly('12.11 a database that a newer version has changed: a warning, or a failure if this version cannot use it', async (t) => {
  const options = { ...await mountOptions(t), admin: { email: 'admin@example.com', password: 'horse battery staple' } }
  const { databaseUrl, schema } = options as { databaseUrl: string, schema: string }
  await migrate({ databaseUrl, schema })
  await migrate({ databaseUrl, schema })
  const sql = connect(t, databaseUrl)
  await sql`insert into ${sql(schema)}.migrations values ('9998-future', 'later')`
  const lines: { level: number, msg: string, migrations?: string[] }[] = []
  const start = async (admin: { email: string, password: string }, more: UsherOptions = {}) => {
    const app = Fastify({
      pluginTimeout: 0,
      logger: { level: 'warn', stream: { write: (line: string) => { lines.push(JSON.parse(line)) } } },
    })
    t.teardown(() => app.close())
    await app.register(usher, { ...options, ...more, admin })
    await app.ready()
  }
  await start(options.admin)
  t.match(
    lines.splice(0),
    [{ level: 40, msg: 'a newer version of Usher has migrated the database', migrations: ['9998-future'] }]
  )
  await start(options.admin)
  t.match(
    lines.splice(0).map(({ msg }) => msg), ['a newer version of Usher has migrated the database'], 'the admin exists'
  )
  await start({ ...options.admin, email: 'other@example.com' })
  t.match(
    lines.splice(0).map(({ msg }) => msg),
    ['a newer version of Usher has migrated the database', 'the option admin is ignored, because another admin exists']
  )
  let ignored = 0
  await start({ ...options.admin, email: 'other@example.com' }, { onAdminIgnored: () => { ignored++ } })
  t.equal(ignored, 1)
  t.match(
    lines.map(({ msg }) => msg),
    ['a newer version of Usher has migrated the database'],
    'onAdminIgnored is called instead of a warning'
  )
  await sql`insert into ${sql(schema)}.migrations values ('9999-drop!', 'later')`
  const { message } = await failureOf(t, { databaseUrl, schema })
  t.match(message, `a newer version of Usher has changed the schema "${schema}" so that this version cannot use it (9999-drop!): the database is at 9999-drop!, and this version knows the migrations up to ${Object.keys(migrations).at(-1)}. Start the newer version`)
  await sql`update ${sql(schema)}.migrations set name = ${`9999-drop!${Object.keys(migrations).at(-1)}`} where name = '9999-drop!'`
  await start(options.admin)
  await sql`update ${sql(schema)}.migrations set name = '9999-drop!9998-future' where name like '9999-drop!%'`
  t.match(
    (await failureOf(t, { databaseUrl, schema })).message,
    '(9999-drop!9998-future)',
    'it removes what only releases use that do not know 9998'
  )
})

t.test('12.11 a PostgreSQL that is too old, and wrong options of migrate', async (t) => {
  const { db } = await openConnection(t)
  const schema = uniqueSchema(t.name)
  await t.rejects(migrateTo(db, schema, { oldest: 99 }), {
    message: /^usher: PostgreSQL 99 or later is required, but this server has version \d+/,
  })
  await t.rejects(migrate({ databaseUrl: 'postgres://localhost/x', schema: 'x', prefix: '/x' } as never), {
    message: 'usher: migrate has no option prefix, only databaseUrl, sql, schema, userFields and organizations',
  })
  await t.rejects(migrate({}), { message: 'usher: databaseUrl or sql is required' })
  await t.rejects(
    migrate({ databaseUrl: 'postgres://localhost/x', schema: 'Not a name' }), { message: /^usher: schema / }
  )
})
