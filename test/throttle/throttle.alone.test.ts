import { once } from 'node:events'
import { request, type IncomingMessage } from 'node:http'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { PassThrough } from 'node:stream'
import { setImmediate as turn } from 'node:timers/promises'
import Fastify, { type LightMyRequestResponse } from 'fastify'
import t, { type Test } from 'tap'
import usher, { type UsherOptions } from '../../app.ts'
import type { Client } from '../../db/batching/batching.ts'
import { channelOf } from '../../db/driver/channel.ts'
import { createThrottle } from '../../plugins/throttle/throttle.ts'
import { readOptions } from '../../schema/options/read-options.ts'
import { openCore } from '../helpers/core.ts'
import { createUsher, type TestUsher } from '../helpers/app.ts'
import { testDatabaseUrl, uniqueSchema } from '../helpers/database.ts'
import { createMailer } from '../helpers/mail.ts'
import { nightly } from '../helpers/nightly.ts'
import { createProxy } from '../helpers/proxy.ts'
import { openSql } from '../helpers/sql.ts'
import { stopClock } from '../helpers/stopped-clock.ts'
import { until } from '../helpers/until.ts'

const REFUSED = { error: 'Too many attempts, try again later', code: 'TOO_MANY_REQUESTS' }
const HERE = '203.0.113.1'
const ELSEWHERE = '198.51.100.7'
// Permits no further attempt during a test, however long that takes.
const perMinute = 0.01
const oneAttempt = { burst: 1, perMinute }
// The time until the next attempt, in seconds.
const INTERVAL = 60 / perMinute

// Logs in from an address and returns the status.
const attempt = async (
  { inject }: TestUsher, payload: { email: string, password: string }, remoteAddress = ELSEWHERE
) =>
  (await inject('POST', '/api/auth/login', { payload, remoteAddress })).statusCode
const wrong = (email: string) => ({ email, password: 'a wrong one' })

// Requires that a rejected client is told to wait for the next attempt, of which a part may have passed.
const isRetryAfter = (seconds: number): boolean => Number.isInteger(seconds) && seconds > 0 && seconds <= INTERVAL

function requireRetryAfter (t: Test, { headers }: LightMyRequestResponse): void {
  t.ok(isRetryAfter(Number(headers['retry-after'])), `Retry-After: ${headers['retry-after']}`)
}

// Opens this part alone, so that the tests need no password hashing.
// With the URL of another database, it has the deadlines of a node, for a test of outages.
async function openThrottle (t: Test, limits: UsherOptions['throttle'], databaseUrl?: string) {
  const outages = databaseUrl !== undefined && { databaseUrl, deadlines: {} }
  const { app, core } = await openCore(t, { throttle: limits, ...outages })
  const throttle = createThrottle(core)
  await app.ready()
  return { app, throttle }
}

const unlimited = await createUsher(t)

