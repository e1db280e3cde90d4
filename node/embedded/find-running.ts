import { readFile, realpath, stat } from 'node:fs/promises'
import { join } from 'node:path'
import { isAlive, readRunning } from './cluster.ts'
import { urlOf } from './lease.ts'

/**
 * Returns the URL of the embedded PostgreSQL that runs on a data folder, without starting it or changing anything, or undefined if none
 * runs. Throws if the folder cannot be read.
 */
export async function findRunning (dataDir: string): Promise<string | undefined> {
  const folder = join(await realpath(dataDir).catch(() => dataDir), 'postgres')
  const data = join(folder, 'data')
  if (await stat(data).then(() => false, ({ code }: NodeJS.ErrnoException) => code === 'ENOENT')) return undefined
  const cluster = { data, password: await readFile(join(folder, 'password'), 'utf8') }
  const running = await readRunning(cluster)
  return running && isAlive(running.pid) ? urlOf(cluster, running.port) : undefined
}
