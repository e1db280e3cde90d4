// Functions that the client processes of fanout.ts, comeback.ts and idle.ts share.
import { once } from 'node:events'
import { Agent, request } from 'node:http'
import { text } from 'node:stream/consumers'
import { WebSocket } from 'ws'

const OPENING_AT_ONCE = 50
const CONNECTIONS = 64
const CREATE = 'mutation ($title: String!) { createPost(input: { title: $title, content: "Words" }) { cursor } }'

/** Returns the configuration that `startClient` has passed. */
export const given = <Given>(): Given => JSON.parse(process.argv[2]!)

/** Sends the results to `startClient`. */
export const tell = (told: object): void => { process.send!({ told }) }

/** Tells `startClient` that the measurement begins. */
export const begin = (): void => { process.send!({}) }

/** Opens a socket without a token that subscribes. `hear` is called with each message. */
export async function subscribe (
  url: string, payload: { query: string, variables?: object }, hear: (data: Buffer) => void
): Promise<WebSocket> {
  const socket = new WebSocket(
    `${url.replace('http', 'ws')}/graphql`, 'graphql-transport-ws', { perMessageDeflate: false }
  )
  await once(socket, 'open')
  socket.send('{"type":"connection_init"}')
  const [answer] = await once(socket, 'message')
  if (!String(answer).includes('connection_ack')) throw new Error(`connection_init: ${answer}`)
  socket.on('message', hear)
  socket.on('close', (code) => { if (code !== 1006) throw new Error(`a socket was closed with ${code}`) })
  socket.send(JSON.stringify({ type: 'subscribe', id: '1', payload }))
  return socket
}

/** Opens `count` sockets, some of them at a time. */
export async function openAll (count: number, open: (index: number) => Promise<WebSocket>): Promise<WebSocket[]> {
  const sockets: WebSocket[] = []
  while (sockets.length < count) {
    const from = sockets.length
    sockets.push(...await Promise.all(
      Array.from({ length: Math.min(OPENING_AT_ONCE, count - from) }, (_, index) => open(from + index))
    ))
  }
  return sockets
}

/** Returns a function that creates a post over kept-alive connections and returns its cursor. */
export function createWriter (url: string, token: string): (title: string) => Promise<string> {
  const agent = new Agent({ keepAlive: true, maxSockets: CONNECTIONS })
  const headers = { 'content-type': 'application/json', authorization: `Bearer ${token}` }
  return async (title) => {
    const outgoing = request(`${url}/graphql`, { method: 'POST', agent, headers })
    outgoing.end(JSON.stringify({ query: CREATE, variables: { title } }))
    const [response] = await once(outgoing, 'response')
    const answer = await text(response)
    if (answer.includes('"errors"')) throw new Error(answer)
    return JSON.parse(answer).data.createPost.cursor
  }
}
