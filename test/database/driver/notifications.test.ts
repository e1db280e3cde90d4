import { connect } from 'node:net'
import { setTimeout as delay } from 'node:timers/promises'
import postgres from 'postgres'
import t from 'tap'
import { HEARTBEAT } from '../../../db/driver/notification-connection.ts'
import { openConnection } from '../../helpers/connection.ts'
import { testDatabaseUrl } from '../../helpers/database.ts'
import { until } from '../../helpers/until.ts'

const unavailable = { code: 'DATABASE_UNAVAILABLE' }

t.test('4 listeners receive the notifications of their channel, and look for missed ones after a reconnect', async (t) => {
  const { notifications, query, proxy, breaker } = await openConnection(t)
  const heard: string[] = []
  let connects = 0
  notifications.listen('n_one', (payload) => heard.push(payload), async () => { connects++ })
  notifications.listen('n_two', (payload) => heard.push(`two ${payload}`))
  t.notOk(notifications.connected)
  await notifications.start()
  await until('notifications are connected', () => notifications.connected)
  t.equal(connects, 1)

  await query("select pg_notify('n_one', 'a'), pg_notify('n_two', 'b'), pg_notify('n_three', 'c')")
  await until('both notifications have arrived', () => heard.length === 2)
  t.strictSame(heard, ['a', 'two b'])

  proxy.cut()
  await until('the connection is lost', () => !notifications.connected)
  t.ok(breaker.closed, 'one lost connection is not an outage')
  await until('notifications are connected', () => notifications.connected)
  t.equal(connects, 2, 'the listener looks for missed notifications')
})

t.test('4 a node detects within 100 ms that notifications may be missing, before the database counts as unavailable', async (t) => {
  const { notifications, breaker, query, proxy } = await openConnection(t)
  await notifications.start()
  await query('select 1')
  proxy.freeze()
  await until('notifications are not connected', () => !notifications.connected)
  t.ok(breaker.closed, 'no outage yet')
  proxy.thaw()
  await until('notifications are connected', () => notifications.connected)
  t.ok(breaker.closed)
})

t.test('4 while nobody asks, heartbeats are rare, and what was heard is not trusted before the next one', async (t) => {
  const name = `idle ${process.pid}`
  const own = postgres(await testDatabaseUrl(), { max: 1, connection: { application_name: name } })
  t.teardown(() => own.end())
  const { notifications } = await openConnection(t, { database: own })
  await notifications.start()
  const isRare = async () => {
    const rows = await own`select from pg_stat_activity where application_name = ${name} and query = ${HEARTBEAT}
      and clock_timestamp() - query_start > interval '110 ms'`
    return rows.length > 0
  }
  await until(
    'the latest heartbeat is older than the lease', async () => await isRare() && !notifications.connected, 100
  )
  t.ok(notifications.listening)
  await until('notifications are connected', () => notifications.connected)
})

t.test('1.10 the circuit breaker opens within a second if the database does not respond, and waiting statements fail at once', async (t) => {
  const { notifications, breaker, query, proxy, logged } = await openConnection(t)
  await notifications.start()
  await query('select 1')
  proxy.freeze()
  await t.rejects(query('select 1'), unavailable)
  t.notOk(breaker.closed)
  await t.rejects(query('select 1'), unavailable)

  const dialed = proxy.dialed
  await delay(1000)
  t.ok(proxy.dialed - dialed <= 11, 'the node does not try to connect too often')
  proxy.abandon()
  await until('the circuit breaker is closed', () => breaker.closed)
  t.strictSame(await query('select 1 as one'), [{ one: 1 }], 'on a live connection')
  t.strictSame(
    logged, ['The database is unavailable', 'The database is available again'], 'the log has one message for each'
  )
})

t.test('1.10 if a proxy accepts connections and closes them, the node connects at most ten times a second', async (t) => {
  const { notifications, breaker, proxy } = await openConnection(t)
  await notifications.start()
  proxy.hangUp()
  await until('the circuit breaker is open', () => !breaker.closed)
  const dialed = proxy.dialed
  await delay(1000)
  t.ok(proxy.dialed - dialed <= 11)
  await proxy.listen()
  await until('the circuit breaker is closed', () => breaker.closed)
})

