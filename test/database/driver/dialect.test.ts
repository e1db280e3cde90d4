import { setImmediate as turn } from 'node:timers/promises'
import { sql } from 'kysely'
import postgres from 'postgres'
import t, { type Test } from 'tap'
import { createCircuitBreaker } from '../../../db/driver/circuit-breaker.ts'
import { DEADLINES } from '../../../schema/options/deadlines.ts'
import { openConnection, type TestConnection } from '../../helpers/connection.ts'
import { testDatabaseUrl } from '../../helpers/database.ts'
import { nightly } from '../../helpers/nightly.ts'
import { until } from '../../helpers/until.ts'

const unavailable = { code: 'DATABASE_UNAVAILABLE' }
const POOL_SIZE = 4

/** Creates a table for a test. */
async function createTable (t: Test, { db }: TestConnection): Promise<ReturnType<typeof sql.id>> {
  const name = `d_${process.pid}_${performance.now().toString().replace('.', '_')}`
  await sql`create table ${sql.id(name)} (id int primary key)`.execute(db)
  t.teardown(async () => {
    const direct = postgres(await testDatabaseUrl(), { max: 1 })
    await direct`drop table ${direct(name)}`
    await direct.end()
  })
  return sql.id(name)
}

async function count ({ db }: TestConnection, table: ReturnType<typeof sql.id>): Promise<number> {
  const { rows: [row] } = await sql<{ count: number }>`select count(*)::int as count from ${table}`.execute(db)
  return row!.count
}

t.test('SPEED 1 statements outside of transactions share connections, some of which are for reads and the others for writes', async (t) => {
  const { db } = await openConnection(t, { poolSize: 4 })
  const pid = sql<number>`pg_backend_pid()`.as('pid')
  const read = async () => (await db.selectNoFrom(pid).executeTakeFirstOrThrow()).pid
  const readBoth = async () => (await db.with('mine', (cte) => cte.selectNoFrom(pid)).selectFrom('mine').select('pid')
    .executeTakeFirstOrThrow()).pid
  const write = async () => (await sql<{ pid: number }>`select pg_backend_pid() as pid`.execute(db)).rows[0]!.pid
  const pidsOf = async (run: () => Promise<number>) => new Set(await Promise.all(Array.from({ length: 200 }, run)))
  const [reads, more, writes] = [await pidsOf(read), await pidsOf(readBoth), await pidsOf(write)]
  t.strictSame([reads.size, writes.size], [2, 2])
  t.strictSame(reads, more)
  t.equal(new Set([...reads, ...writes]).size, 4)
})

t.test('1.13 reads succeed while as many writes as there are connections wait for a lock', async (t) => {
  const connection = await openConnection(t, { poolSize: 2 })
  const table = await createTable(t, connection)
  const { db, query } = connection
  await sql`insert into ${table} values (1)`.execute(db)
  const update = sql`update ${table} set id = 1`
  await db.transaction().execute(async (trx) => {
    await update.execute(trx)
    const waiting = Array.from({ length: 10 }, () => update.execute(db))
    await until('an update waits', async () =>
      (await db.selectFrom(sql<{ locks: number }>`pg_stat_activity`.as('activity'))
        .where(sql<boolean>`wait_event_type = 'Lock' and query like ${'update %'}`).selectAll().execute()).length > 0)
    t.teardown(() => Promise.all(waiting))
  })
  t.strictSame(await query('select 1 as one'), [{ one: 1 }])
})

t.test('1.13 the number of statements in flight is limited', async (t) => {
  const breaker = createCircuitBreaker({ maxWaiting: 1 })
  const { promise, resolve } = Promise.withResolvers<number>()
  const first = breaker.run(() => promise)
  await t.rejects(breaker.run(() => t.fail('must not be sent') as never), { code: 'OVERLOADED' })
  resolve(1)
  t.equal(await first, 1)
  t.equal(await breaker.run(async () => 2), 2)
})

