import { randomUUID } from 'node:crypto'
import type { Sql } from 'postgres'
import t, { type Test } from 'tap'
import { Ajv } from 'ajv'
import { eventData, type EventData, type EventName, type UsherEvent } from '../../schema/outbox/events.ts'
import { createUsher, type TestUsher } from '../helpers/app.ts'
import { runCommand } from '../helpers/command.ts'
import { testDatabaseUrl } from '../helpers/database.ts'
import { createMailer } from '../helpers/mail.ts'
import { startWithEvents } from '../helpers/outbox-events.ts'
import { openSql } from '../helpers/sql.ts'
import { until } from '../helpers/until.ts'
import { fieldPart, filePart, post } from '../helpers/uploads.ts'

const HERE = '203.0.113.1'
const LOG: EventName[] = ['audit.created', 'audit.logins-failed']
type Entry = EventData<'audit.created'>

const byId = (a: Entry, b: Entry) => a.entryId < b.entryId ? -1 : 1
const entriesIn = (events: readonly UsherEvent[]): Entry[] =>
  events.flatMap((event) => event.type === 'audit.created' ? [event.data] : []).sort(byId)

/** Returns the entries of the log that have events, as their events have them. */
const readLog = async (sql: Sql): Promise<Entry[]> => [...await sql<Entry[]>`
  select id as "entryId", action, actor_id as "actorId", user_id as "userId", session_id as "sessionId",
    key_id as "keyId", organization_id as "organizationId", address, user_agent as "userAgent"
  from audit where action <> 'login.failed' order by id`]

/** Causes entries by each statement that writes one along with a change. */
async function causeEntries (usher: TestUsher, confirm: () => Promise<string>) {
  const { inject, admin, createUser, login } = usher
  const user = await createUser({ name: 'Ada' })
  const { headers } = user
  const path = `/api/users/${user.id}`
  await inject('PATCH', path, { headers: admin.headers, payload: { name: 'Ada L.' } })
  await inject('PATCH', path, { headers: admin.headers, payload: { email: `${randomUUID()}@example.com` } })
  await inject('PATCH', path, { headers, payload: { email: user.email }, remoteAddress: HERE })
  await inject('PUT', '/api/auth/password', {
    headers, payload: { currentPassword: user.password, password: 'violet engine notes' },
  })
  const again = await login({ email: user.email, password: 'violet engine notes' })
  const replaced = { email: user.email, password: 'violet engine notes' }
  await inject('POST', '/api/auth/login', { headers: { cookie: again.cookie }, payload: replaced })
  const other = await login(replaced)
  await inject('POST', '/api/auth/logout', { headers: other.headers })
  const stored = await post(usher, [
    fieldPart('visibility', 'private'), filePart('notes'), fieldPart('description', 'Something'),
  ], { headers })
  const upload = `/api/uploads/${stored.json().id}`
  await inject('PATCH', upload, { headers: admin.headers, payload: { filename: 'b.txt' } })
  const link = await inject('POST', `${upload}/links`, { headers, payload: { seconds: 600 } })
  await inject('DELETE', `${upload}/links/${link.json().id}`, { headers })
  await inject('DELETE', upload, { headers: admin.headers })
  await inject('POST', '/api/auth/sign-up', {
    payload: { name: 'Grace', email: 'grace@example.com', password: 'nanosecond wire' },
  })
  await inject('POST', '/api/auth/sign-up/confirm', { payload: { token: await confirm(), password: 'nanosecond wire' } })
  const left = { name: 'Eve', email: `${randomUUID()}@example.com` }
  const { id } = (await inject('POST', '/api/users', { headers: admin.headers, payload: left })).json()
  await inject('DELETE', `/api/users/${id}`, { headers: admin.headers })
}

const CAUSED = [
  'user.create', 'login', 'user.email-change', 'password.change', 'session.end', 'logout', 'upload.update',
  'upload-link.create', 'upload-link.revoke', 'upload.delete', 'user.sign-up', 'user.import', 'user.delete',
]

