import { setTimeout as delay } from 'node:timers/promises'

// Long enough for a machine that is busy: only a test that fails waits for so long.
const PATIENCE_MS = 60_000
// Short enough to see what lasts for some milliseconds, and long enough to leave the processor to what is waited for.
const POLL_MS = 1
// Requests and statements in one unbroken sequence would take the time of the one that is waited for.
const PAUSE = 4
const LONGEST_MS = 50

/** Waits until something is so, looking once in `pollMs` at the most: more is right for what lasts. Throws after a minute. */
export async function until (what: string, isSo: () => unknown, pollMs = POLL_MS): Promise<void> {
  const deadline = performance.now() + PATIENCE_MS
  for (let since = performance.now(); !await isSo(); since = performance.now()) {
    const now = performance.now()
    if (now > deadline) throw new Error(`not within 60 s: ${what}`)
    await delay(Math.max(pollMs, Math.min(PAUSE * (now - since), LONGEST_MS)))
  }
}
