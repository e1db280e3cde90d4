import { execFile } from 'node:child_process'
import { open } from 'node:fs/promises'
import { join } from 'node:path'
import { promisify } from 'node:util'
import { build, type Format } from 'esbuild'
import Fastify, { type FastifyInstance } from 'fastify'
import t from 'tap'
import usher from '../../../app.ts'
import { createUsher } from '../../helpers/app.ts'
import { mountOptions } from '../../helpers/host.ts'
import { nightly } from '../../helpers/nightly.ts'
import { nodeCommand } from '../../helpers/node.ts'
import { fieldPart, filePart, post, upload } from '../../helpers/uploads.ts'

const root = join(import.meta.dirname, '../../..')
const script = join(import.meta.dirname, 'fixtures/upload.ts')

const run = async (...args: string[]) => {
  const { command: [file, given], env } = nodeCommand(args)
  return (await promisify(execFile)(file, given, { cwd: root, env })).stdout.trim()
}

nightly('9 with an old version of Node, loading the plugin fails with a sentence that names the version it needs', async (t) => {
  const pretend = 'Object.defineProperty(process, "versions", { value: { ...process.versions, node: "20.20.2" } })'
  t.equal(
    await run(`--import=data:text/javascript,${encodeURIComponent(pretend)}`, script, '{}'),
    'Usher needs Node.js 22.18 or later; this is 20.20.2.'
  )
})

nightly('9 a bundle that contains the plugin, which lacks its files there, fails with a sentence that says what to do', async (t) => {
  const bundled = t.testdir()
  for (const [format, name] of [['esm', 'host.mjs'], ['cjs', 'host.cjs']] as [Format, string][]) {
    const outfile = join(bundled, name)
    await build({
      stdin: { contents: "import('./app.ts')", resolveDir: root },
      bundle: true,
      platform: 'node',
      packages: 'external',
      format,
      outfile,
      logLevel: 'silent',
    })
    await t.rejects(
      run(outfile),
      { message: /Error: usher: this bundle contains fastify-usher without its files: leave it out of the bundle/ },
      format
    )
  }
})

nightly("5.5 with Node's permission model, uploads work, and the start names a permission that is missing", async (t) => {
  const options = await mountOptions(t, '')
  const permissions = ['--permission', '--no-warnings', '--allow-addons', '--allow-fs-read=*']
  t.equal(await run(...permissions, `--allow-fs-write=${options.uploadsDir}`, script, JSON.stringify(options)), 'Hello')
  t.match(
    await run(...permissions, script, JSON.stringify(options)),
    /^usher: uploadsDir cannot be used, allow it with --allow-fs-read and --allow-fs-write: /
  )
})

nightly("5.5 uploads work with the file handles of Yarn Plug'n'Play, which sync nothing, and a disk that fails is not asked twice", async (t) => {
  const usher = await createUsher(t)
  const handle = await open(import.meta.filename)
  const prototype: { sync (): Promise<void> } = Object.getPrototypeOf(handle)
  await handle.close()
  const { sync } = prototype
  t.teardown(() => { prototype.sync = sync })

  prototype.sync = async () => { throw new Error('Method not implemented.') }
  t.equal((await usher.app.inject((await upload(usher, 'Hello')).fileUrl)).body, 'Hello')
  prototype.sync = async () => {
    throw Object.assign(new Error('EIO: i/o error, fsync'), { code: 'EIO', syscall: 'fsync' })
  }
  t.equal((await post(usher, [filePart('x'), fieldPart('description', 'Text')])).statusCode, 507)
})

t.test("9 a host that has a route of Usher's, added before or after Usher, gets an error that names Usher and the option prefix", async (t) => {
  const options = await mountOptions(t, '')
  const message =
    /^usher: .*(\/graphql|\/login|\/docs).*Mount Usher under a path of its own, for example with \{ prefix: '\/accounts' \}/
  const open = () => Fastify({ pluginTimeout: 0 })
  const add = (app: FastifyInstance, url: string) => app.get(url, async () => 'the host')
  for (const url of ['/graphql', '/login']) {
    const before = open()
    t.teardown(() => before.close())
    add(before, url)
    await t.rejects(async () => before.register(usher, options), { message }, url)
  }

  const after = open()
  t.teardown(() => after.close())
  await after.register(usher, options)
  for (const url of ['/graphql', '/login', '/docs']) t.throws(() => add(after, url), { message }, url)
  t.throws(() => after.route({ method: ['PUT', 'GET'], url: '/login', handler: async () => 'the host' }), { message })
  await t.rejects(async () => after.register(async (scope) => { add(scope, '/in') }, { prefix: '/log' })
    .register(async (scope) => {
      add(scope, 'login')
    }, { prefix: '/' }), { message })
})

t.test('9 routes of the host that Usher does not have, or for another name of the host, are no conflict', async (t) => {
  const app = Fastify({ pluginTimeout: 0 })
  t.teardown(() => app.close())
  await app.register(usher, await mountOptions(t, ''))
  app.get('/login', { constraints: { host: 'other.example.com' } }, async () => 'of another name')
  app.get('/mine', async () => 'the host')
  t.throws(() => app.get('/mine', async () => ''), { message: /^(?!usher)/, code: 'FST_ERR_DUPLICATED_ROUTE' })
  t.equal((await app.inject('/mine')).body, 'the host')
  t.equal((await app.inject({ url: '/login', headers: { host: 'other.example.com' } })).body, 'of another name')
})
