import { createHash, generateKeyPairSync, randomUUID } from 'node:crypto'
import { once } from 'node:events'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { text } from 'node:stream/consumers'
import { decodeJwt, decodeProtectedHeader } from 'jose'
import t, { type Test } from 'tap'
import { createAppleSecret } from '../../../plugins/sign-in/providers/apple.ts'
import { google } from '../../../plugins/sign-in/providers/google.ts'
import { readProviders } from '../../../schema/options/providers.ts'
import { errorIn, openProviders, ORIGIN, startProvider } from '../../helpers/provider.ts'
import { openSql } from '../../helpers/sql.ts'

const FORM = 'application/x-www-form-urlencoded'

/** `status` is that of the addresses. */
interface GithubUser { user: unknown, emails: unknown, status?: number }

/** Starts a GitHub Enterprise Server whose users are what the test says. */
async function startGithub (t: Test) {
  let found: GithubUser = { user: null, emails: null }
  let challenge = ''
  const server = createServer((request, response) => {
    const send = (status: number, body: unknown) =>
      response.writeHead(status, { 'content-type': 'application/json' }).end(JSON.stringify(body))
    const isAuthorized = request.headers.authorization === 'Bearer gho_token'
    if (request.url === '/login/oauth/access_token') {
      text(request).then((body) => {
        const form = new URLSearchParams(body)
        const verifier = form.get('code_verifier') ?? ''
        const isRight = form.get('client_secret') === 'a secret' &&
          createHash('sha256').update(verifier).digest('base64url') === challenge
        send(200, isRight ? { access_token: 'gho_token', token_type: 'bearer', scope: 'read:user' } : { error: 'bad' })
      }, (error) => response.destroy(error))
    } else if (request.url === '/api/v3/user') send(isAuthorized ? 200 : 401, found.user)
    else if (request.url === '/api/v3/user/emails') send(isAuthorized ? found.status ?? 200 : 401, found.emails)
    else send(404, {})
  }).listen(0, '127.0.0.1')
  await once(server, 'listening')
  t.teardown(() => {
    server.closeAllConnections()
    server.close()
  })
  return {
    issuer: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    authorize (url: string, given: GithubUser) {
      found = given
      const asked = new URL(url).searchParams
      challenge = asked.get('code_challenge') ?? ''
      return { code: 'a code', state: asked.get('state')! }
    },
  }
}

// One app has a provider for each case.
const github = await startGithub(t)
const [apple, microsoft, open, closed, usual, trusted] = await Promise.all([
  startProvider(t), startProvider(t), startProvider(t), startProvider(t), startProvider(t), startProvider(t),
])
const pem = `${generateKeyPairSync('ec', { namedCurve: 'P-256' }).privateKey.export({ type: 'pkcs8', format: 'pem' })}`
const usher = await openProviders(t, {
  providers: {
    github: { issuer: github.issuer, clientId: 'usher', clientSecret: 'a secret', signUp: true, allowPrivateAddresses: true },
    apple: { ...apple.options, trustEmail: undefined, clientSecret: pem, teamId: 'TEAM', keyId: 'KEY', signUp: true },
    microsoft: { ...microsoft.options, trustEmail: undefined, signUp: true },
    open: { ...open.options, signUp: true },
    closed: { ...closed.options, signUp: false },
    usual: usual.options,
    trusted: { ...trusted.options, signUp: true, trustSecondFactor: true },
  },
})
const { begin, finish, inject, logIn, sessionOf } = usher

t.test('16.5 GitHub: the id says who it is, and the verified primary address is the one that counts', async (t) => {
  t.strictSame((await inject('GET', '/api/auth/providers')).json()[0], { id: 'github', name: 'GitHub' })
  const logIn = async (user: unknown, emails: unknown) => {
    const { url, cookie } = await begin('github')
    return finish('github', github.authorize(url, { user, emails }), cookie)
  }
  const email = (address: string, primary: boolean, verified: boolean) => ({ email: address, primary, verified })
  const { url } = await begin('github')
  t.match(Object.fromEntries(new URL(url).searchParams), { scope: 'read:user user:email', code_challenge_method: 'S256' })
  const ada = { id: 7, login: 'ada', name: null, email: 'public@example.com' }
  const first = await sessionOf(await logIn(ada, [
    email('other@example.com', false, true), email('ada@example.com', true, true),
  ]))
  t.match(first.user, { name: 'ada', email: 'ada@example.com', emailVerified: true })
  const renamed = await logIn({ ...ada, login: 'somebody' }, [email('new@example.com', true, true)])
  t.equal((await sessionOf(renamed)).id, first.id)
  const takesName = await sessionOf(await logIn({ id: 8, login: 'ada' }, [email('eve@example.com', true, true)]))
  t.not(takesName.id, first.id, 'a login name that somebody else has taken')

  const wrong: Record<string, [user: unknown, emails: unknown, error: string]> = {
    'the primary address is not verified': [
      { id: 9 }, [email('ada@example.com', true, false), email('x@example.com', false, true)], 'PROVIDER_EMAIL_MISSING',
    ],
    'no address': [{ id: 9 }, [], 'PROVIDER_EMAIL_MISSING'],
    'no id': [{}, [email('x@example.com', true, true)], 'PROVIDER_REJECTED'],
    'an id that is a text': [{ id: '7' }, [email('x@example.com', true, true)], 'PROVIDER_REJECTED'],
    'an inexact id': [{ id: 2 ** 60 }, [email('x@example.com', true, true)], 'PROVIDER_REJECTED'],
    'no user': [null, [], 'PROVIDER_REJECTED'],
    'no list': [{ id: 9 }, { email: 'x@example.com' }, 'PROVIDER_USERINFO_REJECTED'],
    'a list of anything': [{ id: 9 }, [null, 7, { email: 7, primary: true, verified: true }], 'PROVIDER_EMAIL_MISSING'],
  }
  for (const [name, [user, emails, error]] of Object.entries(wrong)) {
    t.equal(errorIn(await logIn(user, emails)), error, name)
  }
})

