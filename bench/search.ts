import { setTimeout as delay } from 'node:timers/promises'
import { createClient } from '../db/driver/client.ts'
import { sendAll, type Asked } from './connection.ts'
import { median, round, verdict, type Report } from './report.ts'
import { login } from './servers.ts'
import type { Stage } from './stage.ts'

const USERS = 20_000
const WORDS = 50
const VOCABULARY = 50_000
const AT_MOST_MS = 50
const SAMPLES = 200
const CREATED = 2000
const CONNECTIONS = 100
const AT_LEAST_OF_CREATIONS = 0.5

/**
 * Measures searches among `--many` posts, and a tenth of them, whose words are as frequent as those of a language, and
 * how many posts are created in a second while they are put into the index and while they are not.
 */
export async function search (stage: Stage): Promise<Report> {
  const rows: (string | number)[][] = []
  const figures: Record<string, number> = {}
  const { many, rounds } = stage.options
  for (const posts of [Math.ceil(many / 10), many]) {
    const schema = `usher_search_${posts}`
    await stage.fill(schema, { users: USERS, posts: 0 })
    const author = await write(stage.databaseUrl, schema, posts)
    const server = await stage.start('usher', { schema })
    try {
      const token = await login(server.url)
      figures[`${posts} posts, seconds to fill the index`] = await untilReady(server.url)
      for (const [name, query] of Object.entries(queriesOf(author))) {
        const { p50, p99 } = await timesOf(server.url, `/api/posts?limit=50&${query}`, token)
        figures[`${posts} posts, ${name}, p99 ms`] = p99
        rows.push([
          `${posts} posts, ${name}`, `p50 ${round(p50, 1)} ms, p99 ${round(p99, 1)} ms`,
          verdict(`p99 ≤ ${AT_MOST_MS} ms`, p99 <= AT_MOST_MS),
        ])
      }
      const ratio = await compareCreations(stage, schema, server.url, token)
      figures[`${posts} posts, creations with the index`] = ratio
      rows.push([
        `${posts} posts, creations while they are indexed`, `${round(ratio, 2)} of those without the index`,
        verdict(`≥ ${AT_LEAST_OF_CREATIONS}`, ratio >= AT_LEAST_OF_CREATIONS),
      ])
    } finally {
      await server.stop()
    }
  }
  return {
    title: `Searches among up to ${many} posts of ${WORDS} words`,
    how: `1 connection, ${SAMPLES} requests; creations: ${CREATED} by ${CONNECTIONS} connections, ${rounds} rounds in turn`,
    columns: ['search', 'measured', 'target'],
    rows,
    figures,
  }
}

const queriesOf = (author: string): Record<string, string> => ({
  'a word that all have': 'q=everyone',
  'a word that 1 % have': 'q=hundredth',
  'a word that one old post has': 'q=oldneedle',
  'a word that the older half has': 'q=oldthing',
  'a word that none has': 'q=nothing',
  'two words of half of the posts each, never in the same': 'q=evenword+oddword',
  'three letters of many words': 'q=tao',
  'three letters of many words, and a word that none has': 'q=nothing+tao',
  'a word that all have, by one author': `q=everyone&authorId=${author}`,
  'a word that all have, oldest first': 'q=everyone&sort=createdAt',
})

// Writes posts with words of which the n-th is as frequent as 1 / n. Returns the id of an author.
async function write (url: string, schema: string, posts: number): Promise<string> {
  const sql = createClient(url, { max: 1, onnotice: () => {}, connection: { search_path: schema } })
  try {
    await sql.unsafe('alter table posts disable trigger user')
    await sql.unsafe(`
      insert into posts (id, author_id, title, content)
      select bench_id(n), author.id, 'Post ' || n, concat_ws(
        ' ', words.text, 'everyone', case when n % 2 = 0 then 'evenword' else 'oddword' end, case when n % 100 = 7 then 'hundredth' end,
        case when n < ${posts / 2} then 'oldthing' end, case when n = 777 then 'oldneedle' end)
      from generate_series(1, ${posts}) n
      join (select id, row_number() over (order by id) as place from users where role = 'user') author
      on author.place = n % ${USERS} + 1
      cross join lateral (
        select string_agg(translate(exp(random() * ln(${VOCABULARY}))::integer::text, '0123456789', 'etaoinshrd'), ' ') as text
        from generate_series(1, ${WORDS}) where n > 0
      ) words
      order by n`)
    await sql.unsafe('alter table posts enable trigger user')
    await sql.unsafe('vacuum analyze posts')
    const [row] = await sql<{ id: string }[]>`select author_id as id from posts order by position limit 1`
    return row!.id
  } finally {
    await sql.end()
  }
}

// Returns the seconds until the index has all posts.
async function untilReady (url: string): Promise<number> {
  const since = performance.now()
  while ((await fetch(`${url}/api/posts?q=nothing`)).status === 503) await delay(1000)
  return (performance.now() - since) / 1000
}

async function timesOf (url: string, path: string, token: string): Promise<{ p50: number, p99: number }> {
  const times: number[] = []
  const ask = () => sendAll(url, { requests: 1, connections: 1 }, (): Asked => ({ method: 'GET', path, token }))
  for (let warm = 0; warm < 5; warm++) await ask()
  for (let sample = 0; sample < SAMPLES; sample++) {
    const since = performance.now()
    await ask()
    times.push(performance.now() - since)
  }
  times.sort((a, b) => a - b)
  return { p50: times[SAMPLES / 2]!, p99: times[Math.floor(SAMPLES * 0.99)]! }
}

// Returns how many posts are created in a second while they are indexed, divided by how many while a lock prevents it.
async function compareCreations (stage: Stage, schema: string, url: string, token: string): Promise<number> {
  const connection = { search_path: schema, idle_in_transaction_session_timeout: 0 }
  const sql = createClient(stage.databaseUrl, { max: 1, connection })
  const content = Array.from({ length: WORDS }, (_, index) => `word${index}`).join(' ')
  const create = async () => {
    const since = performance.now()
    await sendAll(url, { requests: CREATED, connections: CONNECTIONS }, () =>
      ({ method: 'POST', path: '/api/posts', token, body: { title: 'New', content } }))
    return performance.now() - since
  }
  try {
    const ratios: number[] = []
    for (let run = 0; run <= stage.options.rounds; run++) {
      const without = await sql.begin(async (sql) => {
        await sql`select from indexed_posts for update`
        return create()
      })
      await untilReady(url)
      const indexed = await create()
      await untilReady(url)
      // The first run is the warm-up.
      if (run > 0) ratios.push(without / indexed)
    }
    return median(ratios)
  } finally {
    await sql.end()
  }
}
