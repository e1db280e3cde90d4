// Starts the database of all tests, or joins the one that another run uses or a killed run has left. It goes on
// when this script ends, and test/after.ts ends it.
import { mkdir, rename, rm, stat, writeFile } from 'node:fs/promises'
import { execFile } from 'node:child_process'
import { promisify } from 'node:util'
import { findPrograms, run } from '../node/embedded/binaries.ts'
import { openCluster } from '../node/embedded/cluster.ts'
import { startEmbedded } from '../node/embedded/server.ts'
import { folder, template } from './helpers/database.ts'

// A run is known by its tap process, which starts both scripts.
await mkdir(`${folder}runs`, { recursive: true })
await writeFile(`${folder}runs/${process.ppid}`, '')

async function start () {
  await prepare()
  return startEmbedded({ dataDir: folder, settings: { fsync: 'off', max_connections: '400' } })
}

async function prepare (): Promise<void> {
  const programs = await findPrograms()
  await openCluster(template, programs, false, () => {})
  if (await stat(`${folder}postgres`).catch(() => undefined)) return
  const copy = `${folder}copy.${process.pid}`
  await mkdir(copy)
  await promisify(execFile)('cp', ['-a', `${template}/postgres`, copy])
  // Tests create databases. Only a superuser can allow that, and none can connect to a server.
  const { runAs: way, data } = await openCluster(copy, programs, false, () => {})
  await run([...way.before, programs.postgres, '--single', '-D', data, '-c', 'fsync=off', 'postgres'], way, 'alter role usher createdb\n')
  // Another run may have been faster.
  await rename(`${copy}/postgres`, `${folder}postgres`).catch(() => {})
  await rm(copy, { recursive: true })
}

const { url } = await start().catch(async () => {
  // Without fsync a crash of the machine can leave a database that nobody needs any more.
  await rm(`${folder}postgres`, { recursive: true, force: true })
  return start()
})
await writeFile(`${folder}url.${process.pid}`, url)
await rename(`${folder}url.${process.pid}`, `${folder}url`)

// Not stopped on purpose.
process.exit()
