import { sql } from 'kysely'
import type { IndexesOf } from './indexes.ts'
import { deliveryOwner } from '../outbox/owner.ts'

/** The index to find what waits about a user (contract 12.5). */
export const outboxOwnerIndexes: IndexesOf = (schema) => [
  { name: 'outbox_owner', on: sql`${sql.id(schema, 'outbox')} (consumer, (${deliveryOwner}), type, position)` },
]
