import { setTimeout as delay } from 'node:timers/promises'
import type { Row, RowList } from 'postgres'
import { createAnswerTime } from './answer-time.ts'
import { isPooled, requireDelivery } from './delivery-check.ts'
import type { AdjustableClock } from './clock.ts'
import { isOutage } from './circuit-breaker.ts'
import { openListener } from './listener.ts'
import type { ClientOptions } from './client-options.ts'
import type { Outages } from './outages.ts'
import type { Pool } from './pool.ts'
import type { Failure } from './sockets.ts'

// LISTEN fails with this code on a standby. During a failover, the address may lead to a standby for a while.
const STANDBY = '25006'
const HEARTBEAT_MS = 25
// Contract 4: a session that has ended is rejected within 100 ms.
const LEASE_MS = 100
const SUSPICION_MS = 50
// More time than later attempts have: no request waits during the start, and several nodes may start on a busy machine.
const FIRST_CONNECT_MS = 5000
const RETRY_MS = 100

/** The statement that is sent as the heartbeat. */
export const HEARTBEAT = 'select extract(epoch from clock_timestamp())::float8 * 1000 as time'

interface Channel {
  onMessage: (payload: string) => void
  onConnect?: (() => Promise<void>) | undefined
}

export interface NotificationsOptions {
  /** The options of the connection that listens. */
  source: ClientOptions
  /** A pool of statements, from which the delivery check sends its notification. */
  pool: Pick<Pool, 'sql'>
  /** Whether `source` has another URL than the pool. */
  isSeparate: boolean
  outages: Outages
  /** The clock to adjust with every heartbeat. Absent if statements go to another URL, whose heartbeat then adjusts it. */
  clock: AdjustableClock | undefined
}

/**
 * Receives PostgreSQL's notifications on a dedicated connection. The same connection carries the heartbeat, which detects an
 * unavailable database within one second, even over a half-open connection, so that `outages` can open the circuit breaker.
 */
export interface Notifications {
  /**
   * Whether this node has received every message that was sent up to 100 ms ago, since the last `onConnect`. PostgreSQL delivers
   * pending notifications before it answers a heartbeat, so an answer proves that all notifications have arrived that were sent
   * before the heartbeat. This is a lease rather than a state: it expires by itself if the network, the database or this process
   * stalls.
   */
  readonly connected: boolean
  /**
   * Registers the handlers of a channel. Call it before `start`. `onConnect` runs after every (re)connection, since messages may
   * have been missed, and before `connected` becomes true. If one of the two handlers throws, the node reconnects.
   */
  listen (channel: string, onMessage: Channel['onMessage'], onConnect?: Channel['onConnect']): void
  /** Connects. Resolves when every `onConnect` has run; rejects with the cause if the first attempt fails. */
  start (): Promise<void>
  close (): Promise<void>
}

