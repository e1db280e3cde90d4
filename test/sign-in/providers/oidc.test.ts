import { once } from 'node:events'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import t, { type Test } from 'tap'
import { openProviders, ORIGIN } from '../../helpers/provider.ts'
import { until } from '../../helpers/until.ts'

// It has no types of its own.
type OidcProvider = new (issuer: string, configuration: object) => { callback (): Parameters<typeof createServer>[1] }
const { default: Provider } = await import('oidc-provider' as string) as { default: OidcProvider }

/**
 * Starts an issuer that nobody here has written. It sends logout tokens to Usher.
 * @param saysAddress whether its ID tokens have the address, but neither the name nor whether the address is verified
 */
async function startIssuer (t: Test, saysAddress = false) {
  const server = createServer()
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  const issuer = `http://127.0.0.1:${(server.address() as AddressInfo).port}`
  const logouts: string[] = []
  const provider = new Provider(issuer, {
    clients: [{
      client_id: 'usher',
      client_secret: 'a secret of Usher',
      redirect_uris: [`${ORIGIN}/api/auth/providers/acme/callback`],
      backchannel_logout_uri: `${ORIGIN}/api/auth/providers/acme/logout`,
      backchannel_logout_session_required: true,
    }],
    claims: { email: ['email', 'email_verified'], profile: ['name'] },
    features: { backchannelLogout: { enabled: true } },
    findAccount: async (_: unknown, id: string) => ({
      accountId: id,
      claims: async (use: 'id_token' | 'userinfo') => ({
        sub: id, email: `${id}@example.com`, ...use === 'userinfo' && { email_verified: true, name: 'Ada' },
      }),
    }),
    conformIdTokenClaims: !saysAddress,
    // Logout tokens are kept for the test, which sends them itself: nothing listens at the public URL.
    fetch: async (url: string | URL | Request, options?: RequestInit) => {
      if (`${url}`.startsWith(ORIGIN)) {
        logouts.push(new URLSearchParams(`${options?.body as string}`).get('logout_token')!)
        return new Response(null, { status: 200 })
      }
      return fetch(url as string, options)
    },
  })
  server.on('request', provider.callback()!)
  t.teardown(() => {
    server.closeAllConnections()
    server.close()
  })
  return { issuer, logouts }
}

/** A browser that keeps cookies, follows redirects at the issuer, and submits its forms. */
function createBrowser (issuer: string) {
  const cookies = new Map<string, string>()

  async function open (url: string, form?: Record<string, string>): Promise<{ url: string, body: string }> {
    const response = await fetch(url, {
      redirect: 'manual',
      headers: { cookie: [...cookies].map(([name, value]) => `${name}=${value}`).join('; ') },
      ...form && { method: 'POST', body: new URLSearchParams(form) },
    })
    for (const cookie of response.headers.getSetCookie()) {
      const [, name, value] = /^([^=]+)=([^;]*)/.exec(cookie)!
      cookies.set(name!, value!)
    }
    const location = response.headers.get('location')
    const next = location === null ? undefined : new URL(location, url).href
    if (next === undefined) return { url, body: await response.text() }
    return next.startsWith(issuer) ? open(next) : { url: next, body: '' }
  }

  /** Logs in at the issuer's own pages, and consents. Returns the query of the callback. */
  async function logIn (url: string, name: string): Promise<Record<string, string>> {
    let page = await open(url)
    for (let step = 0; step < 3 && page.url.startsWith(issuer); step++) {
      const [, action] = /action="([^"]+)"/.exec(page.body) ?? []
      if (action === undefined) throw new Error(page.body)
      const prompt = page.body.includes('name="login"') ? 'login' : 'consent'
      page = await open(new URL(action, issuer).href, { prompt, ...prompt === 'login' && { login: name, password: 'x' } })
    }
    return Object.fromEntries(new URL(page.url).searchParams)
  }

  return { open, logIn }
}

t.test('16.5 a login at oidc-provider: its pages, its keys, its userinfo, and its logout', async (t) => {
  const { issuer, logouts } = await startIssuer(t)
  const { begin, finish, sessionOf, inject } = await openProviders(t, {
    providers: {
      acme: {
        issuer, clientId: 'usher', clientSecret: 'a secret of Usher', trustEmail: true, signUp: true, allowPrivateAddresses: true,
      },
    },
  })
  const browser = createBrowser(issuer)
  const begun = await begin('acme', { returnTo: '/notes' })
  const done = await finish('acme', await browser.logIn(begun.url, 'ada'), begun.cookie)
  t.strictSame([done.statusCode, done.headers.location], [303, '/notes'])
  const session = await sessionOf(done)
  t.match(session.user, { email: 'ada@example.com', emailVerified: true, name: 'Ada' })

  const again = await begin('acme')
  const second = await sessionOf(await finish('acme', await browser.logIn(again.url, 'ada'), again.cookie))
  t.equal(second.id, session.id, 'its session there suffices')

  const page = await browser.open(`${issuer}/session/end?client_id=usher`)
  const [, xsrf] = /name="xsrf" value="([^"]+)"/.exec(page.body) ?? []
  await browser.open(`${issuer}/session/end/confirm`, { xsrf: xsrf!, logout: 'yes' })
  await until('the logout token', () => logouts.length > 0)
  const logout = await inject('POST', '/api/auth/providers/acme/logout', {
    headers: { 'content-type': 'application/x-www-form-urlencoded' },
    payload: new URLSearchParams({ logout_token: logouts[0]! }).toString(),
  })
  t.equal(logout.statusCode, 200)
  for (const { headers } of [session, second]) {
    t.equal((await inject('GET', '/api/protected', { headers })).statusCode, 401)
  }
})

t.test('16.5 oidc-provider says in the ID token which address it is, and by userinfo that it is verified', async (t) => {
  const { issuer } = await startIssuer(t, true)
  const { begin, finish, sessionOf } = await openProviders(t, {
    providers: {
      acme: {
        issuer, clientId: 'usher', clientSecret: 'a secret of Usher', trustEmail: true, signUp: true, allowPrivateAddresses: true,
      },
    },
  })
  const begun = await begin('acme')
  const session = await sessionOf(await finish('acme', await createBrowser(issuer).logIn(begun.url, 'grace'), begun.cookie))
  t.match(session.user, { email: 'grace@example.com', emailVerified: true, name: 'Ada' })
})
