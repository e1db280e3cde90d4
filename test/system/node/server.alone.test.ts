import { mkdir, readdir, rm, writeFile } from 'node:fs/promises'
import { once } from 'node:events'
import { connect, createServer, type AddressInfo } from 'node:net'
import { join } from 'node:path'
import t, { type Test } from 'tap'
import { failStart } from '../../helpers/command.ts'
import { createDatabase, prepareFolder } from '../../helpers/database.ts'
import { openSocket } from '../../helpers/graphql.ts'
import { nightly } from '../../helpers/nightly.ts'
import { logged, spawnNode, startNode, stopNode, type NodeOptions } from '../../helpers/node.ts'
import { createProxy } from '../../helpers/proxy.ts'
import { until } from '../../helpers/until.ts'

t.jobs = 3

const admin = { email: 'root@example.com', password: 'horse battery staple' }
const SECRET = 'a secret of many words'
const databaseUrl = await createDatabase(t, { empty: true })

/** Returns the options of a node that uses the database of this file. */
function connected (t: Test, settings: Record<string, string> = {}, rest: Partial<NodeOptions> = {}): NodeOptions {
  const given = { DATABASE_URL: databaseUrl, SECRET, ADMIN_EMAIL: admin.email, ADMIN_PASSWORD: admin.password }
  return { cwd: t.testdir(), settings: { ...given, ...settings }, ...rest }
}

const unknown = '/api/users/0190a0b0-0000-7000-8000-000000000000'

nightly('8 the node caches compiled code for the next start, and frees memory that only the start needed', { buffered: true }, async (t) => {
  const kept = join(import.meta.dirname, '../../../node_modules/.cache/usher')
  await rm(kept, { recursive: true, force: true })
  const first = await startNode(t, connected(t, { LOG_LEVEL: 'debug' }, { compileCache: true }))
  await logged(first, () => first.stdout.includes('The memory that only the start needed was freed'))
  t.match(first.stdout, '"status":"fulfilled"')
  // While a busy machine frees memory, the database may count as unavailable for a moment.
  await until('the node answers', async () => (await first.fetch(unknown)).status === 404)
  t.equal(await stopNode(first), 0)
  t.equal((await readdir(kept)).length, 1, 'the cache of this version of Node.js')

  const second = await startNode(t, connected(t, {}, { compileCache: true }))
  t.equal((await second.fetch(unknown)).status, 404)
  t.match(await second.login(admin), { token: String })
})

nightly('1.10 a database that stops responding just when a node has started does not end the node', { buffered: true }, async (t) => {
  const proxy = await createProxy(t, databaseUrl)
  // The node does not listen before there is a file named `go` in its folder.
  const inject = `
    import { existsSync } from 'node:fs'
    import { Server } from 'node:http'
    const { listen } = Server.prototype
    Server.prototype.listen = function (...args) {
      console.error('wants to listen')
      const timer = setInterval(() => { if (existsSync('go')) { clearInterval(timer); listen.apply(this, args) } }, 5)
      return this
    }
  `
  const options = connected(t, { DATABASE_URL: proxy.url }, { inject })
  const node = spawnNode(t, options)
  await node.said('wants to listen')
  proxy.freeze()
  await writeFile(join(options.cwd, 'go'), '')
  const [, url] = await node.said(/listens on (\S+)/)
  proxy.thaw()
  await until('the node serves', async () => (await fetch(`${url}${unknown}`)).status === 404)
})

