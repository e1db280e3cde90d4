import { resolve } from 'node:path'
import postgres from 'postgres'
import { DatabaseUnavailable } from '../schema/errors.ts'
import type { Settings } from './settings.ts'

/** The database and files of the settings. */
export interface Data {
  readonly url: string
  /** Where they are, in words. */
  readonly location: string
  /** Encrypts the private signing keys; undefined if they are stored in plain text. */
  readonly secret: string | undefined
  stop (): Promise<void>
}

// The options of the plugin that come from settings: what it says of one is said of the other.
const settingOf = {
  'admin.email': 'ADMIN_EMAIL',
  'admin.password': 'ADMIN_PASSWORD',
  publicUrl: 'PUBLIC_URL',
  uploadsDir: 'DATA_DIR',
  secret: 'SECRET',
  passwordUrl: 'PASSWORD_URL',
  notificationsUrl: 'NOTIFICATIONS_URL',
}

/** Opens the data: with no `DATABASE_URL` an embedded PostgreSQL is started, unless it runs already. */
export async function openData ({ DATABASE_URL, DATA_DIR, SECRET }: Settings, log: (line: string) => void): Promise<Data> {
  const folder = resolve(DATA_DIR)
  if (DATABASE_URL) return { url: DATABASE_URL, location: `database ${nameOf(DATABASE_URL)}, uploads in ${folder}`, secret: SECRET, stop: async () => {} }
  // Not loaded by a node that uses another server.
  const [{ startEmbedded }, { readSecret }] = await Promise.all([import('./embedded/server.ts'), import('./secret.ts')])
  const { url, stop } = await startEmbedded({ dataDir: folder, log })
  try {
    return { url, location: `${folder} (embedded PostgreSQL)`, secret: SECRET ?? await readSecret(folder), stop }
  } catch (error) {
    await stop()
    throw error
  }
}

/** One sentence on why something cannot be done with these settings. */
export function explain (error: Error, { DATABASE_URL }: Settings): string {
  if (DATABASE_URL && error instanceof DatabaseUnavailable) {
    return `DATABASE_URL: ${nameOf(DATABASE_URL)} cannot be reached (${(error.cause as NodeJS.ErrnoException | undefined)?.code ?? 'it does not answer'}).`
  }
  if (DATABASE_URL && error instanceof postgres.PostgresError) return `DATABASE_URL: ${nameOf(DATABASE_URL)} refuses: ${error.message}.`
  return Object.entries(settingOf).reduce((message, [option, setting]) => message.replace(`usher: ${option} `, `${setting} `), error.message)
}

// Without the user and the password.
function nameOf (databaseUrl: string): string {
  const { database, host, port } = postgres(databaseUrl).options
  return `"${database}" on ${host.map((name, index) => `${name}:${port[index]}`).join(', ')}`
}
