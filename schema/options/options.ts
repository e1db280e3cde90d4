import { Type, type Static } from '@sinclair/typebox'
import type { RegisterOptions } from 'fastify'
import type { Sql } from 'postgres'
import { BreachedPasswords, type GivenBreachedPasswords } from './breached-passwords.ts'
import { Deadlines } from './deadlines.ts'
import type { FieldsSchema } from '../fields/fields.ts'
import type { GivenGraphql, HostGraphql } from '../graphql/host-graphql.ts'
import type { Hooks } from './hooks.ts'
import { GraphqlLimits, LiveLimits, ThrottleLimits, type GivenLimits } from './limits.ts'
import type { GivenMailTexts, readMailTexts } from './mail-texts.ts'
import type { Mail, MailTemplates } from './mail.ts'
import { PagesOptions, type GivenPages } from './pages.ts'
import { Without } from './parts.ts'
import type { GivenOrganizations, Organizations } from './organizations.ts'
import type { GivenPolicy, GivenRoles, Policy } from './policy.ts'
import type { Roles } from './roles.ts'
import type { GivenProviders, ProviderOption } from './providers.ts'
import { PasswordHash, type GivenPasswordHash } from './password-hash.ts'
import { storages, stores, type GivenStores, type StorageName, type StoreName } from './stores.ts'
import { Scan, type GivenScan } from './scan.ts'
import { signingAlgorithms, type SigningAlgorithm } from './signing-algorithm.ts'
import { Email, NewPassword } from '../strings/text.ts'
import type { ShownSetting } from '../admin/admin.ts'
import type { ClaimsOf } from '../access/claims.ts'
import type { UserFields } from '../users/user-fields.ts'
import type { Webhook, WebhookOptions } from './webhooks.ts'

const MIB = 1024 * 1024
const DAY = 86400

