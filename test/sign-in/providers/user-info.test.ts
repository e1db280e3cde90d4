import { randomUUID } from 'node:crypto'
import { Writable } from 'node:stream'
import type { JWTPayload } from 'jose'
import t from 'tap'
import { errorIn, openProviders, startProvider, type Misbehaviour } from '../../helpers/provider.ts'
import { openSql } from '../../helpers/sql.ts'

const lines: Record<string, unknown>[] = []
const stream = new Writable({
  write (chunk, _, done) {
    lines.push(...`${chunk}`.split('\n').filter(Boolean).map((line) => JSON.parse(line)))
    done()
  },
})
const fake = await startProvider(t)
const metadata = { userinfo_endpoint: `${fake.issuer}/userinfo` }
const usher = await openProviders(t, { mailer: () => {}, providers: { fake: { ...fake.options, signUp: true } } }, {
  logger: { level: 'info', stream },
})
const { begin, beginFor, finish, inject, logIn, sessionOf } = usher
const sql = openSql(t, usher)
const address = () => `${randomUUID()}@example.com`

/** Logs in with claims of the ID token and other claims of the userinfo endpoint. */
async function attempt (token: object, info: object | undefined, misbehaviour: Misbehaviour = {}) {
  const sub = randomUUID()
  const asked = fake.requests.length
  fake.misbehave({
    metadata,
    answer (path, response) {
      if (path !== '/userinfo' || info === undefined) return false
      response.writeHead(200, { 'content-type': 'application/json' }).end(JSON.stringify({ sub, ...info }))
      return true
    },
    ...misbehaviour,
  })
  const response = await logIn('fake', fake, { sub, ...token } as JWTPayload)
  return { response, isAsked: fake.requests.slice(asked).includes('/userinfo') }
}

async function userOf (token: object, info: object) {
  const { response, isAsked } = await attempt(token, info)
  const error = errorIn(response)
  if (error !== null) return { error, isAsked }
  const { user: { name, email, emailVerified } } = await sessionOf(response)
  return { name, email, emailVerified, isAsked }
}

t.test('16.5 userinfo is asked for whatever the ID token lacks, or says in a form that cannot be used', async (t) => {
  const complete = { name: 'Ada', email_verified: true }
  for (const email of [undefined, null, '', ' ', 7, ['a@example.com'], 'nobody', `${'x'.repeat(400)}@example.com`]) {
    const its = address()
    t.strictSame(await userOf({ ...complete, email }, { email: its, email_verified: true, name: 'Info' }), {
      name: 'Ada', email: its, emailVerified: true, isAsked: true,
    }, `email ${JSON.stringify(email)?.slice(0, 30)}`)
  }
  for (const name of [undefined, null, '', '\u200b', 7, { first: 'Ada' }]) {
    const email = address()
    t.strictSame(await userOf({ email, email_verified: true, name }, { name: 'Info' }), {
      name: 'Info', email, emailVerified: true, isAsked: true,
    }, `name ${JSON.stringify(name)}`)
  }
  for (const verified of [undefined, null, '', 1, 'yes']) {
    for (const given of [true, 'true']) {
      const email = address()
      t.strictSame(await userOf({ email, email_verified: verified, name: 'Ada' }, { email: email.toUpperCase(), email_verified: given }), {
        name: 'Ada', email, emailVerified: true, isAsked: true,
      }, `email_verified ${JSON.stringify(verified)}`)
    }
  }
  const email = address()
  t.strictSame(await userOf({ email, email_verified: 'true', name: 'Ada' }, {}), {
    name: 'Ada', email, emailVerified: true, isAsked: false,
  }, 'a token that says all')
})

t.test('16.5 what userinfo says that cannot be used does not replace what the ID token says', async (t) => {
  for (const info of [{ email: null, name: '' }, { email: '', name: null }, { email: 7, name: 7, email_verified: 'maybe' }]) {
    const email = address()
    t.match(await userOf({ email, email_verified: true, preferred_username: 'ada' }, info), {
      name: 'ada', email, emailVerified: true,
    }, JSON.stringify(info))
  }
})