t.test('8 the first start needs no settings, and the data survive restarts and kill -9', { buffered: true }, async (t) => {
  const cwd = t.testdir()
  const first = await startNode(t, { cwd, settings: { LOG_LEVEL: 'trace', PRINT_SECRETS: 'true' } })
  const [, email = '', password = ''] = await first.said(/The first admin is (\S+), password (\S+) \(not shown again\)/)
  t.equal(email, 'admin@example.com')
  const shown = first.url.replace('127.0.0.1', 'localhost')
  t.match(shown, /^http:\/\/localhost:\d+$/)
  t.equal((await fetch(`${shown}/health/live`)).status, 200, 'the node answers at the address that it prints')
  t.ok(first.stderr.endsWith([
    `Usher listens on ${shown}`,
    `data: ${cwd}/data (embedded PostgreSQL)`,
    `log in: ${shown}/login, console: ${shown}/console, docs: ${shown}/docs, GraphiQL: ${shown}/graphql`,
    `The first admin is ${email}, password ${password} (not shown again)\n`,
  ].join('\n')), 'prints the address, the place of the data, the address of the documentation, and last the password')

  const { token, cookie, headers } = await first.login({ email, password })
  t.equal((await first.fetch(`/api/protected?secret=${token}`, { headers: { ...headers, cookie } })).status, 200)
  t.equal((await first.fetch('/api/protected', { headers: { authorization: `Bearer ${token}x` } })).status, 401)

  const second = await startNode(t, { cwd })
  t.equal((await second.fetch('/api/protected', { headers })).status, 200, 'two nodes share one folder')
  t.equal(await stopNode(first), 0)
  t.equal(first.stderr.split('\n').at(-2), 'Usher stops on SIGTERM')
  t.match(first.stdout, 'PostgreSQL: left running for the nodes that use it')
  t.equal((await second.fetch('/api/protected', { headers })).status, 200, 'the other node continues to work')

  const lines = first.stdout.trim().split('\n').map((line) => JSON.parse(line))
  t.match(lines.find(({ req }) => req?.url === '/api/protected'), {
    level: 20, reqId: /^[\w-]{8}-\w+$/, req: { method: 'GET', remoteAddress: '127.0.0.1' }, res: { statusCode: 200 },
  })
  for (const secret of [password, token, cookie]) t.notOk(first.stdout.includes(secret), 'no secret in the log')

  const body = JSON.stringify({ name: 'Kept', email: 'kept@example.com' })
  const created = await second.fetch('/api/users', { method: 'POST', headers, body })
  second.child.kill('SIGKILL')
  t.equal(created.status, 201)
  await second.ended

  const third = await startNode(t, { cwd })
  t.equal((await third.fetch(created.headers.get('location')!)).status, 200, 'the acknowledged user exists')
  t.match(await third.login({ email, password }), { token: String })
  t.notMatch(third.stderr, /first admin/)
  t.equal(await stopNode(third, 'SIGINT'), 0)
  t.notOk(
    (await readdir(join(cwd, 'data/postgres/data'))).includes('postmaster.pid'), 'the database stops with the last node'
  )
})

t.test('8 settings are read from .env, and CORS and X-Forwarded-Proto are off by default', { buffered: true }, async (t) => {
  const cwd = t.testdir({
    '.env': `DATABASE_URL=${databaseUrl}\nSECRET=${SECRET}\nLOG_LEVEL=silent\nPORT=1\nHOST=localhost\nTRUST_PROXY=false\nADMIN_EMAIL=${admin.email}\nADMIN_PASSWORD=${admin.password}\nPUBLIC_URL=https://api.example.com/\nEMAILS_VISIBLE_TO=owners\nUPLOADS_VISIBLE_TO=members\n`,
  })
  const node = await startNode(t, { cwd })
  const { host, password, pathname } = new URL(databaseUrl)
  t.match(node.stderr, `\ndata: database "${pathname.slice(1)}" on ${host}, uploads in ${cwd}/data\n`)
  t.notOk(node.stderr.includes(password), 'without the password')
  const { headers: { authorization = '' } } = await node.login(admin)
  t.equal((await node.fetch('/health/ready')).status, 200)
  const body = new FormData()
  body.set('description', 'A note')
  body.set('file', new Blob(['noted']), 'note.txt')
  const upload = await node.fetch('/api/uploads', { method: 'POST', headers: { authorization }, body })
  const { fileUrl } = await upload.json() as { fileUrl: string }
  t.match(fileUrl, /^https:\/\/api\.example\.com\/[^/]/, 'PUBLIC_URL makes it absolute')
  t.equal((await node.fetch(new URL(fileUrl).pathname)).status, 401, 'UPLOADS_VISIBLE_TO')
  t.notMatch(await (await node.fetch('/api/users')).text(), admin.email, 'EMAILS_VISIBLE_TO')
  const answer = await node.fetch(
    '/health/live', { headers: { origin: 'https://a.example.com', 'x-forwarded-proto': 'https' } }
  )
  t.equal(answer.headers.get('access-control-allow-origin'), null)
  t.equal(answer.headers.get('cross-origin-resource-policy'), 'same-origin')
  t.equal(answer.headers.get('strict-transport-security'), null)

  await t.test('8 SIGTERM: requests in flight finish, idle connections and sockets (1001) are closed, exit code 0', async (t) => {
    const [busy, kept, fresh] = [await node.beginLogin(admin), await node.connect(), await node.connect()]
    kept.socket.write('GET /health/live HTTP/1.1\r\nhost: x\r\n\r\n')
    await once(kept.socket, 'data')
    const socket = await openSocket(t, node)

    // With npm, one Ctrl-C leads to two signals.
    node.child.kill('SIGTERM')
    node.child.kill('SIGINT')
    t.match(await kept.answer, '{"status":"ok"}')
    t.equal(await socket.closed, 1001)
    t.equal(await fresh.answer, '', 'a connection opened ahead of any request')
    await t.rejects(node.fetch('/health/live'), 'new connections are not accepted')
    busy.socket.write(busy.rest)
    t.match(await busy.answer, /\r\n\r\nHTTP\/1\.1 200 OK\r\n[^]*"token":/)
    t.equal(await node.ended, 0)
  })
  t.equal(node.stdout, '')
})

