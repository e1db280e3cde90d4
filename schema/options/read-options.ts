import { Type, type TSchema } from '@sinclair/typebox'
import type { RegisterOptions } from 'fastify'
import type { Sql } from 'postgres'
import { explainDatabaseUrl, parseDatabaseUrl } from './database-url.ts'
import { readHooks } from './hooks.ts'
import { readGraphql } from '../graphql/host-graphql.ts'
import { Settings, type Given, type Options, type UsherOptions } from './options.ts'
import { dropToolOptions } from './option-names.ts'
import { normalizeOrigin } from '../http/origin.ts'
import { isPublicUrl, pathOf, withoutSlash, PUBLIC_URL_FORMAT } from './public-url.ts'
import { organizationRules, readOrganizations } from './organizations.ts'
import { readMailTexts } from './mail-texts.ts'
import { actionsOf, isHostAction, isOwnAction, policyOf, type GivenPolicy } from './policy.ts'
import { readUserFields } from '../users/read-user-fields.ts'
import { createParser } from '../http/validator.ts'
import { readProviders } from './providers.ts'
import { readRoles } from './roles.ts'
import { readWebhooks } from './webhooks.ts'

// Each gets as many connections as the primary.
const MAX_REPLICAS = 16

/**
 * Returns the options with their defaults. Throws an `Error` that says what is wrong if an option is invalid or
 * unknown.
 */
export function readOptions (given: UsherOptions): Options & Pick<RegisterOptions, 'logLevel' | 'logSerializers'> {
  const {
    prefix, logLevel, logSerializers, databaseUrl, sql, notificationsUrl, replicaUrls, emitter, policy: rules = {},
    roles: givenRoles, mailer, mailTemplates, mailTexts, webhooks, onFirstAdmin, onNoAdmin, onAdminIgnored, onRoleInUse,
    shownSettings, hooks, userFields, claims, providers, organizations: givenOrganizations, ...rest
  } = dropToolOptions(given, optionError)
  if (emitter !== undefined && !isEmitter(emitter)) throw optionError('emitter must be an mqemitter')
  if (mailer !== undefined && typeof mailer !== 'function') throw optionError('mailer must be a function')
  if (rest.signUp === true && mailer === undefined) {
    throw optionError('signUp needs the option mailer, because users are created by a link in a mail')
  }
  if (rest.loginMail === true && mailer === undefined) {
    throw optionError('loginMail needs the option mailer, because the link and the code to log in are mailed')
  }
  if (mailTemplates !== undefined && typeof mailTemplates !== 'function') {
    throw optionError('mailTemplates must be a function')
  }
  if (typeof rest.publicUrl === 'string' && !isPublicUrl(rest.publicUrl)) {
    throw optionError(`publicUrl must be ${PUBLIC_URL_FORMAT}`)
  }
  const { limits, host: hostGraphql } = readGraphql(rest.graphql)
  if (ofFastify.has(String(rest.actorName))) {
    throw optionError(`actorName ${rest.actorName} is a member of Fastify's requests: choose another name`)
  }
  if (onFirstAdmin !== undefined && typeof onFirstAdmin !== 'function') {
    throw optionError('onFirstAdmin must be a function')
  }
  if (onNoAdmin !== undefined && typeof onNoAdmin !== 'function') throw optionError('onNoAdmin must be a function')
  if (onAdminIgnored !== undefined && typeof onAdminIgnored !== 'function') {
    throw optionError('onAdminIgnored must be a function')
  }
  if (onRoleInUse !== undefined && typeof onRoleInUse !== 'function') {
    throw optionError('onRoleInUse must be a function')
  }
  if (shownSettings !== undefined && typeof shownSettings !== 'function') {
    throw optionError('shownSettings must be a function')
  }
  if (claims !== undefined && typeof claims !== 'function') throw optionError('claims must be a function')
  const isOrigin = (text: string) => text === '*' || normalizeOrigin(text) !== undefined
  if (Array.isArray(rest.origins) && !rest.origins.every((origin) => isOrigin(`${origin}`))) {
    throw optionError('origins must be origins such as https://app.example.com or capacitor://localhost, ' +
      'without wildcards, or *')
  }
  const parsed = parseLimits({ ...rest, graphql: limits })
  const { uploadsTo = 'folder' } = parsed
  if (uploadsTo !== 'folder' && !parsed[uploadsTo]) throw optionError(`uploadsTo ${uploadsTo} needs the option ${uploadsTo}`)
  const path = readPrefix(prefix)
  checkPolicy(rules)
  const actions = actionsOf(rules)
  const roles = readRoles(givenRoles, actions)
  const organizations = readOrganizations(givenOrganizations, actions)
  return Object.freeze({
    ...parsed,
    ...parsed.publicUrl !== undefined && { publicUrl: withoutSlash(parsed.publicUrl) },
    prefix: path,
    publicPath: `${pathOf(parsed.publicUrl)}${path}`,
    database: readDatabase(databaseUrl, sql),
    notificationsUrl: notificationsUrl === undefined
      ? undefined
      : readDatabaseUrl('notificationsUrl', notificationsUrl),
    replicaUrls: readReplicaUrls(replicaUrls),
    emitter,
    policy: policyOf(rules, roles, organizations && organizationRules(organizations)),
    organizations,
    roles,
    hostGraphql,
    hooks: readHooks(hooks),
    userFields: readUserFields(userFields),
    claims,
    logLevel,
    logSerializers,
    mailer,
    mailTemplates,
    mailTexts: mailTexts === undefined ? undefined : readMailTexts(mailTexts, optionError),
    providers: readProviders(providers, parsed),
    webhooks: readWebhooks(webhooks),
    onFirstAdmin,
    onNoAdmin,
    onAdminIgnored,
    onRoleInUse,
    shownSettings,
  })
}

