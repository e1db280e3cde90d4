import { once } from 'node:events'
import { connect, type AddressInfo } from 'node:net'
import type { FastifyInstance } from 'fastify'
import type { Test } from 'tap'
import { WebSocket } from 'ws'

/** Makes the app listen on a free port and returns its addresses. */
export async function listen (app: FastifyInstance): Promise<{ port: number, url: string, ws: string }> {
  await app.listen({ port: 0, host: '127.0.0.1' })
  const { port } = app.server.address() as AddressInfo
  return { port, url: `http://127.0.0.1:${port}`, ws: `ws://127.0.0.1:${port}` }
}

/** Opens a WebSocket and queues the messages that it receives. */
export async function openSocket (t: Test, url: string, protocols: string[] = []) {
  const socket = new WebSocket(url, protocols)
  t.teardown(() => socket.terminate())
  const messages: string[] = []
  socket.on('message', (data) => { messages.push(String(data)); socket.emit('heard') })
  await once(socket, 'open')
  return {
    socket,
    say: (message: string | object) => socket.send(typeof message === 'string' ? message : JSON.stringify(message)),
    async hear (): Promise<string> {
      while (messages.length === 0) await once(socket, 'heard')
      return messages.shift()!
    },
  }
}

/** Sends raw bytes and returns everything received until the server closes the connection. */
export async function sendRaw (port: number, text: string): Promise<string> {
  const socket = connect(port, '127.0.0.1')
  socket.end(text)
  let answer = ''
  for await (const chunk of socket) answer += chunk
  return answer
}

/** Returns a raw response without its `Date` header. */
export const withoutDate = (answer: string) => answer.replaceAll(/date: .*\r\n/gi, '')
