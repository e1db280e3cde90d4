import { PassThrough } from 'node:stream'
import { setTimeout as delay } from 'node:timers/promises'
import Fastify from 'fastify'
import { decodeJwt } from 'jose'
import t from 'tap'
import app from '../../app.ts'
import { HEARTBEAT } from '../../db/driver/notification-connection.ts'
import { createUsher, withUsers, type LoggedIn, type TestUsher } from '../helpers/app.ts'
import { testDatabaseUrl } from '../helpers/database.ts'
import { createPost } from '../helpers/graphql.ts'
import { nightly } from '../helpers/nightly.ts'
import { occupyThreads } from '../helpers/occupied-threads.ts'
import { beginRequest } from '../helpers/slow-request.ts'
import { openSql } from '../helpers/sql.ts'
import { until } from '../helpers/until.ts'
import { chunked, END, fieldPart, filePart, nothingLeft, open, received } from '../helpers/uploads.ts'

const NEW = { name: 'New', email: 'new@example.com', role: 'admin' }
const CREATE = { query: 'mutation { createPost(input: { title: "A", content: "B" }) { id } }' }

const sessionOf = ({ token }: LoggedIn) => decodeJwt(token).sid as string
const logout = ({ inject }: TestUsher, { headers }: LoggedIn) => inject('POST', '/api/auth/logout', { headers })

/** Keeps this process, and so the node, from doing anything. */
const block = (milliseconds: number) => Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, milliseconds)

const usher = await createUsher(t)

t.test('1.12 if the session ends while the body arrives, the response is 401 and nothing is written', async (t) => {
  const sql = openSql(t, usher)
  const other = await usher.createUser({ email: 'other@example.com' })
  const postId = await createPost(usher, other)
  const state = async () => JSON.stringify([
    await sql`select * from users order by id`, await sql`select * from posts order by id`,
    await sql`select id from sessions where user_id = ${other.id}`, await sql`select hash from password_links`,
  ])
  const requests: Record<string, [method: string, path: string, body: object]> = {
    'creating a user': ['POST', '/api/users', NEW],
    'creating a user with a password': ['POST', '/api/users', { ...NEW, password: 'correct horse battery' }],
    'replacing a user': ['PUT', `/api/users/${other.id}`, { name: 'Eve', email: 'eve@example.com' }],
    'granting a role': ['PUT', `/api/users/${other.id}`, { name: 'N', email: 'other@example.com', role: 'admin' }],
    'deleting a user': ['DELETE', `/api/users/${other.id}`, {}],
    'changing a password': [
      'PUT', '/api/auth/password', { currentPassword: 'wrong', password: 'correct horse battery' },
    ],
    'inviting a user': ['POST', `/api/users/${other.id}/invitation`, {}],
    'ending a session': ['DELETE', `/api/auth/sessions/${sessionOf(other)}`, {}],
  }
  for (const [what, [method, path, body]] of Object.entries(requests)) {
    await t.test(`1.12 ${what}`, async (t) => {
      const admin = await usher.login(usher.admin)
      const request = await beginRequest(t, usher, method, path, admin.headers, body)
      await logout(usher, admin)
      const before = await state()
      request.finish()
      const answer = await request.answer
      t.match(answer, /^HTTP\/1\.1 401 [^]*"INVALID_TOKEN"/)
      t.match(answer, /^www-authenticate: Bearer error="invalid_token"\r$/m)
      t.equal(await state(), before)
    })
  }

  const operations: Record<string, object> = {
    createPost: CREATE,
    updatePost: { query: `mutation { updatePost(id: "${postId}", input: { title: "Changed" }) { id } }` },
    deletePost: { query: `mutation { deletePost(id: "${postId}") }` },
  }
  for (const [what, operation] of Object.entries(operations)) {
    await t.test(`1.12 7.1 ${what}`, async (t) => {
      const admin = await usher.login(usher.admin)
      const request = await beginRequest(t, usher, 'POST', '/graphql', admin.headers, operation)
      await logout(usher, admin)
      const before = await state()
      request.finish()
      t.match(await request.answer, /^HTTP\/1\.1 200 [^]*"INVALID_TOKEN"/)
      t.equal(await state(), before)
    })
  }

  await t.test('1.12 an upload is rejected, and its file is removed', async (t) => {
    const user = await usher.createUser()
    const socket = await open(t, { ...usher, admin: user }, 'Transfer-Encoding: chunked\r\nConnection: close')
    const answer = received(socket)
    socket.write(chunked(filePart('Hello')))
    await logout(usher, user)
    socket.write(
      Buffer.concat([chunked(Buffer.concat([fieldPart('description', 'Something'), END])), Buffer.from('0\r\n\r\n')])
    )
    t.match(await answer, /^HTTP\/1\.1 401 [^]*INVALID_TOKEN/)
    await nothingLeft(usher, sql)
  })

  await t.test('1.12 the same holds for a body that is malformed', async (t) => {
    const answers = {
      '/api/users': /^HTTP\/1\.1 401 [^]*"INVALID_TOKEN"/, '/graphql': /^HTTP\/1\.1 200 [^]*"INVALID_TOKEN"/,
    }
    for (const [path, expected] of Object.entries(answers)) {
      const user = await usher.login(usher.admin)
      const request = await beginRequest(t, usher, 'POST', path, user.headers, NEW)
      await logout(usher, user)
      request.finish('x'.repeat(JSON.stringify(NEW).length - 1))
      t.match(await request.answer, expected, path)
    }
    const user = await usher.createUser()
    for (const rest of [END, filePart('Hello')]) {
      const session = await usher.login(user)
      const socket = await open(t, { ...usher, admin: session }, 'Transfer-Encoding: chunked\r\nConnection: close')
      const answer = received(socket)
      socket.write(chunked(filePart('Hello')))
      await logout(usher, session)
      socket.write(Buffer.concat([chunked(rest), Buffer.from('0\r\n\r\n')]))
      t.match(await answer, /^HTTP\/1\.1 401 [^]*INVALID_TOKEN/)
    }
    await nothingLeft(usher, sql)
  })

  await t.test('1.12 a request without a token is not affected', async (t) => {
    const request = await beginRequest(t, usher, 'POST', '/graphql', {}, { query: '{ me { id } }' })
    request.finish()
    t.match(await request.answer, /^HTTP\/1\.1 200 [^]*{"data":{"me":null}}/)
  })
})

