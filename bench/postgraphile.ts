import { readFile } from 'node:fs/promises'
import { createClient } from '../db/driver/client.ts'
import { measureInTurn } from './in-turn.ts'
import { round, verdict, type Report } from './report.ts'
import type { Stage } from './stage.ts'

const AT_LEAST = 4
// Like the query `postgraphile` of the generators.
const QUERY = `query($id: UUID!) {
  userByRowId(rowId: $id) {
    rowId name postsByAuthorId(first: 10, orderBy: [PRIMARY_KEY_DESC]) { nodes { rowId title } }
  }
}`

/** Measures reads of a user with posts over GraphQL, compared with PostGraphile on the same tables. */
export async function postgraphile (stage: Stage): Promise<Report> {
  const { rounds, seconds, connections } = stage.options
  const keysFile = await stage.users()
  const sql = createClient(stage.databaseUrl, { max: 1, onnotice: () => {} })
  // Posts have no foreign key, from which PostGraphile would know the relation.
  await sql`comment on table usher.posts is '@foreignKey (author_id) references users (id)'`
  await sql`analyze usher.users, usher.posts`
  await sql.end()
  const usher = await stage.start('usher')
  const other = await stage.start('postgraphile-server', { env: { GRAPHILE_ENV: 'production' } })
  try {
    await requirePosts(other.url, (await readFile(keysFile, 'utf8')).split('\n', 1)[0]!)
    const load = { keysFile, token: '' }
    const figures = await measureInTurn(stage, {
      usher: { ...load, url: usher.url, work: 'graphql' },
      postgraphile: { ...load, url: other.url, work: 'postgraphile' },
    })
    const ratio = figures.usher.rate / figures.postgraphile.rate
    return {
      title: 'GraphQL, compared with PostGraphile',
      how: `${connections} connections, ${rounds} rounds of ${seconds} s in turn`,
      columns: ['server', 'requests/s', 'p99 ms', 'failures', 'times PostGraphile', 'target'],
      rows: Object.entries(figures).map(([name, { rate, p99, failures }]) => [
        name, round(rate), round(p99, 1), failures,
        ...name === 'usher' ? [round(ratio, 2), verdict(`≥ ${AT_LEAST}`, ratio >= AT_LEAST)] : ['', ''],
      ]),
      figures: { ...figures, ratio },
    }
  } finally {
    await usher.stop()
    await other.stop()
  }
}

// Errors have status 200 as well, and are much faster.
async function requirePosts (url: string, id: string): Promise<void> {
  const response = await fetch(`${url}/graphql`, {
    method: 'POST',
    headers: { 'content-type': 'application/json' },
    body: JSON.stringify({ query: QUERY, variables: { id } }),
  })
  const text = await response.text()
  if (!text.includes('"title"')) throw new Error(`PostGraphile has answered ${text.slice(0, 500)}`)
}
