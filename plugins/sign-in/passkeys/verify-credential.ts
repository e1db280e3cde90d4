import { createPublicKey } from 'node:crypto'
import { verifyAuthenticationResponse, verifyRegistrationResponse } from '@simplewebauthn/server'
import {
  cose, decodeAttestationObject, decodeClientDataJSON, decodeCredentialPublicKey, isoBase64URL,
} from '@simplewebauthn/server/helpers'
import { algorithms, type AuthenticationResponse, type RegistrationResponse } from '../../../schema/sign-in/passkeys.ts'

// Only the worker imports this module, because the library adds members to globals of whoever imports it.

/** What a response must be for. */
export interface Expected {
  challenge: string
  origins: string[]
  rpId: string
  /** Whether the authenticator must have verified the user, by a PIN or a fingerprint for example. */
  userVerification: boolean
}

/** What an authenticator has said about a passkey. */
export interface AuthenticatorState {
  counter: number
  /** Whether it may be copied to other devices: then its counter says nothing. */
  isSynced: boolean
  backedUp: boolean
}

/** A passkey whose registration was verified. */
export interface NewCredential extends AuthenticatorState {
  credentialId: Uint8Array
  /** A COSE_Key. */
  publicKey: Uint8Array
  /** The model of the authenticator; zeros if it does not say. */
  aaguid: string
}

/** Verifies a registration (WebAuthn Level 3, 7.1). Throws an `Error` with the reason if it is not valid. */
export async function verifyRegistration (
  expected: Expected, credential: RegistrationResponse
): Promise<NewCredential> {
  const { clientDataJSON, attestationObject } = credential.response
  rejectFrames(clientDataJSON)
  rejectAttestation(attestationObject)
  const { verified, registrationInfo } = await verifyRegistrationResponse({
    response: {
      ...parts(credential),
      response: { clientDataJSON, attestationObject },
    },
    ...expectations(expected),
    supportedAlgorithmIDs: [...algorithms],
  })
  if (!verified) throw new Error('the attestation is not valid')
  const { credential: { id, publicKey, counter }, aaguid, credentialDeviceType, credentialBackedUp } = registrationInfo
  if (id !== credential.id) throw new Error('the id is not that of the attested credential')
  rejectUnusableKey(publicKey)
  return {
    credentialId: isoBase64URL.toBuffer(id),
    publicKey,
    aaguid,
    counter,
    isSynced: credentialDeviceType === 'multiDevice',
    backedUp: credentialBackedUp,
  }
}

/**
 * Verifies an assertion with the public key of its passkey (WebAuthn Level 3, 7.2). Throws an `Error` with the reason
 * if it is not valid.
 */
export async function verifyAssertion (
  expected: Expected, credential: AuthenticationResponse, publicKey: Uint8Array
): Promise<AuthenticatorState> {
  const { clientDataJSON, authenticatorData, signature } = credential.response
  rejectFrames(clientDataJSON)
  const key = decodeCredentialPublicKey(new Uint8Array(publicKey))
  if (key.get(cose.COSEKEYS.alg) === cose.COSEALG.ES256 && !isDer(isoBase64URL.toBuffer(signature))) {
    throw new Error('the signature is not in DER')
  }
  const { verified, authenticationInfo } = await verifyAuthenticationResponse({
    response: {
      ...parts(credential),
      response: { clientDataJSON, authenticatorData, signature },
    },
    ...expectations(expected),
    // The library rejects a counter that is not higher than this one. It is compared when the passkey is used.
    credential: { id: credential.id, publicKey: new Uint8Array(publicKey), counter: 0 },
  })
  if (!verified) throw new Error('the signature is not valid')
  const { newCounter: counter, credentialDeviceType, credentialBackedUp } = authenticationInfo
  return { counter, isSynced: credentialDeviceType === 'multiDevice', backedUp: credentialBackedUp }
}

// Older browsers do not say what follows from the rest.
const parts = ({ id, rawId, type }: RegistrationResponse | AuthenticationResponse) =>
  ({ id, rawId: rawId || id, type: (type || 'public-key') as 'public-key', clientExtensionResults: {} })

