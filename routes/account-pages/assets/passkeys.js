// The ceremonies of WebAuthn. Older browsers do not convert JSON themselves.
import { Failure, texts } from './page.js'

/** Whether this browser has passkeys. Pages without https have none, apart from those of this machine. */
export const isSupported = globalThis.isSecureContext && typeof globalThis.PublicKeyCredential === 'function'

/** Returns whether the browser offers passkeys in the list of a field. */
export async function isConditional () {
  return isSupported && Boolean(await PublicKeyCredential.isConditionalMediationAvailable?.())
}

/** Creates a passkey. Returns it as JSON, or `undefined` if the user has abandoned that. Throws `Failure`. */
export async function createPasskey (options) {
  const publicKey = PublicKeyCredential.parseCreationOptionsFromJSON?.(options) ?? {
    ...options,
    challenge: toBytes(options.challenge),
    user: { ...options.user, id: toBytes(options.user.id) },
    excludeCredentials: options.excludeCredentials.map(toDescriptor),
  }
  return run(() => navigator.credentials.create({ publicKey }))
}

/** Asks for a passkey. Returns the response, or `undefined` if the user has abandoned that. Throws `Failure`. */
export async function usePasskey (options, { mediation, signal } = {}) {
  const publicKey = PublicKeyCredential.parseRequestOptionsFromJSON?.(options) ?? {
    ...options,
    challenge: toBytes(options.challenge),
    allowCredentials: options.allowCredentials.map(toDescriptor),
  }
  return run(() => navigator.credentials.get({ publicKey, ...mediation && { mediation }, ...signal && { signal } }))
}

async function run (ceremony) {
  try {
    return toJson(await ceremony())
  } catch (error) {
    // The browser does not say whether the user has cancelled, has waited too long or has no passkey.
    if (['NotAllowedError', 'AbortError'].includes(error.name)) return undefined
    throw new Failure(error.name === 'InvalidStateError' ? texts.passkeyExists : texts.passkeyFailed)
  }
}

function toJson (credential) {
  if (typeof credential.toJSON === 'function') return credential.toJSON()
  const { id, rawId, type, authenticatorAttachment, response } = credential
  const members = ['clientDataJSON', 'attestationObject', 'authenticatorData', 'signature', 'userHandle']
  const bytes = members.filter((name) => response[name]).map((name) => [name, toText(response[name])])
  const transports = response.getTransports?.()
  return {
    id,
    rawId: toText(rawId),
    type,
    ...authenticatorAttachment && { authenticatorAttachment },
    clientExtensionResults: {},
    response: { ...Object.fromEntries(bytes), ...transports && { transports } },
  }
}

const toDescriptor = (descriptor) => ({ ...descriptor, id: toBytes(descriptor.id) })

const toBytes = (text) =>
  Uint8Array.from(atob(text.replaceAll('-', '+').replaceAll('_', '/')), (character) => character.charCodeAt(0))

const toText = (buffer) =>
  btoa(String.fromCharCode(...new Uint8Array(buffer))).replaceAll('+', '-').replaceAll('/', '_').replaceAll('=', '')
