// Measures how long a second node accepts a session after the first node has responded to its logout. It starts
// everything it needs. Usage: `node bench/revocation.ts [--rounds 1000]`.
import { mkdtemp, rm } from 'node:fs/promises'
import { cpus, tmpdir } from 'node:os'
import { join } from 'node:path'
import { parseArgs } from 'node:util'
import { startEmbedded } from '../node/embedded/server.ts'
import { login, startServer, type Server } from './servers.ts'

const TARGET_MS = 100

const { values } = parseArgs({ options: { rounds: { type: 'string', default: '1000' } } })
const rounds = Number(values.rounds)
const folder = await mkdtemp(join(tmpdir(), 'usher-revocation-'))
const database = await startEmbedded({ dataDir: folder })
const nodes: Server[] = []

try {
  const env = {
    DATABASE_URL: database.url, SCHEMA: 'usher', UPLOADS_DIR: join(folder, 'uploads'), NODE_ENV: 'production',
  }
  for (let count = 0; count < 2; count++) nodes.push(await startServer('usher', env))
  const [one, two] = nodes as [Server, Server]
  const delays: number[] = []
  let accepted = 0
  for (let round = 0; round < rounds; round++) {
    const { delay, polls } = await revoke(one.url, two.url)
    delays.push(delay)
    if (polls > 1) accepted++
  }
  delays.sort((a, b) => a - b)
  const percentile = (share: number) => delays[Math.min(rounds - 1, Math.floor(rounds * share))]!.toFixed(1)
  console.log(
    `${cpus().length} cores, Node ${process.version}, ${rounds} rounds; from the answer of the logout to the first 401 of the other node`
  )
  console.log(
    `p50 ${percentile(0.5)} ms, p99 ${percentile(0.99)} ms, most ${percentile(1)} ms (target: p99 at most ${TARGET_MS} ms)`
  )
  console.log(`in ${accepted} rounds the other node accepted at least one request that was sent after that answer`)
} finally {
  for (const node of nodes) await node.stop()
  await database.stop()
  await rm(folder, { recursive: true, force: true })
}

async function revoke (one: string, two: string): Promise<{ delay: number, polls: number }> {
  const headers = { authorization: `Bearer ${await login(one)}` }
  const status = async () => {
    const response = await fetch(`${two}/api/protected`, { headers })
    await response.arrayBuffer()
    return response.status
  }
  if (await status() !== 200) throw new Error('the other node does not accept the session')
  const { status: answer } = await fetch(`${one}/api/auth/logout`, { method: 'POST', headers })
  if (answer !== 204) throw new Error(`logout: ${answer}`)
  const since = performance.now()
  for (let polls = 1; ; polls++) {
    if (await status() === 401) return { delay: performance.now() - since, polls }
  }
}
