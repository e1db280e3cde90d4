import { Type, type Static } from '@sinclair/typebox'
import { Ajv } from 'ajv'
import { explainDatabaseUrl } from '../../schema/options/database-url.ts'
import { storeNames } from '../../schema/options/stores.ts'
import { actionsOf } from '../../schema/options/policy.ts'
import { readOrganizations } from '../../schema/options/organizations.ts'
import { readRoles } from '../../schema/options/roles.ts'
import { MINIMUM_KIB, RECOMMENDED } from '../../schema/options/password-hash.ts'
import type { ConfigFile } from '../config/config-file.ts'
import { settingsOf, withoutDecided } from './config-values.ts'
import { addSettingFormats } from './formats.ts'
import { printsMails } from './printing.ts'
import { checkProviders, findProviderSettings, type ProviderSettings } from './providers.ts'
import { webhooksOf } from '../webhooks.ts'
import { connectionsOfNode } from '../workers/count.ts'
import { Settings } from './schema.ts'
import { requiredSettingsOf, settingsOfStore } from './stores.ts'

// The cost of a password hash is its memory times its passes. The greatest one takes about a second.
const MAX_COST_KIB = 1024 * 1024

// More would cost an embedded PostgreSQL its memory.
const MAX_EMBEDDED_CONNECTIONS = 1000

type Name = keyof typeof Settings.properties
type Mutable<Type> = { -readonly [Name in keyof Type]: Type[Name] }

/** The validated settings of the node (contract 8), with their defaults. */
export type Settings = Readonly<Static<typeof Settings>> & {
  /** Those of providers, by their names. Absent if there are none. */
  readonly PROVIDERS?: ProviderSettings
  /** The configuration file, if there is one. Where it has the value of a setting, the setting has it, too. */
  readonly file?: ConfigFile
  /** The names of those that the environment has. */
  readonly given?: readonly string[]
  readonly place?: Place
}

/** Where the settings apply. */
export interface Place {
  /** The working directory, from which relative paths start. */
  readonly cwd: string
  /** Whether standard error is a terminal. */
  readonly isOnTerminal: boolean
}

// A setting that is given needs another one.
const required: Readonly<Partial<Record<Name, Name>>> = {
  ADMIN_EMAIL: 'ADMIN_PASSWORD',
  ADMIN_PASSWORD: 'ADMIN_EMAIL',
  SMTP_URL: 'MAIL_FROM',
  NOTIFICATIONS_URL: 'DATABASE_URL',
  REPLICA_URLS: 'DATABASE_URL',
  WEBHOOK_URL: 'WEBHOOK_SECRET',
  WEBHOOK_SECRET: 'WEBHOOK_URL',
  WEBHOOK_EVENTS: 'WEBHOOK_URL',
  WEBHOOK_ALLOW_PRIVATE: 'WEBHOOK_URL',
}

// The first has no effect beyond the second.
const bounds: readonly (readonly [Name, Name])[] = [
  ['SESSION_IDLE_SECONDS', 'SESSION_SECONDS'],
  ['ACCESS_TOKEN_SECONDS', 'SESSION_SECONDS'],
  ['ACCESS_TOKEN_SECONDS', 'SESSION_IDLE_SECONDS'],
  ['LIVE_CONNECTIONS_PER_NETWORK', 'LIVE_CONNECTIONS'],
  ['LIVE_SUBSCRIPTIONS_PER_NETWORK', 'LIVE_SUBSCRIPTIONS'],
]

// The first has no effect unless the second is true.
const switches: readonly (readonly [Name, Name])[] = [
  ['THROTTLE_SIGN_UP_BURST', 'SIGN_UP'],
  ['THROTTLE_SIGN_UP_PER_MINUTE', 'SIGN_UP'],
  ['THROTTLE_LOGIN_MAIL_BURST', 'LOGIN_MAIL'],
  ['THROTTLE_LOGIN_MAIL_PER_MINUTE', 'LOGIN_MAIL'],
]

const ajv = new Ajv({ coerceTypes: true, keywords: ['option'] })
addSettingFormats(ajv)

/** The names of all settings. */
export const settingNames: readonly string[] = Object.keys(Settings.properties)

// Each setting has a validator of its own, because compiling those of settings that are not given would take a tenth of
// the start.
const properties = Object.entries(Settings.properties)
const schemas = Object.fromEntries(properties.map(([name, schema]) => [name, Type.Object({ [name]: schema })]))
const defaults = Object.fromEntries(
  properties.filter(([, schema]) => 'default' in schema).map(([name, schema]) => [name, schema.default])
)

