import t, { type Test } from 'tap'
import { createUsherClient, type SessionState } from '../../client/index.ts'
import { followPostChanges, followPosts, graphql } from '../../client/posts.ts'
import { createUsher } from '../helpers/app.ts'
import { createCuttingProxy } from '../helpers/cutting-proxy.ts'
import { uniqueSchema } from '../helpers/database.ts'
import { createPost, post } from '../helpers/graphql.ts'

const CREATE = 'mutation ($title: String!) { createPost(input: { title: $title, content: "Words" }) { id } }'
const NOWHERE = 'http://127.0.0.1:1'
const transports = ['events', 'socket'] as const

const schema = uniqueSchema('client posts')
const [one, two] = [await startNode(), await startNode()]

async function startNode () {
  const usher = await createUsher(t, { schema })
  return { usher, url: await usher.app.listen({ port: 0, host: '127.0.0.1' }) }
}

async function logIn (t: Test, credentials: { email: string, password: string }) {
  const proxy = await createCuttingProxy(t, one.url)
  const followed = Promise.withResolvers<void>()
  const client = createUsherClient({
    baseUrl: proxy.url,
    retry: { baseMs: 1, tries: 2 },
    fetch: async (request) => {
      const response = await fetch(request)
      // From the head of the response on, every post is an event.
      if (response.headers.get('Content-Type') === 'text/event-stream') followed.resolve()
      return response
    },
  })
  await client.login(credentials)
  return { proxy, client, followed: followed.promise }
}

for (const transport of transports) {
  t.test(`15.4 ${transport}: posts are followed from one node to the next without gaps and duplicates`, async (t) => {
    const author = await one.usher.createUser()
    const { proxy, client, followed } = await logIn(t, author)
    const posts = followPosts(client, { transport, retry: { baseMs: 1, maxMs: 10 }, authorId: author.id })
    const take = async (count: number) => {
      const titles: string[] = []
      while (titles.length < count) titles.push((await posts.next()).value!.title)
      return titles
    }
    const first = posts.next()
    await followed
    for (const title of ['1', '2']) await createPost(one.usher, author, title)
    t.match(await first, { value: { title: '1', content: String, author: { id: author.id }, cursor: String } })
    t.strictSame(await take(1), ['2'])
    proxy.moveTo(NOWHERE)
    for (const title of ['3', '4']) await createPost(two.usher, author, title)
    const third = posts.next()
    await createPost(one.usher, author, '5')
    proxy.moveTo(two.url)
    t.equal((await third).value!.title, '3')
    await createPost(one.usher, author, '6')
    t.strictSame(await take(3), ['4', '5', '6'])
    await posts.return()
  })

  t.test(`22.1 ${transport}: changes and deletions are followed from one node to the next`, async (t) => {
    const author = await one.usher.createUser()
    const { proxy, client } = await logIn(t, author)
    const started = Promise.withResolvers<string>()
    const changes = followPostChanges(client, {
      transport, retry: { baseMs: 1, maxMs: 10 }, authorId: author.id, onStart: started.resolve, fields: 'id title',
    })
    const first = changes.next()
    const start = await started.promise
    const update = 'mutation ($id: ID!, $title: String) { updatePost(id: $id, input: { title: $title }) { id } }'
    const remove = 'mutation ($id: ID!) { deletePost(id: $id) }'
    const [kept, gone] = [await createPost(one.usher, author, '1'), await createPost(two.usher, author, '2')]
    const { value } = await first
    t.strictSame(value, { type: 'created', cursor: value!.cursor, post: { id: kept, title: '1' } })
    t.match((await changes.next()).value, { type: 'created', post: { id: gone } })
    const changed = changes.next()
    await graphql(client, update, { id: kept, title: '1, changed' })
    t.match((await changed).value, { type: 'updated', post: { id: kept, title: '1, changed' } })
    proxy.moveTo(NOWHERE)
    await post(two.usher, { query: update, variables: { id: kept, title: 'Not seen' } }, author)
    await post(two.usher, { query: update, variables: { id: kept, title: 'Last' } }, author)
    await post(two.usher, { query: remove, variables: { id: gone } }, author)
    const next = changes.next()
    proxy.moveTo(two.url)
    t.match((await next).value, { type: 'updated', post: { id: kept, title: 'Last' } })
    const { value: deletion } = await changes.next()
    t.strictSame(deletion, { type: 'deleted', cursor: deletion!.cursor, id: gone })
    await changes.return()

    const again = followPostChanges(client, { transport, authorId: author.id, after: start, fields: 'id title' })
    t.match((await again.next()).value, { type: 'created', post: { id: kept, title: 'Last' } })
    await again.return()
  })

  t.test(`15.4 ${transport}: a session that is ended elsewhere is reported at once`, async (t) => {
    const member = await one.usher.createUser()
    const { client, followed } = await logIn(t, member)
    const over = new Promise<SessionState>((resolve) => client.session.subscribe(resolve))
    const following = followPosts(client, { transport }).next()
    const rejected = t.rejects(following, { status: 401, code: 'INVALID_SESSION' })
    await followed
    await two.usher.inject('DELETE', `/api/users/${member.id}/sessions`, { headers: two.usher.admin.headers })
    t.match(await over, { state: 'none', reason: 'expired' })
    await rejected
  })

  t.test(`15.4 ${transport}: a signal ends the iteration, and the server's errors are thrown`, async (t) => {
    const { client, followed } = await logIn(t, one.usher.admin)
    const aborter = new AbortController()
    const following = followPosts(client, { transport, signal: aborter.signal }).next()
    await followed
    aborter.abort()
    t.strictSame(await following, { done: true, value: undefined })
    t.strictSame(
      await followPosts(client, { transport, signal: aborter.signal }).next(), { done: true, value: undefined }
    )
    await t.rejects(
      followPosts(client, { transport, after: 'nowhere' }).next(), { name: 'UsherError', status: 200, message: /after/ }
    )
    await t.rejects(followPosts(client, { transport, fields: 'unknown' }).next(), { name: 'UsherError' })
  })
}

t.test('15.4 a caller continues from the cursor of the last post that it has', async (t) => {
  const author = await one.usher.createUser()
  const { client } = await logIn(t, author)
  await createPost(one.usher, author, 'known')
  const { posts: { pageInfo: { startCursor: after } } } =
    await graphql<{ posts: { pageInfo: { startCursor: string } } }>(
      client,
      '{ posts(first: 1) { pageInfo { startCursor } } }'
    )
  for (const title of ['a', 'b']) await createPost(one.usher, author, title)
  const titles: string[] = []
  for await (const { title } of followPosts<{ title: string, cursor: string }>(client, {
    after, authorId: author.id, fields: 'title',
  })) {
    titles.push(title)
    if (titles.length === 2) break
  }
  t.strictSame(titles, ['a', 'b'])
})

t.test('15.4 a mutation whose response was lost is repeated, and has its effect once', async (t) => {
  const author = await one.usher.createUser()
  const { proxy, client } = await logIn(t, author)
  proxy.loseResponse(/^POST \/graphql/)
  const { createPost: { id } } = await graphql<{ createPost: { id: string } }>(client, CREATE, { title: 'Once' })
  t.equal(proxy.lost, 1)
  const { posts } = await graphql<{ posts: { nodes: { id: string }[] } }>(
    client, 'query ($id: ID) { posts(first: 5, authorId: $id) { nodes { id } } }', { id: author.id }
  )
  t.strictSame(posts.nodes, [{ id }])
  await t.rejects(graphql(client, CREATE, { title: '' }), { name: 'UsherError', status: 200 })
})
