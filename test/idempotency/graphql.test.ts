import { randomUUID } from 'node:crypto'
import t from 'tap'
import type { LoggedIn, TestUsher } from '../helpers/app.ts'
import { createPost, openSocket, post, protocols, titles } from '../helpers/graphql.ts'
import { shareOne, shareTwo } from '../helpers/idempotency.ts'
import { nightly } from '../helpers/nightly.ts'
import { startWithEvents } from '../helpers/outbox-events.ts'
import { openSql } from '../helpers/sql.ts'
import { until } from '../helpers/until.ts'

const CREATE =
  'mutation ($title: String!) { createPost(input: { title: $title, content: "Words" }) { id cursor title content createdAt author { id } } }'

const send = ({ inject, admin }: TestUsher, body: object, headers: object = {}, user: LoggedIn = admin) =>
  inject('POST', '/graphql', { headers: { ...user.headers, ...headers }, payload: body })

const codeOf = (response: { json (): any }) => response.json().errors?.[0].extensions.code

t.test('10.4 a mutation with a key is performed once on all nodes, and returns the same body', async (t) => {
  const [one, other] = await shareTwo()
  const sql = openSql(t, one)
  const body = { query: CREATE, variables: { title: 'Once' } }
  const responses = await Promise.all(
    Array.from({ length: 40 }, (_, index) => send(index % 2 ? one : other, body, { 'idempotency-key': 'key' }))
  )
  t.equal(new Set(responses.map(({ body }) => body)).size, 1, responses[0]!.body)
  t.match(
    responses[0]!.json(), { data: { createPost: { title: 'Once', content: 'Words', author: { id: one.admin.id } } } }
  )
  t.equal(responses.filter(({ headers }) => headers['idempotency-replayed'] === undefined).length, 1)
  t.equal((await sql`select from posts where author_id = ${one.admin.id}`).length, 1)

  const { id } = responses[0]!.json().data.createPost
  await post(
    one,
    { query: 'mutation ($id: ID!) { updatePost(id: $id, input: { title: "Changed" }) { id } }', variables: { id } },
    one.admin
  )
  const again = await send(other, { ...body, extensions: { idempotencyKey: 'key' } })
  t.same([again.body, again.headers['idempotency-replayed']], [responses[0]!.body, 'true'], 'in the extensions as well')
})

t.test('10.4 the key of another operation, other variables or another REST request is reused', async (t) => {
  const usher = await shareOne()
  const key = { 'idempotency-key': 'key' }
  await send(usher, { query: CREATE, variables: { title: 'One' } }, key)
  t.equal(codeOf(await send(usher, { query: CREATE, variables: { title: 'Two' } }, key)), 'IDEMPOTENCY_KEY_REUSED')
  t.equal(
    codeOf(
      await send(usher, { query: CREATE.replace('createPost', 'other: createPost'), variables: { title: 'One' } }, key)
    ),
    'IDEMPOTENCY_KEY_REUSED'
  )
  const { inject, admin } = usher
  const response = await inject('POST', '/api/users', {
    headers: { ...admin.headers, ...key }, payload: { name: 'A', email: `${randomUUID()}@example.com` },
  })
  t.equal(response.statusCode, 422)
  const invalid: [object, object][] = [
    [{ idempotencyKey: '' }, {}], [{ idempotencyKey: 1 }, {}], [{}, { 'idempotency-key': 'a b' }],
    [{ idempotencyKey: 'one' }, { 'idempotency-key': 'other' }],
  ]
  for (const [extensions, headers] of invalid) {
    t.equal(codeOf(await send(usher, { query: CREATE, variables: { title: 'x' }, extensions }, headers)), 'BAD_REQUEST')
  }
  const same = await send(
    usher,
    { query: CREATE, variables: { title: 'Same' }, extensions: { idempotencyKey: 'one' } },
    { 'idempotency-key': '"one"' }
  )
  t.equal(same.json().data.createPost.title, 'Same')
})

t.test('10.4 each field of an operation has its own result', async (t) => {
  const usher = await shareOne()
  const sql = openSql(t, usher)
  const query = `mutation ($author: ID) {
    a: createPost(input: { title: "A", content: "Words" }) { id }
    b: createPost(input: { title: "B", content: "Words", authorId: $author }) { id }
  }`
  const body = { query, variables: { author: randomUUID() } }
  const key = { 'idempotency-key': 'key' }
  const first = await send(usher, body, key)
  t.equal(codeOf(first), 'USER_NOT_FOUND')
  const again = await send(usher, body, key)
  t.same(again.json(), first.json(), 'the field that has failed is attempted again')
  t.equal(again.headers['idempotency-replayed'], undefined, 'not every field is a repetition')
  t.same(await sql`select title from posts where author_id = ${usher.admin.id}`, [{ title: 'A' }])

  const both = { query, variables: { author: usher.admin.id } }
  const created = await send(usher, both, { 'idempotency-key': 'both' })
  const replayed = await send(usher, both, { 'idempotency-key': 'both' })
  t.same([replayed.body, replayed.headers['idempotency-replayed']], [created.body, 'true'])
})

