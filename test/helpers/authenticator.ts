import { createHash, generateKeyPairSync, randomBytes, randomUUID, sign, type KeyObject } from 'node:crypto'
import type {
  AuthenticationResponse, CreationOptions, RegistrationResponse, RequestOptions,
} from '../../schema/sign-in/passkeys.ts'

export type Algorithm = 'ES256' | 'EdDSA' | 'RS256'

/** How an authenticator, or a browser that lies, differs from an honest one that verifies its user. */
export interface Behaviour {
  origin?: string
  rpId?: string
  /** Of what the ceremony is; by default what it is. */
  type?: string
  challenge?: string
  crossOrigin?: boolean
  topOrigin?: string
  userPresent?: boolean
  userVerified?: boolean
  /** Whether the passkey is synced: both flags, by default. */
  backupEligible?: boolean
  backedUp?: boolean
  counter?: number
  userHandle?: string | null
  transports?: string[]
  /** Replaces the authenticator data before it is signed. */
  tamper? (authenticatorData: Buffer): Buffer
  attestation? (authenticatorData: Buffer): Buffer
}

/** A value of CBOR (RFC 8949), as far as authenticators need it. */
export type Cbor = number | string | Uint8Array | Cbor[] | Map<number | string, Cbor>

const flags = { userPresent: 0x01, userVerified: 0x04, backupEligible: 0x08, backedUp: 0x10, attested: 0x40 }

/** Encodes a value in CBOR. */
export function encodeCbor (value: Cbor): Buffer {
  if (typeof value === 'number') return value < 0 ? head(1, -1 - value) : head(0, value)
  if (typeof value === 'string') return Buffer.concat([head(3, Buffer.byteLength(value)), Buffer.from(value)])
  if (value instanceof Uint8Array) return Buffer.concat([head(2, value.length), value])
  if (Array.isArray(value)) return Buffer.concat([head(4, value.length), ...value.map(encodeCbor)])
  return Buffer.concat([
    head(5, value.size), ...[...value].flatMap(([key, member]) => [encodeCbor(key), encodeCbor(member)]),
  ])
}

function head (major: number, length: number): Buffer {
  const type = major << 5
  if (length < 24) return Buffer.from([type | length])
  if (length < 256) return Buffer.from([type | 24, length])
  if (length < 65536) return Buffer.from([type | 25, length >> 8, length & 255])
  const octets = Buffer.alloc(5, type | 26)
  octets.writeUInt32BE(length, 1)
  return octets
}

/** A passkey in the authenticator. */
export interface SoftwarePasskey {
  readonly id: Buffer
  readonly rpId: string
  readonly userHandle: string
  readonly privateKey: KeyObject
  readonly algorithm: Algorithm
  counter: number
}

const sha256 = (data: Uint8Array | string) => createHash('sha256').update(data).digest()
const base64url = (data: Uint8Array) => Buffer.from(data).toString('base64url')

const identifiers: Readonly<Record<Algorithm, number>> = { EdDSA: -8, ES256: -7, RS256: -257 }

/** Creates a key of an algorithm. Returns the private key, and the public key as a COSE_Key (RFC 9053 7). */
export function createKey (algorithm: Algorithm, bits = 2048): { privateKey: KeyObject, cose: Map<number, Cbor> } {
  const { privateKey, publicKey } = algorithm === 'ES256'
    ? generateKeyPairSync('ec', { namedCurve: 'P-256' })
    : algorithm === 'EdDSA' ? generateKeyPairSync('ed25519') : generateKeyPairSync('rsa', { modulusLength: bits })
  const jwk = publicKey.export({ format: 'jwk' })
  const octets = (text: string | undefined) => Buffer.from(text!, 'base64url')
  const cose: Record<Algorithm, () => [number, Cbor][]> = {
    ES256: () => [[1, 2], [3, -7], [-1, 1], [-2, octets(jwk.x)], [-3, octets(jwk.y)]],
    EdDSA: () => [[1, 1], [3, -8], [-1, 6], [-2, octets(jwk.x)]],
    RS256: () => [[1, 3], [3, -257], [-1, octets(jwk.n)], [-2, octets(jwk.e)]],
  }
  return { privateKey, cose: new Map(cose[algorithm]()) }
}

/**
 * An authenticator in software, with the browser that uses it. It verifies its user, and its passkeys are synced unless
 * told otherwise.
 */
export class Authenticator {
  readonly passkeys: SoftwarePasskey[] = []
  readonly origin: string
  readonly aaguid: Buffer

  constructor ({ origin, aaguid = '00000000-0000-0000-0000-000000000000' }: { origin: string, aaguid?: string }) {
    this.origin = origin
    this.aaguid = Buffer.from(aaguid.replaceAll('-', ''), 'hex')
  }

