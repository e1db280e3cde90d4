import { Overloaded } from '../schema/errors.ts'

export interface JoinOptions {
  /** Calls that may run at once; more would only make each carry less. */
  inFlight?: number
  /** Items a call carries at the most. */
  size?: number
  /** Items that may wait. */
  waiting?: number
  /** Milliseconds that an item may wait to be sent. */
  patience?: number
}

interface Waiting<Result> extends PromiseWithResolvers<Result> {
  since: number
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
 * @param run the results of the items, in their order; an `Error` among them fails its item alone
 * @returns the result of an item; rejects as the call that carried it did, or with `Overloaded` beyond the bounds
 */
export function joinCalls<Item, Result> (
  run: (items: Item[]) => Promise<(Result | Error)[]>,
  { inFlight: limit = 2, size = 1000, waiting: room = 10_000, patience = 1000 }: JoinOptions = {}
): (item: Item) => Promise<Result> {
  let waiting = new Map<Item, Waiting<Result>>()
  let inFlight = 0
  let scheduled = false

  function schedule (): void {
    if (scheduled || inFlight >= limit || waiting.size === 0) return
    scheduled = true
    // Whatever this turn of the event loop asks for goes together.
    setImmediate(flush)
  }

  async function flush (): Promise<void> {
    scheduled = false
    dropStale()
    const sent = take()
    if (sent.size === 0) return
    inFlight++
    schedule()
    try {
      const results = await run([...sent.keys()])
      let index = 0
      for (const { resolve, reject } of sent.values()) {
        const result = results[index++]
        if (result instanceof Error) reject(result)
        else resolve(result as Result)
      }
    } catch (error) {
      for (const { reject } of sent.values()) reject(error)
    } finally {
      inFlight--
      schedule()
    }
  }

  // Of those that wait, the first ones; all of them, mostly.
  function take (): Map<Item, Waiting<Result>> {
    let sent = new Map<Item, Waiting<Result>>()
    if (waiting.size <= size) {
      [sent, waiting] = [waiting, sent]
      return sent
    }
    for (const [item, mine] of waiting) {
      if (sent.size === size) break
      sent.set(item, mine)
      waiting.delete(item)
    }
    return sent
  }

  // They wait in the order of their coming. Whoever asked has most likely gone.
  function dropStale (): void {
    const before = performance.now() - patience
    for (const [item, { since, reject }] of waiting) {
      if (since >= before) break
      waiting.delete(item)
      reject(new Overloaded())
    }
  }

  return (item) => {
    const known = waiting.get(item)
    if (known) return known.promise
    if (waiting.size >= room) return Promise.reject(new Overloaded())
    const mine = { ...Promise.withResolvers<Result>(), since: performance.now() }
    waiting.set(item, mine)
    schedule()
    return mine.promise
  }
}
