import { once } from 'node:events'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { text } from 'node:stream/consumers'
import t, { type Test } from 'tap'
import { channelOf } from '../../db/driver/channel.ts'
import { createUsher } from '../helpers/app.ts'
import { createMailer } from '../helpers/mail.ts'
import { openSql } from '../helpers/sql.ts'
import { until } from '../helpers/until.ts'

const secret = `whsec_${Buffer.alloc(24, 'usher').toString('base64')}`
const HOURS = 6
const EVENTS = 4

interface Received { id: string, userId: string, name: string }

/** Starts a receiver of webhooks, which answers 503 while it is down. */
async function startReceiver (t: Test, name: string, { isDown }: { isDown: boolean }) {
  const received: Received[] = []
  const state = { isDown, attempts: 0 }
  const server = createServer(async (request, response) => {
    state.attempts++
    const { data } = JSON.parse(await text(request)) as { data: { userId: string, name: string } }
    if (!state.isDown) {
      received.push({ id: String(request.headers['webhook-id']), userId: data.userId, name: data.name })
    }
    response.writeHead(state.isDown ? 503 : 204).end()
  }).listen(0, '127.0.0.1')
  await once(server, 'listening')
  t.teardown(() => { server.closeAllConnections(); server.close() })
  const { port } = server.address() as AddressInfo
  const webhook = {
    name, url: `http://127.0.0.1:${port}/`, secret, allowPrivateAddresses: true, events: ['user.created', 'user.updated'] as const,
  }
  return { received, state, webhook }
}

t.test('12.5 a webhook that is dead for three days', async (t) => {
  const dead = await startReceiver(t, 'dead', { isDown: true })
  const live = await startReceiver(t, 'live', { isDown: false })
  const { mailer, mails } = createMailer()
  const lines: { level: number, msg: string }[] = []
  const logger = { level: 'warn', stream: { write: (line: string) => { lines.push(JSON.parse(line)) } } }
  const usher = await createUsher(t, { webhooks: [dead.webhook, live.webhook], mailer }, { logger })
  const { app, inject } = usher
  const sql = openSql(t, usher)
  const schema = usher.options.schema!
  const changed = await usher.createUser({ name: 'hour 0' })

  const waiting = async () => (await sql<{ attempts: number }[]>`
    select attempts from outbox where consumer = 'webhook dead' order by position`).map(({ attempts }) => attempts)
  // Nothing is due and nothing is being attempted, so that no attempt sees two times.
  const isAtRest = async () =>
    (await sql`select 1 from outbox where consumer = 'webhook dead' and (due_at <= now() or lease is not null)`).length === 0

  // The clock of deliveries is that of the database. Moving their times into the past is moving it into the future.
  async function pass (hours: number): Promise<void> {
    await until('nothing is due', isAtRest)
    const by = sql`make_interval(hours => ${hours})`
    await sql`update outbox set due_at = due_at - ${by}, created_at = created_at - ${by}, expires_at = expires_at - ${by}`
    await sql`select pg_notify(${channelOf(schema, 'outbox_written')}, '')`
    await until('all have been attempted', isAtRest)
  }

  // Some events of new users, one of a user who has others, and a mail.
  let written = 1
  async function change (hour: number): Promise<void> {
    for (let index = 1; index < EVENTS; index++) await usher.createUser({ name: `hour ${hour}` })
    await inject('PATCH', `/api/users/${changed.id}`, { headers: usher.admin.headers, payload: { name: `hour ${hour}` } })
    await inject('POST', '/api/auth/password-reset', { payload: { email: changed.email } })
    written += EVENTS
  }

  let hour = 0
  for (; hour < 66; hour += HOURS) {
    await change(hour)
    await until('the other webhook has all', () => live.received.length === written + 1)
    await until('the user has the mail', () => mails.length === hour / HOURS + 1)
    await pass(HOURS)
  }
  const names = live.received.filter(({ userId }) => userId === changed.id).map(({ name }) => name)
  t.same(names.at(-1), 'hour 60', 'the other webhook and mails are not delayed')
  // Besides those of this test there is the first admin, whose event is the oldest.
  t.equal((await waiting()).length, written + 1, 'all events wait')
  const attempts = await waiting()
  t.ok(Math.max(...attempts) <= 24, `an event is attempted at most so often: ${Math.max(...attempts)}`)
  t.equal(attempts.filter((count) => count === 0).length, names.length - 1, 'those behind another one of their user never')
  t.same(await app.usher.events.failed(), [])
  t.ok(lines.filter(({ level }) => level === 40).length >= 1, 'the log says that deliveries fail')

  // After three days, what is older is given up, and listed.
  await pass(HOURS)
  await pass(HOURS)
  const failed = await app.usher.events.failed({ limit: 1000 })
  t.ok(failed.length > 0)
  t.same([...new Set(failed.map(({ consumer, error }) => `${consumer}: ${error}`))], [
    'webhook dead: the receiver answered 503',
  ])
  t.equal(lines.filter(({ msg }) => msg === 'An event could not be delivered, and is listed as failed').length, failed.length)
  t.equal((await waiting()).length + failed.length, written + 1, 'none is lost')
  const overview = await inject('GET', '/api/admin/deliveries?limit=100', { headers: usher.admin.headers })
  t.equal(overview.json().length, failed.length, 'admins see them')

  // It comes back.
  dead.state.isDown = false
  await pass(1)
  await until('the outbox is empty', async () => (await sql`select 1 from outbox`).length === 0)
  t.equal(dead.received.length, written + 1 - failed.length)
  const later = dead.received.filter(({ userId }) => userId === changed.id).map(({ name }) => name)
  t.same(later, names.slice(-later.length), 'in order for each user')
  for (const { id } of failed) t.ok(await app.usher.events.retry(id))
  await until('what was given up is delivered', () => dead.received.length === written + 1)
  t.equal(new Set(dead.received.map(({ id }) => id)).size, written + 1, 'each once')
  t.same(await app.usher.events.failed(), [])
})
