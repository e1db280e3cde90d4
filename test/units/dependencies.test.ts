import { readFileSync } from 'node:fs'
import { glob } from 'node:fs/promises'
import t from 'tap'

const CORE = ['usherOptions', 'usherTelemetry', 'usherDatabase']
// What a plugin may look for without depending on it: a mount may leave uploads out, and a node also handles errors of
// requests outside of its mount.
const OPTIONAL: Readonly<Record<string, readonly string[]>> = {
  'usher-accounts': ['usherUploads'],
  'usher-errors': ['usherAccess', 'usherAudit', 'usherTelemetry'],
}

const nameOf = (decorator: string) => decorator.replace(/[A-Z]/g, (letter) => `-${letter.toLowerCase()}`)

const code = (file: string) => readFileSync(file, 'utf8').replace(/declare module 'fastify' \{\n[^]*?\n\}\n/, '')
  .replaceAll(/\/\*\*?[^]*?\*\/|\/\/.*/g, '')

t.test('the dependencies that a plugin declares are the decorators that it uses', async (t) => {
  let plugins = 0
  for await (const file of glob('plugins/**/*.ts')) {
    const source = code(file)
    const [, name, declared = ''] = /\{\s*name: '(usher-[a-z-]+)'(?:,\s*dependencies: \[([^\]]*)\])?/.exec(source) ?? []
    if (name === undefined) continue
    plugins++
    const used = new Set([...source.matchAll(/\busher[A-Z]\w*/g)].map(([decorator]) => decorator))
    if (source.includes('coreOf(app)')) for (const decorator of CORE) used.add(decorator)
    const own = [...source.matchAll(/decorate\('(\w+)'/g)].map(([, decorator]) => decorator!)
    const wanted = [...used]
      .filter((decorator) => !own.includes(decorator) && !OPTIONAL[name]?.includes(decorator)).map(nameOf)
    t.strictSame([...declared.matchAll(/'([^']+)'/g)].map(([, other]) => other).toSorted(), wanted.toSorted(), file)
  }
  t.ok(plugins >= 12, 'plugins were found')
})

t.test('a capability has one plugin, which adds one decorator', async (t) => {
  const added: { decorator: string, file: string }[] = []
  for await (const file of glob('plugins/**/*.ts')) {
    const decorators = readFileSync(file, 'utf8').matchAll(/\bdecorate\('(usher\w+)'/g)
    added.push(...[...decorators].map(([, decorator]) => ({ decorator: decorator!, file })))
  }
  for (const what of ['decorator', 'file'] as const) {
    const names = added.map((each) => each[what])
    t.strictSame(names.filter((name, index) => names.indexOf(name) !== index), [], `each ${what} once`)
  }
  t.ok(added.length > 0 && added.length <= 20, added.map(({ decorator }) => decorator).join(', '))
})
