// The ceremonies of WebAuthn. What browsers do themselves with JSON (`parseCreationOptionsFromJSON`, `toJSON`) is done
// here: older browsers lack it, and password managers replace the objects that have it.
import { Failure, texts } from './page.js'

/** Whether this browser has passkeys. Pages without https have none, apart from those of this machine. */
export const isSupported = globalThis.isSecureContext && typeof globalThis.PublicKeyCredential === 'function'

/** Returns whether the browser offers passkeys in the list of a field. */
export async function isConditional () {
  try {
    // eslint-disable-next-line no-restricted-properties -- Where it is missing, nothing is offered.
    return isSupported && Boolean(await PublicKeyCredential.isConditionalMediationAvailable?.())
  } catch {
    return false
  }
}

/** Creates a passkey. Returns it as JSON, or `undefined` if the user has abandoned that. Throws `Failure`. */
export async function createPasskey (options) {
  const publicKey = {
    ...options,
    challenge: toBytes(options.challenge),
    user: { ...options.user, id: toBytes(options.user.id) },
    excludeCredentials: options.excludeCredentials.map(toDescriptor),
  }
  return run(() => navigator.credentials.create({ publicKey }))
}

/** Asks for a passkey. Returns the response, or `undefined` if the user has abandoned that. Throws `Failure`. */
export async function usePasskey (options, { mediation, signal } = {}) {
  const publicKey = {
    ...options,
    challenge: toBytes(options.challenge),
    allowCredentials: options.allowCredentials.map(toDescriptor),
  }
  return run(() => navigator.credentials.get({ publicKey, ...mediation && { mediation }, ...signal && { signal } }))
}

async function run (ceremony) {
  try {
    const credential = await ceremony()
    return credential ? toJson(credential) : undefined
  } catch (error) {
    // The browser does not say whether the user has cancelled, has waited too long or has no passkey.
    if (['NotAllowedError', 'AbortError'].includes(error?.name)) return undefined
    throw new Failure(error?.name === 'InvalidStateError' ? texts.passkeyExists : texts.passkeyFailed)
  }
}

const MEMBERS = ['clientDataJSON', 'attestationObject', 'authenticatorData', 'signature', 'userHandle']

function toJson (credential) {
  const response = read(credential, 'response')
  const rawId = toText(read(credential, 'rawId')) || read(credential, 'id')
  const members = MEMBERS.map((name) => [name, toText(read(response, name))]).filter(([, text]) => text)
  const given = Object.fromEntries(members)
  // A credential that can be read in no other way has to write itself.
  if (!rawId || !given.clientDataJSON || !(given.attestationObject || given.signature)) return credential.toJSON()
  const transports = call(response, 'getTransports')
  return {
    id: rawId,
    rawId,
    type: 'public-key',
    clientExtensionResults: {},
    response: { ...given, ...Array.isArray(transports) && { transports } },
  }
}

// The members that a replaced credential has not got itself are inherited, and throw ("Illegal invocation").
function read (object, name) {
  try {
    return object[name]
  } catch {
    return undefined
  }
}

function call (object, name) {
  try {
    return object[name]()
  } catch {
    return undefined
  }
}

const toDescriptor = (descriptor) => ({ ...descriptor, id: toBytes(descriptor.id) })

const toBytes = (text) =>
  Uint8Array.from(atob(text.replaceAll('-', '+').replaceAll('_', '/')), (character) => character.charCodeAt(0))

function toText (value) {
  if (value === null || typeof value !== 'object') return value
  const bytes = ArrayBuffer.isView(value)
    ? new Uint8Array(value.buffer, value.byteOffset, value.byteLength)
    : new Uint8Array(value)
  return btoa(String.fromCharCode(...bytes)).replaceAll('+', '-').replaceAll('/', '_').replaceAll('=', '')
}
