import t from 'tap'
import { createUsher, type LoggedIn, type TestUsher } from '../helpers/app.ts'
import { openEvents, type Events } from '../helpers/events.ts'
import { createPost } from '../helpers/graphql.ts'
import { openSql } from '../helpers/sql.ts'
import { until } from '../helpers/until.ts'

const writer = await createUsher(t)
const usher = await createUsher(t, { ...writer.options, without: ['graphql'] })

const sql = openSql(t, writer)

const follow = (t: Parameters<typeof openEvents>[0], init: object = {}, node: TestUsher = usher) =>
  openEvents(t, node, { path: '/api/posts/events', ...init })
async function titles (events: Events, count: number): Promise<string[]> {
  const found: string[] = []
  while (found.length < count) found.push(JSON.parse((await events.next())!.data!).title)
  return found
}
const write = (title: string, user: LoggedIn = writer.admin) => createPost(writer, user, title)

t.test('22.2 posts of another node arrive as events, in order, without GraphQL', async (t) => {
  const events = await follow(t)
  t.match(Object.fromEntries(events.response.headers), {
    'content-type': /^text\/event-stream/, 'cache-control': 'no-store',
  })
  t.match(await events.any(), { retry: '1000', id: /^[\w-]{16}$/ })
  const id = await write('First')
  const event = (await events.next())!
  const post = JSON.parse(event.data!)
  t.match(event, { event: 'post.created', id: post.cursor })
  t.strictSame(post, (await usher.inject('GET', `/api/posts/${id}`)).json())
  await Promise.all(Array.from({ length: 20 }, (_, index) => write(`${index}`)))
  const live = await titles(events, 20)
  const { cursor } = post
  const replayed = await titles(await follow(t, { query: `?after=${cursor}` }), 20)
  t.strictSame(replayed, live)
  t.equal(new Set(live).size, 20)
})

t.test('22.2 changes and deletions arrive as events as well', async (t) => {
  const user = await writer.createUser()
  const events = await follow(t, { query: `?authorId=${user.id}` })
  const id = await write('New', user)
  const path = `/api/posts/${id}`
  const change = await writer.inject('PATCH', path, { headers: user.headers, payload: { title: 'Changed' } })
  t.equal(change.statusCode, 200)
  await writer.inject('DELETE', path, { headers: user.headers })
  const [created, updated, deleted] = [await events.next(), await events.next(), await events.next()]
  t.strictSame([created, updated, deleted].map((event) => event!.event), ['post.created', 'post.updated', 'post.deleted'])
  t.strictSame(JSON.parse(updated!.data!), change.json())
  t.strictSame(JSON.parse(deleted!.data!), { id })
  const again = await follow(t, { headers: { 'last-event-id': updated!.id! } })
  t.match(await again.next(), { event: 'post.deleted', data: JSON.stringify({ id }) })
})

t.test('22.2 Last-Event-ID resumes the stream after the event, before the argument after', async (t) => {
  const first = await follow(t)
  for (const title of ['One', 'Two', 'Three']) await write(title)
  const { id } = (await first.next())!
  const headers = { 'last-event-id': id! }
  t.strictSame(await titles(await follow(t, { headers }), 2), ['Two', 'Three'])
  const start = Buffer.alloc(12).toString('base64url')
  t.strictSame(await titles(await follow(t, { headers, query: `?after=${start}` }), 2), ['Two', 'Three'])
  for (const init of [{ headers: { 'last-event-id': 'x' } }, { query: '?after=x' }]) {
    const { response } = await follow(t, init)
    t.equal(response.status, 400)
    t.strictSame(await response.json(), { errors: ['after must be the cursor of a post'] })
  }
})

t.test('22.2 posts of one author only', async (t) => {
  const user = await writer.createUser()
  const events = await follow(t, { query: `?authorId=${user.id.toUpperCase()}` })
  await write('Of another')
  await write('Mine', user)
  t.strictSame(await titles(events, 1), ['Mine'])
})

t.test('22.2 a stream ends when the session of its reader ends, and no post arrives after', async (t) => {
  const closed = await createUsher(t, { ...writer.options, policy: { 'posts:read': (actor) => actor !== null } })
  const user = await writer.createUser()
  const events = await follow(t, { headers: user.headers }, closed)
  await write('Before')
  t.strictSame(await titles(events, 1), ['Before'])
  await writer.inject('POST', '/api/auth/logout', { headers: user.headers })
  await write('After')
  t.equal(await events.next(), undefined)
  t.equal((await follow(t, { headers: user.headers }, closed)).response.status, 401)
})

t.test('22.2 event streams count among the connections of a network', async (t) => {
  const node = await createUsher(t, { ...writer.options, live: { connectionsPerNetwork: 2 } })
  const streams = [await follow(t, {}, node), await follow(t, {}, node)]
  const { response } = await follow(t, {}, node)
  t.equal(response.status, 429)
  t.equal(response.headers.get('retry-after'), '5')
  t.match(await response.json(), { code: 'TOO_MANY_CONNECTIONS' })
  streams[0]!.abort()
  await until('there is room again', async () => {
    const { response } = await follow(t, {}, node)
    return response.status === 200
  })
})

t.test('22.2 a client that reads nothing delays nobody, takes little memory, and gets every post once it reads', async (t) => {
  const [slow, quick] = [await follow(t), await follow(t)]
  // More than the buffers of both operating systems hold.
  await sql`insert into posts (id, author_id, title, content)
    select uuidv7(), ${writer.admin.id}, n::text, repeat('x', 60000) from generate_series(1, 300) n`
  const expected = Array.from({ length: 300 }, (_, index) => `${index + 1}`)
  t.strictSame(await titles(quick, 300), expected)
  const unread = (await usher.app.usher.metrics()).find(({ name }) => name === 'usher_unread_bytes')!.samples[0]!
  t.ok('value' in unread && unread.value > 0 && unread.value < 1024 * 1024, JSON.stringify(unread))
  t.strictSame(await titles(slow, 300), expected)
})
