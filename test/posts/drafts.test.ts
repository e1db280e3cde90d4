import t from 'tap'
import { actorOf } from '../helpers/actor.ts'
import { createKey } from '../helpers/api-keys.ts'
import { createUsher, sharedUsher, type LoggedIn } from '../helpers/app.ts'
import { openEvents } from '../helpers/events.ts'
import { openSocket, post as graphql } from '../helpers/graphql.ts'
import { openSql } from '../helpers/sql.ts'
import { until } from '../helpers/until.ts'

/** Publishes at once. */
const PAST = '2020-01-01T00:00:00Z'
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
  t.equal((await change(user, id, { publishedAt: PAST }, { 'if-match': `${own.headers.etag}` })).statusCode, 412)

  const query = `{ post(id: "${id}") { title publishedAt publishAt etag } drafts { nodes { id title } } }`
  t.strictSame((await graphql(usher, { query }, user)).data, {
    post: { title: 'Better', publishedAt: null, publishAt: null, etag: changed.headers.etag },
    drafts: { nodes: [{ id, title: 'Better' }] },
  })
  const { data: { createPost: second } } = await graphql(usher, {
    query: `mutation ($at: DateTime) {
      createPost(input: { title: "Second", content: "", publishedAt: $at }) { id publishedAt publishAt author { id } }
    }`,
    variables: { at: null },
  }, user)
  t.strictSame(second, { id: second.id, publishedAt: null, publishAt: null, author: { id: user.id } })
  t.equal((await remove(user, second.id)).statusCode, 204)
  const published = await change(user, id, { content: 'Final', publishedAt: PAST })
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
  const plain = ({ statusCode, headers, body }: Awaited<ReturnType<typeof read>>) =>
    ({ statusCode, headers: { ...headers, date: '', 'x-request-id': '' }, body })
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
  t.equal((await change(user, id, { publishedAt: PAST })).statusCode, 200)
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

t.test('22.4 what somebody has planned who had the account is not published after its repair', async (t) => {
  const user = await createUser()
  const [planned, other] = [
    (await write(user, { title: 'Planned', content: 'Words', publishedAt: later() })).json(),
    (await write(user, { title: 'Draft', content: '', publishedAt: null })).json(),
  ]
  t.type(planned.publishAt, 'string')
  const tag = (await read(other.id, user.headers)).headers.etag
  t.equal((await inject('DELETE', `/api/users/${user.id}/sessions`, { headers: admin.headers })).statusCode, 204)
  const { headers } = await usher.login(user)
  t.match((await read(planned.id, headers)).json(), { title: 'Planned', publishedAt: null, publishAt: null })
  t.equal((await read(other.id, headers)).headers.etag, tag, 'others are as they were')
})

t.test('22.4 subscribers get a draft once, when it is published, and hear of no other', async (t) => {
  const user = await createUser()
  const socket = await (await openSocket(t, usher)).init()
  socket.start('changes', `subscription {
    postChanged(authorId: "${user.id}") {
      __typename
      ... on PostCreated { cursor post { id title publishedAt publishAt } }
      ... on PostUpdated { post { id title } }
      ... on PostDeleted { id }
    }
  }`)
  await socket.settle()
  const create = async (title: string) =>
    (await write(user, { title, content: '', publishedAt: null })).json().id as string
  const [id, deleted] = [await create('Draft'), await create('Deleted')]
  await change(user, id, { title: 'Changed' })
  t.equal((await remove(user, deleted)).statusCode, 204)
  const query = `mutation { updatePost(id: "${id}", input: { publishedAt: "${PAST}" }) { cursor publishedAt } }`
  const { data: { updatePost: { cursor, publishedAt } } } = await graphql(usher, { query }, user)
  await remove(user, id)
  t.strictSame((await socket.next()).payload?.data.postChanged, {
    __typename: 'PostCreated', cursor, post: { id, title: 'Changed', publishedAt, publishAt: null },
  })
  t.strictSame((await socket.next()).payload?.data.postChanged, { __typename: 'PostDeleted', id })
})