t.test('4 failed logins are throttled per account: 429 with Retry-After', async (t) => {
  const one = await createUsher(t, { throttle: { account: { perMinute } } })
  const two = await createUsher(t, one.options)
  const sql = openSql(t, one)
  const user = await one.createUser()
  const { inject, admin } = one

  // Resets the limits, and makes both nodes forget the keys that they reject during a flood, as a new password does.
  async function forget (): Promise<void> {
    await sql`delete from throttle`
    await sql`select pg_notify(${channelOf(one.options.schema!, 'limits_cleared')}, '')`
    for (const node of [one, two]) {
      for (const email of [user.email, 'nobody@example.com']) while (await attempt(node, wrong(email)) === 429);
    }
    await sql`delete from throttle`
  }

  t.test('4 of 100 concurrent attempts on two nodes 10 are checked, also for an account that does not exist', async (t) => {
    for (const email of [user.email, 'nobody@example.com']) {
      await forget()
      const answers = await Promise.all(Array.from({ length: 100 }, (_, index) =>
        [one, two][index % 2]!
          .inject('POST', '/api/auth/login', { payload: wrong(email), remoteAddress: `198.51.100.${index % 4}` })))
      t.equal(answers.filter(({ statusCode }) => statusCode === 401).length, 10, email)
      const refused = answers.filter(({ statusCode }) => statusCode === 429)
      t.equal(refused.length, 90, email)
      t.equal(new Set(refused.map(({ body }) => body)).size, 1)
      t.same(refused[0]!.json(), REFUSED)
      t.same(refused.map(({ headers }) => Number(headers['retry-after'])).filter((seconds) => !isRetryAfter(seconds)), [])
      t.same(refused.filter(({ headers }) => headers['set-cookie'] !== undefined), [])
      t.equal(await attempt(two, { ...wrong(email), email: email.toUpperCase() }), 429, 'whatever the case')
      t.equal(
        await attempt(two, { ...wrong(email), email: ` ${email.replace('i', 'İ')} ` }),
        429,
        'what the database takes for the same letter'
      )
    }
  })

  t.test('4 a throttled attempt is rejected even with the right password', async (t) => {
    await forget()
    for (let count = 0; count < 10; count++) t.equal(await attempt(one, wrong(user.email)), 401)
    t.same([await attempt(one, user), await attempt(two, user)], [429, 429])
  })

  t.test('4 after Retry-After exactly one attempt is let through', async (t) => {
    const refused = await inject('POST', '/api/auth/login', { payload: user, remoteAddress: ELSEWHERE })
    const seconds = Number(refused.headers['retry-after'])
    await sql`update throttle set free_at = free_at - make_interval(secs => ${seconds - INTERVAL / 2})`
    t.equal(await attempt(one, wrong(user.email)), 429, 'not before')
    await sql`update throttle set free_at = free_at - make_interval(secs => ${INTERVAL / 2})`
    t.same([await attempt(one, wrong(user.email)), await attempt(two, wrong(user.email))], [401, 429])
  })

  t.test('4 an attacker elsewhere does not lock out the owner: a recognised network has its own limit', async (t) => {
    await forget()
    t.equal(await attempt(one, user, HERE), 200)
    while (await attempt(one, wrong(user.email)) !== 429);
    t.equal(await attempt(two, user, HERE), 200, 'the owner, where they have been before')
    t.equal(await attempt(two, user, '203.0.113.99'), 429, 'at a new address it could be anybody')
    t.equal(await attempt(two, wrong(admin.email)), 401, 'another account')
    for (let count = 0; count < 10; count++) t.equal(await attempt(one, wrong(user.email), HERE), 401)
    t.equal(await attempt(one, user, HERE), 429, 'nor may anybody try for ever there')
  })

  t.test('4 only failures count: a script that logs in all day is never rejected', async (t) => {
    await forget()
    for (let count = 0; count < 12; count++) t.equal(await attempt(one, user, HERE), 200)
    for (let count = 0; count < 10; count++) t.equal(await attempt(one, wrong(user.email), HERE), 401)
  })

  t.test('4 the table contains no readable addresses', async (t) => {
    const rows = await sql<{ key: string }[]>`select key from throttle`
    for (const { key } of rows) t.match(key, /^login\.(address|account|account-and-address)([*]\d+)? [0-9a-f]{64}$/)
  })

  t.test('1.2 an invalid body does not count as an attempt', async (t) => {
    await forget()
    t.equal((await inject('POST', '/api/auth/login', { payload: { email: user.email } })).statusCode, 400)
    t.same(await sql`select key from throttle`, [])
  })
})

nightly('11.6 after ten wrong passwords and a reset by mail, the new password works at once, on every node', async (t) => {
  const inbox = createMailer()
  const one = await createUsher(t, { throttle: { reset: { burst: 100, perMinute: 100 } }, mailer: inbox.mailer })
  const two = await createUsher(t, one.options)
  const sql = openSql(t, one)
  let notifications = 0
  await sql.listen(channelOf(one.options.schema!, 'limits_cleared'), () => { notifications++ })
  for (const [round, where] of [[1, ELSEWHERE], [2, HERE]] as const) {
    const user = await one.createUser()
    if (where === HERE) t.equal(await attempt(one, user, HERE), 200, 'the network is recognised')
    // So many that both nodes remember to reject more.
    await Promise.all(
      Array.from({ length: 80 }, (_, index) => attempt([one, two][index % 2]!, wrong(user.email), where))
    )
    t.same([await attempt(one, user, where), await attempt(two, user, where)], [429, 429], `round ${round}`)
    t.equal((await one.inject('POST', '/api/auth/password-reset', { payload: { email: user.email } })).statusCode, 202)
    const renewed = { ...user, password: `new ${user.password}` }
    const payload = { token: await inbox.token(user.email), password: renewed.password }
    // The time stands still, so a node forgets nothing by itself.
    const { restore } = stopClock(t)
    t.equal(
      (await one.inject('POST', '/api/auth/password-reset/confirm', { payload, remoteAddress: HERE })).statusCode, 204
    )
    t.equal(await attempt(one, renewed, where), 200, 'the node that has set the password')
    let status = 429
    for (let count = 0; count < 100 && status === 429; count++) status = await attempt(two, renewed, where)
    restore()
    t.equal(status, 200, 'the other node')
    await until('the other node was told', () => notifications >= round)
    t.same(
      [...await sql`select network from recognised_networks where user_id = ${user.id} order by network`],
      [...new Set([HERE, where])].sort().map((network) => ({ network }))
    )
  }
})

