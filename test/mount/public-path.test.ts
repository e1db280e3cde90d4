import { createClient } from 'graphql-ws'
import Fastify from 'fastify'
import t from 'tap'
import { WebSocket } from 'ws'
import usher from '../../app.ts'
import { mountOptions } from '../helpers/host.ts'
import { createMailer } from '../helpers/mail.ts'
import { sample } from '../helpers/nightly.ts'
import { startStrippingProxy } from '../helpers/stripping-proxy.ts'
import { listen } from '../helpers/wire.ts'

const PAGES = [
  '/login', '/forgot-password', '/set-password', '/sign-up', '/sign-up/confirm', '/verify-email', '/undo', '/account',
  '/docs', '/docs/',
]

for (const prefix of sample(['/accounts', ''], 1)) {
  const mount = prefix || 'no prefix'
  t.test(`9 behind a proxy that removes the path of publicUrl, every address contains it: ${mount}`, async (t) => {
    const proxy = await startStrippingProxy(t, '/base')
    const inbox = createMailer()
    const app = Fastify({ pluginTimeout: 0, forceCloseConnections: true, trustProxy: true })
    t.teardown(() => app.close())
    const given = { ...await mountOptions(t, prefix), publicUrl: `${proxy.url}/`, mailer: inbox.mailer, signUp: true }
    await app.register(usher, given)
    proxy.forwardTo((await listen(app)).url)
    const base = `${proxy.url}${prefix}`
    const { origin, pathname } = new URL(base)
    const post = (path: string, body: object, headers: Record<string, string> = {}) =>
      fetch(`${base}${path}`, {
        method: 'POST', headers: { 'content-type': 'application/json', ...headers }, body: JSON.stringify(body),
      })
    /** Returns the session cookie for an address, as a browser sends it (RFC 6265 5.1.4). */
    const cookieFor = (response: Response, url: string) => {
      const [, value, path] = /^([^;]+);.* Path=([^;]+)/.exec(response.headers.getSetCookie()[0]!)!
      return new URL(url).pathname.startsWith(`${path}/`) ? value! : ''
    }

    const login = await post('/api/auth/login', given.admin!)
    const kept = cookieFor(login, `${base}/api/auth/refresh`)
    const refresh = await post('/api/auth/refresh', {}, { cookie: kept, origin })
    t.equal(refresh.status, 200, 'the browser sends the cookie back')
    const logout = await post('/api/auth/logout', {}, { cookie: cookieFor(refresh, `${base}/api/auth/logout`), origin })
    t.equal(logout.status, 204)
    t.equal(cookieFor(logout, `${base}/api/auth/login`), 'usher_session=', 'the same cookie is cleared')

    const { token } = await (await post('/api/auth/login', given.admin!)).json() as { token: string }
    const headers = { authorization: `Bearer ${token}` }
    const created = await post('/api/users', { name: 'Ada', email: 'ada@example.com' }, headers)
    t.equal(created.status, 201)
    const follow = async (address: string | null, rest: RequestInit = {}) =>
      (await fetch(new URL(address!, `${base}/api/x`), rest)).status
    t.equal(await follow(created.headers.get('location'), { headers }), 200, 'Location')
    for (const list of ['/api/users?limit=1', '/api/audit?limit=1']) {
      const link = (await fetch(`${base}${list}`, { headers })).headers.get('link')!
      t.equal(await follow(/^<([^>]+)>/.exec(link)![1]!, { headers }), 200, `Link of ${list}`)
    }
    const redirected = await fetch(`${base}/api/redirect`)
    t.same([redirected.status, redirected.url], [200, `${base}/api/users`])

    const form = new FormData()
    form.set('description', 'A note')
    form.set('file', new Blob(['noted']), 'note.txt')
    const uploaded = await fetch(`${base}/api/uploads`, { method: 'POST', headers, body: form })
    const { fileUrl } = await uploaded.json() as { fileUrl: string }
    t.equal(await (await fetch(fileUrl)).text(), 'noted', 'fileUrl')

    const document = await (await fetch(`${base}/docs/json`)).json() as { servers: { url: string }[] }
    for (const { url } of document.servers) {
      t.equal(await follow(`${new URL(url, origin)}/api/users`), 200, `the server ${url}`)
    }

    for (const page of PAGES) {
      const url = `${base}${page}`
      const response = await fetch(url)
      t.equal(response.status, 200, page)
      const html = await response.text()
      const found = [...html.matchAll(/\b(?:href|src)="([^"#]+)"/g)]
      const addresses = found.map(([, address]) => new URL(address!, response.url))
      t.ok(addresses.length > 0)
      for (const { href, pathname: path } of addresses) {
        t.ok(path.startsWith(`${pathname}/`), href)
        t.not(await follow(href), 404, `${page}: ${href}`)
      }
    }
    const formLogin = await fetch(`${base}/login`, {
      method: 'POST',
      redirect: 'manual',
      headers: { 'sec-fetch-site': 'same-origin' },
      body: new URLSearchParams(given.admin),
    })
    const next = new URL(formLogin.headers.get('location')!, `${base}/login`)
    t.same([formLogin.status, next.href], [303, `${base}/account`])
    t.not(cookieFor(formLogin, `${base}/api/auth/refresh`), '')

    await post('/api/auth/password-reset', { email: given.admin!.email })
    const [mail] = await inbox.of(given.admin!.email, 1)
    const [link] = /^http\S+$/m.exec(mail!.text)!
    t.match(link, `${base}/set-password#token=`)
    t.equal(await follow(link), 200)

    const client = createClient({ url: `${base}/graphql`.replace('http:', 'ws:'), webSocketImpl: WebSocket })
    t.teardown(() => client.dispose())
    const { value } = await client.iterate({ query: '{ __typename }' }).next()
    t.same(value, { data: { __typename: 'Query' } }, 'a socket')
  })
}
