import { DEADLINES } from '../../schema/deadlines.ts'
import { ClientDisconnected, Overloaded } from '../../schema/errors.ts'
import { EventLoopLoad } from '../../plugins/event-loop-load.ts'

interface OperationQueueOptions {
  /** The number of operations that may wait. */
  waiting?: number
  /** Milliseconds that an operation may wait. */
  timeoutMs?: number
  /** Whether the node is busy. While it is, the most costly operations wait, and at most five of them start in a second. */
  load?: { readonly isBusy: boolean }
}

// How often the load is checked while operations wait.
const LOAD_CHECK_MS = 10
// Least time between the starts of two of the most costly operations on a busy node.
const LEAST_PACE_MS = 200

interface Waiting { cost: number, start: () => void, leave: (error: Error) => void }

/**
 * Limits the total cost of the operations that run at the same time. Reads are batched, so without a limit the results of many
 * operations would arrive in the same turn of the event loop and delay other requests by the sum of their costs. Networks take
 * turns. The most costly operations wait while the node is busy with other requests, and less costly ones overtake them.
 */
export class OperationQueue {
  readonly #max: number
  readonly #free: number
  readonly #heavy: number
  readonly #room: number
  readonly #timeoutMs: number
  readonly #load: { readonly isBusy: boolean }
  #running = 0
  #waiting = 0
  #lastStart = -Infinity
  #timer: NodeJS.Timeout | undefined
  readonly #queues = new Map<string, Waiting[]>()

  /** @param maxCost most cost that the operations running at the same time may have together, not counting cheap ones */
  constructor (maxCost: number, { waiting = 1000, timeoutMs = DEADLINES.graphqlOperation, load = new EventLoopLoad() }: OperationQueueOptions = {}) {
    this.#max = maxCost
    this.#free = maxCost / 50
    this.#heavy = maxCost / 10
    this.#load = load
    this.#room = waiting
    this.#timeoutMs = timeoutMs
  }

  /** The total cost of the operations that run, and the number of those that wait. */
  get running (): number { return this.#running }
  get waiting (): number { return this.#waiting }

  /** Returns whether an operation is so cheap that it does not have to enter the queue. */
  isFree (cost: number): boolean {
    return cost <= this.#free
  }

  /**
   * Resolves when an operation may run, with a function that ends its turn and may be called more than once. Throws `Overloaded` if
   * too many operations wait or this one has waited for too long, and `ClientDisconnected` if it is discarded before its turn.
   */
  async enter (cost: number, network: string, discarded?: AbortSignal): Promise<() => void> {
    if (discarded?.aborted) throw new ClientDisconnected()
    if (this.#waiting > 0 || !this.#hasRoom(cost) || this.#mustYield(cost)) await this.#wait(cost, network, discarded)
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

  #mustYield (cost: number): boolean {
    return cost > this.#heavy && performance.now() - this.#lastStart < LEAST_PACE_MS && this.#load.isBusy
  }

  #start (cost: number): void {
    this.#running += cost
    if (cost > this.#heavy) this.#lastStart = performance.now()
  }

  #wait (cost: number, network: string, discarded: AbortSignal | undefined): Promise<void> {
    // Each network has a separate queue for its most costly operations, so that its other operations do not wait behind them.
    const key = cost > this.#heavy ? `${network} heavy` : network
    const queue = this.#queues.get(key) ?? []
    if (this.#waiting >= this.#room) this.#makeRoom(queue)
    this.#queues.set(key, queue)
    this.#waiting++
    return new Promise((resolve, reject) => {
      const settle = (act: () => void) => {
        clearTimeout(timer)
        discarded?.removeEventListener('abort', onDiscarded)
        act()
      }
      const leave = (error: Error) => settle(() => {
        this.#remove(key, queue, waiting)
        reject(error)
      })
      const waiting = { cost, start: () => settle(resolve), leave }
      const onDiscarded = () => leave(new ClientDisconnected())
      const timer = setTimeout(() => leave(new Overloaded()), this.#timeoutMs)
      discarded?.addEventListener('abort', onDiscarded)
      queue.push(waiting)
      this.#startNext()
      this.#checkLoadLater()
    })
  }

  // Rejects the last operation of the longest queue, so that one network cannot keep others from waiting. Throws `Overloaded` if that would
  // be of no use, because the queue of the new operation would then be as long.
  #makeRoom (queue: readonly Waiting[]): void {
    const longest = [...this.#queues.values()].reduce((one, other) => other.length > one.length ? other : one)
    if (longest.length <= queue.length + 1) throw new Overloaded()
    longest.at(-1)!.leave(new Overloaded())
  }

  #startNext (): void {
    for (const [key, queue] of this.#queues) {
      const [next] = queue as [Waiting]
      if (!this.#hasRoom(next.cost)) return
      if (this.#mustYield(next.cost)) continue
      this.#remove(key, queue, next)
      // The network moves behind the others.
      if (this.#queues.delete(key)) this.#queues.set(key, queue)
      this.#start(next.cost)
      next.start()
    }
  }

  // No event signals that the node has become less busy, so it is checked with a timer.
  #checkLoadLater (): void {
    this.#timer ??= setTimeout(() => {
      this.#timer = undefined
      this.#startNext()
      if (this.#waiting > 0) this.#checkLoadLater()
    }, LOAD_CHECK_MS).unref()
  }

  #remove (key: string, queue: Waiting[], waiting: Waiting): void {
    this.#waiting--
    queue.splice(queue.indexOf(waiting), 1)
    if (queue.length === 0) this.#queues.delete(key)
  }
}
