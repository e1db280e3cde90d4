import { Type, type TSchema } from '@sinclair/typebox'
import type { SettingGroup } from '../../schema/admin/admin.ts'
import { Settings as Options } from '../../schema/options/options.ts'
import { ADDRESS, PATH } from '../../schema/options/pages.ts'
import { PUBLIC_URL_FORMAT } from '../../schema/options/public-url.ts'
import type { GivenOrganizations } from '../../schema/options/organizations.ts'
import type { GivenRoles } from '../../schema/options/policy.ts'
import { storages, stores, type StorageName } from '../../schema/options/stores.ts'
import { signingAlgorithms, type SigningAlgorithm } from '../../schema/options/signing-algorithm.ts'

// Each setting of a node, once: its name, what it must be, its default, and the option of the plugin that it sets. What
// follows from these: the environment and the configuration file (settings.ts, config-values.ts), and the options
// (service-options.ts). A test compares them with docs/settings.md.

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

const { secondFactor, issuer, poolSize } = Options.properties
const { properties: s3 } = stores.s3

// The memory of the weakest alternative that OWASP recommends.
const MIN_MEMORY_KIB = 7 * 1024

/** A setting that sets an option of the plugin, which has this place in the options. */
const sets = <const Path extends string, Schema extends TSchema>(
  option: Path, schema: Schema
): Schema & { readonly option: Path } => ({ ...schema, option })

const schemaOf = (option: string): TSchema =>
  option.split('.').reduce<TSchema>((schema, name) => schema['properties'][name], Options)

/**
 * A setting with the default and the limits of its option. A smaller limit is given where an operator could otherwise
 * make the node useless by mistake, for example with days in place of seconds.
 */
function integer<const Path extends string> (path: Path, { min, of = '' }: { min?: number, of?: string } = {}) {
  const { default: usual, minimum, maximum } = schemaOf(path)
  const least = min ?? minimum
  return sets(path, Type.Integer({
    default: usual,
    minimum: least,
    maximum,
    description: `a whole number ${of && `of ${of} `}from ${least} to ${maximum}`,
  }))
}

const seconds = <const Path extends string>(path: Path, min?: number) =>
  integer(path, { of: 'seconds', ...min !== undefined && { min } })

function decimal<const Path extends string> (path: Path) {
  const { default: usual, minimum, maximum } = schemaOf(path)
  return sets(path, Type.Number({
    default: usual, minimum, maximum, description: `a number from ${minimum} to ${maximum}`,
  }))
}

const pageAddress = (example: string) => Type.String({
  pattern: ADDRESS, maxLength: 2048, description: `a path or an address such as ${example}`,
})

const DatabaseUrl =
  Type.String({ format: 'postgres', description: 'an address such as postgres://user:password@host:5432/database' })

