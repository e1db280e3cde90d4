import type { InjectOptions } from 'fastify'
import type { Test } from 'tap'
import { shownMembers } from '../../schema/users/members.ts'
import type { TestUsher } from './app.ts'
import { fieldPart, filePart, post } from './uploads.ts'
import { openSocket } from './wire.ts'

const UUID = /^[0-9a-f-]{36}$/

/** Checks each part of Usher briefly, as it must behave in any host. The tests of the routes check the details. */
export async function surface (t: Test, usher: TestUsher): Promise<void> {
  const { inject, admin, createUser, app, prefix } = usher
  const url = `http://127.0.0.1:${(app.server.address() as { port: number }).port}`

  await t.test('2.1 to 2.5 users, with their error responses', async (t) => {
    const payload = { name: 'Ada', email: 'ada@example.com', extra: 1 }
    const created = await inject('POST', '/api/users', { headers: admin.headers, payload })
    t.equal(created.statusCode, 201)
    const ada = created.json()
    t.strictSame(Object.keys(ada).sort(), [...shownMembers].sort())
    t.equal(created.headers.location, `${prefix}/api/users/${ada.id}`)
    t.match(created.headers['content-type'], /^application\/json/)
    t.strictSame((await inject('GET', `/api/users/${ada.id}`)).json(), ada)
    t.strictSame((await inject('GET', '/api/users?role=user')).json(), [ada])
    t.strictSame((await inject(
      'PUT', `/api/users/${ada.id}`, { headers: admin.headers, payload: { ...payload, name: 'Lovelace' } }
    )).json().name, 'Lovelace')
    const invalid = await inject('POST', '/api/users', { headers: admin.headers, payload: { name: 1 } })
    t.strictSame(
      [invalid.statusCode, invalid.json()], [400, { errors: ['name must be a string', 'email is required'] }]
    )
    const removed = await inject(
      'DELETE', `/api/users/${ada.id}`, { headers: { ...admin.headers, 'content-type': 'application/json' } }
    )
    t.strictSame([removed.statusCode, removed.body], [204, ''])
    const gone = await inject('GET', `/api/users/${ada.id}`)
    t.strictSame([gone.statusCode, gone.json()], [404, { error: 'User not found', code: 'USER_NOT_FOUND' }])
    t.equal((await inject('GET', `/api/users/${'x'.repeat(200)}`)).json().code !== undefined, true)
    const [page] = [await inject('GET', '/api/users?limit=1')]
    await createUser()
    t.match((await inject('GET', '/api/users?limit=1')).headers.link, new RegExp(
      `^<${prefix}/api/users\\?limit=1&after=[\\w-]+>; rel="next"$`
    ))
    t.equal(page.headers.link, undefined)
    t.strictSame((await inject('GET', '/api/users?role=a&role=b')).statusCode, 400)
  })

  await t.test('1.4 failures have one of two shapes', async (t) => {
    const { headers } = admin
    const refusals: [InjectOptions['method'], string, object, number, object][] = [
      ['POST', '/api/users', {}, 401, { error: 'A bearer token is required', code: 'UNAUTHENTICATED' }],
      [
        'POST', '/api/users', { headers: { ...headers, 'content-type': 'application/json' }, payload: '{' }, 400,
        { errors: ['body is not valid JSON'] },
      ],
      [
        'POST', '/api/users', { headers: { ...headers, 'content-type': 'application/xml' }, payload: '<a/>' }, 415,
        { error: 'The content type must be application/json', code: 'UNSUPPORTED_MEDIA_TYPE' },
      ],
      [
        'POST', '/api/users',
        { headers: { ...headers, 'content-type': 'multipart/form-data; boundary=x' }, payload: '--x--' }, 415,
        { error: 'The content type must be application/json', code: 'UNSUPPORTED_MEDIA_TYPE' },
      ],
      [
        'POST', '/api/users', { headers, payload: { name: 'x'.repeat(2 ** 20) } }, 413,
        { error: 'The request body is too large', code: 'PAYLOAD_TOO_LARGE' },
      ],
      ['GET', '/api/unknown', {}, 404, { error: 'Not found', code: 'NOT_FOUND' }],
      ['PATCH', '/api/users', {}, 405, { error: 'PATCH is not allowed here', code: 'METHOD_NOT_ALLOWED' }],
      ['GET', '/api/users', { headers: { accept: 'application/vnd.api.v9+json' } }, 406, {
        error: 'None of the accepted media types is available. Available: application/json, application/vnd.api.v1+json, application/vnd.api.v2+json',
        code: 'NOT_ACCEPTABLE',
      }],
    ]
    for (const [method, path, rest, status, body] of refusals) {
      const response = await inject(method, path, rest)
      t.strictSame([response.statusCode, response.json()], [status, body], `${method} ${path} ${status}`)
    }
  })

  await t.test('3 and 6 API versions and the redirect', async (t) => {
    const two = await inject('GET', '/api/users', { headers: { accept: 'application/vnd.api.v2+json' } })
    t.match(two.headers['content-type'], 'application/vnd.api.v2+json')
    t.strictSame(Object.keys(two.json()), ['version', 'data', 'page'])
    const redirect = await inject('GET', '/api/redirect')
    t.strictSame([redirect.statusCode, redirect.headers.location], [302, `${prefix}/api/users`])
  })

  await t.test('4 login, a protected route and logout', async (t) => {
    const user = await createUser()
    t.match(user.cookie, /^usher_session=[\w.-]+$/)
    const login = await inject('POST', '/api/auth/login', { payload: { email: user.email, password: user.password } })
    t.match(
      login.headers['set-cookie'],
      /; Max-Age=\d+; Path=\/accounts\/api\/auth; Expires=[^;]+ GMT; HttpOnly; SameSite=Lax$/
    )
    t.match((await inject('GET', '/api/protected', { headers: user.headers })).json(), { user: { id: user.id } })
    t.equal((await inject('POST', '/api/auth/logout', { headers: { cookie: user.cookie } })).statusCode, 204)
    const refused = await inject('GET', '/api/protected', { headers: user.headers })
    t.strictSame([refused.statusCode, refused.headers['www-authenticate']], [401, 'Bearer error="invalid_token"'])
    t.equal((await inject('GET', '/.well-known/jwks.json')).json().keys.length, 1)
    t.strictSame((await inject('GET', '/health/ready')).json(), { status: 'ok' })
  })

  await t.test('5 uploads', async (t) => {
    const sent = await post(usher, [filePart('y'.repeat(5000)), fieldPart('description', 'Text')])
    t.equal(sent.statusCode, 200)
    const { fileUrl, id } = sent.json()
    t.equal(fileUrl, `${prefix}/api/uploads/${id}`)
    t.equal((await app.inject(fileUrl)).body, 'y'.repeat(5000))
    const wrong = await post(usher, [])
    t.strictSame([wrong.statusCode, wrong.json()], [400, { errors: ['file is required', 'description is required'] }])
  })

  await t.test('7 GraphQL over HTTP and over a socket', async (t) => {
    const socket = await openSocket(t, `${url.replace('http', 'ws')}${prefix}/graphql`, ['graphql-transport-ws'])
    t.equal(socket.socket.protocol, 'graphql-transport-ws')
    socket.say({ type: 'connection_init' })
    t.strictSame(JSON.parse(await socket.hear()).type, 'connection_ack')
    socket.say({
      type: 'subscribe', id: '1', payload: { query: 'subscription { postCreated { title author { id } } }' },
    })
    socket.say({ type: 'subscribe', id: '2', payload: { query: '{ __typename }' } })
    t.match(JSON.parse(await socket.hear()), { type: 'next', id: '2' })
    t.match(JSON.parse(await socket.hear()), { type: 'complete', id: '2' })
    const created = await inject('POST', '/graphql', {
      headers: admin.headers,
      payload: {
        mutation: '{ createPost(input: { title: "Hello", content: "all" }) { id title author { posts { title } } } }',
      },
    })
    t.match([created.statusCode, created.json()], [
      200, { data: { createPost: { id: UUID, title: 'Hello', author: { posts: [{ title: 'Hello' }] } } } },
    ])
    t.match(JSON.parse(await socket.hear()), {
      type: 'next', id: '1', payload: { data: { postCreated: { title: 'Hello', author: { id: admin.id } } } },
    })
    const malformed = await inject(
      'POST', '/graphql', { headers: { 'content-type': 'application/json' }, payload: '{' }
    )
    t.strictSame([malformed.statusCode, malformed.json().errors.length], [200, 1])
    const unknown = await inject('POST', '/graphql', { payload: { query: '{ user(id: "none") { id } }' } })
    t.match(unknown.json(), { errors: [{ message: 'User not found' }] })
  })

  await t.test('8 the API reference', async (t) => {
    t.equal((await inject('GET', '/docs/')).statusCode, 200)
    const document = (await inject('GET', '/docs/json')).json()
    t.equal(document.openapi.slice(0, 3), '3.1')
    t.ok(document.paths['/api/users'])
    t.notOk(Object.keys(document.paths).some((path) => path.includes('mine')))
  })
}
