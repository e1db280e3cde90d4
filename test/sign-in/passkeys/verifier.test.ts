import { execFile } from 'node:child_process'
import { createPublicKey, randomBytes } from 'node:crypto'
import { readFileSync } from 'node:fs'
import { fileURLToPath } from 'node:url'
import { promisify } from 'node:util'
import { server } from '@passwordless-id/webauthn'
import t, { type Test } from 'tap'
import { createVerifier, InvalidResponse, type Verifier } from '../../../plugins/sign-in/passkeys/verifier.ts'
import type { Expected } from '../../../plugins/sign-in/passkeys/verify-credential.ts'
import type { AuthenticationResponse, RegistrationResponse } from '../../../schema/sign-in/passkeys.ts'
import {
  Authenticator, createKey, creationOptions, encodeCbor, type Algorithm, type Behaviour, type Cbor,
  type SoftwarePasskey,
} from '../../helpers/authenticator.ts'
import { openCore } from '../../helpers/core.ts'
import { slow } from '../../helpers/deadlines.ts'
import { fuzzCredentials } from '../../helpers/fuzz-credentials.ts'
import { nightly } from '../../helpers/nightly.ts'

const ORIGIN = 'https://app.example.org'
const RP_ID = 'example.org'
const challenge = randomBytes(32).toString('base64url')
const expected: Expected = { challenge, origins: [ORIGIN], rpId: RP_ID, userVerification: true }

async function openVerifier (t: Test, deadlines = slow): Promise<Verifier> {
  const { app, core } = await openCore(t, { deadlines })
  const verifier = createVerifier(core)
  await app.ready()
  return verifier
}

/** Registers a passkey. Returns it with its public key, as it is stored. */
async function register (verifier: Verifier, algorithm: Algorithm = 'ES256') {
  const authenticator = new Authenticator({ origin: ORIGIN })
  const { publicKey } = await verifier.verifyRegistration(
    expected, authenticator.create(creationOptions(RP_ID, challenge), { algorithm })
  )
  const get = (behaviour?: Behaviour) => authenticator.get({ challenge, rpId: RP_ID }, behaviour)
  return { authenticator, passkey: authenticator.passkeys[0]!, publicKey, get }
}

const rejection = (message = /./) => ({ constructor: InvalidResponse, message })

t.test('16.3 passkeys with ES256, EdDSA and RS256 are registered and verified', async (t) => {
  const verifier = await openVerifier(t)
  for (const algorithm of ['ES256', 'EdDSA', 'RS256'] as const) {
    const authenticator = new Authenticator({ origin: ORIGIN, aaguid: 'fbfc3007-154e-4ecc-8c0b-6e020557d7bd' })
    const created = authenticator.create(creationOptions(RP_ID, challenge), { algorithm })
    const { publicKey, credentialId, ...registered } = await verifier.verifyRegistration(expected, created)
    t.strictSame(Buffer.from(credentialId), authenticator.passkeys[0]!.id, algorithm)
    t.strictSame(
      registered, { aaguid: 'fbfc3007-154e-4ecc-8c0b-6e020557d7bd', counter: 0, isSynced: true, backedUp: true }
    )
    const get = (behaviour?: Behaviour) =>
      verifier.verifyAssertion(expected, authenticator.get({ challenge, rpId: RP_ID }, behaviour), publicKey)
    t.strictSame(await get({ counter: 7 }), { counter: 7, isSynced: true, backedUp: true })
    t.strictSame(await get({ backedUp: false }), { counter: 0, isSynced: true, backedUp: false })
    t.strictSame(await get({ backupEligible: false }), { counter: 0, isSynced: false, backedUp: false })
  }
})

interface Vector {
  id: string
  registration: { challenge: string, clientDataJSON: string, attestationObject: string }
  authentication: { challenge: string, clientDataJSON: string, authenticatorData: string, signature: string }
}
// Those of WebAuthn Level 3, 16 (https://www.w3.org/TR/webauthn-3/#sctn-test-vectors).
const vectors: Record<string, Vector> = JSON.parse(
  readFileSync(new URL('./fixtures/webauthn-vectors.json', import.meta.url), 'utf8')
)
const CERTIFIED = /^the attestation must be none$/
const FRAMED = /frame of another origin/
// What is not accepted of them: keys that are attested by a certificate, and pages in frames.
const refused: Readonly<Record<string, RegExp>> = {
  'none-es256-crossOrigin': FRAMED,
  'none-es256-topOrigin': FRAMED,
  ...Object.fromEntries(
    ['packed-es256', 'packed-es384', 'packed-es512', 'packed-rs256', 'packed-eddsa', 'packed-ed448', 'tpm-es256',
      'android-key-es256', 'apple-es256', 'fido-u2f-es256'].map((name) => [name, CERTIFIED])
  ),
}