/**
 * Reads the settings from an environment. An empty variable counts as absent, and unknown variables are ignored. Throws
 * an `Error` whose message has a sentence for each invalid setting, one per line, that names it. It contains no values
 * except numbers, because they may be secrets.
 * @param file has values for settings that the environment does not give
 * @param place by default the working directory of the process, which has no terminal
 */
export function parseSettings (
  environment: Readonly<Record<string, string | undefined>>, file?: ConfigFile, place?: Place
): Settings {
  const { settings, errors } = checkSettings(environment, file, place)
  if (errors.length > 0) throw new Error(errors.join('\n'))
  return settings
}

/** Settings that were checked. */
export interface CheckedSettings {
  /** Those that are invalid have the values of the configuration file or their defaults, or are absent. */
  readonly settings: Settings
  /** A sentence for each problem. It begins with the name of a setting. */
  readonly errors: string[]
  /** What the environment has for invalid settings, by their names. */
  readonly rejected: Readonly<Partial<Record<Name, unknown>>>
}

/** Reads the settings from an environment like `parseSettings`, but returns what is wrong with them. */
export function checkSettings (
  environment: Readonly<Record<string, string | undefined>>, file?: ConfigFile, place?: Place
): CheckedSettings {
  const given = settingNames.filter((name) => environment[name]) as Name[]
  const parsed = Object.fromEntries(given.map((name) => [name, parse(name, environment[name]!)]))
  const providers = findProviderSettings(environment)
  const ofFile = file ? settingsOf(file.options) : {}
  const settings = {
    ...structuredClone(defaults),
    ...ofFile,
    ...file && { CONFIG: file.name },
    ...parsed,
    ...Object.keys(providers).length > 0 && { PROVIDERS: providers },
    ...file && { file: { ...file, options: withoutDecided(file.options, given) } },
    ...place && { place },
    given,
  } as unknown as Mutable<Settings>
  const isSet = (name: Name) => given.includes(name) || name in ofFile
  const errors = given.filter((name) => required[name] && !isSet(required[name]))
    .map((name) => `${required[name]} is required with ${name}.`)
  const rejected: Partial<Record<Name, unknown>> = {}
  for (const name of given) {
    // This also turns the text into a number or a boolean.
    if (ajv.validate(schemas[name]!, settings)) continue
    errors.push(describe(name, environment[name]!))
    rejected[name] = parsed[name]
  }
  if (!given.includes('EMAILS_VISIBLE_TO')) settings.EMAILS_VISIBLE_TO = settings.SIGN_UP ? 'owners' : 'anyone'
  const { SMTP_URL, PUBLIC_URL, PASSWORD_URL } = settings
  const [sendsMails, printed] = [SMTP_URL !== undefined || file?.options.mailer !== undefined, printsMails(settings)]
  // The others would have no effect.
  const { CORS_ORIGIN: origins, TRUST_PROXY: proxies } = settings
  if (origins.length > 1 && origins.includes('*')) errors.push(describe('CORS_ORIGIN', ''))
  if (proxies.length > 1 && proxies.some((item) => item === 'true' || item === 'false')) {
    errors.push(describe('TRUST_PROXY', ''))
  }
  for (const name of ['SIGN_UP', 'LOGIN_MAIL'] as const) {
    // Somebody who tries it out on a terminal reads the mails there.
    if (settings[name] !== true || (printed && !sendsMails)) continue
    if (!sendsMails) errors.push(`SMTP_URL is required with ${name}.`)
    if (!PUBLIC_URL) errors.push(`PUBLIC_URL is required with ${name}.`)
  }
  // Links in mails need a public address. The address at which the node listens is usually not reachable for their
  // readers.
  if (SMTP_URL && !PUBLIC_URL && !PASSWORD_URL) errors.push('PUBLIC_URL or PASSWORD_URL is required with SMTP_URL.')
  errors.push(...checkStores(settings, [...given, ...Object.keys(ofFile)]))
  const { ACCESS_LOG, LOG_LEVEL } = settings
  if (ACCESS_LOG > 0 && ['fatal', 'error', 'warn', 'silent'].includes(LOG_LEVEL)) {
    errors.push('ACCESS_LOG needs LOG_LEVEL info, debug or trace.')
  }
  if (settings.PORT === settings.METRICS_PORT && settings.PORT !== 0) errors.push('PORT and METRICS_PORT must differ.')
  if (!errors.some((error) => error.startsWith('WEBHOOK_'))) errors.push(...checkWebhooks(settings))
  errors.push(...checkProviders(settings))
  if (given.includes('ROLES') && rejected.ROLES === undefined) errors.push(...checkRoles(settings))
  if (given.includes('ORGANIZATIONS') && rejected.ORGANIZATIONS === undefined) errors.push(...checkOrganizations(settings))
  const isValid = (name: Name) => !errors.some((error) => error.startsWith(`${name} `))
  errors.push(...checkEffects(settings, (name) => given.includes(name) && isValid(name)))
  // Checks that follow, such as those of a start, can rely on the types.
  for (const name of Object.keys(rejected)) Object.assign(settings, { [name]: ofFile[name] ?? defaults[name] })
  return { settings: Object.freeze(settings), errors: [...new Set(errors)], rejected }
}

