import { sql, type Kysely } from 'kysely'
import type { IndexesOf } from './indexes.ts'
import type { Tables } from '../tables/index.ts'

/**
 * The index for the entries of one action about one user. Those for either alone exist; with them, a rare action would
 * be found only after reading all entries of the user.
 */
export const auditIndexes: IndexesOf = (schema) => [
  { name: 'audit_user_action', on: sql`${sql.id(schema, 'audit')} (user_id, action, id)` },
]

/**
 * Drops an index that nothing has used since `recognised-networks.ts`, so that the account log has no more of them than
 * before.
 */
export async function dropAuditLogins (db: Kysely<Tables>): Promise<void> {
  await db.schema.dropIndex('audit_login').ifExists().execute()
}