nightly('1.12 if the token expires while the body arrives, the response is 401 and nothing is written', async (t) => {
  const usher = await createUsher(t, { accessTokenSeconds: 2 })
  const sql = openSql(t, usher)
  const { headers, token } = await usher.login(usher.admin)
  const [rest, graphql] = [await beginRequest(t, usher, 'POST', '/api/users', headers, NEW), await beginRequest(
    t, usher, 'POST', '/graphql', headers, CREATE
  )]
  const { exp } = decodeJwt(token)
  await until('its time has come', () => Date.now() >= exp! * 1000, 20)
  await until(
    'the token has expired',
    async () => (await usher.inject('GET', '/api/protected', { headers })).statusCode === 401,
    20
  )
  for (const { finish } of [rest, graphql]) finish()
  t.match(await rest.answer, /^HTTP\/1\.1 401 [^]*"INVALID_TOKEN"/)
  t.match(await graphql.answer, /^HTTP\/1\.1 200 [^]*"INVALID_TOKEN"/)
  t.same(
    await sql`select count(*)::int as users, (select count(*)::int from posts) as posts from users`,
    [{ users: 1, posts: 0 }]
  )
})

nightly('1.12 a node without notifications reads the session from the database', async (t) => {
  const application = `slow bodies ${process.pid}`
  const usher = await createUsher(
    t, { databaseUrl: `${await testDatabaseUrl()}?application_name=${encodeURIComponent(application)}` }
  )
  const sql = openSql(t, usher)
  for (const name of ['first', 'second', 'third', 'fourth', 'fifth']) {
    const [ended, live] = [await usher.login(usher.admin), await usher.login(usher.admin)]
    const begin = (user: LoggedIn, email: string) =>
      beginRequest(t, usher, 'POST', '/api/users', user.headers, { ...NEW, email })
    const requests = [await begin(ended, `${name}@example.com`), await begin(live, `${name}@example.org`)] as const
    await sql`
      select pg_terminate_backend(pid) from pg_stat_activity where pid <> pg_backend_pid() and application_name = ${application} and (query ilike '%listen "%' or query = ${HEARTBEAT})`
    await sql`delete from sessions where id = ${sessionOf(ended)}`
    // Other nodes may take up to 100 ms to receive the notification.
    await until('the session is refused', async () =>
      (await usher.inject('GET', '/api/protected', { headers: ended.headers })).statusCode === 401)
    for (const { finish } of requests) finish()
    t.match(await requests[0].answer, /^HTTP\/1\.1 401 /)
    t.match(await requests[1].answer, /^HTTP\/1\.1 201 /)
  }
  t.equal((await sql`select 1 from users where email like '%@example.org'`).length, 5)
  t.same(await sql`select 1 from users where name = 'New' and email like '%@example.com'`, [])
})

t.test('1.12 if the session ends while a password is being hashed, the response is 401 and no user is created', async (t) => {
  const sql = openSql(t, usher)
  const admin = await usher.createUser({ role: 'admin' })
  const password = 'correct horse battery'
  const threads = occupyThreads(t)
  const change = usher.inject(
    'PUT', '/api/auth/password', { headers: admin.headers, payload: { currentPassword: admin.password, password } }
  )
  const creation = usher.inject('POST', '/api/users', { headers: admin.headers, payload: { ...NEW, password } })
  t.equal((await logout(usher, admin)).statusCode, 204)
  await threads.release()
  t.equal((await creation).statusCode, 401)
  t.equal((await change).statusCode, 401)
  t.same(await sql`select 1 from users where email = ${NEW.email}`, [])
  t.equal(
    (await usher.inject('POST', '/api/auth/login', { payload: admin })).statusCode, 200, 'the password is the same'
  )
})

