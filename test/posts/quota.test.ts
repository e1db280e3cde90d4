import t from 'tap'
import { createRecentRejections } from '../../plugins/support/recent-rejections.ts'
import { TooManyPosts } from '../../schema/posts/post.ts'
import { createUsher, type LoggedIn, type TestUsher } from '../helpers/app.ts'
import { createPost, post } from '../helpers/graphql.ts'
import { nightly } from '../helpers/nightly.ts'
import { openSql } from '../helpers/sql.ts'
import { until } from '../helpers/until.ts'

const CREATE =
  'mutation ($title: String!, $authorId: ID) { createPost(input: { title: $title, content: "Words", authorId: $authorId }) { id } }'
const usher = await createUsher(t, { postsPerHour: 10 })
const second = await createUsher(t, usher.options)
const sql = openSql(t, usher)

const create = (node: TestUsher, user: LoggedIn, title: string, headers = {}) =>
  node.inject('POST', '/graphql', {
    headers: { ...user.headers, ...headers }, payload: { query: CREATE, variables: { title } },
  }).then((response) => response.json())

nightly('13.4 forty posts at once on two nodes stay within the posts of an hour, and the others get TOO_MANY_POSTS', async (t) => {
  const [user, other] = [await usher.createUser(), await usher.createUser()]
  const answers = await Promise.all(
    Array.from({ length: 40 }, (_, index) => create(index % 2 ? usher : second, user, `${index}`))
  )
  const alsoSent = await Promise.all(Array.from({ length: 10 }, (_, index) => create(usher, other, `${index}`)))
  t.equal(answers.filter(({ data }) => data?.createPost).length, 10)
  for (const { errors } of answers) {
    if (errors) t.match(errors, [{ message: /hour/, extensions: { code: 'TOO_MANY_POSTS', retryAfter: Number } }])
    if (errors) t.ok(errors[0].extensions.retryAfter > 3500 && errors[0].extensions.retryAfter <= 3600)
  }
  t.ok(alsoSent.every(({ errors }) => !errors), 'others are not affected')
  const [{ rows }] = await sql<[{ rows: number }]>`select count(*)::int as rows from posts where author_id = ${user.id}`
  t.equal(rows, 10)
})

t.test('13.4 a repeated post gets its response again when the hour is used up', async (t) => {
  const user = await usher.createUser()
  const once = (node: TestUsher) => create(node, user, 'First', { 'idempotency-key': 'once' })
  const [first, ...repeated] = await Promise.all([usher, second, usher, second].map(once))
  t.ok(first.data?.createPost)
  for (const response of repeated) t.same(response, first)
  for (let index = 1; index < 10; index++) {
    const { data } = await create(usher, user, `${index}`, { 'idempotency-key': `${index}` })
    t.ok(data?.createPost, 'repeated posts do not count')
  }
  for (const node of [usher, second]) {
    t.match(
      (await create(node, user, 'Another', { 'idempotency-key': 'another' })).errors,
      [{ extensions: { code: 'TOO_MANY_POSTS' } }]
    )
    t.same(await create(node, user, 'First', { 'idempotency-key': 'once' }), first)
  }
})

t.test('13.4 posts of a batch fail each for its own reason, and those that fail for another do not count', async (t) => {
  const user = await usher.createUser()
  const send = (authorId: string) => post(usher, { query: CREATE, variables: { title: 'x', authorId } }, usher.admin)
  const answers = await Promise.all([
    ...Array.from({ length: 20 }, () => send(crypto.randomUUID())), ...Array.from({ length: 12 }, () => send(user.id)),
  ])
  const codes = answers.map(({ errors }) => errors?.[0]!.extensions.code ?? 'created')
  t.same(codes.slice(0, 20), Array(20).fill('USER_NOT_FOUND'))
  t.same(codes.slice(20).sort(), [...Array(2).fill('TOO_MANY_POSTS'), ...Array(10).fill('created')])
  t.ok(await createPost(usher, user), 'posts count for the user who creates them')
})

nightly('13.4 the host gets 429 for a user, has no limit itself, and a user may post again in the next hour', async (t) => {
  const user = await usher.createUser()
  const { posts } = usher.app.usher
  const given = { title: 'x', content: 'y', authorId: user.id }
  for (let index = 0; index < 11; index++) await posts.create(given)
  // Posts of the host and of users share a statement.
  await Promise.all(Array.from({ length: 10 }, () => [posts.create(given), createPost(usher, user)]).flat())
  await t.rejects(createPost(usher, user), /TOO_MANY_POSTS/)

  const other = await usher.createUser()
  await createPost(second, other)
  await sql`update post_rates set since = now() - interval '1 hour' where user_id = ${other.id}`
  const third = await createUsher(t, usher.options)
  const ended = () => sql`select from post_rates where user_id = ${other.id}`
  await until('a node has deleted what has ended', async () => (await ended()).length === 0)
  await t.rejects(createPost(third, user), /TOO_MANY_POSTS/, 'and nothing else')

  await sql`update post_rates set since = now() - interval '1 hour' where user_id = ${user.id}`
  const isCreated = () => createPost(usher, user).then(() => true, () => false)
  await until('the node that has rejected posts looks again', isCreated, 100)
  for (let index = 1; index < 10; index++) await createPost(second, user)
  await t.rejects(createPost(second, user), /TOO_MANY_POSTS/, 'as many as in every hour')
})

t.test('13.4 a node remembers at most 10,000 users who may not post', async (t) => {
  const rejections = createRecentRejections({ Rejection: TooManyPosts, after: 1, maxMs: 60_000 })
  const names = Array.from({ length: 10_001 }, (_, index) => `${index}`)
  for (const name of names) rejections.record(name, new TooManyPosts(3600))
  t.doesNotThrow(() => rejections.throwIfRejected(names[0]!), 'the first is forgotten')
  for (const name of names.slice(-2)) t.throws(() => rejections.throwIfRejected(name), { code: 'TOO_MANY_POSTS' })
})

nightly('13.4 a hook in the transaction of a post does not change the limit, and 0 is none', async (t) => {
  const hooked = await createUsher(t, { postsPerHour: 2, hooks: { onPostCreate: async () => {} } })
  const answers = await Promise.all(Array.from({ length: 4 }, (_, index) => create(hooked, hooked.admin, `${index}`)))
  t.equal(answers.filter(({ data }) => data?.createPost).length, 2)
  const unlimited = await createUsher(t, { ...hooked.options, postsPerHour: 0 })
  t.ok(await createPost(unlimited, unlimited.admin))
})

nightly('13.4 a user who does not stop costs one statement a second, not one for each post', async (t) => {
  const node = await createUsher(t, { postsPerHour: 1 })
  const user = await node.createUser()
  const items = async () => {
    const metrics = await node.app.usher.metrics()
    const found = metrics.find(({ name }) => name === 'usher_batch_items')!.samples
      .find(({ labels }) => labels['batch'] === 'posts.create')
    return found && 'sum' in found ? found.sum : 0
  }
  await createPost(node, user)
  const [before, began] = [await items(), performance.now()]
  for (let count = 0; count < 50; count++) await t.rejects(createPost(node, user), /TOO_MANY_POSTS/)
  const seconds = (performance.now() - began) / 1000
  t.ok(await items() - before <= seconds + 1, `${await items() - before} posts reached the database in ${seconds} s`)
})
