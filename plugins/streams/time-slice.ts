// Milliseconds for which events may be rendered in one turn of the event loop. A request takes some ten turns, and
// waits in each of them.
const SLICE_MS = 2

const waiting: (() => void)[] = []
let since: number | undefined

/**
 * Resolves when another event may be rendered: at once (undefined), or in a later turn of the event loop, in the order
 * of the calls. Rendering recent posts from memory never waits for I/O, so without this a burst of posts to many
 * subscriptions would occupy the event loop for one long turn.
 */
export function waitForTimeSlice (): Promise<void> | undefined {
  if (waiting.length === 0 && isWithinSlice()) return undefined
  return new Promise((resolve) => waiting.push(resolve))
}

function isWithinSlice (): boolean {
  if (since === undefined) {
    since = performance.now()
    setImmediate(() => {
      since = undefined
      startNext()
    })
  }
  return performance.now() - since < SLICE_MS
}

// What follows a resolution are microtasks, all of which run before the next tick. So one event is rendered, as far as
// that needs no I/O, before the time is looked at for the next one.
function startNext (): void {
  if (waiting.length === 0 || !isWithinSlice()) return
  waiting.shift()!()
  queueMicrotask(() => process.nextTick(startNext))
}
