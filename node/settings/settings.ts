import { Type, type Static, type TInteger, type TNumber } from '@sinclair/typebox'
import { Ajv } from 'ajv'
import { explainDatabaseUrl } from '../../schema/options/database-url.ts'
import { Settings as Options } from '../../schema/options/options.ts'
import { ADDRESS, PATH } from '../../schema/options/pages.ts'
import { MINIMUM_KIB, RECOMMENDED } from '../../schema/options/password-hash.ts'
import { PUBLIC_URL_FORMAT } from '../../schema/options/public-url.ts'
import { S3, storages, type StorageName } from '../../schema/options/s3.ts'
import { signingAlgorithms, type SigningAlgorithm } from '../../schema/options/signing-algorithm.ts'
import type { ConfigFile } from '../config/config-file.ts'
import { settingsOf, withoutDecided } from './config-values.ts'
import { addSettingFormats } from './formats.ts'
import { printsMails } from './printing.ts'
import { checkProviders, findProviderSettings, type ProviderSettings } from './providers.ts'
import { webhooksOf } from '../webhooks.ts'
import { connectionsOfNode } from '../workers/count.ts'

const MIB = 1024 * 1024

const AUDIENCES = {
  anyone: 'anyone', members: 'members (everyone with a token)', owners: 'owners (the owner and admins)',
}

/** A setting that says who may read something. */
const visibleTo = <Name extends keyof typeof AUDIENCES> (...names: Name[]) => Type.Unsafe<Name>({
  type: 'string',
  enum: names,
  default: 'anyone',
  description: names.map((name) => AUDIENCES[name]).join(' or '),
})

/** A setting that limits something. */
const limit = (usual: number, of: string) => Type.Integer({
  default: usual,
  minimum: 0,
  maximum: Number.MAX_SAFE_INTEGER,
  description: `a whole number ${of}, or 0 for no limit`,
})

const {
  accessTokenSeconds, secondFactor, stepUpSeconds, sessionSeconds, sessionIdleSeconds, signingKeySeconds,
} = Options.properties
const { passwordTokenSeconds, auditSeconds } = Options.properties
const { properties: s3 } = S3
const { issuer, poolSize, passwordHash: { properties: passwordHash } } = Options.properties
const { throttle: { properties: throttle }, live: { properties: live } } = Options.properties

/**
 * A setting with the default and the limits of an option. A smaller limit is given where an operator could otherwise
 * make the node useless by mistake, for example with days in place of seconds.
 */
const integer = ({ default: usual, minimum, maximum }: TInteger, { min = minimum, of = '' } = {}) => Type.Integer({
  default: usual,
  minimum: min!,
  maximum: maximum!,
  description: `a whole number ${of && `of ${of} `}from ${min} to ${maximum}`,
})

const seconds = (option: TInteger, min?: number) => integer(option, { of: 'seconds', ...min !== undefined && { min } })

const burst = ({ properties: { burst } }: { properties: { burst: TInteger } }) => integer(burst)

const perMinute = ({ properties }: { properties: { perMinute: TNumber } }) => {
  const { default: usual, minimum, maximum } = properties.perMinute
  return Type.Number({
    default: usual, minimum: minimum!, maximum: maximum!, description: `a number from ${minimum} to ${maximum}`,
  })
}

// The cost of a password hash is its memory times its passes. The greatest one takes about a second.
const MAX_COST_KIB = 1024 * 1024
// The memory of the weakest alternative that OWASP recommends.
const MIN_MEMORY_KIB = 7 * 1024

// More would cost an embedded PostgreSQL its memory.
const MAX_EMBEDDED_CONNECTIONS = 1000

const pageAddress = (example: string) => Type.String({
  pattern: ADDRESS, maxLength: 2048, description: `a path or an address such as ${example}`,
})

const DatabaseUrl =
  Type.String({ format: 'postgres', description: 'an address such as postgres://user:password@host:5432/database' })

