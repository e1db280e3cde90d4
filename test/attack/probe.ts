// This process sends a request every 20 ms to the node and to a trivial server, each on its own connection.
import { setTimeout as delay } from 'node:timers/promises'
import { readConfiguration, report } from './helpers.ts'
import { HttpConnection, NodeIsDown, type Target } from './http-connection.ts'

export interface ProbeConfiguration { readonly target: Target, readonly control: Target, readonly userId: string }

/** The stalls that only the node can have caused. */
export interface Stalls {
  /** Those in the first seconds of the run, in which V8 has not yet compiled most of the code. */
  readonly starting: PartStalls
  /** Those after that. */
  readonly started: PartStalls
  readonly p50: number
  readonly p99: number
  readonly requests: number
  /** The longest response time of the trivial server, which is the noise of the machine. */
  readonly noise: number
}

/** The stalls in a part of the run. */
export interface PartStalls {
  /** Milliseconds of the longest one, minus the time that the trivial server took at the same moment. */
  readonly longest: number
  readonly path: string
  /** Seconds since the start. */
  readonly at: number
  /** The number of requests, and how many of them took longer than the limit. */
  readonly requests: number
  readonly overLimit: number
}

interface Sample { path: string, at: number, milliseconds: number }

const EVERY_MS = 20
const STARTING_SECONDS = 5
const LIMIT_MS = 50
// Noise within this distance in time counts as noise of the same moment.
const NEAR_MS = 100
const ADDRESS = '127.0.0.9'

const { target, control, userId } = await readConfiguration<ProbeConfiguration>()
const paths = [`/api/users/${userId}`, '/health/live']
const samples: { path: string, sent: number, took: number }[] = []
const noise: { sent: number, took: number }[] = []
const start = performance.now()
const stopping = new AbortController()
process.on('message', () => stopping.abort())
await Promise.all([
  measure(target, (count) => paths[count % paths.length]!, (path, sent, took) => samples.push({ path, sent, took })),
  measure(control, () => '/', (_, sent, took) => noise.push({ sent, took })),
])
report({ type: 'stalls', stalls: summarize() })

// The pace does not depend on the replies, so a stall delays every request that is due during it.
async function measure (
  server: Target, pathOf: (count: number) => string, note: (path: string, sent: number, took: number) => void
): Promise<void> {
  let connection: HttpConnection | undefined
  for (let count = 0; !stopping.signal.aborted; count++) {
    const due = start + count * EVERY_MS
    await delay(Math.max(0, due - performance.now()))
    if (!connection?.isUsable) connection = await reconnect(server)
    if (!connection) continue
    const path = pathOf(count)
    const sent = performance.now()
    connection.send(`GET ${path} HTTP/1.1\r\nhost: localhost\r\n\r\n`)
    // If a crash of the node closes the connection, the request says nothing about stalls.
    connection.reply().then(() => note(path, sent, performance.now() - sent), () => {})
  }
  await connection?.close()
}

async function reconnect (server: Target): Promise<HttpConnection | undefined> {
  try {
    return await HttpConnection.open(server, ADDRESS)
  } catch (error) {
    if (error instanceof NodeIsDown) return undefined
    throw error
  }
}

function summarize (): Stalls {
  let from = 0
  const excess = samples.map(({ path, sent, took }) => {
    while (from < noise.length && noise[from]!.sent < sent - NEAR_MS - 1000) from++
    let meanwhile = 0
    for (let index = from; index < noise.length && noise[index]!.sent <= sent + took + NEAR_MS; index++) {
      const other = noise[index]!
      if (other.sent + other.took >= sent - NEAR_MS) meanwhile = Math.max(meanwhile, other.took)
    }
    return { path, at: (sent - start) / 1000, milliseconds: Math.max(0, took - meanwhile) }
  })
  const sorted = samples.map(({ took }) => took).sort((a, b) => a - b)
  return {
    starting: findStalls(excess.filter(({ at }) => at < STARTING_SECONDS)),
    started: findStalls(excess.filter(({ at }) => at >= STARTING_SECONDS)),
    p50: sorted[Math.floor(sorted.length / 2)] ?? 0,
    p99: sorted[Math.floor(sorted.length * 0.99)] ?? 0,
    requests: samples.length,
    noise: noise.reduce((most, { took }) => Math.max(most, took), 0),
  }
}

function findStalls (samples: readonly Sample[]): PartStalls {
  const none: Sample = { path: '', at: 0, milliseconds: 0 }
  const longest = samples.reduce((worst, sample) => sample.milliseconds > worst.milliseconds ? sample : worst, none)
  return {
    longest: longest.milliseconds,
    path: longest.path.replace(userId, '{id}'),
    at: longest.at,
    requests: samples.length,
    overLimit: samples.filter(({ milliseconds }) => milliseconds > LIMIT_MS).length,
  }
}