nightly('11.6 after a hundred failures and a reset by mail, the owner gets in, and where others have logged in before is not recognised any more', async (t) => {
  const inbox = createMailer()
  const usher = await createUsher(
    t, { mailer: inbox.mailer, throttle: { ...unlimited.options.throttle, consecutiveFailures: 3 } }
  )
  const user = await usher.createUser()
  t.equal(await attempt(usher, user, ELSEWHERE), 200, 'a thief who knows the password')
  const lock = async () => {
    for (let count = 0; count < 4; count++) await attempt(usher, wrong(user.email), `192.0.2.${count}`)
  }
  await lock()
  t.same([await attempt(usher, wrong(user.email), ELSEWHERE), await attempt(usher, user, HERE)], [401, 429])
  await usher.inject('POST', '/api/auth/password-reset', { payload: { email: user.email } })
  const renewed = { ...user, password: `new ${user.password}` }
  const payload = { token: await inbox.token(user.email), password: renewed.password }
  t.equal(
    (await usher.inject('POST', '/api/auth/password-reset/confirm', { payload, remoteAddress: HERE })).statusCode, 204
  )
  await lock()
  t.same(
    [await attempt(usher, wrong(user.email), ELSEWHERE), await attempt(usher, renewed, HERE)],
    [429, 200],
    'the network in which the link was used is'
  )
})

nightly('4 a login that fails because the database is unavailable does not count', async (t) => {
  const proxy = await createProxy(t, `${await testDatabaseUrl()}?statement_timeout=1000`)
  const usher = await createUsher(t, { databaseUrl: proxy.url, deadlines: {}, throttle: { account: oneAttempt } })
  const sql = openSql(t, { options: { ...usher.options, databaseUrl: await testDatabaseUrl() } })
  const user = await usher.createUser()
  const locked = (during: () => Promise<unknown>) => sql.begin(async (trx) => {
    await trx`lock table sessions`
    await during()
  })
  const isCharged = async () =>
    (await sql`select from throttle where free_at > now() + interval '5 minutes'`).length > 0

  await locked(async () => t.equal(await attempt(usher, user), 503, 'a statement that takes too long'))
  await until('withdrawn', async () => !await isCharged())
  t.equal(await attempt(usher, user), 200)

  await locked(async () => {
    const answer = attempt(usher, user)
    // A charge whose answer was lost is kept.
    await until('the node knows that it is charged', async () =>
      (await sql`select from pg_locks where relation = 'sessions'::regclass and not granted`).length > 0)
    proxy.refuse()
    t.equal(await answer, 503, 'an outage')
    t.ok(await isCharged())
  })
  await proxy.listen()
  await until('withdrawn when it is over', async () => !await isCharged())
  await until('the database is back', async () => await attempt(usher, user) === 200)
})

nightly('4 a change of the password does not count if the client disconnects before the current password is checked', async (t) => {
  const usher = await createUsher(t, { throttle: {}, passwordHash: undefined })
  const sql = openSql(t, usher)
  const user = await usher.createUser()
  const { port } = new URL(await usher.app.listen({ port: 0, host: '127.0.0.1' }))
  const isCharged = async () =>
    (await sql`select from throttle where key like 'login.account-and-address %' and free_at > now()`).length > 0
  await until('the login of the user is refunded', async () => !await isCharged())
  // These keep the threads that check passwords busy, because hashes have their usual cost here.
  const busy = new AbortController()
  let number = 0
  const others = Promise.all(Array.from({ length: 100 }, async () => {
    while (!busy.signal.aborted) {
      await attempt(usher, wrong(`${++number}@example.com`), `10.0.${number >> 8}.${number & 255}`)
    }
  }))
  await until('a password was checked, so others wait', () => number > 100)

  const body = JSON.stringify({ currentPassword: user.password, password: 'quiet lantern river' })
  const change = request({
    port, method: 'PUT', path: '/api/auth/password', headers: { ...user.headers, 'content-type': 'application/json' },
  }).on('error', () => {})
  change.end(body)
  await until('charged', isCharged)
  change.destroy()
  busy.abort()
  await until('withdrawn', async () => !await isCharged())
  await others
  t.equal(await attempt(usher, user), 200, 'the password is the same as before')
})

