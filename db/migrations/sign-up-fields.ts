import type { Kysely } from 'kysely'
import type { Tables } from '../tables/index.ts'

/** Adds the fields of the host to pending sign-ups (contract 12.2). No row is rewritten. */
export async function addSignUpFields (db: Kysely<Tables>): Promise<void> {
  await db.schema.alterTable('sign_ups').addColumn('fields', 'jsonb').execute()
}
