import { decodeJwt } from 'jose'
import t, { type Test } from 'tap'
import { HEARTBEAT } from '../../../db/driver/notification-connection.ts'
import { startDatabase } from '../../helpers/database.ts'
import { startNode, type ServingNode } from '../../helpers/node.ts'
import { openSql } from '../../helpers/sql.ts'
import { until } from '../../helpers/until.ts'

const admin = { email: 'root@example.com', password: 'horse battery staple' }
const DEADLINE_MS = 10_000

interface Session { id: string, userId: string, headers: Record<string, string>, cookie: string }

t.test('4 two nodes on one database share sessions', async (t) => {
  const { url: databaseUrl, dataDir: cwd, postmaster } = await startDatabase(t)
  const settings = {
    DATABASE_URL: databaseUrl, ADMIN_EMAIL: admin.email, ADMIN_PASSWORD: admin.password, LOG_LEVEL: 'silent',
  }
  const sql = openSql(t, { options: { databaseUrl, schema: 'usher' } })
  const one = await startNode(t, { cwd, settings })
  const two = await startNode(t, { cwd, settings })
  const root = await login(one)

  async function login ({ login }: ServingNode, credentials = admin): Promise<Session> {
    const { token, ...session } = await login(credentials)
    const { sub, sid } = decodeJwt(token)
    return { ...session, id: sid as string, userId: sub! }
  }

  let users = 0
  async function createUser (): Promise<Session> {
    const user = { name: 'Somebody', email: `user${users++}@example.com`, password: 'difference engine' }
    await one.fetch('/api/users', { method: 'POST', headers: root.headers, body: JSON.stringify(user) })
    return login(one, user)
  }

  const status = async (node: ServingNode, { headers }: Session) =>
    (await node.fetch('/api/protected', { headers })).status

  // Polls until a node rejects a session. Returns the status, and prints how long it took.
  async function refusal (t: Test, node: ServingNode, session: Session): Promise<number> {
    const since = performance.now()
    for (;;) {
      const answer = await status(node, session)
      const delay = performance.now() - since
      if (answer !== 200) {
        t.comment(`${answer} after ${delay.toFixed(1)} ms`)
        return answer
      }
      if (delay > DEADLINE_MS) throw new Error('still accepted')
    }
  }

  const ends: Record<string, (session: Session) => Promise<Response>> = {
    logout: ({ headers }) =>
      one.fetch('/api/auth/logout', { method: 'POST', headers: { authorization: headers.authorization! } }),
    'logout by the cookie': ({ cookie }) => one.fetch('/api/auth/logout', { method: 'POST', headers: { cookie } }),
    'the session ended by its id': ({ id, headers }) =>
      one.fetch(`/api/auth/sessions/${id}`, { method: 'DELETE', headers }),
    'the session ended by an admin': ({ id }) =>
      one.fetch(`/api/auth/sessions/${id}`, { method: 'DELETE', headers: root.headers }),
    'the user deleted': ({ userId }) => one.fetch(`/api/users/${userId}`, { method: 'DELETE', headers: root.headers }),
  }

  t.test('4 a session that ends on one node is rejected by the other', async (t) => {
    for (const [how, end] of Object.entries(ends)) {
      const session = await createUser()
      t.strictSame([await status(one, session), await status(two, session)], [200, 200], how)
      t.equal((await end(session)).status, 204)
      t.equal(await status(one, session), 401, 'the node on which it ended rejects it at once')
      t.equal(await refusal(t, two, session), 401)
      t.equal(await status(two, root), 200, 'live sessions are accepted')
    }
  })

  t.test('4 a cookie of one node works on the other, and using an old one on either node ends the session on both', async (t) => {
    const session = await createUser()
    const refresh = (node: ServingNode, cookie: string) =>
      node.fetch('/api/auth/refresh', { method: 'POST', headers: { cookie } })
    const answers = await Promise.all([refresh(one, session.cookie), refresh(two, session.cookie)])
    const [here, there] = answers.map((response) => response.headers.getSetCookie()[0]!.split(';')[0]!)
    t.strictSame(
      [answers.map((response) => response.status), here], [[200, 200], there], 'both get the same new cookie'
    )
    await sql`update sessions set rotated_at = array[now() - interval '11 seconds'] where id = ${session.id}`
    t.equal((await refresh(two, session.cookie)).status, 401)
    t.equal(await status(two, session), 401)
    t.equal(await refusal(t, one, session), 401)
    t.equal((await refresh(one, here!)).status, 401)
  })

  t.test('4 an ended session is rejected even if the connections of notifications are terminated at that moment', async (t) => {
    for (const [how, end] of Object.entries(ends)) {
      const session = await createUser()
      t.equal(await status(two, session), 200, how)
      // The connection that was terminated in the previous round may not have been replaced yet. A connection that has
      // not sent a heartbeat yet is not terminated, since the node would then regard the database as unavailable.
      await until('a connection is terminated', async () => (await sql`
        select pg_terminate_backend(pid) from pg_stat_activity where pid <> pg_backend_pid() and query = ${HEARTBEAT}`).length > 0)
      t.equal((await end(session)).status, 204)
      t.equal(await refusal(t, two, session), 401)
      t.equal(await status(two, session), 401, 'and still rejects it')
      t.equal(await status(two, root), 200, 'live sessions are accepted')
    }
  })

  t.test('4 while the database is stopped, requests get 503, and ended sessions are rejected then and afterwards', async (t) => {
    const [session, ended] = [await createUser(), await createUser()]
    await ends.logout!(ended)
    t.equal(await refusal(t, two, ended), 401)
    const pid = await postmaster()
    // The paused postmaster accepts no new connections, and the existing connections are terminated.
    process.kill(pid, 'SIGSTOP')
    t.teardown(() => process.kill(pid, 'SIGCONT'))
    await sql`select pg_terminate_backend(pid) from pg_stat_activity where application_name = 'usher'`
    for (const node of [one, two]) t.equal(await refusal(t, node, session), 503)
    t.equal(await status(one, ended), 401, 'the node on which it ended')
    t.ok([401, 503].includes(await status(two, ended)), 'the other node rejects it, or cannot ask the database')
    process.kill(pid, 'SIGCONT')
    for (const node of [one, two]) await until('back', async () => await status(node, session) === 200)
    t.strictSame([await status(one, ended), await status(two, ended)], [401, 401])
  })
})