for (const others of [[], ['user.created', 'user.updated', 'session.ended']] satisfies EventName[][]) {
  const title = others.length > 0 ? 'also beside other events' : 'for a consumer of nothing else'
  t.test(`23.4 every entry of the account log is one event with what the entry has, ${title}`, async (t) => {
    const inbox = createMailer()
    const { usher, events } = await startWithEvents(
      t, { mailer: inbox.mailer, publicUrl: 'https://api.example.com', signUp: true }, [...LOG, ...others]
    )
    const sql = openSql(t, usher)
    await causeEntries(usher, () => inbox.token('grace@example.com'))
    const folder = t.testdir({ 'users.ndjson': JSON.stringify({ name: 'Bob', email: 'bob@example.com' }) })
    const { stderr, code } = await runCommand(
      ['users', 'import', 'users.ndjson', '--schema', usher.options.schema!],
      { DATABASE_URL: await testDatabaseUrl() }, folder
    )
    t.equal(code, 0, stderr)
    await until('an empty outbox', async () =>
      (await sql`select 1 from outbox where consumer <> 'mail'`).length === 0)
    const log = await readLog(sql)
    t.strictSame(CAUSED.filter((action) => !log.some((entry) => entry.action === action)), [])
    t.strictSame(entriesIn(events), log)
    const validate = new Ajv().compile(eventData['audit.created'])
    t.ok(entriesIn(events).every((entry) => validate(entry)))
    t.ok(log.some(({ address, action }) => address === HERE && action === 'user.email-change'))
    for (const { type, subject, data } of events) {
      if (type === 'audit.created') t.equal(subject, data.entryId, 'one that fails delays no other')
    }
  })
}

/** Another node stores the events of the minutes that have ended when it starts. */
async function startAnother (t: Test, { options }: TestUsher): Promise<void> {
  await createUsher(t, options)
}

t.test('23.4 failed logins are counted by minute and network, on all nodes together', async (t) => {
  const { usher, events } = await startWithEvents(t, {}, LOG)
  const sql = openSql(t, usher)
  const second = await createUsher(t, usher.options)
  const user = await usher.createUser()
  async function fail ({ inject }: TestUsher, remoteAddress: string, email = `${randomUUID()}@example.com`) {
    const payload = { email, password: 'a wrong one' }
    t.equal((await inject('POST', '/api/auth/login', { payload, remoteAddress })).statusCode, 401)
  }
  await fail(usher, HERE)
  await fail(second, HERE, user.email)
  await Promise.all([fail(usher, '2001:db8::1'), fail(second, '2001:db8::2'), fail(usher, '2001:db8:0:1::1')])
  // As if their minute had been over for long.
  await sql`update failed_logins set minute = minute - interval '3 minutes'`
  await sql`insert into failed_logins (minute, network, count) values (now() + interval '1 hour', '192.0.2.1', 1)`
  await startAnother(t, usher)
  const counted = () => events.flatMap((event) => event.type === 'audit.logins-failed' ? [event] : [])
  const from = (network: string | null) => counted().filter(({ data }) => data.network === network)
    .reduce((sum, { data }) => sum + data.count, 0)
  await until('all of them', () => from(HERE) + from('2001:db8:0:0::/64') + from('2001:db8:0:1::/64') >= 5)
  t.same([from(HERE), from('2001:db8:0:0::/64'), from('2001:db8:0:1::/64')], [2, 2, 1])
  const validate = new Ajv().addFormat('date-time', true).compile(eventData['audit.logins-failed'])
  t.ok(counted().every(({ data }) => validate(data) && data.networks === 1 && data.minute.endsWith(':00.000Z')))
  const pairs = counted().map(({ data: { minute, network } }) => `${minute} ${network}`)
  t.equal(new Set(pairs).size, pairs.length, 'one event for a minute and a network')
  t.equal(new Set(counted().map(({ subject }) => subject)).size, counted().length)
  t.same([...await sql`select network from failed_logins`], [{ network: '192.0.2.1' }], 'a minute that is not over')
  t.notOk(entriesIn(events).some(({ action }) => action === 'login.failed'))
})

