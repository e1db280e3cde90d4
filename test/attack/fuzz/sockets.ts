import { forbiddenMark, type Attack, type Lane } from '../context.ts'
import { opcodes, writeFrame } from '../frames.ts'
import type { Random } from '../random.ts'
import { hostileJson, hostileTexts } from '../values.ts'
import { RawSocket } from '../web-socket.ts'
import { checkOutcome, generateMutation, type Trial } from './graphql.ts'
import { generateQuery, generateSelection } from './graphql-documents.ts'

const NAME = 'sockets'
const PROTOCOLS = ['graphql-transport-ws', 'graphql-ws'] as const
const STATEMENTS = 8
const ANSWER_MS = 10_000

/** Both socket protocols: operations in and out of order, malformed messages, and tokens of every kind. */
export const sockets: Attack = {
  name: NAME,
  weight: 14,
  async run (lane) {
    const { random, cast } = lane
    const protocol = random.pick(PROTOCOLS)
    const trial = generateMutation(lane)
    const actor = trial.actor
    const inHeader = random.chance(0.3) && actor.authorization !== undefined
    const socket = await RawSocket.open(lane.shared.target, {
      address: lane.address, protocol, headers: inHeader ? [`authorization: ${actor.authorization}`] : [],
    })
    if (typeof socket === 'number') return checkRefusal(lane, socket, actor.isLive || actor.authorization === undefined)
    lane.findings.count(NAME, 'opened')
    if (random.chance(0.95)) {
      socket.send({
        type: 'connection_init',
        payload: inHeader || actor.authorization === undefined ? undefined : { authorization: actor.authorization },
      })
    }
    const start = protocol === 'graphql-ws' ? 'start' : 'subscribe'
    if (random.chance(0.7)) await runTrial(lane, socket, trial, start)
    for (let count = random.below(STATEMENTS); count > 0 && socket.isOpen; count--) {
      say(lane, socket, start, [...cast.world.readers.slice(0, 10)])
    }
    if (random.chance(0.5)) await socket.hear(({ type }) => type === 'complete' || type === 'error', 300)
    await socket.close()
  },
}

function checkRefusal ({ findings }: Lane, status: number, isWelcome: boolean): void {
  findings.count(NAME, status === 0 ? 'closed' : status)
  if (status >= 500 && status !== 503) findings.violation('server-error', NAME, `an upgrade got ${status}`)
  if (isWelcome && status === 401) findings.violation('wrongly-refused', NAME, 'an upgrade got 401')
}

async function runTrial (lane: Lane, socket: RawSocket, trial: Trial, start: string): Promise<void> {
  const { key = 'query', query, ...rest } = trial.sent
  const statement = { type: start, id: 'trial', payload: { [key]: query, ...rest } }
  socket.send(statement)
  const message = await socket.hear(({ id, type }) => id === 'trial' && type !== 'complete', ANSWER_MS)
  lane.findings.count(NAME, message?.type ?? `closed with ${socket.closeCode ?? 'no code'}`)
  if (!message) {
    if (socket.isOpen) lane.findings.violation('unanswered', NAME, 'an operation', JSON.stringify(statement))
    return
  }
  const answer = message.type === 'error' ? { errors: [message.payload].flat() } : message.payload
  if (JSON.stringify(answer).includes('INTERNAL_ERROR')) {
    lane.findings.violation('server-error', NAME, JSON.stringify(answer), JSON.stringify(statement))
  }
  checkOutcome(lane, NAME, trial, answer as Parameters<typeof checkOutcome>[3], () => JSON.stringify(statement))
}