t.test('1.10 it is not an outage if only the connection of notifications cannot be opened', async (t) => {
  const name = `alone ${process.pid}`
  const own = postgres(await testDatabaseUrl(), { max: 1, connection: { application_name: name } })
  t.teardown(() => own.end())
  const { notifications, breaker, logged, query, proxy } = await openConnection(t, { database: own })
  await notifications.start()
  // Open connections continue to work. New connections get no response from now on.
  await query('select 2')
  await own`select 2`
  const { options } = own
  const port = options.port[0]!
  options.port[0] = Number(new URL(proxy.url).port)
  proxy.freeze()
  const enough = new AbortController()
  const asked = (async () => { while (!enough.signal.aborted) await query('select 2') })()
  // The connection of notifications is the one whose last statement is a heartbeat. It may not have sent one yet.
  await until('the connection of notifications is terminated', async () => (await own`
    select pg_terminate_backend(pid) from pg_stat_activity where application_name = ${name} and query = ${HEARTBEAT}`).length > 0)
  await until('the connection is lost', () => !notifications.connected)
  await delay(700)
  t.ok(breaker.closed)
  options.port[0] = port
  proxy.abandon()
  await until('notifications are connected', () => notifications.connected)
  enough.abort()
  await asked
  t.strictSame(logged, [])
})

t.test('4 if a listener or its connect callback throws, the node reconnects', async (t) => {
  const { notifications, query } = await openConnection(t)
  let [connects, failures] = [0, 0]
  notifications.listen('n_throw', () => { throw new Error('cannot take it in') }, async () => {
    if (++connects === 2 && failures++ === 0) throw new Error('cannot ask')
  })
  await notifications.start()
  await query("select pg_notify('n_throw', '')")
  await until('the node has reconnected', () => connects === 2)
  await until('the node has reconnected again', () => connects === 3)
  await until('notifications are connected', () => notifications.connected)
})

t.test('1.10 the node recovers if the database stops responding while it looks for missed notifications', async (t) => {
  const { notifications, query, proxy, breaker } = await openConnection(t)
  let freeze = false
  notifications.listen('n_hook', () => {}, async () => {
    if (freeze) proxy.freeze()
    await query('select 1')
  })
  await notifications.start()
  freeze = true
  proxy.cut()
  await until('the circuit breaker is open', () => !breaker.closed)
  freeze = false
  proxy.abandon()
  await until('notifications are connected', () => notifications.connected)
})

t.test('1.10 if the database is unavailable at the start, start() rejects with the cause and does not try again', async (t) => {
  const { notifications, proxy } = await openConnection(t)
  proxy.refuse()
  await t.rejects(notifications.start(), { code: 'ECONNREFUSED' })
  await notifications.close()
})

t.test('4 start() rejects if a connect callback fails', async (t) => {
  const { notifications } = await openConnection(t)
  notifications.listen('n_fail', () => {}, async () => { throw new Error('cannot ask') })
  await t.rejects(notifications.start(), { message: 'cannot ask' })
})

t.test('8 close() works during the start, during a connect callback, while connected, and between two attempts to connect', async (t) => {
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
  await until('the circuit breaker is open', () => !three.breaker.closed)
  await three.close()
})

t.test('8 the connection of notifications supports URLs with several hosts or TLS, and the socket option of a client', async (t) => {
  const { hostname, port } = new URL(await testDatabaseUrl())
  const direct = await testDatabaseUrl()
  const several = await openConnection(t, { database: direct.replace(/@[^/]+/, (at) => `${at},127.0.0.1:1`) })
  await several.notifications.start()
  await until('notifications are connected', () => several.notifications.connected)

  let dialed = 0
  const own = postgres(direct, { max: 1, socket: () => { dialed++; return connect(Number(port), hostname) } } as never)
  t.teardown(() => own.end())
  const { notifications } = await openConnection(t, { database: own })
  await notifications.start()
  t.equal(dialed, 1)

  const tls = await openConnection(t, { database: `${direct}?sslmode=prefer` })
  await tls.notifications.start()
  t.ok(tls.notifications.connected, 'with sslmode=prefer in the URL')
})
