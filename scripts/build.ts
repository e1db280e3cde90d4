// Builds dist/, the content of the package: JavaScript, the declarations of its entry point, the SDL, pages and their
// files, templates, and the libraries that have hundreds of modules. Builds dist-client/, the package of the client.
import { execFileSync } from 'node:child_process'
import { chmodSync, cpSync, existsSync, globSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { createRequire } from 'node:module'
import { join, relative, resolve } from 'node:path'
import { build } from 'esbuild'
import ts from 'typescript'
import manifest from '../package.json' with { type: 'json' }
import { createPage } from '../routes/graphql/graphiql/page.ts'
import { FONT, FONT_SOURCE } from '../routes/pages/font.ts'

const root = join(import.meta.dirname, '..')
const dist = join(root, 'dist')

// Without this, the output of source files that no longer exist would be shipped too.
rmSync(dist, { recursive: true, force: true })
const tsc = createRequire(import.meta.url).resolve('typescript/bin/tsc')
execFileSync(process.execPath, [tsc, '-p', join(root, 'tsconfig.build.json')], { stdio: 'inherit' })
const read = [
  'client/react.css', 'schema/graphql/schema.graphql', 'schema/sign-in/passwords/common-passwords.{txt,LICENSE}',
  '{node,routes}/pages/*.{css,graphql,html,ico,js,svg}', 'routes/pages/account/assets/*',
  'routes/pages/console/assets/*', 'plugins/outbox/mails/templates/*',
]
for (const file of globSync(read, { cwd: root })) {
  // A script of a page beside a module of the same name would replace it.
  if (existsSync(join(dist, file))) throw new Error(`${file} is a file of a page and the output of a module`)
  cpSync(join(root, file), join(dist, file))
}
cpSync(join(root, 'node_modules', FONT_SOURCE), join(dist, 'routes/pages', FONT))
cpSync(join(root, 'node_modules/@fontsource-variable/inter/LICENSE'), join(dist, 'routes/pages/inter.LICENSE'))
// tsc copies the package.json that a module imports. In dist/ it would make Node.js treat dist/ as a package of its
// own.
rmSync(join(dist, 'package.json'))
chmodSync(join(dist, 'node/server.js'), 0o755)
keepDeclarations(
  join(dist, 'app.d.ts'), join(dist, 'client/index.d.ts'), join(dist, 'client/posts.d.ts'),
  join(dist, 'client/react.d.ts'), join(dist, 'testing/index.d.ts')
)
buildClient(join(root, 'dist-client'))
await buildGraphiql(join(dist, 'routes/graphql/graphiql'))
for (const library of ['kysely', '@sinclair/typebox', 'content-disposition', 'uuid']) await bundleLibrary(library)
await bundleHighlighter()
await bundleModules()
checkImports()

// Writes usher-client, a package of its own for pages: the modules of the client, and a manifest with the same version.
function buildClient (folder: string): void {
  rmSync(folder, { recursive: true, force: true })
  cpSync(join(dist, 'client'), folder, { recursive: true })
  cpSync(join(root, 'client/README.md'), join(folder, 'README.md'))
  cpSync(join(root, 'LICENSE'), join(folder, 'LICENSE'))
  const { version, license, author, engines, dependencies } = manifest
  const entries = { '.': 'index', './posts': 'posts', './react': 'react' }
  writeFileSync(join(folder, 'package.json'), `${JSON.stringify({
    name: 'usher-client',
    version,
    description: 'Calls Usher (fastify-usher) from browsers and from Node.',
    license,
    author,
    type: 'module',
    sideEffects: ['*.css'],
    exports: {
      ...Object.fromEntries(Object.entries(entries)
        .map(([path, name]) => [path, { types: `./${name}.d.ts`, default: `./${name}.js` }])),
      './react.css': './react.css',
      './package.json': './package.json',
    },
    types: './index.d.ts',
    files: ['**/*.js', '**/*.d.ts', '*.css'],
    engines,
    dependencies: { 'openapi-fetch': dependencies['openapi-fetch'] },
    peerDependencies: { react: '>=18' },
    peerDependenciesMeta: { react: { optional: true } },
  }, null, 2)}\n`)
}

// Bundles what the package uses of a library into one module, and imports it from there. Loading the hundreds of
// modules of some takes more memory than all of Usher's own (docs/speed.md), and a host pays for it in each process.
// Others are ES modules that CommonJS plugins require: Node.js fails if it imports one at the same time, as it does for
// @fastify/autoload (docs/decisions/mounting-in-a-host.md).
async function bundleLibrary (library: string): Promise<void> {
  const file = `dist/vendor/${library.split('/').at(-1)}.js`
  const names = new Set<string>()
  for (const path of globSync('**/*.js', { cwd: dist })) {
    const module = join(dist, path)
    const text = readFileSync(module, 'utf8')
    const imports = new RegExp(`^import \\{([^}]*)\\} from '${library}';$`, 'gm')
    const bundled = text.replace(imports, (_, list: string) => {
      for (const name of list.split(',')) names.add(name.trim().split(' as ')[0]!)
      const specifier = relative(join(module, '..'), join(root, file))
      return `import {${list}} from '${specifier.startsWith('.') ? specifier : `./${specifier}`}';`
    })
    // Not by a search of the text, which may name the library in a message.
    const { importedFiles } = ts.preProcessFile(bundled)
    if (importedFiles.some(({ fileName }) => fileName === library)) {
      throw new Error(`${path} imports ${library} in another way than by names`)
    }
    if (bundled !== text) writeFileSync(module, bundled)
  }
  const contents = `export { ${[...names].join(', ')} } from '${library}'`
  await build({
    stdin: { contents, resolveDir: root },
    outfile: join(root, file),
    bundle: true,
    format: 'esm',
    platform: 'node',
    target: 'node22',
    // Names remain, for stack traces.
    minifySyntax: true,
    minifyWhitespace: true,
    legalComments: 'none',
  })
  const licence = globSync('{LICENSE,license}*', { cwd: join(root, 'node_modules', library) })[0]
  if (!licence) throw new Error(`${library} has no licence`)
  cpSync(join(root, 'node_modules', library, licence), join(root, file.replace(/js$/, 'LICENSE')))
}

// Bundles the module that colors code with the parts of its library that it uses, which hosts then need not install.
async function bundleHighlighter (): Promise<void> {
  const file = join(dist, 'routes/pages/highlight.js')
  await build({
    entryPoints: [file],
    outfile: file,
    allowOverwrite: true,
    absWorkingDir: root,
    bundle: true,
    format: 'esm',
    platform: 'node',
    target: 'node22.18',
    minify: true,
    legalComments: 'none',
  })
  cpSync(join(root, 'node_modules/highlight.js/LICENSE'), file.replace(/js$/, 'LICENSE'))
}

// Bundles the modules of the plugin, all of which a host loads at its start, into few files in dist/bundle/: one with
// those that commands need which do not start the plugin, one with the others. What is imported dynamically stays as it
// is, and so does what the help and threads load, which should not load a bundle. The file of each bundled module
// becomes one that exports the same from the bundle, so no module is evaluated twice. Names and comments that name the
// modules remain, for stack traces.
async function bundleModules (): Promise<void> {
  const app = join(dist, 'app.js')
  const small = reachableFrom(...['node/server.js', 'node/commands/index.js', 'plugins/sign-in/passkeys/worker.js']
    .map((path) => join(dist, path)))
  const commands = globSync('node/commands/**/*.js', { cwd: dist }).map((path) => join(dist, path))
    .filter((path) => !reachableFrom(path).has(app))
  const ofPlugin = reachableFrom(app)
  const ofData = reachableFrom(join(dist, 'node/commands/with-database.js'))
  const ofCommands = reachableFrom(...commands)
  const all = new Set([...ofData, ...ofPlugin].filter((path) => !small.has(path)))
  const data = new Set([...all].filter((path) => ofData.has(path) || ofCommands.has(path)))
  const exported = await exportsOf([...all])
  const folder = join(dist, 'bundle')
  const fromFolder = (path: string) => relative(folder, path).replace(/^(?!\.)/, './')
  const names = new Map([...all].map((path, index) =>
    [path, exported(path).map((name, position) => ({ name, alias: `m${index}_${position}` }))]))
  const listed = (path: string) => names.get(path)!
  const entry = (paths: Iterable<string>) => [...paths].map((path) => {
    const list = listed(path).map(({ name, alias }) => `${JSON.stringify(name)} as ${alias}`)
    return list.length === 0 ? `import ${JSON.stringify(path)}` : `export { ${list.join(', ')} } from ${JSON.stringify(path)}`
  }).join('\n')
  const entries: Record<string, string> = { data: entry(data), app: entry([...all].filter((path) => !data.has(path))) }
  const { metafile } = await build({
    entryPoints: Object.keys(entries).map((name) => ({ in: `usher:${name}`, out: name })),
    outdir: folder,
    absWorkingDir: root,
    bundle: true,
    splitting: true,
    metafile: true,
    format: 'esm',
    platform: 'node',
    target: 'node22.18',
    packages: 'external',
    chunkNames: '[name]',
    plugins: [{
      name: 'usher',
      setup ({ onResolve, onLoad }) {
        onResolve({ filter: /^usher:/ }, ({ path }) => ({ path: path.slice('usher:'.length), namespace: 'usher' }))
        onLoad({ filter: /./, namespace: 'usher' }, ({ path }) => ({ contents: entries[path]!, resolveDir: root }))
        onResolve({ filter: /^[./]/ }, ({ path, resolveDir }) => {
          const module = resolve(resolveDir, path)
          return all.has(module) ? { path: module } : { path: fromFolder(module), external: true }
        })
        onLoad({ filter: /\.js$/, namespace: 'file' }, ({ path }) => ({ contents: withOwnPlace(path, fromFolder(path)) }))
      },
    }],
  })
  for (const path of all) {
    const bundle = relative(join(path, '..'), join(folder, data.has(path) ? 'data.js' : 'app.js')).replace(/^(?!\.)/, './')
    const list = listed(path).map(({ name, alias }) => `${alias} as ${/^\w+$/.test(name) ? name : JSON.stringify(name)}`)
    writeFileSync(path, list.length === 0 ? `import '${bundle}'\n` : `export { ${list.join(', ')} } from '${bundle}'\n`)
  }
  const modules = Object.values(metafile.outputs).flatMap(({ inputs }) => Object.keys(inputs))
  const twice = modules.filter((path, index) => modules.indexOf(path) !== index)
  if (twice.length > 0) throw new Error(`modules are in two bundles:\n${twice.join('\n')}`)
}

// Returns the modules of dist/ that are loaded with some: themselves, and what they import statically.
function reachableFrom (...modules: string[]): Set<string> {
  const found = new Set(modules)
  for (const path of found) {
    const { statements } = ts.createSourceFile(path, readFileSync(path, 'utf8'), ts.ScriptTarget.Latest)
    for (const statement of statements) {
      if (!ts.isImportDeclaration(statement) && !ts.isExportDeclaration(statement)) continue
      const specifier = statement.moduleSpecifier
      if (!specifier || !ts.isStringLiteral(specifier) || !specifier.text.startsWith('.')) continue
      const imported = resolve(path, '..', specifier.text)
      if (!imported.includes('/vendor/')) found.add(imported)
    }
  }
  return found
}

// Returns a function that returns the names that a module exports.
async function exportsOf (modules: string[]): Promise<(module: string) => string[]> {
  const { metafile } = await build({
    entryPoints: modules,
    outdir: dist,
    outbase: dist,
    absWorkingDir: root,
    write: false,
    metafile: true,
    format: 'esm',
    target: 'node22.18',
  })
  return (module) => metafile.outputs[relative(root, module)]!.exports
}

// Returns the text of a module that finds its files from the folder of bundles as well.
function withOwnPlace (path: string, fromBundle: string): string {
  const text = readFileSync(path, 'utf8')
    // A host that bundles everything into CommonJS has none.
    .replaceAll('import.meta.url', `(import.meta.url && new URL(${JSON.stringify(fromBundle)}, import.meta.url).href)`)
    .replaceAll('import.meta.dirname', `(import.meta.dirname + ${JSON.stringify(`/${fromBundle.replace(/\/[^/]*$/, '')}`)})`)
  const [other] = /import\.meta\.(?!url|dirname)\w+/.exec(text) ?? []
  if (other) throw new Error(`${path} uses ${other}, which is another in a bundle`)
  return text
}

// Throws if a module imports a file that is not there. The compiler does not change the extension of a dynamic import
// in an expression that is exported by default. Scripts of pages are not modules of the package.
function checkImports (): void {
  const missing: string[] = []
  for (const file of globSync('**/*.js', { cwd: dist, exclude: ['**/assets/**'] })) {
    for (const { fileName } of ts.preProcessFile(readFileSync(join(dist, file), 'utf8')).importedFiles) {
      if (fileName.startsWith('.') && !existsSync(join(dist, file, '..', fileName))) {
        missing.push(`${file} imports ${fileName}`)
      }
    }
  }
  if (missing.length > 0) throw new Error(`dist/ lacks files:\n${missing.join('\n')}`)
}

// Creates the page of GraphiQL, so that the package does not depend on the library, with the licences of what the page
// contains.
async function buildGraphiql (folder: string): Promise<void> {
  const { body, policy } = await createPage()
  writeFileSync(join(folder, 'page.html.gz'), body)
  writeFileSync(join(folder, 'page.js'), `import { readFile } from 'node:fs/promises'
const file = new URL('page.html.gz', import.meta.url)
export const createPage = async () => ({ body: await readFile(file), policy: ${JSON.stringify(policy)} })
`)
  cpSync(join(root, 'scripts/graphiql.LICENSE'), join(folder, 'page.LICENSE'))
}

// Keeps only the declarations that the entry points need, because the others add internal types to Fastify's types.
// Changes the extension in their imports from `.ts` to `.js`, because not all compiler settings of hosts allow imports
// of `.ts`.
function keepDeclarations (...entries: string[]): void {
  const kept = new Set(entries)
  for (const file of kept) {
    const text = readFileSync(file, 'utf8')
      // Compilers would take what `require` returns for the only export, which has no types.
      .replace(/^export \{ plugin as 'module\.exports' \};?$/m, '')
      .replaceAll(/(from|import\()( ?['"]\.[^'"]*)\.ts(?=['"])/g, '$1$2.js')
    writeFileSync(file, text)
    for (const [, path] of text.matchAll(/['"](\.[^'"]*)\.js['"]/g)) kept.add(resolve(file, '..', `${path}.d.ts`))
  }
  for (const file of globSync('**/*.d.ts', { cwd: dist })) if (!kept.has(join(dist, file))) rmSync(join(dist, file))
}
