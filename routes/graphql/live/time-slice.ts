import { setImmediate as nextTurn } from 'node:timers/promises'

// Milliseconds for which events may be rendered in one turn of the event loop. Other requests wait meanwhile.
const SLICE_MS = 10

let since: number | undefined

/**
 * Resolves when another event may be rendered: at once, or in a later turn of the event loop. Rendering recent posts
 * from memory never waits for I/O, so without this a burst of posts to many subscriptions would occupy the event loop
 * for one long turn.
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
