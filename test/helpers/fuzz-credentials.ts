import { InvalidResponse, type Verifier } from '../../plugins/sign-in/passkeys/verifier.ts'
import type { Expected, NewCredential } from '../../plugins/sign-in/passkeys/verify-credential.ts'
import { Authenticator, creationOptions } from './authenticator.ts'

const ORIGIN = 'https://app.example.org'
const RP_ID = 'example.org'
const ALGORITHMS = ['ES256', 'EdDSA', 'RS256'] as const
// Lengths, types and numbers at which parsers of CBOR fail.
const OCTETS = [
  0x00, 0x01, 0x17, 0x18, 0x19, 0x1a, 0x1b, 0x1f, 0x20, 0x40, 0x5f, 0x7f, 0x80, 0x9f, 0xa0, 0xbf, 0xc0, 0xf6, 0xf7,
  0xf9, 0xfb, 0xff,
]
const AT_ONCE = 50

/**
 * Sends mutations of responses to the verifier. Returns how many it has rejected, and how many registrations it has
 * accepted: without an attestation, nothing signs their flags, their counter, the model of the authenticator and the
 * public key. Throws if it accepts an assertion, or a registration under another id, and if it answers one in another
 * way.
 * @param options.seed the same seed yields the same mutations of the same responses
 */
export async function fuzzCredentials (verifier: Verifier, { inputs, seed }: { inputs: number, seed: number }) {
  const random = createRandom(seed)
  const challenge = Buffer.alloc(32, seed).toString('base64url')
  const expected: Expected = { challenge, origins: [ORIGIN], rpId: RP_ID, userVerification: true }
  const samples = await Promise.all(ALGORITHMS.map(async (algorithm) => {
    const authenticator = new Authenticator({ origin: ORIGIN })
    const created = authenticator.create(creationOptions(RP_ID, challenge), { algorithm })
    const { publicKey } = await verifier.verifyRegistration(expected, created)
    return { created, publicKey, signed: authenticator.get({ challenge, rpId: RP_ID }) }
  }))
  const counts = { rejected: 0, registered: 0 }

  async function tryOne (index: number): Promise<void> {
    const { created, signed, publicKey } = samples[index % samples.length]!
    const isRegistration = random(2) === 0
    const original = isRegistration ? created.response : signed.response
    const names = isRegistration
      ? ['attestationObject', 'attestationObject', 'clientDataJSON']
      : ['authenticatorData', 'signature', 'clientDataJSON']
    const name = names[random(3)]!
    const octets = Buffer.from(Reflect.get(original, name) as string, 'base64url')
    const mutated = mutate(octets, random)
    if (mutated.equals(octets)) return tryOne(index)
    const response = { ...original, [name]: mutated.toString('base64url') }
    const verifying = isRegistration
      ? verifier.verifyRegistration(expected, { ...created, response: { ...created.response, ...response } })
      : verifier.verifyAssertion(expected, { ...signed, response: { ...signed.response, ...response } }, publicKey)
    const outcome = await verifying.catch((error: unknown) => error)
    if (outcome instanceof InvalidResponse) counts.rejected++
    else if (isRegistration && idOf(outcome) === created.id) counts.registered++
    else throw new Error(`${name} ${mutated.toString('hex')}`, { cause: outcome })
  }

  for (let index = 0; index < inputs; index += AT_ONCE) {
    await Promise.all(Array.from({ length: Math.min(AT_ONCE, inputs - index) }, (_, place) => tryOne(index + place)))
  }
  return counts
}

function idOf (outcome: unknown): string | undefined {
  const { credentialId } = outcome as Partial<NewCredential>
  return credentialId && Buffer.from(credentialId).toString('base64url')
}

function mutate (octets: Buffer, random: (below: number) => number): Buffer {
  const result = Buffer.from(octets)
  const at = random(result.length)
  switch (random(7)) {
    case 0: result[at]! ^= 1 << random(8); return result
    case 1: result[at] = OCTETS[random(OCTETS.length)]!; return result
    case 2: return result.subarray(0, at)
    case 3: return Buffer.concat([
      result.subarray(0, at),
      Buffer.from(Array.from({ length: 1 + random(9) }, () => random(256))),
      result.subarray(at),
    ])
    case 4: return Buffer.concat([result.subarray(0, at), result.subarray(at + 1 + random(8))])
    case 5: return Buffer.concat([
      result, Buffer.from(Array.from({ length: 1 + random(40) }, () => OCTETS[random(OCTETS.length)]!)),
    ])
    default: return Buffer.from(
      Array.from({ length: random(300) }, () => random(3) === 0 ? OCTETS[random(OCTETS.length)]! : random(256))
    )
  }
}

/** Returns a generator of integers below a limit (mulberry32). */
function createRandom (seed: number): (below: number) => number {
  let state = seed
  return (below) => {
    state = (state + 0x6d2b79f5) | 0
    let mixed = Math.imul(state ^ state >>> 15, state | 1)
    mixed ^= mixed + Math.imul(mixed ^ mixed >>> 7, mixed | 61)
    return Math.floor(((mixed ^ mixed >>> 14) >>> 0) / 2 ** 32 * below)
  }
}
