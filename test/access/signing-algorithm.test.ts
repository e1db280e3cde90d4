import {
  createHash, createHmac, createPrivateKey, createPublicKey, generateKeyPairSync, sign, type KeyObject,
} from 'node:crypto'
import { calculateJwkThumbprint, createLocalJWKSet, decodeJwt, decodeProtectedHeader, jwtVerify, SignJWT } from 'jose'
import t from 'tap'
import type { ISql } from 'postgres'
import { createUsher, type TestUsher } from '../helpers/app.ts'
import { nightly } from '../helpers/nightly.ts'
import { openSql } from '../helpers/sql.ts'
import { until } from '../helpers/until.ts'

const SECRET = 'a secret of many words'
const REFUSED = [401, 'Bearer error="invalid_token"', 'INVALID_TOKEN']
// The order of the group of P-256 (FIPS 186-4 D.1.2.3).
const N = 0xffffffff00000000ffffffffffffffffbce6faada7179e84f3b9cac2fc632551n

interface KeyRow { id: string, private_key: string, public_key: string }
interface Jwk { kty: string, crv: string, x: string, y?: string, kid: string, alg: string, use: string }

const keysOf = async ({ inject }: TestUsher): Promise<Jwk[]> =>
  (await inject('GET', '/.well-known/jwks.json')).json().keys
const algorithmsOf = async (usher: TestUsher) => (await keysOf(usher)).map(({ alg }) => alg)
const algOf = (token: string) => decodeProtectedHeader(token).alg
const relogin = (usher: TestUsher) => usher.login(usher.admin)
const base64url = (value: unknown) =>
  Buffer.from(typeof value === 'string' ? value : JSON.stringify(value)).toString('base64url')
const octets = (value: bigint) => Buffer.from(value.toString(16).padStart(64, '0'), 'hex')

// Simulates that time has passed for the keys.
const pass = (sql: ISql, time: string) => sql`update signing_keys set active_at = active_at - ${time}::interval`

async function ask ({ inject }: TestUsher, token: string) {
  const { statusCode, headers, body } = await inject(
    'GET', '/api/protected', { headers: { authorization: `Bearer ${token}` } }
  )
  return statusCode === 200 ? [200] : [statusCode, headers['www-authenticate'], JSON.parse(body).code]
}

nightly('4 with the option signingAlgorithm, the first key is one of ES256, and signs at once', async (t) => {
  const usher = await createUsher(t, { signingAlgorithm: 'ES256', secret: SECRET })
  const [key, ...others] = await keysOf(usher)
  t.same(others, [])
  t.match(key, { kty: 'EC', crv: 'P-256', alg: 'ES256', use: 'sig' })
  t.equal(key!.kid, await calculateJwkThumbprint(key!), 'the thumbprint of RFC 7638')
  t.same(decodeProtectedHeader(usher.admin.token), { alg: 'ES256', typ: 'JWT', kid: key!.kid })
  const expected = { issuer: 'usher', audience: 'usher', algorithms: ['ES256'] }
  t.equal(
    (await jwtVerify(usher.admin.token, createLocalJWKSet({ keys: [key!] }), expected)).payload.sub, usher.admin.id
  )
  t.same(await ask(usher, usher.admin.token), [200])
  const refreshed = await usher.inject('POST', '/api/auth/refresh', { headers: { cookie: usher.admin.cookie } })
  t.equal(algOf(refreshed.json().token), 'ES256')
  t.same(await ask(usher, refreshed.json().token), [200])
  t.match((await openSql(t, usher)`select * from signing_keys`)[0], { private_key: /^sealed1\./ })
})

