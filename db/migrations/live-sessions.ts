import { sql, type Kysely } from 'kysely'
import type { Tables } from '../tables/index.ts'

/**
 * Adds a function that fails with `UE401` if rows were written for sessions, and one of these has ended, one of the
 * signing keys has been revoked, or the time `until` has passed (contract 1.12). A statement reads sessions and keys as
 * they were when it began. If it has then waited for a lock, only a function sees what was committed meanwhile: each of
 * its queries takes a new snapshot.
 */
export async function addLiveSessions (db: Kysely<Tables>, schema: string): Promise<void> {
  // `or replace`, because a restore leaves the function: no trigger refers to it. Sequential scans are off, because
  // connections keep the plan of the query, and one that was made for an empty table would read the whole table when it
  // has grown.
  await sql`
    create or replace function ${sql.id(schema, 'require_live_sessions')}(ids uuid[], kids text[], until timestamptz)
    returns boolean language plpgsql set enable_seqscan = off as $$
    begin
      if cardinality(array_remove(ids, null)) > 0 and (
        clock_timestamp() >= until
        or (select count(*) from ${sql.id(schema, 'signing_keys')} where id = any(kids)) < cardinality(kids)
        or exists (
          select from unnest(ids) as given(id)
          left join lateral (select true as is_live from ${sql.id(schema, 'sessions')} where sessions.id = given.id limit 1) found on true
          where given.id is not null and is_live is null
        )
      ) then
        raise exception 'a session has ended' using errcode = 'UE401';
      end if;
      return true;
    end $$`.execute(db)
}
