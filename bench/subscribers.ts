// The client of fanout.ts, in its own process. It opens sockets that subscribe to new posts, creates posts at a steady
// pace, and records when each socket receives each post. All of this happens in one process, so that there is only one
// clock.
import { performance } from 'node:perf_hooks'
import { setTimeout as delay } from 'node:timers/promises'
import { decodePlace } from '../schema/http/cursor.ts'
import type { Fanout, Heard } from './fanout.ts'
import { median, percentile } from './report.ts'
import { begin, createWriter, given, openAll, subscribe, tell } from './sockets.ts'

const QUERY = 'subscription { postCreated { id title cursor author { id } } }'
const WARM_UPS = 10
const TIMEOUT_MS = 5000
// The title of a post is its number with a fixed number of digits. It can be found without parsing the same message two
// thousand times.
const DIGITS = 8
const TITLE = Buffer.from('"title":"')

const { url, token, sockets: count, posts, perSecond } = given<Fanout>()
const create = createWriter(url, token)

interface Post {
  sent: number
  /** When each socket received the post first, in milliseconds since it was sent. */
  latencies: Float64Array
  heard: number
  doubled: number
  answered: number
  byAll: PromiseWithResolvers<void>
  /** The message that the first socket received. All sockets must receive the same one. */
  message?: Buffer
  position: number
}
const written: Post[] = []
// The position of the last post that each socket has received.
const positions = new Float64Array(count)
let disordered = 0

const sockets = await openAll(count, (index) => subscribe(url, { query: QUERY }, (data) => hear(index, data)))
// Subscriptions are not acknowledged, so the test creates posts until each socket has received one. This also lets V8
// compile the code.
for (let number = 0; number < WARM_UPS; number++) await write()
if (written.at(-1)!.heard < count) throw new Error(`${written.at(-1)!.heard} of ${count} subscribers hear`)

begin()
const before = performance.eventLoopUtilization()
const pace = 1000 / perSecond
const start = performance.now()
const writes: Promise<void>[] = []
for (let index = 0; index < posts; index++) {
  const early = start + index * pace - performance.now()
  if (early > 0) await delay(early)
  writes.push(write())
}
await Promise.all(writes)
const { utilization } = performance.eventLoopUtilization(before)
for (const socket of sockets) socket.terminate()
tell(summarize(written.slice(-posts), utilization))
process.disconnect()

function hear (index: number, data: Buffer): void {
  const now = performance.now()
  const at = data.indexOf(TITLE) + TITLE.length
  const post = written[Number(data.toString('latin1', at, at + DIGITS))]
  if (!post) throw new Error(`unexpected: ${data}`)
  if (!post.message) {
    post.message = Buffer.from(data)
    post.position = Number(decodePlace(JSON.parse(String(data)).payload.data.postCreated.cursor).position)
  }
  if (!post.message.equals(data)) throw new Error(`not the same to all: ${data} and ${post.message}`)
  if (post.latencies[index]! > 0) {
    post.doubled++
    return
  }
  if (post.position < positions[index]!) disordered++
  positions[index] = post.position
  post.latencies[index] = now - post.sent
  if (++post.heard === count) post.byAll.resolve()
}

// Creates a post. Resolves when all sockets have received it, or after a timeout.
async function write (): Promise<void> {
  const title = String(written.length).padStart(DIGITS, '0')
  const post: Post = {
    sent: performance.now(),
    latencies: new Float64Array(count),
    heard: 0,
    doubled: 0,
    answered: 0,
    byAll: Promise.withResolvers(),
    position: 0,
  }
  written.push(post)
  await create(title)
  post.answered = performance.now() - post.sent
  await Promise.race([post.byAll.promise, delay(TIMEOUT_MS, undefined, { ref: false })])
}

function summarize (measured: Post[], utilization: number): Heard {
  const latencies = Float64Array.from(measured.flatMap((post) => [...post.latencies].filter((latency) => latency > 0)))
  return {
    p50: median(latencies),
    p99: percentile(latencies, 99),
    max: percentile(latencies, 100),
    first: median(measured.map((post) => Math.min(...post.latencies))),
    answered: median(measured.map((post) => post.answered)),
    messages: latencies.length,
    lost: measured.length * count - latencies.length,
    doubled: measured.reduce((sum, post) => sum + post.doubled, 0),
    disordered,
    utilization,
  }
}
