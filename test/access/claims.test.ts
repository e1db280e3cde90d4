import { Type } from '@sinclair/typebox'
import Fastify from 'fastify'
import { createLocalJWKSet, decodeJwt, jwtVerify } from 'jose'
import t, { type Test } from 'tap'
import usher, { type Actor, type UsherOptions } from '../../app.ts'
import { createUsher, sharedUsher, withUsers, type TestUsher } from '../helpers/app.ts'
import { slow } from '../helpers/deadlines.ts'
import { post } from '../helpers/graphql.ts'
import { nightly } from '../helpers/nightly.ts'
import { openSql } from '../helpers/sql.ts'

type Claims = NonNullable<UsherOptions['claims']>

/** Mounts Usher in a host that has a route, which shows its actor. */
async function mount (t: Test, claims: Claims | undefined, rest: UsherOptions = {}) {
  const base = await sharedUsher(rest)
  const lines: string[] = []
  const app =
    Fastify({ pluginTimeout: 0, logger: { level: 'error', stream: { write: (line: string) => { lines.push(line) } } } })
  t.teardown(() => app.close())
  const options = { ...base.options, claims }
  await app.register(usher, options)
  const seen: Actor[] = []
  app.get('/actor', { onRequest: app.usher.authenticate }, async ({ actor }) => seen.push(actor!))
  await app.ready()
  const inject: TestUsher['inject'] = (method, url, rest) => app.inject({ method: method!, url, ...rest })
  const tryLogin = ({ email, password } = base.admin) =>
    inject('POST', '/api/auth/login', { payload: { email, password } })
  const actorOf = async (token: string): Promise<Actor | undefined> => {
    const { statusCode } = await inject('GET', '/actor', { headers: { authorization: `Bearer ${token}` } })
    return statusCode === 200 ? seen.at(-1) : undefined
  }
  return { base, app, options, inject, lines, tryLogin, actorOf }
}

const returned = (value: unknown): Claims => () => value as Record<string, unknown>

t.test('12.3 claims are added at login and refresh, to tokens that other services can verify', async (t) => {
  const users: unknown[] = []
  const node = await mount(t, async (user) => {
    users.push(user)
    return {
      plan: (user as { plan?: string }).plan,
      org: { id: 7, roles: ['a', 'é', null] },
      2: true,
      1: -0.5,
      none: undefined,
    }
  }, { userFields: Type.Object({ plan: Type.String({ default: 'free' }), bio: Type.Optional(Type.String()) }) })
  const { base, inject, tryLogin, actorOf } = node
  const user = await base.createUser()
  const logged = await tryLogin(user)
  t.equal(logged.statusCode, 200)
  const { token } = logged.json()
  const added = { plan: 'free', org: { id: 7, roles: ['a', 'é', null] }, 2: true, 1: -0.5 }
  t.match(users[0], {
    id: user.id,
    name: 'Somebody',
    email: user.email,
    role: 'user',
    disabled: false,
    emailVerified: false,
    createdAt: Date,
    updatedAt: Date,
    plan: 'free',
  })
  t.notMatch(JSON.stringify(users), /argon2|passwordHash|bio/)

  const { payload } = await jwtVerify(
    token,
    createLocalJWKSet((await inject('GET', '/.well-known/jwks.json')).json()),
    { issuer: 'usher', audience: 'usher' }
  )
  const { iss, sub, aud, exp, iat, sid, role, amr, auth_time: authTime, ...rest } = payload
  t.same(rest, added)
  t.match({ sub, role, exp: exp! - iat! }, { sub: user.id, role: 'user', exp: 900 })
  const actor = (await actorOf(token))!
  const session = { sessionId: sid, keyId: null, actions: null, amr, authTime, organization: null }
  t.same(actor, { id: user.id, role: 'user', ...session, claims: added })
  t.ok([actor.claims, actor.claims.org, (actor.claims.org as { roles: object }).roles].every(Object.isFrozen))

  await base.inject('PATCH', `/api/users/${user.id}`, { headers: base.admin.headers, payload: { plan: 'pro' } })
  const [{ name, value }] = logged.cookies as [{ name: string, value: string }]
  const refreshed = await inject('POST', '/api/auth/refresh', { headers: { cookie: `${name}=${value}` } })
  t.equal((await actorOf(refreshed.json().token))!.claims.plan, 'pro')
  t.equal((await actorOf(token))!.claims.plan, 'free', 'the former token says what it said')
})

nightly('12.3 without the option, the claims of every actor are an empty frozen object', async (t) => {
  const node = await mount(t, returned({ plan: 'pro' }))
  const { base, options, tryLogin, actorOf } = node
  t.same((await actorOf(base.admin.token))!.claims, {}, 'a token from before the option was set')
  const { token } = (await tryLogin()).json()
  t.same((await actorOf(token))!.claims, { plan: 'pro' })
  const without = await mount(t, undefined, { ...options, claims: undefined })
  const { claims } = (await without.actorOf(token))!
  t.same(claims, {}, 'whatever the token says')
  t.ok(Object.isFrozen(claims))
})