t.test('8 the node sets headers and CORS, and formats errors of requests that reach no route', { buffered: true }, async (t) => {
  const origin = 'https://app.example.com'
  const node = await startNode(
    t, connected(t, { CORS_ORIGIN: `${origin}, https://other.example.com`, TRUST_PROXY: 'loopback' })
  )

  t.test('8 every response has security headers, and HSTS over TLS', async (t) => {
    const expected = {
      'content-security-policy': "default-src 'none';frame-ancestors 'none'",
      'cross-origin-resource-policy': 'cross-origin',
      'referrer-policy': 'no-referrer',
      'x-content-type-options': 'nosniff',
      'x-frame-options': 'DENY',
      'x-powered-by': null,
      'strict-transport-security': null,
    }
    for (const path of ['/health/live', unknown, '/nothing', '/%zz']) {
      const { headers } = await node.fetch(path)
      t.same(Object.fromEntries(Object.keys(expected).map((name) => [name, headers.get(name)])), expected, path)
    }
    const { headers } = await node.fetch('/health/live', { headers: { 'x-forwarded-proto': 'https' } })
    t.equal(headers.get('strict-transport-security'), 'max-age=31536000; includeSubDomains')
  })

  t.test('8 the request id is the one that the client sends, or a generated one', async (t) => {
    const id = async (sent: string) =>
      (await node.fetch('/health/live', { headers: { 'x-request-id': sent } })).headers.get('x-request-id')
    t.equal(await id('0190a0b0-0000-7000'), '0190a0b0-0000-7000')
    t.match(await id('no id'), /^[\w-]{8}-\w+$/)
    t.not(await id(''), await id(''))
  })

  t.test('8 CORS: preflight requests and responses name the allowed origin, and not another one', async (t) => {
    const preflight = await node.fetch(
      '/api/users', { method: 'OPTIONS', headers: { origin, 'access-control-request-method': 'PUT' } }
    )
    t.equal(preflight.status, 204)
    t.equal(preflight.headers.get('access-control-allow-origin'), origin)
    t.equal(preflight.headers.get('access-control-allow-credentials'), 'true')
    t.equal(preflight.headers.get('access-control-allow-methods'), 'GET, HEAD, POST, PUT, PATCH, DELETE')
    t.match(preflight.headers.get('access-control-allow-headers'), 'Authorization')
    const answer = await node.fetch('/api/users', { headers: { origin } })
    t.equal(answer.headers.get('access-control-allow-origin'), origin)
    t.match(answer.headers.get('access-control-expose-headers'), 'Link')
    t.match(answer.headers.get('vary'), 'Origin')
    t.match(answer.headers.get('vary'), 'Accept')
    t.equal((await node.fetch('/api/users', { headers: { origin: 'https://evil.example.com' } })).headers.get(
      'access-control-allow-origin'
    ), null)
  })

  t.test('8 CORS: a preflight request of another origin gets 403, and the log names the setting', async (t) => {
    for (const path of ['/api/users', '/api/unknown', '/graphql', '/unknown']) {
      const headers = { origin: 'https://app.example.net', 'access-control-request-method': 'POST' }
      const response = await node.fetch(path, { method: 'OPTIONS', headers })
      t.same([response.status, await response.json()], [
        403, { error: 'Pages of this origin may not send this request', code: 'ORIGIN_NOT_ALLOWED' },
      ], path)
      t.equal(response.headers.get('access-control-allow-origin'), null)
    }
    const lines = node.stdout.split('\n').filter((line) => line.includes('CORS_ORIGIN'))
    t.equal(lines.length, 1)
    t.match(JSON.parse(lines[0]!), { level: 40, origin: 'https://app.example.net' })
  })

  t.test('1.4 OPTIONS that is not a preflight request is treated like any other method', async (t) => {
    t.equal((await node.fetch('/api/users', { method: 'OPTIONS' })).status, 405)
    const unknown = await node.fetch('/nothing', { method: 'OPTIONS' })
    t.equal(unknown.status, 404)
    t.same(await unknown.json(), { error: 'Not found', code: 'NOT_FOUND' })
  })

  t.test('8 pages of an origin in CORS_ORIGIN may use the session cookie, other pages may not', async (t) => {
    const { cookie } = await node.login(admin)
    const logout = (from: string) =>
      node.fetch('/api/auth/logout', { method: 'POST', headers: { cookie, origin: from } })
    t.equal((await logout('https://evil.example.com')).status, 403)
    t.equal((await logout(origin)).status, 204)
  })

  t.test('1.4 an unknown path outside /api: 404 {error}', async (t) => {
    const response = await node.fetch(
      '/nothing', { method: 'POST', body: '{}', headers: { 'content-type': 'application/json' } }
    )
    t.equal(response.status, 404)
    t.same(await response.json(), { error: 'Not found', code: 'NOT_FOUND' })
  })

  t.test('1.4 a malformed percent-escape: 400 {errors}', async (t) => {
    const response = await node.fetch('/api/users/%zz')
    t.equal(response.status, 400)
    t.same(await response.json(), { errors: ['URL is malformed'] })
  })

  t.test('2.2 an id of 10,000 characters is unknown: 404 {error}', async (t) => {
    const response = await node.fetch(`/api/users/${'x'.repeat(10_000)}`)
    t.equal(response.status, 404)
    t.same(await response.json(), { error: 'User not found', code: 'USER_NOT_FOUND' })
  })

  const broken: [what: string, bytes: string, answer: string][] = [
    [
      'an over-long URL or header',
      `GET /${'x'.repeat(17_000)} HTTP/1.1\r\nhost: x\r\n\r\n`,
      'HTTP/1.1 431 Request Header Fields Too Large\r\nContent-Type: application/json; charset=utf-8\r\nContent-Length: 76\r\nConnection: close\r\n\r\n{"error":"The address and headers are too large","code":"HEADERS_TOO_LARGE"}',
    ],
    ['no Host', 'GET /api/users HTTP/1.1\r\nconnection: close\r\n\r\n', '{"errors":["host header is required"]}'],
    [
      'an expectation',
      'GET /api/users HTTP/1.1\r\nhost: x\r\nexpect: wonders\r\nconnection: close\r\n\r\n',
      '{"error":"The only supported expectation is 100-continue","code":"EXPECTATION_FAILED"}',
    ],
    [
      'what is not HTTP',
      'HELLO\r\n\r\n',
      'HTTP/1.1 400 Bad Request\r\nContent-Type: application/json; charset=utf-8\r\nContent-Length: 40\r\nConnection: close\r\n\r\n{"errors":["request is not valid HTTP"]}',
    ],
  ]
  for (const [what, bytes, expected] of broken) {
    t.test(`1.4 ${what}: the response has the shape of the contract, and the connection is closed`, async (t) => {
      const { socket, answer } = await node.connect()
      socket.write(bytes)
      t.ok((await answer).endsWith(expected), await answer)
    })
  }

  t.test('1.4 a client that is still sending when its request is rejected can read the response', async (t) => {
    const { hostname, port } = new URL(node.url)
    const socket = connect({ port: Number(port), host: hostname, allowHalfOpen: true })
    const errors: Error[] = []
    socket.on('error', (error) => errors.push(error))
    socket.write(`GET /${'x'.repeat(20_000)}`)
    const [answer] = await once(socket, 'data')
    t.match(String(answer), /^HTTP\/1.1 431 /)
    for (let chunk = 0; chunk < 3; chunk++) {
      await new Promise((resolve) => socket.write('x'.repeat(100_000), resolve))
      // When this response arrives, the node has read the chunk before it.
      t.equal((await node.fetch('/health/live')).status, 200)
    }
    t.same(errors, [])
    // The client has not closed its side. Only when it sends does it find out that the node no longer reads.
    await until('the connection is reset', () => errors.length > 0 || (socket.write('x'), false))
  })

  t.test('1.13 an event stream behind another response, with a malformed request behind it, causes no warning', async (t) => {
    const { socket } = await node.connect()
    let received = ''
    socket.on('data', (text: string) => { received += text })
    socket.write(
      'GET /api/users HTTP/1.1\r\nhost: x\r\n\r\n' +
      'GET /graphql?query=subscription%7BpostCreated%7Bid%7D%7D HTTP/1.1\r\nhost: x\r\naccept: text/event-stream\r\n\r\nx\r\n\r\n')
    await until('the event stream has begun', () => received.includes('retry: '))
    socket.destroy()
    await node.fetch('/health/live')
    t.notMatch(node.rawStderr, 'Warning')
  })

  t.test('8 a connection that the client resets does not disturb the node', async (t) => {
    const { socket, answer } = await node.connect()
    socket.write('POST /api/auth/login HTTP/1.1\r\nhost: x\r\ncontent-length: 10\r\n\r\n{')
    socket.resetAndDestroy()
    t.equal(await answer, '')
    t.equal((await node.fetch('/health/live')).status, 200)
  })

  t.test('8 SIGTERM behind a proxy: a kept-alive connection gets one more response, with `connection: close`', async (t) => {
    const [busy, kept] = [await node.beginLogin(admin), await node.connect()]
    const get = 'GET /health/live HTTP/1.1\r\nhost: x\r\n\r\n'
    kept.socket.write(get)
    await once(kept.socket, 'data')
    node.child.kill('SIGTERM')
    await until(
      'new connections are not accepted', () => node.connect().then(({ socket }) => { socket.destroy() }, () => true)
    )
    kept.socket.write(get)
    busy.socket.write(busy.rest)
    t.match(
      await kept.answer,
      /\r\nconnection: keep-alive\r\n[^]*{"status":"ok"}HTTP\/1\.1 200 OK\r\nconnection: close\r\n[^]*{"status":"ok"}$/i
    )
    t.match(await busy.answer, /\r\n\r\nHTTP\/1\.1 200 OK\r\nconnection: close\r\n[^]*"token":/i)
    t.equal(await node.ended, 0)
  })
})