/** Creates the notifications of a database. It connects when `start` is called, and reconnects until `close` is called. */
export function createNotifications ({ pool, source, isSeparate, outages, clock }: NotificationsOptions): Notifications {
  const channels = new Map<string, Channel>()
  const closing = new AbortController()
  const answerTime = createAnswerTime()
  let started = false
  // Every message that was sent before this time has been received (`performance.now()`).
  let receivedUntil = -Infinity
  let running = Promise.resolve()
  let fail: (failure: Failure) => void = () => {}

  // Opens a connection and uses it until it fails. Resolves with the failure, whether the connection ever worked, and how many
  // statements had been answered when the database stopped answering here.
  async function useConnection (onConnected: () => void): Promise<{ failure: Failure, worked: boolean, answers: number }> {
    const lost = Promise.withResolvers<Failure>()
    let [over, worked, synchronized, answers] = [false, false, false, outages.answers]
    // The time when the latest answered statement was sent.
    let answeredUntil = -Infinity
    fail = lost.resolve
    const timeout = started ? answerTime.connectDeadline : FIRST_CONNECT_MS
    const connection = openListener(source, {
      timeout,
      onMessage: (channel, payload) => channels.get(channel)!.onMessage(payload),
      onLost: lost.resolve,
    })
    listen().catch(lost.resolve)
    const failure = await lost.promise
    over = true
    receivedUntil = -Infinity
    connection.end()
    return { failure, worked, answers }

    async function listen (): Promise<void> {
      // Connecting may take longer than requests may wait, so report the outage earlier, while the attempt continues.
      const cancelReport = after(answerTime.deadline, () => { if (started) outages.onOutage(unanswered(), answers, answerTime.deadline) })
      const listens = [...channels.keys()].map((channel) => `listen "${channel}"`)
      await run(['select 1', ...listens].join('; '), timeout).finally(cancelReport)
      worked = true
      // The clock must be adjusted before the first token is checked.
      await beat()
      if (channels.size > 0 && !started && (isSeparate || await isPooled(connection))) await requireDelivery(pool.sql, connection, channels)
      outages.onReturn()
      synchronize().catch(lost.resolve)
      for (;;) {
        await delay(HEARTBEAT_MS, undefined, { ref: false })
        if (over) return
        // A heartbeat does not wait for the one before: otherwise the lease would expire between two answers of a distant database.
        beat().catch(lost.resolve)
      }
    }

    async function synchronize (): Promise<void> {
      for (const { onConnect } of channels.values()) await onConnect?.()
      if (over) return
      synchronized = started = true
      receivedUntil = answeredUntil
      onConnected()
    }

    async function beat (): Promise<void> {
      const sent = performance.now()
      const { 0: row } = await run(HEARTBEAT, started ? answerTime.deadline : FIRST_CONNECT_MS)
      const received = performance.now()
      clock?.adjust(row!.time, sent, received)
      answerTime.add(received - sent)
      await outages.onAnswer((statement) => run(statement, answerTime.deadline), answerTime.stallDeadline)
    }

    // Runs a statement. The connection counts as lost if it is not answered in time.
    async function run (statement: string, deadline: number): Promise<RowList<Row[]>> {
      const sent = performance.now()
      let before = outages.answers
      // Answers within the first 50 ms do not prove that the database still answers, as they may have been on their way before.
      const cancelCount = after(SUSPICION_MS, () => { before = outages.answers })
      const cancelDeadline = after(deadline, () => {
        answers = before
        lost.resolve(unanswered())
      })
      const rows = await connection.run(statement).finally(() => {
        cancelCount()
        cancelDeadline()
      })
      answeredUntil = sent
      if (synchronized && !over) receivedUntil = sent
      return rows
    }
  }

  async function reconnect (onConnected: () => void): Promise<void> {
    while (!closing.signal.aborted) {
      const since = performance.now()
      const { failure, worked, answers } = await useConnection(onConnected)
      if (!started) throw failure
      if (closing.signal.aborted) return
      // The loss of a working connection is not an outage. It is one if the next connection cannot be opened, or if a working
      // one is no longer answered.
      const isUnavailable = (isOutage(failure) || failure.code === STANDBY) && !(worked && failure.code !== 'ETIMEDOUT')
      if (isUnavailable) outages.onOutage(failure, answers, answerTime.deadline)
      if (isUnavailable || performance.now() - since < RETRY_MS) {
        await delay(RETRY_MS, undefined, { signal: closing.signal, ref: false }).catch(() => {})
      }
    }
  }

  return {
    get connected () { return performance.now() - receivedUntil < LEASE_MS },

    listen (channel, onMessage, onConnect) {
      channels.set(channel, { onMessage, onConnect })
    },

    start () {
      return new Promise((resolve, reject) => { running = reconnect(resolve).catch(reject) })
    },

    async close () {
      closing.abort()
      fail(new Error('Closed'))
      await running
    },
  }
}

const unanswered = (): Failure => Object.assign(new Error('The database does not answer'), { code: 'ETIMEDOUT' })

// Calls `callback` after a time. Returns a function that cancels this. If the event loop itself was busy for so long, an answer
// may have arrived that has not been read yet, so two more turns of the loop are awaited.
function after (milliseconds: number, callback: () => void): () => void {
  let cancelled = false
  const timer = setTimeout(() => setImmediate(() => setImmediate(() => { if (!cancelled) callback() })), milliseconds).unref()
  return () => {
    cancelled = true
    clearTimeout(timer)
  }
}