/** The options that are values, with their defaults and limits. */
export const Settings = Type.Object({
  decoratorName: Type.String({
    default: 'usher', minLength: 1, description: 'The name of the decorator that Usher adds to the host',
  }),
  actorName: Type.String({
    default: 'actor', pattern: '^[A-Za-z_$][\\w$]{0,39}$', description: 'The name of the request member with the actor',
  }),
  schema: Type.String({
    default: 'usher', pattern: '^[a-z_][a-z0-9_]{0,39}$', description: 'The PostgreSQL schema of the tables',
  }),
  poolSize: Type.Integer({
    default: 10,
    minimum: 2,
    maximum: 1000,
    description: 'Connections for statements; transactions open up to half as many more',
  }),
  publicUrl: Type.Optional(Type.String({ description: 'Base of absolute URLs; the prefix follows it' })),
  origins: Type.Array(Type.String(), {
    default: [],
    description: 'Further origins whose pages may use the session cookie and open sockets; `*` allows any origin, for sockets only',
  }),
  redirectTo: Type.Optional(
    Type.String({ description: 'The `Location` of GET /api/redirect; by default the users list' })
  ),
  admin: Type.Optional(Type.Object({
    email: Email,
    password: NewPassword,
  }, { description: 'The first admin, created if the database has no admin' })),
  issuer: Type.String({ default: 'usher', minLength: 1, description: '`iss` and `aud` of access tokens' }),
  accessTokenSeconds: Type.Integer({ default: 900, minimum: 1, maximum: 86400 }),
  stepUpSeconds: Type.Integer({
    default: 600,
    minimum: 10,
    maximum: DAY,
    description: 'For how long after an authentication a user may change what an account is protected with',
  }),
  secondFactor: Type.Unsafe<'optional' | 'admins' | 'everyone'>({
    type: 'string',
    enum: ['optional', 'admins', 'everyone'],
    default: 'optional',
    description: 'Who must have a second factor',
  }),
  sessionSeconds:
    Type.Integer({ default: 90 * DAY, minimum: 60, maximum: 400 * DAY, description: 'Maximum lifetime of a session' }),
  sessionIdleSeconds: Type.Integer({
    default: 30 * DAY, minimum: 60, maximum: 400 * DAY, description: 'Lifetime of a session that is not refreshed',
  }),
  signingKeySeconds: Type.Integer({
    default: 30 * DAY, minimum: 60, maximum: 400 * DAY, description: 'Age at which a new signing key is used',
  }),
  signingAlgorithm: Type.Optional(Type.Unsafe<SigningAlgorithm>({
    type: 'string',
    enum: signingAlgorithms,
    description: 'The algorithm of new signing keys; by default that of the existing ones, and EdDSA if there are none',
  })),
  secret: Type.Optional(Type.String({
    minLength: 16, maxLength: 1024, description: 'Encrypts the private signing keys and waiting mails in the database',
  })),
  formerSecret: Type.Optional(Type.String({
    minLength: 16,
    maxLength: 1024,
    description: 'Another secret, with which data can be decrypted while `secret` is changed',
  })),
  passwordTokenSeconds:
    Type.Integer({ default: 1800, minimum: 60, maximum: 7 * DAY, description: 'Lifetime of a link to set a password' }),
  passwordUrl: Type.Optional(Type.String({
    format: 'uri', pattern: '^https?:[^#]*$', description: 'The page on which users set a password; `#token=…` follows',
  })),
  passwordHash: PasswordHash,
  breachedPasswords: Type.Optional(BreachedPasswords),
  signUp: Type.Boolean({ default: false, description: 'Whether anyone may sign up; needs a mailer' }),
  loginMail: Type.Boolean({
    default: false, description: 'Whether users can log in by a link or a code of a mail; needs a mailer',
  }),
  pages: PagesOptions,
  console: Type.Boolean({ default: false, description: 'Whether there is a console for admins, at /console' }),
  auditSeconds: Type.Integer({
    default: 365 * DAY, minimum: DAY, maximum: 3650 * DAY, description: 'Lifetime of the entries of the account log',
  }),
  throttle: ThrottleLimits,
  live: LiveLimits,
  pingSeconds: Type.Number({
    default: 25,
    minimum: 0.01,
    maximum: 3600,
    description: 'Interval of checks whether clients of sockets and event streams are connected',
  }),
  bodyLimit: Type.Integer({
    default: MIB, minimum: 1024, maximum: 64 * MIB, description: 'The maximum size of a JSON body, in bytes',
  }),
  slowStatementMs: Type.Optional(
    Type.Integer({ minimum: 1, maximum: 3_600_000, description: 'Milliseconds after which a statement is logged' })
  ),
  bodySeconds: Type.Number({
    default: 30, minimum: 0.01, maximum: 3600, description: 'Seconds within which a JSON body must arrive',
  }),
  graphql: GraphqlLimits,
  without: Without,
  deadlines: Deadlines,
  hookSeconds: Type.Number({
    default: 10, minimum: 0.01, maximum: 60, description: 'Seconds that all hooks of an operation may take together',
  }),
  uploadsDir: Type.String({
    default: './data/uploads', minLength: 1, description: 'The folder of uploaded files; all nodes share it',
  }),
  ...stores,
  uploadsTo: Type.Optional(Type.Unsafe<StorageName>({
    type: 'string',
    enum: storages,
    description: 'Where new uploads are stored, while others are moved; by default in the store whose option is given',
  })),
  scan: Scan,
  uploadMaxBytes: Type.Integer({ default: 10 * MIB, minimum: 1, maximum: Number.MAX_SAFE_INTEGER }),
  uploadQuotaBytes: Type.Integer({
    default: 1024 * MIB,
    minimum: 0,
    maximum: Number.MAX_SAFE_INTEGER,
    description: 'Bytes that all uploads of a user may have together; 0 is no limit',
  }),
  uploadQuotaFiles: Type.Integer({
    default: 10_000,
    minimum: 0,
    maximum: Number.MAX_SAFE_INTEGER,
    description: 'Uploads that a user may have; 0 is no limit',
  }),
  unfinishedUploadSeconds: Type.Integer({
    default: DAY,
    minimum: 60,
    maximum: 7 * DAY,
    description: 'How long a resumable upload may be unfinished',
  }),
  unfinishedUploadsPerUser: Type.Integer({
    default: 20, minimum: 1, maximum: 1_000_000, description: 'Unfinished resumable uploads that a user may have',
  }),
  unfinishedUploadsPerNetwork: Type.Integer({
    default: 200, minimum: 1, maximum: 1_000_000, description: 'Unfinished resumable uploads of clients of one network',
  }),
  unfinishedUploads: Type.Integer({
    default: 10_000, minimum: 1, maximum: 1_000_000, description: 'Unfinished resumable uploads of all users together',
  }),
  postsPerHour: Type.Integer({
    default: 10_000,
    minimum: 0,
    maximum: Number.MAX_SAFE_INTEGER,
    description: 'Posts that a user may create in an hour; 0 is no limit',
  }),
  uploadIdleSeconds:
    Type.Number({ default: 30, minimum: 0.1, maximum: 3600, description: 'How long an upload may pause' }),
  uploadMinBytesPerSecond: Type.Integer({
    default: 1024,
    minimum: 1,
    maximum: MIB,
    description: 'Minimum rate of an upload in every period of `uploadIdleSeconds`',
  }),
})

