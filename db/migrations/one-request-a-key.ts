import { sql, type Kysely } from 'kysely'
import type { Tables } from '../tables/index.ts'

/**
 * Rejects the result of a request if its idempotency key has one of a different request (contract 10.4). Their parts
 * may differ, so the primary key does not.
 *
 * A statement looks for other results with its key once it has the lock of the key, but in the snapshot with which it
 * began. If it has waited in between, as all new posts do for each other, it does not see what another node has
 * committed meanwhile. The trigger runs at the end of the statement, and its query takes a new snapshot. It is a
 * trigger, and reports a violation of the primary key, so that it also holds for nodes of a release that does not know
 * it.
 */
export async function keepOneRequestAKey (db: Kysely<Tables>, schema: string): Promise<void> {
  // Connections keep the plan of this query. One that was made for an empty table would read the whole table when it
  // has grown.
  await sql`
    create function ${sql.id(schema, 'keep_one_request')}() returns trigger language plpgsql set enable_seqscan = off as $$
    begin
      if exists (
        select from new_keys cross join lateral (
          select from ${sql.id(schema, 'idempotency_keys')} stored
          where stored.key = new_keys.key and stored.fingerprint <> new_keys.fingerprint limit 1
        ) as different
      ) then
        raise unique_violation using message = 'the idempotency key has a result of a different request', constraint = 'idempotency_keys_pkey';
      end if;
      return null;
    end $$`.execute(db)
  await sql`
    create trigger keep_one_request after insert on ${sql.id(schema, 'idempotency_keys')} referencing new table as new_keys
    for each statement execute function ${sql.id(schema, 'keep_one_request')}()`.execute(db)
}