nightly('4 a change of the algorithm: no valid token is rejected, and services know the new key before it signs', async (t) => {
  const one = await createUsher(t)
  const sql = openSql(t, one)
  const { token } = one.admin
  t.equal(algOf(token), 'EdDSA', 'by default')

  // Of several nodes that start at once, one creates the key.
  const others = await Promise.all([1, 2, 3].map(() => createUsher(t, { ...one.options, signingAlgorithm: 'ES256' })))
  const nodes = [one, ...others]
  for (const node of nodes) await until('a node publishes both keys', async () => (await keysOf(node)).length > 1)
  for (const node of nodes) t.same(await algorithmsOf(node), ['ES256', 'EdDSA'])
  const [{ seconds }] = await sql<[{ seconds: number }]>`
    select extract(epoch from active_at - created_at)::float8 as seconds from signing_keys order by active_at desc limit 1`
  t.ok(seconds > 299 && seconds < 330, `it signs ${seconds} seconds after the transaction began that created it`)
  const before = await Promise.all(nodes.map(relogin))
  t.same(before.map(({ token }) => algOf(token)), ['EdDSA', 'EdDSA', 'EdDSA', 'EdDSA'])

  t.comment('its time comes')
  await pass(sql, '300 seconds')
  for (const node of nodes) {
    await until(
      'it signs with the new key, whatever its own option', async () => algOf((await relogin(node)).token) === 'ES256'
    )
  }
  const after = await Promise.all(nodes.map(relogin))
  for (const { token } of [...before, ...after]) {
    for (const node of nodes) t.same(await ask(node, token), [200])
    t.ok(await jwtVerify(token, createLocalJWKSet({ keys: await keysOf(one) })), 'other services accept both')
  }

  t.comment('nodes without the option, which start or rotate by age, keep the algorithm')
  const late = await createUsher(t, { ...one.options, signingKeySeconds: 60 })
  await pass(sql, '60 seconds')
  await until('it has rotated', async () => (await keysOf(late)).length === 3)
  t.same(await algorithmsOf(late), ['ES256', 'ES256', 'EdDSA'])

  t.comment('the last token of the old key expires')
  await pass(sql, '16 minutes')
  await relogin(one)
  for (const node of nodes) {
    await until('the old key is gone', async () => !(await algorithmsOf(node)).includes('EdDSA'))
    t.same(await ask(node, token), REFUSED)
    t.same(await ask(node, after[0]!.token), [200])
  }
})

nightly('4 a change of the algorithm that is taken back before the new key signs leaves no key behind', async (t) => {
  const one = await createUsher(t)
  const warnings: string[] = []
  const stream = { write: (line: string) => { warnings.push(line) } }
  const two = await createUsher(t, { ...one.options, signingAlgorithm: 'ES256' }, { logger: { level: 'warn', stream } })
  await until('it is published', async () => (await keysOf(one)).length === 2)
  const three = await createUsher(t, { ...one.options, signingAlgorithm: 'EdDSA' })
  await until('it is gone', async () => (await keysOf(one)).length === 1)
  t.same(await algorithmsOf(three), ['EdDSA'])
  for (const node of [one, two, three]) t.same([algOf((await relogin(node)).token)], ['EdDSA'])
  // Both nodes would otherwise replace each other's keys forever.
  await until('a node that is told otherwise says so', () => warnings.length > 0)
  t.match(JSON.parse(warnings[0]!), {
    msg: /give all nodes the same signingAlgorithm/, algorithm: 'EdDSA', signingAlgorithm: 'ES256',
  })
  t.equal((await openSql(t, one)`select 1 from signing_keys`).length, 1)
})

nightly('4 a first secret together with another algorithm: one new key, encrypted, signs at once', async (t) => {
  const one = await createUsher(t)
  const two = await createUsher(t, { ...one.options, secret: SECRET, signingAlgorithm: 'ES256' })
  t.equal(algOf((await relogin(two)).token), 'ES256')
  t.same(await algorithmsOf(two), ['ES256', 'EdDSA'])
  t.same(await ask(two, one.admin.token), [200])
  for (const { private_key: key } of await openSql(t, one)`select * from signing_keys`) t.match(key, /^sealed1\./)
})

