import Fastify from 'fastify'
import t from 'tap'
import { claimDeliveries, deleteDeliveries } from '../../db/outbox/deliveries.ts'
import database from '../../plugins/database/index.ts'
import optionsPlugin from '../../plugins/options.ts'
import telemetry from '../../plugins/telemetry/index.ts'
import { readOptions } from '../../schema/options/read-options.ts'
import { createUsher } from '../helpers/app.ts'
import { testDatabaseUrl } from '../helpers/database.ts'
import { openSql } from '../helpers/sql.ts'

t.test('12.5 many events are delivered in time, although PostgreSQL has analyzed the outbox while it was empty', async (t) => {
  const usher = await createUsher(t, { databaseUrl: `${await testDatabaseUrl()}?statement_timeout=5000` })
  const sql = openSql(t, { options: { ...usher.options, databaseUrl: await testDatabaseUrl() } })
  const app = Fastify({ pluginTimeout: 0 })
  t.teardown(() => app.close())
  await app.register(optionsPlugin, { options: readOptions(usher.options) })
  await app.register(telemetry)
  await app.register(database)
  await app.ready()
  const { db } = app.usherDatabase
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
