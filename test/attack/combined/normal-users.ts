// A process of users who want nothing special: each has an address and a connection of their own, and sends ten requests a
// second, whatever is attacked meanwhile.
import { setTimeout as delay } from 'node:timers/promises'
import { Cast, type Actor, type World } from '../actors.ts'
import { writeRequest, type Request } from '../exchange.ts'
import { readConfiguration, report } from '../helpers.ts'
import { HttpConnection, NodeIsDown, NoReply } from '../http-connection.ts'
import { deriveSeed, Random } from '../random.ts'
import { TokenFactory, type SigningKey } from '../tokens.ts'
import type { Phase, Sample } from './phases.ts'

export interface NormalConfiguration { readonly users: number, readonly seed: number, readonly world: World, readonly key: SigningKey }

const EVERY_MS = 100
const LOST_MS = 5000

const { users, seed, world, key } = await readConfiguration<NormalConfiguration>()
const cast = new Cast(world, new TokenFactory(key))
process.on('message', async ({ port, seconds }: Phase) => report({ type: 'sample', sample: await measure(port, seconds!) }))
report({ type: 'ready' })

async function measure (port: number, seconds: number): Promise<Sample> {
  const latencies: number[] = []
  const failures: Record<string, number> = {}
  const until = performance.now() + seconds * 1000
  await Promise.all(Array.from({ length: users }, (_, index) => use(index)))
  const sorted = Float64Array.from(latencies).sort()
  const rank = (part: number) => sorted[Math.max(0, Math.ceil(part * sorted.length) - 1)] ?? Infinity
  const failed = Object.values(failures).reduce((sum, count) => sum + count, 0)
  return { seconds, requests: latencies.length, good: latencies.length - failed, failures, p50: rank(0.5), p99: rank(0.99), longest: rank(1) }

  async function use (index: number): Promise<void> {
    const random = new Random(deriveSeed(seed, 'user', index))
    let connection: HttpConnection | undefined
    // The latency counts from the moment at which a request is due: who waits for the last response is late.
    for (let due = performance.now() + random.next() * EVERY_MS; due < until; due += EVERY_MS) {
      await delay(Math.max(0, due - performance.now()))
      // Whoever still waits at the end of the phase has not sent the rest.
      const outcome = performance.now() < until ? await send(index, random) : 'not sent'
      latencies.push(performance.now() - due)
      if (outcome !== 'good') failures[outcome] = (failures[outcome] ?? 0) + 1
    }
    await connection?.close()

    async function send (index: number, random: Random): Promise<string> {
      try {
        if (!connection?.isUsable) connection = await HttpConnection.open({ host: '127.0.0.1', port }, `127.0.1.${index + 1}`)
        connection.socket.setTimeout(LOST_MS)
        connection.send(writeRequest(generate(random, cast.member(index))))
        const { status, body } = await connection.reply()
        return status >= 200 && status < 300 && !body.startsWith('{"data":null') ? 'good' : `${status}`
      } catch (error) {
        if (error instanceof NodeIsDown || error instanceof NoReply) return 'no response'
        throw error
      }
    }
  }
}

/** Mostly reads: by id 40 %, lists 15 %, GraphQL 20 %, the own record by token 15 %, creates 10 %. */
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
  return { method: 'POST', path: '/graphql', ...actor && { actor }, headers: { 'content-type': 'application/json' }, body: JSON.stringify({ query }) }
}
