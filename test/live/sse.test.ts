import { once } from 'node:events'
import { request } from 'node:http'
import t from 'tap'
import { createUsher, sharedUsher } from '../helpers/app.ts'
import { openEvents } from '../helpers/events.ts'
import { createPost, hostOf } from '../helpers/graphql.ts'
import { openSql } from '../helpers/sql.ts'
import { until } from '../helpers/until.ts'

const POSTS = 'subscription { postCreated { title cursor } }'
const asked = (query: string, rest: object = {}) => ({ method: 'POST', body: JSON.stringify({ query, ...rest }) })
const inAddress = (query: string, rest: Record<string, string> = {}) =>
  ({ query: `?${new URLSearchParams({ query, ...rest })}` })
const titlesOf = (answers: { data?: any }[]) => answers.map(({ data }) => data.postCreated.title)

t.test('7.7 subscriptions over server-sent events', async (t) => {
  const usher = await sharedUsher()
  const { admin, createUser, inject } = usher

  t.test('7.7 subscriptions work by POST and GET; the id of an event is the cursor of its post', async (t) => {
    for (const init of [
      asked(POSTS), inAddress(POSTS), inAddress(POSTS, { operationName: '', variables: '' }),
      inAddress('subscription A ($by: ID) { postCreated(authorId: $by) { title cursor } } query B { me { id } }', {
        operationName: 'A', variables: JSON.stringify({ by: admin.id }),
      }),
    ]) {
      const events = await openEvents(t, usher, init)
      t.equal(events.response.status, 200)
      t.match(Object.fromEntries(events.response.headers), {
        'content-type': /^text\/event-stream\b/, 'cache-control': 'no-store',
      })
      t.match(await events.any(), { retry: '1000', id: /^[\w-]{16}$/ })
      await createPost(usher, admin, 'By events')
      const event = (await events.next())!
      const { cursor, title } = JSON.parse(event.data!).data.postCreated
      t.match(event, { event: 'next', id: cursor })
      t.equal(title, 'By events')
      events.abort()
    }
  })

  t.test('7.7 Last-Event-ID resumes the stream and overrides the operation\'s cursor', async (t) => {
    const first = await openEvents(t, usher, inAddress(POSTS))
    for (const title of ['One', 'Two', 'Three']) await createPost(usher, admin, title)
    const { id } = (await first.next())!
    for (const query of [
      POSTS, `subscription { postCreated(after: "${Buffer.alloc(12).toString('base64url')}") { title } }`,
    ]) {
      const again = await openEvents(t, usher, { ...inAddress(query), headers: { 'last-event-id': id! } })
      t.same(titlesOf(await again.answers(2)), ['Two', 'Three'])
    }
    const anew = await openEvents(t, usher, { ...inAddress(POSTS), headers: { 'last-event-id': '' } })
    await createPost(usher, admin, 'Four')
    t.same(titlesOf(await anew.answers(1)), ['Four'])
    const wrong = await openEvents(t, usher, { ...asked(POSTS), headers: { 'last-event-id': 'x' } })
    t.match(await wrong.answers(1), [{
      data: null, errors: [{ message: 'after must be the cursor of a post', extensions: { code: 'INVALID_INPUT' } }],
    }])
    t.same(await wrong.next(), { event: 'complete', data: '' })
    t.equal(await wrong.next(), undefined)
  })

  t.test('7.7 a query or mutation by POST gets one event, and the stream ends', async (t) => {
    const mutation = asked('mutation { createPost(input: { title: "By an event stream", content: "" }) { title } }')
    const refused = await openEvents(t, usher, mutation)
    t.match(
      await refused.answers(1),
      [{ data: null, errors: [{ message: 'A bearer token is required', extensions: { code: 'UNAUTHENTICATED' } }] }]
    )
    for (const [init, expected] of [
      [mutation, { data: { createPost: { title: 'By an event stream' } } }],
      [asked('query ($id: ID!) { user(id: $id) { name } }', { variables: { id: admin.id } }), {
        data: { user: { name: 'Admin' } },
      }],
      [asked('{ nothing }'), {
        data: null,
        errors: [{ message: 'Cannot query field "nothing" on type "Query".', extensions: { code: 'GRAPHQL_INVALID' } }],
      }],
      [asked('{'), { data: null, errors: [{ extensions: { code: 'GRAPHQL_INVALID' } }] }],
      [{ method: 'POST', body: '[]' }, { data: null, errors: [{ message: 'The body must be a JSON object' }] }],
      [asked('{ user(id: "x") { id } }'), {
        data: { user: null }, errors: [{ message: 'User not found', extensions: { code: 'USER_NOT_FOUND' } }],
      }],
    ] as const) {
      const events = await openEvents(t, usher, { ...init, headers: admin.headers })
      t.equal(events.response.status, 200)
      t.match(await events.answers(1), [expected])
      t.same(await events.next(), { event: 'complete', data: '' })
      t.equal(await events.next(), undefined)
    }
  })

  t.test('7.7 a GET that a browser must not repeat gets 400', async (t) => {
    for (const [init, message] of [
      [inAddress('mutation { deletePost(id: "x") }'), 'An event stream by GET is only for subscriptions'],
      [inAddress('{ me { id } }'), 'An event stream by GET is only for subscriptions'],
      [inAddress(''), 'query is required and must be a string'],
      [{ query: `?query=a&${new URLSearchParams({ query: POSTS })}` }, 'query is required and must be a string'],
      [inAddress('subscription {'), 'Syntax Error: Expected Name, found <EOF>.'],
      [inAddress(POSTS, { variables: '{' }), 'variables must be JSON'],
      [inAddress(POSTS, { variables: '1' }), 'variables must be an object'],
      [inAddress(POSTS, { operationName: 'A' }), 'operationName must name one of the operations'],
    ] as const) {
      const { response } = await openEvents(t, usher, init)
      t.equal(response.status, 400)
      t.match(await response.json(), { data: null, errors: [{ message }] })
    }
    const { response } = await openEvents(t, usher, { ...inAddress(POSTS), headers: { authorization: 'Bearer x' } })
    t.not(response.headers.get('content-type'), 'text/event-stream')
    t.match(await response.json(), { errors: [{ extensions: { code: 'INVALID_TOKEN' } }] })
  })

  t.test('7.7 a client that accepts JSON gets JSON', async (t) => {
    for (const accept of [
      'application/json, text/event-stream', '*/*', 'application/json', 'text/event-stream;q=0.5, application/json',
      'application/graphql-response+json, text/event-stream',
    ]) {
      const { response } = await openEvents(t, usher, { ...asked('{ me { id } }'), headers: { accept } })
      t.same(await response.json(), { data: { me: null } }, accept)
    }
  })

  t.test('7.7 a client may name the charset of event streams', async (t) => {
    const { response } = await openEvents(
      t, usher, { ...asked('{ me { id } }'), headers: { accept: 'Text/Event-Stream; charset="UTF-8"' } }
    )
    t.match(response.headers.get('content-type'), /^text\/event-stream/)
  })

  t.test('7.7 a stream ends when its session ends', async (t) => {
    const user = await createUser()
    const events = await openEvents(t, usher, { ...asked(POSTS), headers: user.headers })
    const others = await openEvents(t, usher, asked(POSTS))
    await inject('POST', '/api/auth/logout', { headers: user.headers })
    t.equal(await events.next(), undefined)
    await createPost(usher, admin, 'For others')
    t.same(titlesOf(await others.answers(1)), ['For others'])
  })

  t.test('7.7 a slow client gets all events in the end; a disconnected one leaves nothing behind', async (t) => {
    const sql = openSql(t, usher)
    const author = await createUser()
    const query = `subscription { postCreated(authorId: "${author.id}") { title content } }`
    const [quick, slow] = await Promise.all([openEvents(t, usher, asked(query)), openEvents(t, usher, asked(query))])
    const content = 'x'.repeat(65_000)
    for (let at = 0; at < 300; at += 100) {
      await sql`insert into posts (id, author_id, title, content) select gen_random_uuid(), ${author.id}, n, ${content} from generate_series(${at}::int, ${at + 99}::int) n`
      t.same(titlesOf(await quick.answers(100)), Array.from({ length: 100 }, (_, index) => String(at + index)))
    }
    t.same(titlesOf(await slow.answers(300)), Array.from({ length: 300 }, (_, index) => String(index)))
    for (const events of [quick, slow]) events.abort()
    await createPost(usher, author, 'Unheard')
  })
})

