import type { Duplex } from 'node:stream'
import type { BoundedSocket } from './bounded-socket.ts'
import type { Sink } from '../sink.ts'

/** The subscription of a socket. */
export interface SocketSubscription extends Pick<Sink, 'networks' | 'complete' | 'fail'> {
  /** Sends an event, which is JSON, to the client. */
  send (event: string): void
}

/** Creates the sink of a subscription over a socket. `connection` is the connection under the WebSocket. */
export function createSocketSink (
  socket: BoundedSocket, connection: Duplex, { networks, send, complete, fail }: SocketSubscription
): Sink {
  return {
    networks,
    transport: 'websocket',
    complete,
    fail,

    // Nobody waits for a closing socket, which sends no more events.
    get waiting () { return socket.isOpen ? socket.unread : 0 },

    deliver (event) {
      corkForTurn(connection)
      send(event)
    },

    drain: () => socket.drain(),
  }
}

// Sends all events of a turn in one write, because a write costs more than everything else about an event. Node does
// the same for HTTP responses.
function corkForTurn (connection: Duplex): void {
  if (connection.writableCorked > 0) return
  connection.cork()
  process.nextTick(uncork, connection)
}

const uncork = (connection: Duplex): void => connection.uncork()
