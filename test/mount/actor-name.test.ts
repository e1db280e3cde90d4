import Fastify, { type FastifyRequest } from 'fastify'
import t from 'tap'
import usher, { type Actor, type Usher, type UsherOptions } from '../../app.ts'
import { withUsers } from '../helpers/app.ts'
import { openSocket, post } from '../helpers/graphql.ts'
import { mountOptions } from '../helpers/host.ts'
import { nightly } from '../helpers/nightly.ts'
import { until } from '../helpers/until.ts'

type WithAccount = { account: Actor | null, actor: unknown }

t.test('12.10 actorName renames the member of requests, also beside a host that has an actor of its own', async (t) => {
  const app = Fastify({ pluginTimeout: 0 })
  t.teardown(() => app.close())
  app.decorateRequest('actor', null)
  const liar = {
    id: '00000000-0000-4000-8000-000000000000', role: 'admin', sessionId: '00000000-0000-4000-8000-000000000000',
  }
  app.addHook('onRequest', async (request) => { request.actor = liar as Actor })
  const options = { ...await mountOptions(t), actorName: 'account' }
  await app.register(usher, options)
  app.get('/mine', { onRequest: app.usher.authenticate }, async (request) => {
    const { account, actor } = request as unknown as WithAccount
    return { account: account?.id, actor: actor === liar }
  })
  const host = await withUsers(app, options)
  const user = await host.createUser()
  t.same((await app.inject({ url: '/mine', headers: user.headers })).json(), { account: user.id, actor: true })
  t.equal((await app.inject('/mine')).statusCode, 401)
  t.equal((await host.inject(
    'POST', '/api/users', { headers: user.headers, payload: { name: 'A', email: 'a@example.com' } }
  )).statusCode, 403)
  t.equal((await host.inject(
    'PATCH', `/api/users/${user.id}`, { headers: user.headers, payload: { name: 'New name' } }
  )).json().name, 'New name')
  t.equal((await host.inject('GET', `/api/users/${user.id}`)).statusCode, 200)
  t.same((await post(host, { query: '{ me { id } }' })).data, { me: null }, 'the host does not log anybody in')
  t.same((await post(host, { query: '{ me { id } }' }, user)).data, { me: { id: user.id } })
  const created = await post(
    host, { mutation: '{ createPost(input: { title: "T", content: "C" }) { author { id } } }' }, user
  )
  t.same(created.data, { createPost: { author: { id: user.id } } })
  const socket = await (await openSocket(t, host)).init({ authorization: user.headers.authorization })
  t.same((await socket.run('{ me { id } }')).data, { me: { id: user.id } })
  const log = async () => (await host.inject('GET', '/api/audit', { headers: host.admin.headers })).json() as {
    action: string, actorId: string
  }[]
  await until('the account log has the actor', async () =>
    (await log()).some(({ action, actorId }) => action === 'access.denied' && actorId === user.id))
  t.notOk((await log()).some(({ actorId }) => actorId === liar.id))
  t.equal((await host.inject('POST', '/api/auth/logout', { headers: user.headers })).statusCode, 204)
  t.equal((await app.inject({ url: '/mine', headers: user.headers })).statusCode, 401)
  t.equal((await host.inject('DELETE', `/api/users/${user.id}`, { headers: host.admin.headers })).statusCode, 204)
})

nightly('12.10 two mounts with different names in one app, and names that are taken', async (t) => {
  const app = Fastify({ pluginTimeout: 0 })
  t.teardown(() => app.close())
  const mounts = await Promise.all(['account', 'member'].map(async (actorName) => {
    const options = { ...await mountOptions(t, `/${actorName}s`), actorName, decoratorName: `${actorName}s` }
    return options
  }))
  for (const options of mounts) await app.register(usher, options)
  app.get('/both', { onRequest: Reflect.get(app, 'accounts').authenticate }, async (request) => {
    const { account, member } = request as unknown as { account: Actor | null, member: Actor | null }
    return { account: account?.id ?? null, member: member?.id ?? null }
  })
  const { identify, allow, requireRole } = Reflect.get(app, 'members') as Usher
  const idOf = async (request: FastifyRequest) =>
    [Reflect.get(request, 'account'), Reflect.get(request, 'member')].map((actor) => actor?.id ?? null)
  app.get('/identified', { onRequest: identify }, idOf)
  app.get('/allowed', { onRequest: allow('users:create') }, idOf)
  app.get('/admins', { onRequest: requireRole('admin') }, idOf)
  const host = await withUsers(app, mounts[0]!)
  const member = await withUsers(app, mounts[1]!)
  for (const path of ['/identified', '/allowed', '/admins']) {
    t.same((await app.inject({ url: path, headers: member.admin.headers })).json(), [null, member.admin.id], path)
    t.equal((await app.inject({ url: path, headers: host.admin.headers })).statusCode, 401, path)
  }
  t.same((await app.inject('/identified')).json(), [null, null])
  t.same(
    (await app.inject({ url: '/both', headers: host.admin.headers })).json(), { account: host.admin.id, member: null }
  )
  const refuse = async (options: UsherOptions, message: string | RegExp) => {
    const other = Fastify({ pluginTimeout: 0 })
    other.decorateRequest('taken', null)
    await t.rejects(async () => other.register(usher, { ...await mountOptions(t), ...options }), { message })
    await other.close()
  }
  await refuse(
    { actorName: 'taken' },
    'usher: this app already has a request decorator named taken: rename it, or choose another name with actorName'
  )
  await refuse({ actorName: 'body' }, /^usher: actorName body is a member of Fastify's requests/)
  await refuse({ actorName: 'not a name' }, /^usher: actorName /)
})

t.test('12.10 options of fastify-cli and @fastify/autoload are ignored, others are rejected with a suggestion', async (t) => {
  const app = Fastify({ pluginTimeout: 0 })
  t.teardown(() => app.close())
  const fromTools = {
    skipOverride: true, prefix: undefined, logger: true, pluginTimeout: 1000, trustProxy: true, ajv: {},
  }
  await app.register(usher, { ...await mountOptions(t), ...fromTools } as UsherOptions)
  t.equal((await app.inject('/api/users')).statusCode, 200)
  const mistakes = {
    databaseURL: 'usher: there is no option databaseURL: did you mean databaseUrl?',
    decoratrName: 'usher: there is no option decoratrName: did you mean decoratorName?',
    polcy: 'usher: there is no option polcy: did you mean policy?',
    somethingElse: 'usher: there is no option somethingElse',
  }
  for (const [name, message] of Object.entries(mistakes)) {
    const other = Fastify({ pluginTimeout: 0 })
    await t.rejects(async () => other.register(usher, { [name]: 'x' } as UsherOptions), { message })
    await other.close()
  }
})