nightly('12.3 claims that a token cannot have make the login fail with 500, and the log says why', async (t) => {
  let answer: Claims = returned({})
  const { base, inject, lines, tryLogin } = await mount(
    t, (user) => answer(user), { deadlines: { ...slow, claims: 500 } }
  )
  const circular: Record<string, unknown> = {}
  circular.self = circular
  const wrong: [claims: Claims, message: string | RegExp][] = [
    ...['iss', 'sub', 'aud', 'exp', 'nbf', 'iat', 'jti', 'sid', 'role'].map((name) =>
      [returned({ plan: 'x', [name]: 'admin' }), `claims must not return ${name}, which is reserved`] as [
        Claims, string
      ]),
    [returned(JSON.parse('{ "__proto__": 1 }')), 'claims must not return __proto__'],
    [returned({ a: 'x'.repeat(1017) }), 'what claims returns must be at most 1024 bytes of JSON'],
    [returned({ a: 'é'.repeat(509) }), 'what claims returns must be at most 1024 bytes of JSON'],
    ...[undefined, null, 'x', 1, ['a']]
      .map((value) => [returned(value), 'claims must return an object'] as [Claims, string]),
    ...[() => 1, Symbol('a'), 1n, new Date(), new Map()]
      .map((value) => [returned({ a: value }), 'what claims returns must be JSON'] as [Claims, string]),
    [returned({ a: [undefined] }), 'what claims returns must be JSON'],
    [returned({ a: { b: NaN } }), 'what claims returns must not contain a number that is not finite'],
    [returned({ a: '\ud800' }), 'what claims returns must not contain control characters'],
    [returned(circular), 'what claims returns must have at most 32 levels'],
    [() => { throw new Error('no plan today') }, /claims has failed.*no plan today/],
    [async () => Promise.reject(new Error('no plan today')), /claims has failed.*no plan today/],
    [() => { throw Object.assign(new Error('yours'), { statusCode: 403 }) }, 'claims has failed'],
    [() => { throw 'text' }, 'claims has failed'], // eslint-disable-line no-throw-literal
    [() => new Promise(() => {}), 'claims has not returned within 0.5 seconds'],
  ]
  const sessions = async () => (await openSql(t, base)`select id from sessions`).length
  const before = await sessions()
  for (const [claims, message] of wrong) {
    answer = claims
    lines.length = 0
    const response = await tryLogin()
    t.same(
      [response.statusCode, response.json(), response.cookies],
      [500, { error: 'The server failed', code: 'INTERNAL_ERROR' }, []],
      String(message)
    )
    t.match(lines.join('').replaceAll('\\n', ' '), message)
  }
  t.equal(await sessions(), before, 'no session is left')
  for (const claims of [{ a: 'x'.repeat(1016) }, { a: 'é'.repeat(508) }, {}]) {
    answer = returned(claims)
    const { token } = (await tryLogin()).json()
    t.match(decodeJwt(token), claims)
    t.equal((await inject('GET', '/api/protected', { headers: { authorization: `Bearer ${token}` } })).statusCode, 200)
  }
})

t.test('12.3 a refresh that fails for the claims does not end the session', async (t) => {
  let fails = false
  const { base, inject, tryLogin } = await mount(t, () => {
    if (fails) throw new Error('not now')
    return { plan: 'pro' }
  })
  const cookieOf = ({ cookies: [{ name, value }] }: { cookies: [{ name: string, value: string }] }) =>
    `${name}=${value}`
  const refresh = (cookie: string) => inject('POST', '/api/auth/refresh', { headers: { cookie } })
  const first = cookieOf(await tryLogin(await base.createUser()) as never)
  fails = true
  const failed = await refresh(first)
  t.equal(failed.statusCode, 500)
  const next = cookieOf(failed as never)
  t.not(next, first)
  fails = false
  const response = await refresh(next)
  t.equal(response.statusCode, 200)
  t.match(decodeJwt(response.json().token), { plan: 'pro' })
})

t.test('12.3 rules of the policy see claims, and what is rendered for one token is not sent for another', async (t) => {
  let plan = 'pro'
  const options: UsherOptions = {
    claims: () => ({ plan }),
    policy: { 'users:read-email': (reader) => reader?.claims.plan === 'pro' },
  }
  const base = await createUsher(t, options)
  const user = await base.createUser()
  plan = 'free'
  const downgraded = await base.login(user)
  const both = [user, downgraded]
  const lists = await Promise.all(
    both.map(async ({ headers }) => (await base.inject('GET', '/api/users', { headers })).json())
  )
  t.same(lists.map(([first]) => 'email' in first), [true, false])
  const answers = await Promise.all(both.map((reader) => post(base, { query: '{ me { email } }' }, reader)))
  t.same(answers.map(({ data }) => data.me.email), [user.email, null])
})

t.test('12.3 claims must be a function', async (t) => {
  const register = async () =>
    Fastify().register(usher, { databaseUrl: 'postgres://127.0.0.1/none', claims: {} as never })
  await t.rejects(register(), { message: 'usher: claims must be a function' })
})

nightly('12.3 two mounts have claims of their own', async (t) => {
  const { options } = await sharedUsher()
  const app = Fastify({ pluginTimeout: 0 })
  t.teardown(() => app.close())
  const mounts = [{ ...options, prefix: '/a', decoratorName: 'a', claims: returned({ of: 'a' }) }, {
    ...options, schema: `${options.schema}_b`.slice(-40), prefix: '/b', decoratorName: 'b',
  }]
  for (const given of mounts) await app.register(usher, given)
  await app.ready()
  const [a, b] = [await withUsers(app, mounts[0]!), await withUsers(app, mounts[1]!)]
  t.match(decodeJwt(a.admin.token), { of: 'a' })
  t.notOk('of' in decodeJwt(b.admin.token))
})
