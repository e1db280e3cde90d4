import type { UsherConfig } from '../../schema/options/config.ts'
import { readProviders, type GivenProviders, type ProviderOptions } from '../../schema/options/providers.ts'

// What each setting of a provider is in the options.
const members = {
  ISSUER: 'issuer',
  CLIENT_ID: 'clientId',
  CLIENT_SECRET: 'clientSecret',
  SCOPES: 'scopes',
  NAME: 'name',
  TRUST_EMAIL: 'trustEmail',
  SIGN_UP: 'signUp',
  TEAM_ID: 'teamId',
  KEY_ID: 'keyId',
  ALLOW_PRIVATE: 'allowPrivateAddresses',
} as const satisfies Record<string, keyof ProviderOptions>

type Member = keyof typeof members

const PREFIX = 'PROVIDER_'
const NAME = new RegExp(`^${PREFIX}([A-Z][A-Z0-9_]*?)_(${Object.keys(members).join('|')})$`)
const FLAGS: readonly Member[] = ['TRUST_EMAIL', 'SIGN_UP', 'ALLOW_PRIVATE']

/** The settings of providers that are given, by their names, such as `PROVIDER_GITHUB_CLIENT_ID`. */
export type ProviderSettings = Readonly<Record<string, string>>

type Environment = Readonly<Record<string, string | undefined>>

/** Returns the settings of providers in an environment. */
export const findProviderSettings = (environment: Environment): ProviderSettings =>
  Object.fromEntries(
    Object.entries(environment).flatMap(([name, value]) => value && NAME.test(name) ? [[name, value]] : [])
  )

/** Returns a sentence for each variable that is probably a misspelled setting of a provider. */
export const warnOfProviderSettings = (environment: Environment): string[] =>
  Object.keys(environment).filter((name) => environment[name] && name.startsWith(PREFIX) && !NAME.test(name))
    .map((name) => `${name} is not a setting and has no effect: those of a provider end with ` +
      `${Object.keys(members).map((member) => `_${member}`).join(', ')}.`)

interface Providers {
  readonly PROVIDERS?: ProviderSettings | undefined
  readonly file?: { readonly options: UsherConfig } | undefined
}

/**
 * Returns the providers of the settings and of the configuration file as an option of the plugin, or undefined if there
 * are none. The id of a provider is its name in the settings in small letters, with hyphens. A setting replaces the
 * member of the file.
 */
export function providersOf ({ PROVIDERS, file }: Providers): GivenProviders | undefined {
  const ofFile = file?.options.providers
  if (!PROVIDERS) return ofFile
  const providers: Record<string, object> = { ...ofFile }
  for (const [name, text] of Object.entries(PROVIDERS)) {
    const [, provider, member] = NAME.exec(name) as unknown as [string, string, Member]
    const id = provider.toLowerCase().replaceAll('_', '-')
    providers[id] = { ...providers[id], [members[member]]: parse(member, text) }
  }
  // `readProviders` validates it.
  return providers as unknown as GivenProviders
}

function parse (member: Member, text: string): unknown {
  if (member === 'SCOPES') return text.split(/[\s,]+/).filter(Boolean)
  if (FLAGS.includes(member)) return text === 'true' ? true : text === 'false' ? false : text
  // One line has no room for the private key of Apple.
  return member === 'CLIENT_SECRET' ? text.replaceAll('\\n', '\n') : text
}

/** Returns a sentence for what is wrong with the settings of providers, without their values. */
export function checkProviders (
  settings: Providers & { PUBLIC_URL?: string | undefined, SECRET?: string | undefined, SIGN_UP?: boolean | undefined }
): string[] {
  const { PROVIDERS = {}, PUBLIC_URL: publicUrl, SECRET: secret, SIGN_UP: signUp = false, file } = settings
  const [first] = [...Object.keys(PROVIDERS), ...Object.keys(file?.options.providers ?? {})]
  if (first === undefined) return []
  if (publicUrl === undefined) return [`PUBLIC_URL is required with ${first}.`]
  try {
    readProviders(providersOf(settings), { publicUrl, secret, signUp })
    return []
  } catch (error) {
    const message = (error as Error).message
      .replace(/^usher: providers\.([a-z0-9-]+)\.(\w+)/, (place, id: string, option: string) => settingOf(id, option) ?? place)
      .replace(/^usher: providers\.([a-z0-9-]+)(?!\S)/, (_, id: string) => settingOf(id, 'clientId')!)
      .replace(/^usher: /, '')
      .replace('the option secret', 'SECRET')
    return [`${message}.`]
  }
}

// Returns the name of the setting, or undefined if only the file has the option.
function settingOf (id: string, option: string): string | undefined {
  const [member] = Object.entries(members).find(([, name]) => name === option) ?? []
  return member && `${PREFIX}${id.toUpperCase().replaceAll('-', '_')}_${member}`
}
