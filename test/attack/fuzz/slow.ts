import { setTimeout as delay } from 'node:timers/promises'
import type { Attack, Lane } from '../context.ts'
import { writeRequest } from '../exchange.ts'
import type { HttpConnection } from '../http-connection.ts'

const NAME = 'slow'
const CONNECTIONS = 10
const STEPS = 15
const STEP_MS = 60
const PIPELINED = 50

/** Heads and bodies that arrive slowly, and responses that are not read, each over several connections. */
export const slow: Attack = {
  name: NAME,
  weight: 0.4,
  async run (lane) {
    const kind = lane.random.pick([sendSlowHead, sendSlowBody, readNothing])
    await Promise.all(Array.from({ length: CONNECTIONS }, async () => {
      const connection = await lane.open()
      await kind(lane, connection)
      await connection.close()
      lane.findings.count(NAME, kind.name)
    }))
  },
}

async function sendSlowHead (_: Lane, connection: HttpConnection): Promise<void> {
  connection.send('GET /api/users HTTP/1.1\r\nhost: localhost\r\n')
  for (let step = 0; step < STEPS; step++, await delay(STEP_MS)) connection.send(`x-${step}: y\r\n`)
}

async function sendSlowBody ({ random, cast }: Lane, connection: HttpConnection): Promise<void> {
  const body = JSON.stringify({ query: '{ __typename }' }).padEnd(1000)
  const bytes = writeRequest({
    method: 'POST',
    path: '/graphql',
    actor: random.chance(0.5) ? cast.anonymous : cast.member(0),
    headers: { 'content-type': 'application/json' },
    body,
  })
  connection.send(bytes.subarray(0, -body.length))
  for (let step = 0; step < STEPS; step++, await delay(STEP_MS)) connection.send(body[step]!)
}

async function readNothing ({ random }: Lane, connection: HttpConnection): Promise<void> {
  connection.socket.pause()
  const path = random.pick(['/api/users?limit=1000', '/docs/json', '/api/users?limit=100'])
  for (let count = 0; count < PIPELINED; count++) connection.send(writeRequest({ method: 'GET', path }))
  await delay(STEPS * STEP_MS)
}