t.test('9 Usher opens its own connections, so transforms and types of the client of the host have no effect', async (t) => {
  const own = postgres(await testDatabaseUrl(), {
    max: 1, transform: postgres.camel, types: { date: { to: 1184, from: [1184], serialize: String, parse: String } },
  })
  t.teardown(() => own.end())
  const { db } = await openConnection(t, { database: own })
  const mine = await own.begin((sql) => sql`select pg_backend_pid() as pid`)
  const { rows: [row] } =
    await sql<{ a_pid: number, at: Date }>`select pg_backend_pid() as a_pid, now() as at, ${['x']}::text[] as list`
      .execute(db)
  t.ok(row!.at instanceof Date)
  t.not(row!.a_pid, mine[0]!.pid)
})

t.test('8 settings of PostgreSQL in the database URL have an effect', async (t) => {
  const { query } = await openConnection(t, { database: `${await testDatabaseUrl()}?statement_timeout=1234` })
  t.strictSame(await query('show statement_timeout'), [{ statement_timeout: '1234ms' }])
  t.strictSame(await query('show idle_in_transaction_session_timeout'), [{ idle_in_transaction_session_timeout: '3s' }])
  t.strictSame(await query('show application_name'), [{ application_name: 'usher' }])
})

t.test('SPEED 1 statements are pipelined on a connection', async (t) => {
  const { db, query, proxy } = await openConnection(t, { poolSize: 1 })
  await query('select 1')
  await sql`select ${0}::int as index`.execute(db)
  proxy.freeze()
  const answers = Promise.all(
    Array.from({ length: 20 }, (_, index) => sql<{ index: number }>`select ${index}::int as index`.execute(db))
  )
  await turn()
  proxy.thaw()
  t.strictSame((await answers).map(({ rows }) => rows[0]!.index), Array.from({ length: 20 }, (_, index) => index))
  t.equal(proxy.dialed, 1)
})

t.test('7.8 arrays are sent as parameters of their types', async (t) => {
  const { db } = await openConnection(t)
  const texts = ['', 'plain', 'a,b', '{"x"}', 'back\\slash', "quote'", 'NULL', '日本', null]
  const { rows: [row] } = await sql<Record<string, unknown>>`select
    to_json(${texts}::text[]) as texts, to_json(${[1, -2]}::int[]) as ints, to_json(${['0190b5a0-0000-7000-8000-000000000000']}::uuid[]) as uuids,
    ${[]}::text[] = '{}' as empty, array['a', 'b'] as arrived`.execute(db)
  t.strictSame(row, {
    texts, ints: [1, -2], uuids: ['0190b5a0-0000-7000-8000-000000000000'], empty: true, arrived: '{a,b}',
  })
})

t.test('SPEED 1 a transaction runs on one connection, with its isolation level and access mode', async (t) => {
  const { db } = await openConnection(t)
  const show = sql<{
    level: string, mode: string, pid: number
  }>`select current_setting('transaction_isolation') as level, current_setting('transaction_read_only') as mode, pg_backend_pid() as pid`
  const rows = await db.transaction()
    .setIsolationLevel('repeatable read').setAccessMode('read only').execute(async (trx) =>
      [...(await show.execute(trx)).rows, ...(await show.execute(trx)).rows])
  t.match(rows, [{ level: 'repeatable read', mode: 'on' }, { level: 'repeatable read', mode: 'on' }])
  t.equal(rows[0]!.pid, rows[1]!.pid)
  const plain = await db.transaction().execute((trx) => show.execute(trx))
  t.match(plain.rows[0], { level: 'read committed', mode: 'off' })
})

t.test('SPEED 1 a transaction whose body throws is rolled back, and its connection can be used again', async (t) => {
  const connection = await openConnection(t, { poolSize: POOL_SIZE })
  const table = await createTable(t, connection)
  const { db } = connection
  for (let round = 0; round < POOL_SIZE * 3; round++) {
    await t.rejects(db.transaction().execute(async (trx) => {
      await sql`insert into ${table} values (${round})`.execute(trx)
      throw new Error('no')
    }), { message: 'no' })
    await t.rejects(db.transaction().execute(async (trx) => {
      await sql`insert into ${table} values (1)`.execute(trx)
      await sql`insert into ${table} values (1)`.execute(trx)
    }), { code: '23505' })
  }
  t.equal(await count(connection, table), 0)
  await db.transaction().execute((trx) => sql`insert into ${table} values (1)`.execute(trx))
  t.equal(await count(connection, table), 1)
})

