import { randomUUID } from 'node:crypto'
import Fastify from 'fastify'
import t, { type Test } from 'tap'
import { claimDeliveries, deleteDeliveries } from '../../db/outbox/deliveries.ts'
import database from '../../plugins/database/index.ts'
import optionsPlugin from '../../plugins/options.ts'
import telemetry from '../../plugins/telemetry/index.ts'
import type { UsherOptions } from '../../schema/options/options.ts'
import { readOptions } from '../../schema/options/read-options.ts'
import { createUsher } from '../helpers/app.ts'
import { testDatabaseUrl } from '../helpers/database.ts'
import { openSql } from '../helpers/sql.ts'

async function openDatabase (t: Test, options: UsherOptions) {
  const app = Fastify({ pluginTimeout: 0 })
  t.teardown(() => app.close())
  await app.register(optionsPlugin, { options: readOptions(options) })
  await app.register(telemetry)
  await app.register(database)
  await app.ready()
  return app.usherDatabase.db
}

t.test('12.5 many events are delivered in time, although PostgreSQL has analyzed the outbox while it was empty', async (t) => {
  const usher = await createUsher(t, { databaseUrl: `${await testDatabaseUrl()}?statement_timeout=5000` })
  const sql = openSql(t, { options: { ...usher.options, databaseUrl: await testDatabaseUrl() } })
  const db = await openDatabase(t, usher.options)
  const add = (count: number) => sql`insert into outbox (consumer, type, subject, data)
    select 'consumer', 'user.created', gen_random_uuid(), '{}' from generate_series(1, ${count}::integer)`

  await add(60)
  await sql`delete from outbox`
  await sql`analyze outbox`
  await add(100_000)
  const { claimed, waiting } = await claimDeliveries(
    db, { consumer: 'consumer', types: ['user.created'], limit: 500, seconds: 30 }
  )
  t.same([claimed.length, waiting], [500, 0])
  await deleteDeliveries(db, claimed.map(({ position, lease }) => ({ position, lease })))
  t.same(await sql`select count(*)::integer as rows from outbox`, [{ rows: 99_500 }])
})

t.test('12.5 events of few users that are due at once are delivered with few statements', async (t) => {
  const [USERS, EVENTS, LIMIT] = [20, 50, 4]
  const usher = await createUsher(t)
  const sql = openSql(t, usher)
  const db = await openDatabase(t, usher.options)
  const users = Array.from({ length: USERS }, () => randomUUID())
  await sql`insert into outbox (consumer, type, subject, data)
    select 'consumer', 'user.updated', id, json_build_object('number', number)
    from unnest(${users}::uuid[]) id, generate_series(1, ${EVENTS}::integer) number order by number`
  const delivered = new Map(users.map((id): [string, number[]] => [id, []]))
  let claims = 0
  let isCrowded = false
  for (let count = 0; count < USERS * EVENTS; claims++) {
    const { claimed, waiting } = await claimDeliveries(
      db, { consumer: 'consumer', types: ['user.updated'], limit: LIMIT, seconds: 30, isCrowded }
    )
    isCrowded = waiting > 0
    t.ok(claimed.length <= LIMIT)
    for (const { subject, data } of claimed) delivered.get(subject)!.push((data as { number: number }).number)
    await deleteDeliveries(db, claimed.map(({ position, lease }) => ({ position, lease })))
    count += claimed.length
  }
  for (const numbers of delivered.values()) t.same(numbers, numbers.toSorted((a, b) => a - b), 'in order')
  t.ok(claims <= 1.2 * USERS * EVENTS / LIMIT, `${claims} claims of ${LIMIT} for ${USERS * EVENTS} events`)
})
