import { sql } from 'kysely'
import t, { type Test } from 'tap'
import { openSession } from '../../../db/driver/session.ts'
import { LIMITS, requireSettings, SESSION_SETTINGS, UNTRACKED } from '../../../db/driver/session-settings.ts'
import { createUsher } from '../../helpers/app.ts'
import { openConnection } from '../../helpers/connection.ts'
import { createDatabase, uniqueSchema } from '../../helpers/database.ts'
import { nightly } from '../../helpers/nightly.ts'
import { createPooler } from '../../helpers/pooler.ts'
import { openSql } from '../../helpers/sql.ts'

const HOSTILE: Readonly<Record<string, string>> = {
  DateStyle: 'German',
  IntervalStyle: 'sql_standard',
  TimeZone: 'America/St_Johns',
  client_encoding: 'LATIN1',
  standard_conforming_strings: 'off',
  bytea_output: 'escape',
  array_nulls: 'off',
  extra_float_digits: '-10',
  transform_null_equals: 'on',
  quote_all_identifiers: 'on',
  gin_fuzzy_search_limit: '1',
  default_transaction_isolation: 'serializable',
  default_transaction_deferrable: 'on',
  lock_timeout: '1ms',
  idle_session_timeout: '50ms',
  statement_timeout: '1s',
  transaction_timeout: '2s',
  search_path: 'nowhere',
  check_function_bodies: 'off',
}

/** Creates a database whose sessions begin with these settings, and returns its URL. */
async function createHostile (t: Test, settings: Readonly<Record<string, string>>): Promise<string> {
  const databaseUrl = await createDatabase(t, { empty: true })
  const client = openSql(t, { options: { databaseUrl, schema: 'public' } }, 1)
  const name = new URL(databaseUrl).pathname.slice(1)
  for (const [setting, value] of Object.entries(settings)) {
    await client.unsafe(`alter database "${name}" set ${setting} = '${value}'`)
  }
  await client.end()
  return databaseUrl
}

nightly('8 the settings of a database or role do not change what is served', async (t) => {
  const databaseUrl = await createHostile(t, HOSTILE)
  const { inject, admin, createUser } = await createUsher(t, { databaseUrl, schema: uniqueSchema(t.name) })
  const { headers } = admin
  const before = Date.now()
  const ada = await createUser({ name: 'Ada \\ Lovelace' })
  const { createdAt, name } = (await inject('GET', `/api/users/${ada.id}`)).json()
  t.equal(name, 'Ada \\ Lovelace')
  t.ok(Math.abs(Date.parse(createdAt) - before) < 60_000, `created at ${createdAt}`)
  t.equal((await inject('POST', '/api/auth/refresh', { headers: { cookie: ada.cookie } })).statusCode, 200)
  t.match((await inject('GET', '/api/auth/sessions', { headers: ada.headers })).json(), [{ current: true }])

  await t.test('concurrent changes do not fail each other', async (t) => {
    const change = (index: number) => inject('PATCH', `/api/users/${ada.id}`, {
      headers: { ...headers, 'content-type': 'application/merge-patch+json' },
      payload: JSON.stringify({ name: `Ada ${index}` }),
    })
    const changed = await Promise.all(Array.from({ length: 30 }, (_, index) => change(index)))
    const created = await Promise.all(Array.from({ length: 30 }, () => inject('POST', '/api/users', {
      headers, payload: { name: 'Grace', email: `${crypto.randomUUID()}@example.com` },
    })))
    const statuses = [changed, created].map((responses) => new Set(responses.map(({ statusCode }) => statusCode)))
    t.strictSame(statuses, [new Set([200]), new Set([201])])
    t.equal((await inject('GET', '/api/users?limit=100', { headers })).json().length, 32)
    t.equal((await inject('GET', '/api/users?q=grace&limit=100', { headers })).json().length, 30, 'found by a search')
  })
})

