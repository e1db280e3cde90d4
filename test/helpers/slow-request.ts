import { once } from 'node:events'
import { connect } from 'node:net'
import type { Test } from 'tap'
import { hostOf } from './graphql.ts'
import type { TestUsher } from './app.ts'

/** A request whose body has not been sent completely. */
export interface SlowRequest {
  /** Sends a few bytes of the body. */
  drip (bytes: string): void
  /** Sends the rest of the body, or something else of the same length. */
  finish (rest?: string): void
  /** Resolves with everything the server sent when it has closed the connection. */
  readonly answer: Promise<string>
}

/**
 * Sends the head of a request and the first byte of its JSON body. Resolves when the server has authenticated the
 * request: the server sends 100 Continue before that, and responds to the health check that follows only after that.
 */
export async function beginRequest (
  t: Test, usher: TestUsher, method: string, path: string, headers: Record<string, string>, body: object
): Promise<SlowRequest> {
  const [host, port] = (await hostOf(usher)).split(':') as [string, string]
  const socket = connect(Number(port), host).setEncoding('utf8')
  t.teardown(() => socket.destroy())
  let received = ''
  socket.on('data', (text: string) => { received += text })
  // A client that writes after the server has closed the connection gets an error. Only what it received counts.
  socket.on('error', () => {})
  const closed = new Promise((resolve) => { socket.once('close', resolve) })
  const answer = closed.then(() => received.replace('HTTP/1.1 100 Continue\r\n\r\n', ''))
  const text = JSON.stringify(body)
  const fields = Object.entries({
    host,
    'content-type': 'application/json',
    'content-length': String(Buffer.byteLength(text)),
    expect: '100-continue',
    connection: 'close',
    ...headers,
  })
  socket.write(
    `${method} ${usher.prefix}${path} HTTP/1.1\r\n${fields.map(([name, value]) => `${name}: ${value}\r\n`).join('')}\r\n${text[0]}`
  )
  await once(socket, 'data')
  await fetch(`http://${host}:${port}${usher.prefix}/health/live`)
  return { answer, drip: (bytes) => socket.write(bytes), finish: (rest = text.slice(1)) => socket.write(rest) }
}
