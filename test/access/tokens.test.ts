import {
  createHash, createHmac, createPrivateKey, createPublicKey, generateKeyPairSync, sign, type KeyObject,
} from 'node:crypto'
import { CompactEncrypt, decodeJwt, EmbeddedJWK, jwtVerify, SignJWT, UnsecuredJWT, type JWTPayload } from 'jose'
import t, { type Test } from 'tap'
import { createSigningKeys } from '../../plugins/access/signing-keys.ts'
import { createWriters } from '../../plugins/access/writers.ts'
import { createTokens } from '../../plugins/access/tokens.ts'
import { openCore } from '../helpers/core.ts'
import { sharedUsher } from '../helpers/app.ts'
import { openSql } from '../helpers/sql.ts'
import { until } from '../helpers/until.ts'

const REFUSED = [401, 'Bearer error="invalid_token"', {
  error: 'The bearer token is invalid, expired or revoked', code: 'INVALID_TOKEN',
}]
const ABSENT = [401, 'Bearer', { error: 'A bearer token is required', code: 'UNAUTHENTICATED' }]
const GRAPHQL_REFUSED = {
  errors: [{ message: 'The bearer token is invalid, expired or revoked', extensions: { code: 'INVALID_TOKEN' } }],
}
const NOBODY = '0190a5b4-7c3e-7d11-8000-000000000000'
// The order of the group of Ed25519 (RFC 8032 5.1).
const L = 2n ** 252n + 27742317777372353535851937790883648493n

type Tokens = Record<string, string>

const base64url = (value: unknown) =>
  Buffer.from(typeof value === 'string' ? value : JSON.stringify(value)).toString('base64url')
const hmac = (hash: string, secret: string | Uint8Array, input: string) =>
  `${input}.${createHmac(hash, secret).update(input).digest('base64url')}`
const littleEndian = (octets: Uint8Array) => BigInt(`0x${Buffer.from(octets).reverse().toString('hex')}`)