// A description says what a setting must be. It is part of the error message for an invalid value.
const Settings = Type.Object({
  HOST: Type.String({
    default: '127.0.0.1',
    description: 'an address of this machine, such as 127.0.0.1, or 0.0.0.0 for all of them',
  }),
  PORT: Type.Integer({
    default: 3000, minimum: 0, maximum: 65535, description: 'a whole number from 0 (any free port) to 65535',
  }),
  WORKERS: Type.Union([Type.Literal('auto'), Type.Integer({ minimum: 1, maximum: 256 })], {
    default: 1,
    description: 'a whole number of processes from 1 to 256, or auto for one per core',
  }),
  DATABASE_URL: Type.Optional(DatabaseUrl),
  NOTIFICATIONS_URL: Type.Optional(DatabaseUrl),
  REPLICA_URLS: Type.Array(Type.String({ format: 'postgres' }), {
    default: [],
    maxItems: 16,
    uniqueItems: true,
    description: 'a comma-separated list of addresses of standbys such as postgres://user:password@host:5432/database',
  }),
  DATABASE_WAIT_SECONDS:
    Type.Integer({ default: 60, minimum: 0, maximum: 3600, description: 'a whole number of seconds from 0 to 3600' }),
  CONFIG: Type.Optional(Type.String({ description: 'a file such as usher.config.ts' })),
  DEADLINE_FACTOR: Type.Integer({ default: 1, minimum: 1, maximum: 100, description: 'a whole number from 1 to 100' }),
  DATA_DIR: Type.String({ default: './data', description: 'a folder' }),
  PUBLIC_URL: Type.Optional(Type.String({ format: 'web', description: PUBLIC_URL_FORMAT })),
  ADMIN_EMAIL: Type.Optional(
    Type.String({ format: 'email', maxLength: 254, description: 'an email address of at most 254 characters' })
  ),
  ADMIN_PASSWORD: Type.Optional(
    Type.String({ minLength: 8, maxLength: 256, description: 'a password of 8 to 256 characters' })
  ),
  LOG_LEVEL: Type.Unsafe<Level>({
    type: 'string',
    enum: ['fatal', 'error', 'warn', 'info', 'debug', 'trace', 'silent'],
    default: 'info',
    description: 'one of fatal, error, warn, info, debug, trace and silent',
  }),
  ACCESS_LOG: Type.Number({
    default: 0,
    minimum: 0,
    maximum: 1,
    description: 'a number from 0 (no requests) to 1 (all), such as 0.01',
  }),
  SLOW_STATEMENT_MS: Type.Optional(Type.Integer({
    minimum: 1,
    maximum: 3_600_000,
    description: 'a whole number of milliseconds from 1 to 3600000',
  })),
  CORS_ORIGIN: Type.Array(Type.String({ format: 'origin' }), {
    default: [],
    description: 'a comma-separated list of origins such as https://app.example.com or capacitor://localhost, ' +
      'without wildcards, or only * for any',
  }),
  TRUST_PROXY: Type.Array(Type.String({ format: 'network' }), {
    default: [],
    description: 'true, false, or a comma-separated list of addresses and ranges such as 10.0.0.0/8',
  }),
  SECRET: Type.Optional(
    Type.String({ minLength: 16, maxLength: 1024, description: 'a secret of 16 to 1024 characters' })
  ),
  FORMER_SECRET: Type.Optional(
    Type.String({ minLength: 16, maxLength: 1024, description: 'a secret of 16 to 1024 characters' })
  ),
  SMTP_URL: Type.Optional(
    Type.String({ format: 'smtp', description: 'an address such as smtps://user:password@mail.example.com' })
  ),
  MAIL_FROM: Type.Optional(Type.String({
    format: 'mailbox',
    description: 'an email address, or one with a name such as Usher <usher@example.com>',
  })),
  PASSWORD_URL: Type.Optional(Type.String({
    format: 'page',
    description: 'an address without a fragment, such as https://app.example.com/set-password',
  })),
  SIGN_UP: Type.Optional(Type.Boolean({ description: 'true or false' })),
  LOGIN_MAIL: Type.Optional(Type.Boolean({ description: 'true or false' })),
  MAIL_TEMPLATES: Type.Optional(Type.String({ description: 'a folder of mail templates' })),
  PRODUCT_NAME: Type.String({
    default: 'Usher',
    maxLength: 100,
    format: 'name',
    description: 'a name of up to 100 characters',
  }),
  PRODUCT_COLOR: Type.Optional(Type.String({ format: 'color', description: 'a color such as #1d4ed8' })),
  PRODUCT_LOGO: Type.Optional(
    Type.String({ pattern: PATH, maxLength: 2048, description: 'the path of an image on the same origin, such as /logo.svg' })
  ),
  APP_URL: Type.Optional(pageAddress('https://app.example.com')),
  TERMS_URL: Type.Optional(pageAddress('https://example.com/terms')),
  PRIVACY_URL: Type.Optional(pageAddress('https://example.com/privacy')),
  CONSOLE: Type.Boolean({ default: true, description: 'true or false' }),
  PRINT_SECRETS: Type.Optional(Type.Boolean({ description: 'true or false' })),
  WEBHOOK_URL: Type.Optional(Type.String({ description: 'an address such as https://example.com/events' })),
  WEBHOOK_SECRET: Type.Optional(
    Type.Array(Type.String(), { description: 'a comma-separated list of secrets such as whsec_…' })
  ),
  WEBHOOK_EVENTS: Type.Optional(Type.Array(Type.String(), { description: 'a comma-separated list of events' })),
  WEBHOOK_ALLOW_PRIVATE: Type.Optional(Type.Boolean({ description: 'true or false' })),
  USERS_VISIBLE_TO: visibleTo('anyone', 'members'),
  POSTS_VISIBLE_TO: visibleTo('anyone', 'members'),
  EMAILS_VISIBLE_TO: visibleTo('anyone', 'members', 'owners'),
  UPLOADS_VISIBLE_TO: visibleTo('anyone', 'members', 'owners'),
  NODE_ENV: Type.String({ default: 'development', description: 'production, or another word' }),
  METRICS_PORT: Type.Optional(
    Type.Integer({ minimum: 0, maximum: 65535, description: 'a whole number from 0 (any free port) to 65535' })
  ),
  METRICS_HOST: Type.String({
    default: '127.0.0.1', description: 'an address of this machine, such as 127.0.0.1, or 0.0.0.0 for all of them',
  }),
  UPLOAD_MAX_BYTES: Type.Integer({
    default: 10 * MIB,
    minimum: 1,
    maximum: Number.MAX_SAFE_INTEGER,
    description: 'a whole number of bytes, at least 1',
  }),
  S3_ENDPOINT: Type.Optional(Type.String({
    maxLength: 500,
    pattern: s3.endpoint.pattern!,
    description: 'an address without a user and a query, such as https://s3.eu-central-1.amazonaws.com',
  })),
  S3_BUCKET: Type.Optional(Type.String({
    pattern: s3.bucket.pattern!, description: 'the name of a bucket of 3 to 63 letters, digits, dots and hyphens',
  })),
  S3_REGION: Type.String({
    default: s3.region.default, pattern: s3.region.pattern!, description: 'the name of a region such as eu-central-1',
  }),
  S3_ACCESS_KEY_ID: Type.Optional(Type.String({
    maxLength: 200, pattern: s3.accessKeyId.pattern!, description: 'the id of an access key',
  })),
  S3_SECRET_ACCESS_KEY: Type.Optional(Type.String({
    maxLength: 500, pattern: s3.secretAccessKey.pattern!, description: 'the secret of an access key',
  })),
  S3_PREFIX: Type.Optional(Type.String({
    maxLength: 200,
    pattern: s3.prefix.pattern!,
    description: 'a path of letters, digits, dots and hyphens such as usher/uploads, which keys begin with',
  })),
  S3_PATH_STYLE: Type.Optional(Type.Boolean({ description: 'true or false' })),
  S3_REDIRECT_SECONDS: integer(s3.redirectSeconds, { of: 'seconds' }),
  UPLOADS_TO: Type.Optional(Type.Unsafe<StorageName>({
    type: 'string', enum: storages, description: storages.join(' or '),
  })),
  UPLOAD_QUOTA_BYTES: limit(1024 * MIB, 'of bytes'),
  UPLOAD_QUOTA_FILES: limit(10_000, 'of files'),
  POSTS_PER_HOUR: limit(10_000, 'of posts'),
  SIGNING_ALGORITHM: Type.Optional(Type.Unsafe<SigningAlgorithm>({
    type: 'string',
    enum: signingAlgorithms,
    description: signingAlgorithms.join(' or '),
  })),
  TOKEN_ISSUER: Type.String({
    default: issuer.default,
    maxLength: 200,
    format: 'issuer',
    description: 'a name or an address of up to 200 characters without spaces, such as https://api.example.com',
  }),
  ACCESS_TOKEN_SECONDS: seconds(accessTokenSeconds, 60),
  STEP_UP_SECONDS: seconds(stepUpSeconds, 60),
  SECOND_FACTOR: Type.Optional(secondFactor),
  SESSION_SECONDS: seconds(sessionSeconds, 600),
  SESSION_IDLE_SECONDS: seconds(sessionIdleSeconds, 600),
  SIGNING_KEY_SECONDS: seconds(signingKeySeconds, 3600),
  PASSWORD_TOKEN_SECONDS: seconds(passwordTokenSeconds, 300),
  AUDIT_SECONDS: seconds(auditSeconds),
  PASSWORD_HASH_MEMORY_KIB: integer(passwordHash.memoryKiB, { of: 'KiB', min: MIN_MEMORY_KIB }),
  PASSWORD_HASH_PASSES: integer(passwordHash.passes),
  // Its default depends on `WORKERS`.
  POOL_SIZE: Type.Optional(Type.Integer({
    minimum: poolSize.minimum!,
    maximum: poolSize.maximum!,
    description: `a whole number of connections from ${poolSize.minimum} to ${poolSize.maximum}`,
  })),
  THROTTLE_ACCOUNT_BURST: burst(throttle.account),
  THROTTLE_ACCOUNT_PER_MINUTE: perMinute(throttle.account),
  THROTTLE_CONSECUTIVE_FAILURES: integer(throttle.consecutiveFailures),
  THROTTLE_ADDRESS_BURST: burst(throttle.address),
  THROTTLE_ADDRESS_PER_MINUTE: perMinute(throttle.address),
  THROTTLE_REFRESH_BURST: burst(throttle.refresh),
  THROTTLE_REFRESH_PER_MINUTE: perMinute(throttle.refresh),
  THROTTLE_RESET_BURST: burst(throttle.reset),
  THROTTLE_RESET_PER_MINUTE: perMinute(throttle.reset),
  THROTTLE_SECOND_FACTOR_BURST: burst(throttle.secondFactor),
  THROTTLE_SECOND_FACTOR_PER_MINUTE: perMinute(throttle.secondFactor),
  THROTTLE_SIGN_UP_BURST: burst(throttle.signUp),
  THROTTLE_SIGN_UP_PER_MINUTE: perMinute(throttle.signUp),
  THROTTLE_LOGIN_MAIL_BURST: burst(throttle.loginMail),
  THROTTLE_LOGIN_MAIL_PER_MINUTE: perMinute(throttle.loginMail),
  THROTTLE_MAIL_BURST: burst(throttle.mail),
  THROTTLE_MAIL_PER_MINUTE: perMinute(throttle.mail),
  THROTTLE_VERIFIED_MAIL_BURST: burst(throttle.verifiedMail),
  THROTTLE_VERIFIED_MAIL_PER_MINUTE: perMinute(throttle.verifiedMail),
  LIVE_CONNECTIONS_PER_NETWORK: integer(live.connectionsPerNetwork),
  LIVE_CONNECTIONS: integer(live.connections),
  LIVE_SUBSCRIPTIONS_PER_NETWORK: integer(live.subscriptionsPerNetwork),
  LIVE_SUBSCRIPTIONS: integer(live.subscriptions),
})

