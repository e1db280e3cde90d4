import { decodeJwt } from 'jose'
import Fastify from 'fastify'
import t from 'tap'
import plugin, { type UsherGraphQLContext } from '../../app.ts'
import { createUsher, type LoggedIn } from '../helpers/app.ts'
import { createMailer } from '../helpers/mail.ts'
import { nightly } from '../helpers/nightly.ts'
import { openSql, untilBlocked } from '../helpers/sql.ts'

const usher = await createUsher(t)
const { inject, createUser, login, admin } = usher
const sql = openSql(t, usher, 4)

const stepUp = (user: LoggedIn, payload: object) =>
  inject('POST', '/api/auth/step-up', { headers: user.headers, payload })
const deleteOwn = (user: Pick<LoggedIn, 'id' | 'headers'>) =>
  inject('DELETE', `/api/users/${user.id}`, { headers: user.headers })
const bearer = (token: string) => ({ authorization: `Bearer ${token}` })
const actionsOf = async ({ id }: LoggedIn) =>
  (await sql`select action from audit where user_id = ${id} order by id`).map(({ action }) => action)

/** Makes the authentication of a user's sessions older than any limit. */
const age = ({ id }: LoggedIn) => sql`update sessions set auth_time = now() - interval '1 hour' where user_id = ${id}`
/** Gives a user a second factor, as if an app had been set up. */
const addTotp = ({ id }: LoggedIn) => sql`insert into totp (user_id, secret, confirmed_at) values (${id}, 'x', now())`

t.test('16.1 a token and a session say how and when their user was authenticated, also after a refresh', async (t) => {
  const user = await createUser()
  const { amr, auth_time: authTime } = decodeJwt(user.token)
  t.strictSame(amr, ['pwd'])
  t.ok(Math.abs(Number(authTime) - Date.now() / 1000) < 60)
  await age(user)
  const refreshed = decodeJwt(
    (await inject('POST', '/api/auth/refresh', { headers: { cookie: user.cookie } })).json().token
  )
  t.strictSame(refreshed.amr, ['pwd'])
  t.ok(Number(authTime) - Number(refreshed.auth_time) >= 3590, 'a refresh is no authentication')
})

t.test('16.2 deleting the own account needs a recent authentication, which POST /api/auth/step-up renews', async (t) => {
  const user = await createUser()
  await age(user)
  const refused = await deleteOwn(user)
  t.strictSame([refused.statusCode, refused.json().code], [403, 'STEP_UP_REQUIRED'])
  t.equal(refused.headers['www-authenticate'], 'Bearer error="insufficient_user_authentication", max_age=600')

  const response = await stepUp(user, { password: user.password })
  t.equal(response.statusCode, 200)
  const { token, user: shown } = response.json()
  t.equal(shown.id, user.id)
  t.strictSame(
    [decodeJwt(token).sid, decodeJwt(token).amr], [decodeJwt(user.token).sid, ['pwd']], 'of the same session'
  )
  t.ok(Number(decodeJwt(token).auth_time) > Number(decodeJwt(user.token).auth_time) - 1)
  t.strictSame((await actionsOf(user)).slice(-1), ['step-up'])
  t.equal((await deleteOwn({ id: user.id, headers: bearer(token) })).statusCode, 204)
})

t.test('16.2 an admin deletes others with an old authentication, and changes of the own name need none', async (t) => {
  const [user, other] = [await createUser(), await createUser()]
  await Promise.all([age(admin), age(user)])
  t.equal((await inject('DELETE', `/api/users/${other.id}`, { headers: admin.headers })).statusCode, 204)
  const payload = { name: 'Another', email: user.email }
  t.equal((await inject('PUT', `/api/users/${user.id}`, { headers: user.headers, payload })).statusCode, 200)
})

t.test('16.2 a wrong password is 403, counts as a failed login, and is in the account log', async (t) => {
  const user = await createUser()
  const response = await stepUp(user, { password: 'not the password' })
  t.strictSame([response.statusCode, response.json().code], [403, 'WRONG_PASSWORD'])
  t.strictSame((await actionsOf(user)).slice(-1), ['step-up.failed'])
  const own = await createUsher(t, { throttle: { account: { burst: 2, perMinute: 0.1 } } })
  const victim = await own.createUser()
  const attempt = () =>
    own.inject('POST', '/api/auth/step-up', { headers: victim.headers, payload: { password: 'wrong' } })
  t.strictSame(
    [(await attempt()).statusCode, (await attempt()).statusCode, (await attempt()).statusCode], [403, 403, 429]
  )
})

