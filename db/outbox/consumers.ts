import { sql } from 'kysely'
import { anyOf } from '../driver/postgres.ts'
import { replanned } from '../driver/replanned.ts'
import type { Database } from '../tables/index.ts'

/** A consumer of events: its name, and the names of the events that it receives. */
export interface Consumer {
  readonly name: string
  readonly types: readonly string[]
}

const pairsOf = (consumers: readonly Consumer[]) =>
  consumers.flatMap(({ name, types }) => types.map((type) => ({ name, type })))

/**
 * Records that this node has these consumers. From the commit on, events are stored for them once the nodes have read
 * the table, which a notification makes them do.
 */
export async function recordConsumers (db: Database, consumers: readonly Consumer[]): Promise<void> {
  const pairs = pairsOf(consumers)
  // Without parameters, whose types would be asked for first, the statement takes one round trip.
  const texts = (values: string[]) => sql`array[${sql.join(values.map((value) => sql.lit(value)))}]::text[]`
  const [names, types] = [texts(pairs.map(({ name }) => name)), texts(pairs.map(({ type }) => type))]
  const pair = sql<{ name: string, type: string }>`unnest(${names}, ${types})`.as<'given'>(sql`given(name, type)`)
  // The rows are locked in order, so that nodes that start at the same time cannot cause a deadlock.
  await db.insertInto('event_consumers').columns(['name', 'type'])
    .expression(({ selectFrom }) => selectFrom(pair).select(['given.name', 'given.type']).orderBy('given.name')
      .orderBy('given.type'))
    .onConflict((conflict) => conflict.columns(['name', 'type']).doUpdateSet({ seen_at: sql<Date>`now()` })).execute()
}

/**
 * Deletes the consumers that no node has had for `days`, with at most `limit` of their deliveries. Returns what was
 * deleted; call it again if that were `limit` deliveries.
 */
export async function deleteOldConsumers (
  db: Database, { days, limit }: { days: number, limit: number }
): Promise<{ consumers: Consumer[], deliveries: number }> {
  const old = sql<Date>`now() - make_interval(days => ${days})`
  const { numDeletedRows } = await replanned(db)
    .deleteFrom('outbox').where('position', '=', ({ selectFrom }) => anyOf(selectFrom('outbox')
      .innerJoin('event_consumers', (join) =>
        join.onRef('event_consumers.name', '=', 'outbox.consumer').onRef('event_consumers.type', '=', 'outbox.type'))
      .where('event_consumers.seen_at', '<', old).select('outbox.position').limit(limit))).executeTakeFirstOrThrow()
  const deliveries = Number(numDeletedRows)
  if (deliveries === limit) return { consumers: [], deliveries }
  const gone = await db.deleteFrom('event_consumers').where('seen_at', '<', old).returning(['name', 'type']).execute()
  return {
    consumers: [...Map.groupBy(gone, ({ name }) => name)]
      .map(([name, rows]) => ({ name, types: rows.map(({ type }) => type) })),
    deliveries,
  }
}
