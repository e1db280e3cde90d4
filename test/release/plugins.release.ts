// Hosts that strangers have: the README's, one with the plugins of the ecosystem, others with type providers and bun.
import { cp, mkdir, readFile, writeFile } from 'node:fs/promises'
import { createRequire } from 'node:module'
import { join } from 'node:path'
import t from 'tap'
import { createDatabase, testDatabaseUrl, uniqueSchema } from '../helpers/database.ts'
import { install, pack, run, sessionResponses } from '../helpers/package.ts'
import { temporaryFolder } from '../helpers/temporary-folder.ts'

// Installing takes a while with an empty cache.
t.setTimeout(900_000)
const root = join(import.meta.dirname, '../..')
// Outside of the repository, so that the packages there are not found.
const folder = temporaryFolder()
const { path: packed } = await pack(folder)

async function createFolder (name: string, manifest: object): Promise<string> {
  const path = join(folder, name)
  await mkdir(path, { recursive: true })
  await writeFile(join(path, 'package.json'), JSON.stringify(manifest))
  return path
}

const admin = { email: 'me@example.com', password: 'horse battery staple' }

t.test('12 the host of the README starts as it says', async (t) => {
  const text = await readFile(join(root, 'README.md'), 'utf8')
  const [section = ''] = /^## In your app\n[^]*?^## /m.exec(text) ?? []
  const [, commands = '', name = '', source = '', start = ''] =
    /^```sh\n([^]*?)^```\n\n`([\w.]+)`:\n\n```js\n([^]*?)^```\n\n```sh\n([^]*?)^```/m.exec(section) ?? []
  const host = join(folder, 'readme')
  await mkdir(host)
  for (const command of commands.trim().split('\n')) {
    await run(host, 'sh', ['-c', command.replace(/\S+\.tgz/, packed)], { npm_config_audit: 'false', npm_config_fund: 'false' })
  }
  // A free port, an answer of each kind, and an end.
  const measured = source.replace('await app.listen({ port: 3000 })', `
const url = await app.listen({ port: 0 })
const login = await fetch(url + '/accounts/api/auth/login', {
  method: 'POST', headers: { 'content-type': 'application/json' }, body: JSON.stringify(admin),
})
const { token } = await login.json()
const mine = await fetch(url + '/mine', { headers: { authorization: 'Bearer ' + token } })
console.log(JSON.stringify([login.status, mine.status, (await fetch(url + '/mine')).status, (await fetch(url + '/accounts/login')).status]))
await app.close()`)
  t.not(measured, source)
  await writeFile(join(host, name), measured)
  const output = await run(host, 'sh', ['-c', start.replace(/DATABASE_URL=\S+/, '')], { DATABASE_URL: await createDatabase(t, { empty: true }) })
  t.equal(output, '[200,200,401,200]\n')
})

// What fastify/demo and many others register, from files that @fastify/autoload imports at the same time.
const plugins: Record<string, string> = {
  compress: '{}',
  cookie: '{}',
  cors: '{ origin: true }',
  formbody: '{}',
  helmet: '{}',
  jwt: "{ secret: 'the secret of the host' }",
  multipart: '{}',
  'rate-limit': '{ max: 1000 }',
  sensible: "{ sharedSchemaId: 'HttpError' }",
  session: "{ secret: 'a secret of the host that is long enough', cookie: { secure: false } }",
  static: "{ root: import.meta.dirname, prefix: '/files/' }",
  swagger: "{ openapi: { info: { title: 'Host', version: '1' } } }",
  'swagger-ui': "{ routePrefix: '/reference' }",
  'under-pressure': '{ maxHeapUsedBytes: 1e12 }',
  view: '{ engine: { ejs } }',
  websocket: '{}',
}

