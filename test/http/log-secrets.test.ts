import { randomBytes, randomUUID } from 'node:crypto'
import { Writable } from 'node:stream'
import { buffer } from 'node:stream/consumers'
import Fastify, { type FastifyInstance, type HTTPMethods, type InjectOptions } from 'fastify'
import t, { type Test } from 'tap'
import usher, { type UsherOptions } from '../../app.ts'
import { serverOptions } from '../../node/http/server.ts'
import { createHeaders } from '../../node/http/security-headers.ts'
import { parseSettings } from '../../node/settings/settings.ts'
import { withUsers } from '../helpers/app.ts'
import { testDatabaseUrl, uniqueSchema } from '../helpers/database.ts'
import { slow } from '../helpers/deadlines.ts'
import { nightly } from '../helpers/nightly.ts'
import { openSql } from '../helpers/sql.ts'
import { temporaryFolder } from '../helpers/temporary-folder.ts'

const LEVELS = ['trace', 'debug', 'info', 'warn', 'error', 'fatal'] as const

/** Keeps what is logged. */
function createLog () {
  const lines: string[] = []
  return { lines, stream: new Writable({ write (line, _, done) { lines.push(`${line}`); done() } }) }
}

const nodeOptions = (stream: Writable, LOG_LEVEL = 'trace') =>
  serverOptions(parseSettings({ LOG_LEVEL }), createHeaders([]), stream)

const secret = (length = 32) => randomBytes(length).toString('base64url')

for (const level of LEVELS) {
  t.test(`8 the log of a node has no headers, cookies and secrets at the level ${level}, wherever they are`, async (t) => {
    const { lines, stream } = createLog()
    const app = Fastify(nodeOptions(stream, level))
    t.teardown(() => app.close())
    const planted: string[] = []
    const next = () => planted[planted.push(secret(12)) - 1]!
    const headers = () => ({ authorization: `Bearer ${next()}`, cookie: `usher_session=${next()}`, 'x-other': next() })
    const error = Object.assign(new Error(`GET /page?token=${next()} with Bearer ${next()}, usher_session=${next()}`, {
      cause: Object.assign(new Error(`refused usher_session=${next()}`), { headers: headers() }),
    }), {
      code: 'A_CODE',
      headers: headers(),
      response: { status: 401, headers: headers(), config: { headers: headers(), data: { password: next() } } },
      request: { rawHeaders: ['cookie', next()], 'set-cookie': [next()], cookies: { a: next() } },
    })
    const others = new AggregateError([Object.assign(new Error('one'), { headers: headers() })])
    app.log[level]({ err: error, status: 7 }, `a message with Bearer ${next()}`)
    app.log[level](error)
    app.log[level]({ err: others, deep: { er: { in: error, list: [{ headers: headers() }] } } })
    const body = { currentPassword: next(), token: next() }
    app.log[level]({ headers: headers(), Authorization: next(), 'Set-Cookie': next(), body })
    app.log.child({ headers: headers(), client: { cookie: next() } })[level]('a child')
    app.log[level]('%s', `a format with Basic ${next()}`)
    app.get('/', async (request) => request.log[level]({ request, given: request.raw }, 'a request'))
    await app.inject({ method: 'GET', url: `/?token=${next()}`, headers: headers() })

    const text = lines.join('')
    t.strictSame(planted.filter((secret) => text.includes(secret)).map((secret) => planted.indexOf(secret)), [])
    const first = JSON.parse(lines[0]!)
    t.match(first, { status: 7, err: { type: 'Error', code: 'A_CODE', response: { status: 401 } } })
    t.match(first.err.stack, /log-secrets\.test\.ts[^]*caused by: Error: refused/)
    t.match(lines[0], /refused/)
    t.match(JSON.parse(lines[2]!), { err: { type: 'AggregateError', aggregateErrors: [{ message: 'one' }] } })
  })
}

/** What a client sends that must not be in the log. */
const parts = () => ({
  key: `usher_${randomBytes(30).toString('hex')}`,
  cookie: secret(),
  password: `pass ${secret()}`,
  token: secret(),
  code: `code-${secret()}`,
})