nightly('4 a wrong password counts even if the database then fails to record it', async (t) => {
  const usher = await createUsher(
    t, { databaseUrl: `${await testDatabaseUrl()}?statement_timeout=1000`, throttle: { account: oneAttempt } }
  )
  const sql = openSql(t, usher)
  const user = await usher.createUser()
  await sql.begin(async (trx) => {
    await trx`lock table audit`
    t.equal(await attempt(usher, wrong(user.email)), 503)
  })
  t.equal(await attempt(usher, wrong(user.email)), 429)
})

t.test('4 failed logins are throttled per network, whatever the account', async (t) => {
  const handles = await createUsher(
    t, { throttle: { address: { burst: 3, perMinute } } }, { trustProxy: '10.0.0.0/8' }
  )
  const sql = openSql(t, handles)
  const from = async (remoteAddress: string, forwardedFor: string, email = 'somebody@example.com') =>
    (await handles.inject('POST', '/api/auth/login',
      { payload: wrong(email), remoteAddress, headers: { 'x-forwarded-for': forwardedFor } })).statusCode

  t.test('4 behind a trusted proxy, the address is the one in X-Forwarded-For', async (t) => {
    const answers: number[] = []
    for (const email of ['a@example.com', 'b@example.com', 'c@example.com', 'd@example.com', handles.admin.email]) {
      answers.push(await from('10.0.0.1', HERE, email))
    }
    t.same(answers, [401, 401, 401, 429, 429])
    t.equal(await from('10.0.0.1', `${ELSEWHERE}, ${HERE}`), 429, 'not the one that the client tells')
    t.equal(await from('10.0.0.1', ELSEWHERE), 401)
  })

  t.test('4 X-Forwarded-For from any other address is ignored', async (t) => {
    await sql`delete from throttle`
    const answers: number[] = []
    for (let count = 0; count < 5; count++) answers.push(await from(HERE, `198.51.100.${count}`))
    t.same(answers, [401, 401, 401, 429, 429])
  })

  t.test('4 clients of a Unix socket have no address and share one limit', async (t) => {
    // The path is in the temporary folder, because the path of a Unix socket has a limited length.
    const path = join(tmpdir(), uniqueSchema('socket'))
    await handles.app.listen({ path })
    const answers: (number | undefined)[] = []
    for (let count = 0; count < 4; count++) {
      const client = request({
        socketPath: path, path: '/api/auth/login', method: 'POST', headers: { 'content-type': 'application/json' },
      })
      client.end(JSON.stringify(wrong('somebody@example.com')))
      const [response] = await once(client, 'response') as [IncomingMessage]
      response.resume()
      answers.push(response.statusCode)
    }
    t.same(answers, [401, 401, 401, 429])
  })
})

t.test('4 failed refreshes are throttled per network', async (t) => {
  const { inject, createUser } = await createUsher(t, { throttle: { refresh: { burst: 3, perMinute } } })
  const refresh = (cookie: string) => inject('POST', '/api/auth/refresh', { headers: { cookie } })
  const user = await createUser()
  let { cookie } = user
  for (let count = 0; count < 5; count++) {
    const response = await refresh(cookie)
    t.equal(response.statusCode, 200, 'one that succeeds does not count')
    cookie = `usher_session=${response.cookies[0]!.value}`
  }
  const forged = cookie.replace(/.{8}$/, 'AAAAAAAA')
  const answers = [await refresh(forged), await refresh(forged), await refresh(forged), await refresh(forged)]
  t.same(answers.map(({ statusCode }) => statusCode), [401, 401, 401, 429])
  t.same(answers[3]!.json(), REFUSED)
  requireRetryAfter(t, answers[3]!)
})

