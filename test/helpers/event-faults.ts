import { randomBytes } from 'node:crypto'
import { once } from 'node:events'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { text } from 'node:stream/consumers'
import { Webhook } from 'standardwebhooks'
import type { Test } from 'tap'
import { startDatabase } from './database.ts'
import { startNode, type ServingNode } from './node.ts'
import { openSql } from './sql.ts'
import { temporaryFolder } from './temporary-folder.ts'
import { until } from './until.ts'
import { startWrites, type Write } from './writes.ts'

const admin = { email: 'root@example.com', password: 'horse battery staple' }
const CLIENTS = 4
const RENAMED = 5
const TIMEOUT_MS = 60_000

interface Received { id: string, type: string, subject: string, data: any }

/** Receives events, verifies each, and answers every tenth with an error. */
async function startReceiver (t: Test, secret: string) {
  const received: Received[] = []
  const invalid: unknown[] = []
  let count = 0
  const server = createServer(async (request, response) => {
    const body = await text(request).catch(() => undefined)
    if (body === undefined) return response.destroy()
    try {
      const { type, data } =
        new Webhook(secret).verify(body, request.headers as Record<string, string>) as { type: string, data: any }
      const fails = ++count % 10 === 0
      if (!fails) {
        received.push({
          id: String(request.headers['webhook-id']), type, data, subject: data.postId ?? data.uploadId ?? data.userId,
        })
      }
      response.writeHead(fails ? 500 : 204).end()
    } catch (error) {
      invalid.push(error)
      response.writeHead(400).end()
    }
  }).listen(0, '127.0.0.1')
  await once(server, 'listening')
  t.teardown(() => { server.closeAllConnections(); server.close() })
  return { received, invalid, url: `http://127.0.0.1:${(server.address() as AddressInfo).port}/` }
}

/**
 * Kills a node under load in each round, and PostgreSQL in some, and checks what the receiver of a webhook got: every
 * event of each committed change, none of another, and those of a subject in order.
 */
export async function testEventFaults (
  t: Test, { rounds, killsDatabase }: { rounds: number, killsDatabase: (round: number) => boolean }
): Promise<void> {
  const database = await startDatabase(t)
  const secret = `whsec_${randomBytes(24).toString('base64')}`
  const receiver = await startReceiver(t, secret)
  const cwd = temporaryFolder()
  const settings = {
    DATABASE_URL: database.url,
    ADMIN_EMAIL: admin.email,
    ADMIN_PASSWORD: admin.password,
    LOG_LEVEL: 'silent',
    WEBHOOK_URL: receiver.url,
    WEBHOOK_SECRET: secret,
    WEBHOOK_ALLOW_PRIVATE: 'true',
    // The leases of what a killed node was delivering last for an attempt and 15 seconds.
    DEADLINE_FACTOR: '2',
  }
  const start = () => startNode(t, { cwd, settings })
  const sent: Write[] = []
  let [victim, other] = await Promise.all([start(), start()])

  for (let round = 0; round < rounds; round++) {
    const { headers } = await victim.login(admin)
    const writes = startWrites({ url: victim.url, headers }, CLIENTS)
    await writes.acknowledge(20)
    await rename(victim, headers, writes.sent.filter(({ id, kind }) => id && kind === 'user').slice(0, RENAMED))
    if (killsDatabase(round)) {
      await database.killPostmaster()
      await writes.acknowledge(20)
    }
    victim.child.kill('SIGKILL')
    await victim.ended
    await writes.ended
    sent.push(...writes.sent)
    ;[victim, other] = [other, await start()]
  }

  const sql = openSql(t, { options: { databaseUrl: database.url, schema: 'usher' } })
  const rest = () => sql<{ count: number }[]>`select count(*)::integer as count from outbox`
  // What a killed node was delivering is attempted again when its leases have expired.
  for (let last = Infinity, [row] = await rest(); row!.count > 0; [row] = await rest()) {
    last = row!.count
    await until('fewer deliveries wait', async () => (await rest())[0]!.count < last, 100)
  }
  t.same(receiver.invalid, [])
  t.same(await sql`select 1 from failed_deliveries`, [])

  const { received } = receiver
  const first = [...new Map(received.toReversed().map((event) => [event.id, event])).values()].reverse()
  const subjects = (type: string) => first.filter((event) => event.type === type).map(({ subject }) => subject).sort()
  const rows = async (table: string) =>
    (await sql.unsafe(`select id from ${table}`)).map(({ id }) => id as string).sort()
  t.same(subjects('user.created'), await rows('users'), 'each committed user, and no other, once')
  t.same(subjects('post.created'), await rows('posts'), 'each committed post, and no other, once')
  t.ok(
    sent.filter(({ id }) => id).every(({ id }) => first.some(({ subject }) => subject === id)),
    'each that was acknowledged'
  )

  const bySubject = Map.groupBy(first.filter(({ type }) => type.startsWith('user.')), ({ subject }) => subject)
  // A change whose response was lost was sent again, so a name may follow itself.
  const names = [...bySubject.values()].map((events) =>
    events.map(({ data: { name } }) => name as string).filter((name, index, all) => name !== all[index - 1]))
  t.same(names.filter((names) => names.some((name, index) => index > 0 && name !== `Name ${index}`)), [], 'in order')
  t.equal(names.filter(({ length }) => length > 1).length, rounds * RENAMED)
  t.comment(`${first.length} events, ${received.length - first.length} delivered again`)
}

// Renames users several times, each after the response to the last.
async function rename (node: ServingNode, headers: Record<string, string>, users: Write[]): Promise<void> {
  await Promise.all(users.map(async ({ id }) => {
    for (let number = 1; number <= 5; number++) {
      await until('it is renamed', async () => (await node.fetch(`/api/users/${id}`, {
        method: 'PATCH',
        headers: { ...headers, 'content-type': 'application/merge-patch+json' },
        body: JSON.stringify({ name: `Name ${number}` }),
        signal: AbortSignal.timeout(TIMEOUT_MS),
      })).status === 200)
    }
  }))
}
