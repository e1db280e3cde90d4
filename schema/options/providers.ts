import { createPrivateKey } from 'node:crypto'
import { isBlank } from '../strings/text.ts'

const MAX_PROVIDERS = 50
const MAX_SCOPES = 50

/** The providers of which Usher knows what is special about them. */
export const presetNames = ['github', 'google', 'microsoft', 'apple'] as const
export type PresetName = typeof presetNames[number]

/** A provider with which users sign in: any issuer of OpenID Connect, or one of the presets (contract 16.5). */
export interface ProviderOptions {
  /** What is known about the provider. By default it is the preset of the provider's id, if there is one. */
  preset?: PresetName | undefined
  /** The issuer, such as `https://id.example.com`. Presets know theirs. */
  issuer?: string | undefined
  clientId: string
  /** Absent for a public client. For Apple with `teamId` and `keyId`, it is the private key in PEM. */
  clientSecret?: string | undefined
  /** By default `openid email profile`, or what the preset needs. */
  scopes?: readonly string[] | undefined
  /** Its name on the pages. */
  name?: string | undefined
  /**
   * Whether the provider is trusted with addresses: a user who has verified an address gets the identity to which the
   * provider gives the same one as verified. The default of a preset is what its provider promises; of any other it is
   * false.
   */
  trustEmail?: boolean | undefined
  /** Whether somebody without an account gets one. By default the option `signUp`. */
  signUp?: boolean | undefined
  /** Whether a session counts as authenticated with several factors if the provider says so (`amr` with `mfa`). */
  trustSecondFactor?: boolean | undefined
  /** Whether the tokens of the provider are stored, encrypted with `secret`, for the host to use. */
  keepTokens?: boolean | undefined
  /** Allows `http:` and addresses that are not public, such as those of an internal network. */
  allowPrivateAddresses?: boolean | undefined
  /** For Apple: the team and the key with which Usher signs the client secret. */
  teamId?: string | undefined
  keyId?: string | undefined
}

export type GivenProviders = Readonly<Record<string, ProviderOptions>>

/** A validated provider. */
export interface ProviderOption {
  readonly id: string
  readonly preset: PresetName | undefined
  readonly issuer: URL | undefined
  readonly clientId: string
  readonly clientSecret: string | undefined
  readonly scopes: readonly string[] | undefined
  readonly name: string | undefined
  readonly trustEmail: boolean | undefined
  readonly signUp: boolean
  readonly trustSecondFactor: boolean
  readonly keepTokens: boolean
  readonly allowPrivateAddresses: boolean
  readonly teamId: string | undefined
  readonly keyId: string | undefined
}

const flags = ['trustEmail', 'signUp', 'trustSecondFactor', 'keepTokens', 'allowPrivateAddresses'] as const
const texts = ['clientId', 'clientSecret', 'teamId', 'keyId'] as const
const members: readonly string[] = [...flags, ...texts, 'preset', 'issuer', 'scopes', 'name']

/** What else the providers depend on. */
interface Others { publicUrl?: string | undefined, secret?: string | undefined, signUp: boolean }

/**
 * Returns the validated providers, in their order. Throws an `Error` that says what is wrong, without secrets.
 */
export function readProviders (given: unknown, others: Others): readonly ProviderOption[] {
  if (given === undefined) return []
  if (typeof given !== 'object' || given === null || Array.isArray(given)) {
    throw new Error('usher: providers must be an object with a provider for each id, such as { github: { … } }')
  }
  const entries = Object.entries(given).filter(([, provider]) => provider !== undefined)
  if (entries.length > MAX_PROVIDERS) throw new Error(`usher: providers may be at most ${MAX_PROVIDERS}`)
  if (entries.length > 0 && others.publicUrl === undefined) {
    throw new Error('usher: providers need publicUrl, because they send the browser back to it')
  }
  const providers = entries.map(([id, provider]) => readProvider(id, provider, others))
  const issuers = providers.map(({ issuer, preset }) => issuer?.href ?? preset)
  if (new Set(issuers).size < issuers.length) throw new Error('usher: two providers have the same issuer')
  return Object.freeze(providers)
}

