import { setTimeout as delay } from 'node:timers/promises'
import type { FastifyInstance } from 'fastify'

const REFUSED_MS = 10

/** The history of values of which each is a number that only grows, as it is seen from outside. */
export interface History {
  /** What was read that was older than what had been acknowledged or shown before the read began. */
  readonly faults: string[]
  readonly reads: number
  readonly writes: number
  /** Reads a value by `read` and checks it. */
  read (key: string, what: string, read: () => Promise<number | undefined>): Promise<void>
  /** Reads many values and checks them. All keys must be among them. */
  readAll (what: string, read: () => Promise<ReadonlyMap<string, number>>): Promise<void>
  /** Writes the next value. If `write` returns false, it is not known whether the value was written. */
  write (key: string, write: (value: number) => Promise<boolean>): Promise<void>
}

/**
 * Creates a history in which each key has the value 0. One writer at a time writes a key, readers are any. All are in
 * this process, whose clock tells what was before what.
 */
export function createHistory (keys: readonly string[]): History {
  // Values that were acknowledged, or shown by a response: no later response may be older.
  const least = new Map(keys.map((key) => [key, 0]))
  const tried = new Map(least)
  const faults: string[] = []
  let [reads, writes] = [0, 0]

  function check (key: string, what: string, from: number, value: number | undefined): void {
    if (value === undefined || value < from) {
      faults.push(`${what} of ${key}: ${value} after ${from}`)
    } else if (value > tried.get(key)!) {
      faults.push(`${what} of ${key}: ${value}, which was not written`)
    } else {
      least.set(key, Math.max(least.get(key)!, value))
    }
  }

  return {
    faults,
    get reads () { return reads },
    get writes () { return writes },

    async read (key, what, read) {
      const from = least.get(key)!
      const value = await read()
      reads++
      check(key, what, from, value)
    },

    async readAll (what, read) {
      const from = new Map(least)
      const values = await read()
      reads++
      for (const key of keys) check(key, what, from.get(key)!, values.get(key))
    },

    async write (key, write) {
      const value = tried.get(key)! + 1
      tried.set(key, value)
      if (!await write(value)) return
      writes++
      least.set(key, Math.max(least.get(key)!, value))
    },
  }
}

interface Node { readonly app: FastifyInstance }

/**
 * Starts readers and writers on all nodes, which read and write the names of users. Every user's name is a number.
 * `stop` resolves when they have ended.
 */
export function startHistory (
  nodes: readonly Node[], { ids, rename, readers, writers }: {
    ids: readonly string[]
    /** Changes the name of a user. Returns whether it was acknowledged. */
    rename (node: number, id: string, name: string): Promise<boolean>
    readers: number
    writers: number
  }
) {
  const history = createHistory(ids)
  const stopping = new AbortController()
  let next = 0
  const turn = () => next++ % nodes.length
  const numberOf = (name: string | undefined) => name === undefined ? undefined : Number(name)

  async function readOnce (): Promise<void> {
    const { users } = nodes[turn()]!.app.usher
    const id = ids[Math.floor(Math.random() * ids.length)]!
    const kind = Math.random()
    try {
      if (kind < 0.9) {
        await history.read(id, 'read', async () => numberOf((await users.get(id)).name))
      } else {
        await history.readAll('list', async () => {
          const query = { limit: 100, sort: kind < 0.95 ? 'createdAt' as const : '-createdAt' as const }
          const { data } = await users.list(query)
          return new Map(data.map(({ id, name }) => [id, Number(name)]))
        })
      }
    } catch (error) {
      if ((error as { statusCode?: number }).statusCode !== 503) throw error
      // While there is no primary, it is refused at once.
      await delay(REFUSED_MS)
    }
  }

  async function readAlways (): Promise<void> {
    while (!stopping.signal.aborted) await readOnce()
  }

  async function writeAlways (own: readonly string[]): Promise<void> {
    for (let index = 0; !stopping.signal.aborted; index++) {
      const id = own[index % own.length]!
      await history.write(id, async (value) => {
        const isWritten = await rename(turn(), id, String(value))
        if (!isWritten) await delay(REFUSED_MS)
        return isWritten
      })
    }
  }

  const keysOf = (writer: number) => ids.filter((_, index) => index % writers === writer)
  const ended = Promise.all([
    ...Array.from({ length: readers }, readAlways),
    ...Array.from({ length: writers }, (_, writer) => writeAlways(keysOf(writer))),
  ])
  return {
    history,
    async stop () {
      stopping.abort()
      await ended
    },
  }
}
