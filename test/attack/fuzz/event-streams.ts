import { setTimeout as delay } from 'node:timers/promises'
import type { Actor } from '../actors.ts'
import type { Attack, Lane } from '../context.ts'
import { writeRequest, type Request } from '../exchange.ts'
import { hostileTexts } from '../values.ts'
import { generateQuery, generateSelection } from './graphql-documents.ts'

const NAME = 'event-streams'
const LONGEST_MS = 400

/**
 * Event streams that are closed at any moment, not read or resumed from any cursor, and requests that are no valid
 * streams.
 */
export const eventStreams: Attack = {
  name: NAME,
  weight: 8,
  async run (lane) {
    const { random, cast, findings } = lane
    const actor = random.chance(0.6)
      ? cast.anonymous
      : random.chance(0.5) ? random.pick(cast.rejected) : cast.member(random.below(100))
    const request = generateRequest(lane, actor)
    const connection = await lane.open()
    let received = ''
    connection.socket.on(
      'data', (chunk: Buffer) => { if (received.length < 2000) received += chunk.toString('latin1') }
    )
    if (random.chance(0.2)) connection.socket.pause()
    connection.send(writeRequest(request))
    // A stream does not end by itself. The client closes it at any moment, even before the response begins.
    if (random.chance(0.7)) await delay(random.below(LONGEST_MS))
    if (random.chance(0.3)) connection.socket.resetAndDestroy()
    await connection.close()
    const status = Number(/^HTTP\/1\.1 (\d+)/.exec(received)?.[1] ?? 0)
    findings.count(NAME, status === 0 ? 'left' : status)
    if (status >= 500 && !received.includes('"OVERLOADED"')) {
      findings.violation('server-error', NAME, received.slice(0, 500), writeRequest(request).toString())
    }
    if (received.includes('INTERNAL_ERROR')) {
      findings.violation('server-error', NAME, received.slice(0, 500), writeRequest(request).toString())
    }
  },
}

function generateRequest ({ random, cast: { world } }: Lane, actor: Actor): Request {
  const ids = world.readers.slice(0, 10)
  const author = random.chance(0.3)
    ? `(authorId: ${JSON.stringify(random.pick(ids))})`
    : random.chance(0.2) ? `(after: ${JSON.stringify(random.pick(hostileTexts))})` : ''
  const subscription = `subscription { postCreated${author} ${generateSelection(random, 'Post', ids)} }`
  const query = random.chance(0.7)
    ? subscription
    : random.chance(0.5) ? random.mutate(subscription) : generateQuery(random, ids)
  const headers = {
    accept: 'text/event-stream',
    ...random.chance(0.2) && { 'last-event-id': random.pick(['', '0', 'x', '%00', 'eyJ9', '9'.repeat(40)]) },
  }
  if (random.chance(0.5)) {
    return { method: 'GET', path: `/graphql?${new URLSearchParams({ query: query.toWellFormed() })}`, actor, headers }
  }
  return {
    method: 'POST',
    path: '/graphql',
    actor,
    headers: { ...headers, 'content-type': 'application/json' },
    body: JSON.stringify({ query }),
  }
}