function readProvider (id: string, given: unknown, others: Others): ProviderOption {
  const fail = (message: string): never => { throw new Error(`usher: providers.${id.slice(0, 100)}${message}`) }
  if (!/^[a-z][a-z0-9]*(-[a-z0-9]+)*$/.test(id) || id.length > 32) {
    fail(' is not an id of a provider: it must begin with a small letter and have up to 32 letters, digits and hyphens')
  }
  if (typeof given !== 'object' || given === null) fail(' must be an object with clientId')
  const provider = given as Record<keyof ProviderOptions, unknown>
  const unknown = Object.keys(provider).find((member) => !members.includes(member))
  if (unknown !== undefined) fail(` has an unknown member ${unknown.slice(0, 100)}`)
  const { preset = isPreset(id) ? id : undefined, scopes, name } = provider
  if (preset !== undefined && !isPreset(preset)) fail(`.preset must be one of ${presetNames.join(', ')}`)
  for (const member of flags) {
    if (provider[member] !== undefined && typeof provider[member] !== 'boolean') fail(`.${member} must be true or false`)
  }
  const textOf = (member: typeof texts[number]): string | undefined => {
    const text = provider[member]
    const isText = typeof text === 'string' && text !== '' && text.length <= 8192 && !/\0/.test(text)
    if (text !== undefined && !isText) fail(`.${member} must be a text of up to 8192 characters`)
    return text as string | undefined
  }
  const clientId = textOf('clientId') ?? fail('.clientId is required')
  const [clientSecret, teamId, keyId] = [textOf('clientSecret'), textOf('teamId'), textOf('keyId')]
  if ((teamId === undefined) !== (keyId === undefined)) fail('.teamId and .keyId are required together')
  if (teamId !== undefined && !isKey(clientSecret)) fail('.clientSecret must be the private key in PEM (.p8) with teamId')
  if (preset === 'github' && clientSecret === undefined) fail('.clientSecret is required')
  const isScopes = Array.isArray(scopes) && scopes.length <= MAX_SCOPES &&
    scopes.every((scope) => typeof scope === 'string' && /^[\x21\x23-\x5b\x5d-\x7e]{1,200}$/.test(scope))
  if (scopes !== undefined && !isScopes) fail('.scopes must be a list of scopes such as openid')
  if (isScopes && preset !== 'github' && !scopes.includes('openid')) fail('.scopes must have openid')
  const isName = typeof name === 'string' && name.length <= 100 && !isBlank(name) && !/[\p{Cc}\p{Cs}]/u.test(name)
  if (name !== undefined && !isName) fail('.name must be a name of up to 100 characters')
  const flag = (member: typeof flags[number]) => provider[member] as boolean | undefined
  const keepTokens = flag('keepTokens') ?? false
  if (keepTokens && others.secret === undefined) fail('.keepTokens needs the option secret, which encrypts the tokens')
  const issuer = readIssuer(provider.issuer, flag('allowPrivateAddresses') ?? false, fail)
  if (issuer === undefined && preset === undefined) fail('.issuer is required')
  if (preset === 'microsoft' && flag('trustEmail') === true && isShared(issuer)) {
    fail('.trustEmail needs the issuer of a tenant: in others, anybody can have any address')
  }
  return Object.freeze({
    id,
    preset: preset as PresetName | undefined,
    issuer,
    clientId,
    clientSecret,
    scopes: scopes as readonly string[] | undefined,
    name: name as string | undefined,
    trustEmail: flag('trustEmail'),
    signUp: flag('signUp') ?? others.signUp,
    trustSecondFactor: flag('trustSecondFactor') ?? false,
    keepTokens,
    allowPrivateAddresses: flag('allowPrivateAddresses') ?? false,
    teamId,
    keyId,
  })
}

const isPreset = (name: unknown): name is PresetName => presetNames.includes(name as PresetName)

// Every tenant of Microsoft can sign in at these.
const isShared = (issuer: URL | undefined): boolean =>
  issuer === undefined || /^\/(common|organizations|consumers)\//.test(issuer.pathname)

function isKey (text: string | undefined): boolean {
  try {
    return createPrivateKey(text ?? '').asymmetricKeyType === 'ec'
  } catch {
    return false
  }
}

function readIssuer (given: unknown, allowPrivate: boolean, fail: (message: string) => never): URL | undefined {
  if (given === undefined) return undefined
  const url = typeof given === 'string' && given.length <= 500 && URL.canParse(given) ? new URL(given) : undefined
  const isAllowed = url?.protocol === 'https:' || (allowPrivate && url?.protocol === 'http:')
  if (!url || !isAllowed) {
    return fail('.issuer must be an https: URL (http: is only possible with allowPrivateAddresses)')
  }
  if (url.username !== '' || url.password !== '' || url.hash !== '' || url.search !== '') {
    fail('.issuer must have neither credentials nor a query nor a fragment')
  }
  return url
}
