import { setTimeout as delay } from 'node:timers/promises'
import postgres, { type Row, type RowList } from 'postgres'
import { settlesWithin } from '../../schema/runtime/in-time.ts'
import type { ClientOptions } from '../driver/client.ts'
import type { Log } from '../driver/outages.ts'
import type { Failure } from '../driver/sockets.ts'
import type { ObserveStatement } from '../telemetry/observe-statements.ts'
import { findUnconfirmed, type Shown } from './certificate.ts'
import type { Fence, Fences } from './fences.ts'
import type { Marks } from './marks.ts'
import { Patience } from './patience.ts'
import { NotRead, noAnswer, StandbyConnection, type Introduction, type StandbyDeadlines } from './standby-connection.ts'

// After so many reads in a row that it has not answered, it rests.
const MAX_FAILURES = 3
const FIRST_REST_MS = 100
const LONGEST_REST_MS = 5000
const STEP_MS = 1
const PRIMARY_CHANGED = 'the primary has changed'

export interface StandbyOptions {
  /** Its address without the password, for the log and metrics. */
  name: string
  options: ClientOptions
  /** How many connections it may have. */
  size: number
  deadlines: StandbyDeadlines
  fences: Fences
  marks: Marks
  /** The statement that looks for the id of a mark. */
  findMark: string
  /** Called with the milliseconds that it took to replay the WAL for a read. */
  onReplay (ms: number): void
  /** Runs each statement that it is sent, to record it. */
  observe: ObserveStatement | undefined
  /** Runs what no request waits for. */
  detached (run: () => void): void
  log: Log
}

const HIGH = 2 ** 32

// Positions of the WAL have 64 bits, of which 53 are enough for eight petabytes.
function toBytes (lsn: string): number {
  const [high = '', low = ''] = lsn.split('/')
  return parseInt(high, 16) * HIGH + parseInt(low, 16)
}

/** A statement that only reads. */
export interface Query {
  readonly text: string
  readonly parameters: readonly unknown[]
  readonly prepare: boolean
}

/**
 * A standby that answers reads as long as it keeps up with the primary. If it does not, it rests for a while, up to
 * five seconds, and is tried again when there is a read, which does not wait for that.
 */
export class Standby {
  readonly name: string
  readonly #options: StandbyOptions
  readonly #patience: Patience
  #idle: StandbyConnection[] = []
  readonly #open = new Set<StandbyConnection>()
  /** What it was verified with; undefined while it rests. */
  #known: Introduction | undefined
  #isOpening = false
  #isClosed = false
  #failures = 0
  #lag: number | undefined
  #restMs = FIRST_REST_MS
  #restsUntil = 0
  #said: string | undefined

  constructor (options: StandbyOptions) {
    this.name = options.name
    this.#options = options
    this.#patience = new Patience(options.deadlines)
  }

  /** Whether reads go there. */
  get isUsed (): boolean {
    return this.#known !== undefined
  }

  /** How many bytes of the WAL it lacked at its last answer; undefined if there was none. */
  get lag (): number | undefined {
    return this.#lag
  }

  /** For how long its next read waits, in milliseconds, until it has replayed the WAL. */
  get patienceMs (): number {
    return this.#patience.ms
  }

  get open (): number {
    return this.#open.size
  }

