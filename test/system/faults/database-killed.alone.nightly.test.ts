import t from 'tap'
import { isAlive } from '../../../node/embedded/cluster.ts'
import { createUsher } from '../../helpers/app.ts'
import { startDatabase } from '../../helpers/database.ts'
import { hostOf } from '../../helpers/graphql.ts'
import { openSql } from '../../helpers/sql.ts'
import { until } from '../../helpers/until.ts'
import { findFaults, noFaults, startWrites, type Write } from '../../helpers/writes.ts'

t.test('SPEED 3 kill -9 of PostgreSQL under write load', async (t) => {
  const database = await startDatabase(t)

  for (const [what, rounds] of [['the postmaster', 2], ['one backend', 3]] as const) {
    await t.test(`1.10 kill -9 of ${what}: writes get 503 until it is available, and acknowledged ones are stored once`, async (t) => {
      const usher = await createUsher(t, { databaseUrl: database.url, deadlines: {} })
      const { admin, options } = usher
      const writes = startWrites({ url: `http://${await hostOf(usher)}`, headers: admin.headers })
      await writes.acknowledge(200)
      for (let round = 0; round < rounds; round++) {
        await (what === 'the postmaster' ? database.killPostmaster() : killBackend())
        // Service resumes without intervention.
        await writes.acknowledge(200)
      }
      await writes.stop()

      const { sent } = writes
      t.comment(
        `${sent.filter(({ id }) => id).length} acknowledged, ${sent.filter(({ refusal }) => refusal).length} refused`
      )
      t.strictSame(sent.filter(({ id, refusal }) => !id && !refusal), [], 'every write got a response')
      t.strictSame(
        sent.filter((write) => write.refusal && !isAway(write)).slice(0, 3),
        [],
        'rejected writes got 503 with Retry-After'
      )
      t.strictSame(await findFaults(openSql(t, usher), sent), noFaults)

      // If one backend is killed, PostgreSQL ends all of them and recovers, sometimes before the next statement
      // arrives.
      async function killBackend (): Promise<void> {
        const backends = await listBackends()
        process.kill(backends[0]!, 'SIGKILL')
        await until('the processes have ended', () => !backends.some(isAlive))
      }

      // Returns the backends of Usher, one that writes first. It uses a new connection, because PostgreSQL has closed
      // all others.
      async function listBackends (): Promise<number[]> {
        const sql = openSql(t, usher)
        const rows = await sql`select pid from pg_stat_activity where application_name = 'usher'
          order by query like ${`%insert into "${options.schema}"%`} desc, backend_start desc`
        await sql.end()
        return rows.map(({ pid }) => pid)
      }
    })
  }
})

// GraphQL responds with status 200 (contract 7.1). A write that has waited for too long while the database was
// unavailable gets OVERLOADED.
function isAway (
  { kind, refusal: { status, retryAfter, code } = { status: 0, retryAfter: null, code: '' } }: Write
): boolean {
  const isAnswer = kind === 'post' ? status === 200 : status === 503 && retryAfter === '1'
  return isAnswer && ['DATABASE_UNAVAILABLE', 'OVERLOADED'].includes(code)
}
