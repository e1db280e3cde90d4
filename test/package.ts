// What a change may break of the package: its files, its imports, and that it can be installed and mounted. The other
// tests are in test/release/package.release.ts.
import { globSync } from 'node:fs'
import { glob, readFile, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import t from 'tap'
import ts from 'typescript'
import manifest from '../package.json' with { type: 'json' }
import { testDatabaseUrl, uniqueSchema } from './helpers/database.ts'
import { nightly } from './helpers/nightly.ts'
import { installInHost, pack, runHost } from './helpers/package.ts'
import { temporaryFolder } from './helpers/temporary-folder.ts'

const root = join(import.meta.dirname, '..')
// Outside of the repository, so that the packages there are not found.
const folder = temporaryFolder()
// Packs like `npm publish`.
const { path: packed, files, size } = await pack(folder)

t.test('9 the package contains only what is needed at runtime', async (t) => {
  const paths = files.map(({ path }) => path)
  t.strictSame(
    paths.filter((path) => !/^(dist|docs|deploy)\//.test(path)).sort(),
    ['CHANGELOG.md', 'LICENSE', 'README.md', 'package.json']
  )
  t.strictSame(paths.filter((path) => path.startsWith('docs/pictures/')), [])
  t.ok(paths.includes('docs/settings.md'), 'to which `npx fastify-usher --help` refers')
  t.strictSame(paths.filter((path) => path.endsWith('.d.ts')).sort(), [
    'dist/app.d.ts',
    ...[
      'api', 'cache', 'error', 'graphql', 'index', 'passkeys', 'posts', 'react', 'react/account', 'react/context',
      'react/elements', 'react/fields', 'react/hooks', 'react/organizations', 'react/posts', 'react/resource', 'react/session', 'react/sign-in', 'react/sign-up',
      'react/step-up', 'react/texts', 'react/upload', 'react/user-button', 'register', 'retry', 'session', 'tabs',
    ].map((name) => `dist/client/${name}.d.ts`),
    'dist/plugins/database/migrate.d.ts',
    ...[
      'access/claims', 'admin/admin', 'fields/fields', 'graphql/host-graphql', 'options/breached-passwords', 'options/config',
      'options/deadlines', 'options/hooks', 'options/limits',
      'options/mail', 'options/mail-texts', 'options/metrics', 'options/options', 'options/organizations', 'options/page-texts',
      'options/pages', 'options/password-hash', 'options/policy', 'options/providers', 'options/register', 'options/roles', 'options/s3',
      'options/scan', 'options/stores', 'options/usher', 'options/webhooks', 'organizations/organization-fields', 'organizations/organizations', 'outbox/events', 'sign-in/ways', 'translations/languages', 'translations/mails/en',
      'translations/mails/index',
      'uploads/upload', 'uploads/upload-link', 'users/members', 'users/users', 'users/user-fields', 'users/user-list',
    ].map((name) => `dist/schema/${name}.d.ts`).sort(),
    'dist/testing/index.d.ts',
  ])
  const templates = globSync(
    ['routes/pages/account/assets/*', 'routes/pages/console/assets/*', 'plugins/outbox/mails/templates/*'],
    { cwd: root }
  )
  t.strictSame(templates.filter((file) => !paths.includes(`dist/${file}`)), [])
  const others = paths.filter((path) =>
    path.startsWith('dist/') && !/\.js$|\.d\.ts$/.test(path) && !templates.includes(path.slice('dist/'.length)))
  t.strictSame(others.sort(), [
    'dist/client/react.css', 'dist/node/pages/favicon.ico',
    'dist/routes/graphql/graphiql/page.LICENSE', 'dist/routes/graphql/graphiql/page.html.gz',
    'dist/routes/pages/bar.css', 'dist/routes/pages/design.css', 'dist/routes/pages/docs.css',
    'dist/routes/pages/examples.graphql', 'dist/routes/pages/favicon.svg', 'dist/routes/pages/graphiql.css',
    'dist/routes/pages/graphiql.html', 'dist/routes/pages/highlight.LICENSE', 'dist/routes/pages/inter.LICENSE',
    'dist/routes/pages/inter.woff2', 'dist/routes/pages/sign-in.html',
    'dist/schema/graphql/schema.graphql', 'dist/schema/sign-in/passwords/common-passwords.LICENSE',
    'dist/schema/sign-in/passwords/common-passwords.txt',
    ...['content-disposition', 'kysely', 'typebox', 'uuid'].map((name) => `dist/vendor/${name}.LICENSE`),
  ])
  t.strictSame(
    paths.filter((path) => /\/pages\/[^/]*\.js$/.test(path)).sort(),
    [
      'node/pages/design', 'node/pages/home', 'node/pages/missing',
      ...['components', 'design-page', 'docs-page', 'docs', 'font', 'graphiql', 'guide', 'highlight', 'home', 'html', 'markdown', 'pages',
        'reference-page', 'reference', 'samples', 'search', 'sign-in', 'ui']
        .map((name) => `routes/pages/${name}`),
    ]
      .map((name) => `dist/${name}.js`)
  )
  // Most of it is the page of GraphiQL, whose library has 9 MB. The reference and the console of all languages
  // are its own: a host installs 2.7 MB of another library less.
  t.ok(size < 4_200_000, `${size} bytes`)
})

t.test('9 every module that the package imports is among its dependencies', async (t) => {
  const { dependencies, peerDependencies = {} } = manifest as { dependencies: object, peerDependencies?: object }
  const imported = new Set<string>()
  for await (const file of glob('dist/**/*.js', { cwd: root })) {
    const { importedFiles } = ts.preProcessFile(await readFile(join(root, file), 'utf8'))
    for (const { fileName } of importedFiles) {
      if (!/^(\.|node:)/.test(fileName)) imported.add(/^(@[^/]+\/)?[^/]+/.exec(fileName)![0])
    }
  }
  t.strictSame(
    [...imported].filter((name) => !(name in dependencies || name in peerDependencies || name === manifest.name)), []
  )
  t.ok(imported.has('fastify'))
})

t.test('9 a host in JavaScript can install, import and mount the plugin, and gets responses', async (t) => {
  await installInHost(folder, packed)
  const options = {
    prefix: '/accounts',
    databaseUrl: await testDatabaseUrl(),
    schema: uniqueSchema('package'),
    admin: { email: 'admin@example.com', password: 'horse battery staple' },
  }
  t.equal(await runHost(folder, 'mounted.js', options), '[200,200,200,200]\n')
})

nightly('12.10 a start imports no ES module that a CommonJS plugin would get by require', async (t) => {
  await writeFile(join(folder, 'shared.js'), `
import { createRequire, registerHooks } from 'node:module'
const [imported, modules] = [[], new Set()]
registerHooks({
  resolve (specifier, context, nextResolve) {
    const resolved = nextResolve(specifier, context)
    const { url, format } = resolved
    const [, name] = /.*\\/node_modules\\/((?:@[^/]+\\/)?[^/]+)/.exec(url) ?? []
    if (format === 'module') modules.add(url)
    // What CommonJS requires, such as plugins that Usher uses, is loaded by one loader only.
    if (modules.has(context.parentURL) && name && name !== 'fastify-usher' && format === 'module') imported.push({ name, url })
    return resolved
  },
})
const { default: Fastify } = await import('fastify')
const app = Fastify()
await app.register(import('fastify-usher'), JSON.parse(process.argv[2]))
await app.ready()
await app.close()
// A package of which \`require\` gets another file has nothing to share.
const requires = ({ name, url }) => {
  const require = createRequire(new URL(import.meta.resolve('fastify-usher')))
  const folder = url.slice(0, url.lastIndexOf('/node_modules/' + name + '/') + name.length + 15)
  const { exports } = require(new URL('package.json', folder).pathname)
  const paths = typeof exports === 'object' && exports !== null ? Object.keys(exports).filter((path) => /^\\.[^*]*$/.test(path)) : ['.']
  const found = paths.map((path) => { try { return require.resolve(name + path.slice(1)) } catch { return '' } })
  return found.some((path) => path === new URL(url).pathname)
}
console.log(JSON.stringify({ imported: imported.length, shared: imported.filter(requires).map(({ name }) => name) }))
`)
  const { shared, imported } = JSON.parse(await runHost(folder, 'shared.js', {
    databaseUrl: await testDatabaseUrl(),
    schema: uniqueSchema('shared'),
    uploadsDir: join(folder, 'uploads'),
    console: true,
  }))
  t.ok(imported > 0, 'such as those of postgres')
  t.strictSame(shared, [])
})