// Members that Fastify sets on each request, so it would not notice that a decorator replaces them.
const ofFastify: ReadonlySet<string> =
  new Set(['id', 'params', 'raw', 'query', 'log', 'body', 'headers', 'server', 'validationContext'])

const optionError = (message: string) => new Error(`usher: ${message}`)

// By the schemas, as JSON. Compiled when an option is given for the first time, because compiling all of them would
// take longer than the rest of the start, and kept, because a process may register the plugin many times.
const parsers = new Map<string, ReturnType<typeof createParser>>()

function parseLimits (given: object): Given {
  const problems: string[] = []
  const options = Object.entries(Settings.properties).map(([name, schema]) => {
    const value: unknown = Reflect.get(given, name)
    if (value === undefined) return [name, defaultOf(schema)]
    if (isObviouslyValid(schema, value)) return [name, withDefaults(schema, value)]
    const asked = Type.Object({ [name]: withoutAbsent(schema, value) })
    const key = JSON.stringify(asked)
    const parse = parsers.get(key) ?? createParser(asked)
    parsers.set(key, parse)
    try {
      return [name, withDefaults(schema, parse({ [name]: value })[name])]
    } catch (error) {
      problems.push((error as Error).message)
      return [name]
    }
  })
  if (problems.length > 0) throw optionError(problems.join('; '))
  return Object.fromEntries(options) as Given
}

// Returns whether a value is valid without a compiled schema. What is not obvious, the compiled schema decides, and
// says what is wrong.
function isObviouslyValid (schema: TSchema, value: unknown): boolean {
  const { type, properties, required = [], minimum = -Infinity, maximum = Infinity, ...others } = schema
  if (!Object.keys(others).every((keyword) => annotations.has(keyword))) return false
  if (type === 'boolean') return typeof value === 'boolean'
  if (type === 'integer' || type === 'number') {
    const isNumber = type === 'integer' ? Number.isInteger : Number.isFinite
    return isNumber(value) && Number(value) >= minimum && Number(value) <= maximum
  }
  const members = type === 'object' && properties ? membersOf(value) : undefined
  if (members === undefined) return false
  const isAbsent = (name: string) => members[name] === undefined && properties[name].default === undefined
  return !required.some(isAbsent) && Object.entries(members).every(([name, member]) =>
    Object.hasOwn(properties, name) && (member === undefined || isObviouslyValid(properties[name], member)))
}

const annotations: ReadonlySet<string> = new Set(['default', 'description', 'additionalProperties'])

// Returns the members that the validator sees, or undefined if the value is no object.
const membersOf = (value: unknown): Record<string, unknown> | undefined =>
  typeof value === 'object' && value !== null && !Array.isArray(value) ? { ...value } : undefined

