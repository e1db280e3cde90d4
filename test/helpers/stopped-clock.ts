import type { Test } from 'tap'

/** A clock that only moves when a test says so. */
export interface StoppedClock {
  /** Moves the clock. */
  advance (milliseconds: number): void
  /** Lets it run again. The end of the test does that, too. */
  restore (): void
}

/**
 * Stops `performance.now()`, by which a node forgets what it has rejected or logged. So it forgets nothing because the
 * machine is busy. Timers still run.
 */
export function stopClock (t: Test): StoppedClock {
  let now = performance.now()
  const { restore } = t.intercept(performance, 'now', { value: () => now }) as unknown as Pick<StoppedClock, 'restore'>
  return { advance: (milliseconds) => { now += milliseconds }, restore }
}
