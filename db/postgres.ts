import { sql, type Compilable, type CompiledQuery } from 'kysely'
import postgres from 'postgres'
import type { Database } from './tables.ts'

/** Whether an error is PostgreSQL's refusal of a row, by the name of the constraint or unique index it hurts. */
export function violates (error: unknown, constraint: string): boolean {
  return error instanceof postgres.PostgresError && error.constraint_name === constraint
}

/** Whether text is a UUID, as PostgreSQL would take it: anything else is an unknown id, never an error. */
export function isUuid (text: string): boolean {
  return /^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$/i.test(text)
}

/** The rows of some ids, which PostgreSQL gives in any order and in lower case; `undefined` where there is none. */
export function inOrder<Found extends { id: string }> (ids: readonly string[], rows: readonly Found[]): (Found | undefined)[] {
  const byId = new Map<string, Found>()
  for (const row of rows) byId.set(row.id, row)
  return ids.map((id) => byId.get(id.toLowerCase()))
}

/**
 * A query that is built once for a database, and then sent with other parameters: to build one costs more than to
 * send it. Its parameters are those of `build`, each once and in their order.
 */
export function prepare<Parameters extends readonly unknown[], Row> (build: (db: Database, ...parameters: Parameters) => Compilable<Row>) {
  const built = new WeakMap<Database, CompiledQuery<Row>>()
  return async (db: Database, ...parameters: Parameters): Promise<Row[]> => {
    const query = built.get(db) ?? build(db, ...parameters).compile()
    built.set(db, query)
    return (await db.executeQuery<Row>({ ...query, parameters })).rows
  }
}

/**
 * Allows a transaction to do something other than statements for ten seconds instead of one (`db/driver/client-options.ts`), such as
 * removing files, until it ends. Only for transactions whose locks delay no request.
 */
export async function allowPauses (trx: Database): Promise<void> {
  await sql`set local idle_in_transaction_session_timeout = '10s'`.execute(trx)
}

/** Holds what other nodes must not do at the same time, until the transaction ends. */
export async function lock (trx: Database, what: string): Promise<void> {
  await sql`select pg_advisory_xact_lock(hashtextextended(${`usher ${what}`}, 0))`.execute(trx)
}