// Returns the schema without the optional members that a value does not have. Pages have hundreds of texts, whose
// schemas take a third of a second to compile.
function withoutAbsent (schema: TSchema, value: unknown): TSchema {
  const { properties, required = [], ...others } = schema
  const members = membersOf(value)
  if (!properties || !members) return schema
  const names = Object.keys(properties).filter((name) => Object.hasOwn(members, name))
  return {
    ...others,
    properties: Object.fromEntries(names.map((name) => [name, withoutAbsent(properties[name], members[name])])),
    required: required.filter((name: string) => properties[name].default === undefined),
  }
}

// Returns a valid value with the defaults of the members that it does not have.
function withDefaults (schema: TSchema, value: unknown): unknown {
  const properties: Record<string, TSchema> | undefined = schema['properties']
  const given = membersOf(value)
  if (!properties || !given) return value
  const members = Object.entries(properties).map(([name, member]) =>
    [name, given[name] === undefined ? defaultOf(member) : withDefaults(member, given[name])] as const)
  return { ...given, ...Object.fromEntries(members.filter(([, member]) => member !== undefined)) }
}

function defaultOf ({ default: value, properties }: TSchema): unknown {
  const members = Object.entries((value === undefined ? {} : properties ?? {}) as Record<string, TSchema>)
  if (members.length === 0) return structuredClone(value)
  const defaults = members.map(([name, schema]) => [name, defaultOf(schema)]).filter(([, value]) => value !== undefined)
  return { ...Object.fromEntries(defaults), ...value as object }
}

// As in Fastify, the leading slash is optional, and a trailing slash makes no difference.
function readPrefix (prefix: unknown = ''): string {
  if (typeof prefix === 'string' && /^\/?([\w.~-]+\/)*[\w.~-]*$/.test(prefix)) {
    return prefix.replace(/^(?=[^/])/, '/').replace(/\/$/, '')
  }
  throw optionError('prefix must be a path such as /accounts')
}

function readDatabase (databaseUrl: unknown, sql: Sql | undefined): string | Sql {
  if (sql !== undefined && databaseUrl !== undefined) {
    throw optionError('databaseUrl and sql exclude each other: pass only one of them')
  }
  if (sql !== undefined) return readClient(sql)
  if (databaseUrl === undefined || databaseUrl === '') throw optionError('databaseUrl or sql is required')
  return readDatabaseUrl('databaseUrl', databaseUrl)
}

function readReplicaUrls (given: unknown): readonly string[] {
  if (given === undefined) return []
  if (!Array.isArray(given)) throw optionError('replicaUrls must be an array of URLs')
  if (given.length > MAX_REPLICAS) throw optionError(`replicaUrls can name ${MAX_REPLICAS} standbys at most`)
  const urls = given.map((url) => readDatabaseUrl('each of replicaUrls', url))
  if (urls.some((url) => parseDatabaseUrl(url).hosts.length > 1)) {
    throw optionError('each of replicaUrls must have one host: give each standby a URL of its own')
  }
  if (new Set(urls).size < urls.length) throw optionError('replicaUrls names a standby twice')
  return Object.freeze(urls)
}

function readDatabaseUrl (name: string, given: unknown): string {
  const problem = typeof given === 'string' ? explainDatabaseUrl(given) : ''
  if (typeof given === 'string' && problem === undefined) return given
  // The message does not contain the value, because it may contain a password.
  const advice = problem && `. ${problem}`
  throw optionError(`${name} must be a URL such as postgres://user:password@host:5432/database${advice}`)
}

function isEmitter (given: unknown): boolean {
  if (typeof given !== 'object' || given === null) return false
  return ['on', 'removeListener', 'emit'].every((name) => typeof Reflect.get(given, name) === 'function')
}

function readClient (sql: Sql): Sql {
  const isClient = typeof sql === 'function' && typeof sql.unsafe === 'function' && sql.options
  if (!isClient) throw optionError('sql must be a client created by postgres.js')
  return sql
}

function checkPolicy (rules: GivenPolicy): void {
  for (const [action, rule] of Object.entries(rules)) {
    if (!isOwnAction(action) && !isHostAction(action)) throw optionError(`policy has no action ${action}`)
    if (typeof rule !== 'function') throw optionError(`policy must have a function for ${action}`)
  }
}
