import { randomUUID } from 'node:crypto'
import t from 'tap'
import { codeOf } from '../../../plugins/sign-in/totp/codes.ts'
import { createKey, createService } from '../../helpers/api-keys.ts'
import { createUsher, type TestUsher } from '../../helpers/app.ts'
import { openSocket } from '../../helpers/graphql.ts'
import { sharedInbox as inbox, tokenIn } from '../../helpers/mail.ts'
import { withPasskeys } from '../../helpers/passkeys.ts'
import { openSql } from '../../helpers/sql.ts'
import { sharedTotp } from '../../helpers/totp.ts'

const optional = await sharedTotp()
// The same service after the option was set.
const strict = await createUsher(t, { ...optional.options, secondFactor: 'everyone' })
const admins = await createUsher(t, { ...optional.options, secondFactor: 'admins' })
const sql = openSql(t, optional)

type Headers = { authorization: string }
const bearer = (token: string): Headers => ({ authorization: `Bearer ${token}` })

/** Returns the status, or the code of the error, of a request that needs a second factor. */
async function ask ({ inject }: TestUsher, headers: Headers): Promise<number | string> {
  const response = await inject('GET', '/api/protected', { headers })
  return response.statusCode === 200 ? 200 : response.json().code
}

/** Sets up an app with nothing but the routes that are allowed without one. Returns the headers with the new token. */
async function enrol ({ inject }: TestUsher, headers: Headers): Promise<Headers> {
  const { password, ...factors } = (await inject('GET', '/api/auth/second-factor', { headers })).json()
  t.type(password, 'boolean')
  t.same(factors, {
    totp: null, recoveryCodesLeft: 0, passkeys: 0, mail: false, providers: [],
  })
  const { secret } = (await inject('POST', '/api/auth/totp', { headers })).json()
  const payload = { code: codeOf(secret, Math.floor(Date.now() / 30_000)) }
  const response = await inject('POST', '/api/auth/totp/confirm', { headers, payload })
  return bearer(response.json().token)
}

t.test('16.4 sessions from before the option was set can enrol, and then everything works', async (t) => {
  const user = await optional.createUser()
  t.equal(await ask(optional, user.headers), 200)
  t.equal(await ask(strict, user.headers), 'SECOND_FACTOR_MISSING')
  const headers = await enrol(strict, user.headers)
  t.equal(await ask(strict, headers), 200)
  t.equal(await ask(strict, user.headers), 'SECOND_FACTOR_MISSING', 'the former token does not say so')
  const query = { query: '{ users { nodes { id } } }' }
  t.notOk((await strict.inject('POST', '/graphql', { headers, payload: query })).json().errors)
  const mutation = { mutation: 'mutation { createPost(input: { title: "a", content: "b" }) { id } }' }
  t.notOk((await strict.inject('POST', '/graphql', { headers, payload: mutation })).json().errors)
  const refreshed = await strict.inject('POST', '/api/auth/refresh', { headers: { cookie: user.cookie } })
  t.equal(refreshed.statusCode, 200)
  t.equal(await ask(strict, bearer(refreshed.json().token)), 200, 'a refresh keeps it')
})

t.test('16.4 where one is required, who has only the password of a user with a passkey can add nothing', async (t) => {
  const owner = await optional.createUser()
  const { authenticator } = await optional.register(owner)
  const { inject, login, creationOptions } = withPasskeys(strict)

  const thief = await login(owner)
  const refused = await inject('POST', '/api/auth/totp', { headers: thief.headers })
  t.same([refused.statusCode, refused.json().code], [403, 'STEP_UP_REQUIRED'])
  await t.rejects(creationOptions(thief), /STEP_UP_REQUIRED/)
  const withPassword = { headers: thief.headers, payload: { password: owner.password } }
  t.equal((await inject('POST', '/api/auth/step-up', withPassword)).json().code, 'SECOND_FACTOR_MISSING')

  const { headers } = await login(owner)
  const credential = authenticator.get((await inject('POST', '/api/auth/step-up/options', { headers })).json())
  const { token } = (await inject('POST', '/api/auth/step-up', { headers, payload: { credential } })).json()
  t.equal((await inject('POST', '/api/auth/totp', { headers: bearer(token) })).statusCode, 200, 'the owner can')
  t.equal((await optional.inject('POST', '/api/auth/totp', { headers: (await login(owner)).headers })).statusCode, 200,
    'where none is required, a passkey makes nothing mandatory')
})

t.test('16.4 without a second factor, nothing but enrolling is possible', async (t) => {
  const { headers, id, cookie } = await optional.createUser()
  const { inject } = strict
  const requests = [
    ['GET', '/api/auth/sessions', undefined], ['DELETE', '/api/auth/sessions', undefined],
    ['PUT', '/api/auth/password', {}], ['GET', `/api/users/${id}/sessions`, undefined], ['PUT', `/api/users/${id}`, {}],
    ['PATCH', `/api/users/${id}`, {}], ['DELETE', `/api/users/${id}`, undefined], ['POST', '/api/users', {}],
    ['GET', '/api/audit', undefined], ['POST', '/api/uploads', {}], ['GET', '/api/uploads/usage', undefined],
    ['POST', `/api/users/${id}/email-verification`, undefined],
  ] as const
  for (const [method, path, payload] of requests) {
    const response = await inject(method, path, { headers, ...payload && { payload } })
    t.same([response.statusCode, response.json().code], [403, 'SECOND_FACTOR_MISSING'], `${method} ${path}`)
  }
  for (const payload of [{ query: '{ users { nodes { id } } }' }, {
    mutation: 'mutation { createPost(input: { title: "a", content: "b" }) { id } }',
  }]) {
    t.match((await inject('POST', '/graphql', { headers, payload })).json(), {
      errors: [{ extensions: { code: 'SECOND_FACTOR_MISSING' } }],
    })
  }
  t.equal((await inject('GET', '/api/auth/second-factor', { headers })).statusCode, 200)
  t.equal(
    (await inject('POST', '/api/auth/refresh', { headers: { cookie } })).statusCode, 200, 'sessions can be refreshed'
  )
  t.equal((await inject('POST', '/api/auth/logout', { headers })).statusCode, 204)
})

