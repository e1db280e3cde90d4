// Starts the database of all tests, or joins the one that another run uses or a killed run has left. It goes on
// when this script ends, and test/after.ts ends it.
import { mkdir, rename, rm, writeFile } from 'node:fs/promises'
import { startEmbedded } from '../db/embedded.ts'
import { folder } from './helpers/database.ts'

// A run is known by its tap process, which starts both scripts.
await mkdir(`${folder}runs`, { recursive: true })
await writeFile(`${folder}runs/${process.ppid}`, '')

const start = () => startEmbedded({ dataDir: folder, settings: { fsync: 'off', max_connections: '400' } })
const { url } = await start().catch(async () => {
  // Without fsync a crash of the machine can leave a database that nobody needs any more.
  await rm(`${folder}postgres`, { recursive: true, force: true })
  return start()
})
await writeFile(`${folder}url.${process.pid}`, url)
await rename(`${folder}url.${process.pid}`, `${folder}url`)

// Not stopped on purpose.
process.exit()
