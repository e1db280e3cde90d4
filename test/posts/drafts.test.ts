import t from 'tap'
import { createUsher, sharedUsher, type LoggedIn } from '../helpers/app.ts'
import { post as graphql } from '../helpers/graphql.ts'
import { openSql } from '../helpers/sql.ts'
import { until } from '../helpers/until.ts'

const usher = await sharedUsher()
const { inject, admin, createUser } = usher

const write = (user: LoggedIn, payload: object, headers = {}) =>
  inject('POST', '/api/posts', { headers: { ...user.headers, ...headers }, payload })
const read = (id: string, headers = {}) => inject('GET', `/api/posts/${id}`, { headers })
const change = (user: LoggedIn, id: string, payload: object, headers = {}) =>
  inject('PATCH', `/api/posts/${id}`, { headers: { ...user.headers, ...headers }, payload })
const remove = (user: LoggedIn, id: string) => inject('DELETE', `/api/posts/${id}`, { headers: user.headers })
const later = () => new Date(Date.now() + 86_400_000).toISOString()

t.test('22.4 a draft is created, read, listed, changed, published and seen by all, and GraphQL does the same', async (t) => {
  const [user, other] = [await createUser(), await createUser()]
  const created = await write(user, { title: 'Draft', content: 'Words', publishedAt: null })
  t.equal(created.statusCode, 201)
  const { id } = created.json()
  t.match(created.json(), { authorId: user.id, title: 'Draft', content: 'Words', publishedAt: null, publishAt: null })
  const own = await read(id.toUpperCase(), user.headers)
  t.strictSame(own.json(), created.json())
  t.equal(own.headers.etag, created.headers.etag)
  t.equal((await read(id, { ...user.headers, 'if-none-match': `${own.headers.etag}` })).statusCode, 304)
  const list = () => inject('GET', '/api/posts/drafts', { headers: user.headers })
  t.strictSame((await list()).json(), [created.json()])
  t.strictSame((await inject('GET', `/api/posts?authorId=${user.id}`, { headers: user.headers })).json(), [])
  t.equal((await inject('GET', '/api/posts/drafts')).statusCode, 401)
  t.strictSame((await inject('GET', '/api/posts/drafts', { headers: other.headers })).json(), [])

  const changed = await change(user, id, { title: 'Better' }, { 'if-match': `${own.headers.etag}` })
  t.match(changed.json(), { title: 'Better', publishedAt: null })
  t.equal((await change(user, id, { title: 'Lost' }, { 'if-match': `${own.headers.etag}` })).statusCode, 412)
  t.equal((await change(user, id, { publishedAt: '2020-01-01T00:00:00Z' }, { 'if-match': `${own.headers.etag}` })).statusCode, 412)

  const query = `{ post(id: "${id}") { title publishedAt publishAt etag } drafts { nodes { id title } } }`
  t.strictSame((await graphql(usher, { query }, user)).data, {
    post: { title: 'Better', publishedAt: null, publishAt: null, etag: changed.headers.etag },
    drafts: { nodes: [{ id, title: 'Better' }] },
  })
  const published = await change(user, id, { content: 'Final', publishedAt: '2020-01-01T00:00:00Z' })
  t.equal(published.statusCode, 200)
  const { createdAt, publishedAt } = published.json()
  t.match(published.json(), { id, title: 'Better', content: 'Final' })
  t.equal(createdAt, publishedAt)
  t.notOk('publishAt' in published.json())
  t.ok(Date.parse(createdAt) >= Date.parse(created.json().createdAt))
  t.not(published.headers.etag, changed.headers.etag)
  t.strictSame((await read(id)).json(), published.json())
  t.strictSame((await list()).json(), [])
  for (const publishedAt of [null, later()]) {
    t.equal((await change(user, id, { publishedAt })).json().code, 'ALREADY_PUBLISHED')
  }
  t.equal((await change(user, id, { title: 'Again', publishedAt: createdAt })).json().title, 'Again')
})

