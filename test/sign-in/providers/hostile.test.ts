import { randomUUID } from 'node:crypto'
import { generateKeyPair, SignJWT, UnsecuredJWT, type JWTPayload } from 'jose'
import t from 'tap'
import { errorIn, openProviders, startProvider, type Misbehaviour } from '../../helpers/provider.ts'
import { openSql } from '../../helpers/sql.ts'
import { until } from '../../helpers/until.ts'

const [fake, other] = [await startProvider(t), await startProvider(t)]
const usher = await openProviders(t, {
  providers: {
    fake: { ...fake.options, signUp: true },
    other: { ...other.options, signUp: true },
    gone: { ...fake.options, issuer: 'http://127.0.0.1:9', signUp: true },
    intranet: { ...fake.options, issuer: fake.issuer.replace('127.0.0.1', 'localhost').replace('http:', 'https:'), allowPrivateAddresses: false },
  },
})
const { inject, begin, logIn, sessionOf } = usher
const now = () => Math.floor(Date.now() / 1000)
const person = () => ({ sub: randomUUID(), email: `${randomUUID()}@example.com`, email_verified: true })

async function attempt (misbehaviour: Misbehaviour, claims: JWTPayload = person()): Promise<string | null> {
  fake.misbehave(misbehaviour)
  const response = await logIn('fake', fake, claims)
  fake.misbehave({})
  t.equal(response.statusCode, 303)
  return errorIn(response)
}

const { privateKey: foreignKey } = await generateKeyPair('ES256')
const rejected: Record<string, Misbehaviour> = {
  'a token that has expired': { claims: { exp: now() - 3600, iat: now() - 7200 } },
  'a token of the future': { claims: { nbf: now() + 3600 } },
  'a token without an expiry': { claims: { exp: undefined as never } },
  'another audience': { claims: { aud: 'another client' } },
  'several audiences without an authorized party': { claims: { aud: ['usher', 'another client'] } },
  'another authorized party': { claims: { aud: ['usher', 'another client'], azp: 'another client' } },
  'another issuer': { claims: { iss: other.issuer } },
  'another nonce': { claims: { nonce: 'another' } },
  'no nonce': { claims: { nonce: undefined } },
  'no subject': { claims: { sub: undefined as never } },
  'an empty subject': { claims: { sub: '' } },
  'a subject that is no text': { claims: { sub: 7 as never } },
  'a giant subject': { claims: { sub: 'x'.repeat(10_000) } },
  'a subject with NUL': { claims: { sub: 'ada\0' } },
  'the algorithm none': { idToken: (claims) => new UnsecuredJWT(claims).encode() },
  'a signature by the client secret (HS256)': {
    idToken: (claims) => new SignJWT(claims).setProtectedHeader({ alg: 'HS256' }).sign(Buffer.from('a secret')),
  },
  'a signature by the public key (HS256)': {
    idToken: (claims) => new SignJWT(claims).setProtectedHeader({ alg: 'HS256', kid: fake.jwks[0]!.kid! })
      .sign(Buffer.from(JSON.stringify(fake.jwks[0]))),
  },
  'a foreign signature': {
    idToken: (claims) => new SignJWT(claims).setProtectedHeader({ alg: 'ES256', kid: fake.jwks[0]!.kid! }).sign(foreignKey),
  },
  'an unknown key': { header: { kid: 'unknown' } },
  'no token': { idToken: () => '' },
  'a text that is no token': { idToken: () => 'a.b.c' },
  'a token of the other provider': { idToken: (claims) => other.sign({ ...claims, iss: other.issuer }) },
  'no JSON': { answer: answerWith('/token', 200, '<html>') },
  'no object': { answer: answerWith('/token', 200, '[]') },
  'a redirect': { answer: answerWith('/token', 302, '', { location: 'http://127.0.0.1:9/' }) },
  'an error': { answer: answerWith('/token', 400, '{"error":"invalid_grant","error_description":"\\u0000"}') },
}

function answerWith (
  path: string, status: number, body: string, headers: Record<string, string> = {}
): NonNullable<Misbehaviour['answer']> {
  return (asked, response) => {
    if (asked !== path) return false
    response.writeHead(status, { 'content-type': 'application/json', ...headers }).end(body)
    return true
  }
}

for (const [name, misbehaviour] of Object.entries(rejected)) {
  t.test(`16.5 not accepted: ${name}`, async (t) => { t.equal(await attempt(misbehaviour), 'PROVIDER_REJECTED') })
}

const unavailable: Record<string, Misbehaviour> = {
  'a failure': { answer: answerWith('/token', 500, '{}') },
  'a limit': { answer: answerWith('/token', 429, '{}') },
  'a response of a megabyte': { answer: answerWith('/token', 200, JSON.stringify({ x: 'x'.repeat(1e6) })) },
  'a connection that is cut off': {
    answer: (path, response) => path === '/token' && Boolean(response.destroy()),
  },
}

for (const [name, misbehaviour] of Object.entries(unavailable)) {
  t.test(`16.5 the provider does not work: ${name}`, async (t) => {
    t.equal(await attempt(misbehaviour), 'PROVIDER_UNAVAILABLE')
  })
}

