import cluster from 'node:cluster'
import type { Server } from 'node:http'
import { STOP_DEADLINES } from '../process/deadlines.ts'
import { createEnd, SIGNALS, type Stopping } from '../process/stop-on-signals.ts'
import { orderIn } from './messages.ts'

export interface WorkerOptions extends Stopping {
  server: Server
  stop: () => Promise<void>
}

/**
 * Stops this worker when the primary says so, or when the primary is gone. Signals are left to the primary: Ctrl-C
 * sends one to all processes of the terminal, and the primary stops the embedded PostgreSQL only after its workers.
 * Returns whether the worker is being replaced and so need not hurry.
 */
export function obeyPrimary ({ server, stop, ...stopping }: WorkerOptions): () => boolean {
  let isReplaced = false
  const end = createEnd(stopping, stop)
  let hasListened = server.listening
  server.once('listening', () => { hasListened = true })
  for (const signal of SIGNALS) process.on(signal, () => {})
  process.on('message', (message) => {
    const order = orderIn(message)
    if (order === undefined) return
    // When the node stops while this worker is being replaced, the requests that are left get as long as those of any
    // node that stops.
    if (isReplaced) setTimeout(() => server.closeAllConnections(), STOP_DEADLINES.connected).unref()
    else isReplaced = order === 'replace'
    end(0)
  })
  cluster.worker!.once('disconnect', () => {
    // Without this, Node.js would end the process at once.
    cluster.worker!.exitedAfterDisconnect = true
    stopping.log.error('The primary process of the node is gone, this worker stops')
    // Listening would never begin without the primary, and stopping waits for it.
    if (!hasListened) process.exit(1)
    end(1)
  })
  return () => isReplaced
}
