import type { Attack, Lane } from '../context.ts'
import { ask } from '../exchange.ts'
import { RawSocket } from '../web-socket.ts'

const NAME = 'costly'
const PINGS = 4000
const UNREAD_MS = 1000

/** Requests that are cheap to send and costly to respond to. */
export const costly: Attack = {
  name: NAME,
  weight: 0.12,
  async run (lane) {
    const { random, cast } = lane
    if (random.chance(0.3)) return floodWithPings(lane)
    const author = JSON.stringify(cast.world.longWinded)
    const aliases = 1 + random.below(20)
    const query = random.pick([
      `{ posts(authorId: ${author}, first: 100) { nodes { author { posts(first: 99) { content } } } } }`,
      `{ ${Array.from({ length: aliases }, (_, index) => `a${index}: posts(authorId: ${author}, first: 100) { nodes { content } }`).join(' ')} }`,
      '{ users(first: 100) { nodes { posts(first: 100) { author { posts(first: 100) { title author { posts(first: 100) { id } } } } } } } }',
      `{ ${Array.from({ length: 300 }, (_, index) => `u${index % 50}: user(id: ${author}) { a${index}: name }`).join(' ')} # ${random.word()}\n}`,
    ])
    await ask(lane, NAME, {
      method: 'POST',
      path: '/graphql',
      headers: { 'content-type': 'application/json' },
      body: JSON.stringify({ query }),
    })
  },
}

// Sends pings and mostly does not read the pongs, which must not fill the node's memory.
async function floodWithPings ({ random, shared: { target }, address, findings }: Lane): Promise<void> {
  const socket = await RawSocket.open(target, { address, protocol: 'graphql-transport-ws' })
  if (typeof socket === 'number') return findings.count(NAME, socket)
  socket.send({ type: 'connection_init' })
  await socket.hear(({ type }) => type === 'connection_ack')
  if (random.chance(0.7)) socket.connection.socket.pause()
  for (let count = 0; count < PINGS && socket.isOpen; count++) socket.send('{"type":"ping"}')
  await socket.hear(() => false, UNREAD_MS)
  findings.count(NAME, socket.isOpen ? 'pings' : 'pings, closed')
  await socket.close()
}