t.test('10.4 changes and deletions are repeated with their results, and 410 becomes GONE', async (t) => {
  const usher = await shareOne()
  const sql = openSql(t, usher)
  const id = await createPost(usher, usher.admin)
  const update = {
    query: 'mutation ($id: ID!) { updatePost(id: $id, input: { title: "New" }) { id title content } }',
    variables: { id },
  }
  const remove = { query: 'mutation ($id: ID!) { deletePost(id: $id) }', variables: { id } }
  const changed = await send(usher, update, { 'idempotency-key': 'update' })
  await sql`update posts set title = 'Newer' where id = ${id}`
  t.same((await send(usher, update, { 'idempotency-key': 'update' })).body, changed.body)
  t.match(await sql`select title from posts where id = ${id}`, [{ title: 'Newer' }])

  const create = { query: CREATE, variables: { title: 'Gone' } }
  const created = (await send(usher, create, { 'idempotency-key': 'create' })).json().data.createPost
  await post(usher, { ...remove, variables: { id: created.id } }, usher.admin)
  t.equal(codeOf(await send(usher, create, { 'idempotency-key': 'create' })), 'GONE')

  const removed = await send(usher, remove, { 'idempotency-key': 'delete' })
  t.same(removed.json(), { data: { deletePost: id } })
  t.same((await send(usher, remove, { 'idempotency-key': 'delete' })).body, removed.body)
  t.equal(codeOf(await send(usher, remove, { 'idempotency-key': 'another' })), 'POST_NOT_FOUND')
  t.equal(codeOf(await send(usher, update, { 'idempotency-key': 'update' })), 'GONE')
  const kept = await sql`select from idempotency_keys where record_id in ${sql([id, created.id])} and result like '%Words%'`
  t.same(kept, [], 'the contents of deleted posts are erased')
})

t.test('10.4 a repeated mutation is authorized like any other', async (t) => {
  const usher = await shareOne()
  const boss = await usher.createUser({ role: 'admin' })
  const author = await usher.createUser()
  const id = await createPost(usher, author)
  const create = {
    query: 'mutation ($author: ID) { createPost(input: { title: "A", content: "B", authorId: $author }) { id } }',
    variables: { author: author.id },
  }
  const update = {
    query: 'mutation ($id: ID!) { updatePost(id: $id, input: { title: "New" }) { id } }', variables: { id },
  }
  for (const body of [create, update]) {
    t.notOk(codeOf(await send(usher, body, { 'idempotency-key': body.query.length.toString() }, boss)))
  }
  await usher.inject('PATCH', `/api/users/${boss.id}`, { headers: usher.admin.headers, payload: { role: 'user' } })
  const demoted = await usher.login(boss)
  for (const body of [create, update]) {
    t.equal(codeOf(await send(usher, body, { 'idempotency-key': body.query.length.toString() }, demoted)), 'FORBIDDEN')
  }
  t.equal(
    codeOf(await usher.inject('POST', '/graphql', { headers: { 'idempotency-key': 'k' }, payload: create })),
    'UNAUTHENTICATED'
  )
})

t.test('10.4 over sockets and event streams a mutation with a key is performed and published once', async (t) => {
  const usher = await shareOne()
  const { admin } = usher
  const rest = { variables: { title: 'Published' }, extensions: { idempotencyKey: 'key' } }
  const subscriber = await (await openSocket(t, usher)).init()
  subscriber.start('1', `subscription { postCreated(authorId: "${admin.id}") { title } }`)
  await subscriber.settle()
  const bodies = new Set<string>()
  for (const protocol of protocols) {
    const socket = await (await openSocket(t, usher, { protocol })).init(admin.headers)
    for (let count = 0; count < 2; count++) bodies.add(JSON.stringify(await socket.run(CREATE, rest)))
    t.match(await socket.run(CREATE, { ...rest, variables: { title: 'Other' } }), {
      errors: [{ extensions: { code: 'IDEMPOTENCY_KEY_REUSED' } }],
    })
  }
  const streamed = await send(usher, { query: CREATE, ...rest }, { accept: 'text/event-stream' })
  t.equal(streamed.headers['idempotency-replayed'], 'true')
  bodies.add(/^event: next\ndata: (.*)$/m.exec(streamed.body)![1]!)
  t.equal(bodies.size, 1, [...bodies].join('\n'))
  await createPost(usher, admin, 'Last')
  t.same(await titles(subscriber, 2), ['Published', 'Last'])
})

nightly('10.4 the events of a mutation are stored once', async (t) => {
  const { usher, events } = await startWithEvents(t)
  const create = { query: CREATE, variables: { title: 'A' } }
  const { data: { createPost: { id } } } = (await send(usher, create, { 'idempotency-key': 'create' })).json()
  const update = {
    query: 'mutation ($id: ID!) { updatePost(id: $id, input: { title: "B" }) { id } }', variables: { id },
  }
  const remove = { query: 'mutation ($id: ID!) { deletePost(id: $id) }', variables: { id } }
  for (let count = 0; count < 3; count++) await send(usher, create, { 'idempotency-key': 'create' })
  for (let count = 0; count < 3; count++) await send(usher, update, { 'idempotency-key': 'update' })
  for (let count = 0; count < 3; count++) await send(usher, remove, { 'idempotency-key': 'delete' })
  await createPost(usher, usher.admin, 'Last')
  const ofPosts = () => events.filter(({ type }) => type.startsWith('post.'))
  await until('the last event', () => ofPosts().some(({ data }) => (data as { title: string }).title === 'Last'))
  await until('the deletion', () => ofPosts().some(({ type }) => type === 'post.deleted'))
  t.same(ofPosts().map(({ type }) => type).sort(), ['post.created', 'post.created', 'post.deleted', 'post.updated'])
})
