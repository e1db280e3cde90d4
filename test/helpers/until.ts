import { setImmediate } from 'node:timers/promises'

// Long enough for a machine that is busy: only a test that fails waits for so long.
const PATIENCE_MS = 60_000

/** Waits until something is so. Throws after a minute. */
export async function until (what: string, isSo: () => unknown): Promise<void> {
  for (const deadline = performance.now() + PATIENCE_MS; !await isSo(); await setImmediate()) {
    if (performance.now() > deadline) throw new Error(`not within 60 s: ${what}`)
  }
}
