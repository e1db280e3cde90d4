import { setImmediate as turn } from 'node:timers/promises'
import type { Row, RowList } from 'postgres'
import { inTime, settlesWithin } from '../../schema/runtime/in-time.ts'
import type { ClientOptions } from '../driver/client.ts'
import { requireSettings, SESSION_SETTINGS } from '../driver/session-settings.ts'
import { TransactionConnection } from '../driver/transaction-connection.ts'
import type { ObserveStatement } from '../telemetry/observe-statements.ts'
import type { Shown } from './certificate.ts'
import type { Fence } from './fences.ts'
import type { Mark } from './marks.ts'
import type { Patience } from './patience.ts'
import {
  findDetached, findForeign, FOLLOWING, FOLLOWING_FROM, IS_PRIMARY, type Identity,
} from './standby-problems.ts'

/** Why a standby was not used for a read. The first two are of the moment, the others of the standby. */
export type Fallback =
  /** It has not replayed the WAL in time, or has not said so. */
  | 'late'
  /** It may have shown something that the primary has not shown in time. */
  | 'ahead'
  /** Its connections are all in use. */
  | 'busy'
  /** It is not a standby of this primary, does not answer, or answers with an error. */
  | 'failed'
  /** It is not used at the moment. */
  | 'resting'

/** A read that a standby has not answered. The message is a sentence that says why, for the log. */
export class NotRead extends Error {
  readonly fallback: Fallback
  /** The same for a place behind a colon. */
  readonly problem: string

  /** @param problem a sentence that begins in lower case, without a full stop */
  constructor (fallback: Fallback, problem: string) {
    super(`${problem.charAt(0).toUpperCase()}${problem.slice(1)}`)
    this.fallback = fallback
    this.problem = problem
  }
}

export interface ReadOnStandby {
  readonly rows: RowList<Row[]>
  /** For how long it has waited until the standby had replayed the WAL, in milliseconds. */
  readonly replayMs: number
  readonly shown: Shown
}

/** How long a standby may take, in milliseconds. */
export interface StandbyDeadlines {
  /** To replay the WAL. */
  readonly replicaReplay: number
  /** The same if it usually takes longer, and the primary to show what the standby has shown. */
  readonly replicaReplayMax: number
  /** To answer. */
  readonly replicaAnswer: number
  /** To answer for the first time. */
  readonly databaseConnectMax: number
}

// The share of the time to replay for which the standby waits. The rest is for the network.
const SHARE = 0.75

// Which position the next statement waits for, and until when. That has no parameters, and no text of its own for each
// position, which would fill pg_stat_statements.
const SET_POSITION = `
  select set_config('usher.position', $1::text, false),
    set_config('usher.until', (clock_timestamp() + $2::text::float8 * interval '1 millisecond')::text, false)`

// Waits on the server, so that it takes one round trip. Each round is a transaction, and so has a snapshot of its own:
// the standby replays no clean-up of rows that an older snapshot may see, and would wait for what waits for it.
const WAIT = `
  do $$ begin
    while pg_last_wal_replay_lsn() < current_setting('usher.position')::pg_lsn
      and clock_timestamp() < current_setting('usher.until')::timestamptz
    loop
      perform pg_sleep(0.0005);
      commit;
    end loop;
  end $$`

// Evaluated before the snapshot of the next statement is taken. A server that was promoted still has a position, so the
// last statement asks whether it was.
const REPLAYED = `select pg_last_wal_replay_lsn() >= $1::text::pg_lsn as replayed,
  pg_last_wal_replay_lsn()::text as lsn`

// Follows a read, and so sees at least what that has seen. Asks which of the given transactions were committed: one
// that is not yet is not visible to the read.
const CERTIFICATE = `
  select ${FOLLOWING}, pg_snapshot_xmax(pg_current_snapshot())::text as xmax,
    (select coalesce(string_agg(xid, ' '), '') from unnest(string_to_array($1::text, ' ')) as xid
      where case when xid::xid8 < pg_snapshot_xmax(pg_current_snapshot())
        then coalesce(pg_xact_status(xid::xid8), 'committed') = 'committed' else false end) as committed
  from ${FOLLOWING_FROM}`

const IDENTITY = `select pg_backend_pid() as pid, pg_is_in_recovery() as standby, current_database() as database,
  (select system_identifier::text from pg_control_system()) as system, ${SESSION_SETTINGS} as settings`

const LAG = `select pg_wal_lsn_diff($1::text::pg_lsn, pg_last_wal_replay_lsn())::float8 as behind,
  (select count(*)::int from pg_stat_activity where application_name = 'usher' and pid <> pg_backend_pid())
    as connections`

/** What a standby is verified with. */
export interface Introduction {
  readonly mark: Mark
  /** The statement that looks for the id of the mark. */
  readonly findMark: string
}

/** A connection to a standby, for one read at a time. */
export class StandbyConnection {
  readonly #connection: TransactionConnection
  readonly #deadlines: StandbyDeadlines
  readonly #patience: Patience
  readonly #observe: ObserveStatement | undefined
  /** Up to where the standby had replayed the WAL when it last answered. */
  position: string | undefined
  /** Resolves when its statements have been answered. Never rejects. */
  settled: Promise<unknown> = Promise.resolve()

  /** @param patience that of the standby, which its connections share */
  constructor (
    options: ClientOptions, deadlines: StandbyDeadlines, patience: Patience, observe?: ObserveStatement
  ) {
    this.#connection = new TransactionConnection(options)
    this.#deadlines = deadlines
    this.#patience = patience
    this.#observe = observe
  }

  get usable (): boolean {
    return this.#connection.usable
  }