t.test('12.10 a host in ES modules with @fastify/autoload and the plugins of the ecosystem starts, and so does Usher', async (t) => {
  const host = await createFolder('autoload', { private: true, type: 'module' })
  await install(host, packed, 'fastify@5', '@fastify/autoload', 'ejs', 'fastify-plugin',
    ...Object.keys(plugins).map((name) => `@fastify/${name}`))
  for (const path of ['plugins/external', 'plugins/app', 'routes/mine']) await mkdir(join(host, path), { recursive: true })
  for (const [name, options] of Object.entries(plugins)) {
    const imported = name === 'view' ? "import ejs from 'ejs'\n" : ''
    await writeFile(join(host, 'plugins/external', `${name}.js`),
      `${imported}import plugin from '@fastify/${name}'\nexport default plugin\nexport const autoConfig = ${options}\n`)
  }
  await writeFile(join(host, 'plugins/external/usher.js'), `import usher from 'fastify-usher'
export default usher
export const autoConfig = JSON.parse(process.env.USHER)
`)
  await writeFile(join(host, 'plugins/app/greeting.js'), `import fp from 'fastify-plugin'
export default fp(async (app) => { app.decorate('greeting', 'Hello') }, { name: 'greeting' })
`)
  await writeFile(join(host, 'routes/mine/index.js'), `export default async function routes (app) {
  app.get('/', { onRequest: app.usher.authenticate }, async ({ actor }) => ({ greeting: app.greeting, role: actor.role }))
}
`)
  await writeFile(join(host, 'app.js'), `import autoload from '@fastify/autoload'
import Fastify from 'fastify'
import { join } from 'node:path'
const dir = (name) => join(import.meta.dirname, name)
const app = Fastify({ pluginTimeout: 0 })
await app.register(autoload, { dir: dir('plugins/external'), options: {} })
app.register(autoload, { dir: dir('plugins/app'), options: {} })
app.register(autoload, { dir: dir('routes'), autoHooks: true, cascadeHooks: true, options: {} })
await app.ready()
const { admin } = JSON.parse(process.env.USHER)
const login = await app.inject({ method: 'POST', url: '/accounts/api/auth/login', payload: admin })
const headers = { authorization: 'Bearer ' + login.json().token }
const statuses = []
for (const url of ['/mine', '/files/cors.js', '/reference', '/accounts/docs', '/accounts/login', '/accounts/graphql?query={users{nodes{id}}}']) {
  statuses.push((await app.inject({ url, headers })).statusCode)
}
console.log(JSON.stringify([login.statusCode, ...statuses]))
await app.close()
`)
  const options = {
    prefix: '/accounts', databaseUrl: await testDatabaseUrl(), schema: uniqueSchema('autoload'), uploadsDir: join(host, 'uploads'), admin,
  }
  // Which module is imported first is another one at each start.
  for (let start = 1; start <= 5; start++) {
    t.equal(await run(host, process.execPath, ['app.js'], { USHER: JSON.stringify(options) }), '[200,200,200,200,200,200,200]\n', `start ${start}`)
  }
})

t.test('12.1 guards leave the types of a route to zod and TypeBox', async (t) => {
  const host = join(folder, 'providers')
  await cp(join(root, 'test/consumer'), host, { recursive: true })
  await install(host, packed, 'fastify@5', 'zod@4', 'fastify-type-provider-zod@6', '@fastify/type-provider-typebox@5', '@types/node@24')
  const tsc = createRequire(import.meta.url).resolve('typescript/bin/tsc')
  t.equal(await run(host, process.execPath, [tsc, '-p', 'tsconfig.providers.json']), '')
})

t.test('12.10 a host in bun gets responses, also over a socket', async (t) => {
  const host = await createFolder('bun', { private: true, type: 'module' })
  // The package that has only the program, which runs no script to install it.
  await install(host, packed, 'fastify@5', '@oven/bun-linux-x64@1')
  await cp(join(root, 'test/consumer/session.js'), join(host, 'session.js'))
  const options = {
    prefix: '/accounts', databaseUrl: await testDatabaseUrl(), schema: uniqueSchema('bun'), uploadsDir: join(host, 'uploads'), admin,
  }
  const bun = join(host, 'node_modules/@oven/bun-linux-x64/bin/bun')
  t.strictSame(JSON.parse(await run(host, bun, ['session.js', JSON.stringify(options)])), sessionResponses)
})