t.test('8 CORS_ORIGIN=*: any origin may read responses, but without credentials', { buffered: true }, async (t) => {
  const node = await startNode(t, connected(t, { CORS_ORIGIN: '*', TRUST_PROXY: 'true' }))
  const { headers } = await node.fetch(
    '/health/live', { headers: { origin: 'https://a.example.com', 'x-forwarded-proto': 'https' } }
  )
  t.equal(headers.get('access-control-allow-origin'), '*')
  t.equal(headers.get('access-control-allow-credentials'), null)
  t.equal(headers.get('strict-transport-security'), 'max-age=31536000; includeSubDomains')

  t.test('8 a second signal ends the node at once', async (t) => {
    await node.beginLogin(admin)
    // Signals within the first moments count as one Ctrl-C, so the signal is repeated.
    const again = setInterval(() => node.child.kill('SIGTERM'), 100)
    t.equal(await node.ended, 1)
    clearInterval(again)
    t.match(node.stderr, 'Usher ends at once on a second SIGTERM\n')
  })
})

nightly('8 SIGTERM during the start stops everything that was started', { buffered: true }, async (t) => {
  const inject =
    'process.on("newListener", (name) => name === "SIGTERM" && setImmediate(() => process.kill(process.pid, "SIGTERM")))'
  const cwd = await prepareFolder(t)
  const node = spawnNode(t, { cwd, settings: { DATA_DIR: cwd }, inject })
  t.equal(await node.ended, 0)
  t.match(node.stderr, 'Usher stops on SIGTERM\n')
  t.match(node.stdout, 'PostgreSQL: stopped')
  t.notOk((await readdir(join(cwd, 'postgres/data'))).includes('postmaster.pid'))
})

