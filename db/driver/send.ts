import type { PendingQuery, Row, Sql } from 'postgres'

// The protocol has 16 bits for their number.
const MAX_PARAMETERS = 65_534

/**
 * Sends a statement. Throws a `TypeError` if a parameter cannot be sent. postgres.js would find this when the statement
 * has its place among those that wait for answers, and give each of the following statements the answer of the next
 * one.
 * @param prepare whether PostgreSQL keeps its plan
 */
export function send (sql: Sql, text: string, parameters: readonly unknown[], prepare: boolean): PendingQuery<Row[]> {
  if (parameters.length >= MAX_PARAMETERS) {
    throw new TypeError(`A statement has ${parameters.length} parameters, which are too many`)
  }
  if (!parameters.every(hasText)) throw new TypeError('A parameter of a statement cannot be written as text')
  return sql.unsafe(text, parameters as never[], { prepare })
}

// Serializers, which `db/driver/client-options.ts` chooses, never throw.
function hasText (value: unknown): boolean {
  if (typeof value === 'object') return value === null || 'toString' in value
  return value !== undefined && typeof value !== 'symbol'
}
