import { connect } from 'node:net'
import { setTimeout as delay } from 'node:timers/promises'
import postgres from 'postgres'
import t from 'tap'
import { HEARTBEAT } from '../../../db/driver/notifications.ts'
import { openConnection } from '../../helpers/connection.ts'
import { testDatabaseUrl } from '../../helpers/database.ts'
import { until } from '../../helpers/until.ts'

const unavailable = { code: 'DATABASE_UNAVAILABLE' }

t.test('4 every message of a channel arrives, also those that are sent while the connection is made anew', async (t) => {
  const { notifications, query, proxy, breaker: gate } = await openConnection(t)
  const heard: string[] = []
  let connects = 0
  notifications.listen('n_one', (payload) => heard.push(payload), async () => { connects++ })
  notifications.listen('n_two', (payload) => heard.push(`two ${payload}`))
  t.notOk(notifications.connected)
  await notifications.start()
  await until('connected', () => notifications.connected)
  t.equal(connects, 1)

  await query("select pg_notify('n_one', 'a'), pg_notify('n_two', 'b'), pg_notify('n_three', 'c')")
  await until('heard', () => heard.length === 2)
  t.strictSame(heard, ['a', 'two b'])

  proxy.cut()
  await until('lost', () => !notifications.connected)
  t.ok(gate.closed, 'one lost connection is no outage')
  await until('connected', () => notifications.connected)
  t.equal(connects, 2, 'asked for what was missed')
})

t.test('4 a node that has lost touch knows within 100 ms, long before the database counts as away', async (t) => {
  const { notifications, breaker: gate, query, proxy } = await openConnection(t)
  await notifications.start()
  await query('select 1')
  proxy.freeze()
  await until('lost touch', () => !notifications.connected)
  t.ok(gate.closed, 'no outage yet')
  proxy.thaw()
  await until('in touch', () => notifications.connected)
  t.ok(gate.closed)
})

t.test('1.10 the gate shuts within a second of a silent database, and waiting statements fail at once', async (t) => {
  const { notifications, breaker: gate, query, proxy, logged } = await openConnection(t)
  await notifications.start()
  await query('select 1')
  proxy.freeze()
  await t.rejects(query('select 1'), unavailable)
  t.notOk(gate.closed)
  await t.rejects(query('select 1'), unavailable)

  const dialed = proxy.dialed
  await delay(1000)
  t.ok(proxy.dialed - dialed <= 11, 'the database is not hammered')
  proxy.abandon()
  await until('open', () => gate.closed)
  t.strictSame(await query('select 1 as one'), [{ one: 1 }], 'on a connection that lives')
  t.strictSame(logged, ['The database is unavailable', 'The database is available again'], 'each change is logged once')
})

t.test('1.10 a proxy that accepts and hangs up is dialed ten times a second, not without end', async (t) => {
  const { notifications, breaker: gate, proxy } = await openConnection(t)
  await notifications.start()
  proxy.hangUp()
  await until('shut', () => !gate.closed)
  const dialed = proxy.dialed
  await delay(1000)
  t.ok(proxy.dialed - dialed <= 11)
  await proxy.listen()
  await until('open', () => gate.closed)
})

t.test('1.10 the listener cannot be had, but others get answers: no outage', async (t) => {
  const name = `alone ${process.pid}`
  const own = postgres(await testDatabaseUrl(), { max: 1, connection: { application_name: name } })
  t.teardown(() => own.end())
  const { notifications, breaker: gate, logged, query, proxy } = await openConnection(t, { database: own })
  await notifications.start()
  // The connections that are open serve on; whoever connects from now on gets no answer.
  await query('select 2')
  await own`select 2`
  const { options } = own
  const port = options.port[0]!
  options.port[0] = Number(new URL(proxy.url).port)
  proxy.freeze()
  const enough = new AbortController()
  const asked = (async () => { while (!enough.signal.aborted) await query('select 2') })()
  // The listening connection is the one whose last statement was a heartbeat, which may be yet to come.
  await until('terminated', async () => (await own`
    select pg_terminate_backend(pid) from pg_stat_activity where application_name = ${name} and query = ${HEARTBEAT}`).length > 0)
  await until('lost', () => !notifications.connected)
  await delay(700)
  t.ok(gate.closed)
  options.port[0] = port
  proxy.abandon()
  await until('connected', () => notifications.connected)
  enough.abort()
  await asked
  t.strictSame(logged, [])
})

