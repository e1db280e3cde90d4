import t from 'tap'
import { createUsher } from '../helpers/app.ts'
import { startDatabase } from '../helpers/database.ts'
import { hostOf } from '../helpers/graphql.ts'
import { openSql } from '../helpers/sql.ts'
import { findFaults, noFaults, startWrites, type Write } from '../helpers/writes.ts'

t.test('SPEED 3 kill -9 of PostgreSQL under write load', async (t) => {
  const database = await startDatabase(t)
  const { postmaster } = database

  for (const [what, rounds] of [['the postmaster', 2], ['one backend', 3]] as const) {
    await t.test(`1.10 of ${what}: 503 until it is back, and what was acknowledged is there, once`, async (t) => {
      const usher = await createUsher(t, { databaseUrl: database.url })
      const { admin, options } = usher
      const sql = openSql(t, usher)
      const writes = startWrites({ url: `http://${await hostOf(usher)}`, headers: admin.headers })
      await writes.acknowledge(200)
      for (let round = 0; round < rounds; round++) {
        const victim = what === 'the postmaster' ? await postmaster() : await writer()
        const refused = writes.refuse()
        process.kill(victim, 'SIGKILL')
        await refused
        // By themselves.
        await writes.acknowledge(200)
      }
      await writes.stop()

      const { sent } = writes
      t.comment(`${sent.filter(({ id }) => id).length} acknowledged, ${sent.filter(({ refusal }) => refusal).length} refused`)
      t.strictSame(sent.filter(({ id, refusal }) => !id && !refusal), [], 'each is answered')
      t.strictSame(sent.filter((write) => write.refusal && !isAway(write)).slice(0, 3), [], 'where not served, 503, and when to come back')
      t.strictSame(await findFaults(sql, sent), noFaults)

      async function writer (): Promise<number> {
        for (;;) {
          // The newest, since others may be about to close.
          const [row] = await sql`select pid from pg_stat_activity
            where application_name = 'usher' and state = 'active' and query like ${`insert into "${options.schema}"%`} order by backend_start desc`
          if (row) return row.pid
        }
      }
    })
  }
})

// GraphQL says so in its own way (contract 7.1). Whoever has waited for too long while the database was away is refused, too.
function isAway ({ kind, refusal: { status, retryAfter, code } = { status: 0, retryAfter: null, code: '' } }: Write): boolean {
  const isAnswer = kind === 'post' ? status === 200 : status === 503 && retryAfter === '1'
  return isAnswer && ['DATABASE_UNAVAILABLE', 'OVERLOADED'].includes(code)
}
