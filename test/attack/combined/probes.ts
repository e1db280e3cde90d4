// This process simulates honest users who do what an attack may use up: they log in from a network that is recognised
// and from another one, sign up, ask for a mail to log in, upload, subscribe, read long pages, and send new GraphQL
// documents. Each does so at a fixed pace, from a network of its own or from the /48 of the attackers.
import { setTimeout as delay } from 'node:timers/promises'
import type { World } from '../actors.ts'
import { Cast } from '../actors.ts'
import { writeRequest, type Request } from '../exchange.ts'
import { readConfiguration, report } from '../helpers.ts'
import { HttpConnection, NodeIsDown, NoReply, type Target } from '../http-connection.ts'
import { TokenFactory, type SigningKey } from '../tokens.ts'
import { RawSocket } from '../web-socket.ts'
import { forwardedFor, honestAddress, places, type Place } from './origins.ts'
import type { Asked, Phase } from './phases.ts'

export interface ProbeConfiguration {
  readonly world: World
  readonly key: SigningKey
  /** The port of the node. */
  readonly port: number
}

const EVERY_MS = 500
const LOST_MS = 5000
const GIVE_UP_MS = 10_000
const JSON_TYPE = { 'content-type': 'application/json' }
const BOUNDARY = 'usher-attack'
// Networks from here on are those of users who log in elsewhere or sign up: each of them has another one.
const NEW = 20

const { world, key, port } = await readConfiguration<ProbeConfiguration>()
const cast = new Cast(world, new TokenFactory(key))
let serial = 0

interface Probe {
  place: Place
  /** The number of the probe's network in its place. */
  network: number
  connection?: HttpConnection | undefined
}

/** The outcome `good`, or what else happened. A mail that must arrive is named by its address. */
type Outcome = string | { mailTo: string }

const memberOf = ({ place, network }: Probe) => places.indexOf(place) * 3 + network % 3
const accountOf = (probe: Probe) => world.members[memberOf(probe)]!
const addressOf = ({ place, network }: Probe) => honestAddress(place, network)
const newAddress = ({ place }: Probe) => honestAddress(place, NEW + ++serial % 200)
const post = (path: string, body: object): Request =>
  ({ method: 'POST', path, headers: JSON_TYPE, body: JSON.stringify(body) })

const kinds: Record<string, (probe: Probe, target: Target) => Promise<Outcome>> = {
  'log in': (probe, target) => logIn(probe, target, addressOf(probe)),
  'log in from a new network': (probe, target) => logIn(probe, target, newAddress(probe)),
  async 'sign up' (probe, target) {
    const email = `honest-${++serial}@${probe.place}.example.org`
    const body = { name: 'Honest', email, password: 'an unusual phrase' }
    const status = await ask(probe, target, post('/api/auth/sign-up', body), newAddress(probe))
    return status === 202 ? { mailTo: email } : `${status}`
  },
  async 'ask for a mail to log in' (probe, target) {
    const { email } = accountOf(probe)
    const status = await ask(probe, target, post('/api/auth/login/mail', { email }))
    return status === 202 ? 'good' : `${status}`
  },
  upload: (probe, target) => expect(200, ask(probe, target, {
    method: 'POST',
    path: '/api/uploads',
    actor: cast.member(memberOf(probe)),
    headers: { 'content-type': `multipart/form-data; boundary=${BOUNDARY}` },
    body: `--${BOUNDARY}\r\ncontent-disposition: form-data; name="description"\r\n\r\nHonest\r\n` +
      `--${BOUNDARY}\r\ncontent-disposition: form-data; name="file"; filename="a.txt"\r\n\r\nwords\r\n--${BOUNDARY}--\r\n`,
  })),
  subscribe: (probe, target) => subscribe(probe, target),
  'subscribe with a token': (probe, target) =>
    subscribe(probe, target, cast.member(memberOf(probe)).authorization),
  'read a long page': (probe, target) =>
    expect(200, ask(probe, target, { method: 'GET', path: '/api/users?limit=1000' })),
  'send a new document': (probe, target) => expect(200, ask(probe, target, post('/graphql', {
    query: `{ users(first: 10) { nodes { n${++serial}: name posts(first: 5) { title } } } }`,
  }))),
}

process.on('message', async ({ port, seconds }: Phase) => report({ type: 'asked', asked: await measure(port, seconds!) }))
await recogniseNetworks()
report({ type: 'ready' })

