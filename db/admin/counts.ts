import { sql, type RawBuilder } from 'kysely'
import type { AuditAction } from '../../schema/audit/audit.ts'
import { lowestIdWithin } from '../driver/ids.ts'
import { schemaOf } from '../driver/postgres.ts'
import { replanned } from '../driver/replanned.ts'
import type { Database, Tables } from '../tables/index.ts'

const DAY = 86_400
/** The actions of the account log that are counted by day. */
export const countedActions = [
  'login', 'login.failed', 'user.create', 'user.sign-up', 'user.import',
] as const satisfies readonly AuditAction[]

// How many days are counted when nothing was counted before, and how long counts are kept.
const FIRST_DAYS = 31
const KEPT_DAYS = 400
// An entry gets its id before its transaction commits, so the latest ones are not counted yet.
const LAG_SECONDS = 60
// How many entries one statement counts, so that it does not take long.
const ENTRIES_PER_COUNT = 20_000
// The entries that are not counted yet and are looked at for an overview: those of the last minutes.
const UNCOUNTED = 20_000

const dayOf = sql<string>`(created_at at time zone 'UTC')::date`

/**
 * Counts the entries of the account log that were not counted before, and forgets what is too old. Several nodes may
 * call it: each entry is counted once. Returns whether there are more to count.
 */
export async function countAuditEntries (db: Database): Promise<boolean> {
  return db.transaction().execute(async (trx) => {
    await trx.insertInto('audit_counted').values({ until: lowestIdWithin(trx, FIRST_DAYS * DAY) })
      .onConflict((conflict) => conflict.column('is_only').doNothing()).execute()
    const counted = await trx.selectFrom('audit_counted').select('until').forUpdate().skipLocked().executeTakeFirst()
    // Another node is counting.
    if (!counted) return false
    const { entries, last } = await replanned(trx)
      .with((cte) => cte('part').materialized(), (cte) => cte.selectFrom('audit').select(['id', 'action', 'created_at'])
        .where('id', '>', counted.until).where('id', '<', lowestIdWithin(trx, LAG_SECONDS))
        .orderBy('id').limit(ENTRIES_PER_COUNT))
      .with('counts', (cte) => cte.insertInto('audit_counts').columns(['day', 'action', 'count'])
        .expression(({ selectFrom, fn }) => selectFrom('part')
          .select([dayOf.as('day'), 'action', fn.countAll<string>().as('count')])
          .where('action', 'in', countedActions.map((action) => sql.lit<string>(action))).groupBy(['day', 'action']))
        .onConflict((conflict) => conflict.columns(['day', 'action']).doUpdateSet({
          count: sql<string>`audit_counts.count + excluded.count`,
        })))
      .selectFrom('part').select([
        sql<number>`count(*)::integer`.as('entries'), sql<string | null>`(array_agg(id order by id desc))[1]`.as('last'),
      ]).executeTakeFirstOrThrow()
    if (last !== null) await trx.updateTable('audit_counted').set({ until: last }).execute()
    await trx.deleteFrom('audit_counts')
      .where('day', '<', sql<string>`(now() at time zone 'UTC')::date - ${sql.lit(KEPT_DAYS)}::integer`).execute()
    return entries === ENTRIES_PER_COUNT
  })
}

/** What has happened on a day (UTC). */
export interface DailyCount { day: string, action: string, count: number }

/** Returns the counts of the last `days` days, today included. Those of the last minutes are exact up to a limit. */
export async function readDailyCounts (db: Database, days: number): Promise<DailyCount[]> {
  const first = sql<string>`(now() at time zone 'UTC')::date - ${days - 1}::integer`
  return db
    .with((cte) => cte('part').materialized(), (cte) => cte.selectFrom('audit').select(['action', 'created_at'])
      .where('id', '>', ({ fn, selectFrom, val }) => fn.coalesce(
        selectFrom('audit_counted').select('until'), val(lowestIdWithin(db, DAY))))
      .orderBy('id', 'desc').limit(UNCOUNTED))
    .selectFrom(({ selectFrom, fn }) => selectFrom('audit_counts').select(['day', 'action', 'count'])
      .where('day', '>=', first)
      .unionAll(selectFrom('part').select([dayOf.as('day'), 'action', fn.countAll<string>().as('count')])
        .where('action', 'in', [...countedActions]).groupBy(['day', 'action']))
      .as('counts'))
    .select([
      sql<string>`to_char(day, 'YYYY-MM-DD')`.as('day'), 'action', sql<number>`sum(count)::float8`.as('count'),
    ]).where('day', '>=', first).groupBy(['day', 'action']).execute()
}

/** A number of rows: exact, or about as many as PostgreSQL has estimated last. */
export interface RowCount { count: number, isExact: boolean }

/** Up to this many rows are counted. */
export const MAX_COUNTED = 10_000

const countedTables = ['users', 'posts', 'uploads'] as const
export type CountedTable = typeof countedTables[number]

/** Returns an expression for how many of the first `max` rows of a table meet a condition: all of them without one. */
export const countUpTo = (
  db: Database, table: keyof Tables & string, max: number, condition: RawBuilder<unknown> = sql`true`
): RawBuilder<number> => sql<number>`(select count(*)::integer from (
  select * from ${sql.id(schemaOf(db), table)} limit ${sql.lit(max)}) as counted where ${condition})`

/** Returns about how many rows a table has, as PostgreSQL has estimated it last. */
export async function estimateRows (db: Database, table: CountedTable): Promise<number> {
  const { estimate } = await db.selectNoFrom(estimateOf(db, table).as('estimate')).executeTakeFirstOrThrow()
  return Math.round(estimate)
}

const estimateOf = (db: Database, table: CountedTable): RawBuilder<number> => sql<number>`(
  select greatest(reltuples, 0)::float8 from pg_class join pg_namespace on pg_namespace.oid = relnamespace
  where nspname = ${schemaOf(db)} and relname = ${table})`

/** Returns how many rows tables have. It takes the same time for a million of them. */
export async function readRowCounts (db: Database): Promise<Record<CountedTable, RowCount>> {
  const counts = await Promise.all(countedTables.map(async (table) => {
    const { exact, estimate } = await db.selectNoFrom([
      countUpTo(db, table, MAX_COUNTED + 1).as('exact'),
      estimateOf(db, table).as('estimate'),
    ]).executeTakeFirstOrThrow()
    const isExact = exact <= MAX_COUNTED
    return [table, { count: isExact ? exact : Math.max(exact, Math.round(estimate)), isExact }] as const
  }))
  return Object.fromEntries(counts) as Record<CountedTable, RowCount>
}
