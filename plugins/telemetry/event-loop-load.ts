import { performance, type EventLoopUtilization } from 'node:perf_hooks'

// Above this utilization, other requests wait longer than their own work takes.
const BUSY = 0.75
// Measurements over a shorter time are not meaningful.
const SHORTEST_MS = 1
// The weight of a measurement falls to about a third within this time.
const MEMORY_MS = 100

/** Measures how busy the event loop is. */
export class EventLoopLoad {
  #since = performance.now()
  #before: EventLoopUtilization = performance.eventLoopUtilization()
  #average = 0

  /** Whether the event loop has hardly been idle in the last tenths of a second. */
  get isBusy (): boolean {
    return this.utilization > BUSY
  }

  /** The part of the last tenths of a second in which the event loop was not idle, from 0 to 1. */
  get utilization (): number {
    const now = performance.now()
    // Many operations may read this in the same turn.
    if (now - this.#since < SHORTEST_MS) return this.#average
    const current = performance.eventLoopUtilization()
    const { utilization } = performance.eventLoopUtilization(current, this.#before)
    this.#average += (utilization - this.#average) * (1 - Math.exp((this.#since - now) / MEMORY_MS))
    this.#before = current
    this.#since = now
    return this.#average
  }
}