t.test('16.3 the test vectors of WebAuthn Level 3 are verified, and those with certificates or frames are rejected', async (t) => {
  const verifier = await openVerifier(t)
  t.equal(Object.keys(vectors).length, 15)
  for (const [name, { id, registration, authentication }] of Object.entries(vectors)) {
    const ids = { id, rawId: id, type: 'public-key' }
    const expectations = { origins: ['https://example.org'], rpId: 'example.org', userVerification: false }
    const { challenge, ...created } = registration
    const registering = verifier.verifyRegistration({ ...expectations, challenge }, { ...ids, response: created })
    const asserting = (publicKey: Uint8Array, changes = {}) => {
      const { challenge, ...response } = authentication
      return verifier.verifyAssertion({ ...expectations, challenge, ...changes }, { ...ids, response }, publicKey)
    }
    if (refused[name]) await t.rejects(registering, rejection(refused[name]), name)
    if (refused[name] === CERTIFIED) {
      // Their assertions are like any others. ES384, ES512 and Ed448 are not among the algorithms of registrations.
      const publicKey = attestedKey(created.attestationObject)
      if (/(es256|rs256|eddsa)$/.test(name)) t.match(await asserting(publicKey), { counter: 0 }, name)
    }
    if (refused[name]) continue
    const { credentialId, publicKey } = await registering
    t.equal(Buffer.from(credentialId).toString('base64url'), id, name)
    t.match(await asserting(publicKey), { counter: 0 }, name)
    await t.rejects(asserting(publicKey, { challenge: registration.challenge }), rejection(/challenge/), name)
    await t.rejects(asserting(publicKey, { rpId: 'example.com' }), rejection(), name)
  }
})

// Returns the public key of an attestation object: what follows the id in the attested credential data, which is at its
// end.
function attestedKey (attestationObject: string): Buffer {
  const octets = Buffer.from(attestationObject, 'base64url')
  const start = octets.indexOf(Buffer.from('authData')) + 8
  const long = octets[start] === 0x59
  const data = octets.subarray(
    start + (long ? 3 : 2), start + (long ? 3 + octets.readUInt16BE(start + 1) : 2 + octets[start + 1]!)
  )
  return data.subarray(55 + data.readUInt16BE(53))
}

const flip = (octets: Buffer) => {
  const flipped = Buffer.from(octets)
  flipped[0]! ^= 1
  return flipped
}

// What a browser or an authenticator may get wrong in both ceremonies, or an attacker changes.
const lies: Record<string, [Behaviour, RegExp]> = {
  'another origin': [{ origin: 'https://evil.example.org' }, /origin/],
  'an origin that differs in its scheme': [{ origin: 'http://app.example.org' }, /origin/],
  'an origin that differs in its port': [{ origin: 'https://app.example.org:8443' }, /origin/],
  'another domain': [{ rpId: 'evil.example.org' }, /RP ID/],
  'a hash of the domain that is not one': [{ tamper: flip }, /RP ID/],
  'another challenge': [{ challenge: randomBytes(32).toString('base64url') }, /challenge/],
  'no challenge': [{ challenge: '' }, /challenge/],
  'a frame of another origin': [{ crossOrigin: true }, FRAMED],
  'a frame of an origin that it names': [{ topOrigin: 'https://evil.example' }, FRAMED],
  'a user who was not verified': [{ userVerified: false }, /could not be verified/],
  'a user who was not present': [{ userPresent: false }, /not present/],
  'a copy of a passkey that cannot be copied': [{ backupEligible: false, backedUp: true }, /backup|backed up/i],
  'authenticator data that is too short': [{ tamper: (data) => data.subarray(0, 36) }, /.+/],
  'authenticator data with more at its end': [
    { tamper: (data) => Buffer.concat([data, Buffer.from('00', 'hex')]) }, /Leftover|.+/,
  ],
}

