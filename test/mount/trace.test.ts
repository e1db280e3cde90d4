import { fork } from 'node:child_process'
import { once, type EventEmitter } from 'node:events'
import { text } from 'node:stream/consumers'
import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify'
import t from 'tap'
import usher from '../../app.ts'
import { addHooks, addPlugins, addSettings, mountOptions, openHost } from '../helpers/host.ts'
import { nightly } from '../helpers/nightly.ts'

const options = await mountOptions(t)

/** Returns everything in a host that a plugin could change: members, hooks, parsers, schemas and listeners. */
async function describe (app: FastifyInstance) {
  let seen: { request: FastifyRequest, reply: FastifyReply } | undefined
  app.get('/seen', async (request, reply) => { seen = { request, reply } })
  await app.ready()
  const { statusCode } = await app.inject('/seen')
  if (statusCode !== 200) throw new Error(`${statusCode}`)
  const { request, reply } = seen!
  return {
    app: membersOf(app),
    request: [...membersOf(request), ...membersOf(Object.getPrototypeOf(request))],
    reply: [...membersOf(reply), ...membersOf(Object.getPrototypeOf(reply))],
    hooks: hooksOf(app),
    parsers: ['application/json', 'text/plain', 'multipart/form-data', 'application/graphql', '*']
      .filter((type) => app.hasContentTypeParser(type)),
    schemas: Object.keys(app.getSchemas()),
    server: listenersOf(app.server),
    process: listenersOf(process),
    functions: [app.errorHandler, app.validatorCompiler, app.serializerCompiler],
  }
}

const listenersOf = (emitter: EventEmitter) =>
  Object.fromEntries(emitter.eventNames().map((event) => [String(event), emitter.listenerCount(event)]))

const membersOf = (value: object) => Reflect.ownKeys(value).map(String).sort()

// Returns the number of hooks of each kind. It reads an internal member, because Fastify has no method for this.
function hooksOf (app: FastifyInstance): Record<string, number> {
  const symbol = Object.getOwnPropertySymbols(app).find(({ description }) => description === 'fastify.hooks')!
  const hooks = (app as unknown as Record<symbol, Record<string, unknown[]>>)[symbol]!
  return Object.fromEntries(Object.entries(hooks).map(([name, functions]) => [name, functions.length]))
}

const hosts: Record<string, (app: FastifyInstance) => Promise<void>> = {
  'a bare host': async () => {},
  'a host that has everything': async (app) => {
    await addPlugins(app)
    addSettings(app)
    addHooks(app)
  },
}

for (const [name, build] of Object.entries(hosts)) {
  t.test(`9 Usher leaves no trace in ${name} but its decorator and request.actor`, async (t) => {
    const without = openHost(t)
    await build(without)
    const before = await describe(without)

    const app = openHost(t)
    await build(app)
    const { errorHandler, validatorCompiler, serializerCompiler } = app
    await app.register(usher, { ...options, decoratorName: 'accounts' })
    const after = await describe(app)

    t.strictSame(after.app.filter((key) => !before.app.includes(key)), ['accounts'])
    t.strictSame(after.request.filter((key) => !before.request.includes(key)), ['actor'])
    for (const kind of ['reply', 'hooks', 'parsers', 'schemas'] as const) t.strictSame(after[kind], before[kind], kind)
    t.strictSame(after.functions, [errorHandler, validatorCompiler, serializerCompiler])
    t.strictSame([...Object.keys(Object.getOwnPropertyDescriptors(Reflect.get(app, 'accounts')))].sort(), [
      'allow', 'apiKeys', 'authenticate', 'credentials', 'errorHandler', 'events', 'identify', 'metrics', 'on',
      'organizations', 'posts', 'requireOrganization', 'requireRole', 'schema', 'sessions', 'uploads', 'users',
    ])

    t.strictSame(after.process, before.process)
    // Usher adds one listener for upgrades, which accepts its sockets.
    t.strictSame(after.server, { ...before.server, upgrade: (before.server.upgrade ?? 0) + 1 })
  })
}

t.test('9 decoratorName renames the decorator, and a name that exists already is rejected', async (t) => {
  const app = openHost(t)
  app.decorate('accounts', 'mine')
  await t.rejects(async () => app.register(usher, { ...options, decoratorName: 'accounts' }), {
    message: 'usher: decoratorName accounts is taken in this app: choose another name',
  })
  const other = openHost(t)
  other.decorateRequest('actor', null)
  await t.rejects(async () => other.register(usher, options), {
    message: 'usher: this app already has a request decorator named actor: rename it',
  })
})

nightly('9 Usher reads no environment variables, writes no output, handles no signals and does not keep the process alive', async (t) => {
  const child = fork(new URL('./fixtures/silent-host.ts', import.meta.url), {
    stdio: ['ignore', 'pipe', 'pipe', 'ipc'],
    // If Usher read these settings of the node, it would fail or behave differently.
    env: {
      PATH: process.env.PATH,
      PORT: 'nonsense',
      DATABASE_URL: 'nonsense',
      PUBLIC_URL: 'nonsense',
      ADMIN_EMAIL: 'nonsense',
      UPLOAD_MAX_BYTES: '1',
    },
  })
  const output = Promise.all([text(child.stdout!), text(child.stderr!)])
  child.send(options)
  const [report] = await once(child, 'message')
  t.strictSame(report, { status: 200, signals: [] })
  // If Usher left something open, the process would never exit.
  const [code] = await once(child, 'exit')
  t.equal(code, 0)
  t.strictSame(await output, ['', ''])
})
