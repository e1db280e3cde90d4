import { setTimeout as delay } from 'node:timers/promises'
import type { Row, RowList } from 'postgres'
import { isLoss } from '../driver/circuit-breaker.ts'
import type { ClientOptions } from '../driver/client.ts'
import type { Log } from '../driver/outages.ts'
import type { Failure } from '../driver/sockets.ts'
import { findUnconfirmed, type Shown } from './certificate.ts'
import type { Fence, Fences } from './fences.ts'
import { MARK_MS, type Mark } from './marks.ts'
import { NotRead, StandbyConnection, type StandbyDeadlines } from './standby-connection.ts'

// After so many reads in a row that it has not answered in time, it rests.
const MAX_LATE = 3
const FIRST_REST_MS = 100
const LONGEST_REST_MS = 5000
const STEP_MS = 1

/** What a standby is verified with. */
export interface Introduction {
  /** The identifier of the cluster. */
  readonly system: string
  readonly mark: Mark
  /** The statement that looks for the id of the mark. */
  readonly findMark: string
}

export interface StandbyOptions {
  /** Its address without the password, for the log and metrics. */
  name: string
  options: ClientOptions
  /** How many connections it may have. */
  size: number
  deadlines: StandbyDeadlines
  fences: Fences
  /** Returns what is known of the primary, and a mark that was just written there. */
  introduce (): Promise<Introduction>
  /** Called with the milliseconds that it took to replay the WAL for a read. */
  onReplay (ms: number): void
  log: Log
}

/** An introduction, and until when its mark can be looked for. */
type Known = Introduction & { until: number }

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
  #idle: StandbyConnection[] = []
  readonly #open = new Set<StandbyConnection>()
  /** What it was verified with; undefined while it rests. */
  #known: Known | undefined
  #isOpening = false
  #isClosed = false
  #late = 0
  #restMs = FIRST_REST_MS
  #restsUntil = 0
  #said: string | undefined

  constructor (options: StandbyOptions) {
    this.name = options.name
    this.#options = options
  }

  /** Whether reads go there. */
  get isUsed (): boolean {
    return this.#known !== undefined
  }

  get open (): number {
    return this.#open.size
  }

  /** Returns whether it may answer a read now. Otherwise it gets ready for later ones. */
  isReady (): boolean {
    if (this.#known && this.#idle.length > 0) return true
    if (!this.#isOpening && !this.#isClosed && this.#open.size < this.#options.size &&
      performance.now() >= this.#restsUntil) void this.#connect()
    return false
  }

  /**
   * Returns the result of a read as the primary would have given it after the fence. Throws `NotRead`, or the error of
   * the statement, which the primary may not have.
   */
  async read (fence: Fence, query: Query): Promise<RowList<Row[]>> {
    const known = this.#known
    const connection = this.#idle.pop()
    if (!known || !connection) throw new NotRead(known ? 'busy' : 'resting', '')
    try {
      if (fence.origin !== known.mark.origin) throw new NotRead('failed', 'The primary has changed')
      const { rows, replayMs, shown } = await connection.read(fence, query)
      await this.#confirm(connection, fence, shown)
      this.#options.onReplay(replayMs)
      this.#late = 0
      this.#restMs = FIRST_REST_MS
      return rows
    } catch (error) {
      this.#fail(error as Failure)
      throw error
    } finally {
      void connection.settled.then(() => this.#release(connection))
    }
  }

  close (): void {
    this.#isClosed = true
    this.#drop()
  }

  // Waits until the primary shows everything that the standby has shown, so that nothing goes backwards when another
  // read asks the primary.
  async #confirm (connection: StandbyConnection, fence: Fence, shown: Shown): Promise<void> {
    const { fences, deadlines } = this.#options
    const until = performance.now() + deadlines.replicaReplay
    for (let now = fence, round = 0; ; round++) {
      const before = findUnconfirmed(shown, now.snapshot)
      // Those of which the standby was not asked, because they are newer than the fence.
      if (before !== undefined && before.length > 0 && round > 0) await connection.ask(now, shown, before)
      if (findUnconfirmed(shown, now.snapshot)?.length === 0) return
      if (performance.now() > until) throw new NotRead('ahead', 'The primary has not shown in time what it shows')
      if (round > 1) await delay(STEP_MS)
      now = await fences.next()
      if (now.origin !== fence.origin) throw new NotRead('failed', 'The primary has changed')
    }
  }

  // Opens and verifies one more connection. The first one after a rest decides whether reads go there again.
  async #connect (): Promise<void> {
    const { options, deadlines, fences, introduce } = this.#options
    this.#isOpening = true
    let connection: StandbyConnection | undefined
    try {
      const until = performance.now() + MARK_MS
      const known = this.#known && performance.now() < this.#known.until
        ? this.#known
        : { ...await introduce(), until }
      const fence = await fences.next()
      if (known.mark.origin !== fence.origin) throw new NotRead('failed', 'The primary has changed')
      connection = new StandbyConnection(options, deadlines)
      this.#open.add(connection)
      await connection.verify(fence, known)
      if (this.#isClosed) throw new NotRead('resting', 'The app closes')
      // The other connections were verified with the former one.
      if (this.#known && this.#known.mark.origin !== known.mark.origin) {
        throw new NotRead('failed', 'The primary has changed')
      }
      this.#use(known)
      this.#release(connection)
    } catch (error) {
      if (connection) this.#remove(connection)
      if (!this.#isClosed) this.#rest(error as Failure)
    } finally {
      this.#isOpening = false
    }
  }

  #use (known: Known): void {
    const wasUsed = this.isUsed
    this.#known = known
    if (wasUsed) return
    this.#late = 0
    this.#said = undefined
    this.#options.log.info(`Reads go to the standby ${this.name}`)
  }

  #fail (error: Failure): void {
    if (error instanceof NotRead && (error.fallback === 'late' || error.fallback === 'ahead')) {
      if (++this.#late >= MAX_LATE) this.#rest(error)
    } else if (error instanceof NotRead || isLoss(error)) {
      this.#rest(error)
    }
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