  /** Creates a passkey for options, as `navigator.credentials.create()` does. */
  create (
    options: CreationOptions, { algorithm = 'ES256', ...behaviour }: Behaviour & { algorithm?: Algorithm } = {}
  ): RegistrationResponse {
    const { privateKey, cose } = createKey(algorithm)
    const rpId = options.rp.id
    const passkey: SoftwarePasskey = {
      id: randomBytes(32), rpId, userHandle: options.user.id, privateKey, algorithm, counter: 0,
    }
    this.passkeys.push(passkey)
    return this.attest(passkey, options.challenge, encodeCbor(cose), behaviour)
  }

  /** Returns the response to a registration with any public key. */
  attest (
    passkey: SoftwarePasskey, challenge: string, publicKey: Uint8Array, behaviour: Behaviour = {}
  ): RegistrationResponse {
    const length = Buffer.alloc(2)
    length.writeUInt16BE(passkey.id.length)
    const authData = this.#authenticatorData(
      passkey, behaviour, Buffer.concat([this.aaguid, length, passkey.id, publicKey])
    )
    const attestationObject = behaviour.attestation?.(authData) ??
      encodeCbor(new Map<string, Cbor>([['fmt', 'none'], ['attStmt', new Map()], ['authData', authData]]))
    return {
      ...idsOf(passkey),
      response: {
        clientDataJSON: base64url(this.#clientData('webauthn.create', challenge, behaviour)),
        attestationObject: base64url(attestationObject),
        transports: behaviour.transports ?? ['internal', 'hybrid'],
      },
    }
  }

  /** Signs a challenge with a passkey, by default the last one of the domain, as `navigator.credentials.get()` does. */
  get (
    { challenge, rpId }: Pick<RequestOptions, 'challenge' | 'rpId'>, behaviour: Behaviour = {},
    passkey = this.#find(rpId)
  ): AuthenticationResponse {
    const authenticatorData = this.#authenticatorData(passkey, behaviour)
    const clientDataJSON = this.#clientData('webauthn.get', challenge, behaviour)
    const signed = Buffer.concat([authenticatorData, sha256(clientDataJSON)])
    return {
      ...idsOf(passkey),
      response: {
        clientDataJSON: base64url(clientDataJSON),
        authenticatorData: base64url(authenticatorData),
        signature: base64url(sign(passkey.algorithm === 'EdDSA' ? null : 'sha256', signed, passkey.privateKey)),
        userHandle: behaviour.userHandle === undefined ? passkey.userHandle : behaviour.userHandle,
      },
    }
  }

  #find (rpId: string): SoftwarePasskey {
    const passkey = this.passkeys.findLast((passkey) => passkey.rpId === rpId)
    if (!passkey) throw new Error(`no passkey for ${rpId}`)
    return passkey
  }

  #clientData (
    type: string, challenge: string, { origin = this.origin, crossOrigin = false, topOrigin, ...given }: Behaviour
  ): Buffer {
    return Buffer.from(JSON.stringify({
      type: given.type ?? type, challenge: given.challenge ?? challenge, origin, crossOrigin, topOrigin,
    }))
  }

  #authenticatorData (passkey: SoftwarePasskey, behaviour: Behaviour, attested?: Buffer): Buffer {
    const { userPresent = true, userVerified = true, backupEligible = true, tamper } = behaviour
    const set = {
      userPresent,
      userVerified,
      backupEligible,
      backedUp: behaviour.backedUp ?? backupEligible,
      attested: attested !== undefined,
    }
    const octets = Buffer.alloc(5)
    octets[0] = Object.entries(flags)
      .reduce((sum, [name, flag]) => set[name as keyof typeof flags] ? sum | flag : sum, 0)
    octets.writeUInt32BE(behaviour.counter ?? passkey.counter, 1)
    const data = Buffer.concat([sha256(behaviour.rpId ?? passkey.rpId), octets, ...attested ? [attested] : []])
    return tamper?.(data) ?? data
  }
}

const idsOf = ({ id }: SoftwarePasskey) =>
  ({ id: base64url(id), rawId: base64url(id), type: 'public-key', clientExtensionResults: {} })

/** Returns options of a registration, as a node would, for a user who does not exist. */
export function creationOptions (rpId: string, challenge = base64url(randomBytes(32))): CreationOptions {
  return {
    rp: { id: rpId, name: 'Test' },
    user: {
      id: base64url(Buffer.from(randomUUID().replaceAll('-', ''), 'hex')), name: 'ada@example.com', displayName: 'Ada',
    },
    challenge,
    pubKeyCredParams: Object.values(identifiers).map((alg) => ({ type: 'public-key', alg })),
    timeout: 300_000,
    excludeCredentials: [],
    authenticatorSelection: { residentKey: 'required', requireResidentKey: true, userVerification: 'required' },
    attestation: 'none',
  }
}