export type Given = Static<typeof Settings>

type GroupName =
  StoreName | 'throttle' | 'live' | 'graphql' | 'pages' | 'passwordHash' | 'breachedPasswords' | 'scan' | 'deadlines'

/** The options of the plugin. Registering it with an unknown option fails. */
export interface UsherOptions extends PartialOrUndefined<Omit<Given, GroupName>>, GivenStores, RegisterOptions {
  /** The cost of password hashes. A member that is absent keeps its default, which OWASP recommends. */
  passwordHash?: GivenPasswordHash | undefined
  /** Where new passwords are looked up among those of breaches: a file, a service, or both, in this order. */
  breachedPasswords?: GivenBreachedPasswords | undefined
  /** How uploads are scanned before anybody can read them. A member that is absent keeps its default. */
  scan?: GivenScan | undefined
  /** Limits of logins, refreshes and password links. A limit that is absent keeps its default. */
  throttle?: GivenLimits<typeof ThrottleLimits> | undefined
  /** Limits of sockets, event streams and subscriptions of one node. A limit that is absent keeps its default. */
  live?: GivenLimits<typeof LiveLimits> | undefined
  /** How long Usher waits for what may not come, in milliseconds. A member that is absent keeps its default. */
  deadlines?: PartialOrUndefined<Deadlines> | undefined
  /**
   * Limits of GraphQL operations on one node, and what the host adds to /graphql. A limit that is absent keeps its
   * default.
   */
  graphql?: GivenGraphql | undefined
  /** The name, color, language and texts of the pages. A member that is absent keeps its default. */
  pages?: GivenPages | undefined
  /** The URL of the database, `postgres://…`. Either this or `sql` is required. */
  databaseUrl?: string | undefined
  /**
   * A postgres.js client that the host owns and closes. Usher opens its own connections with the settings of the
   * client.
   */
  sql?: Sql | undefined
  /**
   * The database URL of the connection that receives notifications; by default that of the statements. It is needed if
   * the statements go through a pooler in transaction mode.
   */
  notificationsUrl?: string | undefined
  /**
   * The database URLs of standbys, each of one server, that answer reads as long as they keep up with the primary. No
   * response is older than its request. The user of the database must be a member of `pg_read_all_stats` there.
   */
  replicaUrls?: readonly string[] | undefined
  /**
   * An mqemitter, such as mqemitter-redis, by which nodes announce new posts to each other rather than by PostgreSQL's
   * notifications. The host owns and closes it. A lost message delays a post by up to a second.
   */
  emitter?: Emitter | undefined
  /**
   * Rules that replace those of `schema/options/policy.ts`, and the rules of the host's own actions, such as
   * `bookmarks:create`.
   */
  policy?: GivenPolicy | undefined
  /**
   * Roles of users beside `admin` and `user`, each with the actions of the policy that it has, those of the host
   * included: `{ moderator: ['posts:delete', 'users:disable'] }`.
   */
  roles?: GivenRoles | undefined
  /** Organisations with members, roles and invitations: `true`, or their settings (contract 19). */
  organizations?: GivenOrganizations | boolean | undefined
  /** Functions that change or reject what is about to be written, or take part in its transaction. */
  hooks?: Hooks | undefined
  /**
   * Fields to add to users: a TypeBox object, whose members say with `x-read` and `x-write` who may read and write
   * them.
   */
  userFields?: FieldsSchema | undefined
  /** Returns claims to add to a user's access tokens. Runs at login and refresh. */
  claims?: ClaimsOf | undefined
  /** Sends a mail. Without it, users cannot reset their passwords or be invited to set a first one. */
  mailer?: Mailer | undefined
  /** Renders mails instead of Usher's templates. */
  mailTemplates?: MailTemplates | undefined
  /** Texts of mails by language: they replace Usher's, or add a language (contract 15.2). */
  mailTexts?: GivenMailTexts | undefined
  /** Providers with which users sign in, by their ids, such as `{ github: { clientId, clientSecret } }`. */
  providers?: GivenProviders | undefined
  /** URLs that receive events (contract 12.5). */
  webhooks?: readonly WebhookOptions[] | undefined
  /**
   * Receives the first admin, once. It is called if `admin` is absent and the database has no admin, so that one is
   * created.
   */
  onFirstAdmin?: ((admin: { email: string, password: string }) => void) | undefined
  /** Is called at start if the database has no admin and neither `admin` nor `onFirstAdmin` is given. */
  onNoAdmin?: (() => void) | undefined
  /**
   * Is called at start, instead of a warning in the log, if `admin` has no effect, because the database has another
   * admin.
   */
  onAdminIgnored?: (() => void) | undefined
  /** Is called at start, instead of a failure, for each role that users have and `roles` lacks. */
  onRoleInUse?: ((role: string, users: number) => void) | undefined
  /**
   * Returns what the console shows as the settings of the service. It must not have secrets. By default, there are
   * none.
   */
  shownSettings?: (() => readonly ShownSetting[]) | undefined
}