t.test('16.2 hostile bodies and missing tokens get 400 and 401', async (t) => {
  const user = await createUser()
  for (const payload of [{}, { password: 5 }, { password: 'x'.repeat(10_000) }, []]) {
    t.equal((await stepUp(user, payload)).statusCode, 400, JSON.stringify(payload).slice(0, 20))
  }
  t.equal((await inject('POST', '/api/auth/step-up', { payload: { password: user.password } })).statusCode, 401)
  await inject('POST', '/api/auth/logout', { headers: user.headers })
  t.equal((await stepUp(user, { password: user.password })).statusCode, 401, 'the session has ended')
})

t.test('16.2 whoever has a second factor cannot step up with the password alone, nor change address or password', async (t) => {
  const user = await createUser()
  await addTotp(user)
  const response = await stepUp(user, { password: user.password })
  t.strictSame([response.statusCode, response.json().code], [403, 'SECOND_FACTOR_MISSING'])
  const put = (email: string) =>
    inject('PUT', `/api/users/${user.id}`, { headers: user.headers, payload: { name: 'Ada', email } })
  t.equal((await put('other@example.com')).json().code, 'STEP_UP_REQUIRED')
  t.equal((await put(user.email.toUpperCase())).statusCode, 200, 'the same mailbox')
  const change = await inject('PUT', '/api/auth/password', {
    headers: user.headers, payload: { currentPassword: user.password, password: 'quiet lantern river' },
  })
  t.equal(change.json().code, 'STEP_UP_REQUIRED')
  t.equal(
    (await deleteOwn(user)).json().code, 'STEP_UP_REQUIRED', 'the session is recent, but without the second factor'
  )
})

nightly('16.2 who has a second factor steps up also for a new address that takes effect by a link', async (t) => {
  const inbox = createMailer()
  const own = await createUsher(t, { mailer: inbox.mailer })
  const user = await own.createUser()
  const patch = () => own.inject('PATCH', `/api/users/${user.id}`, {
    headers: { ...user.headers, 'content-type': 'application/merge-patch+json', prefer: 'respond-async' },
    payload: { email: 'thief@example.com' },
  })
  await openSql(t, own)`insert into totp (user_id, secret, confirmed_at) values (${user.id}, 'x', now())`
  t.equal((await patch()).json().code, 'STEP_UP_REQUIRED')
  await openSql(t, own)`delete from totp`
  t.equal((await patch()).statusCode, 200)
  t.equal((await inbox.of('thief@example.com', 1)).length, 1, 'only the second request has sent a link')
})

t.test('16.2 GraphQL has the same error, with the age that suffices', async (t) => {
  const own = await createUsher(t, {
    graphql: {
      typeDefs: 'extend type Mutation { leave: Boolean! }',
      resolvers: {
        Mutation: {
          async leave (_root: unknown, _arguments: unknown, { usher, actor }: UsherGraphQLContext) {
            await usher.users.delete(actor!.id, { actor })
            return true
          },
        },
      },
    },
  })
  const user = await own.createUser()
  await openSql(t, own)`update sessions set auth_time = now() - interval '1 hour'`
  const { errors } =
    (await own.inject('POST', '/graphql', { headers: user.headers, payload: { query: 'mutation { leave }' } })).json()
  t.strictSame(errors[0].extensions, { code: 'STEP_UP_REQUIRED', maxAge: 600 })
})

t.test('16.2 a route of the host asks for the age of an authentication that it needs', async (t) => {
  const app = Fastify()
  t.teardown(() => app.close())
  await app.register(plugin, usher.options)
  app.get('/vault', { onRequest: app.usher.allow('sessions:list', { maxAge: 60 }) }, async () => 'gold')
  app.get('/hall', { onRequest: app.usher.allow('sessions:list', { maxAge: 86_400 }) }, async () => 'dust')
  const user = await createUser()
  const get = async (url: string, headers: object) => (await app.inject({ url, headers: { ...headers } })).statusCode
  t.strictSame([await get('/vault', user.headers), await get('/hall', user.headers)], [200, 200])
  await age(user)
  const refreshed = (await inject('POST', '/api/auth/refresh', { headers: { cookie: user.cookie } })).json()
  const response = await app.inject({ url: '/vault', headers: bearer(refreshed.token) })
  t.strictSame([response.statusCode, response.json().code], [403, 'STEP_UP_REQUIRED'])
  t.equal(await get('/hall', bearer(refreshed.token)), 200)
  const { token } = (await stepUp({ ...user, headers: bearer(refreshed.token) }, { password: user.password })).json()
  t.equal(await get('/vault', bearer(token)), 200)
})