t.test('1.10 if a connection is lost during a transaction, it fails with 503 and is rolled back, and no connection leaks', async (t) => {
  const connection = await openConnection(t, { poolSize: POOL_SIZE })
  const table = await createTable(t, connection)
  const { db, proxy } = connection
  for (let round = 0; round < POOL_SIZE * 3; round++) {
    // The server closes the connection while a statement runs.
    await t.rejects(db.transaction().execute(async (trx) => {
      await sql`insert into ${table} values (${round})`.execute(trx)
      await sql`select pg_terminate_backend(pg_backend_pid())`.execute(trx)
    }), unavailable)
    // The connection is reset while no statement runs. The next statement must not run on another connection, outside
    // of the transaction.
    await t.rejects(db.transaction().execute(async (trx) => {
      await sql`insert into ${table} values (${round})`.execute(trx)
      proxy.cut()
      for (let turns = 0; turns < round; turns++) await turn()
      await sql`insert into ${table} values (${round + 1000})`.execute(trx)
    }), unavailable)
    await t.rejects(db.transaction().execute(async (trx) => {
      await sql`insert into ${table} values (${round})`.execute(trx)
      proxy.cut()
      for (let turns = 0; turns < 20; turns++) await turn()
    }), unavailable, 'also if only the commit remains')
  }
  await until('the database is available', () => count(connection, table).then(() => true, () => false))
  t.equal(await count(connection, table), 0)
})

nightly('1.10 if the circuit breaker opens during a transaction on a client of the host, it is rolled back', async (t) => {
  const { proxy } = await openConnection(t)
  const own = postgres(proxy.url, { max: 2, connect_timeout: 5 })
  t.teardown(() => own.end({ timeout: 0 }))
  const connection = await openConnection(t, { database: own })
  const table = await createTable(t, connection)
  const { db, breaker, notifications } = connection
  await notifications.start()
  await t.rejects(db.transaction().execute(async (trx) => {
    await sql`insert into ${table} values (1)`.execute(trx)
    proxy.freeze()
    await sql`insert into ${table} values (2)`.execute(trx)
  }), unavailable)
  t.notOk(breaker.closed)

  // A transaction that begins while the circuit breaker opens is rolled back as well.
  proxy.thaw()
  await until('the circuit breaker is closed', () => breaker.closed)
  await until('the database is available', () => count(connection, table).then(() => true, () => false))
  proxy.freeze()
  await t.rejects(db.transaction().execute(async () => t.fail('must not begin')), unavailable)
  proxy.thaw()
  await until('the circuit breaker is closed', () => breaker.closed)
  t.equal(await count(connection, table), 0)
  const { rows } = await sql`select 1 from pg_locks where relation = ${table}::regclass and mode = 'RowExclusiveLock'`
    .execute(db).catch(() => ({ rows: [] }))
  t.equal(rows.length, 0)
})

t.test('1.10 a statement that exceeds its time limit, a deadlock and too many connections lead to 503', async (t) => {
  const { query } = await openConnection(t, { deadlines: { ...DEADLINES, statement: 50 } })
  await t.rejects(query('select pg_sleep(5)'), { ...unavailable, cause: { code: '57014' } })

  const { query: ask } = await openConnection(t)
  for (const code of ['53300', '40P01', '40001', '25006', '08006']) {
    await t.rejects(ask(`do $$ begin raise 'as PostgreSQL would' using errcode = '${code}'; end $$`), {
      ...unavailable, cause: { code },
    })
  }
  await t.rejects(ask('select 1/0'), { code: '22012' }, 'other errors of PostgreSQL are not changed')
  for (const code of ['57P01', '57P03', '28000', '3D000']) {
    const raised = ask(`do $$ begin raise 'as a trigger would' using errcode = '${code}'; end $$`)
    await t.rejects(raised, { code }, 'PostgreSQL ends the connection when it reports these itself')
  }
})

