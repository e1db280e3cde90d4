import t from 'tap'
import { createUsher, sharedUsher, type LoggedIn } from '../helpers/app.ts'
import { post as graphql } from '../helpers/graphql.ts'
import { openSql } from '../helpers/sql.ts'

const usher = await sharedUsher()
const { inject, admin, createUser } = usher

const write = (user: LoggedIn, payload: object, headers = {}) =>
  inject('POST', '/api/posts', { headers: { ...user.headers, ...headers }, payload })
const titlesOf = (response: { json (): unknown }) => (response.json() as { title: string }[]).map(({ title }) => title)

t.test('22.2 a post is created, read, changed and deleted, and GraphQL shows the same', async (t) => {
  const user = await createUser()
  const created = await write(user, { title: ' First ', content: 'Words\nof mine' })
  t.equal(created.statusCode, 201)
  const { id, cursor, createdAt } = created.json()
  t.strictSame(created.json(), {
    id, authorId: user.id, title: 'First', content: 'Words\nof mine', createdAt, publishedAt: createdAt, cursor,
  })
  t.match(created.headers, { location: `/api/posts/${id}`, etag: /^"\w+"$/ })

  const read = await inject('GET', `/api/posts/${id.toUpperCase()}`)
  t.strictSame(read.json(), created.json())
  const { data } = await graphql(usher, { query: `{ post(id: "${id}") { title content cursor etag author { id } } }` })
  t.strictSame(data.post, {
    title: 'First', content: 'Words\nof mine', cursor, etag: created.headers.etag, author: { id: user.id },
  })
  const etag = `${created.headers.etag}`
  t.equal((await inject('GET', `/api/posts/${id}`, { headers: { 'if-none-match': etag } })).statusCode, 304)

  const change = (headers: object, payload: object) =>
    inject('PATCH', `/api/posts/${id}`, { headers: { ...user.headers, ...headers }, payload })
  const changed = await change({ 'if-match': etag }, { title: 'Second' })
  t.match(changed.json(), { title: 'Second', content: 'Words\nof mine', cursor })
  t.not(changed.headers.etag, etag)
  t.equal((await change({ 'if-match': etag }, { title: 'Third' })).statusCode, 412)
  t.equal((await change({ 'if-none-match': `${changed.headers.etag}` }, { title: 'Third' })).statusCode, 412)
  t.strictSame((await change({}, { title: '', content: null })).json(), {
    errors: ['title must not be blank', 'content must not be null'],
  })

  const remove = (headers = {}) =>
    inject('DELETE', `/api/posts/${id}`, { headers: { ...user.headers, ...headers } })
  t.equal((await remove({ 'if-match': etag })).statusCode, 412)
  t.equal((await remove()).statusCode, 204)
  for (const response of [await remove(), await change({}, {}), await inject('GET', `/api/posts/${id}`)]) {
    t.equal(response.statusCode, 404)
    t.equal(response.json().code, 'POST_NOT_FOUND')
  }
})

t.test('22.2 only the author and admins change a post, and 403 comes before 400', async (t) => {
  const [user, other] = [await createUser(), await createUser()]
  const { id } = (await write(user, { title: 'Mine', content: '' })).json()
  const sent = { headers: other.headers, payload: { title: '' } }
  t.equal((await inject('PATCH', `/api/posts/${id}`, sent)).statusCode, 403)
  t.equal((await inject('DELETE', `/api/posts/${id}`, { headers: other.headers })).statusCode, 403)
  t.equal((await write(other, { title: '', authorId: user.id })).statusCode, 403)
  t.equal((await inject('PATCH', `/api/posts/${id}`, { payload: { title: 'x' } })).statusCode, 401)
  const byAdmin = await inject('PATCH', `/api/posts/${id}`, { headers: admin.headers, payload: { title: 'Checked' } })
  t.equal(byAdmin.json().title, 'Checked')
  t.match((await write(admin, { title: 'For you', content: '', authorId: user.id.toUpperCase() })).json(), {
    authorId: user.id,
  })
  t.equal((await write(admin, { title: 'x', content: '', authorId: crypto.randomUUID() })).json().code, 'USER_NOT_FOUND')
  t.strictSame((await write(user, { title: 7, content: 'x'.repeat(65_537) })).json(), {
    errors: ['title must be a string', 'content must be at most 65536 bytes'],
  })
})

t.test('22.2 a repeated request creates one post, and gets the same response', async (t) => {
  const user = await createUser()
  const send = (title: string) => write(user, { title, content: '' }, { 'idempotency-key': 'once' })
  const [first, ...others] = await Promise.all([send('Once'), send('Once'), send('Once')])
  for (const other of others) t.equal(other.body, first.body)
  for (const { headers } of [first, ...others]) t.equal(headers.etag, first.headers.etag)
  t.equal((await send('Another')).json().code, 'IDEMPOTENCY_KEY_REUSED')
  t.equal((await inject('GET', `/api/posts?authorId=${user.id}`)).json().length, 1)
})

