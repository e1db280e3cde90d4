import { setTimeout as delay } from 'node:timers/promises'
import type { FastifyInstance } from 'fastify'
import { readAtStart, type AtStart } from '../../db/driver/at-start.ts'
import { explainUnknownRoles, listUnknownRoles, type UnknownRole } from '../../db/users/unknown-roles.ts'
import { isOutage } from '../../db/driver/circuit-breaker.ts'
import { openDatabase as openConnections } from '../../db/driver/connection.ts'
import { newId } from '../../db/driver/ids.ts'
import type { Notifications } from '../../db/driver/notifications.ts'
import type { Failure } from '../../db/driver/sockets.ts'
import { createWriteInTime } from '../../db/driver/write-in-time.ts'
import { migrate } from '../../db/migrations/index.ts'
import type { MigrationStep } from '../../db/migrations/steps.ts'
import { loadConsumed } from '../../db/outbox/consumed.ts'
import { explainStart, isReadOnly } from '../../db/driver/start-errors.ts'
import type { OnStatement } from '../../db/telemetry/observe-statements.ts'
import { DatabaseUnavailable } from '../../schema/http/errors.ts'
import { inTime } from '../../schema/runtime/in-time.ts'
import { createSampler } from '../support/sampler.ts'

// Usher's statements have a few kilobytes at most.
const STATEMENT_LENGTH = 8192

export type OpenDatabase = Awaited<ReturnType<typeof openDatabase>>

const messages = { started: 'has started', building: 'builds an index', ended: 'has ended' }
const WAITS = 'the database accepts no writes: the start waits for a failover to end'
const RETRY_MS = 500
const WATCH_MS = 100
// PostgreSQL cancels a statement that waits for a lock, and says so. Only then it does not answer.
const GRACE_MS = 1000
// What a hook has of the time that Fastify gives it, so that its own error is the one that is seen.
const SHARE_OF_HOOK = 0.8

/**
 * Connects to the database, migrates it, reads what a start needs, and closes the connections when the app closes. It
 * may take as long as migrations do, also those of another node, so it must not run in a plugin of a host, which
 * Fastify gives ten seconds. It takes a distant database few round trips. Throws an error that explains what is wrong.
 */