t.test('7.7 an idle stream sends comments, and ends if the client does not read them', async (t) => {
  const usher = await createUsher(t, { pingSeconds: 0.05 })
  const events = await openEvents(t, usher, asked(POSTS))
  for (const expected of [{ retry: '1000' }, { comment: '' }, { comment: '' }]) t.match(await events.any(), expected)

  const [hostname, port] = (await hostOf(usher)).split(':')
  const outgoing = request({
    hostname,
    port,
    path: '/graphql',
    method: 'POST',
    headers: { accept: 'text/event-stream', 'content-type': 'application/json' },
  })
  outgoing.end(JSON.stringify({ query: 'subscription { postCreated { content } }' }))
  const [response] = await once(outgoing, 'response')
  response.socket.pause()
  response.on('error', () => {})
  const sql = openSql(t, usher)
  const connections = () =>
    new Promise<number>((resolve) => { usher.app.server.getConnections((_, count) => resolve(count)) })
  await sql`insert into posts (id, author_id, title, content) select gen_random_uuid(), ${usher.admin.id}, '', ${'x'.repeat(65_000)} from generate_series(1, 300)`
  await until('the deaf one is gone', async () => await connections() === 1)
  response.socket.resume()
})

t.test('7.7 stopping the node ends the streams', async (t) => {
  const usher = await createUsher(t)
  const events = await openEvents(t, usher, asked(POSTS))
  await usher.app.close()
  t.equal(await events.next(), undefined)
})
