import { DEADLINES } from '../../../schema/options/deadlines.ts'
import { ClientDisconnected, Overloaded } from '../../../schema/http/errors.ts'
import { EventLoopLoad } from '../../../plugins/telemetry/event-loop-load.ts'
import type { Network } from '../../../schema/http/network.ts'

interface OperationQueueOptions {
  /** The number of operations that may wait. */
  maxWaiting?: number
  /** Milliseconds that an operation may wait. */
  timeoutMs?: number
  /**
   * Whether the node is busy. While it is, the most costly operations wait, and at most five of them start in a second.
   */
  load?: { readonly isBusy: boolean }
}

// How often the load is checked while operations wait.
const LOAD_CHECK_MS = 10
// The minimum time between the starts of two of the most costly operations on a busy node.
const MIN_PACE_MS = 200

interface Waiting { cost: number, start: () => void, leave: (error: Error) => void }

/** The operations of a widest network, by its narrowest ones. */
type Queues = ReadonlyMap<string, readonly Waiting[]>

/**
 * Limits the total cost of the operations that run at the same time. Reads are batched, so without a limit the results
 * of many operations would arrive in the same turn of the event loop and delay other requests by the sum of their
 * costs. The widest networks take turns, and so do the narrowest ones of each. The most costly operations wait while
 * the node is busy with other requests, and less costly ones overtake them.
 */
export class OperationQueue {
  readonly #max: number
  readonly #free: number
  readonly #heavy: number
  readonly #maxWaiting: number
  readonly #timeoutMs: number
  readonly #load: { readonly isBusy: boolean }
  #running = 0
  #waiting = 0
  #lastStart = -Infinity
  #timer: NodeJS.Timeout | undefined
  // By the name of the widest network, then by that of the narrowest one, in the order of their turns.
  readonly #queues = new Map<string, Map<string, Waiting[]>>()

  /**
   * @param maxCost most cost that the operations running at the same time may have together, not counting cheap ones
   */
  constructor (maxCost: number, {
    maxWaiting = 1000, timeoutMs = DEADLINES.graphqlOperation, load = new EventLoopLoad(),
  }: OperationQueueOptions = {}) {
    this.#max = maxCost
    this.#free = maxCost / 50
    this.#heavy = maxCost / 10
    this.#load = load
    this.#maxWaiting = maxWaiting
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
   * Resolves when an operation may run, with a function that ends its turn and may be called more than once. Throws
   * `Overloaded` if too many operations wait or this one has waited for too long, and `ClientDisconnected` if it is
   * discarded before its turn.
   */
  async enter (cost: number, networks: readonly Network[], discarded?: AbortSignal): Promise<() => void> {
    if (discarded?.aborted) throw new ClientDisconnected()
    if (this.#waiting > 0 || !this.#hasRoom(cost) || this.#mustYield(cost)) await this.#wait(cost, networks, discarded)
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
    return cost > this.#heavy && performance.now() - this.#lastStart < MIN_PACE_MS && this.#load.isBusy
  }

  #start (cost: number): void {
    this.#running += cost
    if (cost > this.#heavy) this.#lastStart = performance.now()
  }

  #wait (cost: number, networks: readonly Network[], discarded: AbortSignal | undefined): Promise<void> {
    // Each network has a separate queue for its most costly operations, so that its other operations do not wait behind
    // them.
    const [widest, narrowest] = [networks.at(-1)!.name, networks[0]!.name]
    const key = cost > this.#heavy ? `${narrowest} heavy` : narrowest
    const queues = this.#queues.get(widest) ?? new Map<string, Waiting[]>()
    if (this.#waiting >= this.#maxWaiting) this.#makeRoom(queues, key)
    const queue = queues.get(key) ?? []
    this.#queues.set(widest, queues.set(key, queue))
    this.#waiting++
    return new Promise((resolve, reject) => {
      const settle = (act: () => void) => {
        clearTimeout(timer)
        discarded?.removeEventListener('abort', onDiscarded)
        act()
      }
      const leave = (error: Error) => settle(() => {
        this.#remove(widest, key, waiting)
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

  // Rejects the last operation of the longest queue of the widest network with most of them, or of that of the new
  // operation if it has about as many, so that no network can keep others from waiting. Throws `Overloaded` if its own
  // queue is about as long.
  #makeRoom (queues: Queues, key: string): void {
    const largest = [...this.#queues.values()].reduce((one, other) => sizeOf(other) > sizeOf(one) ? other : one)
    const crowded = sizeOf(largest) > sizeOf(queues) + 1 ? largest : queues
    const longest = [...crowded.values()].reduce((one, other) => other.length > one.length ? other : one, [])
    if (crowded === queues && longest.length <= (queues.get(key)?.length ?? 0) + 1) throw new Overloaded()
    longest.at(-1)!.leave(new Overloaded())
  }

  #startNext (): void {
    for (const [widest, queues] of this.#queues) {
      for (const [key, [next]] of queues as Map<string, [Waiting]>) {
        if (!this.#hasRoom(next.cost)) return
        if (this.#mustYield(next.cost)) continue
        this.#remove(widest, key, next)
        // Both networks move behind the others.
        const queue = queues.get(key)
        if (queue) moveToEnd(queues, key, queue)
        if (queues.size > 0) moveToEnd(this.#queues, widest, queues)
        this.#start(next.cost)
        next.start()
        break
      }
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

  #remove (widest: string, key: string, waiting: Waiting): void {
    const queues = this.#queues.get(widest)!
    const queue = queues.get(key)!
    this.#waiting--
    queue.splice(queue.indexOf(waiting), 1)
    if (queue.length === 0) queues.delete(key)
    if (queues.size === 0) this.#queues.delete(widest)
  }
}

function sizeOf (queues: Queues): number {
  let size = 0
  for (const queue of queues.values()) size += queue.length
  return size
}

function moveToEnd<Value> (map: Map<string, Value>, key: string, value: Value): void {
  map.delete(key)
  map.set(key, value)
}
