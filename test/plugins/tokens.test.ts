import { createHmac, createPrivateKey, generateKeyPairSync, sign } from 'node:crypto'
import { setImmediate } from 'node:timers/promises'
import Fastify from 'fastify'
import { decodeJwt, SignJWT, UnsecuredJWT, type JWTPayload } from 'jose'
import t from 'tap'
import database from '../../plugins/database.ts'
import tokens from '../../plugins/tokens.ts'
import { readOptions } from '../../schema/options.ts'
import { createUsher } from '../helpers/app.ts'
import { testDatabaseUrl, uniqueSchema } from '../helpers/database.ts'
import { openSql } from '../helpers/sql.ts'

const REFUSED = [401, 'Bearer error="invalid_token"', { error: 'The bearer token is invalid, expired or revoked', code: 'INVALID_TOKEN' }]
const ABSENT = [401, 'Bearer', { error: 'A bearer token is required', code: 'UNAUTHENTICATED' }]

// The wall clock, not a timer's.
async function until (time: number): Promise<void> {
  while (Date.now() < time) await setImmediate()
}

t.test('1.5 tokens that are refused (given: 401)', async (t) => {
  const usher = await createUsher(t)
  const { inject, createUser } = usher
  const user = await createUser()
  const claims = decodeJwt(user.token)
  const now = Math.floor(Date.now() / 1000)
  const [{ id: kid, private_key: privateKey, public_key: publicKey }] = await openSql(t, usher)`select * from signing_keys` as unknown as
    [{ id: string, private_key: string, public_key: string }]
  const key = createPrivateKey(privateKey)

  const ask = async (authorization: string) => {
    const response = await inject('GET', '/api/protected', { headers: { authorization } })
    return [response.statusCode, response.headers['www-authenticate'], response.json()]
  }
  const forge = (changes: JWTPayload, header: object = {}, signer = key) =>
    new SignJWT({ ...claims, ...changes }).setProtectedHeader({ alg: 'EdDSA', kid, ...header }).sign(signer)
  const base64url = (value: object) => Buffer.from(JSON.stringify(value)).toString('base64url')
  const [head, body, signature] = user.token.split('.') as [string, string, string]

  t.test('a token made with the same key is as good as ours: the forgeries below fail for their own reason', async (t) => {
    t.equal((await ask(`Bearer ${await forge({})}`))[0], 200)
    t.equal((await ask(`Bearer ${await forge({ iat: now + 30 })}`))[0], 200, 'clocks differ by less than a minute')
  })

  t.test('1.5 forged, tampered, unsigned, expired, future', async (t) => {
    const hs256 = (secret: string, header: object) => {
      const input = `${base64url({ typ: 'JWT', kid, ...header })}.${body}`
      return `${input}.${createHmac('sha256', secret).update(input).digest('base64url')}`
    }
    const signed = (header: object) => {
      const input = `${base64url(header)}.${body}`
      return `${input}.${sign(null, Buffer.from(input), key).toString('base64url')}`
    }
    t.equal((await ask(`Bearer ${signed({ alg: 'EdDSA', kid })}`))[0], 200)
    const flipped = Buffer.from(signature, 'base64url')
    flipped[5]! ^= 1
    const tokens: Record<string, string> = {
      expired: await forge({ iat: now - 1000, exp: now - 1 }),
      'expiring now': await forge({ iat: now - 1000, exp: now }),
      'not before a minute': await forge({ nbf: now + 60 }),
      'issued in the future': await forge({ iat: now + 600, exp: now + 1500 }),
      'another audience': await forge({ aud: 'other' }),
      'audiences without ours': await forge({ aud: ['other', 'usher2'] }),
      'an audience that holds ours': await forge({ aud: 'usher-other' }),
      'another issuer': await forge({ iss: 'other' }),
      'an issuer that holds ours': await forge({ iss: 'https://usher' }),
      'another key': await forge({}, {}, generateKeyPairSync('ed25519').privateKey),
      'an unknown kid': await forge({}, { kid: 'unknown' }),
      'no kid': await forge({}, { kid: undefined }),
      'kid __proto__': await forge({}, { kid: '__proto__' }),
      'kid constructor': await forge({}, { kid: 'constructor' }),
      'a critical header': signed({ alg: 'EdDSA', kid, crit: ['exp'] }),
      'a key in the header': signed({ alg: 'EdDSA', jwk: { kty: 'OKP', crv: 'Ed25519', x: kid } }),
      'alg none': new UnsecuredJWT(claims).encode(),
      'alg none with a kid': `${base64url({ alg: 'none', kid })}.${body}.`,
      'alg None with a signature': `${base64url({ alg: 'None', kid })}.${body}.${signature}`,
      'HS256 with the public key': hs256(publicKey, { alg: 'HS256' }),
      'HS256 with the public key, trimmed': hs256(publicKey.trim(), { alg: 'HS256' }),
      'HS256 with the kid': hs256(kid, { alg: 'HS256' }),
      'HS256 that says EdDSA': hs256(publicKey, { alg: 'EdDSA' }),
      'RS256 by name': `${base64url({ alg: 'RS256', kid })}.${body}.${signature}`,
      'a tampered body': `${head}.${base64url({ ...claims, role: 'admin' })}.${signature}`,
      'a tampered header': `${base64url({ alg: 'EdDSA', typ: 'JWT', kid, x: 1 })}.${body}.${signature}`,
      'a tampered signature': `${head}.${body}.${flipped.toString('base64url')}`,
      'half a signature': `${head}.${body}.${signature.slice(0, 43)}`,
      'no signature': `${head}.${body}.`,
      'two parts': `${head}.${body}`,
      'three dots': `${user.token}.`,
      'four parts': `${user.token}.${signature}`,
      'five parts': `${head}..${body}.${signature}.x`,
      'only dots': '...',
      'two dots': '..',
      'not base64': '!.!.!',
      'not JSON': `${Buffer.from('{').toString('base64url')}.${body}.${signature}`,
      'a header of null': `${Buffer.from('null').toString('base64url')}.${body}.${signature}`,
      'a long one': 'x'.repeat(10_000),
      null: 'null',
      undefined: 'undefined',
    }
    for (const claim of ['sub', 'sid', 'role', 'iat', 'exp', 'iss', 'aud']) tokens[`no ${claim}`] = await forge({ [claim]: undefined })
    for (const [name, token] of Object.entries(tokens)) t.same(await ask(`Bearer ${token}`), REFUSED, name)
  })

  t.test('4.8 a user who is gone, between the check of the token and the read', async (t) => {
    t.same(await ask(`Bearer ${await forge({ sub: '0190a5b4-7c3e-7d11-8000-000000000000' })}`), REFUSED)
  })

  t.test('1.5 two words, no word, another scheme', async (t) => {
    const { token } = user
    for (const field of [`Bearer ${token} ${token}`, 'Bearer a b', `Bearer ${token} x`, 'Bearer', 'Bearer ', `Bearer ${token},`, `Bearer "${token}"`, `Bearer Bearer ${token}`]) {
      t.same(await ask(field), REFUSED, field.slice(0, 20))
    }
    for (const field of [`Basic ${token}`, `Basic ${Buffer.from('a:b').toString('base64')}`, token, `Token ${token}`, `Bearer${token}`, `Bearer\t${token}`, `bearer:${token}`, '']) {
      t.same(await ask(field), ABSENT, field.slice(0, 20))
    }
  })

  t.test('1.5 the scheme without regard to case, after it one space or more (RFC 9110 11.4)', async (t) => {
    for (const scheme of ['bearer', 'BEARER', 'Bearer', 'Bearer  ']) t.equal((await ask(`${scheme} ${user.token}`))[0], 200, scheme)
  })

  t.test('4 a token that was good is refused once it has expired', async (t) => {
    const token = await forge({ exp: now + 2 })
    t.equal((await ask(`Bearer ${token}`))[0], 200)
    await until((now + 2) * 1000)
    t.same(await ask(`Bearer ${token}`), REFUSED)
  })
})