t.test('22.2 a list has filters, an order and pages, and revalidates', async (t) => {
  const user = await createUser()
  for (const title of ['A', 'B', 'C', 'D', 'E']) await write(user, { title, content: title })
  const list = (query: string, headers = {}) => inject('GET', `/api/posts?authorId=${user.id}${query}`, { headers })
  t.strictSame(titlesOf(await list('')), ['E', 'D', 'C', 'B', 'A'])
  t.strictSame(titlesOf(await list('&sort=createdAt')), ['A', 'B', 'C', 'D', 'E'])
  for (const [sort, expected] of [['createdAt', 'ABCDE'], ['-createdAt', 'EDCBA']] as const) {
    let [found, next] = ['', `/api/posts?authorId=${user.id}&limit=2&sort=${sort}`]
    for (let pages = 0; next !== ''; pages++) {
      const page = await inject('GET', next)
      found += titlesOf(page).join('')
      next = /^<(.*)>; rel="next"$/.exec(`${page.headers.link ?? ''}`)?.[1] ?? ''
      t.ok(pages < 3)
    }
    t.equal(found, expected)
  }
  const { headers: { etag } } = await list('&limit=3')
  t.equal((await list('&limit=3', { 'if-none-match': etag })).statusCode, 304)
  await inject('PATCH', `/api/posts/${(await list('&limit=1')).json()[0].id}`, {
    headers: user.headers, payload: { content: 'changed' },
  })
  t.equal((await list('&limit=3', { 'if-none-match': etag })).statusCode, 200)
  t.strictSame((await list('&limit=0&after=x&since=today')).json().errors.length, 3)
  t.strictSame((await list('&since=2026-02-31T25:00:00Z')).statusCode, 400)
  t.equal((await list('&q2=x', { prefer: 'handling=strict' })).statusCode, 400)
  t.strictSame((await inject('GET', '/api/posts?authorId=nobody')).json(), [])
})

t.test('22.2 since lists the posts that were created then or later, also if transactions began in another order', async (t) => {
  const node = await createUsher(t)
  const sql = openSql(t, node)
  const write = async (title: string, createdAt: string) => sql`
    insert into posts (id, author_id, title, content, created_at) values (uuidv7(), ${node.admin.id}, ${title}, '', ${createdAt})`
  for (const [title, second] of [['A', 1], ['B', 3], ['C', 2], ['D', 4], ['E', 3]] as const) {
    await write(title, `2026-01-01T00:00:0${second}Z`)
  }
  const list = async (query: string) => titlesOf(await node.inject('GET', `/api/posts?${query}`)).join('')
  t.equal(await list('since=2026-01-01T00:00:03Z'), 'EDB')
  t.equal(await list('since=2026-01-01T01:00:03%2B01:00&sort=createdAt'), 'BDE')
  t.equal(await list('since=2026-01-01T00:00:02Z'), 'EDCB')
  t.equal(await list('since=2026-01-01T00:00:05Z'), '')
  t.equal(await list(`since=2026-01-01T00:00:03Z&authorId=${node.admin.id}&limit=2`), 'ED')
})

t.test('22.2 a page with more than 4 MiB of content has fewer posts, and the next page goes on there', async (t) => {
  const node = await createUsher(t)
  const sql = openSql(t, node)
  await sql`insert into posts (id, author_id, title, content) select uuidv7(), ${node.admin.id}, 'Large', repeat('x', 65536)
    from generate_series(1, 150)`
  let [found, next] = [0, 'limit=1000']
  const sizes: number[] = []
  while (next !== '') {
    const page = await node.inject('GET', `/api/posts?${next}`)
    const posts = page.json() as { content: string }[]
    sizes.push(posts.length)
    found += posts.filter(({ content }) => content.length === 65_536).length
    next = /\?(.*)>/.exec(`${page.headers.link ?? ''}`)?.[1] ?? ''
  }
  t.strictSame(sizes, [64, 64, 22])
  t.equal(found, 150)
})

t.test('22.2 requests for a page at the same time share a statement and a rendering', async (t) => {
  const node = await createUsher(t)
  for (let index = 0; index < 30; index++) {
    await node.inject('POST', '/api/posts', { headers: node.admin.headers, payload: { title: 'x', content: 'y'.repeat(200) } })
  }
  const batches = async () => {
    const found = (await node.app.usher.metrics()).find(({ name }) => name === 'usher_batch_items')!.samples
      .find(({ labels }) => labels['batch'] === 'posts.list-whole')
    return found && 'count' in found ? found.count : 0
  }
  const pages = await Promise.all(Array.from({ length: 100 }, () => node.inject('GET', '/api/posts')))
  t.ok(pages.every(({ body }) => body === pages[0]!.body))
  t.ok(await batches() < 10, `${await batches()} statements`)
})

t.test('22.2 posts of an hour are limited, and a mount without posts has no routes of them', async (t) => {
  const limited = await createUsher(t, { postsPerHour: 1 })
  const send = () =>
    limited.inject('POST', '/api/posts', { headers: limited.admin.headers, payload: { title: 'x', content: '' } })
  t.equal((await send()).statusCode, 201)
  const rejected = await send()
  t.match(rejected.json(), { code: 'TOO_MANY_POSTS' })
  t.ok(Number(rejected.headers['retry-after']) > 3500)
  const without = await createUsher(t, { without: ['posts'] })
  for (const path of ['/api/posts', '/api/posts/events', `/api/posts/${crypto.randomUUID()}`]) {
    t.equal((await without.inject('GET', path)).json().code, 'NOT_FOUND')
  }
})

t.test('22.2 with posts for members only, strangers get 401, and members what others get', async (t) => {
  const closed = await createUsher(t, { policy: { 'posts:read': (actor) => actor !== null } })
  const { id } = (await closed.inject('POST', '/api/posts', {
    headers: closed.admin.headers, payload: { title: 'x', content: '' },
  })).json()
  for (const path of ['/api/posts', '/api/posts/events', `/api/posts/${id}`, `/api/posts/${crypto.randomUUID()}`]) {
    t.equal((await closed.inject('GET', path)).statusCode, 401, path)
  }
  const read = await closed.inject('GET', '/api/posts', { headers: closed.admin.headers })
  t.equal(read.json().length, 1)
  t.match(read.headers, { vary: /authorization/i, 'cache-control': 'private, no-cache' })
})
