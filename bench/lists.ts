import { createClient } from '../db/driver/client.ts'
import { placeOf, type UserPlace } from '../db/users/list-users.ts'
import type { UserRow } from '../db/tables/index.ts'
import { encodeUserCursor, type UserFilters, type UserSort } from '../schema/users/user-list.ts'
import { measureInTurn } from './in-turn.ts'
import { round, verdict, type Report } from './report.ts'
import type { Stage } from './stage.ts'

const AT_MOST = 1.2
const ROWS_PER_PAGE = 50
const FAR_PAGE = 10_000
// The far pages begin one row apart, so that few requests for the same page share a statement. So do the first pages of
// the users with each of these many prefixes.
const DIFFERENT = 500

const orders: Record<UserSort & ('-createdAt' | 'name' | 'email'), (schema: string) => string> = {
  '-createdAt': () => 'id desc',
  name: (schema) => `left(${schema}.fold_text(name) collate "C", 200), id`,
  email: () => 'lower(email collate "C")',
}

/**
 * Measures whether a far page of every sorted list of a million users is as fast as its first one, and how fast
 * searches are.
 */
export async function lists (stage: Stage): Promise<Report> {
  const { many, rounds, seconds } = stage.options
  const schema = 'usher_lists'
  const farPage = Math.min(FAR_PAGE, Math.floor(many / ROWS_PER_PAGE / 2))
  await stage.fill(schema, { users: many, posts: 0 })
  const queries: Record<string, string[]> = {}
  for (const sort of Object.keys(orders) as (keyof typeof orders)[]) {
    queries[`${sort}, page 1`] = [queryOf({ sort })]
    queries[`${sort}, page ${farPage}`] =
      (await placesFrom(stage.databaseUrl, schema, sort, ROWS_PER_PAGE * (farPage - 1) - 1))
        .map((place) => queryOf({ sort }, encodeUserCursor(place, { sort })))
  }
  queries['search for all'] = [queryOf({ q: 'bench' })]
  queries['search for one'] = Array.from({ length: DIFFERENT }, (_, index) => queryOf({ q: `user${many - index}` }))
  queries['search for none with words of all'] = [queryOf({ q: 'com exam' })]

  const server = await stage.start('usher', { schema })
  try {
    const loads = await Promise.all(Object.entries(queries).map(async ([name, lines], index) =>
      [name, {
        url: server.url,
        work: 'listed' as const,
        keysFile: await stage.write(`queries-${index}`, lines),
        token: '',
        connections: 1,
      }] as const))
    const measured = await measureInTurn(stage, Object.fromEntries(loads))
    const figures = Object.entries(measured).map(([name, figures]) => {
      const first = measured[name.replace(/page \d+$/, 'page 1')]!
      return { name, ...figures, slower: first === figures ? undefined : first.rate / figures.rate }
    })
    return {
      title: `Lists and searches of ${many} users`,
      how: `1 connection, so that no requests share a statement, ${rounds} rounds of ${seconds} s in turn; pages of ${ROWS_PER_PAGE}`,
      columns: ['list', 'requests/s', 'p50 ms', 'p99 ms', 'failures', 'times slower than page 1', 'target'],
      rows: figures.map(({ name, rate, p50, p99, failures, slower }) => [
        name, round(rate), round(p50, 1), round(p99, 1), failures, slower === undefined ? '' : round(slower, 2),
        slower === undefined ? '' : verdict(`≤ ${AT_MOST}`, slower <= AT_MOST),
      ]),
      figures,
    }
  } finally {
    await server.stop()
  }
}

function queryOf (filters: UserFilters, after?: string): string {
  const given = { ...filters, limit: ROWS_PER_PAGE, after }
  const entries = Object.entries(given).flatMap(([name, value]) => value === undefined ? [] : [[name, `${value}`]])
  return `${new URLSearchParams(entries)}`
}

// Returns places in a sorted list, starting at `offset`.
async function placesFrom (
  url: string, schema: string, sort: keyof typeof orders, offset: number
): Promise<UserPlace[]> {
  const sql = createClient(url, { max: 1 })
  try {
    const rows = await sql<UserRow[]>`
      select id, name, email from ${sql(schema)}.users
      order by ${sql.unsafe(orders[sort](schema))} offset ${offset} limit ${DIFFERENT}`
    return rows.map((row) => placeOf(row, sort))
  } finally {
    await sql.end()
  }
}
