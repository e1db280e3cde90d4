// Measures what a flood of logins does to other clients: GET /api/users/{id} at a moderate rate, first alone and then
// during 200 concurrent wrong logins. Usage: `node bench/login-flood.ts [seconds]`. The target is a p99 of at most
// twice that of an idle node.
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { mkdtemp, rm } from 'node:fs/promises'
import { Agent, request } from 'node:http'
import type { AddressInfo } from 'node:net'
import { availableParallelism, loadavg, tmpdir } from 'node:os'
import { join } from 'node:path'
import { text } from 'node:stream/consumers'
import { setTimeout as delay } from 'node:timers/promises'
import Fastify from 'fastify'
import usher from '../app.ts'
import { startEmbedded } from '../node/embedded/server.ts'
import { startServer } from './servers.ts'

const AT_ONCE = 200
const READS_PER_SECOND = 100
const TIMEOUT_MS = 30_000
const ADMIN = { email: 'admin@example.com', password: 'horse battery staple' }
// The limits are so high that only the hashing itself slows down logins.
const none = { burst: 1_000_000, perMinute: 1_000_000 }

const roles: Record<string, () => Promise<void>> = { server: serve, reader: read, flood }
await (roles[process.env['ROLE'] ?? ''] ?? measure)()

/** Runs a node in this process. */
async function serve (): Promise<void> {
  const { DATABASE_URL, UPLOADS_DIR, LIMITED } = process.env
  const app = Fastify({ forceCloseConnections: true })
  await app.register(usher, {
    databaseUrl: DATABASE_URL,
    // Each setup uses its own schema, so that used-up limits do not affect the other one.
    schema: LIMITED ? 'limited' : 'unlimited',
    uploadsDir: `${UPLOADS_DIR}${LIMITED}`,
    admin: ADMIN,
    throttle: LIMITED ? {} : { account: none, address: none },
  })
  await app.listen({ port: 0, host: '127.0.0.1' })
  console.log(`http://127.0.0.1:${(app.server.address() as AddressInfo).port}`)
  process.on('SIGTERM', () => { void app.close() })
}

/** Reads at a fixed rate, independently of the responses. Prints each latency in milliseconds. */
async function read (): Promise<void> {
  const { URL: url, SECONDS } = process.env
  const agent = new Agent({ keepAlive: true })
  const pending: Promise<number>[] = []
  const since = performance.now()
  for (let count = 0; count < Number(SECONDS) * READS_PER_SECOND; count++) {
    await delayUntil(since + count * 1000 / READS_PER_SECOND)
    pending.push(send(agent, url!).then(({ took, status }) => status === 200 ? took : Infinity))
  }
  console.log(JSON.stringify(await Promise.all(pending)))
  agent.destroy()
}

/**
 * Sends wrong logins in waves, one per second or as fast as they get responses. Prints the number of responses by
 * status.
 */
async function flood (): Promise<void> {
  const { URL: url, SECONDS, WAVES } = process.env
  const agent = new Agent({ keepAlive: true })
  const statuses: Record<string, number> = {}
  let longest = 0
  const until = performance.now() + Number(SECONDS) * 1000
  await Promise.all(Array.from({ length: AT_ONCE }, async (_, client) => {
    for (let count = 0; performance.now() < until; count++) {
      const since = performance.now()
      const { status, took } = await send(
        agent, `${url}/api/auth/login`, { email: `user${client}-${count}@example.com`, password: 'a wrong one' }
      )
      statuses[status] = (statuses[status] ?? 0) + 1
      longest = Math.max(longest, took)
      if (WAVES) await delayUntil(since + 1000)
    }
  }))
  console.log(JSON.stringify({ ...statuses, 'longest ms': Math.round(longest) }))
  agent.destroy()
}

async function delayUntil (time: number): Promise<void> {
  await delay(Math.max(1, time - performance.now()))
}

async function send (agent: Agent, url: string, body?: object): Promise<{ status: number | string, took: number }> {
  const since = performance.now()
  try {
    const asking = request(url, {
      agent,
      signal: AbortSignal.timeout(TIMEOUT_MS),
      ...body && { method: 'POST', headers: { 'content-type': 'application/json' } },
    })
    asking.end(body && JSON.stringify(body))
    const [response] = await once(asking, 'response')
    await text(response)
    return { status: response.statusCode, took: performance.now() - since }
  } catch (error) {
    return { status: (error as NodeJS.ErrnoException).code ?? 'failed', took: performance.now() - since }
  }
}

async function measure (): Promise<void> {
  const seconds = process.argv[2] ?? '10'
  const folder = await mkdtemp(join(tmpdir(), 'usher-flood-'))
  const database = await startEmbedded({ dataDir: folder })
  console.log(
    `${availableParallelism()} cores, load ${loadavg().map((load) => load.toFixed(1)).join(' ')}; ${READS_PER_SECOND} reads a second for ${seconds} s each`
  )
  try {
    for (const LIMITED of ['yes', '']) {
      const env = { DATABASE_URL: database.url, UPLOADS_DIR: join(folder, 'uploads'), NODE_ENV: 'production', LIMITED }
      const { url, stop } = await startServer('login-flood', { ...env, ROLE: 'server' })
      const userUrl = await findUser(url)
      const reading = () => run({ ROLE: 'reader', URL: userUrl, SECONDS: seconds })
      await run({ ROLE: 'reader', URL: userUrl, SECONDS: '3' })
      const limits = LIMITED ? 'usual limits' : 'no limits'
      report(`${limits}, quiet`, await reading())
      for (const WAVES of ['yes', '']) {
        const [latencies, answers] =
          await Promise.all([reading(), run({ ROLE: 'flood', URL: url, SECONDS: seconds, WAVES })])
        report(`${limits}, ${AT_ONCE} ${WAVES ? 'every second' : 'always'}`, latencies, answers)
      }
      report(`${limits}, quiet again`, await reading())
      await stop()
    }
  } finally {
    await database.stop()
    await rm(folder, { recursive: true, force: true })
  }
}

async function findUser (url: string): Promise<string> {
  const [user] = await (await fetch(`${url}/api/users`)).json() as [{ id: string }]
  return `${url}/api/users/${user.id}`
}

/** Runs this file in another role and process, and returns what it prints. */
async function run (env: Record<string, string>) {
  const child = spawn(
    process.execPath, [import.meta.filename], { env: { ...process.env, ...env }, stdio: ['ignore', 'pipe', 'inherit'] }
  )
  return JSON.parse(await text(child.stdout))
}

function report (what: string, latencies: number[], answers?: object): void {
  const sorted = latencies.sort((a, b) => a - b)
  const [p50, p90, p99, max] = [0.5, 0.9, 0.99, 1]
    .map((part) => sorted[Math.ceil(part * sorted.length) - 1]!.toFixed(1))
  console.log(
    `${what.padEnd(32)} p50 ${p50}  p90 ${p90}  p99 ${p99}  max ${max} ms`, answers ? JSON.stringify(answers) : ''
  )
}