// A description says what a setting must be. It is part of the error message for an invalid value.
export const Settings = Type.Object({
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
  DATABASE_URL: Type.Optional(sets('databaseUrl', DatabaseUrl)),
  NOTIFICATIONS_URL: Type.Optional(sets('notificationsUrl', DatabaseUrl)),
  REPLICA_URLS: sets('replicaUrls', Type.Array(Type.String({ format: 'postgres' }), {
    default: [],
    maxItems: 16,
    uniqueItems: true,
    description: 'a comma-separated list of addresses of standbys such as postgres://user:password@host:5432/database',
  })),
  DATABASE_WAIT_SECONDS:
    Type.Integer({ default: 60, minimum: 0, maximum: 3600, description: 'a whole number of seconds from 0 to 3600' }),
  CONFIG: Type.Optional(Type.String({ description: 'a file such as usher.config.ts' })),
  DEADLINE_FACTOR: Type.Integer({ default: 1, minimum: 1, maximum: 100, description: 'a whole number from 1 to 100' }),
  DATA_DIR: Type.String({ default: './data', description: 'a folder' }),
  PUBLIC_URL: Type.Optional(sets('publicUrl', Type.String({ format: 'web', description: PUBLIC_URL_FORMAT }))),
  ADMIN_EMAIL: Type.Optional(sets('admin.email',
    Type.String({ format: 'email', maxLength: 254, description: 'an email address of at most 254 characters' })
  )),
  ADMIN_PASSWORD: Type.Optional(sets('admin.password',
    Type.String({ minLength: 8, maxLength: 256, description: 'a password of 8 to 256 characters' })
  )),
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
  SLOW_STATEMENT_MS: Type.Optional(sets('slowStatementMs', Type.Integer({
    minimum: 1,
    maximum: 3_600_000,
    description: 'a whole number of milliseconds from 1 to 3600000',
  }))),
  CORS_ORIGIN: sets('origins', Type.Array(Type.String({ format: 'origin' }), {
    default: [],
    description: 'a comma-separated list of origins such as https://app.example.com or capacitor://localhost, ' +
      'without wildcards, or only * for any',
  })),
  TRUST_PROXY: Type.Array(Type.String({ format: 'network' }), {
    default: [],
    description: 'true, false, or a comma-separated list of addresses and ranges such as 10.0.0.0/8',
  }),
  SECRET: Type.Optional(sets('secret',
    Type.String({ minLength: 16, maxLength: 1024, description: 'a secret of 16 to 1024 characters' })
  )),
  FORMER_SECRET: Type.Optional(sets('formerSecret',
    Type.String({ minLength: 16, maxLength: 1024, description: 'a secret of 16 to 1024 characters' })
  )),
  SMTP_URL: Type.Optional(
    Type.String({ format: 'smtp', description: 'an address such as smtps://user:password@mail.example.com' })
  ),
  MAIL_FROM: Type.Optional(Type.String({
    format: 'mailbox',
    description: 'an email address, or one with a name such as Usher <usher@example.com>',
  })),
  PASSWORD_URL: Type.Optional(sets('passwordUrl', Type.String({
    format: 'page',
    description: 'an address without a fragment, such as https://app.example.com/set-password',
  }))),
  SIGN_UP: Type.Optional(sets('signUp', Type.Boolean({ description: 'true or false' }))),
  LOGIN_MAIL: Type.Optional(sets('loginMail', Type.Boolean({ description: 'true or false' }))),
  MAIL_TEMPLATES: Type.Optional(Type.String({ description: 'a folder of mail templates' })),
  PRODUCT_NAME: sets('pages.productName', Type.String({
    default: 'Usher',
    maxLength: 100,
    format: 'name',
    description: 'a name of up to 100 characters',
  })),
  PRODUCT_COLOR: Type.Optional(sets(
    'pages.color', Type.String({ format: 'color', description: 'a color such as #1d4ed8' })
  )),
  PRODUCT_LOGO: Type.Optional(sets('pages.logo',
    Type.String({ pattern: PATH, maxLength: 2048, description: 'the path of an image on the same origin, such as /logo.svg' })
  )),
  APP_URL: Type.Optional(sets('pages.appUrl', pageAddress('https://app.example.com'))),
  TERMS_URL: Type.Optional(sets('pages.termsUrl', pageAddress('https://example.com/terms'))),
  PRIVACY_URL: Type.Optional(sets('pages.privacyUrl', pageAddress('https://example.com/privacy'))),
  CONSOLE: sets('console', Type.Boolean({ default: true, description: 'true or false' })),
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
  ROLES: Type.Optional(sets('roles', Type.Unsafe<GivenRoles>({
    type: 'object',
    additionalProperties: { type: 'array', items: { type: 'string' } },
    description: 'JSON with a list of actions for each role, such as {"moderator":["posts:delete"]}',
  }))),
  ORGANIZATIONS: Type.Optional(sets('organizations', Type.Unsafe<GivenOrganizations | boolean>({
    anyOf: [{ type: 'boolean' }, { type: 'object' }],
    description: 'true, false, or JSON such as {"roles":{"billing":["organizations:update"]}}',
  }))),
  NODE_ENV: Type.String({ default: 'development', description: 'production, or another word' }),
  METRICS_PORT: Type.Optional(
    Type.Integer({ minimum: 0, maximum: 65535, description: 'a whole number from 0 (any free port) to 65535' })
  ),
  METRICS_HOST: Type.String({
    default: '127.0.0.1', description: 'an address of this machine, such as 127.0.0.1, or 0.0.0.0 for all of them',
  }),
  UPLOAD_MAX_BYTES: sets('uploadMaxBytes', Type.Integer({
    default: 10 * MIB,
    minimum: 1,
    maximum: Number.MAX_SAFE_INTEGER,
    description: 'a whole number of bytes, at least 1',
  })),
  S3_ENDPOINT: Type.Optional(sets('s3.endpoint', Type.String({
    maxLength: 500,
    pattern: s3.endpoint.pattern!,
    description: 'an address without a user and a query, such as https://s3.eu-central-1.amazonaws.com',
  }))),
  S3_BUCKET: Type.Optional(sets('s3.bucket', Type.String({
    pattern: s3.bucket.pattern!, description: 'the name of a bucket of 3 to 63 letters, digits, dots and hyphens',
  }))),
  S3_REGION: sets('s3.region', Type.String({
    default: s3.region.default, pattern: s3.region.pattern!, description: 'the name of a region such as eu-central-1',
  })),
  S3_ACCESS_KEY_ID: Type.Optional(sets('s3.accessKeyId', Type.String({
    maxLength: 200, pattern: s3.accessKeyId.pattern!, description: 'the id of an access key',
  }))),
  S3_SECRET_ACCESS_KEY: Type.Optional(sets('s3.secretAccessKey', Type.String({
    maxLength: 500, pattern: s3.secretAccessKey.pattern!, description: 'the secret of an access key',
  }))),
  S3_PREFIX: Type.Optional(sets('s3.prefix', Type.String({
    maxLength: 200,
    pattern: s3.prefix.pattern!,
    description: 'a path of letters, digits, dots and hyphens such as usher/uploads, which keys begin with',
  }))),
  S3_PATH_STYLE: Type.Optional(sets('s3.pathStyle', Type.Boolean({ description: 'true or false' }))),
  S3_REDIRECT_SECONDS: integer('s3.redirectSeconds', { of: 'seconds' }),
  CLAMD: Type.Optional(sets('scan.clamd', Type.String({
    maxLength: 300,
    pattern: schemaOf('scan.clamd')['pattern'],
    description: 'a host and a port such as 127.0.0.1:3310, or the path of a socket',
  }))),
  SCAN_SECONDS: decimal('scan.seconds'),
  UPLOADS_TO: Type.Optional(sets('uploadsTo', Type.Unsafe<StorageName>({
    type: 'string', enum: storages, description: storages.join(' or '),
  }))),
  UPLOAD_QUOTA_BYTES: sets('uploadQuotaBytes', limit(1024 * MIB, 'of bytes')),
  UPLOAD_QUOTA_FILES: sets('uploadQuotaFiles', limit(10_000, 'of files')),
  POSTS_PER_HOUR: sets('postsPerHour', limit(10_000, 'of posts')),
  SIGNING_ALGORITHM: Type.Optional(sets('signingAlgorithm', Type.Unsafe<SigningAlgorithm>({
    type: 'string',
    enum: signingAlgorithms,
    description: signingAlgorithms.join(' or '),
  }))),
  TOKEN_ISSUER: sets('issuer', Type.String({
    default: issuer.default,
    maxLength: 200,
    format: 'issuer',
    description: 'a name or an address of up to 200 characters without spaces, such as https://api.example.com',
  })),
  ACCESS_TOKEN_SECONDS: seconds('accessTokenSeconds', 60),
  STEP_UP_SECONDS: seconds('stepUpSeconds', 60),
  SECOND_FACTOR: Type.Optional(sets('secondFactor', secondFactor)),
  SESSION_SECONDS: seconds('sessionSeconds', 600),
  SESSION_IDLE_SECONDS: seconds('sessionIdleSeconds', 600),
  SIGNING_KEY_SECONDS: seconds('signingKeySeconds', 3600),
  PASSWORD_TOKEN_SECONDS: seconds('passwordTokenSeconds', 300),
  AUDIT_SECONDS: seconds('auditSeconds'),
  PASSWORD_HASH_MEMORY_KIB: integer('passwordHash.memoryKiB', { of: 'KiB', min: MIN_MEMORY_KIB }),
  PASSWORD_HASH_PASSES: integer('passwordHash.passes'),
  BREACHED_PASSWORDS_FILE: Type.Optional(sets('breachedPasswords.file', Type.String({
    minLength: 1, maxLength: 4096, description: 'a file of Pwned Passwords that is ordered by SHA-1',
  }))),
  BREACHED_PASSWORDS_URL: Type.Optional(sets('breachedPasswords.url', Type.String({
    maxLength: 500,
    pattern: schemaOf('breachedPasswords.url')['pattern'],
    description: 'an address such as https://api.pwnedpasswords.com/range/',
  }))),
  // Its default depends on `WORKERS`.
  POOL_SIZE: Type.Optional(sets('poolSize', Type.Integer({
    minimum: poolSize.minimum!,
    maximum: poolSize.maximum!,
    description: `a whole number of connections from ${poolSize.minimum} to ${poolSize.maximum}`,
  }))),
  THROTTLE_ACCOUNT_BURST: integer('throttle.account.burst'),
  THROTTLE_ACCOUNT_PER_MINUTE: decimal('throttle.account.perMinute'),
  THROTTLE_CONSECUTIVE_FAILURES: integer('throttle.consecutiveFailures'),
  THROTTLE_ADDRESS_BURST: integer('throttle.address.burst'),
  THROTTLE_ADDRESS_PER_MINUTE: decimal('throttle.address.perMinute'),
  THROTTLE_REFRESH_BURST: integer('throttle.refresh.burst'),
  THROTTLE_REFRESH_PER_MINUTE: decimal('throttle.refresh.perMinute'),
  THROTTLE_RESET_BURST: integer('throttle.reset.burst'),
  THROTTLE_RESET_PER_MINUTE: decimal('throttle.reset.perMinute'),
  THROTTLE_SECOND_FACTOR_BURST: integer('throttle.secondFactor.burst'),
  THROTTLE_SECOND_FACTOR_PER_MINUTE: decimal('throttle.secondFactor.perMinute'),
  THROTTLE_SIGN_UP_BURST: integer('throttle.signUp.burst'),
  THROTTLE_SIGN_UP_PER_MINUTE: decimal('throttle.signUp.perMinute'),
  THROTTLE_LOGIN_MAIL_BURST: integer('throttle.loginMail.burst'),
  THROTTLE_LOGIN_MAIL_PER_MINUTE: decimal('throttle.loginMail.perMinute'),
  THROTTLE_MAIL_BURST: integer('throttle.mail.burst'),
  THROTTLE_MAIL_PER_MINUTE: decimal('throttle.mail.perMinute'),
  THROTTLE_VERIFIED_MAIL_BURST: integer('throttle.verifiedMail.burst'),
  THROTTLE_VERIFIED_MAIL_PER_MINUTE: decimal('throttle.verifiedMail.perMinute'),
  LIVE_CONNECTIONS_PER_NETWORK: integer('live.connectionsPerNetwork'),
  LIVE_CONNECTIONS: integer('live.connections'),
  LIVE_SUBSCRIPTIONS_PER_NETWORK: integer('live.subscriptionsPerNetwork'),
  LIVE_SUBSCRIPTIONS: integer('live.subscriptions'),
})

