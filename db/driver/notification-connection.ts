import type { Row, RowList } from 'postgres'
import type { Deadlines } from '../../schema/options/deadlines.ts'
import type { AnswerTime } from './answer-time.ts'
import type { ClientOptions } from './client.ts'
import type { AdjustableClock } from './clock.ts'
import { requireDelivery } from './delivery-check.ts'
import { openListener } from './listener.ts'
import type { Outages } from './outages.ts'
import type { Pool } from './pool.ts'
import { holdPresence } from './presence.ts'
import type { Failure } from './sockets.ts'

const HEARTBEAT_MS = 25
// While no session is checked and no statement waits, heartbeats only have to detect an outage.
const IDLE_HEARTBEAT_MS = 200
const IDLE_AFTER_MS = 500
const SUSPICION_MS = 50
const SLICE_MS = 100

/** The statement that is sent as the heartbeat. */
export const HEARTBEAT = 'select extract(epoch from clock_timestamp())::float8 * 1000 as time'

/** The handlers of a channel. */
export interface Channel {
  onMessage: (payload: string) => void
  onConnect?: (() => Promise<void>) | undefined
}

/**
 * The state of a connection. Each state follows the one before it in this list, and `lost` can follow each of the
 * others. The times are those of `performance.now()`.
 */
export type ConnectionState =
  /** LISTEN has not been answered yet, or not been sent. */
  | { name: 'connecting' }
  /** The database answers, and messages arrive. The handlers look for those that were missed. */
  | { name: 'synchronizing', answeredUntil: number }
  /** Every message that was sent before `receivedUntil` has been received. */
  | { name: 'live', receivedUntil: number }
  | LostConnection

export interface LostConnection {
  name: 'lost'
  failure: Failure
  /** Whether LISTEN had been answered. */
  worked: boolean
  /**
   * The number of statements that had been answered when the database stopped answering here, see `Outages.answers`.
   */
  answers: number
}

export interface NotificationConnection {
  readonly state: ConnectionState
  /** Begins to listen and to send heartbeats. It is called once, when every channel has its handlers. */
  listen (): void
  /** Resolves when every `onConnect` has run. Never resolves if the connection is lost before. */
  live: Promise<void>
  /** Resolves when the connection has been lost. */
  lost: Promise<LostConnection>
  /** Keeps the frequency of heartbeats high for a while. Without calls, it falls. */
  use (): void
  /** Ends the connection, which counts as lost with `failure` as the reason. */
  end (failure: Failure): void
}

export interface NotificationConnectionOptions {
  source: ClientOptions
  channels: Map<string, Channel>
  /** Whether no connection was live before. If it fails, the start of the node fails. */
  isFirst: boolean
  /** Verifies that notifications that are sent from this pool arrive. */
  verifiedFrom: Pick<Pool, 'ready'>
  /** Whether `source` has another URL than `verifiedFrom`. */
  isSeparate: boolean
  outages: Outages
  /** The name of the lock that the connection holds while it listens. */
  presence: string
  clock: AdjustableClock | undefined
  answerTime: AnswerTime
  deadlines: Deadlines
}

/**
 * Opens a connection. From a call of `listen` on, it listens on all channels and sends heartbeats until it is lost. It
 * does not reconnect.
 */