t.test('16.1 a login of a user with a second factor gets a challenge and no session, whichever way it starts', async (t) => {
  const user = await createUser()
  await addTotp(user)
  await sql`delete from sessions where user_id = ${user.id}`
  const response = await inject('POST', '/api/auth/login', { payload: { email: user.email, password: user.password } })
  t.equal(response.statusCode, 401)
  t.match(response.json(), { code: 'SECOND_FACTOR_REQUIRED', challenge: /^[\w-]{43}$/, methods: ['totp'] })
  t.notOk(response.headers['set-cookie'])
  const wrong = await inject(
    'POST', '/api/auth/login', { payload: { email: user.email, password: 'not the password' } }
  )
  t.strictSame(wrong.json(), { error: 'Email or password is wrong', code: 'INVALID_CREDENTIALS' })
  await t.rejects(usher.app.usher.sessions.start(user.id), { statusCode: 401, code: 'SECOND_FACTOR_REQUIRED' })
  t.strictSame((await sql`select id from sessions where user_id = ${user.id}`).length, 0)
  const { token } = await usher.app.usher.sessions.start(user.id, { amr: ['fpt', 'mfa'] })
  t.strictSame(decodeJwt(token).amr, ['fpt', 'mfa'], 'the host vouches for it')
})

t.test('16.1 a second factor that is added while a login runs is required by that login', async (t) => {
  const user = await createUser()
  await sql`delete from sessions where user_id = ${user.id}`
  const { promise: added, resolve: commit } = Promise.withResolvers<void>()
  const { promise: locked, resolve: hasLock } = Promise.withResolvers<void>()
  const adding = sql.begin(async (trx) => {
    await trx`select 1 from users where id = ${user.id} for no key update`
    await trx`insert into totp (user_id, secret, confirmed_at) values (${user.id}, 'x', now())`
    hasLock()
    await added
  })
  await locked
  const loggingIn = inject('POST', '/api/auth/login', { payload: { email: user.email, password: user.password } })
  await untilBlocked(sql, usher)
  commit()
  await adding
  t.equal((await loggingIn).json().code, 'SECOND_FACTOR_REQUIRED')
  t.equal((await sql`select id from sessions where user_id = ${user.id}`).length, 0)
})

t.test('16.1 a user has at most ten challenges, and a repair of the account voids them', async (t) => {
  const user = await createUser()
  await addTotp(user)
  for (let count = 0; count < 12; count++) {
    await inject('POST', '/api/auth/login', { payload: { email: user.email, password: user.password } })
  }
  t.equal((await sql`select hash from login_challenges where user_id = ${user.id}`).length, 10)
  await inject('DELETE', `/api/users/${user.id}/sessions`, { headers: admin.headers })
  t.equal((await sql`select hash from login_challenges where user_id = ${user.id}`).length, 0)
})

nightly('16.4 with `secondFactor`, whoever must have one can only log out, step up and add one', async (t) => {
  const strict = await createUsher(t, { ...usher.options, secondFactor: 'everyone' })
  const user = await strict.createUser({ email: 'due@example.com' }).catch(() => undefined)
  t.equal(user, undefined, 'the admin cannot create users without one')
  const { headers } = await login(await createUser())
  const admins = await createUsher(t, { ...usher.options, secondFactor: 'admins' })
  t.equal((await admins.inject('GET', '/api/protected', { headers })).statusCode, 200)
  const refused = await strict.inject('GET', '/api/protected', { headers })
  t.strictSame([refused.statusCode, refused.json().code], [403, 'SECOND_FACTOR_MISSING'])
  const graphql = await strict.inject('POST', '/graphql', { headers, payload: { query: '{ users { nodes { id } } }' } })
  t.match(graphql.json().errors?.[0].extensions.code ?? graphql.json().code, 'SECOND_FACTOR_MISSING')
  t.equal((await admins.inject('GET', '/api/protected', { headers: admin.headers })).statusCode, 403)
  t.equal((await strict.inject('POST', '/api/auth/logout', { headers })).statusCode, 204)
})
