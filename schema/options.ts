import { Type, type Static } from '@sinclair/typebox'
import type { Sql } from 'postgres'
import { policy, type Policy } from './policy.ts'
import { createCheck } from './validator.ts'

const MIB = 1024 * 1024

const Settings = Type.Object({
  decoratorName: Type.String({ default: 'usher', minLength: 1, description: 'What the host finds Usher under' }),
  schema: Type.String({ default: 'usher', pattern: '^[a-z_][a-z0-9_]{0,39}$', description: 'The Postgres schema of its tables' }),
  poolSize: Type.Integer({ default: 10, minimum: 2, maximum: 1000, description: 'Connections to the database' }),
  publicUrl: Type.Optional(Type.String({ format: 'uri', description: 'Base of the absolute URLs in answers; the prefix follows it' })),
  origins: Type.Array(Type.String(), { default: [], description: 'Origins, besides its own, that the session cookie serves' }),
  redirectTo: Type.Optional(Type.String({ description: 'Where GET /api/redirect leads; by default the users list' })),
  admin: Type.Optional(Type.Object({
    email: Type.String({ format: 'email', maxOctets: 254 }),
    password: Type.String({ minLength: 8, maxLength: 256 }),
  }, { description: 'The first admin, made where there is none' })),
  issuer: Type.String({ default: 'usher', minLength: 1, description: '`iss` and `aud` of access tokens' }),
  accessTokenSeconds: Type.Integer({ default: 900, minimum: 1, maximum: 86400 }),
  sessionSeconds: Type.Integer({ default: 90 * 86400, minimum: 60, maximum: 400 * 86400 }),
  bodyLimit: Type.Integer({ default: MIB, minimum: 1024, maximum: 64 * MIB, description: 'Octets of a JSON body' }),
  uploadsDir: Type.String({ default: './data/uploads', minLength: 1, description: 'Where uploads are kept; shared by the nodes' }),
  uploadMaxBytes: Type.Integer({ default: 10 * MIB, minimum: 1, maximum: Number.MAX_SAFE_INTEGER }),
})

/** The options of the plugin. */
export interface UsherOptions extends Partial<Static<typeof Settings>> {
  /** The path everything is mounted under, such as `/accounts`. */
  prefix?: string
  /** `postgres://…`. Either this or `sql`. */
  databaseUrl?: string | undefined
  /** A postgres.js client that the host owns, and closes. */
  sql?: Sql
  /** Rules to replace those of `schema/policy.ts`. */
  policy?: Partial<Policy>
  /** Without `admin`, and with no admin in the database: one is made and told to this function, once. */
  onFirstAdmin?: (admin: { email: string, password: string }) => void
}

/** The options with their defaults, checked and frozen. */
export interface Options extends Readonly<Static<typeof Settings>> {
  readonly prefix: string
  readonly database: string | Sql
  readonly policy: Policy
  readonly onFirstAdmin: UsherOptions['onFirstAdmin']
}

const check = createCheck(Settings)

/** Throws an `Error` of one sentence that names what is wrong. */
export function readOptions (given: UsherOptions): Options {
  const { prefix = '', databaseUrl, sql, policy: rules, onFirstAdmin, ...rest } = given
  if (prefix !== '' && !/^(\/[\w.~-]+)+$/.test(prefix)) throw new Error('usher: prefix must be a path such as /accounts')
  const database = sql ?? databaseUrl
  if (!database) throw new Error('usher: databaseUrl or sql is required')
  const settings = structuredClone(rest)
  try {
    check(settings)
  } catch (error) {
    throw new Error(`usher: ${(error as Error).message}`)
  }
  return Object.freeze({
    ...settings as Static<typeof Settings>,
    prefix,
    database,
    policy: { ...policy, ...rules },
    onFirstAdmin,
  })
}
