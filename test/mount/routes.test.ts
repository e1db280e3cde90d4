import t from 'tap'
import usher from '../../app.ts'
import { withUsers } from '../helpers/app.ts'
import { addHooks, mountOptions, openHost } from '../helpers/host.ts'

const options = await mountOptions(t)

t.test('9 app.usher.authenticate protects routes of the host', async (t) => {
  const app = openHost(t)
  app.setErrorHandler((error: Error & { statusCode: number, code: string }, _, reply) =>
    reply.code(error.statusCode).send({ host: [error.statusCode, error.code, error.message] }))
  await app.register(usher, options)
  app.get('/mine', { onRequest: app.usher.authenticate }, async ({ actor }) => actor)
  app.get('/open', async ({ actor }) => ({ actor }))
  const { admin, createUser } = await withUsers(app, options)
  const get = (url: string, authorization?: string) =>
    app.inject({ url, headers: authorization === undefined ? {} : { authorization } })

  await t.test('with a valid token, request.actor is the user', async (t) => {
    const { statusCode, body } = await get('/mine', admin.headers.authorization)
    const actor = JSON.parse(body)
    t.equal(statusCode, 200)
    t.strictSame(
      Object.keys(actor), ['id', 'role', 'sessionId', 'keyId', 'actions', 'amr', 'authTime', 'organization', 'claims']
    )
    t.strictSame([actor.id, actor.role], [admin.id, 'admin'])
  })

  await t.test('without a token, or if it is invalid or revoked, the error handler of the host sends 401', async (t) => {
    const missing = await get('/mine')
    t.strictSame([missing.statusCode, missing.headers['www-authenticate']], [401, 'Bearer'])
    t.strictSame(missing.json(), { host: [401, 'UNAUTHENTICATED', 'A bearer token is required'] })
    const bad = await get('/mine', 'Bearer a.b.c')
    t.strictSame([bad.statusCode, bad.headers['www-authenticate']], [401, 'Bearer error="invalid_token"'])
    t.strictSame(bad.json(), { host: [401, 'INVALID_TOKEN', 'The bearer token is invalid, expired or revoked'] })
    const user = await createUser()
    t.equal((await get('/mine', user.headers.authorization)).statusCode, 200)
    await app.inject({ method: 'POST', url: '/accounts/api/auth/logout', headers: user.headers })
    t.equal((await get('/mine', user.headers.authorization)).statusCode, 401)
  })

  await t.test('request.actor is null on routes without authentication', async (t) => {
    t.strictSame((await get('/open', admin.headers.authorization)).json(), { actor: null })
  })
})

t.test('9 hooks of the host, except those that rewrite payloads, run for the routes of Usher, whenever they were added', async (t) => {
  const app = openHost(t)
  const seen: string[] = []
  addHooks(app, seen)
  await app.register(usher, options)
  app.addHook('onRequest', async ({ headers }) => {
    if (headers['x-limit']) throw Object.assign(new Error('slow down'), { statusCode: 429, code: 'LIMIT' })
  })
  const { inject, admin } = await withUsers(app, options)

  seen.length = 0
  const response = await inject(
    'POST', '/api/users', { headers: admin.headers, payload: { name: 'Ada', email: 'ada@example.com' } }
  )
  t.strictSame([response.statusCode, response.headers['x-host'], response.headers['x-host-sent']], [201, 'yes', 'yes'])
  t.strictSame(
    seen, ['onRequest POST /accounts/api/users', 'preParsing', 'preValidation', 'preHandler', 'onSend', 'onResponse']
  )

  // The status is the host's, so the document does not have it.
  const limited = await app.inject({ url: '/accounts/api/users', headers: { 'x-limit': '1' } })
  t.strictSame([limited.statusCode, limited.json()], [429, { error: 'slow down', code: 'LIMIT' }])
})
