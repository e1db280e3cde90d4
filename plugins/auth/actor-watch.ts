import { batchCalls } from '../../db/batching/batching.ts'

type Holds = () => boolean | Promise<boolean>

// A batch of reads accepts a limited number of items.
const VERIFIED_AT_ONCE = 1000

/** What ends when a condition does not hold any more: sockets, event streams and downloads, when their actor may not act any more. */
export class ActorWatch {
  readonly #conditions = new Map<() => void, Holds>()
  // All who ask before a verification begins share it.
  readonly #verifyAll = batchCalls(async (_: 'all'[]) => {
    const all = [...this.#conditions]
    for (let from = 0; from < all.length; from += VERIFIED_AT_ONCE) {
      await Promise.all(all.slice(from, from + VERIFIED_AT_ONCE).map(([end, holds]) => this.#verify(end, holds)))
    }
    return [undefined]
  }, { inFlight: 1, timeoutMs: Infinity })

  /** Calls `end` if the condition does not hold now or in a later verification. Returns a function that stops watching. */
  add (holds: Holds, end: () => void): () => void {
    this.#conditions.set(end, holds)
    ignoreOutage(this.#verify(end, holds))
    return () => this.#conditions.delete(end)
  }

  /** Does the same as `verifyAll` without waiting for it. */
  verifyLater (): void {
    ignoreOutage(this.verifyAll())
  }

  /** Verifies all conditions, and ends what may not go on. Rejects with `DatabaseUnavailable`. */
  verifyAll (): Promise<void> {
    return this.#verifyAll('all')
  }

  async #verify (end: () => void, holds: Holds): Promise<void> {
    if (!await holds() && this.#conditions.has(end)) end()
  }
}

// Nothing is delivered while the database is unavailable, and all conditions are verified before anything is.
function ignoreOutage (verifying: Promise<void>): void {
  verifying.catch(() => {})
}