t.test('4 what shares a limit', async (t) => {
  const { throttle } = await openThrottle(
    t, { address: oneAttempt, reset: { burst: 1 }, account: { burst: 2, perMinute } }
  )
  const login = (address: string, email: string = crypto.randomUUID()) =>
    throttle.login({ email, address }).then(() => true, ({ statusCode }) => statusCode)

  t.test('4 IPv6 addresses share a limit per /64, and an IPv4-mapped address counts as the IPv4 address', async (t) => {
    const same = [
      ['2001:db8:1:2::1', '2001:db8:1:2::2', '2001:0DB8:0001:0002:ffff:ffff:ffff:ffff', '2001:db8:1:2:3:4:5:6'],
      ['2001:db8:1:3::1', '2001:db8:1:3::1%eth0'],
      ['::1', '::2', '::'],
      ['192.0.2.1', '::ffff:192.0.2.1', '::ffff:c000:201', '0:0:0:0:0:FFFF:192.0.2.1'],
      ['192.0.2.2'],
      ['unknown'],
      ['2001:db8::', '2001:db8::1', '2001:db8:0:0:1::'],
    ]
    for (const [first = '', ...rest] of same) {
      t.equal(await login(first), true, first)
      for (const address of rest) t.equal(await login(address), 429, address)
    }
  })

  t.test('4 an attempt rejected for its account does not count for its network', async (t) => {
    const email = 'ada@example.com'
    t.same([await login('192.0.2.11', email), await login('192.0.2.12', email), await login('192.0.2.13', email)], [
      true, true, 429,
    ])
    t.equal(await login('192.0.2.13'), true)
  })

  t.test('4 password links are limited per network and per account', async (t) => {
    const reset = (email: string, address: string) => throttle.reset({ email, address })
      .then(() => true, ({ statusCode, retryAfter }) => [statusCode, Math.round(retryAfter / 60)])
    t.same([await reset('a@example.com', HERE), await reset('b@example.com', HERE)], [true, [429, 5]])
    t.same([await reset('A@example.com', ELSEWHERE), await reset('b@example.com', ELSEWHERE)], [[429, 5], true])
  })

  t.test('4 a limit that is used up lets through exactly the configured number', async (t) => {
    const { throttle: limited } = await openThrottle(t, { refresh: { burst: 7, perMinute } })
    const refreshes = () => Promise.allSettled(Array.from({ length: 5 }, () => limited.refresh({ address: HERE })))
    const answers = [...await refreshes(), ...await refreshes()]
    t.same(
      answers.map(({ status }) => status === 'fulfilled'),
      [true, true, true, true, true, true, true, false, false, false]
    )
    await (answers[0] as PromiseFulfilledResult<{ refund (): Promise<void> }>).value.refund()
    t.same((await refreshes()).map(({ status }) => status === 'fulfilled'), [true, false, false, false, false])
  })
})

t.test('4 rejected attempts wait in the tarpit, which slows down floods', async (t) => {
  const { app, throttle } = await openThrottle(
    t, { address: oneAttempt, account: oneAttempt, refresh: oneAttempt, reset: oneAttempt }
  )
  stopClock(t)
  // The outcomes in the order of their arrival.
  const answered: string[] = []
  const ask = (what: string, asking: Promise<unknown>) =>
    asking.then(() => 'let through', ({ code }) => code).then((code) => { answered.push(`${what}: ${code}`) })
  const all = (client?: Client) => {
    const source = { address: HERE, ...client && { client } }
    const email = 'somebody@example.com'
    return Promise.all([
      ask('login', throttle.login({ ...source, email })),
      ask('refresh', throttle.refresh(source)),
      ask('reset', throttle.reset({ ...source, email })),
    ])
  }
  const refused = (code: string) => ['login', 'refresh', 'reset'].map((what) => `${what}: ${code}`)
  const take = () => answered.splice(0).sort()

  t.test('4 allowed attempts are not delayed, and a client may disconnect during the delay', async (t) => {
    const client = { destroyed: false }
    await all(client)
    t.same(take(), refused('let through'))
    // From then on the node rejects from memory, so that no busy database delays an answer for longer than the tarpit
    // does.
    await Promise.all(Array.from({ length: 20 }, () => all()))
    take()
    const asked = all(client)
    await all()
    t.same(take(), refused('TOO_MANY_REQUESTS'), 'those whose client nobody keeps waiting come first')
    client.destroyed = true
    await asked
    t.same(take(), refused('CLIENT_DISCONNECTED'))
  })

  t.test('4 at most a thousand attempts are delayed at once', async (t) => {
    const client = { destroyed: false }
    const held = Array.from({ length: 1010 }, () => ask('refresh', throttle.refresh({ address: HERE, client })))
    await turn()
    t.equal(answered.length, 10)
    client.destroyed = true
    await Promise.all(held)
    t.same(take().filter((answer) => answer === 'refresh: CLIENT_DISCONNECTED').length, 1000)
  })

  t.test('4 stopping the node does not wait for them', async (t) => {
    const asked = all({ destroyed: false })
    await all()
    t.same(take(), refused('TOO_MANY_REQUESTS'))
    let closed = false
    const closing = app.close().then(() => { closed = true })
    await asked
    t.same(take(), refused('TOO_MANY_REQUESTS'))
    t.equal(closed, false, 'they were answered first')
    await closing
  })
})

