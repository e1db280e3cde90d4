import { Overloaded } from '../../schema/errors.ts'

interface TurnsOptions {
  /** Operations that may wait. */
  waiting?: number
  /** Milliseconds that an operation may wait. */
  patience?: number
}

interface Waiting { cost: number, start: () => void }

/**
 * Lets costly operations run one after the other. Reads are batched, so the results of many operations arrive in the same
 * turn of the event loop; together they would delay other requests by the sum of their costs. Networks take turns.
 */
export class Turns {
  readonly #max: number
  readonly #free: number
  readonly #room: number
  readonly #patience: number
  #running = 0
  #waiting = 0
  readonly #queues = new Map<string, Waiting[]>()

  /** @param maxCost of the operations that run at the same time, except cheap ones */
  constructor (maxCost: number, { waiting = 1000, patience = 1000 }: TurnsOptions = {}) {
    this.#max = maxCost
    this.#free = maxCost / 50
    this.#room = waiting
    this.#patience = patience
  }

  /** Whether an operation is so cheap that it needs no turn. */
  isFree (cost: number): boolean {
    return cost <= this.#free
  }

  /**
   * Resolves when an operation may run, with a function that ends its turn, which may be called more than once. Throws
   * `Overloaded`.
   */
  async take (cost: number, network: string): Promise<() => void> {
    if (this.#waiting > 0 || this.#running + cost > this.#max) await this.#wait(cost, network)
    else this.#running += cost
    let running = cost
    return () => {
      this.#running -= running
      running = 0
      this.#startNext()
    }
  }

  #wait (cost: number, network: string): Promise<void> {
    if (this.#waiting >= this.#room) throw new Overloaded()
    const queue = this.#queues.get(network) ?? []
    this.#queues.set(network, queue)
    this.#waiting++
    return new Promise((resolve, reject) => {
      const waiting = { cost, start: () => { clearTimeout(timer); resolve() } }
      const timer = setTimeout(() => {
        this.#remove(network, queue, waiting)
        reject(new Overloaded())
      }, this.#patience)
      queue.push(waiting)
    })
  }

  #startNext (): void {
    for (const [network, queue] of this.#queues) {
      const [next] = queue as [Waiting]
      if (this.#running + next.cost > this.#max) return
      this.#remove(network, queue, next)
      // The network goes behind the others.
      if (this.#queues.delete(network)) this.#queues.set(network, queue)
      this.#running += next.cost
      next.start()
    }
  }

  #remove (network: string, queue: Waiting[], waiting: Waiting): void {
    this.#waiting--
    queue.splice(queue.indexOf(waiting), 1)
    if (queue.length === 0) this.#queues.delete(network)
  }
}
