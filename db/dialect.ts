import {
  PostgresAdapter, PostgresIntrospector, PostgresQueryCompiler,
  type CompiledQuery, type DatabaseConnection, type Dialect, type Driver, type QueryResult, type TransactionSettings,
} from 'kysely'
import type { Sql } from 'postgres'
import { DatabaseUnavailable } from '../schema/errors.ts'
import type { Gate } from './gate.ts'
import type { Pool } from './pool.ts'
import { beginTransaction, type OpenTransaction } from './transaction.ts'

/**
 * Kysely on postgres.js without reserving: outside transactions a statement goes to the pool as it is, prepared,
 * and pipelines with others on the same connection. Only a transaction takes a connection for itself. The
 * official dialect reserves one a statement, which halves throughput (SPEED, point 1). For that reason
 * `db.connection()` is no one connection here: what must stay on one goes into a transaction.
 */
export function createDialect (pool: Pool, gate: Gate): Dialect {
  return {
    createAdapter: () => new PostgresAdapter(),
    createDriver: () => new PipeliningDriver(pool, gate),
    createIntrospector: (db) => new PostgresIntrospector(db),
    createQueryCompiler: () => new PostgresQueryCompiler(),
  }
}

class PipeliningDriver implements Driver {
  readonly #pool: Pool
  readonly #gate: Gate

  constructor (pool: Pool, gate: Gate) {
    this.#pool = pool
    this.#gate = gate
  }

  async init (): Promise<void> {}

  async acquireConnection (): Promise<PipeliningConnection> {
    return new PipeliningConnection(this.#pool, this.#gate)
  }

  async beginTransaction (connection: PipeliningConnection, { isolationLevel, accessMode }: TransactionSettings): Promise<void> {
    await connection.begin([isolationLevel && `isolation level ${isolationLevel}`, accessMode].filter(Boolean).join(' '))
  }

  async commitTransaction (connection: PipeliningConnection): Promise<void> {
    await connection.commit()
  }

  async rollbackTransaction (connection: PipeliningConnection): Promise<void> {
    await connection.rollback()
  }

  async releaseConnection (): Promise<void> {}

  // The pool belongs to whoever opened it.
  async destroy (): Promise<void> {}
}

class PipeliningConnection implements DatabaseConnection {
  readonly #pool: Pool
  readonly #gate: Gate
  #transaction: OpenTransaction | undefined

  constructor (pool: Pool, gate: Gate) {
    this.#pool = pool
    this.#gate = gate
  }

  async begin (options: string): Promise<void> {
    this.#transaction = await this.#pass((sql) => beginTransaction(sql, options), (late) => late.rollback())
  }

  async commit (): Promise<void> {
    await this.#pass(() => this.#transaction!.commit())
  }

  // Sent even where the gate is shut, since the connection may live on; and waited for only while it is open.
  async rollback (): Promise<void> {
    const done = this.#transaction!.rollback()
    await this.#pass(() => done).catch(() => {})
  }

  async executeQuery<Row> ({ sql: text, parameters }: CompiledQuery): Promise<QueryResult<Row>> {
    const rows = await this.#pass((sql) => this.#transaction
      ? this.#transaction.execute(text, parameters)
      : sql.unsafe(text, parameters as never[], { prepare: true }))
    // What postgres.js makes of a statement that it has not sent, see `db/pool.ts`.
    if (!rows.command) throw new DatabaseUnavailable()
    return { rows: rows as unknown as Row[], numAffectedRows: BigInt(rows.count ?? 0) }
  }

  async #pass<Result> (run: (sql: Sql) => PromiseLike<Result>, late?: (result: Result) => void): Promise<Result> {
    const { sql } = this.#pool
    return this.#gate.pass(() => run(sql), { late, lost: (failure) => this.#pool.fail(sql, failure) })
  }

  async * streamQuery (): AsyncGenerator<never> {
    throw new Error('Streaming is not supported: page by keyset instead')
  }
}
