import { once } from 'node:events'
import { connect, type Socket } from 'node:net'
import type { Test } from 'tap'

/** A connection on which the test writes raw WebSocket frames. */
export interface RawSocket {
  readonly socket: Socket
  /** Resolves with all received bytes when the server has closed the connection. */
  readonly closed: Promise<Buffer>
}

/** Requests a WebSocket upgrade and sends `rest` in the same segment. The connection is closed when the test ends. */
export async function upgrade (
  t: Test, at: string, { protocol = '', rest = Buffer.alloc(0) as Buffer } = {}
): Promise<RawSocket> {
  const [host, port] = at.split(':')
  const socket = connect(Number(port), host)
  t.teardown(() => socket.destroy())
  const chunks: Buffer[] = []
  socket.on('data', (chunk) => chunks.push(chunk))
  // The server may close the connection before everything was sent.
  socket.on('error', () => {})
  const closed = new Promise<Buffer>((resolve) => socket.once('close', () => resolve(Buffer.concat(chunks))))
  await once(socket, 'connect')
  const head = [
    'GET /graphql HTTP/1.1', 'Host: x', 'Connection: Upgrade', 'Upgrade: websocket', 'Sec-WebSocket-Version: 13',
    'Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==', ...protocol ? [`Sec-WebSocket-Protocol: ${protocol}`] : [],
  ]
  socket.setNoDelay()
  socket.write(Buffer.concat([Buffer.from(`${head.join('\r\n')}\r\n\r\n`), rest]))
  return { socket, closed }
}

/** Returns a client frame, masked with zeros. `first` is its first byte. */
export function frame (first: number, payload: Buffer | string = ''): Buffer {
  const bytes = Buffer.from(payload)
  const length = bytes.length < 126
    ? Buffer.from([0x80 | bytes.length])
    : Buffer.from([0x80 | 126, bytes.length >> 8, bytes.length & 255])
  return Buffer.concat([Buffer.from([first]), length, Buffer.alloc(4), bytes])
}
