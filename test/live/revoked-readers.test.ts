import { setTimeout as delay } from 'node:timers/promises'
import { inspect } from 'node:util'
import t from 'tap'
import { audiences, type UsherGraphQLContext } from '../../app.ts'
import { rotateSigningKey } from '../../db/access/signing-keys.ts'
import { createUsher, type LoggedIn, type TestUsher } from '../helpers/app.ts'
import { openConnection } from '../helpers/connection.ts'
import { testDatabaseUrl } from '../helpers/database.ts'
import { openEvents } from '../helpers/events.ts'
import { createEndDuring, lockTable } from '../helpers/end-during.ts'
import { createPost, openSocket, post } from '../helpers/graphql.ts'
import { createProxy } from '../helpers/proxy.ts'
import { openSql, untilBlocked } from '../helpers/sql.ts'
import { upload } from '../helpers/uploads.ts'

const SUBSCRIPTION = 'subscription { postCreated { title } }'

const members = { 'users:list': audiences.members, 'posts:read': audiences.members }
const usher = await createUsher(t, { policy: members })
const { sql, endDuring } = createEndDuring(t, usher)
const logout = async ({ headers }: LoggedIn, node = usher): Promise<void> => {
  const { statusCode } = await node.inject('POST', '/api/auth/logout', { headers })
  t.equal(statusCode, 204)
}
const open = (node: TestUsher, { headers }: LoggedIn) =>
  openEvents(t, node, { query: `?query=${SUBSCRIPTION}`, headers })

/**
 * Ends the session of a new user while a request of that user reads a table. If a busy machine delays the database for
 * too long, repeats it.
 */
async function logoutDuring<Result> (
  table: string, request: (user: LoggedIn) => Promise<Result>, node = usher
): Promise<Result> {
  for (;;) {
    const user = await usher.createUser()
    const { response } = await sql.begin(async (trx) => {
      await trx`lock table ${trx(table)}`
      const response = request(user)
      await untilBlocked(sql, usher)
      await logout(user, node)
      return { response }
    })
    if (!/DATABASE_UNAVAILABLE|OVERLOADED/.test(inspect(await response, { depth: 5 }))) return response
  }
}

t.test('4 an event stream that is opened while its session ends gets no event, and is closed', async (t) => {
  const events = await logoutDuring('posts', (user) => open(usher, user))
  await createPost(usher, usher.admin, 'Secret')
  t.equal(await events.next(), undefined)
})

t.test('4 an operation that has waited reads nothing for a session that has ended meanwhile', async (t) => {
  const user = await usher.createUser()
  const query = `{ user(id: "${usher.admin.id}") { name posts { title } } }`
  t.match(await post(usher, { query }, user), { data: { user: { posts: [{ title: 'Secret' }] } } })
  const { data, errors } = await logoutDuring('users', (user) => post(usher, { query }, user))
  t.match(errors, [{ path: ['user', 'posts'], extensions: { code: 'INVALID_TOKEN' } }])
  t.notMatch(JSON.stringify(data), 'Secret')
})

t.test('4 a mutation that has waited has written, and reads nothing for a session that has ended meanwhile', async (t) => {
  const author = await usher.createUser()
  const id = await createPost(usher, author, 'Private')
  const user = await usher.createUser({ role: 'admin' })
  const query = `mutation { updatePost(id: "${id}", input: { title: "New" }) { id author { name posts { title } } } }`
  const answer = await endDuring(user, lockTable('users'), () => post(usher, { query }, user))
  // A list is never null, so nothing remains of the data, but the path shows that the mutation itself was performed.
  t.match(
    answer, { data: null, errors: [{ path: ['updatePost', 'author', 'posts'], extensions: { code: 'INVALID_TOKEN' } }] }
  )
  t.same(await sql`select title from posts where id = ${id}`, [{ title: 'New' }])
  await sql`delete from posts where id = ${id}`
})

t.test('4 what an operation has read for a session that has ended meanwhile is not sent', async (t) => {
  const user = await usher.createUser()
  const query = '{ posts { nodes { title } } }'
  t.match(await post(usher, { query }, user), { data: { posts: { nodes: [{ title: 'Secret' }] } } })
  t.match(await logoutDuring('posts', (user) => post(usher, { query }, user)), {
    data: null, errors: [{ extensions: { code: 'INVALID_TOKEN' } }],
  })
})

t.test('4 a large result is not sent either', async (t) => {
  for (let count = 0; count < 8; count++) await createPost(usher, usher.admin)
  await sql`update posts set content = repeat('x', 60000)`
  const query = '{ posts { nodes { title content } } }'
  t.match(await logoutDuring('posts', (user) => post(usher, { query }, user)), {
    data: null, errors: [{ extensions: { code: 'INVALID_TOKEN' } }],
  })
})

