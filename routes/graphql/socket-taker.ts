import type { Duplex } from 'node:stream'
import type { WebSocket } from 'ws'
import type { Taker } from './shared-operation.ts'

/** Has a socket take the events of a subscription; `connection` is what it is a socket on, and `say` sends one of them. */
export function createSocketTaker (socket: WebSocket, connection: Duplex, say: (event: string) => void): Taker {
  return {
    get waiting () { return socket.bufferedAmount },

    deliver (event) {
      gather(connection)
      say(event)
    },

    // A ping is sent after all that was sent before it.
    drain: () => new Promise((resolve) => socket.ping(undefined, undefined, () => resolve())),
  }
}

// Events of one turn leave in one write: a write costs more than all else about an event. Node does so with what it
// answers over HTTP.
function gather (connection: Duplex): void {
  if (connection.writableCorked > 0) return
  connection.cork()
  process.nextTick(uncork, connection)
}

const uncork = (connection: Duplex): void => connection.uncork()