t.test('22.4 two nodes, of which one loses its connection, publish each draft once, in order of the times', async (t) => {
  const node = await createUsher(t)
  const other = await createUsher(t, node.options)
  const sql = openSql(t, node, 3)
  const events = await openEvents(t, other, { path: '/api/posts/events' })
  const take = async (count: number, { next } = events) => {
    const found: { id: string, title: string }[] = []
    while (found.length < count) {
      const { id, data } = (await next())!
      found.push({ id: id!, title: JSON.parse(data!).title })
    }
    return found
  }
  const publishing = () => sql`select pid from pg_stat_activity
    where wait_event_type = 'Lock' and query like ${`%delete from "${node.options.schema!}"."post_drafts"%`}`
  // Every new post waits for this one.
  const writer = await sql.reserve()
  await writer`begin`
  await writer`insert into posts (id, author_id, title, content) values (uuidv7(), ${node.admin.id}, '251', '')`
  await sql`insert into post_drafts (id, author_id, title, content, publish_at)
    select uuidv7(), ${node.admin.id}, n::text, '', now() - n * interval '1 ms' from generate_series(1, 250) n`
  await until('both nodes publish', async () => (await publishing()).length === 2)
  await sql`select pg_terminate_backend(${(await publishing())[0]!['pid']})`
  await writer`commit`
  writer.release()

  const expected = Array.from({ length: 251 }, (_, index) => `${251 - index}`)
  const posts = await take(251)
  t.strictSame(posts.map(({ title }) => title), expected)
  const resumed = await openEvents(t, node, { path: '/api/posts/events', headers: { 'last-event-id': posts[99]!.id } })
  t.strictSame(await take(151, resumed), posts.slice(100))
  const rows = await sql`select title from posts order by position`
  t.strictSame(rows.map(({ title }) => title), expected)
  t.equal((await sql`select from post_drafts`).length, 0)
})

t.test('22.4 app.usher creates, reads, lists, plans, publishes and deletes drafts of an actor', async (t) => {
  const { posts } = usher.app.usher
  const [user, other] = [await createUser(), await createUser()]
  const [actor, stranger] = [await actorOf(usher, user), await actorOf(usher, other)]
  const draft = await posts.create({ title: 'Draft', content: 'a', publishedAt: null }, { actor })
  t.match(draft, { authorId: user.id, title: 'Draft', publishedAt: null, publishAt: null })
  t.same(await posts.get(draft.id, { actor }), draft)
  for (const options of [undefined, { actor: null }, { actor: stranger }]) {
    await t.rejects(posts.get(draft.id, options), { statusCode: 404, code: 'POST_NOT_FOUND' })
  }
  const second = await posts.create({ title: 'Second', content: '', publishedAt: null }, { actor })
  const { data, page } = await posts.listDrafts({ limit: 1 }, { actor })
  t.same(data, [second])
  const next = await posts.listDrafts({ limit: 1, after: page.next! }, { actor })
  t.same(next, { data: [draft], page: { next: null, limit: 1 } })
  await t.rejects(posts.listDrafts({}, { actor: null }), { statusCode: 401, code: 'UNAUTHENTICATED' })
  const invalid = { statusCode: 400, code: 'INVALID_INPUT' }
  const time = new Date(Date.now() + 86_400_000)
  t.match(await posts.update(draft.id, { publishedAt: time }, { actor }), { publishedAt: null, publishAt: time })
  for (const publishedAt of [new Date(Number.NaN), 'x', 5]) {
    await t.rejects(posts.update(draft.id, { publishedAt: publishedAt as Date }, { actor }), invalid)
  }
  const published = await posts.update(draft.id, { publishedAt: new Date(0) }, { actor })
  t.match(published, { id: draft.id, publishedAt: published.createdAt, publishAt: null })
  t.same(await posts.get(draft.id), published)
  await posts.delete(second.id, { actor })
  t.same((await posts.listDrafts(undefined, { actor })).data, [])
  await t.rejects(
    posts.create({ title: 'x', content: '', authorId: user.id, publishedAt: null }), invalid
  )
})

