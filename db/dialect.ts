import {
  CompiledQuery, PostgresAdapter, PostgresIntrospector, PostgresQueryCompiler,
  type DatabaseConnection, type Dialect, type Driver, type QueryResult, type TransactionSettings,
} from 'kysely'
import type { ReservedSql, Sql } from 'postgres'
import type { Gate } from './gate.ts'

/**
 * Kysely on postgres.js without reserving: outside transactions a statement goes to the pool as it is, prepared,
 * and pipelines with others on the same connection. Only a transaction takes a connection for itself. The
 * official dialect reserves one a statement, which halves throughput (SPEED, point 1).
 */
export function createDialect (sql: Sql, gate: Gate): Dialect {
  return {
    createAdapter: () => new PostgresAdapter(),
    createDriver: () => new PipeliningDriver(sql, gate),
    createIntrospector: (db) => new PostgresIntrospector(db),
    createQueryCompiler: () => new PostgresQueryCompiler(),
  }
}

class PipeliningDriver implements Driver {
  readonly #sql: Sql
  readonly #gate: Gate

  constructor (sql: Sql, gate: Gate) {
    this.#sql = sql
    this.#gate = gate
  }

  async init (): Promise<void> {}

  async acquireConnection (): Promise<PipeliningConnection> {
    return new PipeliningConnection(this.#sql, this.#gate)
  }

  async beginTransaction (connection: PipeliningConnection, { isolationLevel, accessMode }: TransactionSettings): Promise<void> {
    await connection.reserve()
    const level = isolationLevel ? ` isolation level ${isolationLevel}` : ''
    await connection.executeQuery(CompiledQuery.raw(`begin${level}${accessMode ? ` ${accessMode}` : ''}`))
  }

  async commitTransaction (connection: PipeliningConnection): Promise<void> {
    await connection.executeQuery(CompiledQuery.raw('commit'))
  }

  async rollbackTransaction (connection: PipeliningConnection): Promise<void> {
    await connection.executeQuery(CompiledQuery.raw('rollback'))
  }

  async releaseConnection (connection: PipeliningConnection): Promise<void> {
    connection.release()
  }

  // The pool belongs to whoever opened it.
  async destroy (): Promise<void> {}
}

class PipeliningConnection implements DatabaseConnection {
  readonly #sql: Sql
  readonly #gate: Gate
  #reserved: ReservedSql | undefined

  constructor (sql: Sql, gate: Gate) {
    this.#sql = sql
    this.#gate = gate
  }

  async reserve (): Promise<void> {
    this.#reserved = await this.#gate.pass(() => this.#sql.reserve(), (late) => late.release())
  }

  release (): void {
    this.#reserved?.release()
  }

  async executeQuery<Row> ({ sql, parameters }: CompiledQuery): Promise<QueryResult<Row>> {
    const rows = await this.#gate.pass(() => (this.#reserved ?? this.#sql).unsafe(sql, parameters as never[], { prepare: true }))
    return { rows: rows as unknown as Row[], numAffectedRows: BigInt(rows.count ?? 0) }
  }

  async * streamQuery (): AsyncGenerator<never> {
    throw new Error('Streaming is not supported: page by keyset instead')
  }
}
