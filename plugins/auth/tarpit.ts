import type { FastifyInstance } from 'fastify'
import type { Client } from '../../db/batching.ts'
import { ClientGone } from '../../schema/errors.ts'

// Long enough that a flood over some hundred connections comes to little, and short for somebody who has mistyped.
const LEAST_MS = 300
const MOST_MS = 500
const WAITING = 1000

/**
 * Makes a function that keeps a client waiting before it is refused, each for a time of its own, so that those that came
 * together are not answered together. Beyond a number of them, and as the app closes, nobody waits.
 *
 * @returns rejects with `ClientGone` where nobody is left to be answered
 */
export function createTarpit (app: FastifyInstance): (client: Client) => Promise<void> {
  const waiting = new Set<() => void>()
  let closing = false

  // A stop is not to wait for them.
  app.addHook('preClose', async () => {
    closing = true
    for (const release of waiting) release()
  })

  return async (client) => {
    if (closing || waiting.size >= WAITING) return
    await new Promise<void>((resolve) => {
      const timer = setTimeout(release, LEAST_MS + Math.random() * (MOST_MS - LEAST_MS))
      waiting.add(release)

      function release (): void {
        clearTimeout(timer)
        waiting.delete(release)
        resolve()
      }
    })
    if (client.destroyed) throw new ClientGone()
  }
}
