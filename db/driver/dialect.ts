import {
  PostgresAdapter, PostgresIntrospector, PostgresQueryCompiler,
  type CompiledQuery, type DatabaseConnection, type Dialect, type Driver, type QueryResult, type TransactionSettings,
} from 'kysely'
import type { Row, RowList } from 'postgres'
import { DatabaseUnavailable } from '../../schema/errors.ts'
import type { Backends } from './backends.ts'
import type { CircuitBreaker } from './circuit-breaker.ts'
import { isRead } from './is-read.ts'
import type { Log } from './outages.ts'
import { UNSAFE_TRANSACTION, type Pool } from './pool.ts'
import type { Failure } from './sockets.ts'
import type { TransactionConnection } from './transaction-connection.ts'
import type { TransactionPool } from './transaction-pool.ts'

/** What statements go out on. */
export interface Pools {
  /** For statements that only read: they never queue behind a write that waits for a lock. */
  readonly reads: Pool
  readonly writes: Pool
  readonly transactions: TransactionPool
  /** The processes at the other end of all of them. */
  readonly backends: Backends
}

/**
 * Kysely on postgres.js without reserving: outside transactions a statement goes to a pool as it is, prepared, and
 * shares its connection with others (pipelining). Only a transaction has a connection for itself. The official dialect
 * reserves a connection for each statement, which halves throughput (SPEED, point 1). For that reason
 * `db.connection()` does not stay on one connection: use a transaction.
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

  async beginTransaction (connection: PipeliningConnection, { isolationLevel, accessMode }: TransactionSettings): Promise<void> {
    await connection.begin(['begin', isolationLevel && `isolation level ${isolationLevel}`, accessMode].filter(Boolean).join(' '))
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

  // `db/driver/connection.ts` opens the pools, and closes them.
  async destroy (): Promise<void> {}
}

class PipeliningConnection implements DatabaseConnection {
  readonly #pools: Pools
  readonly #breaker: CircuitBreaker
  readonly #log: Log
  #transaction: TransactionConnection | undefined
  // Whether the transaction has ended, as PostgreSQL has confirmed.
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

  /** Throws if the transaction was not committed, or if nobody knows whether it was because the connection was lost. */
  async commit (): Promise<void> {
    const { command } = await this.#run('commit')
    this.#ended = true
    // PostgreSQL's answer to the COMMIT of a transaction in which a statement has failed: no error, only this word.
    if (command !== 'COMMIT') throw new Error('The transaction was rolled back since one of its statements had failed')
  }

  /** Never throws: a connection that cannot roll back is closed by `release`, and PostgreSQL rolls back then. */
  async rollback (): Promise<void> {
    this.#ended = await this.#run('rollback').then(() => true, () => false)
  }

  release (): void {
    if (!this.#transaction) return
    if (!this.#ended && this.#transaction.usable) this.#log.error({}, 'A connection was left inside a transaction, and is closed')
    this.#pools.transactions.release(this.#transaction, this.#ended)
  }

  async executeQuery<Row> ({ sql: text, parameters, query }: CompiledQuery): Promise<QueryResult<Row>> {
    const rows = this.#transaction
      ? await this.#run(text, parameters)
      : await this.#share(isRead(query) ? this.#pools.reads : this.#pools.writes, text, parameters)
    // What postgres.js makes of a statement that it has not sent, see `db/driver/pool.ts`.
    if (!rows.command) throw new DatabaseUnavailable()
    this.#pools.backends.add(rows.state.pid)
    return { rows: rows as unknown as Row[], numAffectedRows: BigInt(rows.count ?? 0) }
  }

  async * streamQuery (): AsyncGenerator<never> {
    throw new Error('Streaming is not supported: page by keyset instead')
  }

  #share (pool: Pool, text: string, parameters: readonly unknown[]): Promise<RowList<Row[]>> {
    const { sql } = pool
    const lost = (failure: Failure) => {
      if (failure.code === UNSAFE_TRANSACTION) this.#log.error({ err: failure }, 'A shared connection was inside a transaction, and is closed')
      pool.fail(sql, failure)
    }
    return this.#breaker.run(() => sql.unsafe(text, parameters as never[], { prepare: true }), { lost })
  }

  async #run (text: string, parameters?: readonly unknown[]): Promise<RowList<Row[]>> {
    try {
      return await this.#breaker.run(() => this.#transaction!.run(text, parameters))
    } catch (error) {
      // No answer will come, or nobody waits for it any more: what is to follow would have to wait behind it.
      if (error instanceof DatabaseUnavailable && !isAnswer(error.cause)) this.#transaction!.destroy()
      throw error
    }
  }
}

// Rejects as the connection did; whatever it is by then, it does not go back into the pool.
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

// Whether PostgreSQL has refused a statement, rather than the connection.
function isAnswer (cause: unknown): boolean {
  return cause !== undefined && 'severity' in (cause as object)
}