t.test('22.4 to everybody else a draft is an unknown id, byte for byte, also to admins', async (t) => {
  const [user, other] = [await createUser(), await createUser()]
  const { id } = (await write(user, { title: 'Secret', content: '', publishedAt: null })).json()
  const unknown = '01900000-0000-7000-8000-000000000000'
  const plain = ({ statusCode, headers: { date, 'x-request-id': _, ...headers }, body }: Awaited<ReturnType<typeof read>>) =>
    ({ statusCode, headers, body })
  for (const headers of [{}, other.headers, admin.headers, { authorization: 'Bearer wrong' }]) {
    for (const method of ['GET', 'HEAD', 'PATCH', 'DELETE'] as const) {
      const send = async (id: string) => plain(await inject(method, `/api/posts/${id}`, {
        headers: { ...headers, 'if-none-match': '"x"' }, ...method === 'PATCH' && { payload: { title: 'Mine' } },
      }))
      t.strictSame(await send(id), await send(unknown), `${method} ${JSON.stringify(headers).slice(0, 30)}`)
    }
  }
  const query = `{ post(id: "${id}") { id } }`
  t.strictSame((await graphql(usher, { query }, admin)).data, { post: null })
  t.strictSame((await graphql(usher, { query })).data, { post: null })
  t.equal((await write(admin, { title: 'x', content: '', publishedAt: null, authorId: user.id })).statusCode, 400)
  t.equal((await read(id, user.headers)).statusCode, 200)
})

t.test('22.4 a deleted draft leaves nothing, and a repeated request returns what the first one did', async (t) => {
  const user = await createUser()
  const sql = openSql(t, usher)
  const create = () => write(user, { title: 'Once', content: '', publishedAt: null }, { 'idempotency-key': 'draft' })
  const first = await create()
  t.equal((await create()).body, first.body)
  const { id } = first.json()
  await change(user, id, { publishedAt: '2020-01-01T00:00:00Z' })
  t.equal((await create()).body, first.body, 'once it is published')
  t.equal((await remove(user, id)).statusCode, 204)
  t.equal((await create()).json().code, 'GONE')

  const second = (await write(user, { title: 'Gone', content: '', publishedAt: null }, { 'idempotency-key': 'x' })).json()
  t.equal((await remove(user, second.id)).statusCode, 204)
  t.equal((await read(second.id, user.headers)).statusCode, 404)
  t.equal((await sql`select from post_deletions where post_id = ${second.id}`).length, 0)
  t.equal((await sql`select from idempotency_keys where record_id = ${second.id} and result is not null`).length, 0)
})

t.test('22.4 a draft is published at its time, and a time that comes while the author is disabled passes', async (t) => {
  const [user, disabled] = [await createUser(), await createUser()]
  const sql = openSql(t, usher)
  const time = later()
  const planned = await write(user, { title: 'Later', content: '', publishedAt: time })
  t.match(planned.json(), { publishedAt: null, publishAt: time })
  const { id } = planned.json()
  t.match((await change(user, id, { publishedAt: null })).json(), { publishedAt: null, publishAt: null })
  t.match((await change(user, id, { publishedAt: time })).json(), { publishAt: time })
  const first = (await write(user, { title: 'Earlier', content: '', publishedAt: time })).json()
  const held = (await write(disabled, { title: 'Held', content: '', publishedAt: time })).json()
  await inject('PATCH', `/api/users/${disabled.id}`, { headers: admin.headers, payload: { disabled: true } })
  await sql`update post_drafts set publish_at = case id when ${first.id}::uuid then now() - interval '2 s' else now() end
    where id in (${id}, ${first.id}, ${held.id})`
  await until('the drafts are published', async () => (await read(id)).statusCode === 200)
  const posts = (await inject('GET', `/api/posts?authorId=${user.id}&sort=createdAt`)).json() as { title: string }[]
  t.strictSame(posts.map(({ title }) => title), ['Earlier', 'Later'])
  await until('the time has passed', async () =>
    (await sql`select from post_drafts where id = ${held.id} and publish_at is null`).length === 1)
  t.equal((await read(held.id)).statusCode, 404)
})

