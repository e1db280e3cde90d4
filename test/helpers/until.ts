import { setTimeout as delay } from 'node:timers/promises'

// Long enough for a machine that is busy: only a test that fails waits for so long.
const PATIENCE_MS = 60_000
// Short enough to see what lasts for some milliseconds, and long enough to leave the processor to what is waited for.
const POLL_MS = 1

/** Waits until something is so, looking once in `pollMs`: more is right for what lasts, and takes its time. Throws after a minute. */
export async function until (what: string, isSo: () => unknown, pollMs = POLL_MS): Promise<void> {
  for (const deadline = performance.now() + PATIENCE_MS; !await isSo(); await delay(pollMs)) {
    if (performance.now() > deadline) throw new Error(`not within 60 s: ${what}`)
  }
}
