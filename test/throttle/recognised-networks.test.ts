import t from 'tap'
import { createThrottle } from '../../plugins/throttle/throttle.ts'
import { openCore } from '../helpers/core.ts'
import { createUsher, type LoggedIn, type TestUsher } from '../helpers/app.ts'
import { createMailer } from '../helpers/mail.ts'
import { nightly } from '../helpers/nightly.ts'
import { openSql } from '../helpers/sql.ts'
import { until } from '../helpers/until.ts'

const HOME = '203.0.113.1'
const generous = { burst: 10_000, perMinute: 10_000 }
const throttle = { account: generous, address: generous, refresh: generous, reset: generous, consecutiveFailures: 3 }

const send = ({ inject }: TestUsher, remoteAddress: string, payload: { email: string, password: string }) =>
  inject('POST', '/api/auth/login', { payload, remoteAddress })
const login = async (usher: TestUsher, address: string, { email, password }: { email: string, password: string }) =>
  (await send(usher, address, { email, password })).statusCode
const changePassword = async (
  { inject }: TestUsher, remoteAddress: string, { headers }: LoggedIn, currentPassword: string
) =>
  (await inject('PUT', '/api/auth/password', {
    headers, remoteAddress, payload: { currentPassword, password: `new ${crypto.randomUUID()}` },
  })).statusCode
const wrong = (email: string) => ({ email, password: 'a wrong one' })

// Logs in with a wrong password from `count` networks and returns the statuses.
async function attack (usher: TestUsher, email: string, count = 3): Promise<number[]> {
  const answers: number[] = []
  for (let index = 0; index < count; index++) answers.push(await login(usher, `198.51.100.${index}`, wrong(email)))
  return answers
}

nightly('4 an owner whose IPv6 address changes is not locked out together with an attacker', async (t) => {
  const usher = await createUsher(t, { throttle: { ...throttle, account: { burst: 5, perMinute: 0.01 } } })
  const user = await usher.createUser()
  t.equal(await login(usher, '2001:db8:1:2::1', user), 200)
  t.same(await attack(usher, user.email, 7), [401, 401, 401, 429, 429, 429, 429])
  t.equal(await changePassword(usher, '2001:db8:1:3::1', user, user.password), 429, 'another network')
  t.equal(await login(usher, '2001:db8:1:3::1', user), 429)
  t.equal(await login(usher, '2001:db8:1:2:ffff::9', user), 200)
  await attack(usher, user.email, 7)
  t.equal(await changePassword(usher, '2001:db8:1:2:abcd::7', user, user.password), 204)
})

t.test('4 after a number of failures in a row, passwords are accepted from recognised networks only', async (t) => {
  const inbox = createMailer()
  const one = await createUsher(t, { throttle, mailer: inbox.mailer })
  const two = await createUsher(t, one.options)
  const user = await one.createUser()
  t.equal(await login(one, HOME, user), 200)

  t.test('4 on every node, and in the same way for an account that does not exist', async (t) => {
    for (const email of [user.email, 'nobody@example.com']) {
      t.same([await login(one, '198.51.100.1', wrong(email)), await login(two, HOME, wrong(email)), await login(
        two, '198.51.100.2', wrong(email)
      )], [401, 401, 401])
    }
    const [known, unknown] = [
      await send(two, '198.51.100.3', user), await send(two, '198.51.100.3', wrong('NOBODY@example.com')),
    ]
    t.same([known.statusCode, known.json(), known.headers['retry-after']], [
      429, { error: 'Too many attempts, try again later', code: 'TOO_MANY_REQUESTS' }, '3600',
    ])
    t.same([unknown.statusCode, unknown.json(), unknown.headers['retry-after']], [
      known.statusCode, known.json(), known.headers['retry-after'],
    ])
    t.same(Object.keys(unknown.headers), Object.keys(known.headers))
  })

  t.test('4 until a login succeeds', async (t) => {
    t.equal(await login(one, '198.51.100.3', user), 429)
    t.equal(await login(two, HOME, user), 200)
    t.equal(await login(one, '198.51.100.3', user), 200)
  })

  t.test('4 wrong current passwords, sent with a token, count too', async (t) => {
    for (let count = 0; count < 3; count++) t.equal(await changePassword(one, HOME, user, 'a wrong one'), 403)
    t.equal(await login(one, '192.0.2.1', user), 429)
    t.equal(await login(one, HOME, user), 200)
  })

  t.test('4 until the password is reset', async (t) => {
    const stranger = await one.createUser()
    await openSql(t, one)`delete from recognised_networks where user_id = ${stranger.id}`
    await attack(one, stranger.email)
    t.equal(await login(one, HOME, stranger), 429, 'an owner who has no recognised network')
    t.equal(
      (await one.inject('POST', '/api/auth/password-reset', { payload: { email: stranger.email } })).statusCode, 202
    )
    const token = await inbox.token(stranger.email)
    const payload = { token, password: 'another long passphrase' }
    t.equal((await one.inject('POST', '/api/auth/password-reset/confirm', { payload })).statusCode, 204)
    t.equal(await login(two, HOME, { email: stranger.email, password: payload.password }), 200)
  })
})

t.test('4 the number of failures is 100 by default', async (t) => {
  const { consecutiveFailures: _, ...limits } = throttle
  const { app, core } = await openCore(t, { throttle: limits })
  const { login } = createThrottle(core)
  await app.ready()
  const attempt = () => login({ email: 'ada@example.com', address: HOME })
  for (let count = 0; count < 9; count++) await (await attempt()).failed()
  const last = await attempt()
  await Promise.all(Array.from({ length: 90 }, async () => (await attempt()).failed()))
  await (await attempt()).failed()
  t.match(await attempt().catch((error) => error), { code: 'TOO_MANY_REQUESTS', retryAfter: 3600 })
  await last.succeeded()
  await t.resolves(attempt())
})

nightly('4 the number of remembered networks and failures is limited', async (t) => {
  const usher = await createUsher(t, { throttle, auditSeconds: 86_400 })
  const sql = openSql(t, usher)
  const user = await usher.createUser()
  await sql`insert into recognised_networks select ${user.id}, 'n' || i, now() - i * interval '1 second' from generate_series(1, 150) i`
  t.equal(await login(usher, HOME, user), 200)
  const networks =
    await sql`select network from recognised_networks where user_id = ${user.id} order by last_used_at desc`
  t.equal(networks.length, 100)
  t.equal(networks[0]!.network, HOME)

  await sql`update recognised_networks set last_used_at = now() - interval '25 hours' where network <> ${HOME}`
  await sql`insert into login_failures select sha256(i::text::bytea), 1 + i % 10, now() from generate_series(1, 101500) i`
  await createUsher(t, usher.options)
  await until('old networks are gone', async () =>
    (await sql`select 1 from recognised_networks where network like 'n%'`).length === 0)
  t.same(await sql`select network from recognised_networks where user_id = ${user.id}`, [{ network: HOME }])
  await until('as many counts as are kept', async () =>
    (await sql`select count(*)::int as rows from login_failures`)[0]!.rows <= 100_000)
  t.same(
    await sql`select count(*)::int as rows from login_failures where count > 1`,
    [{ rows: 91_350 }],
    'the lowest are gone'
  )

  t.equal((await usher.inject('DELETE', `/api/users/${user.id}`, { headers: usher.admin.headers })).statusCode, 204)
  t.same(await sql`select 1 from recognised_networks where user_id = ${user.id}`, [])
})
