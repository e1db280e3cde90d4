import { Type } from '@sinclair/typebox'
import type { FastifyInstance } from 'fastify'
import t from 'tap'
import { audiences } from '../../app.ts'
import { actionsOf } from '../../routes/graphql/resolvers/reading.ts'
import { createUsher, sharedUsher } from '../helpers/app.ts'
import { createPost, openSocket, post } from '../helpers/graphql.ts'
import { openSql } from '../helpers/sql.ts'

const usher = await sharedUsher()
const closed = await createUsher(t, {
  policy: { 'users:read-email': audiences.owners },
  userFields: Type.Object({ own: Type.Optional(Type.String({ maxLength: 5 })) }),
})
const sql = openSql(t, usher)
const { admin } = usher

t.test('10.2 Post.etag changes with the post, and is the same by every path', async (t) => {
  const { data } = await post(
    usher,
    { query: 'mutation { createPost(input: { title: "One", content: "Words" }) { id etag author { etag } } }' },
    admin
  )
  const { id, etag } = data.createPost
  t.match(etag, /^"[0-9a-z]{1,13}"$/)
  const paths = async () => {
    const { data } = await post(usher, {
      query: `{
      post(id: "${id}") { etag } posts(first: 1) { nodes { etag } edges { node { ...Tag } } } user(id: "${admin.id}") { posts(first: 1) { ...Tag } }
    } fragment Tag on Post { tag: etag }`
    })
    const { post: { etag }, posts: { nodes, edges }, user: { posts } } = data
    return [etag, nodes[0].etag, edges[0].node.tag, posts[0].tag]
  }
  // The second time, the operation has been compiled.
  for (let round = 0; round < 2; round++) t.strictSame(await paths(), Array(4).fill(etag))
  const updated = (await post(
    usher, { query: `mutation { updatePost(id: "${id}", input: { title: "Two" }) { etag } }` }, admin
  )).data.updatePost.etag
  t.not(updated, etag)
  t.strictSame(await paths(), Array(4).fill(updated))
  await sql`update posts set title = 'psql' where id = ${id}`
  const [last] = await paths()
  t.notOk([etag, updated].includes(last))
})

t.test('10.1 User.etag is the tag that GET /api/users/{id} returns to the same reader', async (t) => {
  for (const one of [usher, closed]) {
    const [user, another] = [await one.createUser(), await one.createUser()]
    await createPost(one, user)
    for (const reader of [undefined, user, another, one.admin]) {
      const { etag } = (await one.inject('GET', `/api/users/${user.id}`, { headers: reader?.headers })).headers
      const { data, errors } = await post(one, {
        query:
          `{ user(id: "${user.id}") { etag posts { author { etag } } } posts(first: 1) { nodes { author { etag } } } }`,
      }, reader)
      t.equal(errors, undefined)
      t.strictSame(
        [data.user.etag, data.user.posts[0].author.etag, data.posts.nodes[0].author.etag], [etag, etag, etag]
      )
    }
    t.equal(
      (await post(one, { query: '{ me { etag } }' }, user)).data.me.etag,
      (await one.inject('GET', `/api/users/${user.id}`, { headers: user.headers })).headers.etag
    )
  }
})

t.test('10.1 a mount without posts has User.etag', async (t) => {
  const without = await createUsher(t, { without: ['posts'] })
  const { data } = await post(without, { query: '{ me { etag } }' }, without.admin)
  t.equal(data.me.etag, (await without.inject('GET', `/api/users/${without.admin.id}`)).headers.etag)
})

t.test('10.2 subscriptions deliver the tags of posts and authors, as each subscriber sees them', async (t) => {
  const user = await closed.createUser()
  await createPost(closed, user, 'Before')
  const [before] = (await post(closed, { query: '{ posts { nodes { cursor } } }' })).data.posts.nodes
  const replayed = await createPost(closed, user, 'Replayed')
  const subscribers = await Promise.all([undefined, user, closed.admin, undefined].map(async (reader) => {
    const socket = await (await openSocket(t, closed)).init(reader?.headers)
    socket.start('1', `subscription { postCreated(after: "${before.cursor}") { id etag author { etag } } }`)
    return { socket, headers: reader?.headers }
  }))
  const etagOf = async (id: string) => (await post(closed, { query: `{ post(id: "${id}") { etag } }` })).data.post.etag
  for (const id of [replayed, undefined]) {
    const created = id ?? await createPost(closed, user, 'Live')
    const etag = await etagOf(created)
    for (const { socket, headers } of subscribers) {
      const author = (await closed.inject('GET', `/api/users/${user.id}`, { headers })).headers.etag
      t.strictSame((await socket.next()).payload!.data.postCreated, { id: created, etag, author: { etag: author } })
    }
  }
})

t.test('10.2 an event with the tag of a post depends on no reader, one with that of its author does', async (t) => {
  const of = (...fields: string[]) => actionsOf(usherOf(undefined), new Set(fields))
  const usherOf = (hostGraphql: object | undefined) =>
    ({ usherOptions: { userFields: [], hostGraphql } }) as unknown as FastifyInstance
  t.strictSame(of('postCreated', 'etag'), ['posts:read'])
  t.strictSame(of('postCreated', 'author', 'etag'), ['posts:read', 'users:read', 'users:read-email'])
  t.strictSame(
    actionsOf(usherOf({}), new Set(['etag'])), ['posts:read', 'users:read-email'],
    'a field of the host may return users'
  )
})
