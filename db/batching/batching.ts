import type { Span } from '@opentelemetry/api'
import { InvalidToken } from '../../schema/sign-in/login.ts'
import { ClientDisconnected, Overloaded } from '../../schema/http/errors.ts'
import { DEADLINES } from '../../schema/options/deadlines.ts'
import type { BatchTelemetry } from '../telemetry/batch.ts'
import type { Tracing } from '../telemetry/tracing.ts'

// The number of turns of the event loop in which a batch gathers its items. Larger batches are cheaper, because each
// statement costs a write to the socket and wakes a PostgreSQL process.
const TURNS = 4
// Milliseconds after which a batch gathers no further turn. While the node is busy, a turn takes that long by itself.
const GATHER_MS = 10
const LISTS_IN_FLIGHT = 4
/** The number of concurrent lists of a kind that may take long, such as searches. */
export const SLOW_LISTS_IN_FLIGHT = 2

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
  /** Gives the statements of batches that are not measured spans. */
  tracing?: Tracing | undefined
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

/** An item that waits for its batch. */
interface Waiting<Result> {
  promise: Promise<Result>
  resolve: (result: Result) => void
  reject: (error: unknown) => void
  since: number
  /** The client that waits for the item; undefined if the item is processed in any case. */
  client: Client | undefined
  /** Further clients that wait for the same item. */
  others: (Client | undefined)[] | undefined
  /** The spans of the requests that wait for the item, if there are traces. */
  spans: readonly Span[] | undefined
}

/** Returned by `run` in place of a result: the item was not processed, and is put into a later batch. */
export const postponed = Symbol('postponed')

/**
 * Turns a function of many items into a function of one item, so that the reads or writes of concurrent requests share
 * one statement. While batches are in flight, new items wait, and are sent together when a batch returns. There is no
 * timer and no delay when idle, and batches grow with the load. Results are not cached. An item only joins a batch that
 * has not been sent, so its result reflects every write that was acknowledged before it was requested (docs/speed.md,
 * points 2 and 3).
 *
 * Waiting items with the same value, such as equal keys, are processed once. Objects are compared by identity, so each
 * write is a separate item.
 *
 * @param run processes a batch and returns the results in the order of the items. An `Error` among them rejects only
 * its item; `postponed` puts the item into a later batch
 * @returns a function that resolves with the result of an item. It rejects with the error of its batch, with
 * `Overloaded` if too many items wait or the item has waited for too long, with `ClientDisconnected` if all clients
 * that wait for the item are destroyed before it is sent, and with `InvalidToken` if its client may no longer act when
 * it is sent.
 */
