import { randomUUID } from 'node:crypto'
import Fastify from 'fastify'
import t from 'tap'
import { sharedUsher, withUsers } from '../helpers/app.ts'
import { actorOf } from '../helpers/actor.ts'
import { mountOptions } from '../helpers/host.ts'
import usherPlugin from '../../app.ts'

t.test('12.1 the host starts a session without a password', async (t) => {
  const usher = await sharedUsher()
  const { users, sessions } = usher.app.usher
  const { id } = await users.create({ name: 'Ada', email: `${randomUUID()}@example.com` })
  const { token, cookie, expiresAt } = await sessions.start(id)
  t.match(cookie, /^usher_session=[^;]+; Max-Age=\d+; Path=\/api\/auth; Expires=[^;]+; HttpOnly; SameSite=Lax$/)
  t.ok(expiresAt instanceof Date && expiresAt.getTime() > Date.now())
  const headers = { authorization: `Bearer ${token}` }
  t.equal((await usher.inject('GET', '/api/protected', { headers })).json().user.id, id)
  const refreshed = await usher.inject('POST', '/api/auth/refresh', { headers: { cookie: cookie.split(';')[0]! } })
  t.equal(refreshed.statusCode, 200, 'the cookie refreshes the session')
  t.match(
    (await usher.inject('GET', `/api/audit?user=${id}&action=login`, { headers: usher.admin.headers })).json(),
    [{ actorId: id, address: '' }]
  )

  await users.update(id, { disabled: true })
  t.equal(
    (await usher.inject('GET', '/api/protected', { headers })).statusCode, 401, 'it ends when the user is disabled'
  )
  await t.rejects(sessions.start(id), { statusCode: 409, code: 'USER_DISABLED' })
  for (const unknown of ['', '0198c0de-0000-7000-8000-000000000000', null, 5]) {
    await t.rejects(sessions.start(unknown as never), { statusCode: 404, code: 'USER_NOT_FOUND' })
  }
  await t.rejects(sessions.start(id, { actor: null } as never), TypeError, 'only the host may do that')
})

t.test('12.1 a session that a route of the host starts has the address and the protocol of its request', async (t) => {
  const app = Fastify({ pluginTimeout: 0, trustProxy: true })
  t.teardown(() => app.close())
  const options = await mountOptions(t)
  await app.register(usherPlugin, options)
  app.post('/callback', async (request, reply) => {
    const { token, cookie } = await app.usher.sessions.start((request.body as { id: string }).id, { request })
    return reply.header('set-cookie', cookie).send({ token })
  })
  const usher = await withUsers(app, options)
  const headers = { 'x-forwarded-proto': 'https', 'x-forwarded-for': '203.0.113.9', 'user-agent': 'browser' }
  const response = await app.inject({ method: 'POST', url: '/callback', payload: { id: usher.admin.id }, headers })
  t.match(
    response.cookies,
    [{ name: 'usher_session', path: '/accounts/api/auth', httpOnly: true, secure: true, sameSite: 'Lax' }]
  )
  t.match(
    (await app.usher.sessions.list(usher.admin.id))[0], { address: '203.0.113.9', userAgent: 'browser', current: false }
  )
})

t.test('12.1 the host lists and ends sessions on every node', async (t) => {
  const usher = await sharedUsher()
  const { sessions } = usher.app.usher
  const user = await usher.createUser()
  const second = await usher.login(user)
  const [actor, admin] = [await actorOf(usher, user), await actorOf(usher, usher.admin)]
  t.match(
    await sessions.list(user.id, { actor }),
    [{ current: false }, { id: actor.sessionId, current: true, createdAt: Date }]
  )
  t.match(await sessions.list(user.id), [{ current: false }, { current: false }])
  await t.rejects(sessions.list(usher.admin.id, { actor }), { statusCode: 403, code: 'FORBIDDEN' })
  await t.rejects(sessions.list(user.id, { actor: null }), { statusCode: 401, code: 'UNAUTHENTICATED' })
  await t.rejects(sessions.list('x'), { statusCode: 404, code: 'USER_NOT_FOUND' })

  await t.rejects(sessions.end(admin.sessionId!, { actor }), { statusCode: 404, code: 'SESSION_NOT_FOUND' })
  for (const id of ['x', null, '0198c0de-0000-7000-8000-000000000000']) {
    await t.rejects(sessions.end(id as never), { statusCode: 404, code: 'SESSION_NOT_FOUND' })
  }
  const { sessionId } = await actorOf(usher, second)
  await sessions.end(sessionId!, { actor })
  t.equal((await usher.inject('GET', '/api/protected', { headers: second.headers })).statusCode, 401)
  await sessions.endAll(user.id)
  t.equal((await usher.inject('GET', '/api/protected', { headers: user.headers })).statusCode, 401)
  t.match((await usher.inject(
    'GET', `/api/audit?user=${user.id}&action=session.end`, { headers: usher.admin.headers }
  )).json(), [{ actorId: null }, { actorId: user.id }])
  await t.rejects(sessions.endAll(user.id, { actor }), { statusCode: 401, code: 'INVALID_TOKEN' })
  await t.rejects(sessions.endAll('x'), { statusCode: 404, code: 'USER_NOT_FOUND' })
})