type Level = 'fatal' | 'error' | 'warn' | 'info' | 'debug' | 'trace' | 'silent'
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

const ajv = new Ajv({ coerceTypes: true })
addSettingFormats(ajv)

const lists: readonly string[] = ['REPLICA_URLS', 'CORS_ORIGIN', 'TRUST_PROXY', 'WEBHOOK_SECRET', 'WEBHOOK_EVENTS']

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
  errors.push(...checkS3(settings, [...given, ...Object.keys(ofFile)]))
  const { ACCESS_LOG, LOG_LEVEL } = settings
  if (ACCESS_LOG > 0 && ['fatal', 'error', 'warn', 'silent'].includes(LOG_LEVEL)) {
    errors.push('ACCESS_LOG needs LOG_LEVEL info, debug or trace.')
  }
  if (settings.PORT === settings.METRICS_PORT && settings.PORT !== 0) errors.push('PORT and METRICS_PORT must differ.')
  if (!errors.some((error) => error.startsWith('WEBHOOK_'))) errors.push(...checkWebhooks(settings))
  errors.push(...checkProviders(settings))
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

const ofS3 = ['S3_ENDPOINT', 'S3_BUCKET', 'S3_ACCESS_KEY_ID', 'S3_SECRET_ACCESS_KEY'] as const

