import { setTimeout as delay } from 'node:timers/promises'
import postgres, { type Sql } from 'postgres'
import { isOutage, type Gate } from './gate.ts'

const HEARTBEAT_MS = 200
const DEADLINE_MS = 400
const RETRY_MS = 100

interface Channel {
  onMessage: (payload: string) => void
  onConnect?: (() => Promise<void>) | undefined
}

/**
 * PostgreSQL's notifications on a connection of their own, which is also the node's pulse: a heartbeat tells
 * within 600 ms that the database is away, even over a half-open connection, and shuts the gate.
 */
export interface Notifications {
  /** Whether every message sent since the last `onConnect` has arrived or will. */
  readonly connected: boolean
  /** To be called before `start`. `onConnect` runs whenever messages may have been missed, before `connected`. */
  listen (channel: string, onMessage: Channel['onMessage'], onConnect?: Channel['onConnect']): void
  /** Resolves once connected; rejects with the cause where the first try fails. */
  start (): Promise<void>
  close (): Promise<void>
}

export function createNotifications (pool: Sql, gate: Gate): Notifications {
  const channels = new Map<string, Channel>()
  const closing = new AbortController()
  let connected = false
  let running = Promise.resolve()

  // A connection that lives until something fails: resolves with the failure.
  async function live (onConnected: () => void): Promise<{ code?: string }> {
    const lost = Promise.withResolvers<{ code: string }>()
    const connection = open(lost.resolve)
    try {
      for (const channel of channels.keys()) await answer(connection`listen ${connection(channel)}`)
      gate.set(true)
      for (const { onConnect } of channels.values()) await onConnect?.()
      connected = true
      onConnected()
      while (!closing.signal.aborted) {
        const failure = await Promise.race([lost.promise, delay(HEARTBEAT_MS, undefined, { signal: closing.signal, ref: false }).catch(() => {})])
        if (failure) return failure
        if (!closing.signal.aborted) await answer(connection`select 1`)
      }
      return {}
    } catch (error) {
      return error as { code?: string }
    } finally {
      connected = false
      void connection.end({ timeout: 0 })
    }
  }

  function open (lost: (failure: { code: string }) => void): Sql {
    // The options of a client are accepted back as they are; this is how postgres.js opens its own listener.
    return postgres({
      ...pool.options,
      max: 1,
      idle_timeout: null,
      max_lifetime: null,
      fetch_types: false,
      onclose: () => lost({ code: 'CONNECTION_CLOSED' }),
      onnotify: (channel: string, payload: string) => channels.get(channel)?.onMessage(payload),
    } as never) as unknown as Sql
  }

  async function run (onConnected: () => void, onFailed: (error: unknown) => void): Promise<void> {
    while (!closing.signal.aborted) {
      const since = performance.now()
      const failure = await live(onConnected)
      if (closing.signal.aborted) return
      onFailed(failure)
      // One closed connection is no outage: only where the next cannot be had is the database away.
      const first = performance.now() - since > RETRY_MS && failure.code === 'CONNECTION_CLOSED'
      if (!first && isOutage(failure)) gate.set(false)
      if (!first) await delay(RETRY_MS, undefined, { signal: closing.signal, ref: false }).catch(() => {})
    }
  }

  return {
    get connected () { return connected },

    listen (channel, onMessage, onConnect) {
      channels.set(channel, { onMessage, onConnect })
    },

    start () {
      return new Promise((resolve, reject) => { running = run(resolve, reject) })
    },

    async close () {
      closing.abort()
      await running
    },
  }
}

// An answer within the deadline. The loop itself may have been busy for longer than that, so that the answer
// stands in the socket unread: the verdict waits for one more turn of it.
async function answer (query: PromiseLike<unknown>): Promise<void> {
  const timeout = Promise.withResolvers<never>()
  const timer = setTimeout(() => setImmediate(() => setImmediate(() => {
    timeout.reject(Object.assign(new Error('The database does not answer'), { code: 'ETIMEDOUT' }))
  })), DEADLINE_MS).unref()
  try {
    await Promise.race([query, timeout.promise])
  } finally {
    clearTimeout(timer)
  }
}