t.test('4 what throws in a listener or on connecting is not lost: all begins anew', async (t) => {
  const { notifications, query } = await openConnection(t)
  let [connects, failures] = [0, 0]
  notifications.listen('n_throw', () => { throw new Error('cannot take it in') }, async () => {
    if (++connects === 2 && failures++ === 0) throw new Error('cannot ask')
  })
  await notifications.start()
  await query("select pg_notify('n_throw', '')")
  await until('lost touch', () => connects === 2)
  await until('asked again', () => connects === 3)
  await until('connected', () => notifications.connected)
})

t.test('1.10 the database freezes while the node asks for what it missed: no hang', async (t) => {
  const { notifications, query, proxy, breaker: gate } = await openConnection(t)
  let freeze = false
  notifications.listen('n_hook', () => {}, async () => {
    if (freeze) proxy.freeze()
    await query('select 1')
  })
  await notifications.start()
  freeze = true
  proxy.cut()
  await until('shut', () => !gate.closed)
  freeze = false
  proxy.abandon()
  await until('connected', () => notifications.connected)
})

t.test('1.10 no database at the start: rejects with the cause, and tries no further', async (t) => {
  const { notifications, proxy } = await openConnection(t)
  proxy.refuse()
  await t.rejects(notifications.start(), { code: 'ECONNREFUSED' })
  await notifications.close()
})

t.test('4 a start whose question fails rejects with that', async (t) => {
  const { notifications } = await openConnection(t)
  notifications.listen('n_fail', () => {}, async () => { throw new Error('cannot ask') })
  await t.rejects(notifications.start(), { message: 'cannot ask' })
})

t.test('8 closing ends the start, a question under way, a living connection, and a wait between two tries', async (t) => {
  const one = await openConnection(t)
  const starting = one.notifications.start()
  await one.notifications.close()
  await t.rejects(starting, { message: 'Closed' })

  const two = await openConnection(t)
  const asked = Promise.withResolvers<void>()
  const answered = Promise.withResolvers<void>()
  two.notifications.listen('n_close', () => {}, () => {
    asked.resolve()
    return answered.promise
  })
  const asking = two.notifications.start()
  await asked.promise
  await two.notifications.close()
  answered.resolve()
  await t.rejects(asking, { message: 'Closed' })
  t.notOk(two.notifications.connected)

  const three = await openConnection(t)
  await three.notifications.start()
  three.proxy.refuse()
  await until('shut', () => !three.breaker.closed)
  await three.close()
})

t.test('8 several hosts and the socket of a client are respected', async (t) => {
  const { hostname, port } = new URL(await testDatabaseUrl())
  const direct = await testDatabaseUrl()
  const several = await openConnection(t, { database: direct.replace(/@[^/]+/, (at) => `${at},127.0.0.1:1`) })
  await several.notifications.start()
  await until('connected', () => several.notifications.connected)

  let dialed = 0
  const own = postgres(direct, { max: 1, socket: () => { dialed++; return connect(Number(port), hostname) } } as never)
  t.teardown(() => own.end())
  const { notifications } = await openConnection(t, { database: own })
  await notifications.start()
  t.equal(dialed, 1)

  const tls = await openConnection(t, { database: `${direct}?sslmode=prefer` })
  await tls.notifications.start()
  t.ok(tls.notifications.connected, 'TLS is asked for, as the URL says')
})