export type { Mail, MailContent, MailName, MailTemplates, MailValues } from './mail.ts'
/** Sends a mail. If it throws, Usher logs the error and tries again later. */
export type Mailer = (mail: Mail) => void | Promise<void>

/** The part of an mqemitter that Usher uses. */
export interface Emitter {
  on (topic: string, listener: EmitterListener, done?: () => void): unknown
  removeListener (topic: string, listener: EmitterListener, done?: () => void): unknown
  emit (message: { topic: string }, done?: (error?: Error) => void): unknown
}
type EmitterListener = (message: { topic: string }, done: () => void) => void

// Allows undefined, for hosts that compile with exactOptionalPropertyTypes and pass on values that may be undefined.
type PartialOrUndefined<Members> = { [Name in keyof Members]?: Members[Name] | undefined }

/** The validated options, with their defaults. They are frozen. */
export interface Options extends Readonly<Given> {
  /** The whole path under which Usher is mounted, such as `/accounts`. It is empty at the root. */
  readonly prefix: string
  /** The path under which clients reach Usher: that of `publicUrl`, which a proxy removes, and the prefix. */
  readonly publicPath: string
  readonly database: string | Sql
  readonly notificationsUrl: string | undefined
  readonly replicaUrls: readonly string[]
  readonly emitter: Emitter | undefined
  readonly policy: Policy
  readonly roles: Roles
  /** Undefined if the service has none. */
  readonly organizations: Organizations | undefined
  /** What the host adds to /graphql. */
  readonly hostGraphql: HostGraphql | undefined
  readonly hooks: Hooks
  readonly userFields: UserFields
  readonly claims: ClaimsOf | undefined
  readonly mailer: Mailer | undefined
  readonly mailTemplates: MailTemplates | undefined
  readonly mailTexts: ReturnType<typeof readMailTexts> | undefined
  readonly providers: readonly ProviderOption[]
  readonly webhooks: readonly Webhook[]
  readonly onFirstAdmin: UsherOptions['onFirstAdmin']
  readonly onNoAdmin: UsherOptions['onNoAdmin']
  readonly onAdminIgnored: UsherOptions['onAdminIgnored']
  readonly onRoleInUse: UsherOptions['onRoleInUse']
  readonly shownSettings: UsherOptions['shownSettings']
}