t.test('16.5 an address is proven only by what is said about it', async (t) => {
  const [one, other] = [address(), address()]
  const unproven = { error: 'EMAIL_UNPROVEN', isAsked: true }
  t.strictSame(await userOf({ email: one, name: 'Ada' }, { email: other, email_verified: true }), unproven, 'another address')
  t.strictSame(await userOf({ email: one, name: 'Ada' }, { email_verified: true }), unproven, 'no address')
  t.strictSame(await userOf({ email: null, email_verified: true }, { email: other }), unproven, 'that of the token')
  t.strictSame(await userOf({ email: one, email_verified: false, name: 'Ada' }, { email: one, email_verified: true }), {
    error: 'EMAIL_UNPROVEN', isAsked: false,
  }, 'the token says that it is not')
})

const wrong: Record<string, { answer: [status: number, body: string, type?: string], code: string }> = {
  'another subject': { answer: [200, JSON.stringify({ sub: 'somebody', email: 'x@example.com', email_verified: true })], code: 'PROVIDER_USERINFO_REJECTED' },
  'no subject': { answer: [200, JSON.stringify({ email: 'x@example.com', email_verified: true })], code: 'PROVIDER_USERINFO_REJECTED' },
  'a page': { answer: [200, '<html>', 'text/html'], code: 'PROVIDER_USERINFO_REJECTED' },
  'a refusal': { answer: [403, '{}'], code: 'PROVIDER_USERINFO_REJECTED' },
  'a failure': { answer: [500, '{}'], code: 'PROVIDER_UNAVAILABLE' },
}

for (const [name, { answer: [status, body, type = 'application/json'], code }] of Object.entries(wrong)) {
  t.test(`16.5 userinfo that cannot be used stops nobody who does not need it: ${name}`, async (t) => {
    const misbehaviour: Misbehaviour = {
      metadata,
      answer (path, response) {
        if (path !== '/userinfo') return false
        response.writeHead(status, { 'content-type': type }).end(body)
        return true
      },
    }
    const person = { sub: randomUUID(), email: address() }
    fake.misbehave({ metadata })
    const first = await sessionOf(await logIn('fake', fake, { ...person, email_verified: true, name: 'Ada' }))
    fake.misbehave(misbehaviour)
    const again = await logIn('fake', fake, { sub: person.sub })
    t.equal((await sessionOf(again)).id, first.id, 'a user who has the identity')
    t.strictSame(
      (await sql`select email from identities where user_id = ${first.id}`).map(({ email }) => email), [person.email],
      'the address that was given last remains'
    )
    const nameless = await logIn('fake', fake, { sub: randomUUID(), email: address(), email_verified: true })
    t.equal(errorIn(nameless), null, 'somebody new of whom only the name is missing')
    lines.length = 0
    t.equal(errorIn((await attempt({}, undefined, misbehaviour)).response), code, 'somebody new without an address')
    t.ok(lines.some(({ msg, reason }) => msg === 'A provider does not say more about a user' && reason))
    t.match(lines.find(({ msg }) => msg === 'A login at a provider has stopped'), { provider: 'fake', intent: 'login', code })
  })
}

t.test('16.5 a failure of userinfo does not let an address count as unproven that may be proven', async (t) => {
  const answer: Misbehaviour['answer'] = (path, response) => path === '/userinfo' && Boolean(response.writeHead(500).end())
  const { response } = await attempt({ email: address(), name: 'Ada' }, undefined, { metadata, answer })
  t.equal(errorIn(response), 'PROVIDER_UNAVAILABLE')
})

t.test('16.5 what a login does not need of the token response may be anything', async (t) => {
  const person = { sub: randomUUID(), email: address(), email_verified: true, name: 'Ada' }
  for (const more of [
    { refresh_token: null }, { refresh_token: '' }, { scope: null }, { scope: ['openid'] }, { expires_in: null },
    { expires_in: '' }, { expires_in: 0 }, { expires_in: '3600' }, { token_type: undefined }, { token_type: 'BEARER' },
  ]) {
    const { url, cookie } = await begin('fake')
    const query = fake.authorize(url, person)
    const claims = {
      iss: fake.issuer,
      aud: 'usher',
      iat: Math.floor(Date.now() / 1000),
      exp: Math.floor(Date.now() / 1000) + 300,
      nonce: new URL(url).searchParams.get('nonce')!,
      ...person,
    }
    const body = JSON.stringify({ access_token: 'x', token_type: 'Bearer', id_token: await fake.sign(claims), ...more })
    fake.misbehave({
      metadata,
      answer: (path, response) =>
        path === '/token' && Boolean(response.writeHead(200, { 'content-type': 'application/json' }).end(body)),
    })
    t.equal(errorIn(await finish('fake', query, cookie)), null, JSON.stringify(more))
  }
})

