import { sql } from 'kysely'
import type { Database } from '../tables/index.ts'

/**
 * Returns the name of the lock that each node of a schema holds. During a rolling upgrade, nodes of two releases hold
 * it and the commands of both count them, so the name and its hash stay as they are.
 */
export const presenceOf = (schema: string): string => `usher nodes of ${schema}`

/**
 * Returns the statement that takes the lock `name` until the connection ends. Every node shares it, so nobody ever
 * waits for it. Unlike the activity of connections, which a pooler lends to many clients and keeps open for none, it
 * tells how many nodes there are: a connection that listens is never shared.
 * @param name has no quotation marks
 */
export const holdPresence = (name: string): string => `select pg_advisory_lock_shared(hashtextextended('${name}', 0))`

/** Returns how many connections hold the lock `name`. */
export async function countPresent (db: Database, name: string): Promise<number> {
  const { rows: [row] } = await sql<{ count: number }>`
    select count(distinct pid)::integer as count from pg_locks, hashtextextended(${name}, 0) as key
    where locktype = 'advisory' and mode = 'ShareLock' and granted and objsubid = 1
      and database = (select oid from pg_database where datname = current_database())
      and classid::bigint = (key >> 32) & 4294967295 and objid::bigint = key & 4294967295`.execute(db)
  return row!.count
}