t.test('16.5 what a provider says about a user may be anything', async (t) => {
  const nameOf = async (claims: object) => {
    const response = await logIn('fake', fake, { ...person(), ...claims })
    return errorIn(response) ?? (await sessionOf(response)).user.name
  }
  t.equal(await nameOf({ name: '\u200b\u2060', email: 'ada@example.com' }), 'ada', 'an invisible name')
  t.equal(await nameOf({ name: 'A\0d\na' }), 'A d a', 'control characters')
  t.equal(await nameOf({ name: 'x'.repeat(100_000) }), 'x'.repeat(200), 'a long one')
  t.equal(await nameOf({ name: { first: 'Ada' }, email: 'grace@example.com' }), 'grace', 'no text')
  for (const email of [`${'x'.repeat(300)}@example.com`, 'nobody', 'a@b\0.example.com', '', 7, null, ['a@example.com']]) {
    t.equal(await nameOf({ email }), 'PROVIDER_EMAIL_MISSING', `${JSON.stringify(email).slice(0, 30)}`)
  }
})

t.test('16.5 what comes to the callback may be anything, and leads to a page', async (t) => {
  const { url, cookie } = await begin('fake')
  const genuine = fake.authorize(url, person())
  const send = async (query: string, id = 'fake') => {
    const response = await inject('GET', `/api/auth/providers/${id}/callback${query}`, { headers: { cookie } })
    return [response.statusCode, errorIn(response)]
  }
  const state = `state=${genuine.state}`
  t.strictSame(await send(''), [303, 'INVALID_STATE'])
  t.strictSame(await send('?state=x&state=y'), [303, 'PROVIDER_REJECTED'])
  t.strictSame(await send(`?state=${'x'.repeat(9000)}`), [303, 'PROVIDER_REJECTED'])
  t.strictSame(await send('?state=%00&code=%00'), [303, 'INVALID_STATE'])
  t.strictSame(await send(`?${state}&error=access_denied`), [303, 'PROVIDER_REJECTED'], 'without the issuer')
  t.strictSame(await send(`?${state}&error=access_denied&iss=${fake.issuer}`), [303, 'PROVIDER_DENIED'])
  t.strictSame(await send(`?${state}&error=temporarily_unavailable&iss=${fake.issuer}`), [303, 'PROVIDER_UNAVAILABLE'])
  t.strictSame(await send(`?${state}&code=${genuine.code}`, 'unknown'), [303, 'PROVIDER_NOT_FOUND'])
  t.strictSame(await send(`?${state}&code=${genuine.code}&iss=${other.issuer}`), [303, 'PROVIDER_REJECTED'], 'mix-up')
  t.strictSame(await send(`?${state}&code=${genuine.code}&iss=${fake.issuer}`), [303, 'INVALID_STATE'], 'it is used up')
  const post = async (payload: string, type = 'application/x-www-form-urlencoded') => {
    const response = await inject(
      'POST', '/api/auth/providers/fake/callback', { headers: { cookie, 'content-type': type }, payload }
    )
    return [response.statusCode, response.statusCode === 303 ? errorIn(response) : response.json()]
  }
  t.strictSame(await post('state=x&state=y'), [303, 'PROVIDER_REJECTED'])
  t.strictSame(await post('{}', 'application/json'), [415, {
    error: 'The content type must be application/x-www-form-urlencoded', code: 'UNSUPPORTED_MEDIA_TYPE',
  }])
  t.strictSame((await post('x'.repeat(100_000)))[0], 413)
})

t.test('16.5 a provider that is gone, has a private address or does not exist', async (t) => {
  const start = async (id: string) => {
    const response = await inject('GET', `/api/auth/providers/${id}/start?returnTo=/notes`)
    return [response.statusCode, response.headers.location, response.cookies]
  }
  const login = (code: string) => `/login?error=${code}&returnTo=%2Fnotes`
  t.strictSame(await start('gone'), [303, login('PROVIDER_UNAVAILABLE'), []])
  t.strictSame(await start('intranet'), [303, login('PROVIDER_UNAVAILABLE'), []])
  t.strictSame(await start('unknown'), [303, login('PROVIDER_NOT_FOUND'), []])
  const before = fake.requests.length
  await start('intranet')
  t.equal(fake.requests.length, before, 'nothing was sent to it')
})

t.test('16.5 a provider rotates its keys: the next login works', async (t) => {
  t.equal(await attempt({}), null)
  await fake.rotateKeys()
  // Unknown keys are looked for once a second.
  await until('a login with the new key', async () => await attempt({}) === null)
})

t.test('16.5 a flood of starts stores nothing', async (t) => {
  const sql = openSql(t, usher)
  const count = async () => (await sql`select (select count(*) from used_ceremonies) + (select count(*) from identities) as rows`)[0]!.rows
  const before = await count()
  await Promise.all(Array.from({ length: 50 }, () => begin('fake')))
  t.equal(await count(), before)
})
