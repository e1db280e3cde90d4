import type { components } from './api.ts'

// The ceremonies of WebAuthn. What browsers do themselves with JSON (`parseCreationOptionsFromJSON`, `toJSON`) is done
// here: older browsers lack it, and password managers replace the objects that have it.

type Schemas = components['schemas']

/** What `navigator.credentials` takes and returns, as far as it is used. */
interface Credentials {
  create (options: object): Promise<object | null>
  get (options: object): Promise<object | null>
}

interface CeremonyOptions {
  /** `conditional` offers passkeys in a field with `autocomplete="username webauthn"`. */
  mediation?: 'conditional' | 'optional' | 'required' | 'silent'
  signal?: AbortSignal
}

/**
 * Creates a passkey in a browser for the options of POST /api/auth/passkeys/options. Returns the `credential` for POST
 * /api/auth/passkeys. Throws the `DOMException` of the browser, such as `NotAllowedError` if the user has abandoned it.
 */
export async function createPasskey (options: Schemas['PasskeyCreationOptions']): Promise<Schemas['RegistrationResponse']> {
  const publicKey = {
    ...options,
    challenge: toBytes(options.challenge),
    user: { ...options.user, id: toBytes(options.user.id) },
    excludeCredentials: options.excludeCredentials.map(toDescriptor),
  }
  return toJson(await credentials().create({ publicKey })) as unknown as Schemas['RegistrationResponse']
}

/**
 * Asks the user of a browser for a passkey, with the options of `passkeyOptions` or POST /api/auth/step-up/options.
 * Returns the credential for `loginWithPasskey`, `completeLogin` or `stepUp`. Throws like `createPasskey`.
 */
export async function usePasskey (
  options: Schemas['PasskeyRequestOptions'], { mediation, signal }: CeremonyOptions = {}
): Promise<Schemas['AuthenticationResponse']> {
  const publicKey = {
    ...options,
    challenge: toBytes(options.challenge),
    allowCredentials: options.allowCredentials.map(toDescriptor),
  }
  const given = { publicKey, ...mediation && { mediation }, ...signal && { signal } }
  return toJson(await credentials().get(given)) as unknown as Schemas['AuthenticationResponse']
}

const credentials = () => (globalThis as unknown as { navigator: { credentials: Credentials } }).navigator.credentials

const MEMBERS = ['clientDataJSON', 'attestationObject', 'authenticatorData', 'signature', 'userHandle']

function toJson (credential: object | null): object {
  const response = read(credential, 'response')
  const rawId = toText(read(credential, 'rawId')) || read(credential, 'id')
  const given: Record<string, unknown> = {}
  for (const name of MEMBERS) {
    const text = toText(read(response, name))
    if (text) given[name] = text
  }
  if (!rawId || !given['clientDataJSON'] || !(given['attestationObject'] || given['signature'])) {
    // A credential that can be read in no other way has to write itself.
    return (credential as { toJSON (): object }).toJSON()
  }
  const transports = call(response, 'getTransports')
  if (Array.isArray(transports)) given['transports'] = transports
  return { id: rawId, rawId, type: 'public-key', clientExtensionResults: {}, response: given }
}

// The members that a replaced credential has not got itself are inherited, and throw ("Illegal invocation").
function read (object: unknown, name: string): unknown {
  try {
    return (object as Record<string, unknown>)[name]
  } catch {
    return undefined
  }
}

function call (object: unknown, name: string): unknown {
  try {
    return (object as Record<string, () => unknown>)[name]!()
  } catch {
    return undefined
  }
}

const toDescriptor = <Descriptor extends { id: string }>(descriptor: Descriptor) =>
  ({ ...descriptor, id: toBytes(descriptor.id) })

const toBytes = (text: string): Uint8Array =>
  Uint8Array.from(atob(text.replaceAll('-', '+').replaceAll('_', '/')), (character) => character.charCodeAt(0))

function toText (value: unknown): unknown {
  if (value === null || typeof value !== 'object') return value
  const bytes = ArrayBuffer.isView(value)
    ? new Uint8Array(value.buffer, value.byteOffset, value.byteLength)
    : new Uint8Array(value as ArrayBuffer)
  return btoa(String.fromCharCode(...bytes)).replaceAll('+', '-').replaceAll('/', '_').replaceAll('=', '')
}
