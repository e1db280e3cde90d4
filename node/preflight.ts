import { lookup } from 'node:dns/promises'
import { access, constants, stat, statfs } from 'node:fs/promises'
import { dirname } from 'node:path'
import { readOptions } from '../schema/options/read-options.ts'
import { explain } from './data.ts'
import { checkEnvironment } from './settings/environment.ts'
import { explainMetrics } from './metrics/address.ts'
import { requireFree } from './http/listeners.ts'
import { openMailTemplates } from './mail/templates.ts'
import { explainPasswordMemory } from './process/password-memory.ts'
import { explainStorage } from './storage.ts'
import { dataDirOf } from './settings/service-options.ts'
import type { Settings } from './settings/settings.ts'
import { storageSettings } from './settings/stores.ts'
import type { Shell } from './terminal/shell.ts'

// The type of the file system of /proc.
const PROC = 0x9fa0

/**
 * Returns the settings for a start, from the environment and from `.env`. Before anything is created, it checks all of
 * them, and whether the node can listen, has its folder and can use its stores of uploads (contract 14.5). Throws an
 * `Error` with a sentence for each problem, one per line.
 */
export async function readStartSettings (shell: Shell): Promise<Settings> {
  const { settings, errors, warnings } = await checkEnvironment(shell)
  if (warnings.length > 0) shell.messages.printWarning(...warnings)
  const isValid = (...names: string[]) => !errors.some((error) => names.some((name) => error.startsWith(`${name} `)))
  const isStorageValid = isValid(...storageSettings)
  const checks = [
    isValid('HOST', 'PORT') && checkPort(settings),
    isValid('METRICS_HOST', 'METRICS_PORT') && checkMetricsPort(settings),
    isValid('DATA_DIR') && checkFolder(settings),
    isStorageValid && explainStorage(settings),
    isValid('MAIL_TEMPLATES') && checkTemplates(settings),
    isValid('ADMIN_EMAIL', 'ADMIN_PASSWORD') && checkAdmin(settings),
    isValid('PASSWORD_HASH_MEMORY_KIB', 'WORKERS') && explainPasswordMemory(settings),
  ]
  const problems = [...errors, ...(await Promise.all(checks)).filter((problem) => typeof problem === 'string')]
  if (problems.length > 0) throw new Error(problems.join('\n'))
  return settings
}

/** Returns a sentence that explains why the node cannot listen. */
export function explainListening (
  { code }: NodeJS.ErrnoException, { HOST, PORT }: Pick<Settings, 'HOST' | 'PORT'>
): string {
  if (code === 'EADDRINUSE') {
    return `PORT ${PORT} is in use on ${HOST}: stop the program that uses it, or set another PORT (0 for any free one).`
  }
  const advice = code === 'EACCES' && PORT < 1024 ? ' Ports below 1024 need a privilege, or a proxy in front.' : ''
  return `The node cannot listen on HOST ${HOST} with PORT ${PORT} (${code}): set another HOST or PORT.${advice}`
}

async function checkPort (settings: Settings): Promise<string | undefined> {
  try {
    const { address } = await lookup(settings.HOST)
    await requireFree(address, settings.PORT)
  } catch (error) {
    return explainListening(error as NodeJS.ErrnoException, settings)
  }
}

async function checkMetricsPort ({ METRICS_HOST, METRICS_PORT }: Settings): Promise<string | undefined> {
  try {
    if (METRICS_PORT !== undefined) await requireFree(METRICS_HOST, METRICS_PORT)
  } catch (error) {
    return explainMetrics(error as NodeJS.ErrnoException, { host: METRICS_HOST, port: METRICS_PORT! })
  }
}

// The folder need not exist, but then it must be possible to create it.
async function checkFolder (settings: Settings): Promise<string | undefined> {
  for (let folder = dataDirOf(settings); ; folder = dirname(folder)) {
    try {
      if (!(await stat(folder)).isDirectory()) return explainFolder(folder, 'it is not a folder')
      await access(folder, constants.W_OK | constants.X_OK)
      // root may write to it, but creating a folder there fails, and Node.js would try forever.
      if ((await statfs(folder)).type === PROC) return explainFolder(folder, 'it is no place for files')
      return undefined
    } catch (error) {
      const { code } = error as NodeJS.ErrnoException
      // ENOTDIR: one of the folders above is a file, which is found next.
      if ((code !== 'ENOENT' && code !== 'ENOTDIR') || folder === dirname(folder)) {
        return explainFolder(folder, `${code}`)
      }
    }
  }
}

const explainFolder = (folder: string, why: string) =>
  `DATA_DIR cannot be used, because ${folder} is not a writable folder (${why}): start the node as the user who owns it, or choose another DATA_DIR.`

async function checkTemplates (settings: Settings): Promise<string | undefined> {
  try {
    openMailTemplates(settings)
  } catch (error) {
    return (error as Error).message
  }
}

async function checkAdmin (settings: Settings): Promise<string | undefined> {
  const { ADMIN_EMAIL: email, ADMIN_PASSWORD: password } = settings
  try {
    if (email && password) readOptions({ databaseUrl: 'postgres://localhost/usher', admin: { email, password } })
  } catch (error) {
    return explain(error as Error, settings)
  }
}