nightly('4 a flood of failed logins is rejected from memory for five seconds, also if limits are deleted meanwhile', async (t) => {
  const { throttle } = await openThrottle(t, { address: oneAttempt })
  const clock = stopClock(t)
  const flood = (address: string) =>
    countLetThrough(Array<string>(25).fill(address), (address) => throttle.loginFromNetwork({ address }))
  t.strictSame(await Promise.all([flood(HERE), flood('2001:db8:1:2::1')]), [1, 1])
  await throttle.purge()
  for (const address of [HERE, '2001:db8:1:2::2']) {
    await t.rejects(throttle.rejectFlood({ address }), { code: REFUSED.code }, address)
  }
  await t.resolves(throttle.rejectFlood({ address: ELSEWHERE }), 'others are not affected')

  clock.advance(4999)
  await throttle.purge()
  await t.rejects(throttle.rejectFlood({ address: HERE }), { code: REFUSED.code })
  clock.advance(2)
  await t.resolves(throttle.rejectFlood({ address: HERE }), 'the database is asked again')
})

nightly('4 the table is limited: expired rows are deleted, then those that expire soonest', async (t) => {
  const one = unlimited
  const sql = openSql(t, one)
  await sql`insert into throttle select 'expired ' || n, now() - interval '1 second', 1 from generate_series(1, 3) n`
  await createUsher(t, one.options)
  await until('what has expired is deleted from a small table, too', async () =>
    (await sql`select from throttle where key like 'expired %'`).length === 0)

  await sql`insert into throttle select 'old ' || n, now() - interval '1 second', 1 from generate_series(1, 1500) n`
  await sql`insert into throttle select 'new ' || n, now() + interval '1 hour' + n * interval '1 second', 1 from generate_series(1, 101500) n`
  await createUsher(t, one.options)
  await until(
    'as many as are kept', async () => (await sql`select count(*)::int as rows from throttle`)[0]!.rows <= 100_000
  )
  t.same(
    await sql`select count(*)::int as rows, min(free_at) > now() + interval '80 minutes' as latest from throttle`,
    [{ rows: 100_000, latest: true }]
  )
})

// What PostgreSQL may know of a table to which a flood then adds rows.
for (const [known, rows] of [['with one row', 1], ['that was empty', 0]] as const) {
  nightly(`4 after a flood, limits are deleted and attempts given back in time, although PostgreSQL has analyzed a table ${known}`, async (t) => {
    const { app, throttle } = await openThrottle(t, {})
    const sql = openSql(t, { options: { databaseUrl: await testDatabaseUrl(), schema: app.usherOptions.schema } })
    await sql`insert into throttle select 'old ' || n, now() + interval '1 hour', 1 from generate_series(1, 60) n`
    await sql`delete from throttle where key <> ${rows === 1 ? 'old 1' : ''}`
    await sql`analyze throttle`
    // After some executions PostgreSQL would keep a plan, for each connection.
    const charged = await throttle.refresh({ address: HERE })
    for (let count = 0; count < 100; count++) await Promise.all([throttle.purge(), charged.refund()])
    await sql`insert into throttle select 'more ' || n, now() + interval '1 hour', 1 from generate_series(1, 102000) n`

    const attempts = await Promise.all(
      Array.from({ length: 1000 }, (_, n) => throttle.refresh({ address: `198.18.${n >> 8}.${n & 255}` }))
    )
    await Promise.all(attempts.map(({ refund }) => refund()))
    const [row] = await sql<{
      used: number
    }[]>`select count(*)::int as used from throttle where key like 'refresh%' and free_at > now() + interval '1 second'`
    t.equal(row!.used, 0)
    t.equal(await throttle.purge(), 1000)
  })
}

