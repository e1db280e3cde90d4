import { randomUUID } from 'node:crypto'
import { setTimeout as delay } from 'node:timers/promises'
import { sql } from 'kysely'
import postgres, { type PendingQuery, type Row, type Sql } from 'postgres'
import t from 'tap'
import { readClientOptions } from '../../../db/driver/client-options.ts'
import { createTransactionPool } from '../../../db/driver/transaction-pool.ts'
import { deleteOwnerlessUploads } from '../../../db/uploads/uploads.ts'
import { createUsher } from '../../helpers/app.ts'
import { openConnection } from '../../helpers/connection.ts'
import { testDatabaseUrl } from '../../helpers/database.ts'
import { openSql } from '../../helpers/sql.ts'
import { until } from '../../helpers/until.ts'

const usher = await createUsher(t, { poolSize: 10 })

/**
 * Queues statements while another client holds the lock of a row, until a statement waits for it, or all have failed.
 * Returns their results.
 */
async function whileLocked<Result> (
  sql: Sql, row: PendingQuery<Row[]>, queue: () => Promise<Result>[]
): Promise<Result[]> {
  let answers: Promise<Result[]> | undefined
  await sql.begin(async (transaction) => {
    const [{ pid }] = await transaction`select pg_backend_pid() as pid` as unknown as [{ pid: number }]
    await transaction`${row}`
    answers = Promise.all(queue())
    let settled = false
    void answers.catch(() => {}).then(() => { settled = true })
    await until('a statement waits', async () =>
      settled || (await sql`select from pg_stat_activity where ${pid} = any(pg_blocking_pids(pid))`).length > 0)
  })
  return answers!
}

t.test('1.11 a transaction has its own connection, however many statements are queued when it begins', async (t) => {
  const { db } = await openConnection(t, { poolSize: 2 })
  const other = postgres(await testDatabaseUrl(), { max: 2 })
  t.teardown(() => other.end())
  const table = `queue_${randomUUID()}`
  t.teardown(() => other`drop table ${other(table)}`)
  await other`create table ${other(table)} as select 0 as id`
  const update = () =>
    sql`update ${sql.id(table)} set id = id + ${1}::int where id >= 0`.execute(db).then(() => 'updated')
  const insert = () => db.transaction()
    .execute((trx) => sql`insert into ${sql.id(table)} values (${-1}::int)`.execute(trx)).then(() => 'inserted')
  // postgres.js pipelines a statement only if it is prepared on that connection already.
  await update()

  for (let length = 90; length <= 110; length++) {
    const answers = await whileLocked(other, other`select from ${other(table)} for update`, () =>
      [...Array.from({ length }, update), insert(), insert()])
    t.strictSame(answers, [...Array(length).fill('updated'), 'inserted', 'inserted'], `${length} in the queue`)
  }
  t.strictSame([...await other`select id, count(*)::int from ${other(table)} group by id order by id`], [
    { id: -1, count: 42 }, { id: 2101, count: 1 },
  ])
  t.strictSame([
    ...await other`select from pg_stat_activity where state like 'idle in transaction%' and query like ${`%${table}%`}`,
  ], [])
})

t.test('1.11 acknowledged changes last, even if a thousand statements wait for a locked row before them', async (t) => {
  const { inject, createUser, admin: { headers } } = usher
  const other = openSql(t, usher)
  const user = await createUser()
  const sessions = await Promise.all(Array.from({ length: 10 }, () => usher.login(user)))
  const replace = () =>
    inject('PUT', `/api/users/${user.id}`, { headers, payload: { name: 'Ada', email: user.email, role: 'user' } })
  const remove = () => inject('DELETE', `/api/users/${randomUUID()}`, { headers })
  await Promise.all(Array.from({ length: 100 }, replace))

  // On a busy machine, a transaction may wait too long for a connection, and the node may regard the database as
  // unavailable.
  const refused = ['OVERLOADED', 'DATABASE_UNAVAILABLE']
  let codes: string[] = []
  while (!codes.includes('OK') || !codes.includes('USER_NOT_FOUND')) {
    const answers = await whileLocked(other, other`select from users where id = ${user.id} for update`, () =>
      [...Array.from({ length: 1000 }, replace), ...Array.from({ length: 20 }, remove)])
    codes = answers.map((answer) => answer.statusCode === 200 ? 'OK' : answer.json().code)
    t.strictSame(codes.slice(0, 1000).filter((code) => !['OK', ...refused].includes(code)), [])
    t.strictSame(codes.slice(1000).filter((code) => !['USER_NOT_FOUND', ...refused].includes(code)), [])
  }

  const ended = await Promise.all(sessions.map(({ headers }) => inject('POST', '/api/auth/logout', { headers })))
  t.strictSame(ended.map(({ statusCode }) => statusCode), Array(10).fill(204))
  t.equal(
    (await other`select from sessions where user_id = ${user.id}`).length,
    1,
    'another client does not see the ended sessions'
  )
})

