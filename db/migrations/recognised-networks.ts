import { sql, type Kysely } from 'kysely'
import { networkOf } from '../../schema/http/network.ts'
import type { Tables } from '../tables/index.ts'

const ROWS_PER_PAGE = 10_000

/** Creates the tables of the networks that users log in from, and of the failed logins in a row of each account. */
export async function createRecognisedNetworks (db: Kysely<Tables>): Promise<void> {
  // No reference to `users`, so that filling the table holds no locks on users. `purgeDeletedUsers` deletes the rows
  // instead.
  await db.schema.createTable('recognised_networks')
    .addColumn('user_id', 'uuid', (column) => column.notNull())
    .addColumn('network', 'text', (column) => column.notNull())
    .addColumn('last_used_at', 'timestamptz', (column) => column.notNull().defaultTo(sql`now()`))
    .addPrimaryKeyConstraint('recognised_networks_pkey', ['user_id', 'network'])
    .execute()
  await db.schema.createTable('login_failures')
    .addColumn('key', 'bytea', (column) => column.primaryKey())
    .addColumn('count', 'integer', (column) => column.notNull())
    .addColumn('last_failed_at', 'timestamptz', (column) => column.notNull().defaultTo(sql`now()`))
    .execute()
  await fill(db)
  await db.schema.createIndex('recognised_networks_last_used_at').on('recognised_networks')
    .column('last_used_at').execute()
  await db.schema.createIndex('login_failures_count').on('login_failures')
    .columns(['count', 'last_failed_at']).execute()
}

// Fills the table from the logins in the account log. The networks are computed here rather than in SQL, so that there
// is only one definition of a network.
async function fill (db: Kysely<Tables>): Promise<void> {
  let page: { userId: string, address: string, at: Date }[]
  let [after, afterAddress] = ['00000000-0000-0000-0000-000000000000', '']
  do {
    page = await db.selectFrom('audit')
      .select(['user_id as userId', 'address', ({ fn }) => fn.max('created_at').as('at')])
      .$narrowType<{ userId: string }>()
      .where('action', '=', sql.lit('login')).where('address', '<>', '')
      .where(sql<boolean>`(user_id, address) > (${after}::uuid, ${afterAddress})`)
      .groupBy(['user_id', 'address']).orderBy('user_id').orderBy('address').limit(ROWS_PER_PAGE).execute()
    const latest = new Map<string, { userId: string, network: string, at: Date }>()
    for (const { userId, address, at } of page) {
      const network = networkOf(address)
      const known = latest.get(`${userId} ${network}`)
      if (!known || known.at < at) latest.set(`${userId} ${network}`, { userId, network, at })
      ;[after, afterAddress] = [userId, address]
    }
    const rows = [...latest.values()]
    await db.insertInto('recognised_networks').columns(['user_id', 'network', 'last_used_at'])
      .expression(({ selectFrom }) => selectFrom(sql<{ user: string, network: string, at: Date }>`unnest(
        ${rows.map(({ userId }) => userId)}::uuid[], ${rows.map(({ network }) => network)}::text[], ${rows.map(({ at }) => at.toISOString())}::timestamptz[]
      )`.as<'given'>(sql`given("user", network, at)`)).select(['user', 'network', 'at']))
      .onConflict((conflict) => conflict.columns(['user_id', 'network']).doUpdateSet({
        last_used_at: sql`greatest(recognised_networks.last_used_at, excluded.last_used_at)`,
      })).execute()
  } while (page.length === ROWS_PER_PAGE)
}