t.test('4 the result of a mutation that ends its own session is sent, and that of a query is not', async (t) => {
  const leave = async (_: unknown, __: unknown, { actor }: UsherGraphQLContext): Promise<string> => {
    await leaving.app.usher.sessions.endAll(actor!.id)
    return 'done'
  }
  const typeDefs = 'extend type Query { leave: String } extend type Mutation { leave: String }'
  const leaving = await createUsher(
    t, { ...usher.options, graphql: { typeDefs, resolvers: { Query: { leave }, Mutation: { leave } } } }
  )
  t.same(await post(leaving, { query: 'mutation { leave }' }, await usher.createUser()), { data: { leave: 'done' } })
  t.match(await post(leaving, { query: '{ leave }' }, await usher.createUser()), {
    data: null, errors: [{ extensions: { code: 'INVALID_TOKEN' } }],
  })
})

t.test('4 REST reads that have waited are not sent to a session that has ended meanwhile', async (t) => {
  const strict = await createUsher(
    t, { ...usher.options, policy: { 'users:read': audiences.members, 'uploads:read': audiences.members } }
  )
  const { fileUrl } = await upload(usher, 'Secret')
  for (const [path, table] of [
    [`/api/users/${usher.admin.id}`, 'users'], ['/api/uploads/usage', 'uploads'], [fileUrl, 'uploads'],
  ] as const) {
    const read = ({ headers }: LoggedIn) => strict.inject('GET', path, { headers })
    t.equal((await read(await usher.createUser())).statusCode, 200)
    const response = await logoutDuring(table, read, strict)
    t.match([response.statusCode, response.json()], [401, { code: 'INVALID_TOKEN' }], path)
  }
})

t.test('4 a list that has waited is not sent to a session that has ended meanwhile', async (t) => {
  const response =
    await logoutDuring('users', ({ headers }) => usher.inject('GET', '/api/users?limit=1000', { headers }))
  t.match([response.statusCode, response.json()], [401, { code: 'INVALID_TOKEN' }])
})

t.test('4 without notifications, the event streams of sessions that have ended are closed, and get no more posts', async (t) => {
  const proxy = await createProxy(t, await testDatabaseUrl())
  const deaf = await createUsher(t, { ...usher.options, notificationsUrl: proxy.url })
  const [active, ended, later] = [await usher.createUser(), await usher.createUser(), await usher.createUser()]
  const [kept, closed, idle] = [await open(deaf, active), await open(deaf, ended), await open(deaf, later)]
  proxy.refuse()
  await logout(ended)
  await createPost(usher, usher.admin, 'After the logout')
  t.same(await kept.answers(1), [{ data: { postCreated: { title: 'After the logout' } } }])
  t.equal(await closed.next(), undefined)

  await idle.answers(1)
  await logout(later)
  t.equal(await idle.next(), undefined, 'even if there is no post')
})

t.test('4 without notifications, no post is delivered before it is known whose sessions have ended', async (t) => {
  const proxy = await createProxy(t, await testDatabaseUrl())
  const deaf = await createUsher(t, { ...usher.options, notificationsUrl: proxy.url })
  const [active, ended] = [await usher.createUser(), await usher.createUser()]
  const [kept, closed] = [await open(deaf, active), await open(deaf, ended)]
  proxy.refuse()
  const other = openSql(t, usher)
  await sql.begin(async (trx) => {
    // Nobody can read the sessions meanwhile, so the node cannot know which of them have ended.
    await trx`lock table sessions in access exclusive mode`
    await trx`delete from sessions where user_id = ${ended.id}`
    await other`insert into posts (id, author_id, title, content)
      values (gen_random_uuid(), ${usher.admin.id}, 'After the end', '')`
    // The node looks for posts every second. On a slower machine, this proves less.
    await delay(3000)
  })
  t.same(await kept.answers(1), [{ data: { postCreated: { title: 'After the end' } } }])
  t.equal(await closed.next(), undefined)
})

t.test('4 if the key of a token is revoked, its sockets and event streams are closed', async (t) => {
  const user = await usher.createUser()
  const events = await open(usher, user)
  const socket = await (await openSocket(t, usher)).init({ authorization: `Bearer ${user.token}` })
  const { db } = await openConnection(t, { schema: usher.options.schema! })
  await rotateSigningKey(db, { tokenSeconds: 900, leadSeconds: 0, revoke: true })
  t.equal(await socket.closed, 4403)
  t.equal(await events.next(), undefined)
})