nightly('1.10 if one connection of the pool stops responding, its statements get 503, and later ones use another connection', async (t) => {
  const { query, notifications, proxy, breaker } = await openConnection(
    t, { poolSize: 1, deadlines: { ...DEADLINES, statement: 100 } }
  )
  await notifications.start()
  await query('select 1')
  proxy.abandon('newest')
  const waiting = query('select 1')
  await t.rejects(waiting, unavailable)
  t.ok(breaker.closed, 'no outage')
  // On a busy machine, the new connection may count as stalled as well.
  await until('later statements succeed', () =>
    query<{ one: number }>('select 1 as one').then(([row]) => row!.one === 1, () => false))
})

t.test('1.10 a failure to open a connection has no effect on open connections', async (t) => {
  const { query, proxy, db } = await openConnection(t, { poolSize: 4 })
  const pid = async () => (await query<{ pid: number }>('select pg_backend_pid() as pid'))[0]!.pid
  const first = await pid()
  await db.transaction().execute(async (trx) => {
    proxy.stopListening()
    // This is the first read, so it needs a new connection, which is refused.
    await t.rejects(db.selectNoFrom(sql`1`.as('one')).execute(), { ...unavailable, cause: { code: 'ECONNREFUSED' } })
    await t.rejects(db.transaction().execute(async () => t.fail('must not begin')), {
      ...unavailable, cause: { code: 'ECONNREFUSED' },
    })
    await sql`select 1`.execute(trx)
  })
  t.equal(await pid(), first)
})

t.test('1.10 a statement that PostgreSQL has not executed fails', async (t) => {
  const { query } = await openConnection(t)
  await t.rejects(query(''), unavailable)
})

t.test('SPEED 1 streaming is not supported', async (t) => {
  const { db } = await openConnection(t)
  const stream = db.selectFrom('users').selectAll().stream()
  await t.rejects(stream.next(), { message: 'Streaming is not supported: page by keyset instead' })
  await db.destroy()
})

t.test('SPEED 1 introspection of Kysely works', async (t) => {
  const connection = await openConnection(t)
  const schemas = await connection.db.introspection.getSchemas()
  t.ok(schemas.some(({ name }) => name === 'public'))
})

t.test('1.3 notices of PostgreSQL are not printed', async (t) => {
  const { query } = await openConnection(t)
  const printed = t.capture(console, 'log')
  await query("do $$ begin raise notice 'by the way'; end $$")
  t.strictSame(printed(), [])
})

t.test('1.13 a statement with a value that cannot be sent fails alone, and the others get their own answers', async (t) => {
  const { db } = await openConnection(t, { poolSize: 1 })
  const number = async (value: unknown) =>
    (await sql<{ value: number }>`select ${value}::int as value`.execute(db)).rows[0]!.value
  const kinds: [string, unknown, unknown][] = [
    ['int', undefined, TypeError], ['int', Symbol('x'), TypeError], ['text', Object.create(null), TypeError],
    ['timestamptz', 'never', { code: '22007' }], ['timestamptz', new Date(NaN), { code: '22007' }],
    ['jsonb', { n: 1n }, { code: '22P02' }], ['bytea', 5, { code: '22P02' }], ['text[]', 'x', { code: '22P02' }],
  ]
  for (const [type, value, error] of kinds) {
    const run = (value: unknown) => sql`select ${value}::${sql.raw(type)} as value`.execute(db)
    // The type of its parameter is known then.
    await run(null)
    await number(0)
    const [before, failure, ...after] =
      await Promise.all([number(1), run(value).catch((error) => error), number(2), number(3)])
    t.strictSame([before, ...after], [1, 2, 3], type)
    t.match(failure, error, type)
  }
  t.strictSame(
    (await sql`select ${'2026-12-31T23:59:60Z'}::timestamptz = ${'2027-01-01T00:00:00Z'}::timestamptz as same`
      .execute(db)).rows,
    [{ same: true }]
  )
  await t.rejects(sql`select ${sql.join(Array.from({ length: 65_534 }, () => 1))}`.execute(db), TypeError)
  t.equal(await number(4), 4)
})