t.test('16.5 GitHub: if the app may not read addresses, linked users log in, and newcomers are refused', async (t) => {
  const logIn = async (given: GithubUser) => {
    const { url, cookie } = await begin('github')
    return finish('github', github.authorize(url, given), cookie)
  }
  const email = `${randomUUID()}@example.com`
  const user = { id: 20, login: 'ada', name: 7 }
  const emails = [{ email, primary: true, verified: true, visibility: null }]
  const first = await sessionOf(await logIn({ user, emails }))
  t.equal(first.user['name'], 'ada', 'a name that is none')
  for (const [status, code] of [
    [403, 'PROVIDER_USERINFO_REJECTED'], [404, 'PROVIDER_USERINFO_REJECTED'], [401, 'PROVIDER_USERINFO_REJECTED'],
    [500, 'PROVIDER_UNAVAILABLE'],
  ] as const) {
    const refused = { emails: { message: 'Resource not accessible by integration' }, status }
    t.equal((await sessionOf(await logIn({ user, ...refused }))).id, first.id, `${status}: a user who has the identity`)
    t.equal(errorIn(await logIn({ user: { id: 21, login: 'eve' }, ...refused })), code, `${status}: somebody new`)
  }
  const sql = openSql(t, usher)
  t.strictSame((await sql`select email from identities where user_id = ${first.id}`).map((row) => row['email']), [email])
})

t.test('16.5 Apple: a form of another site works without cookies, the name is in it, and the client secret is signed', async (t) => {
  const { url, cookie } = await begin('apple')
  t.match(Object.fromEntries(new URL(url).searchParams), { response_mode: 'form_post', scope: 'openid name email' })
  const response = apple.authorize(url, { sub: 'apple', email: 'grace@example.com', email_verified: 'true' as never })
  const user = JSON.stringify({ name: { firstName: 'Ada', lastName: 'Lovelace' }, email: 'other@example.com' })
  const payload = new URLSearchParams({ ...response, user, more: 'x' }).toString()
  const posted = await inject('POST', '/api/auth/providers/apple/callback', {
    headers: { 'content-type': FORM, origin: 'https://appleid.apple.com', 'sec-fetch-site': 'cross-site' }, payload,
  })
  t.strictSame([posted.statusCode, posted.cookies], [303, []], 'nothing happens yet')
  t.match(posted.headers.location, /^\/api\/auth\/providers\/apple\/callback\?state=/)
  t.notMatch(posted.headers.location, 'more=')
  for (const [what, given] of Object.entries({ 'too long': 'x'.repeat(50_000), 'no object': 'null' })) {
    const longer = await inject('POST', '/api/auth/providers/apple/callback', {
      headers: { 'content-type': FORM }, payload: new URLSearchParams({ ...response, user: given }).toString(),
    })
    t.match(longer.headers.location, /^\/api\/auth\/providers\/apple\/callback\?state=/, `a user that is ${what}`)
  }
  for (const [member, length] of Object.entries({ state: 8192, code: 8192, iss: 2048, error: 256 })) {
    const one = await inject('POST', '/api/auth/providers/apple/callback', {
      headers: { 'content-type': FORM }, payload: new URLSearchParams({ [member]: 'x'.repeat(length) }).toString(),
    })
    t.equal(one.headers.location, `/api/auth/providers/apple/callback?${member}=${'x'.repeat(length)}`)
  }
  const largest = { state: 'x'.repeat(8192), code: 'x'.repeat(8192), iss: 'x'.repeat(2048), user }
  const refused = await inject('POST', '/api/auth/providers/apple/callback', {
    headers: { 'content-type': FORM }, payload: new URLSearchParams(largest).toString(),
  })
  t.equal(errorIn(refused), 'PROVIDER_REJECTED', 'no browser is sent to an address that no node accepts')
  const encoded = await inject('POST', '/api/auth/providers/apple/callback', {
    headers: { 'content-type': FORM }, payload: new URLSearchParams({ ...response, user: '愛'.repeat(4000) }).toString(),
  })
  t.strictSame(
    Object.fromEntries(new URL(encoded.headers.location!, 'http://localhost').searchParams), { ...response },
    'a user that is too long once it is encoded'
  )
  const forged = await inject('GET', posted.headers.location!)
  t.equal(errorIn(forged), 'INVALID_STATE', 'another browser')
  const session = await sessionOf(await inject('GET', posted.headers.location!, { headers: { cookie } }))
  t.match(session.user, { name: 'Ada Lovelace', email: 'grace@example.com', emailVerified: true })

  const secret = createAppleSecret({ teamId: 'TEAM', keyId: 'KEY', clientId: 'usher', privateKey: pem }, 1000)
  t.strictSame(decodeProtectedHeader(secret), { alg: 'ES256', kid: 'KEY' })
  t.strictSame(decodeJwt(secret), { iss: 'TEAM', iat: 1000, exp: 1300, aud: 'https://appleid.apple.com', sub: 'usher' })
})