t.test('22.4 an API key without posts:read reads no drafts, though it reads posts', async (t) => {
  const user = await createUser()
  const { id } = (await write(user, { title: 'Secret', content: '', publishedAt: null })).json()
  for (const [actions, status, list] of [[['posts:read'], 200, 200], [['posts:create'], 404, 403]] as const) {
    const { headers } = await createKey(usher, user, { actions: [...actions] })
    t.equal((await read(id, headers)).statusCode, status, actions[0])
    t.equal((await inject('GET', '/api/posts/drafts', { headers })).statusCode, list, actions[0])
    t.equal((await inject('GET', '/api/posts', { headers })).statusCode, 200, actions[0])
    t.equal((await change(user, id, { publishedAt: null })).statusCode, 200)
  }
  const { headers } = await createKey(usher, user, { actions: ['posts:update'] })
  const publish = () => inject('PATCH', `/api/posts/${id}`, { headers, payload: { publishedAt: PAST } })
  t.match((await publish()).json(), { code: 'ACTION_NOT_GRANTED' }, 'publishing is creating a post')
})

t.test('22.4 the own export has drafts, that of an admin none, and they are deleted with their author', async (t) => {
  const user = await createUser()
  const sql = openSql(t, usher)
  const draft = (await write(user, { title: 'Mine', content: 'Words', publishedAt: null })).json()
  const exportAs = ({ headers }: LoggedIn) => inject('GET', `/api/users/${user.id}/export`, { headers })
  const { id, title, content, createdAt, publishAt } = draft
  t.strictSame((await exportAs(user)).json().drafts, [{ id, title, content, createdAt, publishAt }])
  const byAdmin = (await exportAs(admin)).json()
  t.notOk('drafts' in byAdmin)
  t.notOk(JSON.stringify(byAdmin).includes('Mine'))
  t.equal((await inject('DELETE', `/api/users/${user.id}`, { headers: admin.headers })).statusCode, 204)
  t.equal((await sql`select from post_drafts where author_id = ${user.id}`).length, 0)
  t.equal((await read(id, admin.headers)).statusCode, 404)
})

t.test('22.4 a user has at most 1,000 drafts, also if several are created at once', async (t) => {
  const user = await createUser()
  const sql = openSql(t, usher)
  await sql`alter table post_drafts disable trigger limit_drafts`
  await sql`insert into post_drafts (id, author_id, title, content)
    select uuidv7(), ${user.id}, 'x', '' from generate_series(1, 998)`
  await sql`alter table post_drafts enable trigger limit_drafts`
  const create = () => write(user, { title: 'x', content: '', publishedAt: null })
  const responses = await Promise.all(Array.from({ length: 6 }, create))
  t.strictSame(responses.map(({ statusCode }) => statusCode).sort(), [201, 201, 409, 409, 409, 409])
  t.equal(responses.find(({ statusCode }) => statusCode === 409)!.json().code, 'TOO_MANY_DRAFTS')
})

t.test('22.4 drafts count as posts of an hour, and publishing does not count again', async (t) => {
  const node = await createUsher(t, { postsPerHour: 2 })
  const send = (payload: object) => node.inject('POST', '/api/posts', { headers: node.admin.headers, payload })
  const { id } = (await send({ title: 'A', content: '', publishedAt: null })).json()
  t.equal((await send({ title: 'B', content: '' })).statusCode, 201)
  t.equal((await node.inject('PATCH', `/api/posts/${id}`, {
    headers: node.admin.headers, payload: { publishedAt: PAST },
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
    headers, payload: { publishedAt: PAST },
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
