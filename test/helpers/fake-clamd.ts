import { once } from 'node:events'
import { createServer, type AddressInfo, type Socket } from 'node:net'
import type { Test } from 'tap'

const COMMAND = 'zINSTREAM\0'

/** What a clamd does. */
export interface Behaviour {
  /** Returns the answer to bytes, without which it is silent. */
  answer (bytes: Buffer): string | undefined
  /** What it sends as soon as there is a connection. */
  early?: string
  /** How many bytes it takes. */
  limit?: number
}

export interface FakeClamd {
  /** Where it listens, as the option `scan.clamd`. */
  readonly place: string
  behave (behaviour: Behaviour): void
  stop (): Promise<void>
}

/** Starts a server that speaks the protocol of clamd, or worse. By default everything is clean. */
export async function startFakeClamd (t: Test): Promise<FakeClamd> {
  let { answer, early, limit = Infinity }: Behaviour = { answer: () => 'stream: OK\0' }
  const sockets = new Set<Socket>()
  const server = createServer((socket) => {
    sockets.add(socket)
    // Who refuses bytes closes the connection while they arrive.
    socket.on('error', () => {}).once('close', () => sockets.delete(socket))
    if (early !== undefined) socket.write(early)
    let received = Buffer.alloc(0)
    socket.on('data', (chunk) => {
      received = Buffer.concat([received, chunk])
      const { announced, bytes, isComplete } = readStream(received)
      if (announced > limit) {
        socket.write('INSTREAM size limit exceeded. ERROR\0', () => socket.destroy())
      } else if (isComplete) {
        const text = answer(bytes)
        if (text !== undefined) socket.end(text, 'latin1')
      }
    })
  }).listen(0, '127.0.0.1')
  await once(server, 'listening')
  const stop = async () => {
    for (const socket of sockets) socket.destroy()
    if (server.listening) await new Promise((resolve) => { server.close(resolve) })
  }
  t.teardown(stop)
  return {
    place: `127.0.0.1:${(server.address() as AddressInfo).port}`,
    behave (behaviour) { ({ answer, early, limit = Infinity } = behaviour) },
    stop,
  }
}

// Returns what a client has sent until now, and how many bytes it has announced.
function readStream (received: Buffer): { announced: number, bytes: Buffer, isComplete: boolean } {
  const chunks: Buffer[] = []
  let announced = 0
  for (let at = COMMAND.length; at + 4 <= received.length;) {
    const length = received.readUInt32BE(at)
    if (length === 0) return { announced, bytes: Buffer.concat(chunks), isComplete: true }
    announced += length
    chunks.push(received.subarray(at + 4, at + 4 + length))
    at += 4 + length
  }
  return { announced, bytes: Buffer.concat(chunks), isComplete: false }
}
