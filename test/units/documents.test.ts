import { existsSync, globSync, readFileSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { fileURLToPath } from 'node:url'
import Fastify from 'fastify'
import t from 'tap'
import httpDefaults from '../../node/http/defaults.ts'
import { createHeaders } from '../../node/http/security-headers.ts'
import { parseSettings } from '../../node/settings/settings.ts'
import { readOptions } from '../../schema/options/read-options.ts'

const root = fileURLToPath(new URL('../..', import.meta.url))
const read = (file: string) => readFileSync(join(root, file), 'utf8')
const documents = globSync(['*.md', 'docs/**/*.md', 'bench/*.md'], { cwd: root }).sort()

/** Returns the text of a document without its blocks of code. */
const prose = (file: string) => read(file).replaceAll(/^```[^]*?^```/gm, '')

/**
 * Returns the rows of the tables of a document whose first cell names something in code, as pairs of name and default
 * value.
 */
function defaultsIn (file: string): Map<string, string> {
  const rows = [...read(file).matchAll(/^\| (`[^|]*) \|(.*)\|$/gm)]
    .map(([, names, rest]) => ({ names: names!, cells: rest!.split(' | ').map((cell) => cell.trim()) }))
  // The default is the cell before the last one, which describes the effect.
  return new Map(
    rows.flatMap(({ names, cells }) => [...names.matchAll(/`(\w+)`/g)].map(([, name]) => [name!, cells.at(-2) ?? '']))
  )
}

/** Returns a default value as documents show it. */
function shown (value: unknown): string {
  if (typeof value !== 'object' || value === null) return typeof value === 'string' ? `\`${value}\`` : `${value}`
  return Array.isArray(value)
    ? ''
    : `\`{ ${Object.entries(value).map(([name, member]) => `${name}: ${member}`).join(', ')} }\``
}

t.test('every file that a document names exists, and every link leads to an existing heading', async (t) => {
  const slug = (heading: string) => heading.toLowerCase().replaceAll(/[^\w\- ]/g, '').replaceAll(' ', '-')
  t.ok(documents.length > 15)
  const missing = documents.flatMap((document) => {
    const text = prose(document)
    const links = [...text.matchAll(/\]\(([^)#:\s]*)(?:#([^)]+))?\)/g)]
      .map(([, file, section]) => ({ file: file ? join(dirname(document), file) : document, section }))
    const paths =
      [...text.matchAll(/`((?:db|node|plugins|routes|schema|test|bench|scripts)\/[\w./-]+\.(?:ts|graphql|md|sh))`/g)]
        .map(([, path]) => path!)
    const hasHeading = (file: string, section: string) =>
      [...read(file).matchAll(/^#+ (.+)$/gm)].some(([, heading]) => slug(heading!) === section)
    const exists = (file: string) => existsSync(join(root, file))
    return [
      ...[...paths, ...links.map(({ file }) => file)].filter((file) => !exists(file)),
      ...links.filter(({ file, section }) =>
        section !== undefined && file.endsWith('.md') && exists(file) && !hasHeading(file, section))
        .map(({ file, section }) => `${file}#${section}`),
    ].map((name) => `${document}: ${name}`)
  })
  t.same(missing, [])
})

t.test('15.2 the tests that docs/decisions/pages.md names exist', async (t) => {
  const sources = globSync(['test/**/*.test.ts', 'test/browser/*.ts'], { cwd: root }).map(read).join('\n')
  const titles = [...read('docs/decisions/pages.md').matchAll(/`(\d+\.\d [^`]+)`/g)].map(([, title]) => title!)
  t.ok(titles.length > 20)
  // One of these is a test for each language.
  t.strictSame(titles.filter((title) => !sources.includes(title) && !title.endsWith(', in en')), [])
})

t.test('9 docs/options.md lists every option with its default', async (t) => {
  const { throttle, live, graphql, pages: { texts: _, ...pages }, deadlines, ...options } =
    readOptions({ databaseUrl: 'postgres://localhost/usher' })
  const listed = defaultsIn('docs/options.md')
  const others = ['database', 'prefix', 'publicPath', 'policy', 'roles', 'hooks', 'hostGraphql']
  const defaults = Object.entries({
    ...options,
    texts: undefined,
    ...pages,
    ...throttle,
    ...live,
    ...graphql,
    bufferedBytes: graphql.bufferedBytes,
    ...deadlines,
  }).filter(([name]) => !others.includes(name))
  t.same(defaults.filter(([name]) => !listed.has(name)), [])
  const wrong = defaults.filter(([name, value]) => value !== undefined && !listed.get(name)?.startsWith(shown(value)))
  t.same(wrong.map(([name, value]) => `${name}: ${listed.get(name)} instead of ${shown(value)}`), [])
})

t.test('8 docs/settings.md lists every setting with its default', async (t) => {
  const listed = defaultsIn('docs/settings.md')
  const { given, ...settings } = parseSettings({})
  const defaults = Object.entries(settings)
  t.same(defaults.filter(([name]) => !listed.has(name)), [])
  const wrong = defaults.filter(([name, value]) =>
    name !== 'TRUST_PROXY' && !Array.isArray(value) && !listed.get(name)?.startsWith(shown(value)))
  t.same(wrong.map(([name, value]) => `${name}: ${listed.get(name)} instead of ${shown(value)}`), [])
})

/** Returns the names in the first column of a table of a document, without their values, in lower case and sorted. */
function headersIn (file: string, title: string): string[] {
  const [, rows = ''] = new RegExp(`^\\| ${title} \\| \\|\\n((?:\\|.*\\n)+)`, 'm').exec(read(file)) ?? []
  const cells = [...rows.matchAll(/^\| (`[^|]*) \|/gm)].map(([, cell]) => cell!)
  return cells.flatMap((cell) => [...cell.matchAll(/`([\w-]+)/g)].map(([, name]) => name!.toLowerCase())).sort()
}

t.test('8 pages of an origin in CORS_ORIGIN may send and read all headers that docs/endpoints.md names', async (t) => {
  const origin = 'https://app.example.com'
  const app = Fastify()
  t.teardown(() => app.close())
  await app.register(httpDefaults, { origins: [origin], setHeaders: createHeaders([origin]) })
  app.get('/', async () => 'here')
  const listIn = (value: unknown) => `${value}`.toLowerCase().split(', ').sort()

  const headers = { origin, 'access-control-request-method': 'GET' }
  const preflight = await app.inject({ method: 'OPTIONS', url: '/', headers })
  // Only the browser itself can set this one.
  const sent = headersIn('docs/endpoints.md', 'of requests').filter((name) => name !== 'origin')
  t.ok(sent.includes('last-event-id'))
  t.same(listIn(preflight.headers['access-control-allow-headers']), sent)

  const answer = await app.inject({ url: '/', headers: { origin } })
  // https://fetch.spec.whatwg.org/#cors-safelisted-response-header-name
  const read = [...new Set(headersIn('docs/endpoints.md', 'of responses'))]
    .filter((name) => !['cache-control', 'last-modified'].includes(name))
  t.ok(read.includes('etag'))
  t.same(listIn(answer.headers['access-control-expose-headers']), read)
})

t.test('8 docs/troubleshooting.md and docs/endpoints.md have every code of a failure, and no others', async (t) => {
  const sources = globSync(['schema/**/*.ts', 'plugins/**/*.ts', 'routes/**/*.ts', 'node/http/*.ts'], { cwd: root })
    .map(read).join('\n')
  // Defined as errors, as members of responses, or as classes.
  const patterns = [
    /defineError(?:<\w+>)?\(\s*'([A-Z_]+)'/g, /readonly code = '([A-Z_]+)'/g, /extensions: \{ code: '([A-Z_]+)'/g,
    /extensions = \{ code: '([A-Z_]+)'/g, /error: '[^']+', code: '([A-Z_]+)'/g,
  ]
  const codes = new Set(patterns.flatMap((pattern) => [...sources.matchAll(pattern)].map(([, code]) => code!)))
  t.ok(codes.size > 95, `${codes.size}`)
  for (const file of ['docs/troubleshooting.md', 'docs/endpoints.md']) {
    const text = read(file)
    t.strictSame([...codes].filter((code) => !text.includes(`\`${code}\``)), [], file)
  }
  const first = [...read('docs/troubleshooting.md').matchAll(/^\| (`[A-Z_]{5,}`[^|]*) \|/gm)]
  const listed = first.flatMap(([, cell]) => [...cell!.matchAll(/`([A-Z_]+)`/g)].map(([, code]) => code!))
  t.ok(listed.length > 90)
  t.strictSame(listed.filter((code) => !codes.has(code) && !['EADDRINUSE', 'INVALID_INPUT'].includes(code)), [])
  t.strictSame(listed.filter((code, index) => listed.indexOf(code) !== index), [], 'each once')
})

t.test('8 docs/troubleshooting.md has every limit that a host can change', async (t) => {
  const { throttle, live, graphql, ...options } = readOptions({ databaseUrl: 'postgres://localhost/usher' })
  const isLimit = (name: string) => /Limit$|Quota|unfinished|(max|min)Bytes/i.test(name) ||
    [
      'bodySeconds', 'uploadIdleSeconds', 'postsPerHour', 'poolSize', 'hookSeconds', 'accessTokenSeconds', 'sessionSeconds',
      'sessionIdleSeconds', 'stepUpSeconds',
    ].includes(name)
  const groups = [throttle, live, graphql].flatMap((group) => Object.keys(group))
  const limits = [...groups, ...Object.keys(options).filter(isLimit)]
  t.ok(limits.length > 35, `${limits.length}`)
  const text = read('docs/troubleshooting.md')
  t.strictSame(limits.filter((name) => !new RegExp(`\`(?:\\w+\\.)?${name}\``).test(text)), [])
})

t.test('docs/README.md lists every document', async (t) => {
  const links = [...read('docs/README.md').matchAll(/\]\(([^)#:\s]+)\)/g)].map(([, file]) => join('docs', file!))
  t.strictSame(documents.filter((file) => file.startsWith('docs/') && file !== 'docs/README.md' &&
    !file.startsWith('docs/decisions/') && !links.includes(file)), [])
})

t.test("the figures of README.md's first section are those of docs/speed.md", async (t) => {
  const [, why = ''] = /^## Why\n([^]*?)^## /m.exec(read('README.md'))!
  const speed = read('docs/speed.md')
  const row = (name: string) =>
    speed.split('\n').find((line) => line.startsWith(`| ${name}`))!.split('|').map((cell) => cell.trim())
  const [, , rate, , ceiling, ratio] = row('GET user by id')
  t.ok(why.includes(`${rate} reads of users by id a second`), `${rate}`)
  t.equal(Math.round(Number(ceiling) * 10), 5, 'half')
  t.ok(why.includes(`${ratio} times a straightforward Fastify service`), `${ratio}`)
  t.ok(why.includes(`; ${Number(row('list of 50 users by role')[5])} times for lists`))
  const [, p99] = /p99 ([\d.]+) ms/.exec(row('a post to 2,000 subscribers').join(' '))!
  t.ok(why.includes(`p99 of ${p99} ms`), `${p99}`)
  t.ok(read('README.md').split('\n').length < 170)
})
