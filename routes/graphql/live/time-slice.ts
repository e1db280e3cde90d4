import { setImmediate as nextTurn } from 'node:timers/promises'

// Other requests wait for as long as events are made in one turn of the event loop.
const SLICE_MS = 10

let since: number | undefined

/**
 * Resolves when there is time to make another event: at once, or in a later turn of the event loop. What is made from
 * memory never waits for I/O, so a burst of posts to many subscriptions would otherwise be one long turn.
 */
export async function waitForTimeSlice (): Promise<void> {
  for (;;) {
    if (since === undefined) {
      since = performance.now()
      setImmediate(() => { since = undefined })
    }
    if (performance.now() - since < SLICE_MS) return
    await nextTurn()
  }
}
