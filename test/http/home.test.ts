import Fastify from 'fastify'
import t from 'tap'
import design from '../../node/pages/design.ts'
import home from '../../node/pages/home.ts'
import { createMissingPage } from '../../node/pages/missing.ts'
import httpDefaults from '../../node/http/defaults.ts'
import { createHeaders } from '../../node/http/security-headers.ts'
import type { GivenPages } from '../../schema/options/pages.ts'
import { readOptions } from '../../schema/options/read-options.ts'

const HTML = 'text/html,application/xhtml+xml,application/xml;q=0.9,*/*;q=0.8'

const withPages = (pages?: GivenPages) =>
  ({ pages: readOptions({ databaseUrl: 'postgres://127.0.0.1/none', pages }).pages })

const app = Fastify({ pluginTimeout: 0 })
t.teardown(() => app.close())
const origins = ['https://app.example.com']
await app.register(httpDefaults, {
  origins, setHeaders: createHeaders(origins), renderMissing: await createMissingPage(withPages()),
})
await app.register(home, { ...withPages(), signUp: false, console: false })

t.test('15.1 / is a page for browsers, with links to the other pages', async (t) => {
  for (const method of ['GET', 'HEAD'] as const) {
    const { statusCode, headers, body } = await app.inject({ method, url: '/', headers: { accept: HTML } })
    t.equal(statusCode, 200)
    t.match(headers, {
      'content-type': 'text/html; charset=utf-8',
      'content-security-policy':
        "default-src 'none'; style-src 'self'; font-src 'self'; img-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'; " +
        "script-src 'self'; connect-src 'self'",
      vary: 'Origin, Accept, Accept-Language',
      'x-content-type-options': 'nosniff',
    })
    if (method === 'HEAD') continue
    t.strictSame(
      [...body.matchAll(/(?:href|src)="(.*?)"/g)].map(([, link]) => link),
      ['favicon.svg', 'design.css', 'home.js', '#main', 'login', 'account', 'docs', 'graphql']
    )
    t.notMatch(body, /\{\{|<script>/)
    t.match((await app.inject('/home.js')).headers['content-type'], 'text/javascript')
  }
  const named = await app.inject({ url: '/', headers: { accept: 'Text/HTML;charset=UTF-8, application/json;q=0.9' } })
  t.equal(named.statusCode, 200, 'also if they name the charset')
})

t.test('15.1 / is in the language of the reader, and has the name, the color and the texts of the options', async (t) => {
  const node = Fastify({ pluginTimeout: 0 })
  t.teardown(() => node.close())
  await node.register(httpDefaults, { origins, setHeaders: createHeaders(origins) })
  await node.register(home, withPages({
    enabled: false, productName: 'A < B', color: '#0f766e', logo: '/logo.svg', texts: { ar: { homeUp: 'OK <b>' } },
  }))
  const read = (language: string) =>
    node.inject({ url: '/', headers: { accept: HTML, 'accept-language': language } })
  const german = await read('de-AT')
  t.match(german.body, 'Dieser Dienst ist in Betrieb.')
  t.match(german.body, '<img src="/logo.svg" alt="A &lt; B">')
  t.notMatch(german.body, /href="(login|account)"|<script/)
  t.equal(german.headers['content-language'], 'de')
  const arabic = await read('ar')
  t.match(arabic.body, '<html lang="ar" dir="rtl">')
  t.match(arabic.body, 'OK &lt;b&gt;')
  t.match((await node.inject('/design.css')).body, '--color: #0f766e;')
})

t.test('15.1 other clients still get 404 at /', async (t) => {
  for (const accept of [
    undefined, '*/*', 'application/json', 'application/json, text/html', 'image/png', 'text/html;q=0', 'nonsense',
    'text/html;q=x,,;', ',',
  ]) {
    const { statusCode, headers, body } =
      await app.inject({ url: '/', headers: accept === undefined ? {} : { accept } })
    t.strictSame([statusCode, JSON.parse(body)], [404, { error: 'Not found', code: 'NOT_FOUND' }], `${accept}`)
    t.equal(headers.vary, 'Origin, Accept')
  }
  for (const [method, url] of [
    ['POST', '/'], ['DELETE', '/'], ['POST', '/favicon.ico'],
  ] as const) {
    const { statusCode, body } = await app.inject({ method, url, headers: { accept: HTML } })
    t.strictSame([statusCode, JSON.parse(body)], [404, { error: 'Not found', code: 'NOT_FOUND' }], `${method} ${url}`)
  }
})

t.test('15.1 there is a favicon in both formats', async (t) => {
  const icon = await app.inject('/favicon.ico')
  t.match(icon.headers, { 'content-type': 'image/x-icon', 'cache-control': 'public, max-age=86400' })
  t.strictSame([...icon.rawPayload.subarray(0, 4)], [0, 0, 1, 0])
  const image = await app.inject('/favicon.svg')
  t.match(image.headers, { 'content-type': 'image/svg+xml', 'x-content-type-options': 'nosniff' })
  t.match(image.body, /^<svg /)
})

t.test('15.2 in development, /console/design shows all components of pages with files of its own', async (t) => {
  const node = Fastify({ pluginTimeout: 0 })
  t.teardown(() => node.close())
  await node.register(design, { color: '#0f766e' })
  const { body, headers } = await node.inject('/console/design')
  t.equal(headers['content-type'], 'text/html; charset=utf-8')
  const files = [...body.matchAll(/(?:href|src)="(design\/[^"]+)"/g)].map(([, file]) => `/console/${file}`)
  t.strictSame(files, ['/console/design/design.css', '/console/design/ui.js'])
  for (const file of files) t.equal((await node.inject(file)).statusCode, 200, file)
  t.match((await node.inject(files[0]!)).body, '--color: #0f766e;')
})

t.test('15.1 a browser gets a page in its language on a path that does not exist, and every other client JSON', async (t) => {
  const get = (url: string, accept?: string, more: object = {}) =>
    app.inject({ url, headers: { ...accept !== undefined && { accept }, ...more } })
  for (const [url, root] of [['/logn', './'], ['/a/b/c?d=/e', '../../'], ['/a/', '../'], [`/${'x/'.repeat(30)}`, '/']] as const) {
    const { statusCode, headers, body } = await get(url, HTML, { 'accept-language': 'de' })
    t.equal(statusCode, 404, url)
    t.match(headers, {
      'content-type': 'text/html; charset=utf-8',
      'content-language': 'de',
      vary: 'Origin, Accept, Accept-Language',
      'content-security-policy': /^default-src 'none'/,
    })
    t.match(body, '<h1>Diese Seite gibt es nicht</h1>')
    t.strictSame(
      [...body.matchAll(/href="(.*?)"/g)].map(([, link]) => link), [`${root}favicon.svg`, `${root}design.css`, '#main', root]
    )
  }
  const head = await app.inject({ method: 'HEAD', url: '/logn', headers: { accept: HTML } })
  t.strictSame([head.statusCode, head.body], [404, ''])
  const asJson = { error: 'Not found', code: 'NOT_FOUND' }
  for (const response of [
    await get('/logn'), await get('/logn', 'application/json'), await get('/logn', '*/*'), await get('/logn', 'image/avif,*/*'),
    await get('/api', HTML), await get('/api/logn', HTML),
    await app.inject({ method: 'POST', url: '/logn', headers: { accept: HTML } }),
  ]) {
    t.equal(response.statusCode, 404)
    t.match(response.headers['content-type'], /^application\/json/)
    t.match(response.json(), { error: asJson.error })
  }
})