t.test('16.5 Google proves the addresses that it hosts, Microsoft none', async (t) => {
  const isProven = google.isEmailProven!
  t.ok(isProven({ email: 'Ada@Gmail.com', email_verified: true }))
  t.ok(isProven({ email: 'ada@example.com', email_verified: true, hd: 'example.com' }))
  t.notOk(isProven({ email: 'ada@example.com', email_verified: true }), 'another mailbox')
  t.notOk(isProven({ email: 'ada@gmail.com.example.com', email_verified: true }))
  t.notOk(isProven({ email: 'ada@gmail.com', email_verified: false }))
  const victim = await usher.createUser()
  const claims = { sub: randomUUID(), email: victim.email, email_verified: true, xms_edov: true }
  t.equal(errorIn(await logIn('microsoft', microsoft, claims)), 'SIGN_UP_CLOSED', 'nOAuth')
})

t.test('16.5 whether somebody without an account gets one is an option, by default that of sign-ups', async (t) => {
  const person = () => ({ sub: randomUUID(), email: `${randomUUID()}@example.com`, email_verified: true })
  t.equal(errorIn(await logIn('open', open, person())), null)
  t.equal(errorIn(await logIn('closed', closed, person())), 'SIGN_UP_CLOSED')
  t.equal(errorIn(await logIn('usual', usual, person())), 'SIGN_UP_CLOSED')
})

t.test('16.5 without pages, returnTo gets the result, and the API answers without it', async (t) => {
  const fake = await startProvider(t)
  const { begin, finish, sessionOf } = await openProviders(t, {
    pages: { enabled: false }, origins: ['https://app.example.org'], providers: { fake: { ...fake.options, signUp: true } },
  })
  const returnTo = 'https://app.example.org/in?x=1#y'
  const begun = await begin('fake', { returnTo })
  const claims = { email: 'ada@example.com', email_verified: true }
  const done = await finish('fake', fake.authorize(begun.url, claims), begun.cookie)
  t.equal(done.headers.location, returnTo)
  t.equal((await sessionOf(done)).email, 'ada@example.com')
  const failed = await begin('fake', { returnTo })
  const wrong = await finish('fake', { ...fake.authorize(failed.url, { sub: 'x' }) }, failed.cookie)
  t.equal(wrong.headers.location, 'https://app.example.org/in?x=1&error=PROVIDER_EMAIL_MISSING#y')
  for (const target of ['https://evil.example/', '//evil.example', 'javascript:alert(1)', `/${'x'.repeat(2048)}`]) {
    const { url, cookie } = await begin('fake', { returnTo: target })
    t.equal((await finish('fake', fake.authorize(url, claims), cookie)).headers.location, '/', target.slice(0, 30))
  }
  const unknown = await finish('fake', { state: 'x' }, '')
  t.strictSame([unknown.statusCode, unknown.json().code], [401, 'INVALID_STATE'])
})