function * checkS3 ({ UPLOADS_TO }: Settings, given: readonly string[]): Generator<string> {
  const first = given.find((name) => name.startsWith('S3_')) ?? (UPLOADS_TO === 's3' ? 'UPLOADS_TO s3' : undefined)
  if (first === undefined) return
  for (const name of ofS3) if (!given.includes(name)) yield `${name} is required with ${first}.`
}

function checkWebhooks (settings: Settings): string[] {
  try {
    webhooksOf(settings)
    return []
  } catch (error) {
    return [(error as Error).message]
  }
}

function parse (name: string, text: string): string | string[] {
  // Ajv takes an infinite number for an integer within all limits.
  if (isNumeric(name as Name) && !Number.isFinite(Number(text))) return 'not a number'
  return lists.includes(name) ? text.split(',').map((item) => item.trim()) : text
}

const isNumeric = (name: Name) => ['integer', 'number'].includes(Settings.properties[name].type)

function describe (name: Name, text: string): string {
  const { description, format } = Settings.properties[name]
  const advice = (format === 'postgres' && explainDatabaseUrl(text)) || ''
  // A number is no secret.
  const found = isNumeric(name) && /^[-+]?\d{1,20}(\.\d{1,20})?$/.test(text) ? `, not ${text}` : ''
  return `${name} must be ${description}${found}.${advice && ` ${advice}`}`
}
