import type { Generated } from 'kysely'

/**
 * The result of a write that was requested with an idempotency key, stored in the transaction of the write. See
 * `db/idempotency/idempotency.ts`.
 */
export interface IdempotencyKeysTable {
  /** Half of the SHA-256 hash of the actor's id and the key. */
  key: string
  /** The same of the mutation's place in its GraphQL document. */
  part: string
  /** See `schema/http/idempotency.ts`. */
  fingerprint: string
  /** What was done, such as `user` for the creation of one. */
  kind: string
  /** The record to which the result belongs; null if it belongs to none any more. */
  record_id: string | null
  /** The row as JSON; null once the record is deleted. */
  result: string | null
  /** The version of the row; a bigint, which is read as text. */
  row_version: string | null
  expires_at: Generated<Date>
}
