import type { CompiledQuery, Kysely, QueryResult } from 'kysely'
import type { Deadlines } from '../../schema/options/deadlines.ts'
import { hostOfUrl } from '../../schema/options/database-url.ts'
import { readClientOptions } from '../driver/client-options.ts'
import { isRead, takeRows } from '../driver/dialect.ts'
import { executedBy } from '../driver/executed-by.ts'
import type { Log } from '../driver/outages.ts'
import { isReplanned } from '../driver/replanned.ts'
import { schemaOf } from '../driver/postgres.ts'
import { createRoute } from '../driver/route.ts'
import type { Tables } from '../tables/index.ts'
import { observeStatements, type OnStatement } from '../telemetry/observe-statements.ts'
import type { Telemetry } from '../telemetry/telemetry.ts'
import { createFences } from './fences.ts'
import { createMarks, findMark } from './marks.ts'
import { measureReplicas, type ReplicaMeasures } from './measure-replicas.ts'
import { Standby } from './standby.ts'
import { NotRead, type Fallback } from './standby-connection.ts'

export interface ReplicasOptions {
  /** The URLs of the standbys, each of one server. */
  urls: readonly string[]
  /** How many connections a standby gets. */
  size: number
  deadlines: Deadlines
  telemetry?: Telemetry | undefined
  onStatement?: OnStatement | undefined
  log: Log
}

export interface Replicas {
  /**
   * The database for statements that may be read on a standby: SELECTs outside of transactions, whose results are never
   * older than the call. Everything else goes to the primary.
   */
  readonly reads: Kysely<Tables>
  /** Begins to connect to the standbys. Reads go to the primary meanwhile. */
  start (): void
  close (): void
}

/** Opens the replicas of a database, whose primary answers what they do not (contract 14.7). */
export function openReplicas (
  primary: Kysely<Tables>, { urls, size, deadlines, telemetry, onStatement, log }: ReplicasOptions
): Replicas {
  const tracing = telemetry?.tracing
  const fences = createFences(primary, tracing)
  const marks = createMarks(primary)
  const standbys = urls.map((url) => {
    const name = hostOfUrl(url)
    return new Standby({
      name,
      options: createRoute(readClientOptions(url, deadlines.replicaAnswer, deadlines)).unshared,
      size,
      deadlines,
      fences,
      marks,
      findMark: findMark(primary),
      onReplay: (ms) => measures?.replay(ms),
      observe: observeStatements({ onStatement, tracing }, name),
      detached: tracing?.detached ?? ((run) => run()),
      log,
    })
  })
  const measures: ReplicaMeasures | undefined = telemetry && measureReplicas(telemetry, standbys)
  let turn = 0

  async function executeQuery<Row> (query: CompiledQuery): Promise<QueryResult<Row>> {
    if (!isRead(query.query)) return primary.executeQuery<Row>(query as CompiledQuery<Row>)
    try {
      const rows = await readOnStandby(query)
      measures?.standby()
      return { rows: takeRows(rows) as Row[], numAffectedRows: BigInt(rows.count ?? 0) }
    } catch (error) {
      // Whatever it is, an outage of the primary included: the primary answers, and its error is the one that counts.
      measures?.primary(fallbackOf(error))
      return primary.executeQuery<Row>(query as CompiledQuery<Row>)
    }
  }

  async function readOnStandby ({ sql: text, parameters, query }: CompiledQuery) {
    findReady()
    const fence = await fences.next()
    // Other reads have taken connections meanwhile.
    const ready = findReady()
    return ready[turn++ % ready.length]!.read(fence, { text, parameters, prepare: !isReplanned(query) })
  }

  // Throws if none is ready. Those that are not get ready for later reads.
  function findReady (): Standby[] {
    const ready = standbys.filter((standby) => standby.isReady())
    if (ready.length === 0) throw new NotRead(standbys.some(({ isUsed }) => isUsed) ? 'busy' : 'resting', '')
    return ready
  }

  const reads = executedBy(primary, executeQuery, 'Transactions are for the primary').withSchema(schemaOf(primary))
  return {
    reads,
    start () { for (const standby of standbys) standby.isReady() },
    close () { for (const standby of standbys) standby.close() },
  }
}

const fallbackOf = (error: unknown): Fallback => error instanceof NotRead ? error.fallback : 'failed'