t.test('16.3 a registration that is not what was asked for is rejected', async (t) => {
  const verifier = await openVerifier(t)
  const create = (behaviour: Behaviour = {}) =>
    new Authenticator({ origin: ORIGIN }).create(creationOptions(RP_ID, challenge), behaviour)
  const verify = (credential: RegistrationResponse) => verifier.verifyRegistration(expected, credential)
  await t.resolves(verify(create()))
  for (const [name, [behaviour, message]] of Object.entries(lies)) {
    await t.rejects(verify(create(behaviour)), rejection(message), name)
  }
  await t.rejects(verify(create({ type: 'webauthn.get' })), rejection(/type/), 'an assertion')
  const other = create()
  await t.rejects(
    verify({ ...create(), id: other.id, rawId: other.id }), rejection(/id is not that/), 'the id of another passkey'
  )
  await t.rejects(verify({ ...create(), id: other.id }), rejection(/base64url/), 'two ids')
  await t.rejects(verify({ ...create(), type: 'password' }), rejection(/credential type/), 'another type')
  await t.rejects(verify({ ...create(), response: { ...create().response, attestationObject: '' } }), rejection())
})

const statement = (members: [string, Cbor][], format = 'packed') => ({
  attestation: (authData: Buffer) =>
    encodeCbor(new Map<string, Cbor>([['fmt', format], ['attStmt', new Map(members)], ['authData', authData]])),
})

t.test('16.3 an attestation with a certificate is rejected before its certificates are looked at', async (t) => {
  const verifier = await openVerifier(t)
  const verify = (behaviour: Behaviour) =>
    verifier.verifyRegistration(
      expected, new Authenticator({ origin: ORIGIN }).create(creationOptions(RP_ID, challenge), behaviour)
    )
  const certificate: [string, Cbor] = ['x5c', [randomBytes(100)]]
  for (const format of ['packed', 'tpm', 'android-key', 'android-safetynet', 'fido-u2f', 'apple', 'unknown', '']) {
    await t.rejects(
      verify(statement([['alg', -7], ['sig', randomBytes(70)], certificate], format)), rejection(CERTIFIED), format
    )
  }
  await t.rejects(verify(statement([certificate], 'none')), rejection(/unexpected attestation statement/))
  await t.rejects(
    verify(statement([['alg', -7], ['sig', randomBytes(70)]])), rejection(), 'a signature that is not that of the key'
  )
})

t.test('16.3 a public key with which nobody could sign in is rejected', async (t) => {
  const verifier = await openVerifier(t)
  const authenticator = new Authenticator({ origin: ORIGIN })
  const options = creationOptions(RP_ID, challenge)
  authenticator.create(options)
  const verify = (publicKey: Cbor) =>
    verifier.verifyRegistration(
      expected, authenticator.attest(authenticator.passkeys[0]!, challenge, encodeCbor(publicKey))
    )
  const changed = (algorithm: Algorithm, ...members: [number, Cbor][]) =>
    new Map([...createKey(algorithm).cose, ...members])
  const without = (algorithm: Algorithm, member: number) =>
    new Map([...createKey(algorithm).cose].filter(([name]) => name !== member))
  await t.resolves(verify(createKey('ES256').cose))
  const keys: Record<string, Cbor> = {
    'a point that is not on the curve': changed('ES256', [-3, randomBytes(32)]),
    'the point at infinity': changed('ES256', [-2, Buffer.alloc(32)], [-3, Buffer.alloc(32)]),
    'coordinates that are too short': changed('ES256', [-2, randomBytes(31)]),
    'coordinates that are numbers': changed('ES256', [-2, 1], [-3, 1]),
    'no coordinates': without('ES256', -2),
    'no curve': without('ES256', -1),
    'another curve': changed('ES256', [-1, 2]),
    'ES256 with a key of Ed25519': changed('EdDSA', [3, -7]),
    'EdDSA with a key of P-256': changed('ES256', [3, -8]),
    'RS256 with a key of P-256': changed('ES256', [3, -257]),
    'an algorithm that was not asked for': changed('ES256', [3, -35]),
    'no algorithm': without('ES256', 3),
    'an algorithm in words': changed('ES256', [3, 'ES256']),
    'Ed25519 with a key that is too short': changed('EdDSA', [-2, randomBytes(31)]),
    Ed448: changed('EdDSA', [-1, 7]),
    'RSA with 1,024 bits': createKey('RS256', 1024).cose,
    'RSA with more bits than are checked quickly': changed(
      'RS256', [-1, Buffer.concat([Buffer.from([0xff]), randomBytes(1023)])]
    ),
    'RSA with a large exponent': changed('RS256', [-2, randomBytes(256)]),
    'RSA with the exponent 1': changed('RS256', [-2, Buffer.from([1])]),
    'a symmetric key': new Map<number, Cbor>([[1, 4], [3, -7], [-1, randomBytes(32)]]),
    'a list': [1, 2, 3],
    'no members': new Map(),
  }
  for (const [name, key] of Object.entries(keys)) await t.rejects(verify(key), rejection(), name)
  // A map that is nested as deeply as its length permits.
  const deep = Buffer.concat([Buffer.alloc(4000, 0x81), Buffer.from([0])])
  await t.rejects(
    verifier.verifyRegistration(expected, authenticator.attest(authenticator.passkeys[0]!, challenge, deep)),
    rejection()
  )
})