t.test('1.5 tokens that are rejected (given: 401)', async (t) => {
  const usher = await sharedUsher()
  const { inject, createUser } = usher
  const user = await createUser()
  const claims = decodeJwt(user.token)
  const now = Math.floor(Date.now() / 1000)
  const [row] = await openSql(t, usher)`select * from signing_keys` as unknown as [
    { id: string, private_key: string, public_key: string }
  ]
  const { id: kid, public_key: publicKey } = row
  const key = createPrivateKey(row.private_key)
  const jwk = createPublicKey(publicKey).export({ format: 'jwk' })
  const attacker = generateKeyPairSync('ed25519')
  const attackerJwk = attacker.publicKey.export({ format: 'jwk' })
  const attackerKid = createHash('sha256')
    .update(JSON.stringify({ crv: attackerJwk.crv, kty: attackerJwk.kty, x: attackerJwk.x })).digest('base64url')
  const [head, body, signature] = user.token.split('.') as [string, string, string]
  const header = { alg: 'EdDSA', typ: 'JWT', kid }

  const ask = async (authorization: string) => {
    const response = await inject('GET', '/api/protected', { headers: { authorization } })
    return [response.statusCode, response.headers['www-authenticate'], response.json()]
  }
  const askGraphql = async (authorization: string) =>
    (await inject('POST', '/graphql', { headers: { authorization }, payload: { query: '{ __typename }' } })).json()

  // By default the token is signed with the key of the service, so that it is rejected for its content only.
  const compact = (head: unknown, payload: unknown, signer: KeyObject = key) => {
    const input = `${base64url(head)}.${base64url(payload)}`
    return `${input}.${sign(null, Buffer.from(input), signer).toString('base64url')}`
  }
  const says = (changes: JWTPayload | Record<string, unknown>) => compact(header, { ...claims, ...changes })
  const headed = (changes: object, signer?: KeyObject) => compact({ ...header, ...changes }, claims, signer)

  async function refuse (t: Test, tokens: Tokens): Promise<void> {
    for (const [name, token] of Object.entries(tokens)) {
      t.same(await ask(`Bearer ${token}`), REFUSED, name)
      t.match(await askGraphql(`Bearer ${token}`), GRAPHQL_REFUSED, `${name}, over GraphQL`)
    }
  }

  t.test('1.5 a token made by this test is accepted, so those below are rejected for their own reasons', async (t) => {
    t.equal((await ask(`Bearer ${says({})}`))[0], 200)
    t.same(await askGraphql(`Bearer ${says({})}`), { data: { __typename: 'Query' } })
    t.equal(
      (await ask(`Bearer ${await new SignJWT(claims).setProtectedHeader(header).sign(key)}`))[0],
      200,
      'by another library'
    )
    t.equal((await ask(`Bearer ${says({ iat: now + 30 })}`))[0], 200, 'clocks differ by less than a minute')
    const room = 4096 - says({ x: '' }).length
    const padded = says({ x: 'x'.repeat(Math.floor(room * 3 / 4)) })
    t.ok(padded.length > 4090 && padded.length <= 4096)
    t.equal((await ask(`Bearer ${padded}`))[0], 200, 'of 4 KiB')
  })

  t.test('1.5 a token without a signature, or with alg none (RFC 8725 2.1)', async (t) => {
    const tokens: Tokens = {
      'alg none': new UnsecuredJWT(claims).encode(),
      'alg none with the signature of another': `${base64url({ ...header, alg: 'none' })}.${body}.${signature}`,
      'no signature': `${head}.${body}.`,
      'no signature, no dot': `${head}.${body}`,
      'alg none, signed': headed({ alg: 'none' }),
      'no alg': headed({ alg: undefined }),
      'alg null': headed({ alg: null }),
      'alg in a list': headed({ alg: ['EdDSA'] }),
      'alg empty': headed({ alg: '' }),
    }
    for (const alg of ['none', 'None', 'NONE', 'nOnE']) {
      tokens[`alg ${alg} with a kid`] = `${base64url({ ...header, alg })}.${body}.`
    }
    await refuse(t, tokens)
  })

  t.test('1.5 the public key used as an HMAC secret (RFC 8725 2.1)', async (t) => {
    const secrets: Record<string, string | Uint8Array> = {
      'the PEM': publicKey,
      'the PEM, trimmed': publicKey.trim(),
      'the DER': createPublicKey(publicKey).export({ type: 'spki', format: 'der' }),
      'the octets': Buffer.from(jwk.x!, 'base64url'),
      'the x of the JWK': jwk.x!,
      'the JWK': JSON.stringify(jwk),
      'the key set': (await inject('GET', '/.well-known/jwks.json')).body,
      'the kid': kid,
      nothing: '',
    }
    const tokens: Tokens = {}
    for (const [name, secret] of Object.entries(secrets)) {
      for (const bits of [256, 384, 512]) {
        const input = `${base64url({ ...header, alg: `HS${bits}` })}.${body}`
        tokens[`HS${bits} with ${name}`] = hmac(`sha${bits}`, secret, input)
      }
      tokens[`an HMAC with ${name} that says EdDSA`] = hmac('sha512', secret, `${head}.${body}`)
    }
    await refuse(t, tokens)
  })

  t.test('1.5 another algorithm with a valid signature', async (t) => {
    const tokens: Tokens = {
      'ES256 in name': headed({ alg: 'ES256' }),
      'RS256 in name': headed({ alg: 'RS256' }),
      'Ed25519, the other name of it (RFC 9864)': headed({ alg: 'Ed25519' }),
      'eddsa in small letters': headed({ alg: 'eddsa' }),
      'Ed448 as EdDSA': headed({}, generateKeyPairSync('ed448').privateKey),
    }
    const rsa = generateKeyPairSync('rsa', { modulusLength: 2048 }).privateKey
    for (const alg of ['RS256', 'RS512', 'PS256']) {
      tokens[alg] = await new SignJWT(claims).setProtectedHeader({ ...header, alg }).sign(rsa)
    }
    const ec = generateKeyPairSync('ec', { namedCurve: 'P-256' }).privateKey
    tokens['ES256'] = await new SignJWT(claims).setProtectedHeader({ ...header, alg: 'ES256' }).sign(ec)
    await refuse(t, tokens)
  })

  t.test('1.5 invalid signatures', async (t) => {
    const octets = Buffer.from(signature, 'base64url')
    const [r, s] = [octets.subarray(0, 32), octets.subarray(32)]
    const malleable = Buffer.from((littleEndian(s) + L).toString(16).padStart(64, '0'), 'hex').reverse()
    const flip = (index: number) =>
      Buffer.from(octets.map((octet, at) => at === index ? octet ^ 1 : octet)).toString('base64url')
    const zeros = Buffer.alloc(64)
    const last = signature.at(-1)!
    const alphabet = 'ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_'
    const tokens: Tokens = {
      'of zeros (the psychic one, CVE-2022-21449)': `${head}.${body}.${zeros.toString('base64url')}`,
      'of zeros, as ES256': `${base64url({ ...header, alg: 'ES256' })}.${body}.${zeros.toString('base64url')}`,
      'the neutral point and zero':
        `${head}.${body}.${Buffer.concat([Buffer.from([1]), zeros]).subarray(0, 64).toString('base64url')}`,
      'of ones': `${head}.${body}.${Buffer.alloc(64, 255).toString('base64url')}`,
      'S and the order of the group (RFC 8032 8.4)':
        `${head}.${body}.${Buffer.concat([r, malleable]).toString('base64url')}`,
      'of another key': headed({}, attacker.privateKey),
      'of another token': `${head}.${body}.${says({ iat: claims.iat! - 1 }).split('.')[2]}`,
      'over the body alone': `${head}.${body}.${sign(null, Buffer.from(body), key).toString('base64url')}`,
      half: `${head}.${body}.${signature.slice(0, 43)}`,
      'one character short': user.token.slice(0, -1),
      'one character long': `${user.token}A`,
      twice: `${user.token}${signature}`,
      padded: `${user.token}==`,
      'in base64': `${head}.${body}.${octets.toString('base64')}`,
      'in hex': `${head}.${body}.${octets.toString('hex')}`,
    }
    for (const index of [0, 31, 32, 63]) tokens[`octet ${index} flipped`] = `${head}.${body}.${flip(index)}`
    // The last base64url character has four more bits than the signature needs.
    for (const other of alphabet.slice(alphabet.indexOf(last) + 1).slice(0, 15)) {
      tokens[`written with ${other} at its end`] = `${user.token.slice(0, -1)}${other}`
    }
    await refuse(t, tokens)
  })

  t.test('1.5 headers that contain or name their own key, or have critical extensions', async (t) => {
    const injected = [
      '../../../../../../dev/null', '/dev/null', 'file:///dev/null', "' or '1'='1", "x' union select 'x' --",
      '; drop table signing_keys', '| cat /etc/passwd', 'http://169.254.169.254/', '__proto__', 'constructor',
      'toString', '', ' ', `${kid} `, kid.slice(1), kid.toUpperCase(), `${kid}\0`, 'k'.repeat(2000),
    ]
    const tokens: Tokens = {
      'the key of an attacker': headed({ kid: attackerKid }, attacker.privateKey),
      'an unknown kid': headed({ kid: 'x'.repeat(43) }),
      'no kid': headed({ kid: undefined }),
      'kid null': headed({ kid: null }),
      'kid 0': headed({ kid: 0 }),
      'kid in a list': headed({ kid: [kid] }),
      'kid an object': headed({ kid: { toString: kid } }),
      'jwk of an attacker': headed({ jwk: attackerJwk }, attacker.privateKey),
      'jwk of an attacker, no kid': headed({ kid: undefined, jwk: attackerJwk }, attacker.privateKey),
      'jwk of an attacker, its kid': headed(
        { kid: attackerKid, jwk: { ...attackerJwk, kid: attackerKid } }, attacker.privateKey
      ),
      'jwk of ours': headed({ jwk }),
      jku: headed({ jku: 'https://attacker.example/jwks.json' }, attacker.privateKey),
      'jku, signed by us': headed({ jku: 'https://attacker.example/jwks.json' }),
      x5u: headed({ x5u: 'https://attacker.example/cert.pem' }),
      x5c: headed({ x5c: ['MIIB'] }),
      x5t: headed({ x5t: 'AAAA' }),
      'x5t#S256': headed({ 'x5t#S256': 'AAAA' }),
      'crit exp': headed({ crit: ['exp'], exp: 1 }),
      'crit b64': headed({ crit: ['b64'], b64: false }),
      'crit empty': headed({ crit: [] }),
      'crit null': headed({ crit: null }),
      'zip DEF': headed({ zip: 'DEF' }),
      'cty JWT, one within another': headed({ cty: 'JWT' }),
      'no typ': headed({ typ: undefined }),
      'another typ': headed({ typ: 'secevent+jwt' }),
      'typ null': headed({ typ: null }),
      'a header twice': compact(`{"alg":"none","alg":"EdDSA","typ":"JWT","kid":"${kid}"}`, claims),
      'a kid twice': compact(`{"alg":"EdDSA","typ":"JWT","kid":"x","kid":"${kid}"}`, claims),
      'a header with spaces': compact(JSON.stringify(header, null, 1), claims),
      'a header with an escape': compact(`{"\\u0061lg":"EdDSA","typ":"JWT","kid":"${kid}"}`, claims),
      '__proto__ in the header': compact(`{"alg":"EdDSA","typ":"JWT","kid":"${kid}","__proto__":{"x":1}}`, claims),
    }
    for (const kid of injected) {
      tokens[`kid ${kid.slice(0, 40)}`] = headed({ kid }, attacker.privateKey)
      tokens[`kid ${kid.slice(0, 40)}, HS256 with nothing`] = hmac(
        'sha256', '', `${base64url({ alg: 'HS256', typ: 'JWT', kid })}.${body}`
      )
    }
    await refuse(t, tokens)
    const embedded = headed({ jwk: attackerJwk }, attacker.privateKey)
    t.ok(await jwtVerify(embedded, EmbeddedJWK), 'the attack is a true one: who believes the header takes it')
  })

  t.test('1.5 malformed tokens', async (t) => {
    const raw = (payload: unknown) => compact(header, payload)
    const encrypted = await new CompactEncrypt(Buffer.from(JSON.stringify(claims)))
      .setProtectedHeader({ alg: 'dir', enc: 'A256GCM' }).encrypt(Buffer.alloc(32))
    const huge = says({ x: 'x'.repeat(4000) })
    t.ok(huge.length > 4096)
    await refuse(t, {
      'a tampered body': `${head}.${base64url({ ...claims, role: 'admin' })}.${signature}`,
      'a tampered header': `${base64url({ ...header, x: 1 })}.${body}.${signature}`,
      'two parts': `${head}.${body}`,
      'a dot at the end': `${user.token}.`,
      'a dot in front': `.${user.token}`,
      'four parts': `${user.token}.${signature}`,
      'an empty part': `${head}..${body}.${signature}`,
      'no header': `.${body}.${signature}`,
      'no body': `${head}..${signature}`,
      'a JWE': encrypted,
      'JSON serialization': base64url({ protected: head, payload: body, signature }),
      'a line feed at the end, encoded': `${user.token}%0A`,
      'only dots': '...',
      'two dots': '..',
      'not base64': '!.!.!',
      'another alphabet': `${head}.${body.replaceAll('_', '/').replaceAll('-', '+')}=.${signature}`,
      'half JSON in the header': compact('{"alg":"EdDSA"', claims),
      'a header of null': compact('null', claims),
      'a header in a list': compact([header], claims),
      'a header of text': compact('"EdDSA"', claims),
      'half JSON': raw('{"sub":'),
      'a body of null': raw('null'),
      'a body in a list': raw([claims]),
      'a body of text': raw('"x"'),
      'a body of a number': raw('1'),
      'an empty body': raw({}),
      'deeply nested': raw(`${'['.repeat(1400)}${']'.repeat(1400)}`),
      'no UTF-8': `${head}.${Buffer.from([0xc0, 0xaf]).toString('base64url')}.${signature}`,
      'a claim twice': raw(JSON.stringify(claims).replace('{', '{"role":"admin",')),
      'another sub twice': raw(JSON.stringify(claims).replace('{', `{"sub":"${NOBODY}",`)),
      'a byte order mark': raw(`\ufeff${JSON.stringify(claims)}`),
      'huge, and well signed': huge,
      'huge, and nothing': 'x'.repeat(15_000),
      'huge, of dots': '.'.repeat(15_000),
      null: 'null',
      undefined: 'undefined',
    })
  })

  t.test('1.5 claims that are expired, in the future, foreign, missing or of the wrong type', async (t) => {
    const tokens: Tokens = {
      expired: says({ iat: now - 800, exp: now - 1 }),
      'expiring now': says({ iat: now - 800, exp: now }),
      'a longer life than the configured one': says({ iat: now, exp: now + 901 }),
      'a longer life that is nearly over': says({ iat: now - 2000, exp: now + 1 }),
      'exp 0': says({ exp: 0 }),
      'exp negative': says({ exp: -1 }),
      'not before a minute': says({ nbf: now + 60 }),
      'issued in the future': says({ iat: now + 600, exp: now + 1500 }),
      'another audience': says({ aud: 'other' }),
      'audiences without ours': says({ aud: ['other', 'usher2'] }),
      'an audience that holds ours': says({ aud: 'usher-other' }),
      'an audience like ours': says({ aud: 'Usher' }),
      'another issuer': says({ iss: 'other' }),
      'an issuer that holds ours': says({ iss: 'https://usher' }),
      'issuers with ours': says({ iss: ['usher'] }),
      'exp out of range': compact(header, JSON.stringify(claims).replace(/"exp":\d+/, '"exp":1e400')),
    }
    for (const claim of ['sub', 'sid', 'role', 'iat', 'exp', 'iss', 'aud']) {
      tokens[`no ${claim}`] = says({ [claim]: undefined })
    }
    const wrong: Record<string, unknown[]> = {
      sub: [1, null, '', 'admin', true, [claims.sub], { id: claims.sub }, `${claims.sub} `, "' or 1=1"],
      sid: [1, null, '', 'session', true, [claims['sid']], `${String(claims['sid'])}'`, 'x'.repeat(36)],
      role: ['root', 'Admin', '', null, 1, true, ['admin'], { admin: true }],
      iat: [String(now), null, true, now + 0.5, [now]],
      exp: [String(now + 900), null, true, now + 900.5, [now + 900], 2 ** 53],
      iss: [1, null, true, {}],
      aud: [1, null, true, {}, []],
      nbf: [String(now), null, true],
    }
    for (const [claim, values] of Object.entries(wrong)) {
      for (const value of values) tokens[`${claim} ${JSON.stringify(value)}`] = says({ [claim]: value })
    }
    await refuse(t, tokens)
  })

  t.test('4.8 a user who is deleted after the token was verified and before the user is read', async (t) => {
    t.same(await ask(`Bearer ${says({ sub: NOBODY })}`), REFUSED)
  })

  t.test('1.5 a header with two tokens, no token or another scheme', async (t) => {
    const { token } = user
    for (const field of [
      `Bearer ${token} ${token}`, 'Bearer a b', `Bearer ${token} x`, 'Bearer', 'Bearer ', `Bearer ${token},`,
      `Bearer "${token}"`, `Bearer Bearer ${token}`,
    ]) {
      t.same(await ask(field), REFUSED, field.slice(0, 20))
    }
    for (const field of [
      `Basic ${token}`, `Basic ${Buffer.from('a:b').toString('base64')}`, token, `Token ${token}`, `Bearer${token}`,
      `Bearer\t${token}`, `bearer:${token}`, '',
    ]) {
      t.same(await ask(field), ABSENT, field.slice(0, 20))
    }
  })

  t.test('1.5 the scheme is not case-sensitive and is followed by one or more spaces (RFC 9110 11.4)', async (t) => {
    for (const scheme of ['bearer', 'BEARER', 'Bearer', 'Bearer  ']) {
      t.equal((await ask(`${scheme} ${user.token}`))[0], 200, scheme)
    }
  })

  t.test('4 a token is rejected once it has expired', async (t) => {
    const exp = Math.floor(Date.now() / 1000) + 2
    const token = says({ exp })
    t.equal((await ask(`Bearer ${token}`))[0], 200)
    // `exp` counts by the wall clock, which may differ from the clock of timers.
    await until('it has expired', () => Date.now() >= exp * 1000)
    t.same(await ask(`Bearer ${token}`), REFUSED)
  })
})

