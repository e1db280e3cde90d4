import { setImmediate as turn, setTimeout as pause } from 'node:timers/promises'
import { batchCalls } from '../../db/batching/batching.ts'
import {
  claimDeliveries, deleteDeliveries, findDelay, postponeDelivery, type Attempt, type Delivery,
} from '../../db/outbox/deliveries.ts'
import { failDelivery } from '../../db/outbox/failures.ts'
import { DatabaseUnavailable } from '../../schema/http/errors.ts'
import { settlesWithin } from '../../schema/runtime/in-time.ts'
import type { Core } from '../core.ts'

/** Pauses and time limits, which tests shorten. */
export interface WorkerOptions {
  /** How often to look for deliveries that were not announced. */
  pollMs?: number
  /** The pause after a failed attempt, which doubles with each attempt up to `longestMs`. */
  shortestMs?: number
  longestMs?: number
  /** How much longer a delivery is reserved for this node than an attempt may take. */
  marginMs?: number
}

/** What a node delivers to: a handler, a webhook, or the mailer. */
export interface Target {
  readonly name: string
  readonly types: readonly string[]
  /** Whether to look for deliveries once more when the app closes, for those that the last requests have caused. */
  readonly atClose?: boolean
  /** The number of concurrent attempts. */
  readonly slots: number
  readonly attemptMs: number
  /**
   * Makes an attempt. If it rejects, there will be another one. Resolves with `undelivered` if there was nothing to
   * deliver.
   */
  deliver (delivery: Delivery, signal: AbortSignal): Promise<unknown>
  /**
   * Logs a failed attempt. `final` if there will not be another one. Returns the text to list the delivery with; if
   * undefined, it is not listed.
   */
  report (delivery: Delivery, error: unknown, final: boolean): string | undefined
  /** Returns whether further attempts would fail like this one. */
  isFinal (error: unknown): boolean
}

/** The result of an attempt that has found that there is nothing to deliver. */
export const undelivered = Symbol('undelivered')

const RETRY_MS = 1000
// Another node may hold a delivery that is due for a moment.
const MIN_PAUSE_MS = 10

/** Delivers from the outbox to one target. Each has its own, so that one that is slow or fails delays no other. */
export interface Worker {
  start (): void
  /** Looks for deliveries. */
  wake (): void
  /** Stops attempting. Resolves when the attempts in progress have ended, or are aborted after `drainMs`. */
  stop (drainMs: number): Promise<void>
}

export function createWorker (
  { lifecycle: { log }, database: { db }, telemetry: { batch } }: Core, target: Target,
  { pollMs = 5000, shortestMs = 1000, longestMs = 3_600_000, marginMs = 15_000 }: WorkerOptions = {}
): Worker {
  const { name, types, slots, attemptMs } = target
  const leaseMs = attemptMs + marginMs
  const running = new Set<Promise<void>>()
  const [stopping, closing] = [new AbortController(), new AbortController()]
  const settle = batchCalls(
    (attempts: Attempt[]) => deleteDeliveries(db, attempts), { timeoutMs: Infinity, telemetry: batch('outbox.settle') }
  )
  let woken = Promise.withResolvers<void>()
  let loop = Promise.resolve()
  let isCrowded = false

  const wake = () => woken.resolve()

  async function run (): Promise<void> {
    while (!stopping.signal.aborted) {
      woken = Promise.withResolvers()
      try {
        await sleep(await fill())
        // Attempts that ended together free their slots in this turn of the event loop.
        await turn()
      } catch (err) {
        if (!(err instanceof DatabaseUnavailable)) log.error({ err, consumer: name }, 'The outbox could not be read')
        await pause(RETRY_MS * (0.5 + Math.random()), undefined, { ref: false, signal: stopping.signal })
          .catch(() => {})
      }
    }
  }

  // Starts as many attempts as there are free slots. Returns how long to wait for others.
  async function fill (): Promise<number> {
    for (let free = slots - running.size; free > 0; free = slots - running.size) {
      const { claimed, waiting } = await claimDeliveries(
        db, { consumer: name, types, limit: free, seconds: leaseMs / 1000, isCrowded }
      )
      isCrowded = waiting > 0
      for (const delivery of claimed) {
        const done = attempt(delivery, performance.now() + leaseMs).finally(() => {
          running.delete(done)
          wake()
        })
        running.add(done)
      }
      if (claimed.length + waiting < free || stopping.signal.aborted) {
        return Math.max(await findDelay(db, { consumer: name, types }, pollMs), MIN_PAUSE_MS)
      }
    }
    return pollMs
  }

  async function sleep (milliseconds: number): Promise<void> {
    if (stopping.signal.aborted) return
    const timer = setTimeout(wake, Math.ceil(milliseconds)).unref()
    await woken.promise
    clearTimeout(timer)
  }

  async function attempt (delivery: Delivery, until: number): Promise<void> {
    const failure = await deliverInTime(delivery).then(() => undefined, (error: unknown) => ({ error }))
    // If the database is unavailable for longer, or the app closes during the attempt, a node attempts it again when
    // the lease has expired.
    while (performance.now() < until) {
      if (failure && closing.signal.aborted) return
      try {
        return failure ? await fail(delivery, failure.error) : await settle(delivery)
      } catch (err) {
        if (!(err instanceof DatabaseUnavailable)) {
          log.error({ err, consumer: name }, 'The result of a delivery could not be stored')
        }
        if (closing.signal.aborted) return
        await pause(RETRY_MS, undefined, { ref: false, signal: closing.signal }).catch(() => {})
      }
    }
  }

  async function deliverInTime (delivery: Delivery): Promise<void> {
    const late = new AbortController()
    const timer =
      setTimeout(() => late.abort(new Error(`the attempt did not finish within ${attemptMs} ms`)), attemptMs).unref()
    const signal = AbortSignal.any([late.signal, closing.signal])
    // Not `inTime`, because the end of the app ends an attempt as well.
    const { promise: aborted, reject } = Promise.withResolvers<never>()
    const abort = () => reject(signal.reason)
    signal.addEventListener('abort', abort, { once: true })
    try {
      await Promise.race([(async () => target.deliver(delivery, signal))(), aborted])
    } finally {
      clearTimeout(timer)
      signal.removeEventListener('abort', abort)
    }
  }

  async function fail (delivery: Delivery, error: unknown): Promise<void> {
    const milliseconds = Math.min(longestMs, shortestMs * 2 ** (delivery.attempts - 1)) * (0.5 + Math.random() / 2)
    const final = target.isFinal(error) || delivery.expired ||
      await postponeDelivery(db, delivery, milliseconds / 1000) === 'expired'
    const text = target.report(delivery, error, final)
    if (!final) return
    if (text === undefined) await settle(delivery)
    else await failDelivery(db, delivery, text)
  }

  return {
    start: () => { loop = run() },
    wake,
    async stop (drainMs) {
      stopping.abort()
      wake()
      await loop
      if (target.atClose) await fill().catch(() => {})
      await settlesWithin(Promise.all(running), drainMs)
      closing.abort(new Error('the app has closed'))
      await Promise.allSettled(running)
    },
  }
}