t.test('16.3 an assertion that is not what was asked for is rejected', async (t) => {
  const verifier = await openVerifier(t)
  for (const algorithm of ['ES256', 'EdDSA', 'RS256'] as const) {
    const { get, publicKey } = await register(verifier, algorithm)
    const other = await register(verifier, algorithm)
    const verify = (credential: AuthenticationResponse, key = publicKey) =>
      verifier.verifyAssertion(expected, credential, key)
    await t.resolves(verify(get()))
    for (const [name, [behaviour, message]] of Object.entries(lies)) {
      await t.rejects(verify(get(behaviour)), rejection(message), `${algorithm}: ${name}`)
    }
    await t.rejects(verify(get({ type: 'webauthn.create' })), rejection(/type/), 'a registration')
    await t.rejects(verify(other.get()), rejection(/signature/), 'the signature of another passkey')
    await t.rejects(verify(get(), other.publicKey), rejection(/signature/), 'the key of another passkey')
    const { response, ...ids } = get()
    const data = Buffer.from(response.authenticatorData, 'base64url')
    data.writeUInt32BE(9, 33)
    const changed = (changes: object) => verify({ ...ids, response: { ...response, ...changes } })
    await t.rejects(
      changed({ authenticatorData: data.toString('base64url') }),
      rejection(/signature/),
      'another counter than was signed'
    )
    for (const signature of ['', 'AA', response.signature.slice(4), `${response.signature}AAAA`, 'A'.repeat(1024)]) {
      await t.rejects(changed({ signature }), rejection(), `${algorithm}: ${signature.slice(0, 8)}`)
    }
    for (const text of [
      '', 'null', '{}', '[]', '"text"', '{"type":', '\ufeff', '{"type":"webauthn.get","challenge":{}}',
    ]) {
      await t.rejects(changed({ clientDataJSON: Buffer.from(text).toString('base64url') }), rejection(), text)
    }
  }
})

// The longest signature of ES256, which consists of two numbers in DER. Those of RS256 are longer.
const MAX_ES256 = 72

// The other library converts signatures whose numbers are shorter than the curve's wrongly, so both must be of full
// length.
function getLong (get: (behaviour: Behaviour) => AuthenticationResponse, behaviour: Behaviour): AuthenticationResponse {
  for (;;) {
    const response = get(behaviour)
    const signature = Buffer.from(response.response.signature, 'base64url')
    if (signature.length > MAX_ES256) return response
    // A number whose highest bit is set has an octet 0 before it, so 32 octets may be one of 31.
    const countOctets = (at: number) => signature[at]! - (signature[at + 1] === 0 ? 1 : 0)
    if (countOctets(3) === 32 && countOctets(5 + signature[3]!) === 32) return response
  }
}

