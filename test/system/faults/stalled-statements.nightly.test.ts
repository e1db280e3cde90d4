import postgres from 'postgres'
import t, { type Test } from 'tap'
import { HEARTBEAT } from '../../../db/driver/notification-connection.ts'
import { createUsher, type TestUsher } from '../../helpers/app.ts'
import { startDatabase } from '../../helpers/database.ts'
import { openSql, untilBlocked } from '../../helpers/sql.ts'
import { until } from '../../helpers/until.ts'

// Much longer than a second, and shorter than the time after which PostgreSQL cancels a statement.
const HANG_MS = 8_000

/** Returns Fastify options that collect the log messages about the database. */
function keepLog (lines: string[]) {
  const keep = ({ msg }: { msg: string }) => {
    if (msg.startsWith('The database') && !msg.endsWith('try again')) lines.push(msg)
  }
  return { logger: { level: 'info', stream: { write: (line: string) => keep(JSON.parse(line)) } } }
}

t.test('1.10 the database responds to heartbeats only', async (t) => {
  const { url, dataDir, postmaster } = await startDatabase(t)
  const lines: string[] = []
  const usher = await createUsher(t, { databaseUrl: url, uploadsDir: dataDir }, keepLog(lines))
  const direct = postgres(url, { max: 1, connection: { application_name: 'test' } })
  t.teardown(() => direct.end({ timeout: 0 }))
  const { id } = await usher.createUser()
  let heartbeats: number[] = []
  await until(
    'the process that answers heartbeats is known', async () => (heartbeats = await backends(HEARTBEAT)).length === 1
  )
  let stopped: number[] = []
  t.teardown(resume)

  async function backends (query = '%'): Promise<number[]> {
    return (
      await direct`select pid from pg_stat_activity where application_name = 'usher' and query like ${query}`
    ).map(({ pid }) => pid)
  }

  const read = () => usher.inject('GET', `/api/users/${id}`)
  const write = () => usher.inject('POST', '/api/auth/logout', { headers: { authorization: 'Bearer none' } })

  // The process that answers heartbeats also answers other statements, when a stall is suspected.
  async function stopBackends (): Promise<void> {
    stopped = (await backends()).filter((pid) => !heartbeats.includes(pid))
    for (const pid of stopped) process.kill(pid, 'SIGSTOP')
  }

  function resume (): void {
    for (const pid of stopped.splice(0)) process.kill(pid, 'SIGCONT')
  }

  async function failsAtOnce (t: Test): Promise<void> {
    const since = performance.now()
    const response = await read()
    t.equal(response.statusCode, 503)
    t.equal(response.headers['retry-after'], '1')
    t.ok(performance.now() - since < HANG_MS, 'long before PostgreSQL would have cancelled it')
  }

  await t.test('if the processes of the pool are paused, requests get 503 at once, and then new connections are used', async (t) => {
    await Promise.all([read(), write()])
    await stopBackends()
    await failsAtOnce(t)
    await until('reads succeed', async () => (await read()).statusCode === 200)
    t.strictSame(lines, ['The database answers heartbeats, but no statements'])
    resume()
  })

  await t.test('if new connections are not possible either, every request gets 503 at once until the processes continue', async (t) => {
    await read()
    const main = await postmaster()
    process.kill(main, 'SIGSTOP')
    await stopBackends()
    stopped.push(main)
    for (let request = 0; request < 3; request++) await failsAtOnce(t)
    t.equal((await usher.inject('GET', '/health/ready')).statusCode, 503)
    resume()
    await until('reads succeed', async () => (await read()).statusCode === 200)
    t.equal(lines.at(-1), 'The database answers statements again')
  })
})

t.test('1.10 a statement that waits for a lock does not count as a stall: others succeed, and it completes', async (t) => {
  const lines: string[] = []
  const usher = await createUsher(t, {}, keepLog(lines))
  const sql = openSql(t, usher)
  const user = await usher.createUser()
  const rename = () => usher.inject(
    'PUT', `/api/users/${user.id}`, { headers: usher.admin.headers, payload: { name: 'New', email: user.email } }
  )
  let renamed: ReturnType<TestUsher['inject']> | undefined
  await sql.begin(async (trx) => {
    await trx`select from users where id = ${user.id} for update`
    renamed = rename()
    await untilBlocked(sql, usher)
    const since = performance.now()
    await until('it has waited for longer than a stall takes to be detected', () => performance.now() - since > 1500)
    t.equal((await usher.inject('GET', `/api/users/${user.id}`)).statusCode, 200)
  })
  t.equal((await renamed!).statusCode, 200)
  t.strictSame(lines, [])
})
