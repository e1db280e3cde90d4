import { Kysely, type CompiledQuery } from 'kysely'
import { PostgresJSDialect } from 'kysely-postgres-js'
import postgres from 'postgres'
import t from 'tap'
import type { Tables } from '../../db/tables.ts'
import { EVERYBODY, listUsers, placeOf, type ListUsersQuery } from '../../db/user-lists.ts'
import { createUsher } from '../helpers/app.ts'

const USERS = 20_000
const LIMIT = 20
const sorts = ['createdAt', '-createdAt', 'name', '-name', 'email', '-email'] as const

interface Plan { 'Node Type': string, 'Actual Rows': number, 'Actual Loops': number, 'Rows Removed by Filter'?: number, Plans?: Plan[] }

const nodesOf = (plan: Plan): Plan[] => [plan, ...(plan.Plans ?? []).flatMap(nodesOf)]
const rowsOf = (plan: Plan) => (plan['Actual Rows'] + (plan['Rows Removed by Filter'] ?? 0)) * plan['Actual Loops']

t.test('10.5 what a page costs', async (t) => {
  const usher = await createUsher(t)
  const { databaseUrl = '', schema = '' } = usher.options
  // One connection, because settings belong to it.
  const sql = postgres(databaseUrl, { max: 1, onnotice: () => {}, connection: { search_path: schema } })
  t.teardown(() => sql.end())
  const sent: CompiledQuery[] = []
  const db = new Kysely<Tables>({ dialect: new PostgresJSDialect({ postgres: sql }), log: ({ query }) => { sent.push(query) } })
  await sql`insert into users (id, name, email, role)
    select gen_random_uuid(), case when n = 7 then 'Zenobia' else (array['Ada', 'Grace', 'Alan'])[n % 3 + 1] end || ' ' || md5(n::text), 'u' || n || '@example.com',
    case when n % 20 = 0 then 'admin' else 'user' end from generate_series(1, ${USERS}) n`
  await sql`analyze users`

  // Returns the plans of the statements that read a page, with the rows that they have read.
  async function explain (query: ListUsersQuery): Promise<Plan[]> {
    sent.length = 0
    await listUsers(db, query)
    return Promise.all(sent.map(async ({ sql: text, parameters }) => {
      const [row] = await sql.unsafe(`explain (analyze, format json) ${text}`, parameters as string[])
      return row!['QUERY PLAN'][0].Plan as Plan
    }))
  }

  await t.test('the first page and one in the middle read as many rows as they have, in the order of an index', async (t) => {
    for (const sort of sorts) {
      for (const role of [undefined, 'admin']) {
        const all = await listUsers(db, { role, sort, limit: role ? USERS / 40 : USERS / 2 })
        for (const after of [undefined, placeOf(all.rows.at(-1)!, sort)]) {
          const [plan, ...others] = await explain({ role, sort, limit: LIMIT, after })
          const nodes = nodesOf(plan!)
          const what = `${sort} ${role} ${after?.id}`
          t.same(others, [], what)
          t.notOk(nodes.some((node) => /Sort|Seq Scan|Bitmap/.test(node['Node Type'])), what)
          t.ok(nodes.every((node) => rowsOf(node) <= LIMIT + 1), what)
        }
      }
    }
  })

  await t.test('a search for a frequent word reads a part of the list, and one for a rare word the users who have it', async (t) => {
    // So few users are read from the table at once rather than by the index.
    await sql`set enable_seqscan = off`
    for (const sort of sorts) {
      const common: ListUsersQuery = { q: 'example', sort, limit: LIMIT, addresses: { of: EVERYBODY } }
      const frequent = await explain(common)
      t.equal(frequent.length, 1, sort)
      const rare = await explain({ ...common, q: 'zenob' })
      t.equal(rare.length, 2, sort)
      for (const plan of [...frequent, ...rare]) {
        t.ok(nodesOf(plan).every((node) => rowsOf(node) <= 20 * (LIMIT + 1)), sort)
      }
    }
  })
})