async function measure (port: number, seconds: number): Promise<Asked[]> {
  const until = performance.now() + seconds * 1000
  const runs = places.flatMap((place) => Object.keys(kinds).map(async (kind, network) => {
    const asked: Asked = { place, kind, latencies: [], outcomes: {}, mails: [] }
    const probe: Probe = { place, network }
    const count = (outcome: string) => { asked.outcomes[outcome] = (asked.outcomes[outcome] ?? 0) + 1 }
    for (let due = performance.now() + Math.random() * EVERY_MS; due < until; due += EVERY_MS) {
      await delay(Math.max(0, due - performance.now()))
      // If the phase ended while the user was waiting, the remaining requests are counted as not sent.
      const outcome = performance.now() < until
        ? await attempt(() => kinds[kind]!(probe, { host: '127.0.0.1', port }))
        : 'not sent'
      asked.latencies.push(performance.now() - due)
      if (typeof outcome === 'string') count(outcome)
      else asked.mails.push({ to: outcome.mailTo, since: Date.now() })
    }
    await probe.connection?.close()
    return asked
  }))
  return Promise.all(runs)
}

async function attempt (act: () => Promise<Outcome>): Promise<Outcome> {
  const late = new AbortController()
  try {
    return await Promise.race([act(), delay(GIVE_UP_MS, 'no response', { signal: late.signal })])
  } catch (error) {
    if (error instanceof NodeIsDown || error instanceof NoReply) return 'no response'
    throw error
  } finally {
    late.abort()
  }
}

async function expect (wanted: number, asking: Promise<number>): Promise<string> {
  const status = await asking
  return status === wanted ? 'good' : `${status}`
}

async function logIn (probe: Probe, target: Target, address: string): Promise<Outcome> {
  const { email, password } = world.logins[places.indexOf(probe.place) * 2 + probe.network % 2]!
  return expect(200, ask(probe, target, post('/api/auth/login', { email, password }), address))
}

// Asks on the connection of the probe. Returns the status.
async function ask (probe: Probe, target: Target, request: Request, address = addressOf(probe)): Promise<number> {
  if (!probe.connection?.isUsable) probe.connection = await HttpConnection.open(target)
  probe.connection.socket.setTimeout(LOST_MS)
  probe.connection.send(writeRequest({ ...request, headers: { ...request.headers, ...forwardedFor(address) } }))
  const { status, body } = await probe.connection.reply()
  return status === 200 && body.startsWith('{"data":null') ? 503 : status
}

// Subscribes to something that nobody else does, and waits until that is accepted: a second operation with the same id
// is answered only after the first one.
async function subscribe (probe: Probe, target: Target, authorization?: string): Promise<Outcome> {
  const socket = await RawSocket.open(target, {
    protocol: 'graphql-transport-ws', headers: [`x-forwarded-for: ${addressOf(probe)}`],
  })
  if (typeof socket === 'number') return `${socket}`
  try {
    socket.send({ type: 'connection_init', ...authorization !== undefined && { payload: { authorization } } })
    if (!await socket.hear(({ type }) => type === 'connection_ack', LOST_MS)) return 'no acknowledgement'
    const alias = `h${++serial}`
    socket.send({ type: 'subscribe', id: 'live', payload: { query: `subscription { ${alias}: postCreated { id } }` } })
    socket.send({ type: 'subscribe', id: 'read', payload: { query: '{ me { id } }' } })
    await socket.hear(({ id, type }) => id === 'read' && type === 'complete', LOST_MS)
    const failed = socket.messages.find(({ id, type }) => id === 'live' && type !== 'next')
    return failed ? JSON.stringify(failed.payload).slice(0, 80) : socket.isOpen ? 'good' : `closed ${socket.closeCode}`
  } finally {
    await socket.close()
  }
}

// From now on, the networks from which `log in` comes are recognised.
async function recogniseNetworks (): Promise<void> {
  const network = Object.keys(kinds).indexOf('log in')
  for (const place of places) {
    const probe: Probe = { place, network }
    const outcome = await logIn(probe, { host: '127.0.0.1', port }, addressOf(probe))
    if (outcome !== 'good') throw new Error(`a login before the attack got ${outcome}`)
    await probe.connection?.close()
  }
}