t.test('4 tokens by themselves', async (t) => {
  const { app, core } = await openCore(t, { poolSize: 2 })
  const signingKeys = await createSigningKeys(core)
  const writers = createWriters({ ...core, signingKeys })
  const tokens = await createTokens({ ...core, scope: app, signingKeys, writers })
  const actor = {
    id: NOBODY,
    role: 'user' as const,
    sessionId: NOBODY,
    keyId: null,
    actions: null,
    amr: ['pwd'],
    authTime: 1_700_000_000,
    organization: null,
    claims: {},
  }

  t.test('4 a token lives 15 minutes, or until its session expires', async (t) => {
    const sign = (expiresAt?: number) =>
      decodeJwt(tokens.sign(actor, { ...expiresAt !== undefined && { expiresAt: new Date(expiresAt) } }))
    const now = Math.floor(Date.now() / 1000)
    for (const claims of [sign(), sign((now + 3600) * 1000)]) t.equal(claims.exp! - claims.iat!, 900)
    t.equal(sign((now + 100) * 1000 + 999).exp, now + 100)
    const over = tokens.sign(actor, { expiresAt: new Date((now - 1) * 1000) })
    t.throws(() => tokens.verify(over), { code: 'INVALID_TOKEN' })
  })

  t.test('4 tokens work even if there are more than the cache holds', async (t) => {
    const id = (number: number) => `${NOBODY.slice(0, -6)}${String(number).padStart(6, '0')}`
    const actors = Array.from({ length: 10_050 }, (_, number) => ({ ...actor, id: id(number) }))
    const [head, body] = tokens.sign(actor).split('.') as [string, string]
    const claims = JSON.parse(Buffer.from(body, 'base64url').toString())
    const key = createPrivateKey(signingKeys.current().privateKey)
    // They are signed with the key directly, because `sign` would put them into the cache.
    const signed = actors.map(({ id }) => {
      const input = `${head}.${base64url({ ...claims, sub: id })}`
      return `${input}.${sign(null, Buffer.from(input), key).toString('base64url')}`
    })
    t.same(signed.map((token) => tokens.verify(token)), actors)
    t.same(signed.slice(0, 100).map((token) => tokens.verify(token)), actors.slice(0, 100), 'also those that had to go')
    t.equal(
      tokens.verify(signed.at(-1)!), tokens.verify(signed.at(-1)!), 'those that are remembered are not verified again'
    )
  })
})
