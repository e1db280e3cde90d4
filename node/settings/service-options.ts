import { join, resolve } from 'node:path'
import type { UsherOptions } from '../../schema/options/options.ts'
import { storeNames, type GivenStores, type StoreName } from '../../schema/options/stores.ts'
import { multiplyDeadlines } from '../../schema/options/deadlines.ts'
import { audiences, type GivenPolicy } from '../../schema/options/policy.ts'
import { actionsOfSetting, ownOptions } from './config-values.ts'
import { providersOf } from './providers.ts'
import { optionOfSetting } from './schema.ts'
import type { Settings } from './settings.ts'
import { requiredSettingsOf, settingsOfStore, type StoreSetting } from './stores.ts'

type Name = keyof typeof optionOfSetting

// What only nodes have: a command neither serves requests, nor sends mails of sign-ups, nor reads on standbys.
const ofNodes = [
  'REPLICA_URLS', 'SLOW_STATEMENT_MS', 'SIGN_UP', 'LOGIN_MAIL', 'CONSOLE', 'CORS_ORIGIN', 'UPLOAD_QUOTA_BYTES',
  'UPLOAD_QUOTA_FILES', 'POSTS_PER_HOUR',
] as const satisfies Name[]
// Whatever opens the data decides about these, `storageOf` about the storage, and the place of a file depends on more.
const decided = [
  'DATABASE_URL', 'SECRET', 'POOL_SIZE', 'ADMIN_EMAIL', 'ADMIN_PASSWORD', 'UPLOAD_MAX_BYTES', 'UPLOADS_TO',
  'BREACHED_PASSWORDS_FILE', 'BREACHED_PASSWORDS_URL',
] as const satisfies Name[]

type OfAll = Exclude<Name, typeof ofNodes[number] | typeof decided[number] | StoreSetting>
const others: ReadonlySet<string> = new Set([...ofNodes, ...decided, ...storeNames.flatMap(settingsOfStore)])
const ofAll = Object.keys(optionOfSetting).filter((name): name is OfAll => !others.has(name))

/**
 * Returns the options of the plugin that settings give to nodes and to commands alike. A command with another
 * lifetime of tokens, for example, would delete signing keys and ended sessions while nodes need them.
 */
export function serviceOptions (settings: Settings) {
  const own = ownOptions(settings.file?.options ?? {})
  const given = optionsOf(settings, ofAll)
  return {
    ...own,
    ...given,
    // A failover may begin when the database has answered.
    deadlines: {
      ...multiplyDeadlines(settings.DEADLINE_FACTOR),
      databaseFailover: Math.max(1, settings.DATABASE_WAIT_SECONDS * 1000),
      ...own.deadlines,
    },
    pages: { ...own.pages, ...given.pages },
    live: { ...own.live, ...given.live },
    breachedPasswords: breachedPasswordsOf(settings),
    providers: providersOf(settings),
    policy: policyOf(settings),
  } satisfies UsherOptions
}

function breachedPasswordsOf (settings: Settings) {
  const { BREACHED_PASSWORDS_FILE: file, BREACHED_PASSWORDS_URL: url } = settings
  if (file === undefined && url === undefined) return undefined
  return { file: file === undefined ? undefined : pathIn(settings, file), url }
}

/** Returns the options of the plugin that settings give to nodes only. */
export const nodeOptions = (settings: Settings) => optionsOf(settings, ofNodes) satisfies UsherOptions

type Nested<Path extends string, Value> = Path extends `${infer Group}.${infer Rest}`
  ? { [Name in Group]: Nested<Rest, Value> }
  : { [Name in Path]: Value }
type Intersection<Union> =
  (Union extends unknown ? (one: Union) => void : never) extends (all: infer All) => void ? All : never
type OptionsOf<Names extends Name> =
  Intersection<{ [One in Names]: Nested<typeof optionOfSetting[One], Settings[One]> }[Names]>

// Returns the options that settings set, each at its place. Those who call it let the compiler compare the types.
function optionsOf<Names extends Name> (settings: Settings, names: readonly Names[]): OptionsOf<Names> {
  const options: Record<string, unknown> = {}
  for (const name of names) {
    const path = optionOfSetting[name].split('.')
    const last = path.pop()!
    const group = path.reduce<Record<string, unknown>>((parent, key) =>
      (parent[key] ??= {}) as Record<string, unknown>, options)
    group[last] = settings[name]
  }
  return options as OptionsOf<Names>
}

/** Returns the absolute path of a file or a folder that a setting names. */
export const pathIn = ({ place }: Pick<Settings, 'place'>, path: string): string => resolve(place?.cwd ?? '', path)

/** Returns the folder of the node's data. */
export const dataDirOf = (settings: Pick<Settings, 'DATA_DIR' | 'place'>): string => pathIn(settings, settings.DATA_DIR)

/** Returns the options of the plugin that select where uploads are. */
export function storageOf (settings: Settings) {
  return {
    uploadsDir: pathIn(settings, settings.file?.options.uploadsDir ?? join(settings.DATA_DIR, 'uploads')),
    ...storesOf(settings),
    uploadsTo: settings.UPLOADS_TO,
    uploadMaxBytes: settings.UPLOAD_MAX_BYTES,
  } satisfies UsherOptions
}

/** Returns the options of the stores whose settings are given. Settings that were checked have all members or none. */
export function storesOf (settings: Settings): GivenStores {
  return Object.assign({}, ...givenStores(settings).map((store) => optionsOf(settings, settingsOfStore(store))))
}

/** Returns the stores whose settings are given. */
export function givenStores (settings: Settings): StoreName[] {
  return storeNames.filter((store) => requiredSettingsOf(store).every((name) => settings[name]))
}

/**
 * Returns the options that say which PostgreSQL schema has the tables: by default that of the configuration file, or of
 * the plugin.
 */
export function schemaOf ({ file }: Pick<Settings, 'file'>, schema = file?.options.schema) {
  return { databaseUrl: 'postgres://localhost', ...schema !== undefined && { schema } } satisfies UsherOptions
}

// Returns the rules of who may do and read what (contract 11.1). Those of the file replace what settings do not give.
function policyOf (settings: Settings): GivenPolicy {
  const rules = Object.entries(actionsOfSetting).flatMap(([name, actions]) =>
    actions.map((action) => [action, audiences[settings[name as keyof typeof actionsOfSetting]]]))
  return { ...Object.fromEntries(rules), ...settings.file?.options.policy }
}