t.test('9 a route of the host can check again by calling authenticate in preHandler', async (t) => {
  const host = Fastify({ pluginTimeout: 0, forceCloseConnections: true })
  t.teardown(() => host.close())
  const { options } = usher
  await host.register(app, options)
  const { authenticate } = host.usher
  let written = 0
  host.post('/mine', { onRequest: authenticate, preHandler: authenticate }, async () => { written++; return {} })
  await host.ready()
  const mounted = await withUsers(host, options)
  for (const [ends, status] of [[true, 401], [false, 200]] as const) {
    const user = await mounted.login(mounted.admin)
    const request = await beginRequest(t, mounted, 'POST', '/mine', user.headers, {})
    if (ends) await logout(mounted, user)
    request.finish()
    t.match(await request.answer, new RegExp(`^HTTP/1\\.1 ${status} `))
  }
  t.equal(written, 1)
})

const impatient = await createUsher(t, { ...usher.options, bodySeconds: 0.3, uploadIdleSeconds: 1 })

t.test('1.13 a JSON body that takes too long gets 408, and the connection is closed', async (t) => {
  const { admin } = impatient
  await t.test('1.13 a REST request gets 408 { error }', async (t) => {
    const { answer } = await beginRequest(
      t, impatient, 'POST', '/api/users', { ...admin.headers, connection: 'keep-alive' }, NEW
    )
    t.match(
      await answer,
      /^HTTP\/1\.1 408 [^]*connection: close\r\n[^]*{"error":"The rest of the request body did not arrive in time","code":"BODY_STALLED"}$/i
    )
  })
  await t.test('1.13 this also applies if bytes keep arriving slowly', async (t) => {
    const { answer, drip } = await beginRequest(
      t, impatient, 'POST', '/api/auth/login', { connection: 'keep-alive' }, { email: 'a'.repeat(1000), password: 'x' }
    )
    const dripping = setInterval(drip, 20, ' ')
    t.match(await answer, /^HTTP\/1\.1 408 /)
    clearInterval(dripping)
  })
  await t.test('1.13 7.1 a GraphQL request gets 200 with errors', async (t) => {
    const { answer } = await beginRequest(t, impatient, 'POST', '/graphql', { connection: 'keep-alive' }, CREATE)
    t.match(await answer, /^HTTP\/1\.1 200 [^]*connection: close\r\n[^]*"code":"BODY_STALLED"/i)
  })
})

nightly('1.13 the deadline ends when the body has arrived, also if the node is too busy to read it then', async (t) => {
  const seconds = 3
  const usher = await createUsher(t, { bodySeconds: seconds })
  const { admin } = usher
  // The response takes longer than the deadline of the body.
  const locked = await openSql(t, usher).begin(async (trx) => {
    await trx`select from users where id = ${admin.id} for update`
    const request = await beginRequest(
      t, usher, 'PUT', `/api/users/${admin.id}`, admin.headers, { name: 'Renamed', email: admin.email }
    )
    request.finish()
    await delay(1000 * seconds)
    return request
  })
  t.match(await locked.answer, /^HTTP\/1\.1 200 /)

  const request = await beginRequest(
    t, usher, 'POST', '/api/users', admin.headers, { ...NEW, email: 'busy@example.com' }
  )
  request.finish()
  block(1000 * seconds)
  t.match(await request.answer, /^HTTP\/1\.1 201 /)
})

t.test('1.13 9 the deadline also applies to a body that a hook of the host transforms', async (t) => {
  const host = Fastify({ pluginTimeout: 0, forceCloseConnections: true })
  t.teardown(() => host.close())
  const options = { ...usher.options, bodySeconds: 0.3 }
  host.addHook('preParsing', async (_, __, payload) => payload.pipe(new PassThrough()))
  await host.register(app, options)
  const mounted = await withUsers(host, options)
  const { answer } = await beginRequest(t, mounted, 'POST', '/api/users', mounted.admin.headers, NEW)
  t.match(await answer, /^HTTP\/1\.1 408 [^]*BODY_STALLED/)
})

t.test('1.13 an upload that is too slow gets 408, and nothing remains', async (t) => {
  const socket = await open(t, impatient, 'Content-Length: 90000')
  const answer = received(socket)
  socket.write(filePart(Buffer.alloc(5000)).subarray(0, -50))
  const dripping = setInterval(() => socket.write('x'), 50)
  t.match(await answer, /^HTTP\/1\.1 408 [^]*BODY_STALLED/)
  clearInterval(dripping)
  await nothingLeft(impatient, openSql(t, impatient))
})
