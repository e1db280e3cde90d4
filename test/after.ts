// Stops the database that test/before.ts has started, unless another run still uses it.
import { glob, readdir, readFile, rm } from 'node:fs/promises'
import { join } from 'node:path'
import { isAlive } from '../node/embedded/cluster.ts'
import { startEmbedded } from '../node/embedded/server.ts'
import { slowNode } from './helpers/deadlines.ts'
import { folder } from './helpers/database.ts'

const fixtures = join(folder, '../fixtures')

async function isUsed (): Promise<boolean> {
  const runs = await readdir(`${folder}runs`)
  return runs.some((run) => isAlive(Number(run)))
}

// Ctrl-C ends a test before its teardowns, so the servers that it has started are still running.
async function stopServers (): Promise<void> {
  for await (const file of glob('**/postgres/data/postmaster.pid', { cwd: fixtures })) {
    const pid = parseInt(await readFile(join(fixtures, file), 'utf8'))
    if (!isAlive(pid)) continue
    const dataDir = join(fixtures, file, '../../..')
    const server = await startEmbedded({ dataDir, settings: { fsync: 'off' }, deadlines: slowNode })
    await server.stop()
  }
}

await rm(`${folder}runs/${process.ppid}`, { force: true })
if (!await isUsed()) {
  await stopServers()
  const server = await startEmbedded({ dataDir: folder, settings: { fsync: 'off' }, deadlines: slowNode })
  await server.stop()
  // A run that has started meanwhile uses the folder for its own server.
  if (!await isUsed()) await rm(folder, { recursive: true, force: true, maxRetries: 5 })
}
