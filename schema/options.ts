import { Type, type Static } from '@sinclair/typebox'
import type { RegisterOptions } from 'fastify'
import type { Sql } from 'postgres'
import { isDatabaseUrl } from './database-url.ts'
import { GraphqlLimits, LiveLimits, ThrottleLimits, type GivenLimits } from './limits.ts'
import { policy, type Policy } from './policy.ts'
import { Email, NewPassword } from './text.ts'
import { createCheck } from './validator.ts'

const MIB = 1024 * 1024
const DAY = 86400

const Settings = Type.Object({
  decoratorName: Type.String({ default: 'usher', minLength: 1, description: 'What the host finds Usher under' }),
  schema: Type.String({ default: 'usher', pattern: '^[a-z_][a-z0-9_]{0,39}$', description: 'The Postgres schema of its tables' }),
  poolSize: Type.Integer({ default: 10, minimum: 2, maximum: 1000, description: 'Connections for statements; transactions open up to half as many more, on demand' }),
  publicUrl: Type.Optional(Type.String({ format: 'uri', pattern: '^https?:', description: 'Base of the absolute URLs in answers; the prefix follows it' })),
  origins: Type.Array(Type.String(), { default: [], description: 'Origins, besides its own, whose pages the session cookie serves, and who may open a socket; `*` is any, for sockets alone' }),
  redirectTo: Type.Optional(Type.String({ description: 'Where GET /api/redirect leads; by default the users list' })),
  admin: Type.Optional(Type.Object({
    email: Email,
    password: NewPassword,
  }, { description: 'The first admin, made where there is none' })),
  issuer: Type.String({ default: 'usher', minLength: 1, description: '`iss` and `aud` of access tokens' }),
  accessTokenSeconds: Type.Integer({ default: 900, minimum: 1, maximum: 86400 }),
  sessionSeconds: Type.Integer({ default: 90 * DAY, minimum: 60, maximum: 400 * DAY, description: 'How long a session lives at the most' }),
  sessionIdleSeconds: Type.Integer({ default: 30 * DAY, minimum: 60, maximum: 400 * DAY, description: 'How long a session lives without being refreshed' }),
  signingKeySeconds: Type.Integer({ default: 30 * DAY, minimum: 60, maximum: 400 * DAY, description: 'The age at which another key takes over the signing' }),
  secret: Type.Optional(Type.String({ minLength: 16, maxLength: 1024, description: 'Seals the private keys in the database' })),
  passwordTokenSeconds: Type.Integer({ default: 1800, minimum: 60, maximum: 7 * DAY, description: 'How long a link to set a password serves' }),
  passwordUrl: Type.Optional(Type.String({ format: 'uri', pattern: '^https?:[^#]*$', description: 'The page at which a password is set; the token follows as its fragment' })),
  auditSeconds: Type.Integer({ default: 365 * DAY, minimum: DAY, maximum: 3650 * DAY, description: 'How long the account log is kept' }),
  throttle: ThrottleLimits,
  live: LiveLimits,
  pingSeconds: Type.Number({ default: 25, minimum: 0.01, maximum: 3600, description: 'How often an open socket or event stream is asked whether anybody is there' }),
  bodyLimit: Type.Integer({ default: MIB, minimum: 1024, maximum: 64 * MIB, description: 'Octets of a JSON body' }),
  bodySeconds: Type.Number({ default: 30, minimum: 0.01, maximum: 3600, description: 'Seconds within which a JSON body must arrive' }),
  graphql: GraphqlLimits,
  uploadsDir: Type.String({ default: './data/uploads', minLength: 1, description: 'Where uploads are kept; shared by the nodes' }),
  uploadMaxBytes: Type.Integer({ default: 10 * MIB, minimum: 1, maximum: Number.MAX_SAFE_INTEGER }),
  uploadIdleSeconds: Type.Number({ default: 30, minimum: 0.1, maximum: 3600, description: 'How long an upload may pause' }),
  uploadMinBytesPerSecond: Type.Integer({ default: 1024, minimum: 1, maximum: MIB, description: 'The rate that an upload must reach in every period of `uploadIdleSeconds`' }),
})

type Given = Static<typeof Settings>

/** The options of the plugin. An unknown one is refused. */
export interface UsherOptions extends PartialOrUndefined<Omit<Given, 'throttle' | 'live' | 'graphql'>>, RegisterOptions {
  /** How often something may be tried. A limit that is absent keeps its default. */
  throttle?: GivenLimits<typeof ThrottleLimits> | undefined
  /** Limits of sockets, event streams and subscriptions of one node. A limit that is absent keeps its default. */
  live?: GivenLimits<typeof LiveLimits> | undefined
  /** Limits of GraphQL operations on one node. A limit that is absent keeps its default. */
  graphql?: GivenLimits<typeof GraphqlLimits> | undefined
  /** `postgres://…`. Either this or `sql`. */
  databaseUrl?: string | undefined
  /** A postgres.js client, which the host owns and closes. Usher opens its own connections, with the same settings. */
  sql?: Sql | undefined
  /** Where notifications are listened to; by default where the statements go. Needed where that is a pooler in transaction mode. */
  notificationsUrl?: string | undefined
  /**
   * An mqemitter, such as mqemitter-redis, by which the nodes tell each other of new posts rather than by PostgreSQL's
   * notifications. The host owns it, and closes it. What it loses is found within a second.
   */
  emitter?: Emitter | undefined
  /** Rules to replace those of `schema/policy.ts`. */
  policy?: Partial<Policy> | undefined
  /** Sends a mail; without it nobody can reset a password, or be invited to set a first one. */
  mailer?: Mailer | undefined
  /** Without `admin`, and with no admin in the database: one is made and told to this function, once. */
  onFirstAdmin?: ((admin: { email: string, password: string }) => void) | undefined
  /** Is called at start if the database has no admin and neither `admin` nor `onFirstAdmin` is given. */
  onNoAdmin?: (() => void) | undefined
}

