import type { Duplex } from 'node:stream'
import { WebSocket } from 'ws'
import type { BoundedSocket } from './bounded-socket.ts'
import type { Sink } from '../shared-operation.ts'

/** How a socket sends an event, and what ends its subscription. */
export interface SocketSubscription extends Pick<Sink, 'network' | 'fail'> { send (event: string): void }

/** Has a socket take the events of a subscription; `connection` is what it is a socket on. */
export function createSocketSink (socket: BoundedSocket, connection: Duplex, { network, send, fail }: SocketSubscription): Sink {
  return {
    network,
    fail,

    // A socket that is closing takes no more, and is not waited for.
    get waiting () { return socket.readyState === WebSocket.OPEN ? socket.bufferedAmount : 0 },

    deliver (event) {
      gather(connection)
      send(event)
    },

    drain: () => socket.drain(),
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
