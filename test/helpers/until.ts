import { setImmediate } from 'node:timers/promises'

const PATIENCE_MS = 5_000

/** Waits until something is so. Throws after five seconds. */
export async function until (what: string, isSo: () => unknown): Promise<void> {
  for (const deadline = performance.now() + PATIENCE_MS; !await isSo(); await setImmediate()) {
    if (performance.now() > deadline) throw new Error(`not within 5 s: ${what}`)
  }
}