nightly('8 a failed cleanup is logged and does not prevent the start', async (t) => {
  const one = unlimited
  const sql = openSql(t, one)
  await sql`alter table throttle rename to gone`
  const stream = new PassThrough({ encoding: 'utf8' })
  const two = Fastify({ pluginTimeout: 0, logger: { level: 'warn', stream } })
  t.teardown(() => two.close())
  await two.register(usher, one.options)
  await two.ready()
  const [line] = await once(stream, 'data') as [string]
  const { msg, data, err } = JSON.parse(line)
  t.same([msg, data, err.code], ['Old data could not be deleted', 'limits of attempts', '42P01'])
  t.equal((await two.inject('/health/ready')).statusCode, 200)
  await sql`alter table gone rename to throttle`
})

t.test('1.10 without the database every attempt gets 503', async (t) => {
  const proxy = await createProxy(t, await testDatabaseUrl())
  const { throttle } = await openThrottle(t, {}, proxy.url)
  const charged = await throttle.refresh({ address: HERE })
  await proxy.refuse()
  await t.rejects(throttle.login({ email: 'a@example.com', address: HERE }), { code: 'DATABASE_UNAVAILABLE' })
  await t.rejects(charged.refund(), { code: 'DATABASE_UNAVAILABLE' })
})

t.test('9 unset members of a limit keep their defaults, and the host\'s object is not modified', async (t) => {
  const databaseUrl = 'postgres://somebody@127.0.0.1/none'
  const given: UsherOptions = { databaseUrl, throttle: { account: { burst: 3 }, reset: undefined } }
  t.same(readOptions(given).throttle, {
    account: { burst: 3, perMinute: 1 },
    consecutiveFailures: 100,
    address: { burst: 50, perMinute: 10 },
    refresh: { burst: 60, perMinute: 30 },
    reset: { burst: 5, perMinute: 0.2 },
    signUp: { burst: 5, perMinute: 0.2 },
    mail: { burst: 3, perMinute: 0.05 },
    verifiedMail: { burst: 10, perMinute: 0.2 },
    secondFactor: { burst: 10, perMinute: 0.1 },
    loginMail: { burst: 20, perMinute: 2 },
    invitation: { burst: 50, perMinute: 1 },
  })
  t.strictSame(given, { databaseUrl, throttle: { account: { burst: 3 }, reset: undefined } })
  const refused: [throttle: unknown, message: string][] = [
    [null, 'throttle must be an object'],
    [{ acount: {} }, 'throttle has no member acount'],
    [{ account: 1 }, 'throttle.account must be an object'],
    [{ account: { burst: 0 } }, 'throttle.account.burst must be between 1 and 1000000'],
    [{ account: { perMinute: 0 } }, 'throttle.account.perMinute must be between 0.01 and 1000000'],
    [{ account: { perSecond: 1 } }, 'throttle.account has no member perSecond'],
  ]
  for (const [throttle, message] of refused) {
    t.throws(() => readOptions({ databaseUrl, throttle } as UsherOptions), { message: `usher: ${message}` }, message)
  }
})

// Charges attempts from all addresses at once. Returns how many are let through.
async function countLetThrough (
  addresses: readonly string[], charge: (address: string) => Promise<unknown>
): Promise<number> {
  const results = await Promise.all(
    addresses.map((address) => charge(address).then(() => 1, ({ code }) => code === REFUSED.code ? 0 : NaN))
  )
  return results.reduce<number>((sum, result) => sum + result, 0)
}

const hex = (number: number) => number.toString(16).padStart(2, '0')

