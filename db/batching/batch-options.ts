import type { BatchTelemetry } from '../telemetry/batch.ts'

/** The options of `batchCalls`. */
export interface BatchOptions<Item = never> {
  /** The maximum number of concurrent batches. More would only make each batch smaller. */
  inFlight?: number
  /** The maximum number of items in a batch, or the maximum of their total weight. A single item may be heavier. */
  size?: number
  /** Returns the weight of an item. By default, each has a weight of 1. */
  weigh?: (item: Item) => number
  /** The maximum number of waiting items. */
  waiting?: number
  /** Milliseconds for which an item may wait to be sent. */
  timeoutMs?: number
  /** Milliseconds after which a batch gathers no further turn of the event loop. */
  gathering?: number
  /** Measures the batches, and gives their statements spans. */
  telemetry?: BatchTelemetry
}

/**
 * The client that an item is processed for, such as the socket of a request. Items whose clients are all destroyed are
 * dropped.
 */
export interface Client {
  readonly destroyed: boolean
  /**
   * Returns whether the client may still act. The permission for a write may end while the write waits to be sent, so
   * it is checked again when it is sent. Absent for clients that need no permission, such as a socket that reads.
   */
  isStillAllowed? (): boolean | Promise<boolean>
}
