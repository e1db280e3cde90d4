import { randomUUID } from 'node:crypto'
import t from 'tap'
import { createUsher, type LoggedIn } from '../helpers/app.ts'
import { cookieOf, FORM, withConsole } from '../helpers/console.ts'
import { nightly } from '../helpers/nightly.ts'
import { startWithEvents } from '../helpers/outbox-events.ts'
import { startProvider } from '../helpers/provider.ts'
import { openSql, untilBlocked } from '../helpers/sql.ts'
import { until } from '../helpers/until.ts'

const generous = { burst: 10_000, perMinute: 10_000 }
const fake = await startProvider(t)
const { usher, events } = await startWithEvents(t, {
  console: true,
  mailer: () => {},
  publicUrl: 'https://example.com',
  providers: { fake: fake.options },
  passwordHash: { memoryKiB: 8, passes: 1 },
  throttle: { account: generous, address: generous, refresh: generous },
})
const { inject, createUser, login, admin, app } = usher
const second = await createUsher(t, usher.options)
const sql = openSql(t, usher)
const { exchange, open, read, send } = withConsole(usher)

/** Creates an admin who has opened the console with a session. */
async function createOwner () {
  const owner = await createUser({ role: 'admin' })
  const cookie = cookieOf(await exchange(owner.cookie))
  return { owner, cookie, id: cookie.split('=')[1]!.split('.')[0]! }
}

const idsOf = async ({ id }: LoggedIn): Promise<string[]> =>
  (await sql`select id from sessions where user_id = ${id} order by id`).map(({ id }) => id)

nightly('18.3 a session of the console ends with the session that has opened it, however that ends', async (t) => {
  const parentOf = async ({ headers }: LoggedIn) =>
    (await inject('GET', '/api/auth/sessions', { headers })).json().find(({ current }: { current: boolean }) => current).id
  const provider = async (owner: LoggedIn) => {
    const [{ id }] = await sql`insert into identities (id, user_id, provider, issuer, subject)
      values (gen_random_uuid(), ${owner.id}, 'fake', ${fake.issuer}, ${owner.id}) returning id` as unknown as [{ id: string }]
    await sql`update sessions set provider_sid = ${owner.id}, identity_id = ${id}
      where user_id = ${owner.id} and not is_console`
    const logoutToken = await fake.sign({
      iss: fake.issuer,
      aud: 'usher',
      iat: Math.floor(Date.now() / 1000),
      jti: randomUUID(),
      sid: owner.id,
      events: { 'http://schemas.openid.net/event/backchannel-logout': {} },
    }, { typ: 'logout+jwt' })
    return inject('POST', '/api/auth/providers/fake/logout', {
      headers: { 'content-type': FORM }, payload: `${new URLSearchParams({ logout_token: logoutToken })}`,
    })
  }
  const ends: Record<string, (owner: LoggedIn) => PromiseLike<unknown>> = {
    logout: ({ headers }) => inject('POST', '/api/auth/logout', { headers }),
    'logout by cookie': ({ cookie }) => inject('POST', '/api/auth/logout', { headers: { cookie } }),
    'end of the session': async (owner) =>
      inject('DELETE', `/api/auth/sessions/${await parentOf(owner)}`, { headers: owner.headers }),
    'end by an admin': async (owner) =>
      inject('DELETE', `/api/users/${owner.id}/sessions/${await parentOf(owner)}`, { headers: admin.headers }),
    'end by the host': async (owner) => app.usher.sessions.end(await parentOf(owner)),
    'a cookie that is used again': async ({ id, cookie }) => {
      await inject('POST', '/api/auth/refresh', { headers: { cookie } })
      await sql`update sessions set rotated_at = array[now() - interval '1 minute'] where user_id = ${id} and not is_console`
      await inject('POST', '/api/auth/refresh', { headers: { cookie } })
    },
    'another login in its place': ({ email, password, cookie }) =>
      inject('POST', '/api/auth/login', { headers: { cookie, origin: 'https://example.com' }, payload: { email, password } }),
    'more sessions than a user may have': async ({ id }) => {
      for (let count = 0; count < 100; count++) await app.usher.sessions.start(id)
    },
    'a logout at the provider': provider,
    'end by hand': async (owner) => sql`delete from sessions where id = ${await parentOf(owner)}`,
    expiry: async (owner) => {
      await sql`update sessions set expires_at = now() where id = ${await parentOf(owner)}`
      // The purge of a node that starts.
      await (await createUsher(t, usher.options)).app.close()
    },
  }
  for (const [how, end] of Object.entries(ends)) {
    const { owner, cookie, id } = await createOwner()
    t.equal((await read('/console', cookie)).statusCode, 200)
    const before = await idsOf(owner)
    t.equal(before.length, 2)
    await end(owner)
    await until(`${how}: both have ended`, async () => !(await idsOf(owner)).some((id) => before.includes(id)))
    for (const { inject, prefix } of [usher, second]) {
      t.equal((await inject('GET', '/console', { headers: { cookie } })).statusCode, 303, how)
      const late = await inject('POST', '/console/users', {
        headers: { 'content-type': FORM, 'sec-fetch-site': 'same-origin', cookie },
        payload: 'name=Late&email=late%40example.com&role=admin',
      })
      t.equal(late.statusCode, 401, `${how}: a form ${prefix}`)
    }
    t.equal((await sql`select from ended_sessions where id = ${id}`).length, 1, `${how}: nodes learn of it`)
    if (how !== 'end by hand') {
      await until(`${how}: an event for each`, () => before.every((ended) =>
        events.some(({ type, data }) => type === 'session.ended' && data.sessionId === ended)))
    }
  }
  t.equal((await sql`select from users where email = 'late@example.com'`).length, 0)
})

