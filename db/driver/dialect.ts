import {
  PostgresAdapter, PostgresIntrospector, PostgresQueryCompiler,
  type CompiledQuery, type DatabaseConnection, type Dialect, type Driver, type OperationNode, type QueryResult,
  type SelectQueryNode, type TransactionSettings,
} from 'kysely'
import type { Row, RowList, Sql } from 'postgres'
import { DatabaseUnavailable } from '../../schema/http/errors.ts'
import type { Backends } from './backends.ts'
import { UNSAFE_TRANSACTION, type CircuitBreaker } from './circuit-breaker.ts'
import type { Log } from './outages.ts'
import type { Pool } from './pool.ts'
import { isReplanned } from './replanned.ts'
import type { Route } from './route.ts'
import { send } from './send.ts'
import type { Failure } from './sockets.ts'
import type { TransactionConnection } from './transaction-connection.ts'
import type { TransactionPool } from './transaction-pool.ts'
import type { ObserveStatement } from '../telemetry/observe-statements.ts'

/** The connections that the dialect sends statements on. */
export interface Pools {
  /** The pool for statements that only read, so that they never queue behind a write that waits for a lock. */
  readonly reads: Pool
  readonly writes: Pool
  readonly transactions: TransactionPool
  /** How statements are sent on these connections. */
  readonly route: Route
  /** The PostgreSQL processes that serve these connections. */
  readonly backends: Backends
  /** Runs each statement, to record it. */
  readonly observe: ObserveStatement | undefined
}

/**
 * Creates the Kysely dialect for postgres.js. Outside transactions, a prepared statement goes directly to a pool and
 * shares its connection with others (pipelining). Only a transaction has exclusive use of a connection. The official
 * dialect reserves a connection for every statement, which halves throughput (docs/speed.md, point 1). One consequence:
 * `db.connection()` does not keep to one connection, so use a transaction instead.
 */
export function createDialect (pools: Pools, breaker: CircuitBreaker, log: Log): Dialect {
  return {
    createAdapter: () => new PostgresAdapter(),
    createDriver: () => new PipeliningDriver(pools, breaker, log),
    createIntrospector: (db) => new PostgresIntrospector(db),
    createQueryCompiler: () => new PostgresQueryCompiler(),
  }
}

class PipeliningDriver implements Driver {
  readonly #pools: Pools
  readonly #breaker: CircuitBreaker
  readonly #log: Log

  constructor (pools: Pools, breaker: CircuitBreaker, log: Log) {
    this.#pools = pools
    this.#breaker = breaker
    this.#log = log
  }

  async init (): Promise<void> {}

  async acquireConnection (): Promise<PipeliningConnection> {
    return new PipeliningConnection(this.#pools, this.#breaker, this.#log)
  }

  async beginTransaction (
    connection: PipeliningConnection, { isolationLevel, accessMode }: TransactionSettings
  ): Promise<void> {
    await connection.begin(
      ['begin', isolationLevel && `isolation level ${isolationLevel}`, accessMode].filter(Boolean).join(' ')
    )
  }

  async commitTransaction (connection: PipeliningConnection): Promise<void> {
    await connection.commit()
  }

  async rollbackTransaction (connection: PipeliningConnection): Promise<void> {
    await connection.rollback()
  }

  async releaseConnection (connection: PipeliningConnection): Promise<void> {
    connection.release()
  }

  // `db/driver/connection.ts` opens and closes the pools.
  async destroy (): Promise<void> {}
}

class PipeliningConnection implements DatabaseConnection {
  readonly #pools: Pools
  readonly #breaker: CircuitBreaker
  readonly #log: Log
  #transaction: TransactionConnection | undefined
  // Whether PostgreSQL has confirmed that the transaction has ended.
  #ended = false

  constructor (pools: Pools, breaker: CircuitBreaker, log: Log) {
    this.#pools = pools
    this.#breaker = breaker
    this.#log = log
  }

  async begin (statement: string): Promise<void> {
    const { transactions } = this.#pools
    const late = (connection: TransactionConnection) => transactions.release(connection, false)
    this.#transaction = await this.#breaker.run(() => beginOn(transactions, statement), { late })
  }

  /** Commits. Throws if the transaction was rolled back, or if the connection was lost and the outcome is unknown. */
  async commit (): Promise<void> {
    const { command } = await this.#run('commit')
    this.#ended = true
    // If a statement of the transaction has failed, PostgreSQL answers COMMIT without an error, but with the command
    // ROLLBACK.
    if (command !== 'COMMIT') {
      throw new Error('The transaction was rolled back because one of its statements had failed')
    }
  }

