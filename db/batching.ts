import { ClientGone, InvalidToken, Overloaded } from '../schema/errors.ts'

// Of the event loop, for one call to gather its items. Each call costs a write, and wakes a process of PostgreSQL.
const TURNS = 4

export interface BatchOptions {
  /** Calls that may run at once; more would only make each carry less. */
  inFlight?: number
  /** Items a call carries at the most. */
  size?: number
  /** Items that may wait. */
  waiting?: number
  /** Milliseconds that an item may wait to be sent. */
  patience?: number
}

/** In the place of a result: the item was not done, and is to be part of another call. */
export const again = Symbol('again')

/** Whoever asks, such as the socket of a request: nothing is done any more for one that is destroyed. */
export interface Client {
  readonly destroyed: boolean
  /**
   * Returns whether the client may still act. The permission of a write may end while it waits to be sent, so it is
   * checked again at that moment. Absent for clients that act without a permission, such as a socket that reads.
   */
  mayAct? (): boolean | Promise<boolean>
}

interface Waiting<Result> {
  promise: Promise<Result>
  resolve: (result: Result) => void
  reject: (error: unknown) => void
  since: number
  /** Who waits for it; undefined for somebody who does not go. */
  client: Client | undefined
  others: (Client | undefined)[] | undefined
}

/**
 * Makes a function of one item out of one of many items and their results: what concurrent requests ask for goes
 * out as one statement. While calls are in flight, those that arrive wait, and go together when one returns: no
 * timer, no delay when idle, and a batch that grows with the load by itself. Nothing is remembered. An item joins
 * only a call that has not been made, so that an answer reflects every write that was acknowledged before it was
 * asked for (SPEED, points 2 and 3).
 *
 * Items that are the same value, such as equal keys, and wait together, are one; objects are the same only as
 * themselves, so that each write is one of its own.
 *
 * @param run the results of the items, in their order; an `Error` among them fails its item alone, and `again` leaves it to
 * another call
 * @returns the result of an item; rejects as the call that carried it did, with `Overloaded` beyond the bounds, or
 * with `ClientGone` where all who wait for it have gone before it was sent. An item is also rejected, with
 * `InvalidToken`, if its client may not act any more when it is about to be sent.
 */
export function batchCalls<Item, Result> (
  run: (items: Item[]) => Promise<(Result | Error | typeof again)[]>,
  { inFlight: limit = 2, size = 1000, waiting: room = 10_000, patience = 1000 }: BatchOptions = {}
): (item: Item, client?: Client) => Promise<Result> {
  let waiting = new Map<Item, Waiting<Result>>()
  let inFlight = 0
  let scheduled = false
  let timer: NodeJS.Timeout | undefined

  function schedule (): void {
    if (scheduled || inFlight >= limit || waiting.size === 0) return
    scheduled = true
    gather(waiting.size, TURNS)
  }

  // Whatever this turn of the event loop asks for goes together, and the next one's too, while each brings more.
  function gather (known: number, turns: number): void {
    setImmediate(() => {
      if (turns > 1 && waiting.size > known && waiting.size < size) gather(waiting.size, turns - 1)
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
      const results = sent.size === 0 ? [] : await run([...sent.keys()])
      let index = 0
      const left = new Map<Item, Waiting<Result>>()
      for (const [item, mine] of sent) {
        const result = results[index++]
        if (result === again) left.set(item, mine)
        else if (result instanceof Error) mine.reject(result)
        else mine.resolve(result as Result)
      }
      if (left.size > 0) putBack(left)
    } catch (error) {
      for (const { reject } of sent.values()) reject(error)
    } finally {
      inFlight--
      schedule()
    }
  }

  // In front of those that have come since. One who waits for the same item gets what it gets.
  function putBack (left: Map<Item, Waiting<Result>>): void {
    for (const [item, mine] of left) {
      const later = waiting.get(item)
      if (!later) continue
      mine.promise.then(later.resolve, later.reject)
      mine.others = [...mine.others ?? [], later.client, ...later.others ?? []]
      waiting.delete(item)
    }
    waiting = new Map([...left, ...waiting].sort(([, one], [, other]) => one.since - other.since))
    watch(0)
  }

  // The first of those that wait, all of them mostly, without those that nobody waits for any more.
  function take (): Map<Item, Waiting<Result>> {
    const taken = waiting.size <= size ? waiting : new Map([...waiting].slice(0, size))
    if (taken === waiting) waiting = new Map()
    else for (const item of taken.keys()) waiting.delete(item)
    for (const [item, mine] of taken) if (isGone(mine)) drop(taken, item, mine)
    return taken
  }

  // Most clients know at once whether they may act. A node that has lost the notifications asks the database, and the
  // whole batch waits for that answer.
  async function rejectRevoked (sent: Map<Item, Waiting<Result>>): Promise<void> {
    const checks: Promise<void>[] = []
    for (const [item, mine] of sent) {
      const may = mine.client?.mayAct?.()
      if (typeof may === 'object') checks.push(may.then((may) => { if (!may) revoke(item, mine) }, (error) => revoke(item, mine, error)))
      else if (may === false) revoke(item, mine)
    }
    if (checks.length > 0) await Promise.all(checks)

    function revoke (item: Item, mine: Waiting<Result>, error: unknown = new InvalidToken()): void {
      sent.delete(item)
      mine.reject(error)
    }
  }

  // Nobody waits longer than that, also while no call returns. They are in the order of their coming.
  function watch (milliseconds: number): void {
    if (patience !== Infinity) timer ??= setTimeout(expire, Math.ceil(milliseconds)).unref()
  }

  // The event loop itself may have been busy for so long. An answer that arrived meanwhile is read after the timers, and
  // lets the waiting items go.
  function expire (): void {
    const now = performance.now()
    setImmediate(() => dropStale(now))
  }

  function dropStale (now: number): void {
    timer = undefined
    // They go out in this turn or one of the next.
    if (scheduled) return watch(1)
    for (const [item, mine] of waiting) {
      const left = mine.since + patience - now
      if (left > 0) return watch(left)
      drop(waiting, item, mine)
    }
  }

  function drop (from: Map<Item, Waiting<Result>>, item: Item, mine: Waiting<Result>): void {
    from.delete(item)
    mine.reject(isGone(mine) ? new ClientGone() : new Overloaded())
  }

  return (item, client) => {
    const known = waiting.get(item)
    if (known) {
      (known.others ??= []).push(client)
      return known.promise
    }
    if (waiting.size >= room) return Promise.reject(new Overloaded())
    const { promise, resolve, reject } = Promise.withResolvers<Result>()
    waiting.set(item, { promise, resolve, reject, since: performance.now(), client, others: undefined })
    watch(patience)
    schedule()
    return promise
  }
}

function isGone ({ client, others }: Pick<Waiting<unknown>, 'client' | 'others'>): boolean {
  return client?.destroyed === true && (others === undefined || others.every((other) => other?.destroyed))
}