t.test('16.5 a provider that does not accept the app has a code of its own, and the log says what it has answered', async (t) => {
  for (const [status, error] of [
    [401, 'invalid_client'], [400, 'unauthorized_client'], [400, 'invalid_scope'], [200, 'incorrect_client_credentials'],
    [200, 'redirect_uri_mismatch'],
  ] as const) {
    lines.length = 0
    const body = JSON.stringify({ error, error_description: 'what is wrong' })
    const { response } = await attempt({}, undefined, {
      metadata,
      answer: (path, response) =>
        path === '/token' && Boolean(response.writeHead(status, { 'content-type': 'application/json' }).end(body)),
    })
    t.equal(errorIn(response), 'PROVIDER_MISCONFIGURED', error)
    t.ok(lines.some(({ reason }) => `${reason}`.includes(error) && `${reason}`.includes('what is wrong')), error)
  }
  const { url, cookie } = await begin('fake')
  const { state, iss } = fake.authorize(url)
  t.equal(errorIn(await finish('fake', { state: state!, iss: iss!, error: 'invalid_scope' }, cookie)), 'PROVIDER_MISCONFIGURED')
  const page = await inject('GET', '/login?error=PROVIDER_MISCONFIGURED')
  t.match(page.body, /id="alert">This site is not set up correctly at the other service/)
})

t.test('16.5 a user who is disabled learns that, and where the browser goes is no reason to stop', async (t) => {
  fake.misbehave({ metadata })
  const person = { sub: randomUUID(), email: address(), email_verified: true, name: 'Ada' }
  const user = await sessionOf(await logIn('fake', fake, person))
  await sql`update users set disabled = true where id = ${user.id}`
  lines.length = 0
  const response = await logIn('fake', fake, person)
  t.equal(errorIn(response), 'ACCOUNT_DISABLED')
  t.match((await inject('GET', response.headers.location!)).body, /id="alert">This account is disabled/)
  t.match(lines.find(({ msg }) => msg === 'A login at a provider has stopped'), {
    provider: 'fake', code: 'ACCOUNT_DISABLED', reason: 'The account is disabled',
  })
  for (const query of [`returnTo=${'x'.repeat(5000)}`, 'returnTo=/a&returnTo=/b']) {
    const start = await inject('GET', `/api/auth/providers/fake/start?${query}`)
    t.equal(new URL(start.headers.location!).origin, fake.issuer)
  }
})

t.test('16.5 whatever stops a login or a link is in the log with its reason', async (t) => {
  fake.misbehave({ metadata })
  const person = { sub: randomUUID(), email: address(), email_verified: true, name: 'Ada' }
  const user = await sessionOf(await logIn('fake', fake, person))
  const stepUp = await beginFor(user, 'step-up', 'fake')
  lines.length = 0
  t.equal(errorIn(await finish('fake', fake.authorize(stepUp.url, person), stepUp.cookie)), 'PROVIDER_LOGIN_STALE')
  t.match(lines.find(({ msg }) => msg === 'A login at a provider has stopped'), {
    intent: 'step-up', code: 'PROVIDER_LOGIN_STALE', reason: /the ID token has no auth_time/,
  })
  const link = await beginFor(user, 'link', 'fake')
  await inject('POST', '/api/auth/logout', { headers: user.headers })
  const linked = await finish('fake', fake.authorize(link.url, { ...person, sub: randomUUID() }), link.cookie)
  t.equal(errorIn(linked), 'INVALID_TOKEN')
  t.match(lines.find(({ intent }) => intent === 'link'), { code: 'INVALID_TOKEN' })
})