t.test('4 wider networks have larger limits: a /56, a /48, and a /24 of IPv4', async (t) => {
  const two = { burst: 2, perMinute: 0.01 }
  const { throttle } = await openThrottle(
    t, { address: two, refresh: two, reset: two, signUp: two, account: { burst: 1e6, perMinute: 1e6 } }
  )
  let count = 0
  const kinds: [string, (address: string) => Promise<unknown>][] = [
    ['logins', (address) => throttle.login({ email: `${count++}@example.com`, address })],
    ['refreshes', (address) => throttle.refresh({ address })],
    ['reset links', (address) => throttle.reset({ email: `${count++}@example.com`, address })],
    ['sign-ups', (address) => throttle.signUp({ email: `${count++}@example.com`, address })],
  ]
  for (const [kind, charge] of kinds) {
    const many = Array.from({ length: 100 }, (_, index) => index)
    t.equal(await countLetThrough(many.map((index) => `2001:db8:1:1::${hex(index)}`), charge), 2, `${kind} of a /64`)
    t.equal(await countLetThrough(many.map((index) => `2001:db8:1:1${hex(index)}::1`), charge), 8, `${kind} of a /56`)
    t.equal(await countLetThrough(many.map((index) => `2001:db8:2:${hex(index)}00::1`), charge), 32, `${kind} of a /48`)
    t.equal(await countLetThrough(many.map((index) => `192.0.2.${index}`), charge), 32, `${kind} of a /24`)
    t.equal(await countLetThrough(['2001:db8:3::1', '192.0.3.1'], charge), 2, `${kind} of other networks`)
    t.equal(await countLetThrough(many.map((index) => `_hidden${index}`), charge), 2, `${kind} of what is no address`)
  }
})

nightly('4 attempts that succeed do not use up the limits of wider networks', async (t) => {
  const { app, throttle } = await openThrottle(t, { refresh: { burst: 1, perMinute: 0.01 } })
  const rounds = Array.from({ length: 40 }, (_, index) => index)
  for (const index of rounds) await (await throttle.refresh({ address: `2001:db8:1:${hex(index)}::1` })).refund()
  t.equal(await countLetThrough(rounds.map((index) => `2001:db8:1:${hex(index)}00::1`), (address) =>
    throttle.refresh({ address })), 16)
  const rejected =
    countLetThrough(rounds.map((index) => `2001:db8:1:ff${hex(index)}::1`), (address) => throttle.refresh({ address }))
  t.equal(await rejected, 0, 'nothing is left of the /48')
  const sql = openSql(t, { options: { databaseUrl: await testDatabaseUrl(), schema: app.usherOptions.schema } })
  const used = await sql`select 1 from throttle where key like 'refresh.address %' and free_at > now()`
  t.equal(used.length, 16, 'what is rejected for a wider network is not charged to the narrow ones')
})

nightly('11.2 one network has at most a quarter of the sign-ups that may be pending, whatever the limits', async (t) => {
  const { app, throttle } = await openThrottle(t, { signUp: { burst: 1e6, perMinute: 1e6 } })
  const sql = openSql(t, { options: { databaseUrl: await testDatabaseUrl(), schema: app.usherOptions.schema } })
  const flood = (count: number, email: string) => countLetThrough(
    Array.from({ length: count }, (_, index) => `2001:db8:1:${index.toString(16)}::1`),
    (address) => throttle.signUp({ email: `${email}-${address}`, address })
  )
  t.equal(await flood(1300, 'first'), 1250, 'a burst of an eighth')
  await sql`update throttle set free_at = free_at - interval '1 day'`
  throttle.forgetRejections()
  t.equal(await flood(1300, 'second'), 1250, 'and as many while those are pending')
  t.equal(
    await countLetThrough(['2001:db8:2::1'], (address) => throttle.signUp({ email: 'x@example.com', address })),
    1,
    'others still can'
  )
})

nightly('4 TRUST_PROXY: attempts from an address with changing ports, and from what is no address, share a limit', async (t) => {
  const usher = await createUsher(
    t,
    { throttle: { address: { burst: 3, perMinute: 0.01 }, account: { burst: 1e6, perMinute: 1e6 } } },
    { trustProxy: true }
  )
  const from = async (header: string, email: string) => {
    const { statusCode } = await usher.inject(
      'POST', '/api/auth/login', { payload: wrong(email), headers: { 'x-forwarded-for': header } }
    )
    return statusCode
  }
  const kinds = [
    (index: number) => `203.0.113.9:${1000 + index}`,
    (index: number) => `[2001:db8::9]:${1000 + index}`,
    (index: number) => `_hidden${index}`,
  ]
  for (const [kind, header] of kinds.entries()) {
    const statuses = await Promise.all(
      Array.from({ length: 10 }, (_, index) => from(header(index), `${kind}-${index}@example.com`))
    )
    t.same(statuses.sort(), [401, 401, 401, 429, 429, 429, 429, 429, 429, 429], header(0))
  }
})