t.test('16.5 wrong options say what is wrong, without secrets', async (t) => {
  const others = { publicUrl: ORIGIN, signUp: false }
  const given = { clientId: 'usher', clientSecret: 'a secret that nobody sees' }
  const read = (providers: unknown, rest: object = {}) => () => readProviders(providers, { ...others, ...rest })
  const wrong: Record<string, [unknown, object?]> = {
    'usher: providers must be an object with a provider for each id, such as { github: { … } }': [[]],
    'usher: providers need publicUrl, because they send the browser back to it': [{ github: given }, { publicUrl: undefined }],
    'usher: providers.GitHub is not an id of a provider: it must begin with a small letter and have up to 32 letters, digits and hyphens': [{ GitHub: given }],
    'usher: providers.github.clientId is required': [{ github: {} }],
    'usher: providers.github.clientSecret is required': [{ github: { clientId: 'usher' } }],
    'usher: providers.github has an unknown member secret': [{ github: { ...given, secret: 'x' } }],
    'usher: providers.acme.issuer is required': [{ acme: given }],
    'usher: providers.acme.issuer must be an https: URL (http: is only possible with allowPrivateAddresses)': [{ acme: { ...given, issuer: 'http://acme.example' } }],
    'usher: providers.acme.scopes must have openid': [{ acme: { ...given, issuer: 'https://acme.example', scopes: ['email'] } }],
    'usher: providers.google.keepTokens needs the option secret, which encrypts the tokens': [{ google: { ...given, keepTokens: true } }],
    'usher: providers.microsoft.trustEmail needs the issuer of a tenant: in others, anybody can have any address': [{ microsoft: { ...given, trustEmail: true } }],
    'usher: providers.apple.clientSecret must be the private key in PEM (.p8) with teamId': [{ apple: { ...given, teamId: 'T', keyId: 'K' } }],
    'usher: two providers have the same issuer': [{ one: { ...given, issuer: 'https://acme.example' }, two: { ...given, issuer: 'https://acme.example/' } }],
  }
  for (const [message, [providers, rest]] of Object.entries(wrong)) {
    t.throws(read(providers, rest), { message }, message)
  }
  t.equal(read({ github: given, microsoft: { ...given, issuer: 'https://login.microsoftonline.com/tenant/v2.0', trustEmail: true } })().length, 2)
})

t.test('15.2, 16.5 the pages offer the providers, keep where the user goes, and say why a login has failed', async (t) => {
  const { inject } = await openProviders(t, {
    mailer: () => {},
    signUp: true,
    providers: {
      github: { clientId: 'usher', clientSecret: 'a secret' },
      acme: { issuer: 'https://id.example', clientId: 'usher', name: 'A & {{B}} <i>' },
    },
  })
  const page = async (path: string) => (await inject('GET', path)).body
  for (const path of ['/login?returnTo=/notes', '/sign-up?returnTo=/notes']) {
    const body = await page(path)
    // Each has its mark before the text.
    t.match(body, /href="\.\/api\/auth\/providers\/github\/start\?returnTo=%2Fnotes" aria-label="Continue with GitHub">\s*<svg.*?<\/svg>\s*GitHub<\/a>/s)
    t.match(body, /aria-label="Continue with A &amp; {{B}} &lt;i&gt;">.*A &amp; {{B}} &lt;i&gt;<\/a>/)
    t.match(body, '<p class="divider">or continue with</p>')
  }
  t.match(await page('/login?error=ACCOUNT_UNVERIFIED'), /id="alert">There is an account whose e-mail address nobody/)
  t.match(await page('/login?error=%3Cscript%3E'), /id="alert">That did not work/)
  t.match(await page('/login'), /id="alert"><\/p>/)
  const account = await page('/account/security')
  t.match(account, 'id="identities-section"')
  t.match(account, 'id="step-up-providers"')
  const without = await openProviders(t, {})
  t.notMatch((await without.inject('GET', '/account/security')).body, 'identities-section')
  t.notMatch((await without.inject('GET', '/login')).body, 'api/auth/providers')
})

t.test('16.5 a provider is a second factor only if the option says so, and the token does', async (t) => {
  const sql = openSql(t, usher)
  const logIn = async (id: 'trusted' | 'open', amr: string[]) => {
    const fake = { trusted, open }[id]
    const person = { sub: randomUUID(), email: `${randomUUID()}@example.com`, email_verified: true }
    const user = await usher.sessionOf(await usher.logIn(id, fake, person))
    await sql`insert into totp (user_id, secret, confirmed_at) values (${user.id}, 'AAAA', now())`
    const begun = await usher.beginFor(user, 'step-up', id)
    const auth = { ...person, amr, auth_time: Math.floor(Date.now() / 1000) }
    const stepUp = await usher.finish(id, fake.authorize(begun.url, auth), begun.cookie)
    return [(await usher.logIn(id, fake, { ...person, amr })).headers.location, errorIn(stepUp)]
  }
  t.strictSame(await logIn('trusted', ['pwd', 'mfa']), ['/account', null])
  t.strictSame(await logIn('trusted', ['pwd']), ['/login/second-factor', 'SECOND_FACTOR_MISSING'])
  t.strictSame(await logIn('open', ['pwd', 'mfa']), ['/login/second-factor', 'SECOND_FACTOR_MISSING'])
})