export function batchCalls<Item, Result> (
  run: (items: Item[]) => Promise<(Result | Error | typeof postponed)[]>,
  {
    inFlight: limit = 2, size = 1000, weigh, waiting: maxWaiting = 10_000, timeoutMs = DEADLINES.batch,
    gathering = GATHER_MS, telemetry, tracing = telemetry?.tracing,
  }: BatchOptions<Item> = {}
): (item: Item, client?: Client) => Promise<Result> {
  let waiting = new Map<Item, Waiting<Result>>()
  let inFlight = 0
  let scheduled = false
  let timer: NodeJS.Timeout | undefined
  telemetry?.addQueue(() => waiting.size)

  function schedule (): void {
    if (scheduled || inFlight >= limit || waiting.size === 0) return
    scheduled = true
    gather(waiting.size, TURNS, performance.now())
  }

  // The items of this turn of the event loop share a batch, as do those of the next turns as long as each turn adds
  // items.
  function gather (known: number, turns: number, since: number): void {
    setImmediate(() => {
      const mayGather = turns > 1 && waiting.size < size && performance.now() - since < gathering
      if (mayGather && waiting.size > known) gather(waiting.size, turns - 1, since)
      else void flush()
    })
  }

  async function flush (): Promise<void> {
    scheduled = false
    const sent = take()
    if (sent.size === 0) return schedule()
    inFlight++
    schedule()
    try {
      await rejectRevoked(sent)
      const results = sent.size === 0 ? [] : await send(sent)
      let index = 0
      const remaining = new Map<Item, Waiting<Result>>()
      for (const [item, entry] of sent) {
        const result = results[index++]
        if (result === postponed) remaining.set(item, entry)
        else if (result instanceof Error) entry.reject(result)
        else entry.resolve(result as Result)
      }
      if (remaining.size > 0) putBack(remaining)
    } catch (error) {
      for (const { reject } of sent.values()) reject(error)
    } finally {
      inFlight--
      schedule()
    }
  }

  function send (sent: Map<Item, Waiting<Result>>): ReturnType<typeof run> {
    const items = [...sent.keys()]
    if (!telemetry && !tracing) return run(items)
    const entries = [...sent.values()]
    telemetry?.sent(items.length, entries[0]!.since)
    if (!tracing) return run(items)
    const spans = entries.flatMap((entry) => entry.spans ?? [])
    return tracing.runBatch({ name: telemetry?.name, size: items.length, spans }, () => run(items))
  }

  // Puts items back in front of those that were added since. If an equal item was added, both get the same result.
  function putBack (remaining: Map<Item, Waiting<Result>>): void {
    for (const [item, entry] of remaining) {
      const later = waiting.get(item)
      if (!later) continue
      entry.promise.then(later.resolve, later.reject)
      entry.others = [...entry.others ?? [], later.client, ...later.others ?? []]
      if (tracing) entry.spans = [...entry.spans ?? [], ...later.spans ?? []]
      waiting.delete(item)
    }
    waiting = new Map([...remaining, ...waiting].sort(([, one], [, other]) => one.since - other.since))
    watch(0)
  }

  // Takes the oldest waiting items, usually all of them, and drops those that no client waits for any more.
  function take (): Map<Item, Waiting<Result>> {
    const taken = !weigh && waiting.size <= size ? waiting : new Map([...waiting].slice(0, countFitting()))
    if (taken === waiting) waiting = new Map()
    else for (const item of taken.keys()) waiting.delete(item)
    for (const [item, entry] of taken) if (isAbandoned(entry)) drop(taken, item, entry)
    return taken
  }

  // Returns the number of waiting items that fit into a batch, at least one.
  function countFitting (): number {
    if (!weigh) return size
    let [count, weight] = [0, 0]
    for (const item of waiting.keys()) {
      weight += weigh(item)
      if (weight > size && count > 0) break
      count++
    }
    return count
  }

  // Rejects the items whose client may no longer act. Usually that is known in memory. A node that does not receive
  // notifications asks the database, and then the whole batch waits for the answer.
  async function rejectRevoked (sent: Map<Item, Waiting<Result>>): Promise<void> {
    const checks: Promise<void>[] = []
    for (const [item, entry] of sent) {
      const may = entry.client?.isStillAllowed?.()
      if (typeof may === 'object') {
        checks.push(may.then((may) => { if (!may) revoke(item, entry) }, (error) => revoke(item, entry, error)))
      } else if (may === false) {
        revoke(item, entry)
      }
    }
    if (checks.length > 0) await Promise.all(checks)

    function revoke (item: Item, entry: Waiting<Result>, error: unknown = new InvalidToken()): void {
      sent.delete(item)
      entry.reject(error)
    }
  }

  // Starts the timer that drops items which have waited for too long, even while no batch returns. Items wait in order
  // of arrival.
  function watch (milliseconds: number): void {
    if (timeoutMs !== Infinity) timer ??= setTimeout(expire, Math.ceil(milliseconds)).unref()
  }

  // The event loop itself may have been busy for that long. An answer that arrived meanwhile is read after the timers,
  // and the waiting items are then sent rather than dropped.
  function expire (): void {
    const now = performance.now()
    setImmediate(() => dropStale(now))
  }

  function dropStale (now: number): void {
    timer = undefined
    // The waiting items are sent in this turn or in one of the next.
    if (scheduled) return watch(1)
    for (const [item, entry] of waiting) {
      const remaining = entry.since + timeoutMs - now
      if (remaining > 0) return watch(remaining)
      drop(waiting, item, entry)
    }
  }

  function drop (from: Map<Item, Waiting<Result>>, item: Item, entry: Waiting<Result>): void {
    from.delete(item)
    if (isAbandoned(entry)) return entry.reject(new ClientDisconnected())
    if (telemetry) telemetry.rejected++
    entry.reject(new Overloaded())
  }

  return (item, client) => {
    const known = waiting.get(item)
    if (known) {
      (known.others ??= []).push(client)
      if (tracing) known.spans = [...known.spans ?? [], ...tracing.activeSpans()]
      return known.promise
    }
    if (waiting.size >= maxWaiting) {
      if (telemetry) telemetry.rejected++
      return Promise.reject(new Overloaded())
    }
    const { promise, resolve, reject } = Promise.withResolvers<Result>()
    waiting.set(item, {
      promise, resolve, reject, since: performance.now(), client, others: undefined, spans: tracing?.activeSpans(),
    })
    watch(timeoutMs)
    schedule()
    return promise
  }
}

/**
 * Returns a function that reads a list, and that concurrent requests for the same list share. Each statement reads one
 * list. Queries are compared as JSON.
 */
export function batchLists<Query, Page> (
  list: (query: Query) => Promise<Page>,
  { telemetry, inFlight = LISTS_IN_FLIGHT, timeoutMs }: Pick<BatchOptions, 'inFlight' | 'timeoutMs'> &
    { telemetry: BatchTelemetry }
): (query: Query, client?: Client) => Promise<Page> {
  const run = async ([query]: string[]) => [await list(JSON.parse(query!) as Query)]
  const read = batchCalls(run, { size: 1, inFlight, ...timeoutMs !== undefined && { timeoutMs }, telemetry })
  return (query, client) => read(JSON.stringify(query), client)
}

/** Returns whether every client that waits for an item is destroyed. */
function isAbandoned ({ client, others }: Pick<Waiting<unknown>, 'client' | 'others'>): boolean {
  return client?.destroyed === true && (others === undefined || others.every((other) => other?.destroyed))
}
