// Starts the database that all tests use. If another run uses one already, or a killed run has left one behind, this
// script shares it. The database keeps running when this script exits, and test/after.ts stops it.
import { mkdir, rename, rm, stat, writeFile } from 'node:fs/promises'
import { execFile } from 'node:child_process'
import { promisify } from 'node:util'
import { findPrograms, run } from '../node/embedded/binaries.ts'
import { openCluster } from '../node/embedded/cluster.ts'
import { startEmbedded } from '../node/embedded/server.ts'
import { slowNode } from './helpers/deadlines.ts'
import { folder, template } from './helpers/database.ts'
import { prepareSchemas } from './helpers/schemas.ts'

// The id of the tap process identifies a run, because tap starts both scripts.
await mkdir(`${folder}runs`, { recursive: true })
await writeFile(`${folder}runs/${process.ppid}`, '')

async function start () {
  await prepare()
  const settings = { fsync: 'off', full_page_writes: 'off', max_connections: '600' }
  return startEmbedded({ dataDir: folder, tcp: true, settings, deadlines: slowNode })
}

async function prepare (): Promise<void> {
  const programs = await findPrograms()
  await openCluster(template, programs, false, () => {})
  if (await stat(`${folder}postgres`).catch(() => undefined)) return
  const copy = `${folder}copy.${process.pid}`
  await mkdir(copy)
  await promisify(execFile)('cp', ['-a', `${template}/postgres`, copy])
  // Tests create databases and roles. Only a superuser can permit this, and superusers cannot connect to a running
  // server, so PostgreSQL runs in single-user mode.
  const { runAs, data } = await openCluster(copy, programs, false, () => {})
  await run(
    [...runAs.before, programs.postgres, '--single', '-D', data, '-c', 'fsync=off', 'postgres'],
    runAs,
    'alter role usher createdb createrole\n'
  )
  // Renaming fails if another run has created the folder meanwhile.
  await rename(`${copy}/postgres`, `${folder}postgres`).catch(() => {})
  await rm(copy, { recursive: true })
}

// Proxies need TCP.
const { url: socketUrl, tcpUrl: url = '' } = await start().catch(async () => {
  // Without fsync, a crash of the machine can corrupt the database, and a killed run can leave an incomplete template.
  // Neither is needed, so both are created again.
  for (const name of ['postgres', 'template']) await rm(`${folder}${name}`, { recursive: true, force: true })
  return start()
})
await prepareSchemas(url)
await write('socket-url', socketUrl.replace(/\?.*/, ''))
await write('url', url)

async function write (name: string, content: string): Promise<void> {
  await writeFile(`${folder}${name}.${process.pid}`, content)
  await rename(`${folder}${name}.${process.pid}`, `${folder}${name}`)
}

// The server keeps running on purpose.
process.exit()