export function openNotificationConnection (options: NotificationConnectionOptions): NotificationConnection {
  const { source, channels, isFirst, verifiedFrom, isSeparate, outages, presence } = options
  const { clock, answerTime, deadlines } = options
  const live = Promise.withResolvers<void>()
  const lost = Promise.withResolvers<LostConnection>()
  const answersBefore = outages.answers
  let state: ConnectionState = { name: 'connecting' }
  let usedAt = performance.now()
  let idleTimer: NodeJS.Timeout | undefined

  const timeout = answerTime.connectDeadline
  const listener = openListener(source, {
    timeout,
    // A pooler may lend a connection on which another client listens as well.
    onMessage: (channel, payload) => channels.get(channel)?.onMessage(payload),
    onLost: lose,
  })
  const connected = connect()
  connected.catch(lose)

  function lose (failure: Failure, answers = answersBefore): void {
    if (isLost()) return
    const { name } = state
    lost.resolve(state = { name: 'lost', failure, worked: name !== 'connecting', answers })
    listener.end()
  }

  // A function, because TypeScript does not expect that `state` changes while a statement is awaited.
  function isLost (): boolean {
    return state.name === 'lost'
  }

  async function connect (): Promise<void> {
    const cancelDeadline = after(timeout, () => lose(unanswered()))
    await listener.run('select 1').finally(cancelDeadline)
  }

  async function listen (): Promise<void> {
    // Connecting may take longer than requests may wait, so report the outage earlier, while the attempt continues.
    const cancelReport = after(
      answerTime.deadline, () => { if (!isFirst) outages.onOutage(unanswered(), answersBefore, answerTime.deadline) }
    )
    await connected.finally(cancelReport)
    const listens = [...channels.keys()].map((channel) => `listen "${channel}"`)
    const { 0: row, state: { pid } } = await beat(timeout, async () =>
      (await listener.runTogether(['select 1', ...listens, `${HEARTBEAT}, pg_backend_pid() as pid`])).at(-1)!)
    // A pooler reports other process numbers than PostgreSQL does.
    await synchronize({ isPooled: row!.pid !== pid })
  }

  async function synchronize ({ isPooled }: { isPooled: boolean }): Promise<void> {
    if (channels.size > 0 && isFirst && (isSeparate || isPooled)) {
      await requireDelivery(verifiedFrom, { listener, channels, timeoutMs: deadlines.notificationDelivery })
    }
    outages.onReturn()
    scheduleHeartbeat()
    // Not before: a pooler that delivers nothing would keep the lock for a node that does not start.
    const present = channels.size > 0 ? listener.run(holdPresence(presence)) : undefined
    await Promise.all([present, ...[...channels.values()].map(({ onConnect }) => onConnect?.())])
    if (state.name !== 'synchronizing') return
    state = { name: 'live', receivedUntil: state.answeredUntil }
    live.resolve()
  }

  function scheduleHeartbeat (): void {
    const isIdle = !outages.isWaiting && performance.now() - usedAt > IDLE_AFTER_MS
    const timer = setTimeout(sendHeartbeat, isIdle ? IDLE_HEARTBEAT_MS : HEARTBEAT_MS).unref()
    idleTimer = isIdle ? timer : undefined
  }

  function sendHeartbeat (): void {
    if (isLost()) return
    // A heartbeat does not wait for the one before: otherwise the lease would expire between two answers of a distant
    // database.
    beat().catch(lose)
    scheduleHeartbeat()
  }

  function use (): void {
    usedAt = performance.now()
    if (!idleTimer) return
    clearTimeout(idleTimer)
    sendHeartbeat()
  }

  // Runs a statement that returns the time of the database.
  async function beat (
    deadline = answerTime.deadline, statement = (): Promise<RowList<Row[]>> => listener.run(HEARTBEAT)
  ): Promise<RowList<Row[]>> {
    const sent = performance.now()
    const rows = await run(statement, deadline)
    const received = performance.now()
    clock?.adjust(rows[0]!.time, sent, received)
    answerTime.add(received - sent)
    await outages.onAnswer((text) => run(() => listener.run(text), answerTime.deadline), answerTime.stallDeadline)
    return rows
  }

  // Runs a statement. The connection counts as lost if it is not answered in time.
  async function run (statement: () => Promise<RowList<Row[]>>, deadline: number): Promise<RowList<Row[]>> {
    const sent = performance.now()
    let answers = outages.answers
    // Answers within the first 50 ms do not prove that the database still answers, as they may have been on their way
    // before.
    const cancelCount = after(SUSPICION_MS, () => { answers = outages.answers })
    const cancelDeadline = after(deadline, () => lose(unanswered(), answers))
    const rows = await statement().finally(() => {
      cancelCount()
      cancelDeadline()
    })
    if (state.name === 'live') state = { name: 'live', receivedUntil: sent }
    else if (!isLost()) state = { name: 'synchronizing', answeredUntil: sent }
    return rows
  }

  return {
    get state () { return state },
    listen: () => { listen().catch(lose) },
    live: live.promise,
    lost: lost.promise,
    use,
    end: lose,
  }
}

const unanswered = (): Failure => Object.assign(new Error('The database does not answer'), { code: 'ETIMEDOUT' })

// Calls `callback` after a time. Returns a function that cancels this. A slice counts as its length even if it takes
// longer, because the process was paused or the machine is busy: the database may then be as slow as this process.
// Answers may also have arrived that have not been read yet, so two more turns of the event loop are awaited.
function after (milliseconds: number, callback: () => void): () => void {
  let cancelled = false
  let remaining = milliseconds
  let timer = next()

  function next (): NodeJS.Timeout {
    const slice = Math.min(remaining, SLICE_MS)
    remaining -= slice
    return setTimeout(() => {
      if (remaining > 0) timer = next()
      else setImmediate(() => setImmediate(() => { if (!cancelled) callback() }))
    }, slice).unref()
  }

  return () => {
    cancelled = true
    clearTimeout(timer)
  }
}
