import { batchCalls } from '../../db/batching/batching.ts'

type IsStillAllowed = () => boolean | Promise<boolean>

// A batch of reads accepts a limited number of items.
const VERIFIED_AT_ONCE = 1000

/**
 * What ends when a condition does not hold any more: sockets, event streams and downloads, when their actor may not act
 * any more.
 */
export class ActorWatch {
  readonly #conditions = new Map<() => void, IsStillAllowed>()
  // All who ask before a verification begins share it.
  readonly #verifyAll = batchCalls(async (_: 'all'[]) => {
    const all = [...this.#conditions]
    for (let from = 0; from < all.length; from += VERIFIED_AT_ONCE) {
      const some = all.slice(from, from + VERIFIED_AT_ONCE)
      await Promise.all(some.map(([end, isStillAllowed]) => this.#verify(end, isStillAllowed)))
    }
    return [undefined]
  }, { inFlight: 1, timeoutMs: Infinity })

  /**
   * Calls `end` if the condition does not hold now or in a later verification. Returns a function that stops watching.
   */
  add (isStillAllowed: IsStillAllowed, end: () => void): () => void {
    this.#conditions.set(end, isStillAllowed)
    ignoreOutage(this.#verify(end, isStillAllowed))
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

  async #verify (end: () => void, isStillAllowed: IsStillAllowed): Promise<void> {
    if (!await isStillAllowed() && this.#conditions.has(end)) end()
  }
}

// Nothing is delivered while the database is unavailable, and all conditions are verified before anything is.
function ignoreOutage (verifying: Promise<void>): void {
  verifying.catch(() => {})
}