nightly('16.3 another library accepts and rejects the same assertions', async (t) => {
  const verifier = await openVerifier(t)
  for (const algorithm of ['ES256', 'RS256'] as const) {
    const { get, passkey, publicKey } = await register(verifier, algorithm)
    const credential = { id: passkey.id.toString('base64url'), algorithm, publicKey: spkiOf(passkey), transports: [] }
    const compare = async (name: string, response: AuthenticationResponse) => {
      const ours = await verifier.verifyAssertion(expected, response, publicKey).then(() => true, () => false)
      const theirs = await server.verifyAuthentication(
        {
          ...response,
          rawId: response.id,
          type: 'public-key',
          clientExtensionResults: {},
          authenticatorAttachment: 'platform',
          response: { ...response.response, userHandle: undefined },
        },
        credential, { challenge, origin: ORIGIN, userVerified: true, domain: RP_ID }).then(() => true, () => false)
      t.equal(ours, theirs, `${algorithm}: ${name}`)
      return ours
    }
    t.ok(await compare('honest', getLong(get, {})))
    // The other one does not look at frames, flags of backups and further bytes.
    const ignored = [
      'a frame of another origin', 'a frame of an origin that it names', 'a copy of a passkey that cannot be copied',
      'authenticator data with more at its end',
    ]
    for (const [name, [behaviour]] of Object.entries(lies)) {
      if (!ignored.includes(name)) t.notOk(await compare(name, getLong(get, behaviour)))
    }
    const { response, ...ids } = getLong(get, {})
    for (const member of ['signature', 'authenticatorData', 'clientDataJSON'] as const) {
      const octets = Buffer.from(response[member], 'base64url')
      for (let bit = 0; bit < octets.length * 8; bit += 13) {
        const flipped = Buffer.from(octets)
        flipped[bit >> 3]! ^= 1 << (bit & 7)
        // Where the numbers of a signature begin is their encoding, which the other one does not check.
        if (member === 'signature' && algorithm === 'ES256' && isEncoding(octets, bit >> 3)) continue
        await compare(
          `${member}, bit ${bit}`, { ...ids, response: { ...response, [member]: flipped.toString('base64url') } }
        )
      }
    }
  }
})

const isEncoding = (signature: Buffer, index: number) => index < 5 || Math.abs(index - 4 - signature[3]!) < 4

const spkiOf = ({ privateKey }: SoftwarePasskey): string =>
  createPublicKey(privateKey).export({ format: 'der', type: 'spki' }).toString('base64url')

nightly('16.3 no mutation of a response is accepted, and none ends the thread', async (t) => {
  const verifier = await openVerifier(t)
  const { rejected, registered } = await fuzzCredentials(verifier, { inputs: 3000, seed: 1 })
  t.equal(rejected + registered, 3000)
  t.ok(registered < 300, `${registered} registrations are as valid as before`)
})

nightly('16.3 a thread that fails or does not answer is replaced, and the response is 503', async (t) => {
  const verifier = await openVerifier(t)
  const { get, publicKey } = await register(verifier)
  const hasty = await openVerifier(t, { ...slow, passkey: 1 })
  await t.rejects(
    hasty.verifyAssertion(expected, get(), publicKey), { statusCode: 503, code: 'OVERLOADED' }, 'a start takes longer'
  )

  const { app, core } = await openCore(t, { deadlines: slow })
  const failing = createVerifier(core, new URL('./fixtures/failing-worker.ts', import.meta.url))
  await app.ready()
  const verify = (challenge: string) => failing.verifyAssertion({ ...expected, challenge }, get(), publicKey)
  for (const challenge of ['throw', 'exit', 'throw']) {
    const results = await Promise.allSettled([verify('wait'), verify(challenge)])
    for (const result of results) t.match(result, { reason: { statusCode: 503, code: 'OVERLOADED' } }, challenge)
    t.match(await verify('answer'), { counter: 1 }, 'the next one works')
  }
})

nightly('16.3 a flood of responses waits in a bounded queue', async (t) => {
  const verifier = await openVerifier(t)
  const { get, publicKey } = await register(verifier)
  const results = await Promise.allSettled(
    Array.from({ length: 250 }, () => verifier.verifyAssertion(expected, get(), publicKey))
  )
  t.equal(results.filter(({ status }) => status === 'fulfilled').length, 200)
  for (const result of results.slice(200)) t.match(result, { reason: { statusCode: 503, code: 'OVERLOADED' } })
})

nightly('16.3 the thread adds nothing to the process', async (t) => {
  const describe = () => [Reflect.ownKeys(globalThis), Reflect.ownKeys(Reflect),
    process.eventNames().map((name) => [name, process.listenerCount(name as NodeJS.Signals)])]
  const { app, core } = await openCore(t, { deadlines: slow })
  const verifier = createVerifier(core)
  await app.ready()
  const before = describe()
  await register(verifier)
  t.strictSame(describe(), before)
  await app.close()
  t.strictSame(describe(), before)
})

nightly('16.3 the thread does not keep the process alive', async (t) => {
  const fixture = fileURLToPath(new URL('./fixtures/verify-once.ts', import.meta.url))
  const { stdout } = await promisify(execFile)(process.execPath, [fixture], { timeout: 60_000 })
  t.equal(stdout, 'verified\n')
})
