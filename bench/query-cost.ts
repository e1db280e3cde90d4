// Measures what the most expensive allowed queries, and some rejected ones, do to a node: its memory, and the longest
// time for which its event loop was blocked. Contract 1.13 allows at most 50 ms. Usage: `node bench/query-cost.ts`.
import { mkdtemp, rm } from 'node:fs/promises'
import { availableParallelism, loadavg, tmpdir } from 'node:os'
import type { AddressInfo } from 'node:net'
import { join } from 'node:path'
import { monitorEventLoopDelay } from 'node:perf_hooks'
import { once } from 'node:events'
import Fastify from 'fastify'
import { createClient } from '../db/driver/client.ts'
import usher from '../app.ts'
import { startEmbedded } from '../node/embedded/server.ts'
import { print, round, verdict } from './report.ts'
import { startServer, type Server } from './servers.ts'

const AUTHORS = 100
const SCHEMAS = { short: 10, long: 65_000 }
const TARGET_MS = 50
const columns = [
  'query', 'outcome', 'first stall, ms', 'second', 'third', 'longest answer, ms', 'response, KiB', 'rss, MiB', 'target',
]

/** What a node reports about the time since the last report. */
interface Stall { longest: number, rss: number }

async function serve (): Promise<void> {
  const { DATABASE_URL, UPLOADS_DIR, SCHEMA } = process.env
  const app = Fastify({ forceCloseConnections: true })
  await app.register(usher, {
    databaseUrl: DATABASE_URL,
    schema: SCHEMA,
    uploadsDir: UPLOADS_DIR!,
    admin: { email: 'admin@example.com', password: 'horse battery staple' },
  })
  await app.listen({ port: 0, host: '127.0.0.1' })
  const delay = monitorEventLoopDelay({ resolution: 1 })
  delay.enable()
  process.on('message', () => {
    process.send!({ longest: delay.max / 1e6, rss: process.memoryUsage.rss() / 1024 ** 2 } satisfies Stall)
    delay.reset()
  })
  console.log(`http://127.0.0.1:${(app.server.address() as AddressInfo).port}`)
  process.on('SIGTERM', () => { void app.close().then(() => process.disconnect()) })
}

async function fill (url: string, schema: string, characters: number): Promise<void> {
  const sql = createClient(url, { max: 1, onnotice: () => {}, connection: { search_path: schema } })
  await sql`insert into users (id, name, email, role) select gen_random_uuid(), 'User ' || n, n || '@example.com', 'user' from generate_series(1, ${AUTHORS}) n`
  await sql`alter table posts disable trigger user`
  // Posts of different authors alternate, so that a page of posts leads to all authors.
  await sql`insert into posts (id, author_id, title, content)
    select gen_random_uuid(), id, 'Post ' || n, repeat('x', ${characters}) from generate_series(1, ${characters > 1000 ? 20 : 100}) n, users where role = 'user'`
  await sql`vacuum analyze posts`
  await sql.end()
}

async function ask (
  { url, process: child }: Server, query: string, atOnce = 1
): Promise<Stall & { outcome: string, bytes: number, took: number }> {
  const stalled = async () => {
    child.send('stall')
    return (await once(child, 'message'))[0] as Stall
  }
  await stalled()
  const since = performance.now()
  const texts = await Promise.all(Array.from({ length: atOnce }, async () => {
    const response = await fetch(`${url}/graphql`, {
      method: 'POST', headers: { 'content-type': 'application/json' }, body: JSON.stringify({ query }),
    })
    return response.text()
  }))
  const took = performance.now() - since
  const outcomes = new Set(
    texts.map((text) => text.startsWith('{"data":{') ? 'data' : /"code":"(\w+)"/.exec(text)?.[1] ?? text.slice(0, 50))
  )
  return { ...await stalled(), outcome: [...outcomes].join(', '), bytes: texts[0]!.length, took }
}

const aliases = (count: number, selection: string) =>
  Array.from({ length: count }, (_, index) => `a${index}: ${selection}`).join(' ')
const allowed = '{users{nodes{id name posts{id title}}}}'
const queries: [name: string, query: string, atOnce?: number][] = [
  ['posts of the authors of 100 posts', '{posts(first:100){nodes{author{posts(first:99){content}}}}}'],
  ['the same with 45 aliases', `{posts(first:100){nodes{author{posts(first:99){${aliases(45, 'content')}}}}}}`],
  ['50 users with their posts', allowed],
  ['the same, 50 at once', allowed, 50],
  ['50 users with contents', '{users{nodes{id name posts{id title content}}}}'],
  ['the same, 50 at once', '{users{nodes{id name posts{id title content}}}}', 50],
  ['100 posts with content and author', '{posts(first:100){nodes{id title content author{id name}}}}'],
  ['the same, 50 at once', '{posts(first:100){nodes{id title content author{id name}}}}', 50],
  ['45 authors of each of 100 posts', `{posts(first:100){nodes{${aliases(45, 'author{id}')}}}}`],
  ['20 pages of posts', `{${aliases(20, 'posts(first:100){nodes{createdAt cursor title id}}')}}`],
  ['a document with 1,980 pairs of fields', `{${'me{id} '.repeat(45)}}`],
  ['a document with 150 errors after 9,000 lines', `{${'\n'.repeat(9000)}${'x '.repeat(150)}}`],
]

async function measure (): Promise<void> {
  const folder = await mkdtemp(join(tmpdir(), 'usher-cost-'))
  const database = await startEmbedded({ dataDir: folder })
  try {
    for (const [schema, characters] of Object.entries(SCHEMAS)) {
      const env = {
        ROLE: 'server',
        DATABASE_URL: database.url,
        UPLOADS_DIR: join(folder, 'uploads'),
        SCHEMA: schema,
        NODE_ENV: 'production',
      }
      const node = await startServer('query-cost', env)
      await fill(database.url, schema, characters)
      const rows = []
      for (const [name, query, atOnce] of queries) {
        // The first execution of a document includes its validation and is interpreted. The second one is compiled.
        const found = [await ask(node, query, atOnce), await ask(node, query, atOnce), await ask(node, query, atOnce)]
        const [{ outcome, bytes }] = found as [typeof found[0]]
        const stalls = found.map(({ longest }) => round(longest, 1))
        const met = verdict(`≤ ${TARGET_MS} ms`, Math.max(...stalls) <= TARGET_MS)
        rows.push([
          name, outcome, ...stalls, round(Math.max(...found.map(({ took }) => took))), round(bytes / 1024),
          round(found.at(-1)!.rss), met,
        ])
      }
      print({
        title: `Posts of ${characters} characters`,
        how: `${availableParallelism()} cores, load ${round(loadavg()[0]!, 1)}`,
        columns,
        rows,
        figures: rows,
      })
      await node.stop()
    }
  } finally {
    await database.stop()
    await rm(folder, { recursive: true, force: true })
  }
}

if (process.env['ROLE'] === 'server') await serve()
else await measure()
