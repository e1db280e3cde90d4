import { DEADLINES } from '../../schema/options/deadlines.ts'
import { ClientDisconnected, Overloaded } from '../../schema/http/errors.ts'
import { InvalidToken } from '../../schema/auth/login.ts'
import type { BatchOptions, Client } from './batch-options.ts'
import { isAbandoned, type Waiting } from './waiting-item.ts'

export type { BatchOptions, Client }

// The number of turns of the event loop in which a batch gathers its items. Larger batches are cheaper, because each
// statement costs a write to the socket and wakes a PostgreSQL process.
const TURNS = 4
// Milliseconds after which a batch gathers no further turn. While the node is busy, a turn takes that long by itself.
const GATHER_MS = 10

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
    gathering = GATHER_MS, telemetry,
  }: BatchOptions<Item> = {}
): (item: Item, client?: Client) => Promise<Result> {
  const tracing = telemetry?.tracing
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
    if (!telemetry) return run(items)
    const entries = [...sent.values()]
    telemetry.sent(items.length, entries[0]!.since)
    if (!tracing) return run(items)
    const spans = entries.flatMap((entry) => entry.spans ?? [])
    return tracing.runBatch({ name: telemetry.name, size: items.length, spans }, () => run(items))
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
