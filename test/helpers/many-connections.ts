// A thread that opens connections at the same time, so that a test can do nothing until all of them are established.
import { once } from 'node:events'
import { connect, type Socket } from 'node:net'
import { text } from 'node:stream/consumers'
import { parentPort, workerData } from 'node:worker_threads'

/** Where the thread connects, and what it sets to 1 when all connections are established. */
export interface ManyConnections { port: number, host: string, count: number, established: Int32Array }

/** Sends a request and returns all that comes until the connection is closed, or the error. */
async function ask (socket: Socket): Promise<string> {
  socket.write('GET / HTTP/1.1\r\nhost: a\r\n\r\n')
  return text(socket).catch(({ code }: NodeJS.ErrnoException) => `${code}`)
}

if (parentPort) {
  const { port, host, count, established } = workerData as ManyConnections
  const sockets = Array.from({ length: count }, () => connect(port, host))
  await Promise.all(sockets.map((socket) => once(socket, 'connect')))
  Atomics.store(established, 0, 1)
  Atomics.notify(established, 0)
  parentPort.postMessage(await Promise.all(sockets.map(ask)))
}
