// What browsers run has the syntax that those of `browserslist` in package.json know.
import { globSync, readFileSync } from 'node:fs'
import { extname, join } from 'node:path'
import { transform, type Loader } from 'esbuild'
import t from 'tap'
import manifest from '../../package.json' with { type: 'json' }
import { passwordStrength } from '../../schema/sign-in/passwords/strength.ts'
import { describeUserAgent } from '../../schema/strings/user-agent.ts'
import { describeInput, inputText } from '../../schema/translations/describe-input.ts'
import { formatText, toSentence } from '../../schema/translations/format.ts'

const root = join(import.meta.dirname, '../..')
const target = manifest.browserslist.map((entry) => {
  const [, name = '', version = ''] = /^(\w+) >= ([\d.]+)$/.exec(entry)!
  return `${name === 'ios_saf' ? 'ios' : name}${version}`
})

/** Returns whether a source has no syntax that must be translated for the browsers. */
async function isKnown (source: string, loader: Loader): Promise<boolean> {
  const options = { loader, format: loader === 'css' ? undefined : 'esm' } as const
  const [translated, plain] = await Promise.all([
    transform(source, { ...options, target }), transform(source, { ...options, target: 'esnext' }),
  ])
  return translated.code === plain.code
}

t.test('15.4 the scripts of pages and the client have no syntax that a supported browser lacks', async (t) => {
  const files = globSync(['routes/**/assets/*.js', 'routes/pages/*.js', 'client/*.ts', 'examples/browser/*.js'], { cwd: root })
  t.ok(files.length > 20, `${files.length}`)
  for (const file of files) {
    t.ok(await isKnown(readFileSync(join(root, file), 'utf8'), extname(file).slice(1) as Loader), file)
  }
  for (const sent of [formatText, toSentence, describeUserAgent, describeInput, inputText, passwordStrength]) {
    t.ok(await isKnown(`export ${sent}`, 'js'), sent.name)
  }
  const newer = ['class A { static { f() } }', 'f(/(?<=a)b/)', 'f(/[a&&b]/v)', 'using a = f()']
  for (const source of newer) {
    t.notOk(await isKnown(source, 'js').catch(() => false), source)
  }
})

t.test('15.4 the documents name the browsers of the list', async (t) => {
  const of = (name: string) => manifest.browserslist.find((entry) => entry.startsWith(`${name} `))!.split(' ').at(-1)
  t.equal(of('chrome'), of('edge'))
  t.equal(of('safari'), of('ios_saf'))
  const sentence = `Chrome and Edge ${of('chrome')}, Firefox ${of('firefox')}, Safari ${of('safari')}`
  for (const name of ['client', 'pages', 'contract']) {
    t.ok(readFileSync(join(root, `docs/${name}.md`), 'utf8').replaceAll(/\s+/g, ' ').replaceAll(' and Safari', ', Safari').includes(sentence), name)
  }
})
