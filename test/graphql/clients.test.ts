import { createClient } from 'graphql-ws'
import t from 'tap'
import { WebSocket } from 'ws'
import { createUsher, sharedUsher } from '../helpers/app.ts'
import { clients } from '../helpers/clients.ts'
import { createPost, hostOf, post } from '../helpers/graphql.ts'
import { nightly } from '../helpers/nightly.ts'
import { createProxy } from '../helpers/proxy.ts'
import { until } from '../helpers/until.ts'

nightly('7.7 common GraphQL clients receive each post they missed while disconnected exactly once', async (t) => {
  let usher = await createUsher(t)
  const otherNode = await createUsher(t, usher.options)
  const { admin } = otherNode
  const port = Number((await hostOf(usher)).split(':')[1])
  const proxy = await createProxy(t, `http://127.0.0.1:${port}`)
  await createPost(otherNode, admin, 'Before')
  const { data } = await post(otherNode, { query: '{ posts(first: 1) { nodes { cursor } } }' })
  let back = Promise.withResolvers<void>()

  const heard = Object.entries(clients).map(([name, subscribe]) => {
    const titles: string[] = []
    let after: string = data.posts.nodes[0].cursor
    const take = ({ data }: { data?: unknown }) => {
      const { title, cursor } = (data as { postCreated: { title: string, cursor: string } }).postCreated
      titles.push(title)
      after = cursor
    }
    const stop = subscribe({
      host: new URL(proxy.url).host, variables: { get after () { return after } }, take, back: () => back.promise,
    })
    return { name, titles, stop }
  })
  const expected: string[] = []
  const tell = async (...titles: string[]) => {
    for (const title of titles) await createPost(otherNode, admin, title)
    expected.push(...titles)
  }
  const hear = () => until('all have heard all', () => heard.every(({ titles }) => titles.length >= expected.length))
    .catch((error) => t.fail(error))

  const ways: Record<string, { lose: () => unknown, restore: () => unknown }> = {
    'cut off': { lose: () => proxy.refuse(), restore: () => proxy.listen() },
    'while the node is started again': {
      lose: () => usher.app.close(),

      async restore () {
        usher = await createUsher(t, usher.options)
        await usher.app.listen({ port, host: '127.0.0.1' })
      },
    },
  }
  for (const [how, { lose, restore }] of Object.entries(ways)) {
    await tell(`Before they were ${how}`)
    await hear()
    back = Promise.withResolvers()
    await lose()
    await tell(`${how}, one`, `${how}, two`)
    await restore()
    back.resolve()
    await hear()
  }
  await tell('After')
  await hear()
  for (const { name, titles, stop } of heard) {
    stop()
    t.same(titles, expected, name)
  }
})

t.test('7.7 graphql-ws: a subscription, a mutation, and a rejected token', async (t) => {
  const usher = await sharedUsher()
  const author = await usher.createUser()
  const client = createClient({
    url: `ws://${await hostOf(usher)}/graphql`,
    webSocketImpl: WebSocket,
    connectionParams: { authorization: author.headers.authorization },
    lazy: false,
    keepAlive: 50,
  })
  t.teardown(() => client.dispose())
  const found = client.iterate({ query: `subscription { postCreated(authorId: "${author.id}") { title } }` })
  const next = found.next()
  const creation = {
    query: 'mutation ($title: String!) { createPost(input: { title: $title, content: "" }) { title } }',
    variables: { title: 'By the client' },
  }
  for await (const { data } of client.iterate(creation)) t.same(data, { createPost: { title: 'By the client' } })
  t.same(await next, { value: { data: { postCreated: { title: 'By the client' } } }, done: false })
  await found.return!()
  const errors = client.iterate({ query: '{ nothing }' })
  t.match(await errors.next().catch((errors) => errors), [{ message: 'Cannot query field "nothing" on type "Query".' }])
})
