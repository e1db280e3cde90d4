import { connect } from 'node:net'
import { Writable } from 'node:stream'
import { text } from 'node:stream/consumers'
import type { AddressInfo } from 'node:net'
import { gzipSync } from 'node:zlib'
import Fastify from 'fastify'
import t from 'tap'
import usher from '../../app.ts'
import { createUsher } from '../helpers/app.ts'
import { nightly } from '../helpers/nightly.ts'
import { openSql } from '../helpers/sql.ts'

const JSON_TYPE = 'application/json; charset=utf-8'
const REQUIRED = ['name is required', 'email is required']

const { app, inject, createUser, admin, options } = await createUsher(t)
const base = await app.listen({ port: 0, host: '127.0.0.1' })

// A second app on the same database that keeps everything it logs.
const lines: { reqId?: string, msg: string, err?: { message: string } }[] = []
const stream = new Writable({ write (line, _, done) { lines.push(JSON.parse(String(line))); done() } })
const logging = await createUsher(
  t, { uploadsDir: options.uploadsDir! }, { logger: { stream, level: 'trace' }, genReqId: () => 'the-request' }
)

t.test('1 errors under /api', async (t) => {
  const user = await createUser()
  const post = (payload: string | Buffer, contentType?: string, headers: object = admin.headers) =>
    inject(
      'POST', '/api/users', { headers: { ...headers, ...contentType && { 'content-type': contentType } }, payload }
    )

  t.test('1.1 requests and responses are JSON (given)', async (t) => {
    const responses = [
      await inject('GET', '/api/users'),
      await post('{"name":"A","email":"a@example.com"}', 'application/json'),
      await post('{}', 'application/json'),
      await inject('GET', '/api/protected'),
      await inject('GET', '/api/nothing'),
    ]
    t.same(responses.map(({ statusCode }) => statusCode), [200, 201, 400, 401, 404])
    for (const { headers } of responses) t.equal(headers['content-type'], JSON_TYPE)
  })

  t.test('1.2 a 400 has { errors: [string] }, and a missing field reads "<field> is required" (given)', async (t) => {
    const response = await post('{}', 'application/json')
    t.equal(response.statusCode, 400)
    t.same(response.json(), { errors: REQUIRED })
    t.same((await inject('POST', '/api/auth/login', { payload: {} })).json(), {
      errors: ['email is required', 'password is required'],
    })
    t.same((await inject(
      'PUT', `/api/users/${user.id}`, { headers: admin.headers, payload: { email: 'x@example.com' } }
    )).json(), { errors: ['name is required'] })
  })

  t.test('1.3 every other failure has { error: string } (given: 401, 404)', async (t) => {
    const failures: [number, object, Awaited<ReturnType<typeof inject>>][] = [
      [401, { error: 'A bearer token is required', code: 'UNAUTHENTICATED' }, await inject('GET', '/api/protected')],
      [
        403,
        { error: 'You may not do this', code: 'FORBIDDEN' },
        await inject('DELETE', `/api/users/${admin.id}`, { headers: user.headers }),
      ],
      [404, { error: 'User not found', code: 'USER_NOT_FOUND' }, await inject('GET', '/api/users/1')],
      [404, { error: 'Not found', code: 'NOT_FOUND' }, await inject('GET', '/api/nothing')],
      [405, { error: 'PATCH is not allowed here', code: 'METHOD_NOT_ALLOWED' }, await inject('PATCH', '/api/users')],
      [406, {
        error: 'None of the accepted media types is available. Available: application/json, application/vnd.api.v1+json, application/vnd.api.v2+json',
        code: 'NOT_ACCEPTABLE',
      }, await inject('GET', '/api/users', { headers: { accept: 'application/vnd.api.v9+json' } })],
      [
        409,
        { error: 'The last admin can be neither deleted nor demoted nor disabled', code: 'LAST_ADMIN' },
        await inject('DELETE', `/api/users/${admin.id}`, { headers: admin.headers }),
      ],
      [
        413,
        { error: 'The request body is too large', code: 'PAYLOAD_TOO_LARGE' },
        await post(`"${'x'.repeat(1024 * 1024)}"`, 'application/json'),
      ],
      [
        415,
        { error: 'The content type must be application/json', code: 'UNSUPPORTED_MEDIA_TYPE' },
        await post('{}', 'text/plain'),
      ],
    ]
    for (const [status, body, response] of failures) t.same([response.statusCode, response.json()], [status, body])
  })

  t.test('1.4 an unknown path gets 404, whatever the method and the body', async (t) => {
    for (const path of [
      '/api', '/api/', '/api/nothing', '/api/users/', '/api/users/1/posts', '/api/auth', '/api/auth/login/',
      '/api/Users', '/api//users', '/api/__proto__', '/api/users%00',
    ]) {
      for (const method of ['GET', 'POST', 'PUT', 'DELETE', 'PATCH', 'OPTIONS'] as const) {
        const response = await inject(method, path, { headers: { 'content-type': 'application/json' }, payload: '{' })
        // Here the id is empty, so it is unknown. Writing to it is a protected operation.
        if (path === '/api/users/' && method !== 'GET') continue
        t.equal(response.statusCode, 404, `${method} ${path}`)
        t.match(response.json(), { error: /^(Not|User not) found$/, code: /^(USER_)?NOT_FOUND$/ }, `${method} ${path}`)
      }
    }
  })

  t.test('1.4 a known path with another method gets 405 with Allow, before the body is read', async (t) => {
    const allowed: Record<string, string> = {
      '/api/users': 'GET, HEAD, POST',
      '/api/users/1': 'DELETE, GET, HEAD, PATCH, PUT',
      '/api/auth/login': 'POST',
      '/api/auth/logout': 'POST',
      '/api/protected': 'GET, HEAD',
      '/api/redirect': 'GET, HEAD',
    }
    for (const [path, allow] of Object.entries(allowed)) {
      for (const method of ['GET', 'POST', 'PUT', 'DELETE', 'PATCH', 'OPTIONS', 'TRACE'] as const) {
        if (allow.split(', ').includes(method)) continue
        const response = await inject(
          method as 'GET', path, { headers: { 'content-type': 'application/json' }, payload: '{' }
        )
        t.same([response.statusCode, response.headers.allow], [405, allow], `${method} ${path}`)
        t.same(response.json(), { error: `${method} is not allowed here`, code: 'METHOD_NOT_ALLOWED' })
      }
      if (!allow.includes('HEAD')) t.equal((await inject('HEAD', path)).statusCode, 405, `HEAD ${path}`)
    }
  })

  t.test('1.4 HEAD gets the response of GET without its body', async (t) => {
    for (const path of ['/api/users', `/api/users/${user.id}`, '/api/users/1', '/api/protected', '/api/nothing']) {
      const get = await inject('GET', path)
      const head = await inject('HEAD', path)
      t.same(
        [head.statusCode, head.headers['content-type'], head.body],
        [get.statusCode, get.headers['content-type'], ''],
        path
      )
    }
  })

  t.test('1.4 malformed JSON gets 400 "body is not valid JSON"', async (t) => {
    const nesting = 100_000
    const malformed = [
      '{', '}', '{]', '[1,]', '{"name":"A",}', "{'name':'A'}", '{name:"A"}', 'undefined', 'NaN', '{"name":NaN}',
      '{"name":"A\u0000"}', '{"name":"A\n"}', '\ufeff', ' ', '\n', '{}{}', '{"name":"\\x"}', '{"name":"\\u12"}', '"',
      '['.repeat(nesting), '{"a":'.repeat(nesting),
    ]
    for (const body of malformed) {
      const response = await post(body, 'application/json')
      t.same(
        [response.statusCode, response.json()], [400, { errors: ['body is not valid JSON'] }],
        JSON.stringify(body.slice(0, 30))
      )
    }
    for (const bytes of [
      [0xff], [0x22, 0xc3, 0x28, 0x22], [0x22, 0xed, 0xa0, 0x80, 0x22], [0xff, 0xfe, 0x7b, 0, 0x7d, 0],
    ]) {
      const response = await post(Buffer.from(bytes), 'application/json')
      t.same([response.statusCode, response.json()], [400, { errors: ['body is not valid JSON'] }], bytes.join())
    }
  })

  t.test('1.4 JSON with a hundred thousand levels is parsed like other JSON', async (t) => {
    const depth = 100_000
    const arrays = `${'['.repeat(depth)}${']'.repeat(depth)}`
    t.same((await post(arrays, 'application/json')).json(), { errors: ['body must be an object'] })
    t.same((await post(`{"name":${arrays},"other":${arrays}}`, 'application/json')).json(), {
      errors: ['name must be a string', 'email is required'],
    })
    const prototypes = `${'{"__proto__":'.repeat(depth / 2)}1${'}'.repeat(depth / 2)}`
    t.same((await post(prototypes, 'application/json')).json(), { errors: REQUIRED })
  })

  t.test('1.4 a body that is not JSON gets 415', async (t) => {
    for (const type of [
      'text/plain', 'text/json', 'application/x-www-form-urlencoded', 'multipart/form-data; boundary=x',
      'application/xml', 'application/jsonp', 'application/json5', 'application/problem+json', 'application', 'json',
      ';', '*/*', 'application/json, text/plain', 'xapplication/json',
    ]) {
      const response = await post('{"name":"A","email":"a@example.com"}', type)
      t.same(
        [response.statusCode, response.json()],
        [415, { error: 'The content type must be application/json', code: 'UNSUPPORTED_MEDIA_TYPE' }],
        type
      )
    }
    const none = await inject('POST', '/api/users', { headers: admin.headers, payload: Buffer.from('{}') })
    t.equal(none.statusCode, 415, 'no type at all')
  })

  t.test('1.4 a body with a content coding gets 415 with Accept-Encoding, before its size counts, and identity is none', async (t) => {
    const encoded = async (coding: string, payload: Buffer | string, headers: object = admin.headers) =>
      inject('POST', '/api/users', {
        headers: { ...headers, 'content-type': 'application/json', 'content-encoding': coding }, payload,
      })
    for (const [coding, body] of [
      ['gzip', gzipSync('{}')], ['BR', '{}'], ['identity, zstd', '{}'], ['x-unknown', 'x'.repeat(2 * 1024 * 1024)],
    ] as const) {
      const response = await encoded(coding, body)
      t.same(
        [response.statusCode, response.json()],
        [415, { error: 'The body must not be compressed or encoded otherwise', code: 'UNSUPPORTED_CONTENT_CODING' }],
        coding
      )
      t.equal(response.headers['accept-encoding'], 'identity')
    }
    t.equal((await encoded('gzip', gzipSync('{}'), {})).statusCode, 401, 'after the token')
    for (const coding of ['identity', 'Identity', '']) {
      t.same((await encoded(coding, '{}')).json(), { errors: REQUIRED }, coding)
    }
    const patch = await inject('PATCH', `/api/users/${admin.id}`, {
      headers: { ...admin.headers, 'content-type': 'application/merge-patch+json', 'content-encoding': 'gzip' },
      payload: gzipSync('{}'),
    })
    t.equal(patch.statusCode, 415)
    const operation = await inject('POST', '/graphql', {
      headers: { 'content-type': 'application/json', 'content-encoding': 'gzip' }, payload: gzipSync('{}'),
    })
    t.match([operation.statusCode, operation.json()], [
      200, { errors: [{ extensions: { code: 'UNSUPPORTED_CONTENT_CODING' } }] },
    ])
  })

  t.test('1.4 unusual content types that mean JSON are accepted', async (t) => {
    for (const type of [
      'application/json', 'application/json; charset=utf-8', 'application/json;charset=UTF-8', 'application/json;',
      'APPLICATION/JSON', 'application/json ; x="y;z"',
    ]) {
      const response = await post('{}', type)
      t.same([response.statusCode, response.json()], [400, { errors: REQUIRED }], type)
    }
  })

  t.test('1.4 a body over the limit gets 413, a body at the limit is read', async (t) => {
    const limit = 1024 * 1024
    const body = (size: number) => `{"name":"${'x'.repeat(size - 11)}"}`
    t.same((await post(body(limit), 'application/json')).json(), {
      errors: ['name must be at most 200 characters', 'email is required'],
    })
    t.equal((await post(body(limit + 1), 'application/json')).statusCode, 413)
  })

  t.test('1.4 a body that does not match its Content-Length gets 400', async (t) => {
    const headers = { ...admin.headers, 'content-type': 'application/json' }
    for (const length of ['1', '1000']) {
      const response = await inject(
        'POST', '/api/users', { headers: { ...headers, 'content-length': length }, payload: '{"name":"A"}' }
      )
      t.same(
        [response.statusCode, response.json()],
        [400, { errors: ['body is shorter or longer than its content-length'] }],
        length
      )
    }
  })

  t.test('1.4 over a real connection: a chunked body, an endless body, and an unknown method', async (t) => {
    const { port } = app.server.address() as AddressInfo
    const send = async (head: string, body = '') => {
      const socket = connect(port, '127.0.0.1').on('error', () => {})
      socket.write(`${head}\r\nHost: localhost\r\nConnection: close\r\nAuthorization: Bearer ${admin.token}\r\n${body}`)
      return (await text(socket)).replaceAll(/^(?!HTTP|allow|\{).*\r\n/gm, '').replaceAll('\r\n', ' ')
    }
    t.match(
      await send(
        'POST /api/users HTTP/1.1',
        'Content-Type: application/json\r\nTransfer-Encoding: chunked\r\n\r\n2\r\n{}\r\n0\r\n\r\n'
      ),
      /^HTTP\/1.1 400 Bad Request .*\{"errors":\["name is required","email is required"\]\}/
    )
    const chunk = `10000\r\n${'x'.repeat(0x10000)}\r\n`
    t.match(
      await send(
        'POST /api/users HTTP/1.1',
        `Content-Type: application/json\r\nTransfer-Encoding: chunked\r\n\r\n${chunk.repeat(17)}`
      ),
      /^HTTP\/1.1 413 /
    )
    t.match(
      await send('PROPFIND /api/users HTTP/1.1', '\r\n'),
      /^HTTP\/1.1 404 Not Found .*\{"error":"Not found","code":"NOT_FOUND"\}/
    )
    t.match(
      await send('POST /api/users HTTP/1.1', 'Content-Type: application/json\r\nContent-Length: 99999999999\r\n\r\n{'),
      /^HTTP\/1.1 413 /
    )
  })

  t.test('1.7 if several things are wrong, the first in the order of the contract is reported', async (t) => {
    const path = `/api/users/${admin.id}`
    const bad = { authorization: 'Bearer bad' }
    const big = 'x'.repeat(2 * 1024 * 1024)
    const status = async (headers: object, payload: string, contentType: string) =>
      (await inject('PUT', path, { headers: { ...headers, 'content-type': contentType }, payload })).statusCode
    t.equal(await status({}, big, 'text/plain'), 401, 'the token before all')
    t.equal(await status(bad, '{', 'application/json'), 401, 'no parsing for a bad one')
    t.equal(await status(user.headers, big, 'text/plain'), 403, 'then the permission')
    t.equal(await status(admin.headers, big, 'text/plain'), 415, 'then the type')
    t.equal(await status(admin.headers, big, 'application/json'), 413, 'then the size')
    t.equal(await status(admin.headers, '{', 'application/json'), 400, 'then the content')
    const unknown = await inject('PUT', '/api/users/unknown', { headers: admin.headers, payload: {} })
    t.equal(unknown.statusCode, 400, 'then whether it is there')
    const logout = await inject(
      'POST', '/api/auth/logout', { headers: { ...bad, 'content-type': 'application/json' }, payload: '{' }
    )
    t.equal(logout.statusCode, 401)
  })

  t.test('1.8 text comes back as it was sent', async (t) => {
    const name = 'a\u0301 \u00e1 \u202e \u200b \ufeffx\ufffd <&> "\\" \ud83d\ude00'
    const created = await post(JSON.stringify({ name, email: 'unchanged@example.com' }), 'application/json')
    t.equal(created.json().name, name)
    t.equal((await inject('GET', created.headers.location as string)).json().name, name)
  })

  t.test('1.9 an absent body is treated as {}', async (t) => {
    t.same((await inject('POST', '/api/users', { headers: admin.headers })).json(), { errors: REQUIRED })
    t.same((await post('', 'application/json')).json(), { errors: REQUIRED })
  })

  t.test('1.9 values are not coerced', async (t) => {
    t.same((await post('{"name":1,"email":true}', 'application/json')).json(), {
      errors: ['name must be a string', 'email must be a string'],
    })
  })

  t.test('1.9 a body made to be costly is handled quickly', async (t) => {
    const size = 500_000
    const hostile = [
      { name: ' '.repeat(size), email: 'a'.repeat(size) },
      { name: '\u0000'.repeat(size / 10), email: `a@${'a'.repeat(size)}` },
      { name: 'x', email: `a@${'a.'.repeat(size / 2)}` },
      { name: 'x', email: `${'a.'.repeat(size / 2)}@` },
      { name: 'x', email: `a@${'a-'.repeat(size / 2)}` },
      { name: 'x', email: '@'.repeat(size) },
      { name: '\ud83d\ude00'.repeat(size / 8), email: ' '.repeat(size / 2) + 'x' + ' '.repeat(size / 4) },
    ]
    for (const [index, body] of hostile.entries()) {
      const before = process.cpuUsage()
      const response = await post(JSON.stringify(body), 'application/json')
      t.equal(response.statusCode, response.json().errors.length > 0 ? 400 : 0)
      t.ok(
        process.cpuUsage(before).user < 2_000_000,
        `${index}: ${process.cpuUsage(before).user} microseconds of processor time`
      )
    }
    const members = `{${Array.from({ length: 80_000 }, (_, index) => `"m${index}":1`).join()}}`
    t.same((await post(members, 'application/json')).json(), { errors: REQUIRED })
  })
})

t.test('1.3 a 500 reveals no cause; the log contains it with the request\'s id (given)', async (t) => {
  const { inject, admin, options } = logging
  const sql = openSql(t, logging)
  await sql`alter table users rename to elsewhere`
  const payload = { name: 'A', email: 'a@example.com' }

  for (const [method, path] of [
    ['GET', ''], ['GET', `/${admin.id}`], ['POST', ''], ['PUT', `/${admin.id}`], ['DELETE', `/${admin.id}`],
  ] as const) {
    const seen = lines.length
    const response = await inject(
      method, `/api/users${path}`, { headers: admin.headers, ...method !== 'GET' && { payload } }
    )
    t.equal(response.statusCode, 500)
    t.equal(response.headers['content-type'], JSON_TYPE)
    t.same(response.json(), { error: 'The server failed', code: 'INTERNAL_ERROR' })
    const line = lines.slice(seen).find(({ err }) => err)!
    t.match(line, {
      reqId: 'the-request',
      msg: 'The server failed',
      err: { message: `relation "${options.schema}.users" does not exist` },
    })
  }
  await sql`alter table elsewhere rename to users`
})

t.test('2 passwords, tokens and cookies are never logged', async (t) => {
  const { inject, admin, createUser } = logging
  const user = await createUser()
  const secret = user.cookie.split('=')[1]!
  await inject('GET', '/api/protected', { headers: user.headers })
  await inject('GET', '/api/protected', { headers: { authorization: `Bearer ${user.token}x` } })
  await inject('POST', '/api/auth/login', { payload: { email: user.email, password: `${user.password}\u0000` } })
  await inject('POST', '/api/auth/logout', { headers: { cookie: user.cookie } })
  t.ok(lines.length > 10)
  const log = JSON.stringify(lines)
  for (const confidential of [user.password, user.token, secret, admin.password, admin.token]) {
    t.notOk(log.includes(confidential))
  }
})

t.test('1.3 a hook of the host may reject with its own message; other exceptions in it reveal nothing', async (t) => {
  const app = Fastify({ pluginTimeout: 0 })
  t.teardown(() => app.close())
  app.addHook('onRequest', async ({ headers }) => {
    if (headers['x-fail']) throw Object.assign(new Error('why'), { statusCode: Number(headers['x-fail']) })
    if (headers['x-throw']) throw new TypeError('a secret of the host')
  })
  await app.register(usher, options)
  const get = async (headers: object) => {
    const response = await app.inject({ url: '/api/users', headers: headers as Record<string, string> })
    return [response.statusCode, response.json(), response.headers['retry-after']]
  }
  t.same(await get({ 'x-fail': '400' }), [400, { errors: ['why'] }, undefined])
  t.same(await get({ 'x-fail': '429' }), [429, { error: 'why' }, undefined])
  t.same(await get({ 'x-fail': '503' }), [503, { error: 'why' }, '1'])
  t.same(await get({ 'x-fail': '502' }), [500, { error: 'The server failed', code: 'INTERNAL_ERROR' }, undefined])
  t.same(await get({ 'x-throw': '1' }), [500, { error: 'The server failed', code: 'INTERNAL_ERROR' }, undefined])
})

nightly('1.4 a body that is too large gets its response, however much of it is still being sent', async (t) => {
  const headers = { ...admin.headers, 'content-type': 'application/json' }
  const body = JSON.stringify({ name: 'x'.repeat(6_000_000) })
  for (let round = 0; round < 10; round++) {
    const refused = await fetch(`${base}/api/users`, { method: 'POST', headers, body })
    t.equal(refused.status, 413)
    t.same(await refused.json(), { error: 'The request body is too large', code: 'PAYLOAD_TOO_LARGE' })
    const graphql = await fetch(`${base}/graphql`, { method: 'POST', headers, body })
    t.equal(graphql.status, 200)
    t.match(await graphql.json(), { errors: [{ extensions: { code: 'PAYLOAD_TOO_LARGE' } }] })
  }
})