/** A mail as Usher has it sent. */
export interface Mail { to: string, subject: string, text: string }
/** Sends a mail. What it throws is logged, and tried again. */
export type Mailer = (mail: Mail) => void | Promise<void>

/** What Usher uses of an mqemitter. */
export interface Emitter {
  on (topic: string, listener: EmitterListener, done?: () => void): unknown
  removeListener (topic: string, listener: EmitterListener, done?: () => void): unknown
  emit (message: { topic: string }, done?: (error?: Error) => void): unknown
}
type EmitterListener = (message: { topic: string }, done: () => void) => void

// For hosts with exactOptionalPropertyTypes that pass on what may not be set.
type PartialOrUndefined<Members> = { [Name in keyof Members]?: Members[Name] | undefined }

/** The options with their defaults, checked and frozen. */
export interface Options extends Readonly<Given> {
  /** The whole path that Usher is mounted under, such as `/accounts`; empty at the root. */
  readonly prefix: string
  readonly database: string | Sql
  readonly notificationsUrl: string | undefined
  readonly emitter: Emitter | undefined
  readonly policy: Policy
  readonly mailer: Mailer | undefined
  readonly onFirstAdmin: UsherOptions['onFirstAdmin']
  readonly onNoAdmin: UsherOptions['onNoAdmin']
}

const check = createCheck(Settings)

/** Throws an `Error` of one sentence that names what is wrong. */
export function readOptions (given: UsherOptions): Options & Pick<RegisterOptions, 'logLevel' | 'logSerializers'> {
  const { prefix, logLevel, logSerializers, databaseUrl, sql, notificationsUrl, emitter, policy: rules, mailer, onFirstAdmin, onNoAdmin, ...rest } = given
  const unknown = Object.keys(rest).find((name) => !(name in Settings.properties))
  if (unknown) throw refused(`there is no option ${unknown}`)
  if (emitter !== undefined && !isEmitter(emitter)) throw refused('emitter must be an mqemitter')
  if (mailer !== undefined && typeof mailer !== 'function') throw refused('mailer must be a function')
  if (onFirstAdmin !== undefined && typeof onFirstAdmin !== 'function') throw refused('onFirstAdmin must be a function')
  if (onNoAdmin !== undefined && typeof onNoAdmin !== 'function') throw refused('onNoAdmin must be a function')
  return Object.freeze({
    ...parseLimits(rest),
    prefix: readPrefix(prefix),
    database: readDatabase(databaseUrl, sql),
    notificationsUrl: notificationsUrl === undefined ? undefined : readDatabaseUrl('notificationsUrl', notificationsUrl),
    emitter,
    policy: readPolicy(rules),
    logLevel,
    logSerializers,
    mailer,
    onFirstAdmin,
    onNoAdmin,
  })
}

const refused = (message: string) => new Error(`usher: ${message}`)

function parseLimits (given: object): Given {
  // The check writes defaults and trims: into a copy.
  const settings = copy(given)
  try {
    check(settings)
  } catch (error) {
    throw refused((error as Error).message)
  }
  return structuredClone(settings) as Given
}

// As far as there are members: of what else a host may give by mistake, the check tells.
function copy (value: unknown): unknown {
  if (value === null || typeof value !== 'object' || Array.isArray(value)) return value
  return Object.fromEntries(Object.entries(value).map(([name, member]) => [name, copy(member)]))
}

// As Fastify takes it: with or without the slash in front, and one at the end makes no difference.
function readPrefix (prefix: unknown = ''): string {
  if (typeof prefix === 'string' && /^\/?([\w.~-]+\/)*[\w.~-]*$/.test(prefix)) return prefix.replace(/^(?=[^/])/, '/').replace(/\/$/, '')
  throw refused('prefix must be a path such as /accounts')
}

function readDatabase (databaseUrl: unknown, sql: Sql | undefined): string | Sql {
  if (sql !== undefined && databaseUrl !== undefined) throw refused('databaseUrl and sql exclude each other')
  if (sql !== undefined) return readClient(sql)
  if (databaseUrl === undefined || databaseUrl === '') throw refused('databaseUrl or sql is required')
  return readDatabaseUrl('databaseUrl', databaseUrl)
}

function readDatabaseUrl (name: string, given: unknown): string {
  if (typeof given === 'string' && isDatabaseUrl(given)) return given
  // Without its value: it may hold a password.
  throw refused(`${name} must be a URL such as postgres://user:password@host:5432/database`)
}

function isEmitter (given: unknown): boolean {
  return typeof given === 'object' && given !== null && ['on', 'removeListener', 'emit'].every((name) => typeof given[name as never] === 'function')
}

function readClient (sql: Sql): Sql {
  if (typeof sql !== 'function' || typeof sql.unsafe !== 'function' || !sql.options) throw refused('sql must be a client made by postgres.js')
  return sql
}

function readPolicy (rules: Partial<Policy> = {}): Policy {
  for (const [action, rule] of Object.entries(rules)) {
    if (!(action in policy)) throw refused(`policy has no action ${action}`)
    if (typeof rule !== 'function') throw refused(`policy of ${action} must be a function`)
  }
  return { ...policy, ...rules }
}
