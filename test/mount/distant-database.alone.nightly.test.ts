import { Type } from '@sinclair/typebox'
import Fastify from 'fastify'
import postgres from 'postgres'
import t, { type Test } from 'tap'
import usher, { migrate, type UsherOptions } from '../../app.ts'
import { mountOptions } from '../helpers/host.ts'
import { createProxy } from '../helpers/proxy.ts'
import { openSql } from '../helpers/sql.ts'
import { until } from '../helpers/until.ts'

const admin = { email: 'admin@example.com', password: 'horse battery staple' }
const DELAYS_MS = [100, 400, 700] as const
const MAX_ROUNDS = 10

/** A bare host with the settings that Fastify has by default, and what it has logged. */
function openDefaultHost (t: Test) {
  const logged: string[] = []
  const stream = { write: (line: string) => { logged.push(JSON.parse(line).msg) } }
  const app = Fastify({ forceCloseConnections: true, logger: { level: 'warn', stream } })
  t.teardown(() => app.close())
  return { app, logged, pluginTimeout: app.initialConfig.pluginTimeout! }
}

t.test('12.1 a host with the defaults of Fastify starts with a database that is 100 ms away', async (t) => {
  const options = { ...await mountOptions(t), admin, poolSize: 10 }
  const proxy = await createProxy(t, options.databaseUrl!)
  const sql = openSql(t, { options })
  const start = async (t: Test, more: UsherOptions = {}, delayMs: number = DELAYS_MS[0]): Promise<number> => {
    const { app } = openDefaultHost(t)
    proxy.delayReplies(delayMs)
    const before = proxy.rounds
    await app.register(usher, { ...options, ...more, databaseUrl: proxy.url })
    if (more.userFields) app.usher.on('user.created', () => {})
    await app.ready()
    const { rounds } = proxy
    proxy.delayReplies(0)
    await app.close()
    return rounds - before
  }
  // What is sent together counts as two round trips if the machine is so busy that an answer arrives in between. That
  // can only add some, so the start is repeated from the same state at a greater distance, and the least counts.
  const startsSoon = async (t: Test, more?: UsherOptions): Promise<void> => {
    const rounds: number[] = []
    for (const delayMs of DELAYS_MS) {
      await sql`delete from event_consumers`
      rounds.push(await start(t, more, delayMs))
      if (rounds.at(-1)! <= MAX_ROUNDS) break
    }
    t.ok(Math.min(...rounds) <= MAX_ROUNDS, `${rounds.join(', ')} round trips`)
  }
  await t.test('with an empty database', (t) => start(t))

  await t.test('with one that is up to date, in at most ten round trips', (t) => startsSoon(t))
  await t.test('with fields and a consumer of events, too', async (t) => {
    const userFields = Type.Object({ nick: Type.Optional(Type.String()) })
    await migrate({ databaseUrl: options.databaseUrl!, schema: options.schema!, userFields })
    await startsSoon(t, { userFields })
  })
})

t.test('14.3 a host with the defaults of Fastify waits for migrations of another node, however long', async (t) => {
  const userFields = Type.Object({ nick: Type.Optional(Type.String()) })
  const options = { ...await mountOptions(t), admin, userFields }
  const { databaseUrl, schema } = options as unknown as { databaseUrl: string, schema: string }
  // The column of the field is missing.
  await migrate({ databaseUrl, schema })
  const sql = postgres(databaseUrl, { max: 1, onnotice: () => {} })
  t.teardown(() => sql.end())
  // What a node holds while it migrates.
  await sql`select pg_advisory_lock(hashtextextended(${`usher node that migrates ${schema}`}, 0))`
  const { app, logged, pluginTimeout } = openDefaultHost(t)
  const since = performance.now()
  let hasStarted = false
  const starting = (async () => {
    await app.register(usher, options)
    await app.ready()
    hasStarted = true
  })()
  await until('it waits for longer than a plugin may take', () => performance.now() - since > 1.2 * pluginTimeout, 100)
  t.match(logged, ['another node migrates the database'])
  t.notOk(hasStarted)
  await sql`select pg_advisory_unlock_all()`
  await starting
  t.equal((await app.inject('/accounts/health/ready')).statusCode, 200)
  t.equal((await sql`select nick from ${sql(schema)}.users`).length, 1)
})

t.test('12.11 a database that stops answering while a host starts ends the start, wherever it was', async (t) => {
  const options = await mountOptions(t)
  const proxy = await createProxy(t, options.databaseUrl!)
  await migrate({ databaseUrl: options.databaseUrl!, schema: options.schema! })
  const deadlines = { databaseStart: 300, statement: 1000, databaseFailover: 300 }
  let [hasStarted, rounds] = [false, 0]
  while (!hasStarted) {
    const { app } = openDefaultHost(t)
    rounds++
    proxy.thaw()
    proxy.freezeAfter(rounds)
    try {
      await app.register(usher, { ...options, databaseUrl: proxy.url, deadlines })
      hasStarted = true
    } catch (error) {
      t.equal((error as Error).message, 'usher: the database cannot be reached (ETIMEDOUT)', `after ${rounds} round trips`)
    }
  }
  t.ok(rounds > 4, `${rounds} round trips`)
})
