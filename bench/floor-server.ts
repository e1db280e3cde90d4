// The floor: what the works cost at least in this process, with the same results on the same tables. Bare node:http and
// the `postgres` package, with statements that are shared by concurrent requests and pipelined, without Fastify,
// validation, authentication, entity tags and headers.
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'
import { v7 as uuid } from 'uuid'
import { createClient } from '../db/driver/client.ts'

const IN_FLIGHT = 2
const LARGEST_BATCH = 256

const sql = createClient(process.env['DATABASE_URL']!, { max: 10, connection: { search_path: process.env['SCHEMA']! } })
const columns = sql`id, name, email, email_verified as "emailVerified", role, disabled, created_at as "createdAt",
  updated_at as "updatedAt"`

type Row = Record<string, unknown> & { id: string }

/** Returns a function whose calls of one turn of the event loop share a statement. */
function batch<Key, Result> (run: (keys: Key[]) => Promise<Result[]>): (key: Key) => Promise<Result> {
  let waiting: { key: Key, resolve: (result: Result) => void, reject: (error: unknown) => void }[] = []
  let running = 0
  let isPlanned = false

  function plan (): void {
    if (isPlanned || running >= IN_FLIGHT || waiting.length === 0) return
    isPlanned = true
    setImmediate(start)
  }

  async function start (): Promise<void> {
    isPlanned = false
    const calls = waiting.slice(0, LARGEST_BATCH)
    waiting = waiting.slice(LARGEST_BATCH)
    running++
    try {
      const results = await run(calls.map(({ key }) => key))
      for (const [index, { resolve }] of calls.entries()) resolve(results[index]!)
    } catch (error) {
      for (const { reject } of calls) reject(error)
    }
    running--
    plan()
  }

  return (key) => {
    const { promise, resolve, reject } = Promise.withResolvers<Result>()
    waiting.push({ key, resolve, reject })
    plan()
    return promise
  }
}

async function inOrder (ids: string[], rows: readonly Row[]): Promise<(Row | undefined)[]> {
  const byId = new Map(rows.map((row) => [row.id, row]))
  return ids.map((id) => byId.get(id))
}

const readUser = batch(async (ids: string[]) =>
  inOrder(ids, await sql<Row[]>`select ${columns} from users where id = any(${[...new Set(ids)]}::uuid[])`))

const readPage = batch(async (limits: number[]) => {
  const pages = new Map<number, Buffer>()
  for (const limit of new Set(limits)) {
    const rows = await sql`select ${columns} from users where role = 'user' order by id desc limit ${limit}`
    pages.set(limit, Buffer.from(JSON.stringify(rows)))
  }
  return limits.map((limit) => pages.get(limit)!)
})

const readPosts = batch(async (ids: string[]) => {
  const rows = await sql<{ id: string, author: string, title: string }[]>`
    select post.id, author.id as author, post.title from unnest(${[...new Set(ids)]}::uuid[]) author (id)
    cross join lateral (select id, title from posts where author_id = author.id order by id desc limit 10) post`
  const posts = new Map<string, { id: string, title: string }[]>()
  for (const { id, author, title } of rows) {
    const ofAuthor = posts.get(author) ?? []
    posts.set(author, ofAuthor)
    ofAuthor.push({ id, title })
  }
  return ids.map((id) => posts.get(id) ?? [])
})

interface NewUser { id: string, name: string, email: string }

const createUser = batch(async (users: NewUser[]) => inOrder(users.map(({ id }) => id), await sql<Row[]>`
  insert into users (id, name, email, role)
  select id, name, email, 'user' from unnest(
    ${users.map(({ id }) => id)}::uuid[], ${users.map(({ name }) => name)}::text[], ${users.map(({ email }) => email)}::text[]
  ) given (id, name, email) returning ${columns}`))

const [{ id: author }] = await sql<[{ id: string }]>`select id from users where role = 'admin'`

const createPost = batch(async (ids: string[]) => inOrder(ids, await sql<Row[]>`
  insert into posts (id, author_id, title, content)
  select id, ${author}, 'A post', 'Words' from unnest(${ids}::uuid[]) given (id) returning id, title`))

async function bodyOf<Body> (request: IncomingMessage): Promise<Body> {
  const chunks: Buffer[] = []
  for await (const chunk of request) chunks.push(chunk)
  return JSON.parse(Buffer.concat(chunks).toString())
}

async function respond (request: IncomingMessage): Promise<[status: number, body: unknown]> {
  const url = request.url!
  if (url === '/graphql') {
    const { query, variables } = await bodyOf<{ query: string, variables?: { id: string } }>(request)
    if (query.startsWith('mutation')) return [200, { data: { createPost: await createPost(uuid()) } }]
    const [user, posts] = await Promise.all([readUser(variables!.id), readPosts(variables!.id)])
    return [200, { data: { user: user ? { id: user.id, name: user['name'], posts } : null } }]
  }
  if (request.method === 'POST') {
    const { name, email } = await bodyOf<{ name: string, email: string }>(request)
    return [201, await createUser({ id: uuid(), name, email })]
  }
  if (url.startsWith('/api/users?')) return [200, await readPage(Number(url.slice(url.lastIndexOf('=') + 1)))]
  const user = await readUser(url.slice(url.lastIndexOf('/') + 1))
  return user ? [200, user] : [404, { code: 'USER_NOT_FOUND' }]
}

async function handle (request: IncomingMessage, response: ServerResponse): Promise<void> {
  const [status, body] = await respond(request)
  const payload = Buffer.isBuffer(body) ? body : JSON.stringify(body)
  response.writeHead(status, { 'content-type': 'application/json', 'content-length': Buffer.byteLength(payload) })
  response.end(payload)
}

const server = createServer({ keepAliveTimeout: 60_000 }, (request, response) => {
  handle(request, response).catch((error) => {
    console.error(error)
    response.writeHead(500).end()
  })
})
server.listen(Number(process.env['PORT'] ?? 0), '127.0.0.1', () => {
  console.log(`http://127.0.0.1:${(server.address() as AddressInfo).port}`)
})
process.on('SIGTERM', () => process.exit())
