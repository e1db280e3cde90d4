import { once } from 'node:events'
import { request, type RequestOptions } from 'node:http'
import { join } from 'node:path'
import { json } from 'node:stream/consumers'
import t, { type Test } from 'tap'
import { startDatabase } from '../helpers/database.ts'
import { startNginx } from '../helpers/nginx.ts'
import { startNode, stopNode, type ServingNode } from '../helpers/node.ts'
import { openSql } from '../helpers/sql.ts'
import { subscribe } from '../helpers/subscriber.ts'
import { startTraffic, unlike } from '../helpers/traffic.ts'
import { until } from '../helpers/until.ts'
import { findFaults, noFaults, type Write } from '../helpers/writes.ts'

const admin = { email: 'root@example.com', password: 'horse battery staple' }
const ROUND = 100

t.test('4 two nodes behind nginx', async (t) => {
  const { url: databaseUrl, dataDir: cwd } = await startDatabase(t)
  const settings = {
    DATABASE_URL: databaseUrl,
    ADMIN_EMAIL: admin.email,
    ADMIN_PASSWORD: admin.password,
    LOG_LEVEL: 'silent',
    TRUST_PROXY: '127.0.0.1',
  }
  const sql = openSql(t, { options: { databaseUrl, schema: 'usher' } })
  const nodes = [await startNode(t, { cwd, settings }), await startNode(t, { cwd, settings })]
  const url = await startNginx(t, join(cwd, 'nginx'), nodes)
  const { token } = await post(`${url}/api/auth/login`, admin)
  const headers = { authorization: `Bearer ${token}`, 'content-type': 'application/json' }
  const written: Write[] = []

  // nginx knows the node's port, so the restarted node uses the same one.
  async function startAgain (index: number): Promise<void> {
    nodes[index] = await startNode(t, { cwd, settings: { ...settings, PORT: new URL(nodes[index]!.url).port } })
  }

  async function stop (t: Test, node: ServingNode): Promise<void> {
    const since = performance.now()
    t.equal(await stopNode(node), 0)
    t.comment(`stopped within ${Math.round(performance.now() - since)} ms`)
  }

  t.test('7.7 a post created through nginx or on either node reaches the subscribers of both nodes', async (t) => {
    const sockets = await Promise.all([{ url }, ...nodes].map((server) => subscribe(t, server)))
    for (const server of [{ url }, { url }, ...nodes]) {
      const title = crypto.randomUUID()
      await post(
        `${server.url}/graphql`,
        { query: `mutation { createPost(input: { title: "${title}", content: "Words" }) { id } }` },
        { headers }
      )
      for (const socket of sockets) t.match(await socket.next(), { payload: { data: { postCreated: { title } } } })
    }
  })

  t.test('4.4 the address of a session is the client\'s real address, whatever X-Forwarded-For the client sends', async (t) => {
    const { token } = await post(
      `${url}/api/auth/login`, admin, { localAddress: '127.0.0.9', headers: { 'x-forwarded-for': '192.0.2.1' } }
    )
    const sessions =
      await (await fetch(`${url}/api/auth/sessions`, { headers: { authorization: `Bearer ${token}` } })).json() as {
        current: boolean, address: string
      }[]
    t.equal(sessions.find(({ current }) => current)!.address, '127.0.0.9')
  })

  t.test('4.2 X-Forwarded-Host of a client is ignored, so a page of another origin cannot refresh', async (t) => {
    const { headers } = await fetch(`${url}/api/auth/login`, {
      method: 'POST', headers: { 'content-type': 'application/json' }, body: JSON.stringify(admin),
    })
    const cookie = headers.getSetCookie()[0]!.split(';', 1)[0]!
    const refresh = async (origin: string, more: Record<string, string> = {}) =>
      (await fetch(`${url}/api/auth/refresh`, { method: 'POST', headers: { cookie, origin, ...more } })).status
    t.equal(await refresh('http://evil.example', { 'x-forwarded-host': 'evil.example' }), 403)
    t.equal(await refresh(url), 200)
  })

  t.test('8 stopping a node under load fails no request', async (t) => {
    const traffic = startTraffic({ url, headers })
    await traffic.flow(ROUND)
    await stop(t, nodes[0]!)
    await traffic.flow(ROUND)
    await traffic.stop()
    written.push(...traffic.writes)
    t.strictSame(unlike(traffic.answers, ['200', '201']), {})
    t.comment(traffic.answers)
    await startAgain(0)
  })

  t.test('8 a rolling restart under load fails no request', async (t) => {
    const traffic = startTraffic({ url, headers })
    await traffic.flow(ROUND)
    for (const index of nodes.keys()) {
      await stop(t, nodes[index]!)
      await startAgain(index)
    }
    await traffic.flow(ROUND)
    await traffic.stop()
    written.push(...traffic.writes)
    t.strictSame(unlike(traffic.answers, ['200', '201']), {})
    t.comment(traffic.answers)
  })

  t.test('8 after a node is killed under load, each acknowledged write exists exactly once', async (t) => {
    const traffic = startTraffic({ url, headers })
    await traffic.flow(ROUND)
    nodes[0]!.child.kill('SIGKILL')
    await nodes[0]!.ended
    await traffic.flow(ROUND)
    await traffic.stop()
    written.push(...traffic.writes)
    t.strictSame(unlike(traffic.answers, ['200', '201', '502', '503', '504']), {})
    t.comment(traffic.answers)
    // Requests without a response may still be committed.
    await until('the connections of the node are closed', async () =>
      (await sql`select from pg_stat_activity where application_name = 'usher'`).length <= 11)
  })

  t.strictSame(await findFaults(sql, written), noFaults)
})

// The connection is not kept alive, because a node that stops would wait for it.
async function post (url: string, body: object, options: RequestOptions = {}): Promise<any> {
  const sending = request(url, {
    method: 'POST', agent: false, ...options, headers: { 'content-type': 'application/json', ...options.headers },
  })
  sending.end(JSON.stringify(body))
  const [response] = await once(sending, 'response')
  return json(response)
}
