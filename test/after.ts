// Ends what test/before.ts has started, unless another run still uses it.
import { readdir, rm } from 'node:fs/promises'
import { isAlive } from '../db/embedded-cluster.ts'
import { startEmbedded } from '../db/embedded.ts'
import { folder } from './helpers/database.ts'

async function isUsed (): Promise<boolean> {
  const runs = await readdir(`${folder}runs`)
  return runs.some((run) => isAlive(Number(run)))
}

await rm(`${folder}runs/${process.ppid}`, { force: true })
if (!await isUsed()) {
  const server = await startEmbedded({ dataDir: folder, settings: { fsync: 'off' } })
  await server.stop()
  // A run that has begun meanwhile has its own server there by now, or will.
  if (!await isUsed()) await rm(folder, { recursive: true, force: true, maxRetries: 5 })
}
