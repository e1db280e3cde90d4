import { Kysely, type CompiledQuery } from 'kysely'
import { PostgresJSDialect } from 'kysely-postgres-js'
import postgres from 'postgres'
import t from 'tap'
import { setSchema } from '../../db/driver/postgres.ts'
import type { Tables } from '../../db/tables/index.ts'
import { EVERYBODY, listUsers, placeOf, type ListUsersQuery } from '../../db/users/list-users.ts'
import { createUsher } from '../helpers/app.ts'
import { socketOf } from '../helpers/database.ts'

const USERS = 20_000
const LIMIT = 20
const sorts = ['createdAt', '-createdAt', 'name', '-name', 'email', '-email'] as const

interface Plan {
  'Node Type': string
  'Index Name'?: string
  'Actual Rows': number
  'Actual Loops': number
  'Rows Removed by Filter'?: number
  Plans?: Plan[]
}

const nodesOf = (plan: Plan): Plan[] => [plan, ...(plan.Plans ?? []).flatMap(nodesOf)]
const rowsOf = (plan: Plan) => (plan['Actual Rows'] + (plan['Rows Removed by Filter'] ?? 0)) * plan['Actual Loops']

t.test('10.5 what a page costs', async (t) => {
  const usher = await createUsher(t)
  const { databaseUrl = '', schema = '' } = usher.options
  // One connection, because settings belong to it.
  const sql = postgres(databaseUrl, {
    ...socketOf(databaseUrl), max: 1, onnotice: () => {}, connection: { search_path: schema },
  })
  t.teardown(() => sql.end())
  const sent: CompiledQuery[] = []
  const db =
    new Kysely<Tables>({ dialect: new PostgresJSDialect({ postgres: sql }), log: ({ query }) => { sent.push(query) } })
  setSchema(db, schema)
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

  await t.test('20.1 a page of a role of the host, with and without filters, reads few rows of an index', async (t) => {
    await sql`update users set role = 'moderator' where email like 'u%9@example.com' and role = 'user'`
    await sql`update users set disabled = true where email like 'u_99@example.com' or email like 'u__99@example.com'`
    await sql`analyze users`
    for (const sort of sorts) {
      for (const filter of sort.endsWith('createdAt') ? [{}, { disabled: true }, { disabled: false, emailVerified: false }] : [{}]) {
        const query = { role: 'moderator', sort, ...filter }
        const all = await listUsers(db, { ...query, limit: 40 })
        for (const after of [undefined, placeOf(all.rows.at(-1)!, sort)]) {
          const [plan, ...others] = await explain({ ...query, limit: LIMIT, after })
          const nodes = nodesOf(plan!)
          const what = JSON.stringify({ ...query, after })
          t.same(others, [], what)
          t.notOk(nodes.some((node) => node['Node Type'] === 'Seq Scan'), what)
          t.equal(nodes.some((node) => node['Index Name'] === 'users_role_state'), 'disabled' in filter, what)
          // A state of so few users may be read and sorted, but no user of another role is read.
          t.ok(nodes.every((node) => rowsOf(node) <= USERS / 10), what)
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
      // The second one tells whether the list is so short that it can be looked through.
      t.equal(rare.length, 3, sort)
      for (const plan of [...frequent, ...rare]) {
        t.ok(nodesOf(plan).every((node) => rowsOf(node) <= 20 * (LIMIT + 1)), sort)
      }
    }
  })

  await t.test('a search whose words are frequent, but not in this order, reads a part of the list for each page and finds all', async (t) => {
    await sql`update users set name = 'com example' where name like 'Zenobia %'`
    for (const sort of ['createdAt', '-name', 'email'] as const) {
      const found: string[] = []
      let after: ListUsersQuery['after']
      do {
        const query: ListUsersQuery = { q: 'com exam', sort, limit: LIMIT, addresses: { of: EVERYBODY }, after }
        const page = await listUsers(db, query)
        found.push(...page.rows.map(({ name }) => name))
        // A part of the list has 5000 users, and here three times as many follow. The index of words yields the places
        // of all users who have them, without reading them.
        const nodes = (await explain(query)).flatMap(nodesOf)
          .filter((node) => node['Node Type'] !== 'Bitmap Index Scan')
        t.ok(nodes.every((node) => rowsOf(node) <= USERS / 4 + 1), sort)
        after = page.next ?? undefined
      } while (after)
      t.same(found, ['com example'], sort)
    }
  })

  await t.test('over REST and GraphQL, such a search is followed from pages without users', async (t) => {
    const names = async (read: (after: string) => Promise<{ names: string[], next: string }>) => {
      const found: string[] = []
      for (let after = '', pages = 0; pages === 0 || after; pages++) {
        const page = await read(after)
        found.push(...page.names)
        after = page.next
      }
      return found
    }
    t.same(await names(async (after) => {
      const response = await usher.inject('GET', after || '/api/users?q=com+exam&fields=name')
      const [, next = ''] = /<(.*)>/.exec(`${response.headers['link'] ?? ''}`) ?? []
      return { names: response.json().map(({ name }: { name: string }) => name), next }
    }), ['com example'])
    t.same(await names(async (after) => {
      const query =
        `{ users(q: "com exam"${after && `, after: "${after}"`}) { nodes { name } pageInfo { hasNextPage endCursor } } }`
      const { nodes, pageInfo } = (await usher.inject('POST', '/graphql', { payload: { query } })).json().data.users
      return {
        names: nodes.map(({ name }: { name: string }) => name), next: pageInfo.hasNextPage ? pageInfo.endCursor : '',
      }
    }), ['com example'])
  })
})
