import { existsSync } from 'node:fs'
import { join } from 'node:path'
import postgres from 'postgres'
import { readPlace } from '../db/driver/client.ts'
import { isReadOnly, StartError } from '../db/driver/start-errors.ts'
import { DatabaseUnavailable } from '../schema/http/errors.ts'
import { placeOfStore, storeNames } from '../schema/options/stores.ts'
import { multiplyNodeDeadlines } from './process/deadlines.ts'
import type { Settings } from './settings/settings.ts'
import { explainOption } from './config/config-file.ts'
import { settingOf } from './settings/config-values.ts'
import { optionOfSetting } from './settings/schema.ts'
import { dataDirOf, givenStores, storesOf } from './settings/service-options.ts'
import { maxConnectionsFor, workersOf } from './workers/count.ts'

/** The database and the files that the settings name. */
export interface Data {
  readonly url: string
  /** A description of where the data are, for people. */
  readonly location: string
  /** Encrypts the private signing keys; undefined if they are stored in plain text. */
  readonly secret: string | undefined
  stop (): Promise<void>
}

// The options of the plugin that come from settings. In error messages of the plugin, the setting replaces the option.
const optionNames: Readonly<Record<string, string>> = {
  ...Object.fromEntries(Object.entries(optionOfSetting).map(([setting, option]) => [option, setting])),
  uploadsDir: 'DATA_DIR',
}

/** Returns whether the settings name a database, or an embedded one that exists. */
export function hasDatabase (settings: Settings): boolean {
  return settings.DATABASE_URL !== undefined || existsSync(join(dataDirOf(settings), 'postgres'))
}

/**
 * Throws an `Error` with a sentence if the settings name an embedded database that does not exist, so that a command
 * creates none.
 */
export function requireDatabase (settings: Settings): void {
  if (hasDatabase(settings)) return
  throw new Error(`There is no database in ${dataDirOf(settings)}: check DATA_DIR, or set DATABASE_URL.`)
}

/** Returns where the data are. Without `DATABASE_URL`, starts the embedded PostgreSQL if it does not run yet. */
export async function openData (settings: Settings, log: (line: string) => void): Promise<Data> {
  const { DATABASE_URL, SECRET } = settings
  const folder = dataDirOf(settings)
  if (DATABASE_URL) {
    return {
      url: DATABASE_URL,
      location: `database ${nameOf(DATABASE_URL)}, uploads in ${placeOfUploads(settings)}`,
      secret: SECRET,
      stop: async () => {},
    }
  }
  // A node that uses another server does not load the embedded one.
  const [{ startEmbedded }, { readSecret }] =
    await Promise.all([import('./embedded/server.ts'), import('./settings/secret.ts')])
  const maxConnections = maxConnectionsFor(workersOf(settings), settings.POOL_SIZE)
  const { url, stop } = await startEmbedded({
    dataDir: folder,
    log,
    settings: { max_connections: `${maxConnections}` },
    deadlines: multiplyNodeDeadlines(settings.DEADLINE_FACTOR),
  })
  try {
    const uploads = givenStores(settings).length > 0 ? `, uploads in ${placeOfUploads(settings)}` : ''
    return { url, location: `${folder} (embedded PostgreSQL)${uploads}`, secret: SECRET ?? await readSecret(folder), stop }
  } catch (error) {
    await stop()
    throw error
  }
}

// Returns where new uploads are stored, for people.
function placeOfUploads (settings: Settings): string {
  const { UPLOADS_TO = givenStores(settings).at(-1) ?? 'folder' } = settings
  return (UPLOADS_TO === 'folder' ? undefined : placeOfStore(UPLOADS_TO, storesOf(settings))) ?? dataDirOf(settings)
}

/**
 * Returns a sentence for an error, which names the setting at fault if there is one, or the option and its place in the
 * configuration file.
 */
export function explain (error: Error, { DATABASE_URL, file, given = [] }: Settings): string {
  if (DATABASE_URL && error instanceof DatabaseUnavailable) {
    const { code } = (error.cause ?? {}) as NodeJS.ErrnoException
    if (isReadOnly({ code })) {
      return `DATABASE_URL: ${nameOf(DATABASE_URL)} accepts no writes: it is a standby, or set to read only.`
    }
    if (error.cause instanceof postgres.PostgresError) {
      return `DATABASE_URL: ${nameOf(DATABASE_URL)} reports: ${error.cause.message}.`
    }
    return `DATABASE_URL: ${nameOf(DATABASE_URL)} cannot be reached (${code ?? 'it does not respond'}).`
  }
  const { message, cause } = error instanceof StartError ? error : { message: '', cause: error }
  const isExplained = message !== '' && !/^(28|3D)/.test((cause as { code?: string } | undefined)?.code ?? '')
  if (DATABASE_URL && isExplained) return `DATABASE_URL: ${nameOf(DATABASE_URL)}: ${message.replace('usher: ', '')}.`
  if (DATABASE_URL && cause instanceof postgres.PostgresError) {
    return `DATABASE_URL: ${nameOf(DATABASE_URL)} reports: ${cause.message}.`
  }
  const [, option = ''] = /^usher: ([\w$.]+)/.exec(error.message) ?? []
  const isOfFile = file && !given.includes(settingOf(option) ?? '')
  const ofFile = isOfFile ? explainOption(file, error.message) : undefined
  return ofFile ?? toSettings(error.message)
}

/** Returns a message of the plugin with settings in place of options. */
export function toSettings (message: string): string {
  const store = storeNames.find((name) => message.startsWith(`usher: ${name}.`))
  return Object.entries(optionNames).reduce((text, [option, setting]) => {
    const named = text.replace(`usher: ${option} `, `${setting} `)
    // These sentences name several options.
    return store && option.startsWith(`${store}.`) ? named.replaceAll(option, setting) : named
  }, message)
}

/** Returns the database and its hosts, without the user and the password. */
export function nameOf (databaseUrl: string): string {
  const { database, host, port } = readPlace(databaseUrl)
  return `"${database}" on ${host.map((name, index) => `${name}:${port[index]}`).join(', ')}`
}
