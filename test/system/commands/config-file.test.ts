import { existsSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs'
import { join, relative, resolve } from 'node:path'
import { fileURLToPath } from 'node:url'
import Fastify from 'fastify'
import fp from 'fastify-plugin'
import t, { type Test } from 'tap'
import { loadConfigFile } from '../../../node/config/config-file.ts'
import { addRoutes } from '../../../node/config/routes.ts'
import { createTemplate } from '../../../node/config/template.ts'
import { NODE_DEADLINES } from '../../../node/process/deadlines.ts'
import { optionOfSetting } from '../../../node/settings/schema.ts'
import { listSettings, listShownSettings } from '../../../node/settings/listed.ts'
import { serviceOptions } from '../../../node/settings/service-options.ts'
import { checkSettings, parseSettings, settingNames } from '../../../node/settings/settings.ts'
import type { UsherConfig } from '../../../schema/options/config.ts'
import { readOptions } from '../../../schema/options/read-options.ts'
import { createShell, failStart, runCommand, spawnCommand } from '../../helpers/command.ts'
import { createDatabase } from '../../helpers/database.ts'
import { nightly } from '../../helpers/nightly.ts'
import { startNode, stopNode } from '../../helpers/node.ts'
import { spawnOnTerminal } from '../../helpers/terminal.ts'

const root = join(import.meta.dirname, '../../..')
const example = readFileSync(join(root, 'examples/config/usher.config.ts'), 'utf8')
const admin = { email: 'root@example.com', password: 'horse battery staple' }
const json = { 'content-type': 'application/json' }

const loadAt = (path: string) =>
  loadConfigFile({ env: { ...process.env, CONFIG: path }, cwd: process.cwd() }, settingNames)

/** Writes files into a new folder, and loads the one with a name. */
async function load (t: Test, source: string, { name = 'usher.config.ts', ...others }: Record<string, string> = {}) {
  const folder = t.testdir({ ...others, [name]: source })
  return loadAt(join(folder, name))
}

/** Returns what is wrong with a file, without its folder. */
async function mistakes (t: Test, source: string, others: Record<string, string> = {}): Promise<string> {
  return load(t, source, others).then(() => 'nothing', (error: Error) =>
    error.message.replaceAll(`${t.testdirName}/`, '').replaceAll(`${relative('', t.testdirName)}/`, ''))
}

t.test('14.6 a node has the field, the hook, the provider and the route of the example in docs/config.md', async (t) => {
  t.ok(readFileSync(join(root, 'docs/config.md'), 'utf8').includes(`\`\`\`ts\n${example}\`\`\`\n`))
  const [DATABASE_URL, cwd] = [await createDatabase(t), t.testdir({ 'usher.config.ts': example, 'package.json': '{}' })]
  const settings = {
    DATABASE_URL,
    SECRET: 'a secret of the tests',
    PROVIDER_GITHUB_CLIENT_SECRET: 'the secret of the app',
    ADMIN_EMAIL: admin.email,
    ADMIN_PASSWORD: admin.password,
  }

  const { stderr, code } = await spawnCommand(['migrate'], settings, cwd)
  t.same([code, stderr], [0, ''], 'no warning about a file of a folder without a type')
  const line = (user: object) => `${JSON.stringify({ name: 'Ada', ...user })}\n`
  writeFileSync(join(cwd, 'users.ndjson'), [
    line({ email: 'ada@example.com', bio: 'Writes notes' }), line({ email: 'long@example.com', bio: 'x'.repeat(501) }),
  ].join(''))
  const imported = JSON.parse((await runCommand(['users', 'import', 'users.ndjson', '--json'], settings, cwd)).stdout)
  t.match(imported, { imported: 1, rejected: 1 }, 'commands know the field')
  t.match(readFileSync(join(cwd, 'users.ndjson.rejected.ndjson'), 'utf8'), /bio/)

  // With workers, each of which loads the file.
  const node = await startNode(t, { cwd, settings: { ...settings, WORKERS: '2' } })
  t.match(await (await node.fetch('/api/users?q=ada')).json(), [{ name: 'Ada', bio: 'Writes notes' }], 'the field that anyone may read')
  t.match(await (await node.fetch('/login', { headers: { accept: 'text/html' } })).text(), /providers\/github\/start/)
  const { headers } = await node.login(admin)
  const body = JSON.stringify({ name: 'Eve', email: 'eve@example.net', password: 'violet engine notes' })
  const rejected = await node.fetch('/api/users', { method: 'POST', headers, body })
  t.match([rejected.status, await rejected.json()], [403, { error: 'Only addresses of example.com can have an account' }], 'the hook')
  t.equal((await node.fetch('/notes/mine')).status, 401)
  t.match(await (await node.fetch('/notes/mine', { headers })).json(), { data: [] })
  t.equal(await stopNode(node), 0)
})

t.test('14.6 a mistake is reported with file and option, and an error with its line', async (t) => {
  const broken: [why: string, source: string, said: string, others?: Record<string, string>][] = [
    ['an unknown option', 'export default { signup: true }', 'usher.config.ts: there is no option signup: did you mean signUp?'],
    ['a setting', "import { defineConfig } from 'fastify-usher'\nexport default defineConfig({ trustProxy: true })",
      'usher.config.ts: there is no option trustProxy: set TRUST_PROXY in the environment.'],
    ['one of hosts', 'export default { prefix: "/x" }',
      'usher.config.ts: prefix is no option of a node, because a node serves at the root: set PUBLIC_URL if a proxy adds a path.'],
    ['several wrong types', 'export default { signUp: 1, throttle: { account: { burst: "many" } }, routes: 2 }',
      'usher.config.ts: signUp must be a boolean.\nusher.config.ts: throttle.account.burst must be an integer.\nusher.config.ts: routes must be a function.'],
    ['a hook that does not exist', 'export default { hooks: { beforeSave () {} } }',
      /^usher\.config\.ts: hooks has no hook beforeSave: there are beforeUserCreate, /.source],
    ['a field', "import { Type } from '@sinclair/typebox'\nexport default {\n  userFields: Type.Object({\n    bio: Type.Optional(\n      Type.String({ 'x-read': 'all' })) }) }",
      'usher.config.ts: userFields.bio has an x-read that is not anyone, owner or admin.'],
    ['a rule', 'export default { policy: { "posts:red": () => true } }', 'usher.config.ts: policy has no action posts:red.'],
    ['syntax', 'export default {\n  signUp: : true\n}', 'usher.config.ts:2: Expression expected.'],
    ['syntax of JavaScript', 'export default {\n  signUp: : true\n}', "usher.config.mjs:2: Unexpected token ':'.", { name: 'usher.config.mjs' }],
    ['an enumeration', 'export default {}\n\nenum Color { Red }',
      'usher.config.ts:3: TypeScript enum is not supported in strip-only mode: Node only removes types (erasableSyntaxOnly).'],
    ['a package', "import { a } from 'node:fs'\nimport dayjs from 'dayjs-of-nobody'\nexport default { a, dayjs }",
      'usher.config.ts:2: the package dayjs-of-nobody cannot be found: install it with "npm install dayjs-of-nobody".'],
    ['a name', "import { Type } from '@sinclair/typebox'\nimport { nothing } from 'fastify-usher'\nexport default { nothing, Type }",
      /^usher\.config\.ts:2: The requested module 'fastify-usher' does not provide an export named 'nothing'\.$/.source],
    ['a file', "import './hooks.ts'\nexport default {}",
      'usher.config.ts:1: hooks.ts does not exist. An import names the file with its extension, such as ./hooks.ts.'],
    ['another file', "import { a } from './other.ts'\nexport default { a }", /^other\.ts:2: \S/.source, { 'other.ts': '\nexport const a: =' }],
    ['an error', 'const names: string[] = []\nexport default {\n  issuer: names[0].toUpperCase() }',
      "usher.config.ts:3: Cannot read properties of undefined (reading 'toUpperCase')."],
    ['no error', "throw 'a text'", 'usher.config.ts: it has thrown a text.'],
    ['nothing exported', 'export const config = {}', 'usher.config.ts: it must export an object: export default defineConfig({ … }).'],
    ['a function', 'export default () => ({})', 'usher.config.ts: it must export an object: export default defineConfig({ … }).'],
  ]
  for (const [why, source, said, others] of broken) {
    await t.test(why, async (t) => {
      const found = await mistakes(t, source, others)
      if (said.startsWith('^')) t.match(found, new RegExp(said))
      else t.equal(found, said)
    })
  }
  await t.test('no mistake', async (t) =>
    t.equal(await mistakes(t, 'export default {\n  signUp: undefined, poolSize: 5 }'), 'nothing'))
  await t.test('CommonJS', async (t) => t.equal(
    await mistakes(t, 'module.exports = {\n  poolSize: 5 }', { name: 'usher.config.js', 'package.json': '{}' }), 'nothing'
  ))
})

t.test('14.6 a mistake stops a start and a command with the same sentence, and no stack trace', async (t) => {
  const cwd = t.testdir({ 'usher.config.ts': 'export default {\n  hook: {}\n}\n', other: {} })
  const said = 'usher.config.ts: there is no option hook: did you mean hooks?\n'
  const started = await failStart({ DATABASE_URL: 'postgres://127.0.0.1:1/none' }, cwd)
  t.equal(started.code, 1)
  t.equal(started.stderr, said)
  t.match(await runCommand(['users', 'list'], { DATABASE_URL: 'postgres://127.0.0.1:1/none' }, cwd), { code: 1, stderr: said })
  const { code, stdout } = await runCommand(['config', '--json'], { PORT: 'x' }, cwd)
  t.match([code, JSON.parse(stdout).errors], [1, [said.trim(), /^PORT must be/]], 'with what is wrong with settings')

  writeFileSync(join(cwd, 'usher.config.mjs'), 'export default {}')
  const two = 'There are usher.config.ts and usher.config.mjs: remove all but one, or name one with CONFIG.\n'
  t.equal((await runCommand(['migrate'], {}, cwd)).stderr, two)
  t.equal((await runCommand(['migrate'], { CONFIG: 'other/none.ts' }, cwd)).stderr, `CONFIG: ${cwd}/other/none.ts does not exist.\n`)
  t.equal((await runCommand(['migrate'], { CONFIG: 'other' }, cwd)).stderr, 'CONFIG must be a file whose name ends with .ts, .js or .mjs.\n')
  mkdirSync(join(cwd, 'node_modules'))
  writeFileSync(join(cwd, 'node_modules/usher.config.ts'), 'export default {}')
  t.match((await runCommand(['migrate'], { CONFIG: 'node_modules/usher.config.ts' }, cwd)).stderr, /^node_modules\/usher\.config\.ts: Node runs no TypeScript inside of node_modules/)
})

t.test('14.6 each option that a setting has takes its value from the file, unless the setting is given', async (t) => {
  const path = join(t.testdir(), 'usher.config.ts')
  for (const [name, option] of Object.entries(optionOfSetting)) {
    const members = option.split('.')
    // No option has it, and so it cannot be a default.
    const value = `the value of ${option}`
    const options = members.reduceRight<unknown>((inner, key) => ({ [key]: inner }), value) as UsherConfig
    const file = { name: 'usher.config.ts', path, cwd: '', options }
    // Some need others.
    const { settings } = checkSettings({ PRINT_SECRETS: 'true' }, file)
    t.equal(settings[name as keyof typeof optionOfSetting], value, name)
    const found = members.reduce<unknown>((object, key) => Reflect.get(Object(object), key), serviceOptions(settings))
    // A path is one from the working folder.
    t.ok(found === undefined || found === value || found === resolve(value), option)
  }
  const of = (environment: Record<string, string>, options: UsherConfig) =>
    parseSettings(environment, { name: 'usher.config.ts', path, cwd: '', options })
  t.equal(of({ SESSION_SECONDS: '6000', SESSION_IDLE_SECONDS: '6000' }, { sessionSeconds: 7000 }).SESSION_SECONDS, 6000)
  t.throws(() => of({ SESSION_IDLE_SECONDS: '8000' }, { sessionSeconds: 7000 }), /SESSION_IDLE_SECONDS 8000 has no effect beyond SESSION_SECONDS, which is 7000/)

  const nobody = () => false
  const rules = { 'users:read-email': nobody, 'posts:read': nobody, 'posts:create': nobody }
  const { policy } = serviceOptions(of({ POSTS_VISIBLE_TO: 'members' }, { policy: rules }))
  t.equal(policy['users:read-email'], nobody)
  t.equal(policy['posts:create'], nobody)
  t.not(policy['posts:read'], nobody, 'POSTS_VISIBLE_TO takes precedence')

  const options = serviceOptions(of(
    { PROVIDER_GITHUB_CLIENT_SECRET: 'of the environment', PRODUCT_NAME: 'Notes' },
    {
      publicUrl: 'https://example.com',
      providers: { github: { clientId: 'of the file', clientSecret: 'of the file' } },
      pages: { color: '#123456', productName: 'Others' },
      deadlines: { mail: 1234 },
      schema: 'notes',
      mailer: () => {},
    }
  ))
  t.match(options, {
    providers: { github: { clientId: 'of the file', clientSecret: 'of the environment' } },
    pages: { color: '#123456', productName: 'Notes' },
    deadlines: { mail: 1234 },
    schema: 'notes',
  })
  t.notOk('mailer' in options, 'which commands get from openMailer')
  t.doesNotThrow(() => readOptions({ databaseUrl: 'postgres://localhost/usher', ...options }))
  t.doesNotThrow(() => of({ SIGN_UP: 'true' }, { mailer: () => {}, publicUrl: 'https://example.com' }))
})

t.test('14.6, 16.5 a provider of the file may keep tokens if SECRET or the file has the secret that encrypts them', async (t) => {
  const github = { clientId: 'a', clientSecret: 'b', keepTokens: true }
  const options = `publicUrl: 'https://example.com', providers: ${JSON.stringify({ github })}`
  const cwd = t.testdir({
    without: { 'usher.config.ts': `export default { ${options} }\n` },
    with: { 'usher.config.ts': `export default { secret: 'a secret of the file', ${options} }\n` },
  })
  const config = async (folder: string, settings: Record<string, string>) => {
    const { stdout } = await runCommand(['config', '--json'], settings, join(cwd, folder))
    return JSON.parse(stdout).errors as string[]
  }
  t.same(await config('without', { SECRET: 'a secret of the node' }), [])
  t.same(await config('without', {}), ['providers.github.keepTokens needs SECRET, which encrypts the tokens.'])
  t.same(await config('with', {}), [])
})

t.test('14.6 config shows where each value comes from, and no secrets', async (t) => {
  const source = `import { defineConfig } from 'fastify-usher'
export default defineConfig({
  secret: 'a secret of sixteen', publicUrl: 'https://example.com', sessionSeconds: 7000, policy: { 'users:read-email': () => true },
  providers: { github: { clientId: 'usher', clientSecret: 'another secret' } },
  hooks: { beforeLogin () {} }, hookSeconds: 5, pingSeconds: 20, webhooks: [], throttle: { account: { burst: 7 } }
})
// Something that would keep the process alive.
setInterval(() => {}, 1e6)
`
  const cwd = t.testdir({ 'usher.config.ts': source, '.env': 'SESSION_IDLE_SECONDS=6000\n' })
  const { stdout, stderr, code } = await spawnCommand(['config', '--json'], { PRODUCT_NAME: 'Notes' }, cwd)
  t.same([code, stderr], [0, ''])
  t.notMatch(stdout, /a secret of|another secret/)
  type Shown = { name: string, value: unknown, source: string }[]
  const { settings, options } = JSON.parse(stdout) as { settings: Shown, options: Shown }
  const found = Object.fromEntries([...settings, ...options].map(({ name, value, source }) => [name, [value, source]]))
  t.match(found, {
    PRODUCT_NAME: ['Notes', 'environment'],
    SESSION_IDLE_SECONDS: [6000, '.env'],
    SESSION_SECONDS: [7000, 'usher.config.ts'],
    SECRET: ['********', 'usher.config.ts'],
    THROTTLE_ACCOUNT_BURST: [7, 'usher.config.ts'],
    THROTTLE_ACCOUNT_PER_MINUTE: [1, 'default'],
    CONFIG: ['usher.config.ts', 'default'],
    EMAILS_VISIBLE_TO: ['(rule of the file)', 'usher.config.ts'],
    'providers.github.clientSecret': ['********', 'usher.config.ts'],
    hooks: ['(beforeLogin)', 'usher.config.ts'],
    hookSeconds: ['5', 'usher.config.ts'],
    webhooks: ['(0 items)', 'usher.config.ts'],
  })
  t.notOk('sessionSeconds' in found || 'throttle' in found, 'what a setting shows is not shown twice')
})

t.test('18.3 the console shows the settings and options that config shows', async (t) => {
  const cwd = t.testdir({
    'usher.config.mjs': "export default { publicUrl: 'https://example.com', hookSeconds: 5, hooks: { beforeLogin () {} } }\n",
    '.env': 'SESSION_IDLE_SECONDS=6000\n',
  })
  const shell = createShell({ PRODUCT_NAME: 'Notes', LOG_LEVEL: '' }, cwd)
  const first = await listSettings(shell)
  // A node has read its settings before.
  const shown = await listShownSettings(shell)
  t.strictSame(shown.map(({ name, source }) => [name, source]),
    [...first.settings, ...first.options].map(({ name, source }) => [name, source]))
  t.match(Object.fromEntries(shown.map(({ name, value, source }) => [name, [value, source]])), {
    CONFIG: ['usher.config.mjs', 'default'],
    PUBLIC_URL: ['https://example.com', 'usher.config.mjs'],
    PRODUCT_NAME: ['Notes', 'environment'],
    SESSION_IDLE_SECONDS: ['6000', '.env'],
    LOG_LEVEL: ['info', 'default'],
    hookSeconds: ['5', 'usher.config.mjs'],
    hooks: ['(beforeLogin)', 'usher.config.mjs'],
  })
})

t.test('14.6 init writes a file once, whose examples work', async (t) => {
  const cwd = t.testdir({})
  const { stdout, stderr, code } = await runCommand(['init'], {}, cwd)
  t.same([code, stderr], [0, ''])
  t.match(stdout, /usher\.config\.ts was written/)
  const written = readFileSync(join(cwd, 'usher.config.ts'), 'utf8')
  t.equal(written, createTemplate())
  t.same((await loadAt(join(cwd, 'usher.config.ts')))!.options, {})
  t.match(await runCommand(['init'], {}, cwd), { code: 1, stderr: /usher\.config\.ts exists, and is not changed\.\n$/ })
  const other = t.testdir({ 'usher.config.mjs': '' })
  t.match(await runCommand(['init'], {}, other), { code: 1, stderr: /usher\.config\.mjs exists/ })
  t.notOk(existsSync(join(other, 'usher.config.ts')))

  const active = createTemplate().replaceAll(/^( *)\/\/ {3}/gm, '$1')
  process.env['PROVIDER_GITHUB_CLIENT_SECRET'] = 'the secret of the app'
  t.teardown(() => { delete process.env['PROVIDER_GITHUB_CLIENT_SECRET'] })
  const { options } = (await load(t, active, { name: 'active.ts' }))!
  t.same(Object.keys(options), [
    'userFields', 'hooks', 'claims', 'policy', 'signUp', 'sessionIdleSeconds', 'pages', 'publicUrl', 'providers', 'routes',
  ])
})

t.test('14.6 routes of the file are a scope of their own, of any kind of plugin, and their errors have a line', async (t) => {
  const path = join(t.testdir(), 'usher.config.ts')
  const appWith = async (routes: NonNullable<UsherConfig['routes']>) => {
    const app = Fastify()
    t.teardown(() => app.close())
    app.get('/taken', async () => 'of Usher')
    await addRoutes(app, { name: 'usher.config.ts', path, cwd: '', options: { routes } }, NODE_DEADLINES)
    app.get('/later', async () => 'of Usher')
    return app
  }
  const wholeApp = fp(async (scope) => {
    scope.addHook('onRequest', async (_, reply) => { reply.header('x-own', 'yes') })
    scope.decorate('own', 1)
    scope.get('/', async () => 'own')
  })
  const app = await appWith(wholeApp)
  t.match((await app.inject('/')).headers, { 'x-own': 'yes' })
  for (const url of ['/taken', '/later']) t.notOk('x-own' in (await app.inject(url)).headers, url)
  t.notOk(app.hasDecorator('own'))
  for (const routes of [
    (scope: typeof app) => { scope.get('/', async () => 'own') },
    (scope: typeof app, _: object, done: () => void) => {
      scope.get('/', async () => 'own')
      setImmediate(done)
    },
  ]) t.equal((await (await appWith(routes)).inject('/')).body, 'own')

  const failing = "export default {\n  routes (app) {\n    app.get('/taken', async () => 1)\n  }\n}"
  const file = (await load(t, failing))!
  const taken = Fastify()
  taken.get('/taken', async () => 'of Usher')
  await t.rejects(addRoutes(taken, file, NODE_DEADLINES), {
    message: /usher\.config\.ts:3: Method 'GET' already declared for route '\/taken'.*\.$/,
  })
})

nightly('14.6 a page of the file replaces that of the node at /', async (t) => {
  const source = "export default { routes (app: any) { app.get('/', () => 'My page') } }"
  const cwd = t.testdir({ 'mine.mts': source })
  const node = await startNode(t, { cwd, settings: { DATABASE_URL: await createDatabase(t), CONFIG: 'mine.mts' } })
  t.equal(await (await node.fetch('/')).text(), 'My page')
  t.match(node.stdout, 'Anybody can read the addresses of users, also without a login: EMAILS_VISIBLE_TO=owners hides them')
  t.equal((await node.fetch('/favicon.ico')).status, 200)
  t.equal(await stopNode(node), 0)
})

t.test('11.1 with SIGN_UP, addresses are for owners and admins unless a setting or a rule says otherwise', async (t) => {
  const path = join(t.testdir(), 'usher.config.ts')
  const visible = (environment: Record<string, string>, options: UsherConfig = {}) =>
    parseSettings({ PRINT_SECRETS: 'true', ...environment }, { name: 'usher.config.ts', path, cwd: '', options }).EMAILS_VISIBLE_TO
  t.equal(visible({}), 'anyone')
  t.equal(visible({ SIGN_UP: 'true' }), 'owners')
  t.equal(visible({}, { signUp: true }), 'owners')
  t.equal(visible({ SIGN_UP: 'true', EMAILS_VISIBLE_TO: 'anyone' }), 'anyone')
})

nightly('11.2 on a terminal, a node with sign-up and without SMTP_URL prints the mails', async (t) => {
  const DATABASE_URL = await createDatabase(t)
  const server = fileURLToPath(new URL('../../../node/server.ts', import.meta.url))
  const node = spawnOnTerminal(t, [server], { cwd: t.testdir(), settings: { DATABASE_URL, PORT: '0', SIGN_UP: 'true' } })
  const [, url = ''] = await node.shows(/listens on (http:\S+)/)
  t.match(node.output, 'Addresses of users are visible to themselves and to admins only, because anyone may sign up')
  const post = async (path: string, body: object) =>
    fetch(`${url}${path}`, { method: 'POST', headers: json, body: JSON.stringify(body) })
  const user = { name: 'Ada', email: 'ada@example.com', password: 'violet engine notes' }
  t.equal((await post('/api/auth/sign-up', user)).status, 202)
  const [, token = ''] = await node.shows(/Mail to ada@example\.com[^]*#token=([\w-]{43})/)
  t.equal((await post('/api/auth/sign-up/confirm', { token, password: user.password })).status, 201)
  const users = await (await fetch(`${url}/api/users?q=ada`)).json() as object[]
  t.match(users, [{ name: 'Ada' }])
  t.notOk('email' in users[0]!)
  node.type('\x03')
  await node.ended
})
