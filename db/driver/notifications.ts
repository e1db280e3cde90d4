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

// What `listen` fails with at a standby: the address leads there until the next primary takes it over.
const STANDBY = '25006'
const HEARTBEAT_MS = 25
// Contract 4: a session that has ended is rejected within 100 ms.
const LEASE_MS = 100
const SUSPICION_MS = 50
// Nobody waits for an answer while a node starts, and a machine on which several do is busy.
const FIRST_CONNECT_MS = 5000
const RETRY_MS = 100

/** The text of the statement that is sent as the heartbeat. */
export const HEARTBEAT = 'select extract(epoch from clock_timestamp())::float8 * 1000 as time'

interface Channel {
  onMessage: (payload: string) => void
  onConnect?: (() => Promise<void>) | undefined
}

export interface NotificationsOptions {
  /** The options of the connection that listens. */
  source: ClientOptions
  /** A client of the database at the address of statements, which a notification can be sent from. */
  pool: Pick<Pool, 'sql'>
  /** Whether `source` leads to another address than the pool's. */
  isSeparate: boolean
  outages: Outages
  /** Of statements. Absent where these go to another address, whose time counts. */
  clock: AdjustableClock | undefined
}

/**
 * PostgreSQL's notifications on a connection of their own, which is also the node's pulse: a heartbeat tells
 * within a second that the database is away, even over a half-open connection, and opens the circuit breaker.
 */
export interface Notifications {
  /**
   * Whether every message that was sent until 100 ms ago, since the last `onConnect`, has arrived. PostgreSQL sends what it
   * has to tell before it answers a heartbeat, so that one that is answered vouches for the time until it was sent. A
   * lease rather than a state: it ends by itself, whatever stalls, be it the network, the database or this process.
   */
  readonly connected: boolean
  /**
   * To be called before `start`. `onConnect` runs whenever messages may have been missed, before `connected`;
   * where one of the two throws, they may have been, and all begins anew.
   */
  listen (channel: string, onMessage: Channel['onMessage'], onConnect?: Channel['onConnect']): void
  /** Resolves once everything is heard; rejects with the cause where the first try fails. */
  start (): Promise<void>
  close (): Promise<void>
}

export function createNotifications ({ pool, source, isSeparate, outages, clock }: NotificationsOptions): Notifications {
  const channels = new Map<string, Channel>()
  const closing = new AbortController()
  const answerTime = createAnswerTime()
  let started = false
  // Every message that was sent before this time has arrived (`performance.now()`).
  let heardUntil = -Infinity
  let running = Promise.resolve()
  let fail: (failure: Failure) => void = () => {}

  // A connection that lives until something fails: resolves with the failure, and whether it ever worked and
  // whether the database answered others at the time.
  async function live (onConnected: () => void): Promise<{ failure: Failure, worked: boolean, answers: number }> {
    const lost = Promise.withResolvers<Failure>()
    let [over, worked, synchronized, answers] = [false, false, false, outages.answers]
    // When the latest statement that was answered was sent.
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
    heardUntil = -Infinity
    connection.end()
    return { failure, worked, answers }

    async function listen (): Promise<void> {
      // Its requests need not wait for as long as a connection may take.
      const hurry = after(answerTime.deadline, () => { if (started) outages.onOutage(unanswered(), answers, answerTime.deadline) })
      const listens = [...channels.keys()].map((channel) => `listen "${channel}"`)
      await ask(['select 1', ...listens].join('; '), timeout).finally(hurry)
      worked = true
      // The clock has to be right before the first token is checked.
      await beat()
      if (channels.size > 0 && !started && (isSeparate || await isPooled(connection))) await requireDelivery(pool.sql, connection, channels)
      outages.onReturn()
      synchronize().catch(lost.resolve)
      for (;;) {
        await delay(HEARTBEAT_MS, undefined, { ref: false })
        if (over) return
        // Heartbeats do not wait for one another: otherwise the lease would expire between two answers of a distant database.
        beat().catch(lost.resolve)
      }
    }

    async function synchronize (): Promise<void> {
      for (const { onConnect } of channels.values()) await onConnect?.()
      if (over) return
      synchronized = started = true
      heardUntil = answeredUntil
      onConnected()
    }

    async function beat (): Promise<void> {
      const sent = performance.now()
      const { 0: row } = await ask(HEARTBEAT, started ? answerTime.deadline : FIRST_CONNECT_MS)
      const received = performance.now()
      clock?.adjust(row!.time, sent, received)
      answerTime.add(received - sent)
      await outages.onAnswer((statement) => ask(statement, answerTime.deadline), answerTime.stallDeadline)
    }

    async function ask (statement: string, deadline: number): Promise<RowList<Row[]>> {
      const sent = performance.now()
      let before = outages.answers
      const calm = after(SUSPICION_MS, () => { before = outages.answers })
      const save = after(deadline, () => {
        answers = before
        lost.resolve(unanswered())
      })
      const rows = await connection.run(statement).finally(() => {
        calm()
        save()
      })
      answeredUntil = sent
      if (synchronized && !over) heardUntil = sent
      return rows
    }
  }

  async function run (onConnected: () => void): Promise<void> {
    while (!closing.signal.aborted) {
      const since = performance.now()
      const { failure, worked, answers } = await live(onConnected)
      if (!started) throw failure
      if (closing.signal.aborted) return
      // One lost connection is no outage: only where the next cannot be had is the database away.
      const away = (isOutage(failure) || failure.code === STANDBY) && !(worked && failure.code !== 'ETIMEDOUT')
      if (away) outages.onOutage(failure, answers, answerTime.deadline)
      if (away || performance.now() - since < RETRY_MS) await delay(RETRY_MS, undefined, { signal: closing.signal, ref: false }).catch(() => {})
    }
  }

  return {
    get connected () { return performance.now() - heardUntil < LEASE_MS },

    listen (channel, onMessage, onConnect) {
      channels.set(channel, { onMessage, onConnect })
    },

    start () {
      return new Promise((resolve, reject) => { running = run(resolve).catch(reject) })
    },

    async close () {
      closing.abort()
      fail(new Error('Closed'))
      await running
    },
  }
}

const unanswered = (): Failure => Object.assign(new Error('The database does not answer'), { code: 'ETIMEDOUT' })

// Calls back after that time, unless the function that it returns was called before. The event loop itself may
// have been busy for longer than that, so that the answer stands in the socket unread: two more turns of it.
function after (milliseconds: number, callback: () => void): () => void {
  let cancelled = false
  const timer = setTimeout(() => setImmediate(() => setImmediate(() => { if (!cancelled) callback() })), milliseconds).unref()
  return () => {
    cancelled = true
    clearTimeout(timer)
  }
}
