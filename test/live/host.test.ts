import { EventEmitter, on } from 'node:events'
import { GraphQLError } from 'graphql'
import t from 'tap'
import type { GraphqlExtension, UsherGraphQLContext } from '../../app.ts'
import { createUsher } from '../helpers/app.ts'
import { openEvents } from '../helpers/events.ts'
import { Overloaded } from '../../schema/http/errors.ts'
import { createPost, openSocket, protocols } from '../helpers/graphql.ts'
import { until } from '../helpers/until.ts'

/**
 * A host whose field of posts fails for good for the first hundred, and temporarily for the others, until all have
 * failed.
 */
const createFailing = (): GraphqlExtension => {
  let calls = 0
  const flaky = () => {
    calls++
    if (calls <= 100) throw new GraphQLError('Not today')
    if (calls <= 102) throw new Overloaded()
    return calls
  }
  return { typeDefs: 'extend type Post { flaky: Int }', resolvers: { Post: { flaky } } }
}

/** A host with prices, and what it has seen of its subscribers. */
function createHost () {
  const emitter = new EventEmitter().setMaxListeners(0)
  const seen = { returned: 0, contexts: [] as UsherGraphQLContext[], pulled: 0 }
  const extension: GraphqlExtension = {
    typeDefs: `
      extend type Subscription { price (name: String): Price, count (to: Int!): Int, ticks: String!, broken: Int }
      type Price { amount: Int!, for: String }
      extend type Post { mine: Boolean!, shared: String @shared, from: String }
    `,
    resolvers: {
      Price: { for: (_: unknown, __: unknown, { actor }: UsherGraphQLContext) => actor?.id ?? null },
      Post: {
        mine: ({ authorId }: { authorId: string }, _: unknown, { actor }: UsherGraphQLContext) =>
          authorId === actor?.id,
        shared: (_: unknown, __: unknown, { actor, request }: UsherGraphQLContext) => `${actor} ${request}`,
        from: (_: unknown, __: unknown, { request }: UsherGraphQLContext) => request!.headers['x-name'],
      },
      Subscription: {
        price: {
          subscribe: async function * (_: unknown, { name }: { name?: string }, context: UsherGraphQLContext) {
            seen.contexts.push(context)
            try {
              for await (const [amount] of on(emitter, name ?? 'price', { signal: context.signal })) {
                if (amount === 'end') return
                if (amount === 'fail') {
                  throw Object.assign(new Error('Trading is suspended'), { statusCode: 409, code: 'SUSPENDED' })
                }
                if (amount === 'break') throw new Error('select * from prices')
                yield { price: { amount } }
              }
            } finally {
              seen.returned++
            }
          },
        },
        count: {
          subscribe: async function * (_: unknown, { to }: { to: number }) {
            for (let count = 1; count <= to; count++) yield { count }
          },
          resolve: ({ count }: { count: number }) => count * 10,
        },
        ticks: {
          subscribe: async function * () {
            try {
              for (;;) {
                seen.pulled++
                yield { ticks: 'x'.repeat(10_000) }
              }
            } finally {
              seen.returned++
            }
          },
        },
        broken: { subscribe: () => ({}) as AsyncIterable<unknown> },
      },
    },
  }
  return { emitter, seen, extension }
}

const host = createHost()
const usher = await createUsher(t, { graphql: host.extension })

/** Returns the host, which has seen nothing of its subscribers yet, and its app. */
function start () {
  Object.assign(host.seen, { returned: 0, contexts: [], pulled: 0 })
  return { ...host, usher }
}

