import { randomUUID } from 'node:crypto'
import { setTimeout as delay } from 'node:timers/promises'
import { sql } from 'kysely'
import postgres, { type PendingQuery, type Row, type Sql } from 'postgres'
import t from 'tap'
import { readClientOptions } from '../../../db/driver/client-options.ts'
import { createTransactionPool } from '../../../db/driver/transaction-pool.ts'
import { deleteOwnerlessUploads } from '../../../db/uploads.ts'
import { createUsher } from '../../helpers/app.ts'
import { openConnection } from '../../helpers/connection.ts'
import { testDatabaseUrl } from '../../helpers/database.ts'
import { openSql } from '../../helpers/sql.ts'
import { until } from '../../helpers/until.ts'

const usher = await createUsher(t, { poolSize: 10 })

/** Runs what is to queue up while another client holds the lock of a row, until one statement waits for it. */
async function whileLocked<Result> (sql: Sql, row: PendingQuery<Row[]>, queue: () => Promise<Result>[]): Promise<Result[]> {
  let answers: Promise<Result[]> | undefined
  await sql.begin(async (transaction) => {
    const [{ pid }] = await transaction`select pg_backend_pid() as pid` as unknown as [{ pid: number }]
    await transaction`${row}`
    answers = Promise.all(queue())
    await until('a statement waits', async () => (await sql`select from pg_stat_activity where ${pid} = any(pg_blocking_pids(pid))`).length > 0)
  })
  return answers!
}

t.test('1.11 a transaction that begins behind a queue of any length has a connection of its own', async (t) => {
  const { db } = await openConnection(t, { poolSize: 2 })
  const other = postgres(await testDatabaseUrl(), { max: 2 })
  t.teardown(() => other.end())
  const table = `queue_${randomUUID()}`
  t.teardown(() => other`drop table ${other(table)}`)
  await other`create table ${other(table)} as select 0 as id`
  const update = () => sql`update ${sql.id(table)} set id = id + ${1}::int where id >= 0`.execute(db).then(() => 'updated')
  const insert = () => db.transaction().execute((trx) => sql`insert into ${sql.id(table)} values (${-1}::int)`.execute(trx)).then(() => 'inserted')
  // Only a statement that its connection knows already is sent along with others.
  await update()

  for (let length = 90; length <= 110; length++) {
    const answers = await whileLocked(other, other`select from ${other(table)} for update`, () => [...Array.from({ length }, update), insert(), insert()])
    t.strictSame(answers, [...Array(length).fill('updated'), 'inserted', 'inserted'], `${length} in the queue`)
  }
  t.strictSame([...await other`select id, count(*)::int from ${other(table)} group by id order by id`], [{ id: -1, count: 42 }, { id: 2101, count: 1 }])
  t.strictSame([...await other`select from pg_stat_activity where state like 'idle in transaction%' and query like ${`%${table}%`}`], [])
})

t.test('1.11 what is acknowledged behind a thousand statements that wait for a row stays', async (t) => {
  const { inject, createUser, admin: { headers } } = usher
  const other = openSql(t, usher)
  const user = await createUser()
  const sessions = await Promise.all(Array.from({ length: 10 }, () => usher.login(user)))
  const replace = () => inject('PUT', `/api/users/${user.id}`, { headers, payload: { name: 'Ada', email: user.email, role: 'user' } })
  const remove = () => inject('DELETE', `/api/users/${randomUUID()}`, { headers })
  await Promise.all(Array.from({ length: 100 }, replace))

  const answers = await whileLocked(other, other`select from users where id = ${user.id} for update`, () =>
    [...Array.from({ length: 1000 }, replace), ...Array.from({ length: 20 }, remove)])
  t.strictSame(answers.slice(0, 1000).map(({ statusCode }) => statusCode), Array(1000).fill(200))
  // On a busy machine a transaction may wait for too long for a connection.
  t.strictSame(answers.slice(1000).map((answer) => answer.json().code).filter((code) => !['USER_NOT_FOUND', 'OVERLOADED'].includes(code)), [])

  const ended = await Promise.all(sessions.map(({ headers }) => inject('POST', '/api/auth/logout', { headers })))
  t.strictSame(ended.map(({ statusCode }) => statusCode), Array(10).fill(204))
  t.equal((await other`select from sessions where user_id = ${user.id}`).length, 1, 'another client sees no session that has ended')
})