t.test('8 an unexpected error is logged, and the node stops with exit code 1', { buffered: true }, async (t) => {
  const node = await startNode(
    t, connected(t, {}, { inject: 'process.once("SIGWINCH", () => { throw new Error("a bug") })' })
  )
  t.equal(await stopNode(node, 'SIGWINCH'), 1)
  t.match(
    node.stdout,
    /"level":60[^\n]*"message":"a bug"[^\n]*"msg":"Unexpected error, the node stops"/,
    { words: node.stderr }
  )
})

t.test('8 a start that fails prints one sentence and exits with code 1', { buffered: true }, async (t) => {
  t.jobs = 2
  const taken = createServer().listen(0, '127.0.0.1')
  await once(taken, 'listening')
  t.teardown(() => taken.close())
  const { port } = taken.address() as AddressInfo
  const closed = createServer().listen(0, '127.0.0.1')
  await once(closed, 'listening')
  const free = (closed.address() as AddressInfo).port
  closed.close()
  const { host, pathname } = new URL(databaseUrl)
  const folder = t.testdir({ file: '' })

  type Case = [what: string, settings: Record<string, string>, sentence: string]
  const bad: Case[] = [
    ['a bad setting', { PORT: 'http' }, 'PORT must be a whole number from 0 (any free port) to 65535.'],
    ['a database that cannot be reached', {
      DATABASE_WAIT_SECONDS: '0', DATABASE_URL: `postgres://u:secret@127.0.0.1:${free}/d`,
    },
      `DATABASE_URL: "d" on 127.0.0.1:${free} cannot be reached (ECONNREFUSED).`],
    [
      'a wrong password',
      { DATABASE_URL: `postgres://usher:secret@${host}${pathname}` },
      `DATABASE_URL: "${pathname.slice(1)}" on ${host} reports: password authentication failed for user "usher".`,
    ],
    [
      'notifications from nobody',
      { NOTIFICATIONS_URL: `postgres://u:secret@127.0.0.1:${free}/d` },
      `NOTIFICATIONS_URL cannot be used to receive notifications: connect ECONNREFUSED 127.0.0.1:${free}`,
    ],
  ]
  // What is checked before anything is opened needs no process.
  const checked: Case[] = [
    [
      'a port that is taken',
      { PORT: `${port}` },
      `PORT ${port} is in use on 127.0.0.1: stop the program that uses it, or set another PORT (0 for any free one).`,
    ],
    [
      'a host that is another machine',
      { HOST: '192.0.2.1' },
      'The node cannot listen on HOST 192.0.2.1 with PORT 0 (EADDRNOTAVAIL): set another HOST or PORT.',
    ],
    [
      'a folder that is a file',
      { DATABASE_URL: '', DATA_DIR: join(folder, 'file') },
      `DATA_DIR cannot be used, because ${folder}/file is not a writable folder (it is not a folder): start the node as the user who owns it, or choose another DATA_DIR.`,
    ],
    [
      'uploads that cannot be kept',
      { DATA_DIR: join(folder, 'file') },
      `DATA_DIR cannot be used, because ${folder}/file is not a writable folder (it is not a folder): start the node as the user who owns it, or choose another DATA_DIR.`,
    ],
  ]
  for (const [what, settings, sentence] of bad) {
    t.test(`8 ${what}`, { buffered: true }, async (t) => {
      const node = spawnNode(t, connected(t, settings))
      t.equal(await node.ended, 1)
      t.equal(node.stderr, `${sentence}\n`)
      t.notOk(node.stdout.includes('secret'))
    })
  }
  for (const [what, settings, sentence] of checked) {
    t.test(`8 ${what}`, { buffered: true }, async (t) => {
      const { cwd, settings: all } = connected(t, settings)
      const { code, stdout, stderr } = await failStart(all!, cwd)
      t.equal(code, 1)
      t.equal(stderr, `${sentence}\n`)
      t.notOk(stdout.includes('secret'))
    })
  }

  t.test('8 a common password for the first admin', { buffered: true }, async (t) => {
    const { code, stderr } = await failStart({ ADMIN_EMAIL: admin.email, ADMIN_PASSWORD: 'password1' }, t.testdir())
    t.equal(code, 1)
    t.equal(stderr, 'ADMIN_PASSWORD is too common\n')
  })

  t.test('8 an .env that cannot be read', { buffered: true }, async (t) => {
    const cwd = t.testdir()
    await mkdir(join(cwd, '.env'))
    const { code, stderr } = await failStart({}, cwd)
    t.equal(code, 1)
    t.equal(stderr, '.env exists and cannot be read: check its permissions.\n')
  })
})
