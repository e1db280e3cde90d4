import { setTimeout as delay } from 'node:timers/promises'
import type { Deadlines } from '../../schema/options/deadlines.ts'
import { createAnswerTime } from './answer-time.ts'
import { isOutage } from './circuit-breaker.ts'
import type { ClientOptions } from './client.ts'
import type { AdjustableClock } from './clock.ts'
import { openNotificationConnection, type Channel, type NotificationConnection } from './notification-connection.ts'
import type { Outages } from './outages.ts'
import type { Pool } from './pool.ts'

// LISTEN fails with this code on a standby. During a failover, the address may lead to a standby for a while.
const STANDBY = '25006'
// Contract 4: a session that has ended is rejected within 100 ms.
const LEASE_MS = 100
const RETRY_MS = 100

export interface NotificationsOptions {
  /** Returns the options of the next connection that listens. */
  source: () => ClientOptions
  /** A pool of statements, from which the delivery check sends its notification. */
  pool: Pick<Pool, 'ready'>
  /** Whether `source` has another URL than the pool. */
  isSeparate: boolean
  outages: Outages
  /** The name of the lock that every node holds while it listens. */
  presence: string
  /**
   * The clock to adjust with every heartbeat. Absent if statements go to another URL, whose heartbeat then adjusts it.
   */
  clock: AdjustableClock | undefined
  deadlines: Deadlines
}

/**
 * Receives PostgreSQL's notifications on a dedicated connection. The same connection carries the heartbeat, which
 * detects an unavailable database within one second, even over a half-open connection, so that `outages` can open the
 * circuit breaker.
 */
export interface Notifications {
  /**
   * Whether this node has received every message that was sent up to 100 ms ago, since the last `onConnect`. PostgreSQL
   * delivers pending notifications before it answers a heartbeat, so an answer proves that all notifications have
   * arrived that were sent before the heartbeat. This is a lease rather than a state: it expires by itself if the
   * network, the database or this process stalls. It also expires while nobody reads this property, because heartbeats
   * are then less frequent.
   */
  readonly connected: boolean
  /** Whether messages arrive, as far as this node knows: an outage may last for a second before it is noticed. */
  readonly listening: boolean
  /** How often a connection that received messages was lost. */
  readonly losses: number
  /**
   * Registers the handlers of a channel. Call it before `start`. `onConnect` runs after every (re)connection, since
   * messages may have been missed, and before `connected` becomes true. If one of the two handlers throws, the node
   * reconnects.
   */
  listen (channel: string, onMessage: Channel['onMessage'], onConnect?: Channel['onConnect']): void
  /**
   * Opens the first connection ahead of `start`, so that this takes fewer round trips. If that fails, `start` opens
   * another one.
   */
  connect (): void
  /** Connects. Resolves when every `onConnect` has run; rejects with the cause if the first attempt fails. */
  start (): Promise<void>
  /**
   * Sets whether requests are served. If not, as at first, the database has more time to answer
   * (`db/driver/answer-time.ts`).
   */
  setServing (isServing: boolean): void
  close (): Promise<void>
}

/**
 * Creates the notifications of a database. It connects when `start` is called, and reconnects until `close` is called.
 */
export function createNotifications (
  { pool, source, isSeparate, outages, presence, clock, deadlines }: NotificationsOptions
): Notifications {
  const channels = new Map<string, Channel>()
  const closing = new AbortController()
  const answerTime = createAnswerTime(deadlines)
  let connection: NotificationConnection | undefined
  let running = Promise.resolve()
  let losses = 0

  const open = (isFirst: boolean): NotificationConnection => openNotificationConnection({
    source: source(),
    verifiedFrom: pool,
    channels,
    isFirst,
    isSeparate,
    outages,
    presence,
    clock,
    answerTime,
    deadlines,
  })

  // Opens one connection after the other until `close` is called. Calls `onStarted` when the first one is live.
  async function run (onStarted: () => void): Promise<void> {
    let isFirst = true
    while (!closing.signal.aborted) {
      const since = performance.now()
      const early = connection
      if (!connection || connection.state.name === 'lost') connection = open(isFirst)
      connection.listen()
      void connection.live.then(() => {
        isFirst = false
        onStarted()
      })
      const { failure, worked, answers } = await connection.lost
      // One that was opened ahead may have been lost before it was used.
      if (isFirst && connection === early && isOutage(failure)) continue
      if (isFirst) throw failure
      if (closing.signal.aborted) return
      if (worked) losses++
      // The loss of a working connection is not an outage. It is one if the next connection cannot be opened, or if a
      // working one is no longer answered.
      const isUnavailable = (isOutage(failure) || failure.code === STANDBY) && !(worked && failure.code !== 'ETIMEDOUT')
      if (isUnavailable) outages.onOutage(failure, answers, answerTime.deadline)
      if (isUnavailable || performance.now() - since < RETRY_MS) {
        await delay(RETRY_MS, undefined, { signal: closing.signal, ref: false }).catch(() => {})
      }
    }
  }

  return {
    get connected () {
      connection?.use()
      return connection?.state.name === 'live' && performance.now() - connection.state.receivedUntil < LEASE_MS
    },

    get listening () { return connection?.state.name === 'live' },
    get losses () { return losses },

    listen (channel, onMessage, onConnect) {
      channels.set(channel, { onMessage, onConnect })
    },

    connect () {
      connection ??= open(true)
    },

    start () {
      return new Promise((resolve, reject) => { running = run(resolve).catch(reject) })
    },

    setServing: answerTime.setServing,

    async close () {
      closing.abort()
      connection?.end(new Error('Closed'))
      await running
    },
  }
}
