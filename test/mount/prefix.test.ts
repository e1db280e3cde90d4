import { randomUUID } from 'node:crypto'
import Fastify, { type FastifyInstance } from 'fastify'
import t, { type Test } from 'tap'
import usher from '../../app.ts'
import { withUsers } from '../helpers/app.ts'
import { mountOptions, openHost } from '../helpers/host.ts'
import { sample } from '../helpers/nightly.ts'
import { upload } from '../helpers/uploads.ts'
import { listen, openSocket } from '../helpers/wire.ts'

// All mounts, one after the other, use the same database schema and folder.
const { prefix: _, ...options } = await mountOptions(t)

async function pathsIn (t: Test, app: FastifyInstance, prefix: string) {
  const usher = await withUsers(app, { ...options, prefix })
  const created = await usher.inject('POST', '/api/users', {
    headers: usher.admin.headers, payload: { name: 'Ada', email: `${randomUUID()}@example.com` },
  })
  const login = await usher.inject('POST', '/api/auth/login', { payload: options.admin! })
  const { fileUrl, id } = await upload(usher, 'x')
  const { ws } = await listen(app)
  const { socket } = await openSocket(t, `${ws}${prefix}/graphql`, ['graphql-transport-ws'])
  const document = (await usher.inject('GET', '/docs/json')).json()
  return {
    location: created.headers.location!.toString().replace(created.json().id, '{id}'),
    link: (await usher.inject('GET', '/api/users?limit=1')).headers.link!.toString()
      .replace(/after=[\w-]+/, 'after={cursor}'),
    redirect: (await usher.inject('GET', '/api/redirect')).headers.location,
    cookie: /Path=([^;]+)/.exec(`${login.headers['set-cookie']}`)![1],
    fileUrl: fileUrl.replace(id, '{id}'),
    file: (await app.inject(fileUrl)).body,
    socket: socket.protocol,
    docs: (await usher.inject('GET', '/docs/')).statusCode,
    // The path to which a client sends requests that it derives from the OpenAPI document.
    documented: `${new URL(document.servers?.[0]?.url ?? '', 'http://host/').pathname.replace(/\/$/, '')}${Object.keys(document.paths).find((path) => path.endsWith('/api/users'))}`,
  }
}

const under = (prefix: string) => ({
  location: `${prefix}/api/users/{id}`,
  link: `<${prefix}/api/users?limit=1&after={cursor}>; rel="next"`,
  redirect: `${prefix}/api/users`,
  cookie: `${prefix}/api/auth`,
  fileUrl: `${prefix}/api/uploads/{id}`,
  file: 'x',
  socket: 'graphql-transport-ws',
  docs: 200,
  documented: `${prefix}/api/users`,
})

const mounts: [name: string, prefix: string, outer: string | undefined, given: string | undefined][] = [
  ['no prefix', '', undefined, undefined],
  ['a slash', '', undefined, '/'],
  ['a prefix', '/accounts', undefined, '/accounts'],
  ['a prefix with a slash at its end', '/accounts', undefined, '/accounts/'],
  ['a prefix without one in front', '/my/accounts', undefined, 'my/accounts'],
  ['a scope of the host that has a prefix', '/out', '/out', undefined],
  ['a prefix within a scope that has one', '/out/in', '/out', '/in'],
  ['slashes at both ends', '/out/in', '/out/', '/in/'],
  ['a scope whose prefix ends in a slash', '/out', '/out/', undefined],
]

for (const [name, prefix, outer, given] of sample(mounts, 4)) {
  t.test(`9 all addresses in responses contain the prefix: ${name}`, async (t) => {
    const app = openHost(t)
    const mount = (scope: FastifyInstance) =>
      scope.register(usher, { ...options, ...given !== undefined && { prefix: given } })
    if (outer === undefined) await mount(app)
    else await app.register(async (scope) => { await mount(scope) }, { prefix: outer })
    t.strictSame(await pathsIn(t, app, prefix), under(prefix))
    t.equal(app.hasDecorator('usher'), outer === undefined)
  })
}

t.test('9 a prefix that is not a fixed path is rejected', async (t) => {
  for (const prefix of ['/:tenant', '/a*', '/a//b', '//', '/ü', '/a?b', 'http://x']) {
    await t.rejects(
      async () => Fastify().register(usher, { ...options, prefix }),
      { message: 'usher: prefix must be a path such as /accounts' },
      prefix
    )
  }
  const app = Fastify({ pluginTimeout: 0 })
  app.register(async (scope) => { await scope.register(usher, options) }, { prefix: '/:tenant/of' })
  await t.rejects(
    async () => app.ready(), { message: 'usher: the prefix /:tenant/of must be a fixed path such as /accounts' }
  )
})