t.test('17.1 a key has the second factor of the session that created it, and that of a service user needs none', async (t) => {
  const user = await optional.createUser()
  const { headers } = await createKey(optional, user)
  t.equal(await ask(optional, headers), 200)
  t.equal(await ask(strict, headers), 'SECOND_FACTOR_MISSING')
  const another = await createKey(strict, { headers: await enrol(strict, user.headers) })
  t.equal(await ask(strict, another.headers), 200)
  t.equal(await ask(strict, headers), 'SECOND_FACTOR_MISSING', 'the former one does not get it')
  const userId = await createService(optional, { email: `${randomUUID()}@example.com` })
  t.equal(await ask(strict, (await createKey(optional, optional.admin, { userId })).headers), 200)
})

t.test('16.4 sockets open with the second factor only', async (t) => {
  const user = await optional.createUser()
  const refused = await openSocket(t, strict)
  refused.send({ type: 'connection_init', payload: user.headers })
  t.equal(await refused.closed, 4403)
  const headers = await enrol(strict, user.headers)
  const socket = await (await openSocket(t, strict)).init(headers)
  t.ok((await socket.run('{ users { nodes { id } } }')).data)
})

t.test('16.4 the first admin enrols after the first login, and works', async (t) => {
  const { schema, ...options } = optional.options
  const own = await createUsher(t, { ...options, secondFactor: 'admins' })
  t.not(own.options.schema, schema)
  t.equal(await ask(own, own.admin.headers), 'SECOND_FACTOR_MISSING')
  const headers = await enrol(own, own.admin.headers)
  const payload = { name: 'Ada', email: 'ada@example.com', password: 'violet engine notes' }
  t.equal((await own.inject('POST', '/api/users', { headers, payload })).statusCode, 201)
  t.equal(await ask(own, (await own.login(payload)).headers), 200, 'who is no admin needs none')
})

t.test('16.4 an invited user sets a password, logs in, and enrols', async (t) => {
  const { id, email } = await strict.app.usher.users.create({ name: 'Invited', email: `${randomUUID()}@example.com` })
  t.equal(
    (await optional.inject('POST', `/api/users/${id}/invitation`, { headers: optional.admin.headers })).statusCode, 202
  )
  const token = tokenIn((await inbox.of(email, 1))[0]!)
  const password = 'quiet lantern river'
  t.equal(
    (await strict.inject('POST', '/api/auth/password-reset/confirm', { payload: { token, password } })).statusCode, 204
  )
  const user = await strict.login({ email, password })
  t.equal(await ask(strict, user.headers), 'SECOND_FACTOR_MISSING')
  t.equal(await ask(strict, await enrol(strict, user.headers)), 200)
})

t.test('16.4 a user without a password, whose session the host has started, enrols', async (t) => {
  const { id } = await strict.app.usher.users.create({ name: 'Guest', email: `${randomUUID()}@example.com` })
  const { token } = await strict.app.usher.sessions.start(id)
  t.equal(await ask(strict, bearer(token)), 'SECOND_FACTOR_MISSING')
  t.equal(await ask(strict, await enrol(strict, bearer(token))), 200)
})

t.test('16.4 a session that is too old steps up with the password, and enrols', async (t) => {
  const user = await optional.createUser()
  await sql`update sessions set auth_time = now() - interval '1 day' where user_id = ${user.id}`
  const refused = await strict.inject('POST', '/api/auth/totp', { headers: user.headers })
  t.equal(refused.json().code, 'STEP_UP_REQUIRED')
  const { token } = (await strict.inject(
    'POST', '/api/auth/step-up', { headers: user.headers, payload: { password: user.password } }
  )).json()
  t.equal(await ask(strict, await enrol(strict, bearer(token))), 200)
})

t.test('16.4 who becomes an admin must enrol, and who is an admin no more need not', async (t) => {
  const user = await optional.createUser()
  t.equal(await ask(admins, user.headers), 200)
  await optional.app.usher.users.update(user.id, { role: 'admin' })
  const asAdmin = await admins.login(user)
  t.equal(await ask(admins, asAdmin.headers), 'SECOND_FACTOR_MISSING')
  await optional.app.usher.users.update(user.id, { role: 'user' })
  t.equal(await ask(admins, (await admins.login(user)).headers), 200)
})

t.test('16.4 the host and the operator act without a second factor, and help who has lost it', async (t) => {
  const user = await optional.createUser()
  await enrol(strict, user.headers)
  const { users, credentials } = strict.app.usher
  t.equal((await users.get(user.id)).id, user.id)
  await credentials.resetSecondFactor(user.id)
  const again = await strict.login(user)
  t.equal(await ask(strict, again.headers), 'SECOND_FACTOR_MISSING')
  t.equal(await ask(strict, await enrol(strict, again.headers)), 200)
})

t.test('16.4 who removes the app works on in the session that has used it, and enrols after the next login', async (t) => {
  const user = await optional.createUser()
  const headers = await enrol(strict, user.headers)
  t.equal((await strict.inject('DELETE', '/api/auth/totp', { headers })).statusCode, 204)
  t.equal(await ask(strict, headers), 200)
  const again = await strict.login(user)
  t.equal(await ask(strict, again.headers), 'SECOND_FACTOR_MISSING')
  t.equal(await ask(strict, await enrol(strict, again.headers)), 200)
})