  /** Returns whether it may answer a read now. Otherwise it gets ready for later ones. */
  isReady (): boolean {
    if (this.#known && this.#idle.length > 0) return true
    if (!this.#isOpening && !this.#isClosed && this.#open.size < this.#options.size &&
      performance.now() >= this.#restsUntil) this.#options.detached(() => { void this.#connect() })
    return false
  }

  /**
   * Returns the result of a read as the primary would have given it after the fence. Throws `NotRead`, or the error of
   * the statement, which the primary may not have.
   */
  async read (fence: Fence, query: Query): Promise<RowList<Row[]>> {
    const known = this.#known
    const connection = this.#idle.pop()
    let isAnswered = false
    if (!known || !connection) throw new NotRead(known ? 'busy' : 'resting', '')
    try {
      if (fence.origin !== known.mark.origin) throw new NotRead('failed', PRIMARY_CHANGED)
      const { rows, replayMs, shown } = await connection.read(fence, query)
      await this.#confirm(connection, fence, shown)
      isAnswered = true
      this.#options.onReplay(replayMs)
      this.#failures = 0
      this.#restMs = FIRST_REST_MS
      return rows
    } catch (error) {
      // Otherwise it rests already, which has closed the connection.
      if (this.#open.has(connection)) this.#fail(error as Failure)
      throw error
    } finally {
      if (connection.position !== undefined) this.#lag = Math.max(0, toBytes(fence.lsn) - toBytes(connection.position))
      // The next read of the same client finds it idle.
      if (isAnswered) this.#release(connection)
      else void this.#settle(connection)
    }
  }

  close (): void {
    this.#isClosed = true
    this.#drop()
  }

  async #settle (connection: StandbyConnection): Promise<void> {
    if (await settlesWithin(connection.settled, this.#options.deadlines.replicaAnswer)) this.#release(connection)
    else if (this.#open.has(connection)) this.#rest(noAnswer())
  }

  // Waits until the primary shows everything that the standby has shown, so that nothing goes backwards when another
  // read asks the primary.
  async #confirm (connection: StandbyConnection, fence: Fence, shown: Shown): Promise<void> {
    const { fences, deadlines } = this.#options
    const until = performance.now() + deadlines.replicaReplayMax
    for (let now = fence, round = 0; ; round++) {
      const before = findUnconfirmed(shown, now.snapshot)
      // Those of which the standby was not asked, because they are newer than the fence.
      if (before !== undefined && before.length > 0 && round > 0) await connection.ask(now, shown, before)
      if (findUnconfirmed(shown, now.snapshot)?.length === 0) return
      if (performance.now() > until) throw new NotRead('ahead', 'the primary has not shown in time what it shows')
      if (round > 1) await delay(STEP_MS)
      now = await fences.next()
      if (now.origin !== fence.origin) throw new NotRead('failed', PRIMARY_CHANGED)
    }
  }

  // Opens and verifies one more connection. The first one after a rest decides whether reads go there again.
  async #connect (): Promise<void> {
    const { options, deadlines, fences, marks, findMark, observe } = this.#options
    const connection = new StandbyConnection(options, deadlines, this.#patience, observe)
    this.#open.add(connection)
    this.#isOpening = true
    try {
      const identity = await connection.identify()
      const mark = await marks.of((await fences.next()).origin)
      // It is of a time after the mark was written.
      const fence = await fences.next()
      // The other connections were verified with the mark of another server.
      const isOther = this.#known !== undefined && this.#known.mark.origin !== mark.origin
      if (isOther || mark.origin !== fence.origin) throw new NotRead('failed', PRIMARY_CHANGED)
      await connection.verify(fence, identity, { mark, findMark })
      if (!this.#open.has(connection)) return
      this.#use({ mark, findMark })
      this.#release(connection)
    } catch (error) {
      // A rest that began meanwhile has removed it, and goes on.
      if (this.#open.has(connection)) this.#rest(error as Failure)
    } finally {
      this.#isOpening = false
    }
  }

  #use (introduction: Introduction): void {
    const wasUsed = this.isUsed
    this.#known = introduction
    if (wasUsed) return
    this.#failures = 0
    this.#said = undefined
    this.#options.log.info(`Reads go to the standby ${this.name}`)
  }

  // Beside what makes a standby unusable at once, there are reads that are late, conflicts with the recovery, and
  // errors that only the standby has, such as a missing permission. If it gives no answer in between, it rests.
  #fail (error: Failure): void {
    if (error instanceof NotRead && error.fallback === 'late') {
      if (this.#patience.late >= MAX_FAILURES) this.#rest(error)
      return
    }
    const isOfMoment = error instanceof NotRead
      ? error.fallback === 'ahead'
      : error instanceof postgres.PostgresError && error.severity !== 'FATAL'
    // The primary has the same error, and clients can cause it.
    if (error instanceof postgres.PostgresError && error.code.startsWith('22')) return
    if (!isOfMoment || ++this.#failures >= MAX_FAILURES) this.#rest(error)
  }

  #rest (error: Failure): void {
    this.#known = undefined
    this.#restsUntil = performance.now() + this.#restMs
    this.#restMs = Math.min(2 * this.#restMs, LONGEST_REST_MS)
    this.#drop()
    // A reason is logged once, not for each try.
    if (this.#said === error.message) return
    this.#said = error.message
    this.#options.log.warn(
      { standby: this.name, ...!(error instanceof NotRead) && { err: error } },
      `Reads do not go to the standby ${this.name}: ${error.message}`
    )
  }

  #release (connection: StandbyConnection): void {
    if (connection.usable && this.#open.has(connection)) this.#idle.push(connection)
    else this.#remove(connection)
  }

  #remove (connection: StandbyConnection): void {
    this.#open.delete(connection)
    connection.destroy()
  }

  #drop (): void {
    this.#idle = []
    for (const connection of this.#open) this.#remove(connection)
  }
}