t.test('1.11 a transaction in which a statement has failed is no success, even if its body goes on', async (t) => {
  const { db, query, logged } = await openConnection(t)
  await t.rejects(db.transaction().execute(async (trx) => {
    await sql`select 1/0`.execute(trx).catch(() => {})
  }), { message: 'The transaction was rolled back because one of its statements had failed' })
  t.strictSame(await query('select 1 as one'), [{ one: 1 }])
  t.strictSame(logged, [])
})

t.test('1.11 a shared connection that is inside a transaction is closed before it serves anybody else', async (t) => {
  const { query, logged } = await openConnection(t, { poolSize: 4 })
  await t.rejects(query('begin'), { code: 'UNSAFE_TRANSACTION' })
  t.strictSame(logged, ['A shared connection was inside a transaction, and is closed'])
  const inTransaction = await Promise.all(Array.from({ length: 20 }, () => query('select now() <> statement_timestamp() as open')))
  t.strictSame(inTransaction.flat(), Array(20).fill({ open: false }))
})

t.test('1.13 transactions share a bounded number of connections', async (t) => {
  const options = readClientOptions(await testDatabaseUrl(), 10_000)
  const pid = async (connection: { run: (text: string) => Promise<readonly unknown[]> }) =>
    ((await connection.run('select pg_backend_pid() as pid'))[0] as { pid: number }).pid

  await t.test('who waits for one gets it, in the order of arrival, and is refused when none becomes free', async (t) => {
    const pool = createTransactionPool(options, { size: 1, patience: 200, waiting: 2 })
    t.teardown(pool.destroy)
    const first = await pool.acquire()
    const number = await pid(first)
    const waiting = [pool.acquire(), pool.acquire()]
    await t.rejects(pool.acquire(), { code: 'OVERLOADED' }, 'more than may wait')
    pool.release(first, true)
    const second = await waiting[0]!
    t.equal(await pid(second), number)
    await t.rejects(waiting[1]!, { code: 'OVERLOADED' }, 'for longer than one may wait')
  })

  await t.test('one that is not clean, or lost, or idle for long, is replaced', async (t) => {
    const pool = createTransactionPool(options, { size: 2, idle: 10 })
    t.teardown(pool.destroy)
    const use = async (clean: boolean, before: (connection: Awaited<ReturnType<typeof pool.acquire>>) => unknown = () => {}) => {
      const connection = await pool.acquire()
      const number = await pid(connection)
      await before(connection)
      pool.release(connection, clean)
      return { connection, number }
    }
    const unclean = await use(false)
    t.notOk(unclean.connection.usable)
    const lost = await use(true, (connection) => t.rejects(connection.run('select pg_terminate_backend(pg_backend_pid())')))
    t.notOk(lost.connection.usable)
    await t.rejects(lost.connection.run('select 1'), { code: 'CONNECTION_CLOSED' })
    const idle = await use(true)
    await until('it is closed', () => !idle.connection.usable)
    const dropped = await use(true, (connection) => connection.destroy())
    t.equal(new Set([unclean, lost, idle, dropped].map(({ number }) => number)).size, 4)
  })

  await t.test('one that PostgreSQL ends while it is idle is not used again', async (t) => {
    const pool = createTransactionPool(options, { size: 1 })
    t.teardown(pool.destroy)
    const connection = await pool.acquire()
    const number = await pid(connection)
    pool.release(connection, true)
    const { query } = await openConnection(t)
    await query(`select pg_terminate_backend(${number})`)
    await until('it is noticed', () => !connection.usable)
    const next = await pool.acquire()
    t.not(await pid(next), number)
  })
})

t.test('5.4 files of deleted users may take longer to remove than a transaction may pause otherwise', async (t) => {
  const { options, admin } = usher
  const sql = openSql(t, usher)
  const { db } = await openConnection(t, { database: options.databaseUrl!, schema: options.schema! })
  await sql`insert into uploads (id, filename, media_type, size, sha256, description) values (${admin.id}, '', '', 1, '', '')`
  t.equal(await deleteOwnerlessUploads(db, 10, () => delay(1500, true)), 1)
  t.equal((await sql`select from uploads`).length, 0)
})