function say ({ random, cast, findings }: Lane, socket: RawSocket, start: string, ids: string[]): void {
  const id = random.pick(['1', '2', 'trial', '', '__proto__'])
  findings.count(NAME, 'message')
  switch (random.below(9)) {
    case 0: return socket.send({
      type: start, id, payload: { query: `subscription { postCreated ${generateSelection(random, 'Post', ids)} }` },
    })
    case 1: return socket.send({
      type: start,
      id,
      payload: { query: `subscription { postCreated(after: ${JSON.stringify(random.pick(hostileTexts))}) { id } }` },
    })
    case 2: return socket.send({ type: start, id, payload: { query: generateQuery(random, ids) } })
    case 3: return socket.send({
      type: random.pick(['complete', 'stop', 'ping', 'pong', 'connection_init', 'connection_terminate', 'next', '']),
      id,
    })
    case 4: return socket.send(random.pick(hostileJson))
    case 5: return socket.send(random.mutate(JSON.stringify({ type: start, id, payload: { query: '{ __typename }' } })))
    case 6: return socket.send({
      type: 'connection_init', payload: { headers: { Authorization: random.pick(cast.rejected).authorization } },
    })
    case 7: return socket.send({
      type: start, id, payload: random.pick([null, 1, [], { query: 1 }, { query: '{', variables: [] }]),
    })
    default: return socket.send(random.bytes(random.below(100)), random.chance(0.5) ? opcodes.binary : opcodes.ping)
  }
}

/** Frames that violate RFC 6455, before and after the handshake is complete, with and without a known subprotocol. */
export const malformedFrames: Attack = {
  name: 'malformed-frames',
  weight: 6,
  async run ({ random, shared, address, findings }) {
    const protocol =
      random.pick([...PROTOCOLS, undefined, 'unknown', 'graphql-transport-ws, graphql-ws', 'a'.repeat(3000)])
    const frames = Array.from({ length: 1 + random.below(3) }, () => random.pick(malformed)(random))
    const isEarly = random.chance(0.5)
    const socket = await RawSocket.open(
      shared.target, { address, protocol, ...isEarly && { early: Buffer.concat(frames) } }
    )
    if (typeof socket === 'number') return findings.count('malformed-frames', socket === 0 ? 'closed' : socket)
    if (!isEarly) for (const frame of frames) socket.connection.send(frame)
    await socket.hear(() => false, 500)
    findings.count('malformed-frames', socket.isOpen ? 'left open' : `closed with ${socket.closeCode ?? 'no code'}`)
    await socket.close()
  },
}

const malformed: readonly ((random: Random) => Buffer)[] = [
  () => Buffer.from([0x81, 0x01, 0x41]),
  (random) => writeFrame('{}', { isMasked: false, opcode: random.below(16) }),
  (random) => writeFrame('{}', { reserved: 1 + random.below(7) }),
  (random) => writeFrame('{}', { opcode: random.pick([3, 4, 5, 6, 7, 11, 12, 13, 14, 15]) }),
  () => writeFrame(Buffer.from([0xff, 0xfe, 0xc0])),
  () => writeFrame('x'.repeat(126), { opcode: opcodes.ping }),
  () => writeFrame('x', { opcode: opcodes.ping, isFinal: false }),
  () => writeFrame('x', { opcode: opcodes.continuation }),
  () => Buffer.concat([writeFrame('{', { isFinal: false }), writeFrame('}', { isFinal: false })]),
  () => writeFrame('{}', { length: 2 ** 40 }),
  () => writeFrame('x'.repeat(20_000)),
  (random) => writeFrame(Buffer.from([random.below(256), random.below(256), 0xff]), { opcode: opcodes.close }),
  () => writeFrame(Buffer.from([3]), { opcode: opcodes.close }),
  () =>
    Buffer.concat(Array.from({ length: 50 }, () => writeFrame('', { isFinal: false, opcode: opcodes.continuation }))),
  (random) => random.bytes(1 + random.below(200)),
  (random) => writeFrame(JSON.stringify({
    type: 'subscribe',
    id: '1',
    payload: { query: `mutation { createPost(input: { title: "${forbiddenMark(random)}", content: "" }) { id } }` },
  })),
]