t.test('22.4 several nodes publish each draft once, and subscribers get it as a new post', async (t) => {
  const node = await createUsher(t)
  const nodes = [node, await createUsher(t, { databaseUrl: node.options.databaseUrl, schema: node.options.schema })]
  const sql = openSql(t, node)
  await sql`insert into post_drafts (id, author_id, title, content, publish_at)
    select uuidv7(), ${node.admin.id}, lpad(n::text, 3, '0'), '', now() - n * interval '1 ms' from generate_series(1, 250) n`
  await until('all are published', async () => (await sql`select from post_drafts`).length === 0)
  const rows = await sql`select title from posts order by position`
  t.strictSame(rows.map(({ title }) => Number(title)), Array.from({ length: 250 }, (_, index) => 250 - index))
  t.equal(nodes.length, 2)
})

t.test('22.4 a user has at most 1,000 drafts, also if several are created at once', async (t) => {
  const user = await createUser()
  const sql = openSql(t, usher)
  await sql`alter table post_drafts disable trigger limit_drafts`
  await sql`insert into post_drafts (id, author_id, title, content)
    select uuidv7(), ${user.id}, 'x', '' from generate_series(1, 998)`
  await sql`alter table post_drafts enable trigger limit_drafts`
  const responses = await Promise.all(Array.from({ length: 6 }, () => write(user, { title: 'x', content: '', publishedAt: null })))
  t.strictSame(responses.map(({ statusCode }) => statusCode).sort(), [201, 201, 409, 409, 409, 409])
  t.equal(responses.find(({ statusCode }) => statusCode === 409)!.json().code, 'TOO_MANY_DRAFTS')
})

t.test('22.4 drafts count as posts of an hour, and publishing does not count again', async (t) => {
  const node = await createUsher(t, { postsPerHour: 2 })
  const send = (payload: object) => node.inject('POST', '/api/posts', { headers: node.admin.headers, payload })
  const { id } = (await send({ title: 'A', content: '', publishedAt: null })).json()
  t.equal((await send({ title: 'B', content: '' })).statusCode, 201)
  t.equal((await node.inject('PATCH', `/api/posts/${id}`, {
    headers: node.admin.headers, payload: { publishedAt: '2020-01-01T00:00:00Z' },
  })).statusCode, 200)
  t.equal((await send({ title: 'C', content: '', publishedAt: null })).statusCode, 429)
})

t.test('22.4 hooks run when a draft is published, and what they reject remains a draft', async (t) => {
  const seen: string[] = []
  const node = await createUsher(t, {
    hooks: {
      beforePostCreate: (post) => {
        if (post.title === 'No') throw Object.assign(new Error('not that'), { statusCode: 422 })
        return { ...post, title: `${post.title}!` }
      },
      onPostCreate: ({ title }) => { seen.push(title) },
    },
  })
  const { admin: { headers } } = node
  const draft = async (title: string) => (await node.inject('POST', '/api/posts', {
    headers, payload: { title, content: '', publishedAt: null },
  })).json().id as string
  const [yes, no] = [await draft('Yes'), await draft('No')]
  t.strictSame(seen, [])
  const publish = (id: string) => node.inject('PATCH', `/api/posts/${id}`, {
    headers, payload: { publishedAt: '2020-01-01T00:00:00Z' },
  })
  t.equal((await publish(yes)).json().title, 'Yes!')
  t.equal((await publish(no)).statusCode, 422)
  const sql = openSql(t, node)
  const due = await draft('Due')
  await sql`update post_drafts set publish_at = now()`
  await until('it is published', async () => (await node.inject('GET', `/api/posts/${due}`)).statusCode === 200)
  t.strictSame(seen, ['Yes!', 'Due!'])
  await until('the time is gone', async () =>
    (await sql`select from post_drafts where id = ${no} and publish_at is null`).length === 1)
})
