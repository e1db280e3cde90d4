import t from 'tap'
import { createUsher, type TestUsher } from '../helpers/app.ts'
import { createDatabase } from '../helpers/database.ts'
import { startNode, type ServingNode } from '../helpers/node.ts'
import { openSql } from '../helpers/sql.ts'
import { until } from '../helpers/until.ts'

type Headers = Record<string, string>

const HOUR_MS = 3_600_000
const admin = { email: 'root@example.com', password: 'horse battery staple' }

t.test('4 nodes whose clocks are wrong by an hour issue and verify tokens by the clock of the database', async (t) => {
  const databaseUrl = await createDatabase(t)
  const cwd = t.testdir()
  const options = { databaseUrl, schema: 'usher', uploadsDir: `${cwd}/uploads`, admin }
  const right = await createUsher(t, options)
  const brief = await createUsher(t, { ...options, accessTokenSeconds: 5 })
  await Promise.all([-HOUR_MS, HOUR_MS].map(async (offBy) => {
    const inject = `
      const { now } = Date
      Date.now = () => now() + ${offBy}
      Object.defineProperty(performance, 'timeOrigin', { value: performance.timeOrigin + ${offBy} })`
    const settings = { DATABASE_URL: databaseUrl, ADMIN_EMAIL: admin.email, ADMIN_PASSWORD: admin.password, LOG_LEVEL: 'warn' }
    const wrong = await startNode(t, { cwd, settings, inject })
    const name = offBy < 0 ? 'behind' : 'ahead'

    const { headers } = await wrong.login(admin)
    t.strictSame([await statusAt(wrong, headers), await statusAt(right, headers)], [200, 200], `${name}: its tokens are valid on all nodes`)
    const user = await right.createUser()
    t.equal(await statusAt(wrong, user.headers), 200, `${name}: it accepts tokens of other nodes`)
    await right.inject('POST', '/api/auth/logout', { headers: user.headers })
    await until('the node rejects the ended session', async () => await statusAt(wrong, user.headers) === 401)

    const { headers: expiring } = await brief.login(await right.createUser())
    t.equal(await statusAt(wrong, expiring), 200)
    await until('the token has expired', async () => await statusAt(wrong, expiring) === 401)
    await until('the difference is logged', () => wrong.stdout.includes('The clock of this machine differs from the database clock, which is used instead'))
    t.ok(wrong.stdout.includes(`"difference":${offBy / 1000}`))
    if (offBy > 0) return
    const late = await startNode(t, { cwd, settings, inject })
    const statuses = [await statusAt(late, expiring), await statusAt(late, user.headers)]
    t.strictSame(statuses, [401, 401], `${name}: a node that starts afterwards rejects them as well`)
  }))
})

t.test('4 if the clock of a machine is set forward and back, its node still rejects all ended sessions', async (t) => {
  const usher = await createUsher(t)
  const [gone, other] = [await usher.createUser(), await usher.createUser()]
  const { now } = Date
  t.teardown(() => { Date.now = now })
  await usher.inject('POST', '/api/auth/logout', { headers: gone.headers })
  Date.now = () => now() + HOUR_MS
  await usher.inject('POST', '/api/auth/logout', { headers: other.headers })
  t.equal(await statusAt(usher, usher.admin.headers), 200)
  Date.now = now
  t.equal(await statusAt(usher, gone.headers), 401)
  t.equal(await statusAt(usher, other.headers), 401)
})

t.test('4 the time at which a session ended is that of its deletion, not the beginning of the transaction', async (t) => {
  const usher = await createUsher(t)
  const sql = openSql(t, usher)
  const { began, ended } = await sql.begin(async (sql) => {
    const [row] = await sql`select now() as began, pg_sleep(0.01)`
    await sql`delete from sessions`
    const [{ ended_at: ended } = {}] = await sql`select ended_at from ended_sessions`
    return { began: row!.began, ended }
  })
  t.ok(ended > began)
})

async function statusAt (node: ServingNode | TestUsher, headers: Headers): Promise<number> {
  if ('fetch' in node) return (await node.fetch('/api/protected', { headers })).status
  return (await node.inject('GET', '/api/protected', { headers })).statusCode
}