t.test('1.11 a transaction fails if one of its statements has failed, even if its body continues', async (t) => {
  const { db, query, logged } = await openConnection(t)
  await t.rejects(db.transaction().execute(async (trx) => {
    await sql`select 1/0`.execute(trx).catch(() => {})
  }), { message: 'The transaction was rolled back because one of its statements had failed' })
  t.strictSame(await query('select 1 as one'), [{ one: 1 }])
  t.strictSame(logged, [])
})

t.test('1.11 a shared connection that is inside a transaction is closed before others use it', async (t) => {
  const { query, logged } = await openConnection(t, { poolSize: 4 })
  await t.rejects(query('begin'), { code: 'UNSAFE_TRANSACTION' })
  t.strictSame(logged, ['A shared connection was inside a transaction, and is closed'])
  const inTransaction = await Promise.all(
    Array.from({ length: 20 }, () => query('select now() <> statement_timestamp() as open'))
  )
  t.strictSame(inTransaction.flat(), Array(20).fill({ open: false }))
})

t.test('1.13 transactions share a limited number of connections', async (t) => {
  const options = readClientOptions(await testDatabaseUrl(), 10_000)
  const pid = async (connection: { run: (text: string) => Promise<readonly unknown[]> }) =>
    ((await connection.run('select pg_backend_pid() as pid'))[0] as { pid: number }).pid

  await t.test('waiting transactions get a connection in order, and are rejected if none becomes free in time', async (t) => {
    const pool = createTransactionPool(() => options, { size: 1, timeoutMs: 200, maxWaiting: 2 })
    t.teardown(pool.destroy)
    const first = await pool.acquire()
    const number = await pid(first)
    const waiting = [pool.acquire(), pool.acquire()]
    await t.rejects(pool.acquire(), { code: 'OVERLOADED' }, 'too many are waiting')
    pool.release(first, true)
    const second = await waiting[0]!
    t.equal(await pid(second), number)
    await t.rejects(waiting[1]!, { code: 'OVERLOADED' }, 'it has waited for too long')
  })

  await t.test('a connection is replaced if it is not clean, was lost, or has been idle for too long', async (t) => {
    const pool = createTransactionPool(() => options, { size: 2, idle: 10 })
    t.teardown(pool.destroy)
    const use = async (
      clean: boolean, before: (connection: Awaited<ReturnType<typeof pool.acquire>>) => unknown = () => {}
    ) => {
      const connection = await pool.acquire()
      const number = await pid(connection)
      await before(connection)
      pool.release(connection, clean)
      return { connection, number }
    }
    const unclean = await use(false)
    t.notOk(unclean.connection.usable)
    const lost =
      await use(true, (connection) => t.rejects(connection.run('select pg_terminate_backend(pg_backend_pid())')))
    t.notOk(lost.connection.usable)
    await t.rejects(lost.connection.run('select 1'), { code: 'CONNECTION_CLOSED' })
    const idle = await use(true)
    await until('the idle connection is closed', () => !idle.connection.usable)
    const dropped = await use(true, (connection) => connection.destroy())
    t.equal(new Set([unclean, lost, idle, dropped].map(({ number }) => number)).size, 4)
  })

  await t.test('a connection that PostgreSQL terminates while it is idle is not used again', async (t) => {
    const pool = createTransactionPool(() => options, { size: 1 })
    t.teardown(pool.destroy)
    const connection = await pool.acquire()
    const number = await pid(connection)
    pool.release(connection, true)
    const { query } = await openConnection(t)
    await query(`select pg_terminate_backend(${number})`)
    await until('the loss is detected', () => !connection.usable)
    const next = await pool.acquire()
    t.not(await pid(next), number)
  })
})

t.test('5.4 removing files of deleted users may take longer than the time limit of idle transactions', async (t) => {
  const { options, admin } = usher
  const sql = openSql(t, usher)
  const { db } = await openConnection(t, { database: options.databaseUrl!, schema: options.schema! })
  await sql`insert into uploads (id, filename, media_type, size, sha256, description) values (${admin.id}, '', '', 1, '', '')`
  t.equal(await deleteOwnerlessUploads(db, 10, () => delay(1500, true)), 1)
  t.equal((await sql`select from uploads`).length, 0)
})
