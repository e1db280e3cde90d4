import { globSync, readFileSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { fileURLToPath } from 'node:url'
import t from 'tap'
import ts from 'typescript'

// The layers from which the files of each layer may import: the layer itself and those below it.
const below: Readonly<Record<string, readonly string[]>> = {
  schema: ['schema'],
  db: ['schema', 'db'],
  plugins: ['schema', 'db', 'plugins'],
  routes: ['schema', 'db', 'plugins', 'routes'],
}
// The node around the plugin, which a host never loads.
const NODE = 'node'

const root = fileURLToPath(new URL('../..', import.meta.url))
const list = (pattern: string) => globSync(pattern, { cwd: root, exclude: ['test/consumer/**'] }).sort()
const read = (file: string) => readFileSync(join(root, file), 'utf8')
const layerOf = (file: string) => file.split('/')[0]!
const layers = Object.keys(below).flatMap((floor) => list(`${floor}/**/*.ts`))
const service = ['app.ts', ...layers]
const code = [...service, ...list(`${NODE}/**/*.ts`), ...list('{client,testing}/**/*.ts')]

// Returns the names of all modules that a file imports: imports, type imports, re-exports and dynamic imports.
const importsOf = (file: string) => ts.preProcessFile(read(file)).importedFiles.map(({ fileName }) => fileName)

// Returns the imported files of this repository, as paths relative to its root.
const ours = (file: string) =>
  importsOf(file).filter((name) => name.startsWith('.')).map((name) => join(dirname(file), name))

t.test('imports go down a layer or stay within it, never up', async (t) => {
  t.ok(layers.length > 30, 'the files are found')
  const up = layers.flatMap((file) =>
    ours(file).filter((name) => !below[layerOf(file)]!.includes(layerOf(name))).map((name) => `${file}: ${name}`))
  t.same(up, [])
  t.same(ours('app.ts').filter((name) => !(layerOf(name) in below)), [], 'app.ts')
  t.same(
    service.flatMap(ours).filter((name) => ['app.ts', 'node/server.ts'].includes(name)), [], 'nothing imports the app'
  )
})

t.test('no file imports itself by way of others', async (t) => {
  const done = new Set<string>()
  const cycles: string[] = []
  const visit = (file: string, path: readonly string[]) => {
    if (path.includes(file)) return void cycles.push([...path.slice(path.indexOf(file)), file].join(' → '))
    if (done.has(file)) return
    for (const name of ours(file)) if (name.endsWith('.ts')) visit(name, [...path, file])
    done.add(file)
  }
  for (const file of code) visit(file, [])
  t.same(cycles, [])
})

t.test('only the node reads the environment, ends the process and writes to the console', async (t) => {
  const pattern = /\bprocess\.(env(\.\w+)?|exit|on|once|stdout|stderr)\b|\bconsole(\.(log|error|warn|info|debug|trace|table|dir|assert|count|group|time)|\[)|[=(,]\s*console\b(?!:)/g
  const used = service.filter((file) => read(file).match(pattern)).flatMap((file) => {
    const code = ts.transpileModule(
      read(file), { compilerOptions: { removeComments: true, target: ts.ScriptTarget.ESNext } }
    ).outputText
    return [...code.matchAll(pattern)].map(([found]) => `${file}: ${found}`)
  })
  t.same(used, [])
  t.same(service.flatMap((file) => importsOf(file).filter((name) => /^(node:)?(process|console)$/.test(name))
    .map(() => file)), [])
})

t.test('commands get the environment, the folder and the streams as arguments, and leave the process to whoever runs them', async (t) => {
  const files = list(`${NODE}/{commands,config,imports,mail,settings,status}/**/*.ts`)
  t.ok(files.length > 50, 'the files are found')
  const used = files.flatMap((file) => [...read(file).replaceAll(/^ *(\/\/|\/?\*).*$/gm, '')
    .matchAll(/\bprocess\.(env|cwd|chdir|loadEnvFile|umask|exit|exitCode|on|once|stdin|stdout|stderr)\b|\bconsole\./g)]
    .map(([found]) => `${file}: ${found}`))
  t.same(used, [])
})

t.test('plugins use fastify-plugin and have a name, and routes do not use it', async (t) => {
  const plugins = list('plugins/**/*.ts').filter((file) => /^export default/m.test(read(file)))
  t.not(plugins.length, 0)
  t.same(plugins.filter((file) => !/^export default fp[(<]/m.test(read(file))), [])
  t.same(plugins.filter((file) => !/name: 'usher-[\w-]+'/.test(read(file))), [], 'without a name')
  t.same(list('routes/**/*.ts').filter((file) => importsOf(file).includes('fastify-plugin')), [])
})

t.test('a new test file is found by its folder, which one suite runs', async (t) => {
  const files = list('test/**/*.test.ts').filter((file) => !/\.alone\.(nightly\.)?test\.ts$/.test(file))
  const folders = [...new Set(files.map((file) => file.split('/')[1]!))]
  const run = list('test/suites/*.ts').flatMap((suite) => read(suite).match(/(?<=')[\w-]+(?=')/g) ?? [])
  t.same(run.sort(), folders.sort())
})

t.test('1.10 one function opens connections to the database, so that all of them lead to the host that accepts writes', async (t) => {
  // The first parses a URL. The next two read options, and connect to an embedded PostgreSQL, which has one host.
  const allowed = [
    'schema/options/database-url.ts', 'db/driver/client-options.ts', 'db/driver/client.ts', 'db/driver/sockets.ts',
  ]
  const opening = [...service, ...list(`${NODE}/**/*.ts`)]
    .filter((file) => /\bpostgres\(/.test(read(file).replaceAll(/^ *(\/\/|\/?\*).*$/gm, '')))
  t.same(opening.filter((file) => !allowed.includes(file)), [])
})

t.test('15.4 the client imports nothing of the service and nothing of Node.js', async (t) => {
  const files = list('client/**/*.ts')
  t.ok(files.length > 5)
  const isOfReact = (file: string) => /\/client\/react(\.ts$|\/)/.test(`/${file}`)
  // Files of the client, from beside or, for those in client/react/, from above.
  const isOwn = (file: string, name: string) => isOfReact(file)
    ? name === 'react' || /^\.\.?\/(react\/)?[\w-]+\.ts$/.test(name)
    : /^\.\/[\w-]+\.ts$/.test(name)
  t.same(files.flatMap((file) => importsOf(file).filter((name) => name !== 'openapi-fetch' && !isOwn(file, name))), [])
})