t.test('8 every connection has the settings that Usher depends on, and the limits of the URL', async (t) => {
  const database = `${await createHostile(t, HOSTILE)}?lock_timeout=7s&application_name=mine`
  const { db, notifications } = await openConnection(t, { database })
  const names = [...Object.keys(HOSTILE), 'application_name']
  const statement = `select ${names.map((name) => `current_setting('${name}') as "${name}"`).join()}`
  const expected = {
    DateStyle: 'ISO, MDY',
    IntervalStyle: 'postgres',
    TimeZone: 'UTC',
    client_encoding: 'UTF8',
    standard_conforming_strings: 'on',
    bytea_output: 'hex',
    array_nulls: 'on',
    extra_float_digits: '1',
    transform_null_equals: 'off',
    quote_all_identifiers: 'off',
    gin_fuzzy_search_limit: '0',
    default_transaction_isolation: 'read committed',
    default_transaction_deferrable: 'off',
    lock_timeout: '7s',
    idle_session_timeout: '0',
    statement_timeout: '10s',
    transaction_timeout: '0',
    search_path: 'nowhere',
    check_function_bodies: 'off',
    application_name: 'mine',
  }
  t.strictSame((await sql.raw(statement).execute(db)).rows, [expected], 'of a statement')
  await db.transaction().execute(async (trx) => {
    t.strictSame((await sql.raw(statement).execute(trx)).rows, [expected], 'of a transaction')
  })
  const session = openSession(db)
  t.teardown(() => session.destroy())
  t.strictSame([...await session.run(statement)], [{ ...expected, statement_timeout: '0' }], 'of a session')
  await notifications.start()
})

t.test('8 a pooler that refuses startup parameters is used without them', async (t) => {
  const { url } = await createPooler(t, await createHostile(t, { DateStyle: 'German', TimeZone: 'Asia/Tokyo' }), {
    ignores: ['statement_timeout', 'idle_in_transaction_session_timeout'],
  })
  const { db } = await openConnection(t, { database: url })
  const read = async () => (await sql`select current_setting('DateStyle') as style, now() as time`.execute(db)).rows[0]
  const expected = { style: 'ISO, MDY', time: Date }
  t.match(await Promise.all([read(), read()]), [expected, expected])
  await db.transaction().execute(async (trx) => {
    const { rows } = await sql`select current_setting('DateStyle') as style`.execute(trx)
    t.match(rows, [{ style: 'ISO, MDY' }])
  })
})

nightly('8 a start fails with a sentence where neither Usher nor the pooler can change a setting', async (t) => {
  const hostile = await createHostile(t, { default_transaction_isolation: 'repeatable read', bytea_output: 'escape' })
  const ignores = ['statement_timeout', 'idle_in_transaction_session_timeout']
  const refusing = await createPooler(t, hostile, { ignores })
  const untracked = [...Object.keys(UNTRACKED), ...Object.keys(LIMITS)].map((name) => name.toLowerCase())
  const silent = await createPooler(t, hostile, { ignores: [...ignores, ...untracked] })
  for (const { url } of [refusing, silent]) {
    await t.rejects(createUsher(t, { databaseUrl: url, schema: uniqueSchema(t.name) }), {
      message: new RegExp('^usher: .*bytea_output = \'escape\', default_transaction_isolation = \'repeatable read\', ' +
        '.*Run alter role "usher" in database "t_[a-z0-9_]+" set bytea_output = \'hex\'; '),
    })
  }
})

t.test('8 a database without triggers or with another encoding than UTF8 is refused', async (t) => {
  const read = async () => {
    const { db } = await openConnection(t)
    const query = sql<{ settings: Record<string, string> }>`select ${sql.raw(SESSION_SETTINGS)} as settings`
    return (await query.execute(db)).rows[0]!.settings
  }
  const settings = await read()
  requireSettings(settings)
  const replica = { ...settings, session_replication_role: 'replica' }
  t.throws(() => requireSettings(replica), { message: /set session_replication_role = 'origin'/ })
  t.throws(() => requireSettings({ ...settings, server_encoding: 'LATIN1' }), {
    message: /^usher: the database "\w+" has the encoding LATIN1, .* encoding 'UTF8' template template0/,
  })
})