export async function openDatabase (app: FastifyInstance) {
  const {
    database, notificationsUrl, replicaUrls, schema, poolSize, userFields, organizations, roles, without, admin,
    deadlines, slowStatementMs, onRoleInUse,
  } = app.usherOptions
  const { usherTelemetry: telemetry } = app
  const { log } = app
  const onStatement = slowStatementMs === undefined ? undefined : createSlowLog(app, slowStatementMs)
  const connection = openConnections({
    database, notificationsUrl, schema, poolSize, deadlines, telemetry, onStatement, log,
  })
  measureNotifications(app, connection.notifications)
  const { db, breaker, clock, notifications, heartbeat, setServing, close } = connection
  const along: (() => Promise<void>)[] = []
  const cancelledMs = Math.max(deadlines.databaseStart, deadlines.statement + GRACE_MS)
  let hasAnswered = false
  app.addHook('onClose', close)
  // Apps without standbys do not load the modules for them.
  const replicas = replicaUrls.length > 0
    ? (await import('../../db/replicas/replicas.ts')).openReplicas(db, {
        urls: replicaUrls, size: poolSize, deadlines, telemetry, onStatement, log,
      })
    : undefined
  app.addHook('onClose', async () => replicas?.close())
  const atStart = await whileFailingOver(prepare, { outages: true }).catch(giveUp)
  const stopWatching = watchStatements()
  app.addHook('onClose', async () => stopWatching())

  async function prepare (): Promise<Partial<AtStart>> {
    await whileAnswering(connection.connect())
    hasAnswered = true
    let reading: Promise<Partial<AtStart> | undefined> | undefined
    // They are read along with the names of the migrations, and once more if the tables had to be migrated.
    const onTables = () => { reading = read().catch(() => undefined) }
    const [{ newer, hasChanged, isStandby }] = await Promise.all([
      migrate(db, schema, {
        fields: { users: userFields, organizations: organizations?.fields }, report, onTables, limit: untilCancelled,
      }),
      whileAnswering(connection.measureClock()),
    ])
    if (isStandby) {
      throw new DatabaseUnavailable({ cause: new StartFailure('The database accepts no writes', 'READ_ONLY') })
    }
    if (newer.length > 0) log.warn({ schema, migrations: newer }, 'a newer version of Usher has migrated the database')
    const rows = (!hasChanged && await reading) || await read()
    checkRoles(rows.unknownRoles ?? await listUnknownRoles(db, roles))
    return rows
  }

  // A user whose role nobody knows could do what `user` may do, and nobody would notice (contract 20.1).
  function checkRoles (unknown: readonly UnknownRole[]): void {
    if (unknown.length > 0 && !onRoleInUse) throw explainUnknownRoles(unknown)
    for (const { role, users } of unknown) onRoleInUse?.(role, users)
  }

  async function read (): Promise<Partial<AtStart>> {
    const [rows] = await untilCancelled(Promise.all([
      readAtStart(db, schema, { email: admin?.email, uploads: !without.includes('uploads'), roles }), loadConsumed(db),
    ]))
    return rows
  }

  // Before there are heartbeats, nothing else limits how long statements wait. Those that migrate may take long.
  function whileAnswering<Result> (work: Promise<Result>, timeoutMs = deadlines.databaseStart): Promise<Result> {
    return inTime(work, timeoutMs, () =>
      new DatabaseUnavailable({ cause: new StartFailure('The database does not answer', 'ETIMEDOUT') }))
  }

  // The same for statements on tables, which another program may have locked.
  function untilCancelled<Result> (work: Promise<Result>): Promise<Result> {
    return whileAnswering(work, cancelledMs)
  }

  // The same for the statements that other parts of the start send.
  function watchStatements (): () => void {
    const timer = setInterval(() => breaker.expire(cancelledMs), WATCH_MS).unref()
    return () => clearInterval(timer)
  }

  /**
   * Does what a start does in the database, and again while that accepts no writes, because a standby has not been
   * promoted yet (contract 1.10).
   * @param options.outages whether to do it again after an outage, too, once the database has answered
   */
  async function whileFailingOver<Result> (
    work: () => Promise<Result>, { outages = false, timeoutMs = deadlines.databaseFailover } = {}
  ): Promise<Result> {
    const until = performance.now() + timeoutMs
    for (let tries = 0; ; tries++) {
      try {
        return await work()
      } catch (error) {
        const cause = ((error as Error).cause ?? error) as Failure
        const isTemporary = isReadOnly(cause) || (outages && hasAnswered && isOutage(cause))
        if (!isTemporary || performance.now() > until) throw error
        if (tries === 0) log.warn({ schema, err: error }, WAITS)
        await delay(RETRY_MS)
        connection.reconnect()
      }
    }
  }

  function report ({ state, ...step }: MigrationStep): void {
    if (state === 'waiting') {
      app.log.warn(
        { schema, ...step },
        step.migration ? 'a migration waits for a lock and is tried again' : 'another node migrates the database'
      )
    } else {
      app.log.info({ schema, ...step }, `a migration ${messages[state]}`)
    }
  }

  // If the app does not start, an open connection would keep the process alive.
  async function giveUp (error: Error): Promise<never> {
    await close()
    throw explainStart(error, schema)
  }

  /** Does something in the database while `start` begins to listen, so that it delays the start less. */
  function startAlong (work: () => Promise<void>): void {
    along.push(work)
  }

  /** Starts listening to notifications. Throws if the database or `notificationsUrl` cannot be used. */
  async function start (): Promise<void> {
    replicas?.start()
    const outages = { outages: true }
    await Promise.all([
      ...along.map((work) => inHook(work, outages)),
      heartbeat && inHook(() => heartbeat.start(), outages),
      // A wrong `notificationsUrl` has no outage.
      inHook(() => notifications.start(), { outages: notificationsUrl === undefined }).catch(explainNotifications),
    ]).catch(giveUp)
    stopWatching()
  }

  function explainNotifications (error: Error): never {
    const isExplained = error instanceof DatabaseUnavailable || error.message.startsWith('usher: ')
    if (notificationsUrl === undefined || isExplained) throw error
    const message = `usher: notificationsUrl cannot be used to receive notifications: ${error.message}`
    throw new Error(message, { cause: error })
  }

  /** Does what `onReady` hooks do in the database, see `whileFailingOver`. */
  async function inHook<Result> (work: () => Promise<Result>, { outages = false } = {}): Promise<Result> {
    const { pluginTimeout = 0 } = app.initialConfig
    const timeoutMs = Math.min(deadlines.databaseFailover, pluginTimeout > 0 ? pluginTimeout * SHARE_OF_HOOK : Infinity)
    return whileFailingOver(work, { outages, timeoutMs })
  }

  return {
    db,
    /** For statements that a standby may answer; the same as `db` if there is none. */
    reads: replicas?.reads ?? db,
    breaker,
    clock,
    notifications,
    start,
    startAlong,
    inHook,
    setServing,
    /** What was read while the database was opened, for those who need it first. */
    atStart,
    newId: () => newId(db),
    ...createWriteInTime(clock, deadlines),
  }
}

class StartFailure extends Error {
  readonly code: string

  constructor (message: string, code: string) {
    super(message)
    this.code = code
  }
}

// Logs the texts of slow statements, which have placeholders and no values. What is slow on one server is also logged
// for another one.
function createSlowLog ({ log }: FastifyInstance, slowMs: number): OnStatement {
  const isNew = createSampler()
  return (text, ms, standby) => {
    if (ms < slowMs || !isNew(`${standby ?? ''} ${text}`)) return
    const server = standby === undefined ? {} : { standby }
    log.warn({ ms: Math.round(ms), ...server, statement: text.slice(0, STATEMENT_LENGTH) }, 'A statement was slow')
  }
}

function measureNotifications ({ usherTelemetry: { metrics } }: FastifyInstance, notifications: Notifications): void {
  metrics.gauge(
    'usher_notifications_available', 'Whether notifications of the database arrive: 0 during their outages',
    () => Number(notifications.listening), { combine: 'min' }
  )
  metrics.count('usher_notifications_outages_total', 'How often the connection for notifications was lost', () =>
    notifications.losses)
}
