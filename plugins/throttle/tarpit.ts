import type { Client } from '../../db/batching/batching.ts'
import { ClientDisconnected } from '../../schema/http/errors.ts'
import type { Lifecycle } from '../core.ts'

// Long enough that a flood over a few hundred connections gets few responses, and short for somebody who mistypes a
// password.
const MIN_MS = 300
const MAX_MS = 500
const MAX_WAITING = 1000

/**
 * Creates a function that delays a client before it is rejected. The delay is random, so that clients that arrive
 * together do not get their responses together. There is no delay if 1,000 clients are waiting, and while the app
 * closes.
 *
 * @returns a function that resolves after the delay, and rejects with `ClientDisconnected` if the client has
 * disconnected meanwhile
 */
export function createTarpit (lifecycle: Lifecycle): (client: Client) => Promise<void> {
  const waiting = new Set<() => void>()
  let closing = false

  // Closing the app must not wait for delayed clients.
  lifecycle.addHook('preClose', async () => {
    closing = true
    for (const release of waiting) release()
  })

  return async (client) => {
    if (closing || waiting.size >= MAX_WAITING) return
    await new Promise<void>((resolve) => {
      const timer = setTimeout(release, MIN_MS + Math.random() * (MAX_MS - MIN_MS))
      waiting.add(release)

      function release (): void {
        clearTimeout(timer)
        waiting.delete(release)
        resolve()
      }
    })
    if (client.destroyed) throw new ClientDisconnected()
  }
}
