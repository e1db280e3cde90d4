import { Overloaded } from '../../schema/errors.ts'
import { EventLoopLoad } from './event-loop-load.ts'

interface OperationQueueOptions {
  /** Operations that may wait. */
  waiting?: number
  /** Milliseconds that an operation may wait. */
  patience?: number
  /** Whether the node is busy: then the most costly operations wait, and at most five start in a second. */
  load?: { readonly isBusy: boolean }
}

// How often the load is checked while operations wait.
const LOOK_AGAIN_MS = 10
// On a busy node, one of the most costly operations may start this often.
const LEAST_PACE_MS = 200

interface Waiting { cost: number, start: () => void }

/**
 * Lets costly operations run one after the other. Reads are batched, so the results of many operations arrive in the same
 * turn of the event loop; together they would delay other requests by the sum of their costs. Networks take turns. The most
 * costly operations wait while the node is busy with other requests, and less costly ones pass them.
 */
export class OperationQueue {
  readonly #max: number
  readonly #free: number
  readonly #heavy: number
  readonly #room: number
  readonly #patience: number
  readonly #load: { readonly isBusy: boolean }
  #running = 0
  #waiting = 0
  #lastStart = -Infinity
  #timer: NodeJS.Timeout | undefined
  readonly #queues = new Map<string, Waiting[]>()

  /** @param maxCost of the operations that run at the same time, except cheap ones */
  constructor (maxCost: number, { waiting = 1000, patience = 1000, load = new EventLoopLoad() }: OperationQueueOptions = {}) {
    this.#max = maxCost
    this.#free = maxCost / 50
    this.#heavy = maxCost / 10
    this.#load = load
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
  async enter (cost: number, network: string): Promise<() => void> {
    if (this.#waiting > 0 || !this.#hasRoom(cost) || this.#yields(cost)) await this.#wait(cost, network)
    else this.#start(cost)
    let running = cost
    return () => {
      this.#running -= running
      running = 0
      this.#startNext()
    }
  }

  #hasRoom (cost: number): boolean {
    return this.#running + cost <= this.#max
  }

  #yields (cost: number): boolean {
    return cost > this.#heavy && performance.now() - this.#lastStart < LEAST_PACE_MS && this.#load.isBusy
  }

  #start (cost: number): void {
    this.#running += cost
    if (cost > this.#heavy) this.#lastStart = performance.now()
  }

  #wait (cost: number, network: string): Promise<void> {
    if (this.#waiting >= this.#room) throw new Overloaded()
    // The most costly operations have queues of their own, so that the others of their network need not wait behind them.
    const key = cost > this.#heavy ? `${network} heavy` : network
    const queue = this.#queues.get(key) ?? []
    this.#queues.set(key, queue)
    this.#waiting++
    return new Promise((resolve, reject) => {
      const waiting = { cost, start: () => { clearTimeout(timer); resolve() } }
      const timer = setTimeout(() => {
        this.#remove(key, queue, waiting)
        reject(new Overloaded())
      }, this.#patience)
      queue.push(waiting)
      this.#startNext()
      this.#lookAgain()
    })
  }

  #startNext (): void {
    for (const [key, queue] of this.#queues) {
      const [next] = queue as [Waiting]
      if (!this.#hasRoom(next.cost)) return
      if (this.#yields(next.cost)) continue
      this.#remove(key, queue, next)
      // The network goes behind the others.
      if (this.#queues.delete(key)) this.#queues.set(key, queue)
      this.#start(next.cost)
      next.start()
    }
  }

  // Nothing else tells that the node is less busy.
  #lookAgain (): void {
    this.#timer ??= setTimeout(() => {
      this.#timer = undefined
      this.#startNext()
      if (this.#waiting > 0) this.#lookAgain()
    }, LOOK_AGAIN_MS).unref()
  }

  #remove (key: string, queue: Waiting[], waiting: Waiting): void {
    this.#waiting--
    queue.splice(queue.indexOf(waiting), 1)
    if (queue.length === 0) this.#queues.delete(key)
  }
}