t.test('4 more tokens than are remembered: all of them work', async (t) => {
  const app = Fastify()
  t.teardown(() => app.close())
  app.decorate('usherOptions', readOptions({ databaseUrl: await testDatabaseUrl(), schema: uniqueSchema(t.name), poolSize: 2 }))
  await app.register(database)
  await app.register(tokens)
  const actors = Array.from({ length: 10_050 }, (_, number) => ({ id: `user ${number}`, role: 'user' as const, sessionId: 'session' }))
  const signed = actors.map((actor) => app.usherTokens.sign(actor))
  t.same(signed.map((token) => app.usherTokens.verify(token)), actors)
  t.same(signed.slice(0, 100).map((token) => app.usherTokens.verify(token)), actors.slice(0, 100), 'also those that had to go')
  t.equal(app.usherTokens.verify(signed.at(-1)!), app.usherTokens.verify(signed.at(-1)!), 'those that are remembered are not verified again')
})

t.test('4 the keys are made once and shared by all nodes', async (t) => {
  const first = await createUsher(t)
  const nodes = await Promise.all([1, 2, 3].map(() => createUsher(t, first.options)))
  const keys = await Promise.all([first, ...nodes].map(async ({ inject }) => (await inject('GET', '/.well-known/jwks.json')).body))
  t.equal(new Set(keys).size, 1)
  for (const { inject } of nodes) t.equal((await inject('GET', '/api/protected', { headers: first.admin.headers })).statusCode, 200)
})
