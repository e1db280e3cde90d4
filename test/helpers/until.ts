import { setTimeout as delay } from 'node:timers/promises'
import { TEST_TIMEOUT_MS } from './deadlines.ts'

// This is short enough to observe a state that lasts milliseconds, and leaves the CPU to what the test waits for.
const POLL_MS = 1
// A check that sends requests or statements without a pause would slow down what the test waits for, and other tests.
// The pause is a multiple of the duration of the check, and a share of the time for which it has waited.
const PAUSE = 4
const SHARE = 0.05
const LONGEST_MS = 50

/**
 * Resolves when `isSo` returns a truthy value. Checks at most once per `pollMs`, which should be larger for a state
 * that lasts. Throws after `TEST_TIMEOUT_MS`.
 */
export async function until (what: string, isSo: () => unknown, pollMs = POLL_MS): Promise<void> {
  const start = performance.now()
  for (let since = performance.now(); !await isSo(); since = performance.now()) {
    const now = performance.now()
    if (now > start + TEST_TIMEOUT_MS) {
      throw new Error(`timed out after ${TEST_TIMEOUT_MS / 1000} s, waiting for: ${what}`)
    }
    await delay(Math.max(pollMs, Math.min(Math.max(PAUSE * (now - since), SHARE * (now - start)), LONGEST_MS)))
  }
}
