const STATEMENTS_IN_FLIGHT = 2
const KEYS_A_STATEMENT = 1000

/**
 * Makes a function from a key to its value out of one from many keys to their values: the reads that concurrent
 * requests ask for go out as one statement. Nothing is remembered. A read joins only a statement that has not
 * been sent, so each answer reflects every write that was acknowledged before it was asked for (SPEED, point 2).
 *
 * @param read the values of the keys, in their order, `undefined` where there is none
 * @returns the value of a key; rejects as the statement that carried it did
 */
export function joinReads<Key extends string, Value> (
  read: (keys: Key[]) => Promise<(Value | undefined)[]>
): (key: Key) => Promise<Value | undefined> {
  let waiting = new Map<Key, PromiseWithResolvers<Value | undefined>>()
  let inFlight = 0
  let scheduled = false

  function schedule (): void {
    if (scheduled || inFlight >= STATEMENTS_IN_FLIGHT || waiting.size === 0) return
    scheduled = true
    // Whatever this turn of the event loop asks for goes together.
    setImmediate(flush)
  }

  async function flush (): Promise<void> {
    scheduled = false
    const sent = waiting
    waiting = new Map()
    // Those beyond the limit wait for the next statement.
    for (const key of [...sent.keys()].slice(KEYS_A_STATEMENT)) {
      waiting.set(key, sent.get(key)!)
      sent.delete(key)
    }
    inFlight++
    schedule()
    try {
      const values = await read([...sent.keys()])
      let index = 0
      for (const { resolve } of sent.values()) resolve(values[index++])
    } catch (error) {
      for (const { reject } of sent.values()) reject(error)
    } finally {
      inFlight--
      schedule()
    }
  }

  return (key) => {
    let value = waiting.get(key)
    if (!value) {
      value = Promise.withResolvers()
      waiting.set(key, value)
      schedule()
    }
    return value.promise
  }
}
