import { sql, type QueryCreator } from 'kysely'
import { networkOf } from '../../schema/http/network.ts'
import { replanned } from '../driver/replanned.ts'
import { isConsumed } from '../outbox/consumed.ts'
import { withEvents } from '../outbox/store.ts'
import type { Database, Tables } from '../tables/index.ts'

// How many networks have events of their own for a minute: those from which most logins have failed. Whoever has
// thousands of networks must not cause as many events.
const NETWORKS_PER_MINUTE = 100

const NAME = 'audit.logins-failed'

/**
 * Adds to a statement that writes these entries to the account log that it counts the failed logins among them, by
 * minute and network. If nobody wants to know, it returns the statement as it is.
 */
export function withFailedLogins<Query extends object> (
  query: Query, db: Database, entries: readonly { action: string, address: string }[]
): Query {
  if (!isConsumed(db, NAME)) return query
  const failed = entries.filter(({ action }) => action === 'login.failed').map(({ address }) => networkOf(address))
  if (failed.length === 0) return query
  // In this order, so that statements that count the same networks cannot cause a deadlock.
  const networks = [...new Set(failed)].sort()
  const counts = networks.map((network) => failed.filter((other) => other === network).length)
  const given = sql<{ network: string, count: number }>`unnest(${networks}::text[], ${counts}::integer[])`
    .as<'failures'>(sql`failures(network, count)`)
  return (query as QueryCreator<Tables>).with('counted', (cte) => cte.insertInto('failed_logins')
    .columns(['minute', 'network', 'count'])
    .expression(({ selectFrom }) => selectFrom(given)
      .select([sql<Date>`date_trunc('minute', now())`.as('minute'), 'failures.network', 'failures.count']))
    .onConflict((conflict) => conflict.columns(['minute', 'network'])
      .doUpdateSet({ count: sql<number>`failed_logins.count + excluded.count` }))) as unknown as Query
}

/**
 * Stores the events about the failed logins of each minute that ended a minute ago, by when their statements have
 * ended: one for each of the networks with most of them, and one for all others. Several nodes may call it.
 */
export async function storeFailedLogins (db: Database): Promise<void> {
  if (!isConsumed(db, NAME)) return
  const statement = replanned(db)
    .with('ended', (cte) => cte.deleteFrom('failed_logins')
      .where('minute', '<', sql<Date>`date_trunc('minute', now()) - interval '1 minute'`)
      .returning(['minute', 'network', 'count']))
    .with('ranked', (cte) => cte.selectFrom('ended').select(['minute', 'count', sql<string | null>`case
      when row_number() over (partition by minute order by count desc, network) <= ${sql.lit(NETWORKS_PER_MINUTE)}
      then network end`.as('network')]))
    .with('summed', (cte) => cte.selectFrom('ranked').select(({ fn }) => [
      'minute', 'network', fn.sum('count').as('count'), fn.countAll().as('networks'),
    ]).groupBy(['minute', 'network']))
  await withEvents(statement, db, NAME, {
    from: 'summed',
    subject: 'gen_random_uuid()',
    data: {
      minute: sql`to_char(summed.minute at time zone 'UTC', 'YYYY-MM-DD"T"HH24:MI:00.000"Z"')`,
      network: 'summed.network',
      count: 'summed.count',
      networks: 'summed.networks',
      actorId: 'null',
    },
  }).selectFrom('summed').select('minute').limit(1).execute()
}
