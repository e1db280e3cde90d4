import Fastify from 'fastify'
import t from 'tap'
import usherPlugin from '../../app.ts'
import { withUsers } from '../helpers/app.ts'
import { mountOptions } from '../helpers/host.ts'
import { until } from '../helpers/until.ts'

t.test("12.1 the hooks identify, allow and requireRole guard routes of the host, also for the host's own actions", async (t) => {
  const app = Fastify({ pluginTimeout: 0 })
  t.teardown(() => app.close())
  const own = {
    'bookmarks:create': (actor: { role: string }, { ownerId }: { ownerId?: string }) => actor.role === 'admin' || ownerId === 'mine',
  }
  const options = { ...await mountOptions(t), policy: own as never }
  await app.register(usherPlugin, options)
  const { identify, allow, requireRole, schema } = app.usher
  const resourceOf = (request: { query: unknown }) => ({ ownerId: (request.query as { owner?: string }).owner })
  const answer = async ({ actor }: { actor: { id: string } | null }) => ({ id: actor?.id ?? null })
  app.get('/identify', { onRequest: identify }, answer)
  app.get('/own', { onRequest: allow('bookmarks:create' as never, resourceOf) }, answer)
  app.get('/usher', { onRequest: allow('users:create') }, answer)
  app.get('/read', { onRequest: allow('users:list') }, answer)
  app.get('/admin', { onRequest: requireRole('admin') }, answer)
  app.get('/user', { onRequest: requireRole('user') }, answer)
  t.throws(() => allow('bookmarks:delete' as never), /no action bookmarks:delete/)
  t.throws(() => allow('__proto__' as never), /no action/)
  const usher = await withUsers(app, options)
  const user = await usher.createUser()
  t.equal(schema, options.schema)

  const statuses: Record<string, number[]> = {
    identify: [200, 401, 200, 200],
    own: [401, 401, 403, 200],
    'own?owner=mine': [401, 401, 200, 200],
    usher: [401, 401, 403, 200],
    read: [200, 401, 200, 200],
    admin: [401, 401, 403, 200],
    user: [401, 401, 200, 200],
  }
  for (const [path, expected] of Object.entries(statuses)) {
    for (const [index, headers] of [{}, { authorization: 'Bearer x' }, user.headers, usher.admin.headers].entries()) {
      const response = await app.inject({ url: `/${path}`, headers })
      t.equal(response.statusCode, expected[index], `/${path} ${index}`)
      if (response.statusCode === 401) t.match(response.headers['www-authenticate'], /^Bearer/)
      if (response.statusCode === 200 && index > 1) t.equal(response.json().id, [user, usher.admin][index - 2]!.id)
    }
  }
  // The entry is written after the response.
  await until('the rejection is in the account log', async () =>
    (await usher.inject(
      'GET', `/api/audit?action=access.denied&user=${user.id}`, { headers: usher.admin.headers }
    )).json().length > 0)
  for (const policy of [{ 'users:creat': () => true }, { bookmark: () => true }, { 'a:b': 5 }]) {
    await t.rejects(
      async () => usherPlugin(Fastify({ pluginTimeout: 0 }), { databaseUrl: 'postgres://localhost', policy } as never),
      /usher: policy/
    )
  }
})