t.test('18.3 other sessions of the console go on, and ending it leaves the session that has opened it', async (t) => {
  const { owner, cookie } = await createOwner()
  const { headers, cookie: another } = await login(owner)
  const own = await open(owner)
  await inject('POST', '/api/auth/logout', { headers: { cookie: another } })
  t.equal((await inject('GET', '/api/protected', { headers })).statusCode, 401)
  for (const open of [cookie, own]) t.equal((await read('/console', open)).statusCode, 200)
  t.equal((await send('/console/logout', {}, { cookie })).statusCode, 303)
  t.equal((await inject('GET', '/api/protected', { headers: owner.headers })).statusCode, 200)
  t.equal((await read('/console', own)).statusCode, 200, 'one that another login has opened')
})

t.test('18.3 it expires with the session that has opened it at the latest', async (t) => {
  const owner = await createUser({ role: 'admin' })
  await sql`update sessions set expires_at = now() + interval '5 minutes' where user_id = ${owner.id}`
  await exchange(owner.cookie)
  const [parent, derived] = await sql`select expires_at as at from sessions where user_id = ${owner.id} order by is_console`
  t.same(derived!.at, parent!.at)
})

t.test('18.3 a session that ends while it opens the console opens nothing', async (t) => {
  const owner = await createUser({ role: 'admin' })
  await exchange(owner.cookie)
  await sql`delete from sessions where user_id = ${owner.id} and is_console`
  let opening: ReturnType<typeof exchange>
  const holder = openSql(t, usher)
  // The statement has begun, and the check before it has found the session.
  await holder.begin(async (trx) => {
    await trx`select from recognised_networks where user_id = ${owner.id} for update`
    opening = exchange(owner.cookie)
    await untilBlocked(sql, usher)
    await inject('POST', '/api/auth/logout', { headers: owner.headers })
  })
  const response = await opening!
  t.match(response.headers.location, /^\/login\?returnTo=/)
  t.equal(response.headers['set-cookie'], undefined)
  t.strictSame(await idsOf(owner), [])
})

nightly('18.3 the end of all sessions and the end of one of them do not block each other', async (t) => {
  for (let round = 0; round < 20; round++) {
    const { owner } = await createOwner()
    // The row is behind that of the other session now.
    await inject('POST', '/api/auth/refresh', { headers: { cookie: owner.cookie } })
    const responses = await Promise.all([
      inject('DELETE', `/api/users/${owner.id}/sessions`, { headers: admin.headers }),
      second.inject('POST', '/api/auth/logout', { headers: { cookie: owner.cookie } }),
    ])
    for (const { statusCode } of responses) t.ok([204, 401].includes(statusCode), `${statusCode}`)
    t.strictSame(await idsOf(owner), [])
  }
})