for (const protocol of protocols) {
  t.test(`12.6 events of a host over ${protocol}: they arrive, end, fail, and are closed when the client or the session leaves`, async (t) => {
    const { usher, emitter, seen } = start()
    const ada = await usher.createUser()
    const socket = await (await openSocket(t, usher, { protocol })).init({ authorization: ada.headers.authorization })
    const query = 'subscription { price { amount for } }'
    const follow = async (id: string) => {
      const before = emitter.listenerCount('price')
      socket.start(id, query)
      await until('the subscription', () => emitter.listenerCount('price') > before)
    }
    await follow('one')
    emitter.emit('price', 1)
    emitter.emit('price', 2)
    for (const amount of [1, 2]) {
      t.same(await socket.next(), {
        type: socket.words.data, id: 'one', payload: { data: { price: { amount, for: ada.id } } },
      })
    }
    emitter.emit('price', 'end')
    t.same(await socket.next(), { type: 'complete', id: 'one' })
    await follow('one')
    emitter.emit('price', 'fail')
    t.match(await socket.next(), {
      type: 'error', id: 'one', payload: [{ message: 'Trading is suspended', extensions: { code: 'SUSPENDED' } }],
    })
    await follow('one')
    emitter.emit('price', 'break')
    t.match(await socket.next(), {
      type: 'error', payload: [{ message: 'The server failed', extensions: { code: 'INTERNAL_ERROR' } }],
    })
    socket.start('bad', 'subscription { broken }')
    t.match(await socket.next(), { type: 'error', id: 'bad', payload: [{ extensions: { code: 'INTERNAL_ERROR' } }] })
    socket.start('count', 'subscription { count(to: 3) }')
    for (const count of [10, 20, 30]) t.same((await socket.next()).payload!.data, { count })
    t.same(await socket.next(), { type: 'complete', id: 'count' })

    await follow('one')
    socket.stop('one')
    await until('the end of the events', () => seen.returned === 4)
    t.equal(emitter.listenerCount('price'), 0)
    t.ok(seen.contexts.every(({ signal }) => signal.aborted))
    await follow('one')
    await usher.inject('POST', '/api/auth/logout', { headers: ada.headers })
    t.equal(await socket.closed, 4403)
    await until('the end of the events', () => seen.returned === 5)
  })
}

t.test('12.6 events of a host over server-sent events, and not as a query', async (t) => {
  const { usher, emitter, seen } = start()
  const stream = await openEvents(
    t, usher, { query: `?query=${encodeURIComponent('subscription { price { amount } }')}` }
  )
  await until('the subscription', () => emitter.listenerCount('price') === 1)
  emitter.emit('price', 7)
  t.same(await stream.answers(1), [{ data: { price: { amount: 7 } } }])
  emitter.emit('price', 'end')
  t.equal((await stream.next())!.event, 'complete')
  await until('the end of the events', () => seen.returned === 1)
  const response = await usher.inject('POST', '/graphql', { payload: { query: 'subscription { price { amount } }' } })
  t.match(response.json().errors[0], {
    message: 'Subscriptions need a WebSocket or server-sent events', extensions: { code: 'BAD_REQUEST' },
  })
})

t.test('12.6 a host is not asked for further events while a client does not read, and hears when it leaves', async (t) => {
  const { usher, seen } = start()
  const socket = await (await openSocket(t, usher)).init()
  socket.socket.pause()
  socket.start('slow', 'subscription { ticks }')
  // Everything that fits into the buffers of the connection is sent. Then nothing more is asked for.
  let before = -1
  await until('the full buffers', () => {
    const stands = seen.pulled > 0 && seen.pulled === before
    before = seen.pulled
    return stands
  }, 200)
  t.ok(seen.pulled < 10_000)
  socket.socket.terminate()
  await until('the end of the events', () => seen.returned === 1)
})

t.test('12.6 an event with a field of the host is rendered for each subscriber, unless the field is shared', async (t) => {
  const { usher } = start()
  const users = [await usher.createUser(), await usher.createUser()]
  const sockets = await Promise.all(users.map(async (user, index) =>
    (await openSocket(
      t, usher, { headers: { 'x-name': `socket ${index}` } }
    )).init({ authorization: user.headers.authorization })))
  for (const socket of sockets) {
    socket.start('own', 'subscription { postCreated { mine from } }')
    socket.start('shared', 'subscription { postCreated { shared title } }')
    await socket.settle()
  }
  await createPost(usher, users[0]!, 'First')
  for (const [index, socket] of sockets.entries()) {
    const events = [await socket.next(), await socket.next()].sort((one, other) => one.id!.localeCompare(other.id!))
    t.same(events[0]!.payload!.data.postCreated, { mine: index === 0, from: `socket ${index}` })
    t.same(events[1]!.payload!.data.postCreated, { shared: 'null undefined', title: 'First' })
  }
})

t.test('12.7 an event is tried again if one of its fields has failed temporarily, even if too many have failed to list them', async (t) => {
  const usher = await createUsher(t, { graphql: createFailing() })
  const socket = await (await openSocket(t, usher)).init()
  const aliases = (count: number) => Array.from({ length: count }, (_, index) => `a${index}: flaky`).join(' ')
  for (let index = 0; index < 2; index++) await createPost(usher, usher.admin)
  // Three posts with 34 fields each.
  socket.start('1', `subscription { postCreated { author { posts(first: 10) { ${aliases(34)} } } } }`)
  await socket.settle()
  await createPost(usher, usher.admin)
  const { payload } = await socket.next()
  t.equal(payload!.errors, undefined)
  t.match(payload!.data.postCreated.author.posts, [{ a0: 103, a33: 136 }, { a0: 137 }, { a33: 204 }])
})