t.test('23.4 of a minute, the hundred networks with most failed logins have events, and all others one', async (t) => {
  const { usher, events } = await startWithEvents(t, {}, LOG)
  const sql = openSql(t, usher)
  await sql`insert into failed_logins (minute, network, count)
    select date_trunc('minute', now()) - make_interval(mins => minute),
      '10.0.' || number / 250 || '.' || number % 250, number
    from generate_series(1, 2000) as number, (values (3), (4)) as minutes(minute)`
  await Promise.all([startAnother(t, usher), startAnother(t, usher)])
  const counted = () => events.flatMap((event) => event.type === 'audit.logins-failed' ? [event.data] : [])
  await until('the events', async () => counted().length >= 202)
  t.equal(counted().length, 202)
  t.same(counted().filter(({ network }) => network === null).map(({ count, networks }) => ({ count, networks })),
    [1, 2].map(() => ({ count: 1900 * 1901 / 2, networks: 1900 })))
  t.equal(Math.min(...counted().flatMap(({ network, count }) => network === null ? [] : [count])), 1901)
  t.equal(counted().reduce((sum, { count }) => sum + count, 0), 2 * 2000 * 2001 / 2, 'none is lost')
})

t.test('23.4 without a consumer of them, failed logins are not counted', async (t) => {
  const { usher } = await startWithEvents(t, {}, ['audit.created'])
  await usher.inject('POST', '/api/auth/login', { payload: { email: 'nobody@example.com', password: 'a wrong one' } })
  const sql = openSql(t, usher)
  t.same([...await sql`select action from audit where action = 'login.failed'`], [{ action: 'login.failed' }])
  t.same([...await sql`select 1 from failed_logins`], [])
})

t.test('23.4 what waits when a user is deleted loses the addresses that the log loses', async (t) => {
  const usher = await createUsher(t)
  const { app, admin, inject, createUser } = usher
  const sql = openSql(t, usher)
  // The statement of such a change is built once, and must not remember that nobody wanted to know.
  const before = await createUser()
  await inject('PATCH', `/api/users/${before.id}`, {
    headers: before.headers, payload: { email: `${randomUUID()}@example.com` },
  })
  app.usher.on('audit.created', () => { throw new Error('not now') }, { name: 'dead' })
  const waiting = () => sql<{ action: string, actorId: string | null, address: string, userAgent: string }[]>`
    select data ->> 'action' as action, data ->> 'actorId' as "actorId", data ->> 'address' as address,
      data ->> 'userAgent' as "userAgent" from outbox where type = 'audit.created' and data ->> 'userId' = ${user.id}
    order by position`
  await until('the consumer is known', async () =>
    (await sql`select 1 from event_consumers where type = 'audit.created'`).length > 0)
  const user = await createUser()
  await inject('PATCH', `/api/users/${user.id}`, {
    headers: user.headers, payload: { email: `${randomUUID()}@example.com` }, remoteAddress: HERE,
  })
  t.match(
    await waiting(),
    [{ action: 'user.create' }, { action: 'login' }, { action: 'user.email-change', address: HERE }]
  )
  await sql`insert into failed_deliveries (id, consumer, type, subject, data, created_at, attempts, error)
    select id, consumer, type, subject, data, created_at, 1, 'not now' from outbox
    where type = 'audit.created' and data ->> 'action' = 'login' and data ->> 'userId' = ${user.id}`
  await inject('DELETE', `/api/users/${user.id}`, { headers: user.headers, remoteAddress: HERE })
  await until('the purge', async () => (await sql`select 1 from deleted_users`).length === 0)
  t.same((await waiting()).map(({ action, actorId, address, userAgent }) => [action, actorId, address, userAgent]), [
    ['user.create', admin.id, '127.0.0.1', 'lightMyRequest'],
    ['login', user.id, '', ''],
    ['user.email-change', user.id, '', ''],
    ['user.delete', user.id, '', ''],
  ])
  t.same([...await sql`select data ->> 'address' as address, data ->> 'userAgent' as agent from failed_deliveries`],
    [{ address: '', agent: '' }])
})
