import { TooManyConnections } from '../../schema/http/errors.ts'
import type { Network } from '../../schema/http/network.ts'
import type { Core } from '../core.ts'
import { ClientQuota } from '../support/client-quota.ts'
import { UnreadBytes } from './unread-bytes.ts'

/** How the client is connected. */
export type Transport = 'websocket' | 'sse'

export type Connections = ReturnType<typeof createConnections>

/** Limits and counts the connections that stay open: sockets and event streams, whatever they deliver. */
export function createConnections ({ options: { live }, telemetry: { metrics } }: Core) {
  const quota =
    new ClientQuota({ perNetwork: live.connectionsPerNetwork, total: live.connections, Exceeded: TooManyConnections })
  const unread = new UnreadBytes(live.unreadBytes)
  const createCount = (): Map<Transport, number> => new Map([['websocket', 0], ['sse', 0]])
  const [connections, subscribers] = [createCount(), createCount()]
  metrics.gauge('usher_connections', 'Open WebSockets and event streams', () => connections, { label: 'transport' })
  metrics.gauge(
    'usher_subscribers', 'Subscriptions that are being delivered', () => subscribers, { label: 'transport' }
  )
  metrics.gauge(
    'usher_unread_bytes',
    'Bytes that were sent to slow sockets and event streams, and have not been read, at most',
    () => unread.sum
  )

  function count (counts: Map<Transport, number>, transport: Transport): () => void {
    counts.set(transport, counts.get(transport)! + 1)
    return () => { counts.set(transport, counts.get(transport)! - 1) }
  }

  return {
    /** The limit of unread bytes of all sockets and event streams together. */
    unread,

    /**
     * Admits a socket or an event stream from a network. Returns a function to call when it has closed. Throws
     * `TooManyConnections` or `Overloaded`.
     */
    admit (networks: readonly Network[], transport: Transport): () => void {
      const taken = quota.take(networks)
      const closed = count(connections, transport)
      return () => {
        taken()
        closed()
      }
    },

    /** Counts a subscription, until the returned function is called. */
    addSubscriber: (transport: Transport): () => void => count(subscribers, transport),
  }
}
