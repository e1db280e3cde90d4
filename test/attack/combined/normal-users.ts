// This process simulates normal users. Each has its own address and connection, and sends ten requests a second
// regardless of the attack.
import { setTimeout as delay } from 'node:timers/promises'
import { Cast, type Actor, type World } from '../actors.ts'
import { writeRequest, type Request } from '../exchange.ts'
import { readConfiguration, report } from '../helpers.ts'
import { HttpConnection, NodeIsDown, NoReply } from '../http-connection.ts'
import { deriveSeed, Random } from '../random.ts'
import { TokenFactory, type SigningKey } from '../tokens.ts'
import { forwardedFor } from './origins.ts'
import type { Phase, Sample } from './phases.ts'

export interface NormalConfiguration {
  readonly users: number
  readonly seed: number
  readonly world: World
  readonly key: SigningKey
  /** Whether the node is behind a proxy. */
  readonly isProxied: boolean
}

const EVERY_MS = 100
const LOST_MS = 5000

const { users, seed, world, key, isProxied } = await readConfiguration<NormalConfiguration>()
const cast = new Cast(world, new TokenFactory(key))
process.on(
  'message', async ({ port, seconds }: Phase) => report({ type: 'sample', sample: await measure(port, seconds!) })
)
report({ type: 'ready' })

async function measure (port: number, seconds: number): Promise<Sample> {
  const latencies: number[] = []
  const failures: Record<string, number> = {}
  const until = performance.now() + seconds * 1000
  await Promise.all(Array.from({ length: users }, (_, index) => use(index)))
  const sorted = Float64Array.from(latencies).sort()
  const rank = (part: number) => sorted[Math.max(0, Math.ceil(part * sorted.length) - 1)] ?? Infinity
  const failed = Object.values(failures).reduce((sum, count) => sum + count, 0)
  return {
    seconds,
    requests: latencies.length,
    good: latencies.length - failed,
    failures,
    p50: rank(0.5),
    p99: rank(0.99),
    longest: rank(1),
  }

  async function use (index: number): Promise<void> {
    const random = new Random(deriveSeed(seed, 'user', index))
    let connection: HttpConnection | undefined
    // The latency starts when the request is due, so it includes the time spent waiting for the previous response.
    for (let due = performance.now() + random.next() * EVERY_MS; due < until; due += EVERY_MS) {
      await delay(Math.max(0, due - performance.now()))
      // If the phase ended while the user was waiting, the remaining requests are counted as not sent.
      const outcome = performance.now() < until ? await send(index, random) : 'not sent'
      latencies.push(performance.now() - due)
      if (outcome !== 'good') failures[outcome] = (failures[outcome] ?? 0) + 1
    }
    await connection?.close()

    async function send (index: number, random: Random): Promise<string> {
      try {
        if (!connection?.isUsable) {
          connection = await HttpConnection.open({ host: '127.0.0.1', port }, `127.0.1.${index + 1}`)
        }
        connection.socket.setTimeout(LOST_MS)
        const { headers, ...request } = generate(random, cast.member(index))
        const proxied = forwardedFor(isProxied ? `91.0.${index}.1` : undefined)
        connection.send(writeRequest({ ...request, headers: { ...headers, ...proxied } }))
        const { status, body } = await connection.reply()
        return status >= 200 && status < 300 && !body.startsWith('{"data":null') ? 'good' : `${status}`
      } catch (error) {
        if (error instanceof NodeIsDown || error instanceof NoReply) return 'no response'
        throw error
      }
    }
  }
}

/** Generates mostly reads: 40 % by id, 15 % lists, 20 % GraphQL, 15 % the own record by token, and 10 % creations. */
function generate (random: Random, actor: Actor): Request {
  const drawn = random.next()
  const id = random.pick(world.readers)
  if (drawn < 0.4) return { method: 'GET', path: `/api/users/${id}` }
  if (drawn < 0.55) return { method: 'GET', path: '/api/users?role=user&limit=50' }
  if (drawn < 0.75) return graphql(`{ user(id: "${id}") { name posts(first: 10) { id title } } }`)
  if (drawn < 0.9) return { method: 'GET', path: '/api/protected', actor }
  return graphql(`mutation { createPost(input: { title: "${random.word()}", content: "Words" }) { id } }`, actor)
}

function graphql (query: string, actor?: Actor): Request {
  return {
    method: 'POST',
    path: '/graphql',
    ...actor && { actor },
    headers: { 'content-type': 'application/json' },
    body: JSON.stringify({ query }),
  }
}
