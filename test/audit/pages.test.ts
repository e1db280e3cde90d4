import { CompiledQuery, Kysely, sql } from 'kysely'
import { PostgresJSDialect } from 'kysely-postgres-js'
import postgres from 'postgres'
import t from 'tap'
import { listAuditEntries, type ListAuditQuery } from '../../db/audit/audit.ts'
import type { Tables } from '../../db/tables/index.ts'
import { createUsher } from '../helpers/app.ts'
import { socketOf } from '../helpers/database.ts'

const ENTRIES = 100_000
const RARE = 7
const LIMIT = 50

interface Plan {
  'Node Type': string
  'Actual Rows': number
  'Actual Loops': number
  'Rows Removed by Filter'?: number
  Plans?: Plan[]
}

const nodesOf = (plan: Plan): Plan[] => [plan, ...(plan.Plans ?? []).flatMap(nodesOf)]
const rowsOf = (plan: Plan) => (plan['Actual Rows'] + (plan['Rows Removed by Filter'] ?? 0)) * plan['Actual Loops']

t.test('4 a page of the account log reads few other entries, whatever the filter, among 100,000 entries of the user', async (t) => {
  const usher = await createUsher(t)
  const { databaseUrl = '', schema = '' } = usher.options
  // One connection, so that all is in one transaction, after which the table is empty again.
  const client = postgres(databaseUrl, {
    ...socketOf(databaseUrl), max: 1, onnotice: () => {}, connection: { search_path: schema },
  })
  t.teardown(() => client.end())
  const sent: CompiledQuery[] = []
  const db = new Kysely<Tables>({
    dialect: new PostgresJSDialect({ postgres: client }), log: ({ query }) => { sent.push(query) },
  })
  const userId = usher.admin.id
  await db.transaction().execute(async (trx) => {
    await sql`set local statement_timeout = 0`.execute(trx)
    await sql`insert into audit (id, action, actor_id, user_id, address, user_agent)
      select ('00000000-0000-7000-8000-' || lpad(to_hex(n), 12, '0'))::uuid, case when n <= ${RARE} then 'password.change' else 'access.denied' end,
        ${userId}::uuid, case when n % 1000 = 0 then gen_random_uuid() else ${userId}::uuid end, '192.0.2.1', ''
      from generate_series(1, ${sql.lit(ENTRIES)}) n`.execute(trx)
    await sql`analyze audit`.execute(trx)
    const [row] =
      (await sql<{ middle: string }>`select id as middle from audit order by id offset ${ENTRIES / 2} limit 1`
        .execute(trx)).rows
    const filters: Omit<ListAuditQuery, 'limit'>[] = [
      {}, { userId }, { action: 'access.denied' }, { action: 'password.change' }, { action: 'keys.rotate' },
      { userId, action: 'access.denied' }, { userId, action: 'password.change' }, { userId, action: 'keys.rotate' },
    ]
    for (const filter of filters) {
      for (const after of [undefined, row!.middle]) {
        sent.length = 0
        const page = await listAuditEntries(trx, { ...filter, limit: LIMIT, ...after !== undefined && { after } })
        const [{ sql: text, parameters }] = sent as [CompiledQuery]
        const explain = CompiledQuery.raw(`explain (analyze, format json) ${text}`, [...parameters])
        const { rows: [explained] } = await trx.executeQuery<{ 'QUERY PLAN': [{ Plan: Plan }] }>(explain)
        const nodes = nodesOf(explained!['QUERY PLAN'][0].Plan)
        const what = `${JSON.stringify(filter)} ${after}`
        t.equal(
          page.rows.length,
          filter.action === 'password.change' ? RARE : filter.action === 'keys.rotate' ? 0 : LIMIT,
          what
        )
        t.notOk(nodes.some((node) => /Sort|Seq Scan|Bitmap/.test(node['Node Type'])), what)
        t.ok(nodes.every((node) => rowsOf(node) <= 4 * LIMIT), what)
      }
    }
    throw new Error('rolled back')
  }).catch((error) => { if (error.message !== 'rolled back') throw error })
})
