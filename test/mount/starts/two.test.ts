import t from 'tap'
import usher, { type Usher } from '../../../app.ts'
import { createUsher, withUsers, type TestUsher } from '../../helpers/app.ts'
import { until } from '../../helpers/until.ts'
import { mountOptions, openHost } from '../../helpers/host.ts'
import { upload } from '../../helpers/uploads.ts'
import { listen, openSocket } from '../../helpers/wire.ts'

t.test('9 two mounts in one app are independent of each other', async (t) => {
  const app = openHost(t)
  const ours = { ...await mountOptions(t, '/ours'), decoratorName: 'ours' }
  const theirs = { ...await mountOptions(t, '/theirs'), decoratorName: 'theirs' }
  await app.register(usher, ours)
  await app.register(usher, theirs)
  for (const name of ['ours', 'theirs']) {
    app.get(
      `/guarded-by/${name}`, { onRequest: (Reflect.get(app, name) as Usher).authenticate }, async ({ actor }) => actor
    )
  }
  await app.ready()
  const [one, two] = [await withUsers(app, ours), await withUsers(app, theirs)]
  const { ws } = await listen(app)

  await t.test('users', async (t) => {
    const user = await one.createUser()
    t.equal((await one.inject('GET', `/api/users/${user.id}`)).statusCode, 200)
    t.equal((await two.inject('GET', `/api/users/${user.id}`)).statusCode, 404)
    t.equal((await two.inject('POST', '/api/auth/login', { payload: user })).statusCode, 401)
  })

  await t.test('tokens and cookies', async (t) => {
    for (const [own, other, name] of [[one, two, 'ours'], [two, one, 'theirs']] as const) {
      t.equal((await own.inject('GET', '/api/protected', { headers: own.admin.headers })).statusCode, 200)
      t.match(await own.inject('GET', '/api/protected', { headers: other.admin.headers }), {
        statusCode: 401, headers: { 'www-authenticate': 'Bearer error="invalid_token"' },
      })
      t.equal((await app.inject({ url: `/guarded-by/${name}`, headers: own.admin.headers })).json().id, own.admin.id)
      t.equal((await app.inject({ url: `/guarded-by/${name}`, headers: other.admin.headers })).statusCode, 401)
      t.match(
        await own.inject('POST', '/graphql', { headers: other.admin.headers, payload: { query: '{ me { id } }' } }),
        { statusCode: 200, body: /INVALID_TOKEN/ }
      )
    }
    await two.inject('POST', '/api/auth/logout', { headers: { cookie: one.admin.cookie } })
    t.equal((await one.inject('GET', '/api/protected', { headers: one.admin.headers })).statusCode, 200)
  })

  await t.test('an actor of one mount, set by a hook of the host, is not an actor of the other mount', async (t) => {
    const host = openHost(t)
    const [first, second] = [
      { ...ours, prefix: '/first', decoratorName: 'first' }, { ...theirs, prefix: '/second', decoratorName: 'second' },
    ]
    host.addHook('onRequest', async (request, reply) => {
      if (request.url.startsWith('/second/api/auth/login') && request.headers.authorization) {
        await (Reflect.get(host, 'first') as Usher).authenticate(request, reply)
      }
    })
    await host.register(usher, first)
    await host.register(usher, second)
    await host.ready()
    const response = await host.inject({
      method: 'POST', url: '/second/api/auth/login', headers: one.admin.headers, payload: two.admin,
    })
    t.equal(response.statusCode, 200)
  })

  await t.test('posts over their sockets', async (t) => {
    const heard: string[] = []
    for (const { prefix, inject, admin } of [one, two]) {
      const { say, hear } = await openSocket(t, `${ws}${prefix}/graphql`, ['graphql-transport-ws'])
      say({ type: 'connection_init' })
      await hear()
      say({ type: 'subscribe', id: '1', payload: { query: 'subscription { postCreated { title } }' } })
      // The response arrives when the subscription has started.
      say({ type: 'subscribe', id: '2', payload: { query: '{ __typename }' } })
      await hear()
      await hear()
      const post = (title: string) => inject('POST', '/graphql', {
        headers: admin.headers,
        payload: { mutation: `{ createPost(input: { title: "${title}", content: "x" }) { id } }` },
      })
      await post(`post of ${prefix}`)
      heard.push(await hear())
    }
    t.strictSame(
      heard.map((message) => JSON.parse(message).payload.data.postCreated.title), ['post of /ours', 'post of /theirs']
    )
  })

  await t.test('uploads', async (t) => {
    const { fileUrl, id } = await upload(one, 'of ours')
    t.equal((await app.inject(fileUrl)).body, 'of ours')
    t.equal((await two.inject('GET', `/api/uploads/${id}`)).statusCode, 404)
  })
})

const first = await createUsher(t)

t.test('9 of two apps in one process, one can close while the other continues to work', async (t) => {
  const other = await createUsher(t, { ...first.options, prefix: '/other' })
  await other.app.close()
  t.equal((await first.inject('GET', '/api/users')).statusCode, 200)
})

t.test('4 after a logout on one node, another node on the same database rejects the token', async (t) => {
  const second = await createUsher(t, first.options)
  const user = await first.createUser()
  const on = async (node: TestUsher) =>
    (await node.inject('GET', '/api/protected', { headers: user.headers })).statusCode
  t.strictSame([await on(first), await on(second)], [200, 200])
  t.equal((await first.inject('POST', '/api/auth/logout', { headers: user.headers })).statusCode, 204)
  t.equal(await on(first), 401)
  await until('the other node rejects the token', async () => await on(second) === 401)
})
