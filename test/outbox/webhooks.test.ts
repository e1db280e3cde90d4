import { randomBytes, randomUUID } from 'node:crypto'
import { once } from 'node:events'
import { createServer, type IncomingHttpHeaders, type ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'
import { text } from 'node:stream/consumers'
import Fastify from 'fastify'
import { Webhook as Verifier } from 'standardwebhooks'
import t, { type Test } from 'tap'
import { Ajv } from 'ajv'
import database from '../../plugins/database/index.ts'
import telemetry from '../../plugins/telemetry/index.ts'
import optionsPlugin from '../../plugins/options.ts'
import outbox, { type OutboxOptions } from '../../plugins/outbox/index.ts'
import { insertUsers } from '../../db/users/users.ts'
import { updateUser } from '../../db/users/update-user.ts'
import { eventData, type EventName } from '../../schema/outbox/events.ts'
import { readOptions } from '../../schema/options/read-options.ts'
import type { WebhookOptions } from '../../schema/options/webhooks.ts'
import { slow } from '../helpers/deadlines.ts'
import { testDatabaseUrl, uniqueSchema } from '../helpers/database.ts'
import { nightly } from '../helpers/nightly.ts'
import { openSql } from '../helpers/sql.ts'
import { until } from '../helpers/until.ts'

const newSecret = () => `whsec_${randomBytes(24).toString('base64')}`
const secret = newSecret()
const context = { actorId: null, sessionId: null, keyId: null, address: '', userAgent: '' }
const lookupFailed = async () => { throw new Error('there is no such name') }

interface Received { headers: IncomingHttpHeaders, body: string }

/** Starts a receiver of webhooks. `answer` responds; by default with 204. */
async function startReceiver (
  t: Test,
  answer: (response: ServerResponse, received: Received) => unknown = (response) => response.writeHead(204).end()
) {
  const received: Received[] = []
  const server = createServer(async (request, response) => {
    const entry = { headers: request.headers, body: await text(request) }
    received.push(entry)
    answer(response, entry)
  }).listen(0, '127.0.0.1')
  await once(server, 'listening')
  t.teardown(() => { server.closeAllConnections(); server.close() })
  const names = () => received.map(({ body }) => JSON.parse(body).data.name as string)
  return { received, names, url: `http://127.0.0.1:${(server.address() as AddressInfo).port}/hook?key=of-the-url` }
}

/** Opens the outbox with webhooks on a bare Fastify. */
async function start (t: Test, webhooks: WebhookOptions[], options: OutboxOptions = {}) {
  const lines: string[] = []
  const schema = uniqueSchema(t.name)
  const app =
    Fastify({ pluginTimeout: 0, logger: { level: 'warn', stream: { write: (line: string) => { lines.push(line) } } } })
  t.teardown(() => app.close())
  const databaseUrl = await testDatabaseUrl()
  await app.register(
    optionsPlugin, { options: readOptions({ databaseUrl, schema, webhooks, deadlines: { ...slow, webhookBody: 500 } }) }
  )
  await app.register(telemetry)
  await app.register(database)
  await app.register(outbox, { shortestMs: 1, longestMs: 20, ...options })
  await app.ready()
  const { usherDatabase: { db }, usherOutbox } = app
  async function create (name: string): Promise<string> {
    const [user] = await insertUsers(db, [{ name, email: `${randomUUID()}@example.com`, context }])
    return (user as { id: string }).id
  }
  const rename = (id: string, name: string) =>
    updateUser(
      db, id, { name },
      { ...context, membershipId: null, until: new Date(Date.now() + 60_000).toISOString(), undo: null, mails: null },
      { confirm: async () => {} }
    )
  return {
    app,
    sql: openSql(t, { options: { databaseUrl, schema } }),
    create,
    rename,
    outbox: usherOutbox,
    lines,
    logged: () => lines.map((line) => JSON.parse(line)),
  }
}

t.test('12.5 webhooks are signed as Standard Webhooks specifies', async (t) => {
  const second = newSecret()
  const receiver = await startReceiver(t)
  const { create, rename } = await start(
    t, [{ url: receiver.url, secret: [secret, second], allowPrivateAddresses: true }]
  )
  const id = await create('Ada')
  await rename(id, 'Ada L.')
  await until('both events', () => receiver.received.length === 2)
  for (const { headers, body } of receiver.received) {
    for (const each of [secret, second]) {
      t.same(new Verifier(each).verify(body, headers as Record<string, string>), JSON.parse(body))
    }
    t.throws(() => new Verifier(newSecret()).verify(body, headers as Record<string, string>))
    t.equal(headers['content-type'], 'application/json')
    const { type, timestamp, data, ...others } = JSON.parse(body)
    t.same(others, {})
    t.match(timestamp, /^\d{4}-\d\d-\d\dT[\d:.]+Z$/)
    t.ok(new Ajv().validate(eventData[type as EventName], data), type)
  }
  t.same(receiver.received.map(({ body }) => JSON.parse(body).type), ['user.created', 'user.updated'])
})

t.test('12.5 only the named events are sent', async (t) => {
  const receiver = await startReceiver(t)
  const { create, rename, sql } = await start(
    t, [{ url: receiver.url, secret, events: ['user.updated'], allowPrivateAddresses: true }]
  )
  const id = await create('Ada')
  await rename(id, 'Ada L.')
  await until('an empty outbox', async () => (await sql`select 1 from outbox`).length === 0)
  t.same(receiver.names(), ['Ada L.'])
})

t.test('23.4 entries of the account log are sent only to a webhook that names their event', async (t) => {
  const [plain, siem] = [await startReceiver(t), await startReceiver(t)]
  const { create, sql } = await start(t, [
    { url: plain.url, secret, allowPrivateAddresses: true },
    { url: siem.url, secret, events: ['audit.created', 'audit.logins-failed'], allowPrivateAddresses: true },
  ])
  const userId = await create('Ada')
  await until('an empty outbox', async () => (await sql`select 1 from outbox`).length === 0)
  t.same(plain.received.map(({ body }) => JSON.parse(body).type), ['user.created'])
  const [{ id }] = await sql<[{ id: string }]>`select id from audit`
  t.same(siem.received.map(({ body }) => {
    const { type, data } = JSON.parse(body)
    t.ok(new Ajv().validate(eventData[type as EventName], data))
    return { type, data }
  }), [{
    type: 'audit.created',
    data: {
      entryId: id,
      action: 'user.create',
      userId,
      actorId: null,
      sessionId: null,
      keyId: null,
      organizationId: null,
      address: '',
      userAgent: '',
    },
  }])
})

t.test('12.5 an event that is answered with an error is sent again, with the same id, and delays only its subject', async (t) => {
  let fails = true
  const receiver = await startReceiver(
    t, (response, { body }) => response.writeHead(fails && body.includes('"Bad') ? 500 : 200).end('ok')
  )
  const { create, rename, logged } = await start(t, [{ url: receiver.url, secret, allowPrivateAddresses: true }])
  const id = await create('Bad')
  await rename(id, 'Bad later')
  await create('Good')
  await until('three attempts', () =>
    receiver.names().includes('Good') && receiver.names().filter((name) => name === 'Bad').length >= 3)
  t.notOk(receiver.names().includes('Bad later'))
  fails = false
  await until('all', () => receiver.names().includes('Bad later'))
  t.equal(new Set(receiver.received.filter(({ body }) => body.includes('"Bad"'))
    .map(({ headers }) => headers['webhook-id'])).size, 1)
  t.match(logged()[0], {
    level: 40,
    msg: 'An event could not be delivered: another attempt follows',
    err: { message: 'the receiver answered 500' },
  })
  t.equal(logged().length, 1, 'one entry per minute')
  t.notMatch(JSON.stringify(logged()), 'of-the-url')
})

nightly('12.5 redirects are not followed, and a large or endless response does no harm', async (t) => {
  const target = await startReceiver(t)
  const receiver = await startReceiver(t, (response, { body }) => {
    if (body.includes('Redirect')) return response.writeHead(307, { location: target.url }).end()
    response.writeHead(200)
    if (body.includes('Endless')) return response.write('.')
    const chunk = Buffer.alloc(1024 * 1024)
    const write = () => { while (!response.destroyed && response.write(chunk)); }
    response.on('drain', write).on('error', () => {})
    write()
  })
  const { create, outbox, sql } = await start(t, [{ url: receiver.url, secret, allowPrivateAddresses: true }])
  for (const name of ['Large', 'Endless', 'Redirect']) await create(name)
  await until('only the redirect remains', async () =>
    (await sql`select data->>'name' as name from outbox`).map(({ name }) => name).join() === 'Redirect')
  await until('several attempts', () => receiver.names().filter((name) => name === 'Redirect').length >= 3)
  t.equal(receiver.names().filter((name) => name !== 'Redirect').length, 2)
  t.equal(target.received.length, 0)

  await t.test('12.5 an event that is given up is listed, and can be sent again', async (t) => {
    await sql`update outbox set expires_at = now()`
    await until('it is listed', async () => (await outbox.failed()).length === 1)
    const [failed] = await outbox.failed()
    t.match(failed, {
      type: 'user.created',
      data: { name: 'Redirect' },
      error: 'the receiver answered 307',
      consumer: /^webhook 127\.0\.0\.1:\d+ [0-9a-f]{16}$/,
    })
    t.same(await outbox.failed({ after: failed!.id }), [])
    t.same(await outbox.failed({ after: 'x' }), [])
    t.same(
      [await outbox.retry('x'), await outbox.retry(randomUUID()), await outbox.retry(failed!.id)], [false, false, true]
    )
    t.same(await outbox.failed(), [])
    const attempts = receiver.received.length
    await until('another attempt', () => receiver.received.length > attempts)
    t.equal(receiver.received.at(-1)!.headers['webhook-id'], failed!.id)
  })
})

nightly('12.5 an attempt follows its pause, also if that ends while the node looks for others', async (t) => {
  let attempts = 0
  const receiver = await startReceiver(t, (response) => response.writeHead(++attempts < 100 ? 500 : 204).end())
  // The node does not look by itself before the test would have ended.
  const options = { shortestMs: 1, longestMs: 5, pollMs: 3_600_000 }
  const { create, sql } = await start(t, [{ url: receiver.url, secret, allowPrivateAddresses: true }], options)
  await create('Ada')
  await until('an attempt that succeeds', async () => (await sql`select 1 from outbox`).length === 0)
  t.equal(attempts, 100)
})

nightly('12.5 a receiver that never answers delays no other consumer', async (t) => {
  const silent = await startReceiver(t, () => {})
  const receiver = await startReceiver(t)
  const webhook = { secret, allowPrivateAddresses: true }
  const { create } = await start(t, [{ ...webhook, url: silent.url }, { ...webhook, url: receiver.url }])
  const names = Array.from({ length: 30 }, (_, index) => `User ${index}`)
  for (const name of names) await create(name)
  await until('all arrive', () => receiver.received.length === 30)
  t.same(receiver.names().sort(), names.sort())
  t.ok(silent.received.length <= 8, 'no more attempts than it has slots')
})

nightly('12.5 410 Gone ends the attempts', async (t) => {
  const receiver = await startReceiver(t, (response) => response.writeHead(410).end())
  const { create, outbox } = await start(t, [{ url: receiver.url, secret, allowPrivateAddresses: true }])
  await create('Ada')
  await until('it is listed', async () => (await outbox.failed()).length === 1)
  t.match(await outbox.failed(), [{ attempts: 1, error: 'the receiver answered 410 Gone' }])
})

t.test('12.5 addresses that are not public get no events, however they are written or resolved', async (t) => {
  const hosts = [
    '127.0.0.1', '2130706433', '0x7f.1', '10.1.2.3', '172.31.0.1', '192.168.1.1', '169.254.169.254', '100.64.0.1',
    '224.0.0.1', '0.0.0.0', '[::1]', '[::ffff:127.0.0.1]', '[::ffff:8.8.8.8]', '[64:ff9b::a00:1]', '[fd00::1]',
    '[fe80::1]', '[2002:7f00:1::]',
  ]
  const webhooks = hosts.map((host, index) => ({ url: `https://${host}:1/`, secret, name: `h${index}` }))
  const { app, create, sql, logged } = await start(t, webhooks, { resolve: lookupFailed })
  await create('Ada')
  await until(
    'an attempt of each', async () => (await sql`select 1 from outbox where attempts > 1`).length === hosts.length
  )
  await app.close()
  t.equal(logged().length, hosts.length)
  for (const { err, consumer } of logged()) {
    t.match(err.message, /is not public: allowPrivateAddresses permits it$/, consumer)
  }

  await t.test('12.5 a name is resolved once for each connection, which uses the checked address', async (t) => {
    const receiver = await startReceiver(t)
    const { port } = new URL(receiver.url)
    const answers = ['127.0.0.1', '203.0.113.1', '10.0.0.1']
    let count = 0
    const resolve = async () => [{ address: answers[count++ % answers.length]!, family: 4 }]
    const { create, sql, lines } = await start(
      t, [{ url: `https://rebinding.example.com:${port}/`, secret }], { resolve }
    )
    await create('Ada')
    await until('several attempts', async () => (await sql`select 1 from outbox where attempts > 6`).length === 1)
    t.ok(count >= 6)
    t.equal(receiver.received.length, 0)
    t.match(lines[0], 'is not public')
  })

  await t.test('12.5 all addresses of a name must be public', async (t) => {
    const resolve = async () => [{ address: '8.8.8.8', family: 4 }, { address: '::1', family: 6 }]
    const { create, sql, lines } = await start(t, [{ url: 'https://both.example.com/', secret }], { resolve })
    await create('Ada')
    await until('an attempt', async () => (await sql`select 1 from outbox where attempts > 1`).length === 1)
    t.match(lines[0], 'the address ::1 is not public')
  })
})

t.test('12.5 wrong webhooks are rejected without their secrets', async (t) => {
  const url = 'https://example.com/hook'
  const wrong: [unknown, RegExp][] = [
    ['x', /^usher: webhooks must be a list/],
    [[null], /^usher: webhooks\[0\] must be an object with url and secret$/],
    [[{ url: 'http://example.com/', secret }], /\.url must be an https: URL/],
    [[{ url: 'ftp://example.com/', secret, allowPrivateAddresses: true }], /\.url must be an https: URL/],
    [[{ url: 'https://user:password@example.com/', secret }], /\.url must have neither credentials/],
    [[{ url, secret: 'whsec_c2hvcnQ=' }], /\.secret must be whsec_/],
    [[{ url, secret: [] }], /\.secret must be whsec_/],
    [[{ url, secret, events: ['user.renamed'] }], /\.events: there is no event user\.renamed$/],
    [[{ url, secret, events: [] }], /at least one event$/],
    [[{ url, secret, name: 'a b' }], /\.name must have/],
    [[{ url, secret, retries: 3 }], /has an unknown member retries$/],
    [[{ url, secret, allowPrivateAddresses: 'yes' }], /must be true or false$/],
    [[{ url, secret }, { url, secret }], /the same name or URL/],
  ]
  for (const [webhooks, message] of wrong) {
    t.throws(
      () => readOptions({ databaseUrl: 'postgres://localhost/x', webhooks } as never), { message }, String(message)
    )
  }
})