/** Sends requests with secrets to every route, valid and malformed, and returns the secrets. */
async function askAll (app: FastifyInstance, routes: readonly { method: HTTPMethods, url: string }[], bearer: string) {
  const secrets = new Set<string>([bearer])
  const send = async (request: InjectOptions) => {
    try {
      const response = await app.inject({ ...request, remoteAddress: '203.0.113.7', payloadAsStream: true })
      // A stream of events does not end by itself.
      if (`${response.headers['content-type']}`.startsWith('text/event-stream')) response.stream().destroy()
      else await buffer(response.stream())
    } catch {
      // Some requests are cut short.
    }
  }
  for (const { method, url } of routes) {
    for (const kind of ['json', 'cut', 'form', 'multipart', 'none'] as const) {
      const planted = parts()
      for (const value of Object.values(planted)) secrets.add(value)
      const { key, cookie, password, token, code } = planted
      const fields = {
        password,
        currentPassword: password,
        token,
        code,
        recoveryCode: code,
        challenge: token,
        secret: token,
        loginId: token,
        signUpId: token,
        state: token,
        logout_token: token,
        email: 'ada@example.com',
        name: 'Ada',
        query: `{ a(b: "${token}") }`,
      }
      const boundary = 'b'
      const part = (name: string, value: string, filename = '') =>
        `--${boundary}\r\ncontent-disposition: form-data; name="${name}"${filename}\r\n\r\n${value}\r\n`
      const bodies: Record<string, [type: string, body: string] | undefined> = {
        json: ['application/json', JSON.stringify(fields)],
        cut: ['application/json', `{"token":"${token}","password":"${password}" x`],
        form: ['application/x-www-form-urlencoded', `${new URLSearchParams(fields)}`],
        multipart: [
          `multipart/form-data; boundary=${boundary}`,
          `${part('token', token)}${part('description', password)}${part('file', token, `; filename="${code}"`)}--${boundary}--\r\n`,
        ],
        none: undefined,
      }
      const body = method === 'GET' || method === 'HEAD' ? undefined : bodies[kind]
      const authorization = {
        json: `Bearer ${bearer}`,
        cut: `Bearer ${key}`,
        form: `Basic ${token}`,
        multipart: `Bearer ${bearer}`,
        none: `Bearer ${token}`,
      }
      await send({
        method,
        url: url.replaceAll(/:\w+/g, () => randomUUID()).replace('*', 'x'),
        headers: {
          authorization: authorization[kind],
          cookie: `usher_session=${cookie}; usher_console=${cookie}; usher_sign_up=${cookie}; other=${cookie}`,
          'idempotency-key': `"${token}"`,
          origin: 'https://example.com',
          'sec-fetch-site': 'same-origin',
          'x-secret': token,
          ...body && { 'content-type': body[0] },
        },
        ...body && { payload: body[1] },
      })
    }
  }
  return secrets
}

async function openLogged (t: Test, server: object) {
  const options: UsherOptions = {
    databaseUrl: await testDatabaseUrl(),
    schema: uniqueSchema(t.name),
    uploadsDir: temporaryFolder(),
    poolSize: 4,
    deadlines: slow,
    admin: { email: 'admin@example.com', password: 'horse battery staple' },
    publicUrl: 'https://example.com',
    secret: 'a secret of the node',
    mailer: async () => { throw Object.assign(new Error('refused'), { headers: { cookie: 'x' } }) },
    signUp: true,
    loginMail: true,
    console: true,
    pages: {},
    providers: { fake: { issuer: 'https://nowhere.invalid', clientId: 'usher', clientSecret: 'a secret', name: 'Fake' } },
    passwordHash: { memoryKiB: 8, passes: 1 },
  }
  const app = Fastify({ forceCloseConnections: true, pluginTimeout: 0, ...server })
  t.teardown(() => app.close())
  const routes: { method: HTTPMethods, url: string }[] = []
  app.addHook('onRoute', ({ method, url }) => {
    for (const one of [method].flat()) routes.push({ method: one as HTTPMethods, url })
  })
  await app.register(usher, options)
  await app.ready()
  return { app, routes, helpers: await withUsers(app, options) }
}

// Enough random characters of the end of a secret, so that only it has them.
const END = 12

/** Returns the lines with any of many secrets: to look for one after the other would take most of the time. */
function findLines (lines: readonly string[], secrets: ReadonlySet<string>): string[] {
  const ends = new Set([...secrets].map((secret) => secret.slice(-END)))
  const isSecret = (word: string) =>
    Array.from({ length: word.length - END + 1 }, (_, at) => word.slice(at, at + END)).some((end) => ends.has(end))
  return lines.filter((line) => line.match(/[\w-]+/g)?.some((word) => word.length >= END && isSecret(word)))
}

const places: Record<string, (stream: Writable) => object> = {
  node: (stream) => nodeOptions(stream),
  // Its log has the addresses of requests, as those of its own routes.
  host: (stream) => ({ logger: { level: 'trace', stream } }),
}

for (const [place, optionsOf] of Object.entries(places)) {
  nightly(`8 whatever is sent to any route, the log of a ${place} at the level trace has none of its secrets`, async (t) => {
    const { lines, stream } = createLog()
    const { app, routes, helpers } = await openLogged(t, optionsOf(stream))
    t.ok(routes.length > 150, `${routes.length} routes`)
    const check = (secrets: Set<string>, when: string) => {
      const leaks = findLines(lines, secrets)
      t.equal(leaks.length, 0, when)
      for (const line of leaks.slice(0, 5)) t.comment(line.slice(0, 1500))
    }
    const { token, headers, cookie } = helpers.admin
    check(new Set([token, cookie.split('=')[1]!]), 'a login')
    const created = await helpers.inject('POST', '/api/auth/keys', { headers, payload: { name: 'a key' } })
    const { key } = created.json()
    check(await askAll(app, routes, key), 'requests')
    check(new Set([token]), 'a login')
    const sql = openSql(t, helpers)
    lines.length = 0
    // What PostgreSQL refuses has the values of statements.
    await sql.unsafe(`create function "${helpers.options.schema}".refuse() returns trigger language plpgsql as $$
      begin raise exception 'refused: %', new using detail = new::text, errcode = 'P0001'; end $$;
      ${['sessions', 'password_links', 'sign_ups', 'login_links', 'audit'].map((table) =>
        `create trigger refuse before insert on ${table} for each row execute function refuse();`).join('\n')}`)
    check(await askAll(app, routes, key), 'failures of the database')
    t.ok(lines.some((line) => JSON.parse(line).level >= 50), 'errors are logged')
    t.equal(findLines([`a line with x${token}y`], new Set([token])).length, 1, 'a secret is found wherever it is')
  })
}
