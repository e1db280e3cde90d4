// The client of fanout.ts, a process of its own: opens sockets that subscribe to new posts, writes posts at a steady
// pace, and notes when each socket hears of each. One process does both, so that there is one clock.
import { once } from 'node:events'
import { Agent, request } from 'node:http'
import { performance } from 'node:perf_hooks'
import { text } from 'node:stream/consumers'
import { setTimeout as delay } from 'node:timers/promises'
import { WebSocket } from 'ws'
import type { Fanout, Heard } from './fanout.ts'
import { median, percentile } from './report.ts'

const QUERY = 'subscription { postCreated { id title author { id } } }'
const OPENING_AT_ONCE = 50
const WARM_UPS = 10
const PATIENCE_MS = 5000
// A title is the number of its post, in so many digits: found without parsing two thousand times the same message.
const DIGITS = 8
const TITLE = Buffer.from('"title":"')

const { url, token, sockets: count, posts, perSecond }: Fanout = JSON.parse(process.argv[2]!)
const agent = new Agent({ keepAlive: true })

interface Post {
  sent: number
  /** When each socket first heard of it, in milliseconds since it was sent. */
  latencies: Float64Array
  heard: number
  doubled: number
  answered: number
  byAll: PromiseWithResolvers<void>
}
const written: Post[] = []

const sockets: WebSocket[] = []
while (sockets.length < count) {
  const from = sockets.length
  sockets.push(...await Promise.all(Array.from({ length: Math.min(OPENING_AT_ONCE, count - from) }, (_, index) => open(from + index))))
}
// A subscription is not acknowledged: it is there when it hears. And what is compiled on the way is.
for (let number = 0; number < WARM_UPS; number++) await write()
if (written.at(-1)!.heard < count) throw new Error(`${written.at(-1)!.heard} of ${count} subscribers hear`)

const before = performance.eventLoopUtilization()
const pace = 1000 / perSecond
const start = performance.now()
const writes: Promise<void>[] = []
for (let index = 0; index < posts; index++) {
  await delay(start + index * pace - performance.now())
  writes.push(write())
}
await Promise.all(writes)
const { utilization } = performance.eventLoopUtilization(before)
for (const socket of sockets) socket.terminate()
agent.destroy()
console.log(JSON.stringify(summarize(written.slice(-posts), utilization)))

async function open (index: number): Promise<WebSocket> {
  const socket = new WebSocket(`${url.replace('http', 'ws')}/graphql`, 'graphql-transport-ws', { perMessageDeflate: false })
  await once(socket, 'open')
  socket.send('{"type":"connection_init"}')
  const [answer] = await once(socket, 'message')
  if (!String(answer).includes('connection_ack')) throw new Error(`connection_init: ${answer}`)
  socket.on('message', (data: Buffer) => hear(index, data))
  socket.on('close', (code) => { if (code !== 1006) throw new Error(`a socket was closed with ${code}`) })
  socket.send(JSON.stringify({ type: 'subscribe', id: '1', payload: { query: QUERY } }))
  return socket
}

function hear (index: number, data: Buffer): void {
  const now = performance.now()
  const at = data.indexOf(TITLE) + TITLE.length
  const post = written[Number(data.toString('latin1', at, at + DIGITS))]
  if (!post) throw new Error(`unexpected: ${data}`)
  if (post.latencies[index]! > 0) {
    post.doubled++
    return
  }
  post.latencies[index] = now - post.sent
  if (++post.heard === count) post.byAll.resolve()
}

// Until all have heard of it, or will not.
async function write (): Promise<void> {
  const title = String(written.length).padStart(DIGITS, '0')
  const query = `mutation { createPost(input: { title: "${title}", content: "Words" }) { id } }`
  const outgoing = request(`${url}/graphql`, { method: 'POST', agent, headers: { 'content-type': 'application/json', authorization: `Bearer ${token}` } })
  const post: Post = { sent: performance.now(), latencies: new Float64Array(count), heard: 0, doubled: 0, answered: 0, byAll: Promise.withResolvers() }
  written.push(post)
  outgoing.end(JSON.stringify({ query }))
  const [response] = await once(outgoing, 'response')
  const answer = await text(response)
  if (answer.includes('"errors"')) throw new Error(answer)
  post.answered = performance.now() - post.sent
  await Promise.race([post.byAll.promise, delay(PATIENCE_MS, undefined, { ref: false })])
}

function summarize (measured: Post[], utilization: number): Heard {
  const latencies = measured.flatMap((post) => [...post.latencies].filter((latency) => latency > 0))
  return {
    p50: median(latencies),
    p99: percentile(latencies, 99),
    max: percentile(latencies, 100),
    first: median(measured.map((post) => Math.min(...post.latencies))),
    answered: median(measured.map((post) => post.answered)),
    messages: latencies.length,
    lost: measured.length * count - latencies.length,
    doubled: measured.reduce((sum, post) => sum + post.doubled, 0),
    utilization,
  }
}