type Level = 'fatal' | 'error' | 'warn' | 'info' | 'debug' | 'trace' | 'silent'
type Declared = typeof Settings.properties

/** The names of the settings that set an option of the plugin, with its place in the options. */
export const optionOfSetting = Object.fromEntries(
  Object.entries(Settings.properties).flatMap(([name, schema]) => 'option' in schema ? [[name, schema.option]] : [])
) as {
  readonly [Name in keyof Declared as Declared[Name] extends { option: string } ? Name : never]:
  Declared[Name] extends { option: infer Path } ? Path : never
}

const groups = {
  node: [
    'HOST', 'PORT', 'WORKERS', 'CONFIG', 'DEADLINE_FACTOR', 'NODE_ENV', 'PUBLIC_URL', 'CORS_ORIGIN', 'TRUST_PROXY', 'LOG_LEVEL',
    'ACCESS_LOG', 'SLOW_STATEMENT_MS', 'METRICS_PORT', 'METRICS_HOST',
  ],
  database: [
    'DATABASE_URL', 'NOTIFICATIONS_URL', 'REPLICA_URLS', 'DATABASE_WAIT_SECONDS', 'POOL_SIZE', 'DATA_DIR', 'SECRET',
    'FORMER_SECRET',
  ],
  pages: ['PRODUCT_NAME', 'PRODUCT_COLOR', 'PRODUCT_LOGO', 'APP_URL', 'TERMS_URL', 'PRIVACY_URL', 'PASSWORD_URL', 'CONSOLE'],
  access: [
    'USERS_VISIBLE_TO', 'EMAILS_VISIBLE_TO', 'POSTS_VISIBLE_TO', 'UPLOADS_VISIBLE_TO', 'ROLES', 'ORGANIZATIONS',
    'ADMIN_EMAIL', 'ADMIN_PASSWORD', 'PRINT_SECRETS',
  ],
  sessions: [
    'SIGN_UP', 'LOGIN_MAIL', 'SECOND_FACTOR', 'STEP_UP_SECONDS', 'SESSION_SECONDS', 'SESSION_IDLE_SECONDS',
    'ACCESS_TOKEN_SECONDS', 'TOKEN_ISSUER', 'SIGNING_ALGORITHM', 'SIGNING_KEY_SECONDS', 'PASSWORD_TOKEN_SECONDS',
    'PASSWORD_HASH_MEMORY_KIB', 'PASSWORD_HASH_PASSES', 'BREACHED_PASSWORDS_FILE', 'BREACHED_PASSWORDS_URL',
    'AUDIT_SECONDS',
  ],
  mail: [
    'SMTP_URL', 'MAIL_FROM', 'MAIL_TEMPLATES', 'WEBHOOK_URL', 'WEBHOOK_SECRET', 'WEBHOOK_EVENTS', 'WEBHOOK_ALLOW_PRIVATE',
  ],
  uploads: [
    'UPLOAD_MAX_BYTES', 'UPLOAD_QUOTA_BYTES', 'UPLOAD_QUOTA_FILES', 'CLAMD', 'SCAN_SECONDS', 'UPLOADS_TO', 'S3_ENDPOINT', 'S3_BUCKET', 'S3_REGION',
    'S3_ACCESS_KEY_ID', 'S3_SECRET_ACCESS_KEY', 'S3_PREFIX', 'S3_PATH_STYLE', 'S3_REDIRECT_SECONDS', 'POSTS_PER_HOUR',
  ],
} as const satisfies { readonly [Group in SettingGroup]?: readonly (keyof Declared)[] }

type Grouped = typeof groups[keyof typeof groups][number] | `THROTTLE_${string}` | `LIVE_${string}`

// Does not compile while a setting is in no group.
const others: Readonly<Record<Exclude<keyof Declared, Grouped>, SettingGroup>> = {}

const groupOf = new Map<string, SettingGroup>(
  Object.entries(groups).flatMap(([group, names]) => names.map((name) => [name, group as SettingGroup] as const))
)

/** Returns what a setting is about. */
export function groupOfSetting (name: string): SettingGroup {
  if (/^(THROTTLE|LIVE)_/.test(name)) return 'limits'
  if (name.startsWith('PROVIDER')) return 'sessions'
  return groupOf.get(name) ?? Reflect.get(others, name) ?? 'other'
}