/** Yields a sentence for each setting that can have no effect or that others forbid. */
function * checkEffects (settings: Settings, isGiven: (name: Name) => boolean): Generator<string> {
  const { DATABASE_URL, POOL_SIZE, PASSWORD_HASH_MEMORY_KIB: memory, PASSWORD_HASH_PASSES: passes } = settings
  for (const [name, other] of switches) {
    if (settings[other] === true || !isGiven(name)) continue
    yield `${name} has no effect without ${other}: set ${other} to true, or remove ${name}.`
  }
  for (const [name, other] of bounds) {
    const [value, bound] = [settings[name], settings[other]]
    if (isGiven(name) && typeof bound === 'number' && typeof value === 'number' && value > bound) {
      yield `${name} ${value} has no effect beyond ${other}, which is ${bound}: set at most that.`
    }
  }
  const cost = memory * passes
  const isCostGiven = isGiven('PASSWORD_HASH_MEMORY_KIB') || isGiven('PASSWORD_HASH_PASSES')
  if (isCostGiven && (cost < MINIMUM_KIB || cost > MAX_COST_KIB)) {
    yield `PASSWORD_HASH_MEMORY_KIB times PASSWORD_HASH_PASSES must be from ${MINIMUM_KIB} to ${MAX_COST_KIB}, ` +
      `such as ${RECOMMENDED.memoryKiB} times ${RECOMMENDED.passes}, not ${memory} times ${passes}.`
  }
  if (isGiven('POOL_SIZE') && !DATABASE_URL) {
    const connections = connectionsOfNode(settings, POOL_SIZE)
    if (connections > MAX_EMBEDDED_CONNECTIONS) {
      yield `POOL_SIZE ${POOL_SIZE} takes up to ${connections} connections, and the embedded PostgreSQL has ` +
        `${MAX_EMBEDDED_CONNECTIONS} at most: set a smaller POOL_SIZE or fewer WORKERS.`
    }
  }
}

function * checkStores ({ UPLOADS_TO }: Settings, given: readonly string[]): Generator<string> {
  for (const store of storeNames) {
    const names: readonly string[] = settingsOfStore(store)
    const first = given.find((name) => names.includes(name)) ?? (UPLOADS_TO === store ? `UPLOADS_TO ${store}` : undefined)
    if (first === undefined) continue
    for (const name of requiredSettingsOf(store)) if (!given.includes(name)) yield `${name} is required with ${first}.`
  }
}

function checkRoles ({ ROLES, file }: Settings): string[] {
  try {
    readRoles(ROLES, actionsOf(file?.options.policy))
    return []
  } catch (error) {
    return [`${(error as Error).message.replace(/^usher: roles/, 'ROLES')}.`]
  }
}

function checkOrganizations ({ ORGANIZATIONS, file }: Settings): string[] {
  try {
    readOrganizations(ORGANIZATIONS, actionsOf(file?.options.policy))
    return []
  } catch (error) {
    return [`${(error as Error).message.replace(/^usher: organizations/, 'ORGANIZATIONS')}.`]
  }
}

function checkWebhooks (settings: Settings): string[] {
  try {
    webhooksOf(settings)
    return []
  } catch (error) {
    return [(error as Error).message]
  }
}

function parse (name: Name, text: string): unknown {
  // Ajv takes an infinite number for an integer within all limits.
  if (isNumeric(name) && !Number.isFinite(Number(text))) return 'not a number'
  if (name === 'ROLES' || name === 'ORGANIZATIONS') return parseJson(text)
  return typeOf(name) === 'array' ? text.split(',').map((item) => item.trim()) : text
}

// A text that is no JSON is no object either, so it is rejected.
function parseJson (text: string): unknown {
  try {
    return JSON.parse(text)
  } catch {
    return text
  }
}

const typeOf = (name: Name): unknown => Settings.properties[name].type
const isNumeric = (name: Name) => typeOf(name) === 'integer' || typeOf(name) === 'number'

function describe (name: Name, text: string): string {
  const { description, format } = Settings.properties[name]
  const advice = (format === 'postgres' && explainDatabaseUrl(text)) || ''
  // A number is no secret.
  const found = isNumeric(name) && /^[-+]?\d{1,20}(\.\d{1,20})?$/.test(text) ? `, not ${text}` : ''
  return `${name} must be ${description}${found}.${advice && ` ${advice}`}`
}