const expectations = ({ challenge, origins, rpId, userVerification }: Expected) => ({
  expectedChallenge: challenge,
  expectedOrigin: origins,
  expectedRPID: rpId,
  requireUserVerification: userVerification,
})

// A page of another site, in which an allowed one is a frame, could trick the user into a ceremony.
function rejectFrames (clientDataJSON: string): void {
  const { crossOrigin, topOrigin } = decodeClientDataJSON(clientDataJSON)
  if (crossOrigin || topOrigin !== undefined) throw new Error('the page is in a frame of another origin')
}

// Browsers remove attestations that were not asked for, except for those that the key itself has signed (WebAuthn Level
// 3, 5.1.3, step 25). The library would verify the certificates of any other one, and load what they revoke from the
// addresses that they name.
function rejectAttestation (attestationObject: string): void {
  const decoded = decodeAttestationObject(isoBase64URL.toBuffer(attestationObject))
  const format: unknown = decoded.get('fmt')
  if (format === 'none') return
  if (format !== 'packed' || decoded.get('attStmt').get('x5c') !== undefined) {
    throw new Error('the attestation must be none')
  }
}

// Returns whether a signature of ECDSA is in DER, as it must be (WebAuthn Level 3, 6.5.5): two positive integers and
// nothing else. The library accepts more, so that a signature could be changed and remain valid.
function isDer (octets: Uint8Array): boolean {
  const integerAt = (index: number): number => {
    const [tag, length = 0, first = 0, second = 0] = octets.subarray(index)
    const isMinimal = length > 0 && first < 0x80 && (first > 0 || second >= 0x80)
    return tag === 0x02 && isMinimal ? index + 2 + length : Infinity
  }
  return octets[0] === 0x30 && octets[1] === octets.length - 2 && integerAt(integerAt(2)) === octets.length
}

const MIN_RSA_BITS = 2048
// A signature is checked in less than a millisecond then, also with the exponent.
const MAX_RSA_BITS = 4096
const RSA_EXPONENTS = new Set([3n, 65537n])

// Without an attestation nobody has used the key yet, so the user could never sign in with one that is not valid.
function rejectUnusableKey (publicKey: Uint8Array<ArrayBuffer>): void {
  const key = decodeCredentialPublicKey(publicKey)
  const { COSEKEYS, COSECRV, COSEALG } = cose
  const isOf = (algorithm: number, curve?: number) =>
    key.get(COSEKEYS.alg) === algorithm && (curve === undefined || key.get(COSEKEYS.crv as never) === curve)
  if (cose.isCOSEPublicKeyEC2(key) && isOf(COSEALG.ES256, COSECRV.P256)) {
    const [x, y] = [text(key.get(COSEKEYS.x)), text(key.get(COSEKEYS.y))]
    createPublicKey({ key: { kty: 'EC', crv: 'P-256', x, y }, format: 'jwk' })
  } else if (cose.isCOSEPublicKeyOKP(key) && isOf(COSEALG.EdDSA, COSECRV.ED25519)) {
    createPublicKey({ key: { kty: 'OKP', crv: 'Ed25519', x: text(key.get(COSEKEYS.x)) }, format: 'jwk' })
  } else if (cose.isCOSEPublicKeyRSA(key) && isOf(COSEALG.RS256)) {
    const [n, e] = [text(key.get(COSEKEYS.n)), text(key.get(COSEKEYS.e))]
    const { asymmetricKeyDetails: { modulusLength = 0, publicExponent = 0n } = {} } =
      createPublicKey({ key: { kty: 'RSA', n, e }, format: 'jwk' })
    if (modulusLength < MIN_RSA_BITS || modulusLength > MAX_RSA_BITS || !RSA_EXPONENTS.has(publicExponent)) {
      throw new Error('the RSA key is not usable')
    }
  } else {
    throw new Error('the public key is not one of its algorithm')
  }
}

const text = (octets: Uint8Array = new Uint8Array()): string => Buffer.from(octets).toString('base64url')