t.test('1.5 the algorithm of a token is that of its key (RFC 8725 3.1)', async (t) => {
  const usher = await createUsher(t)
  await createUsher(t, { ...usher.options, signingAlgorithm: 'ES256' })
  const sql = openSql(t, usher)
  await pass(sql, '300 seconds')
  await until('the new key signs', async () => algOf((await relogin(usher)).token) === 'ES256')
  const { token } = await relogin(usher)
  const rows = await sql<KeyRow[]>`select * from signing_keys order by active_at desc`
  const [ec, ed] = rows as unknown as [KeyRow, KeyRow]
  const keyOf = ({ private_key: pem }: KeyRow) => createPrivateKey(pem)
  const claims = decodeJwt(token)
  const attacker = generateKeyPairSync('ec', { namedCurve: 'P-256' })
  const [head, body, signature] = token.split('.') as [string, string, string]
  const [r, s] =
    [0, 32].map((at) => BigInt(`0x${Buffer.from(signature, 'base64url').subarray(at, at + 32).toString('hex')}`)) as [
      bigint, bigint
    ]

  const compact = (header: object, key: KeyObject, dsaEncoding: 'ieee-p1363' | 'der' = 'ieee-p1363') => {
    const input = `${base64url({ typ: 'JWT', ...header })}.${body}`
    const hash = key.asymmetricKeyType === 'ec' ? 'sha256' : null
    return `${input}.${sign(hash, Buffer.from(input), { key, dsaEncoding }).toString('base64url')}`
  }
  const signed = (parts: readonly Buffer[]) => `${head}.${body}.${Buffer.concat(parts).toString('base64url')}`
  const hmac = (secret: string | Uint8Array, bits: number) => {
    const input = `${base64url({ alg: `HS${bits}`, typ: 'JWT', kid: ec.id })}.${body}`
    return `${input}.${createHmac(`sha${bits}`, secret).update(input).digest('base64url')}`
  }
  // The node writes the members in this order.
  const header = (changes: object) => ({ alg: 'ES256', typ: 'JWT', kid: ec.id, ...changes })

  t.same(await ask(usher, compact(header({}), keyOf(ec))), [200], 'those below are rejected for their own reasons')
  t.same(await ask(usher, compact(header({ alg: 'EdDSA', kid: ed.id }), keyOf(ed))), [200])
  t.same(
    await ask(usher, await new SignJWT(claims).setProtectedHeader(header({})).sign(keyOf(ec))),
    [200],
    'by another library'
  )

  const publicJwk = createPublicKey(ec.public_key).export({ format: 'jwk' })
  const tokens: Record<string, string> = {
    'EdDSA with the kid of ES256': compact(header({ alg: 'EdDSA' }), keyOf(ec)),
    'EdDSA with the kid of ES256, signed by the key of EdDSA': compact(header({ alg: 'EdDSA' }), keyOf(ed)),
    'ES256 with the kid of EdDSA': compact(header({ kid: ed.id }), keyOf(ed)),
    'ES256 with the kid of EdDSA, signed by the key of ES256': compact(header({ kid: ed.id }), keyOf(ec)),
    'ES384 by the key of ES256': compact(header({ alg: 'ES384' }), keyOf(ec)),
    ES256K: compact(header({ alg: 'ES256K' }), generateKeyPairSync('ec', { namedCurve: 'secp256k1' }).privateKey),
    'another key of P-256': compact(header({}), attacker.privateKey),
    'another key, which the token brings': compact(
      header({ jwk: attacker.publicKey.export({ format: 'jwk' }) }), attacker.privateKey
    ),
    'a signature in DER': compact(header({}), keyOf(ec), 'der'),
    'r and s are 0 (CVE-2022-21449)': signed([octets(0n), octets(0n)]),
    'r is 0': signed([octets(0n), octets(s)]),
    's is 0': signed([octets(r), octets(0n)]),
    's plus the order of the group': signed([octets(r), octets((s + N) % (1n << 256n))]),
    'r and s swapped': signed([octets(s), octets(r)]),
    'alg none': `${base64url({ alg: 'none', typ: 'JWT' })}.${body}.`,
    'alg none with the kid and the signature': `${base64url(header({ alg: 'none' }))}.${body}.${signature}`,
    'no signature': `${head}.${body}.`,
    'an HMAC that says ES256':
      `${head}.${body}.${createHmac('sha512', ec.public_key).update(`${head}.${body}`).digest('base64url')}`,
    'a hash that says ES256': `${head}.${body}.${createHash('sha512').update(`${head}.${body}`).digest('base64url')}`,
  }
  for (const bits of [256, 384, 512]) {
    tokens[`HS${bits} with the PEM`] = hmac(ec.public_key, bits)
    tokens[`HS${bits} with the DER`] = hmac(
      createPublicKey(ec.public_key).export({ type: 'spki', format: 'der' }), bits
    )
    tokens[`HS${bits} with the JWK`] = hmac(JSON.stringify(publicJwk), bits)
  }
  for (const [name, forged] of Object.entries(tokens)) t.same(await ask(usher, forged), REFUSED, name)
})

t.test('9 a signing algorithm that is none is rejected', async (t) => {
  for (const signingAlgorithm of ['RS256', 'none', 'es256', '', null]) {
    await t.rejects(createUsher(t, { signingAlgorithm: signingAlgorithm as never }), {
      message: /^usher: signingAlgorithm must be (one of EdDSA, ES256|a string)/,
    })
  }
})