  /**
   * Rolls back. Never throws: if it fails, `release` closes the connection, and PostgreSQL then rolls back by itself.
   */
  async rollback (): Promise<void> {
    this.#ended = await this.#run('rollback').then(() => true, () => false)
  }

  release (): void {
    if (!this.#transaction) return
    if (!this.#ended && this.#transaction.usable) {
      this.#log.error({}, 'A connection was left inside a transaction, and is closed')
    }
    this.#pools.transactions.release(this.#transaction, this.#ended)
  }

  executeQuery<Row> (query: CompiledQuery): Promise<QueryResult<Row>> {
    const { observe } = this.#pools
    return observe ? observe(query.sql, () => this.#execute<Row>(query)) : this.#execute(query)
  }

  async #execute<Row> ({ sql: text, parameters, query }: CompiledQuery): Promise<QueryResult<Row>> {
    const prepare = !isReplanned(query)
    const result = this.#transaction
      ? await this.#run(text, parameters, prepare)
      : await this.#share(isRead(query) ? this.#pools.reads : this.#pools.writes, text, parameters, prepare)
    const rows = result.command ? result : lastOf(result)
    // postgres.js returns an empty result for a statement that it accepted on a lost connection and never sent, see
    // `db/driver/pool.ts`.
    if (!rows.command) throw new DatabaseUnavailable()
    this.#pools.backends.add(rows.state.pid)
    return { rows: takeRows(rows) as Row[], numAffectedRows: BigInt(rows.count ?? 0) }
  }

  async * streamQuery (): AsyncGenerator<never> {
    throw new Error('Streaming is not supported: page by keyset instead')
  }

  #share (pool: Pool, text: string, parameters: readonly unknown[], prepare: boolean): Promise<RowList<Row[]>> {
    let used: Sql | undefined
    const lost = (failure: Failure) => {
      if (failure.code === UNSAFE_TRANSACTION) {
        this.#log.error({ err: failure }, 'A shared connection was inside a transaction, and is closed')
      }
      if (used) pool.fail(used, failure)
    }
    const sendOn = (sql: Sql) => {
      used = sql
      return send(sql, text, parameters, prepare && this.#pools.route.prepares)
    }
    return this.#breaker.run(() => {
      const sql = pool.ready()
      return sql instanceof Promise ? sql.then(sendOn) : sendOn(sql)
    }, { lost })
  }

  async #run (text: string, parameters?: readonly unknown[], prepare = true): Promise<RowList<Row[]>> {
    try {
      return await this.#breaker.run(() =>
        this.#transaction!.run(text, parameters, prepare && this.#pools.route.prepares))
    } catch (error) {
      // There will be no answer, or the statement was given up. Further statements would have to wait behind it.
      if (error instanceof DatabaseUnavailable && !isAnswer(error.cause)) this.#transaction!.destroy()
      throw error
    }
  }
}

// Several statements that were sent together have a result each.
const lastOf = (result: RowList<Row[]>): RowList<Row[]> => (result as unknown as RowList<Row[]>[]).at(-1) ?? result

// Takes the rows out of a result. V8 keeps the query, which holds its result, until the next full garbage collection,
// and would promote all rows to the old generation (docs/decisions/performance.md). A result is not a plain array:
// `splice` takes ten times as long, and an iterator three times.
export function takeRows<Row> (result: Row[]): Row[] {
  const rows: Row[] = []
  for (let index = 0; index < result.length; index++) rows.push(result[index]!)
  result.length = 0
  return rows
}

// Rejects with the error of BEGIN. The connection is then closed, because its state is unknown.
async function beginOn (transactions: TransactionPool, statement: string): Promise<TransactionConnection> {
  const connection = await transactions.acquire()
  try {
    await connection.run(statement)
    return connection
  } catch (error) {
    transactions.release(connection, false)
    throw error
  }
}

// Returns whether a failure is PostgreSQL's answer to the statement, rather than a failure of the connection.
function isAnswer (cause: unknown): boolean {
  return cause !== undefined && 'severity' in (cause as object)
}

/**
 * Returns whether a statement only reads, and therefore never waits for a row lock: a SELECT without a locking clause
 * whose common table expressions are all of the same kind. Raw SQL counts as a write.
 */
export function isRead (node: OperationNode): boolean {
  if (node.kind !== 'SelectQueryNode') return false
  const { endModifiers, with: ctes } = node as SelectQueryNode
  return endModifiers === undefined &&
    (ctes === undefined || ctes.expressions.every(({ expression }) => isRead(expression)))
}