  destroy (): void {
    this.#connection.destroy()
  }

  /** Connects. Throws `NotRead` unless there is a standby at the other end, whose identity it returns. */
  async identify (): Promise<Identity> {
    // It connects first, which has as much time of its own.
    const rows = await inTime(this.#run(IDENTITY), 2 * this.#deadlines.databaseConnectMax, noAnswer)
    const { pid, standby, system, database, settings } = rows[0]!
    if (pid !== rows.state.pid) throw unusable('the address leads to a pooler, not to a standby')
    if (!standby) throw unusable(IS_PRIMARY)
    requireSettings(settings)
    return { system, database }
  }

  /**
   * Throws `NotRead` unless the server shows a mark that was written to the primary before the fence was asked for. A
   * mark without an id is not looked for.
   */
  async verify (
    fence: Fence, identity: Identity,
    { mark, findMark }: { mark: Identity & { readonly id: string | undefined }, findMark: string }
  ): Promise<void> {
    const problem = findForeign(identity, mark)
    if (problem !== undefined) throw unusable(problem)
    // Tells what is wrong with a standby that could only be late.
    await inTime(this.#certify(fence, []), this.#deadlines.replicaAnswer, noAnswer)
    if (mark.id === undefined) return
    const { rows } = await this.read(fence, { text: findMark, parameters: [mark.id], prepare: false })
    if (!rows[0]?.found) {
      throw unusable('it follows another primary: what was written to this one is missing')
    }
  }

  /** Returns how many bytes of the WAL it lacks, and how many connections of Usher it has beside this one. */
  async measure ({ lsn }: Fence): Promise<{ behindBytes: number, connections: number }> {
    const [row] = await inTime(this.#run(LAG, [lsn]), this.#deadlines.replicaAnswer, noAnswer)
    return { behindBytes: Math.max(0, row!.behind), connections: row!.connections }
  }

  /**
   * Reads what was visible on the primary when it gave the fence, or later. What the standby may have shown is in
   * `shown`. Throws `NotRead`, or the error of the statement.
   * @param query the text of the statement and its parameters
   */
  async read (
    fence: Fence, query: { text: string, parameters: readonly unknown[], prepare: boolean }
  ): Promise<ReadOnStandby> {
    const { replicaAnswer } = this.#deadlines
    const limit = this.#patience.ms
    const sent = performance.now()
    const { running } = fence.snapshot
    const answered: string[] = []
    const note = <Result>(name: string, work: Promise<Result>) => work.then((result) => {
      answered.push(name)
      return result
    })
    // All are sent before the first is answered. The server executes them one after the other.
    const wait = [this.#run(SET_POSITION, [fence.lsn, String(SHARE * limit)], true), this.#run(WAIT, [], true)]
    const replay = note('replay', this.#run(REPLAYED, [fence.lsn], true))
    const read = note('read', this.#run(query.text, query.parameters, query.prepare))
    const certificate = note('certificate', this.#certify(fence, running))
    this.settled = Promise.allSettled([...wait, replay, read, certificate])
    // An answer that arrived while this process was busy is read after the timers.
    if (!await settlesWithin(replay, limit)) {
      await turn()
      if (answered.length === 0) throw this.#late(limit, 'it does not answer in time')
    }
    await Promise.all(wait)
    const { replayed, lsn } = (await replay)[0]!
    this.position = lsn
    if (replayed !== true) throw this.#late(limit, 'it has not replayed the WAL in time')
    const replayMs = performance.now() - sent
    this.#patience.note(replayMs)
    const [rows, { xmax, committed }] = await inTime(Promise.all([read, certificate]), replicaAnswer, noAnswer)
    // postgres.js returns an empty result for a statement that it accepted on a lost connection and never sent.
    if (!rows.command || answered.join(' ') !== 'replay read certificate') {
      throw connectionLost()
    }
    return { rows, replayMs, shown: { xmax, invisible: new Set(running.filter((xid) => !committed.has(xid))) } }
  }

  /** Adds to `shown` those transactions that the standby does not show even now. */
  async ask (fence: Fence, shown: Shown, xids: readonly number[]): Promise<void> {
    const certificate = this.#certify(fence, xids)
    this.settled = certificate.catch(() => {})
    const { committed } = await inTime(certificate, this.#deadlines.replicaAnswer, noAnswer)
    for (const xid of xids) if (!committed.has(xid)) shown.invisible.add(xid)
  }

  #late (limit: number, problem: string): NotRead {
    this.#patience.noteLate(limit)
    return new NotRead('late', problem)
  }

  async #certify (
    { timeline }: Fence, xids: readonly number[]
  ): Promise<{ xmax: number, committed: ReadonlySet<number> }> {
    const [row] = await this.#run(CERTIFICATE, [xids.join(' ')], true)
    if (!row) throw connectionLost()
    const { standby, receiver, timeline: own, xmax, committed } = row
    const problem = findDetached({ standby, receiver, timeline: own }, timeline)
    if (problem !== undefined) throw unusable(problem)
    return { xmax: Number(xmax), committed: new Set(committed === '' ? [] : committed.split(' ').map(Number)) }
  }

  #run (text: string, parameters: readonly unknown[] = [], prepare = false): Promise<RowList<Row[]>> {
    const run = () => this.#connection.run(text, parameters, prepare)
    return this.#observe ? this.#observe(text, run) : run()
  }
}

const unusable = (problem: string) => new NotRead('failed', problem)
const connectionLost = () => unusable('the connection was lost')

/** Returns the error for a standby of which nothing is heard. */
export const noAnswer = () => unusable('it does not answer')
