import type { FastifyInstance } from 'fastify'
import type { UnreadBytes } from './unread-bytes.ts'
import type { Transport } from './sink.ts'

/**
 * Adds the metrics of connections and subscriptions. Returns functions that count one until the returned function is
 * called.
 */
export function measureSubscriptions (
  { usherTelemetry: { metrics } }: FastifyInstance, unread: UnreadBytes, operations: () => number
) {
  const createCount = (): Map<Transport, number> => new Map([['websocket', 0], ['sse', 0]])
  const [connections, subscribers] = [createCount(), createCount()]
  metrics.gauge('usher_connections', 'Open WebSockets and event streams', () => connections, { label: 'transport' })
  metrics.gauge(
    'usher_subscribers', 'Subscriptions that are being delivered', () => subscribers, { label: 'transport' }
  )
  metrics.gauge(
    'usher_shared_subscriptions',
    'Different subscriptions to posts that are executed, each for all its subscribers',
    operations
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
    connection: (transport: Transport) => count(connections, transport),
    subscriber: (transport: Transport) => count(subscribers, transport),
  }
}
