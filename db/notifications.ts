import { setTimeout as delay } from 'node:timers/promises'
import { isPooled, requireArrival } from './arrival.ts'
import { isOutage, type Gate } from './gate.ts'
import { openListener } from './listener.ts'
import type { ClientOptions } from './client-options.ts'
import type { Pool } from './pool.ts'
import type { Failure } from './sockets.ts'

// What `listen` fails with at a standby: the address leads there until the next primary takes it over.
const STANDBY = '25006'
const HEARTBEAT_MS = 50
const SUSPICION_MS = 50
const DEADLINE_MS = 400
// A far database takes several round trips.
const CONNECT_MS = 1000
// Nobody waits for an answer while a node starts, and a machine on which several do is busy.
const FIRST_CONNECT_MS = 5000
const RETRY_MS = 100
// PostgreSQL would have given the statement up by then: its connection is dead, though nothing has said so.
const GRACE_MS = 1000

interface Channel {
  onMessage: (payload: string) => void
  onConnect?: (() => Promise<void>) | undefined
}

/** Where outages, and faults of connections, are logged. */
export interface Log {
  warn (details: object, message: string): void
  info (message: string): void
  error (details: object, message: string): void
}

export interface NotificationsOptions {
  /** The connections of statements. */
  pool: Pick<Pool, 'sql' | 'renew'>
  /** The options of the connection that listens. */
  source: ClientOptions
  /** Whether these lead to another address than the pool's. */
  isElsewhere: boolean
  gate: Gate
  log: Log
  /** Milliseconds. */
  statementTimeout: number
}

/**
 * PostgreSQL's notifications on a connection of their own, which is also the node's pulse: a heartbeat tells
 * within half a second that the database is away, even over a half-open connection, and shuts the gate.
 */
export interface Notifications {
  /** Whether every message sent until 100 ms ago, since the last `onConnect`, has arrived; never so of a database that takes 50 ms to answer. */
  readonly connected: boolean
  /**
   * To be called before `start`. `onConnect` runs whenever messages may have been missed, before `connected`;
   * where one of the two throws, they may have been, and all begins anew.
   */
  listen (channel: string, onMessage: Channel['onMessage'], onConnect?: Channel['onConnect']): void
  /** Resolves once connected; rejects with the cause where the first try fails. */
  start (): Promise<void>
  close (): Promise<void>
}

export function createNotifications ({ pool, source, isElsewhere, gate, log, statementTimeout }: NotificationsOptions): Notifications {
  const channels = new Map<string, Channel>()
  const closing = new AbortController()
  let [connected, started] = [false, false]
  let running = Promise.resolve()
  let fail: (failure: Failure) => void = () => {}

  // A connection that lives until something fails: resolves with the failure, and whether it ever worked and
  // whether the database answered others at the time.
  async function live (onConnected: () => void): Promise<{ failure: Failure, worked: boolean, answers: number }> {
    const lost = Promise.withResolvers<Failure>()
    let [over, worked, synchronized, answers] = [false, false, false, gate.answers]
    fail = lost.resolve
    const timeout = started ? CONNECT_MS : FIRST_CONNECT_MS
    const connection = openListener(source, {
      timeout,
      onMessage: (channel, payload) => channels.get(channel)!.onMessage(payload),
      onLost: lost.resolve,
    })
    listen().catch(lost.resolve)
    const failure = await lost.promise
    over = true
    connected = false
    connection.end()
    return { failure, worked, answers }

    async function listen (): Promise<void> {
      // Its requests need not wait for as long as a connection may take.
      const hurry = after(DEADLINE_MS, () => { if (started) giveUp(unanswered(), answers) })
      const listens = [...channels.keys()].map((channel) => `listen "${channel}"`)
      await ask(['select 1', ...listens].join('; '), timeout).finally(hurry)
      worked = true
      if (!started && (isElsewhere || await isPooled(connection))) await requireArrival(pool.sql, connection, channels)
      if (!gate.open) log.info('The database is back')
      gate.set(true)
      synchronize().catch(lost.resolve)
      for (;;) {
        await delay(HEARTBEAT_MS, undefined, { ref: false })
        if (over) return
        await ask('select 1', DEADLINE_MS)
        connected = synchronized && !over
        expire(statementTimeout + GRACE_MS)
      }
    }

    async function synchronize (): Promise<void> {
      for (const { onConnect } of channels.values()) await onConnect?.()
      if (over) return
      connected = synchronized = started = true
      onConnected()
    }

    async function ask (statement: string, deadline: number): Promise<void> {
      const calm = after(SUSPICION_MS, () => {
        connected = false
        answers = gate.answers
      })
      const save = after(deadline, () => lost.resolve(unanswered()))
      await connection.run(statement).finally(() => {
        calm()
        save()
      })
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
      if (away) giveUp(failure, answers)
      if (away || performance.now() - since < RETRY_MS) await delay(RETRY_MS, undefined, { signal: closing.signal, ref: false }).catch(() => {})
    }
  }

  function giveUp (failure: Failure, answers: number): void {
    // Where others have got answers meanwhile the database is there, though not for those that have waited as long.
    if (gate.answers !== answers) {
      expire(DEADLINE_MS)
    } else if (gate.open) {
      log.warn({ err: failure }, 'The database is away')
      gate.set(false)
      pool.renew(0)
    }
  }

  function expire (milliseconds: number): void {
    if (gate.expire(milliseconds)) pool.renew()
  }

  return {
    get connected () { return connected },

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
