import { randomUUID } from 'node:crypto'
import t, { type Test } from 'tap'
import { v7 as uuid } from 'uuid'
import { trimConsumer } from '../../db/outbox/backlog.ts'
import { createUsher, type TestUsher } from '../helpers/app.ts'
import { openConnection } from '../helpers/connection.ts'
import { openSql } from '../helpers/sql.ts'
import { until } from '../helpers/until.ts'

/** Starts another node on the same database, and returns what it has logged. It bounds all rows when it starts. */
async function startAnother (t: Test, { options }: TestUsher) {
  const lines: string[] = []
  const logger = { level: 'warn', stream: { write: (line: string) => { lines.push(line) } } }
  await createUsher(t, options, { logger })
  return () => lines.map((line) => JSON.parse(line))
}

t.test('12.5 of the events of one kind about one user, 10,000 wait for a dead webhook: the first and the last', async (t) => {
  const usher = await createUsher(t)
  const sql = openSql(t, usher)
  const [flooder, author, other] = [randomUUID(), randomUUID(), randomUUID()]
  // Rows as the statements of changes store them.
  const add = (consumer: string, type: string, member: string, userId: string, count: number) => sql`
    insert into outbox (consumer, type, subject, data, due_at)
    select ${consumer}, ${type}, case when ${member} = 'userId' then ${userId}::uuid else gen_random_uuid() end,
      jsonb_build_object(${member}::text, ${userId}::text, 'number', number), now() + interval '1 hour'
    from generate_series(1, ${count}::integer) as number`
  await add('webhook dead', 'session.started', 'userId', flooder, 1)
  await add('webhook dead', 'user.updated', 'userId', other, 20)
  await add('webhook dead', 'user.updated', 'userId', flooder, 11_500)
  await add('webhook dead', 'post.updated', 'authorId', author, 10_002)
  await add('webhook slow', 'user.updated', 'userId', flooder, 3000)

  const logged = await startAnother(t, usher)
  const counts = () => sql<{ consumer: string, type: string, userId: string, count: number }[]>`
    select consumer, type, coalesce(data ->> 'userId', data ->> 'authorId') as "userId", count(*)::integer
    from outbox group by 1, 2, 3 order by 1, 2, 4`
  await until('bounded rows', async () => (await counts()).every(({ count }) => count <= 10_000))
  t.strictSame([...await counts()], [
    { consumer: 'webhook dead', type: 'post.updated', userId: author, count: 10_000 },
    { consumer: 'webhook dead', type: 'session.started', userId: flooder, count: 1 },
    { consumer: 'webhook dead', type: 'user.updated', userId: other, count: 20 },
    { consumer: 'webhook dead', type: 'user.updated', userId: flooder, count: 10_000 },
    { consumer: 'webhook slow', type: 'user.updated', userId: flooder, count: 3000 },
  ])
  const gaps = await sql`
    select number, next from (
      select (data ->> 'number')::integer as number, lead((data ->> 'number')::integer) over (order by position) as next
      from outbox where consumer = 'webhook dead' and data ->> 'userId' = ${flooder} and type = 'user.updated'
    ) as rows where next <> number + 1`
  t.strictSame([...gaps], [{ number: 5000, next: 6501 }], 'what is dropped is in the middle')
  await until('the log', () => logged().length >= 2)
  const message = 'Events were dropped, because too many about one user wait for this consumer'
  t.match(logged().find(({ userId }) => userId === flooder), {
    level: 50, consumer: 'webhook dead', type: 'user.updated', events: 1500, msg: message,
  })
})

t.test('23.4 of the events of the account log about nobody, 10,000 wait for a dead webhook', async (t) => {
  const usher = await createUsher(t)
  const sql = openSql(t, usher)
  const add = (type: string, count: number) => sql`
    insert into outbox (consumer, type, subject, data, due_at)
    select 'webhook dead', ${type}, gen_random_uuid(), jsonb_build_object('number', number), now() + interval '1 hour'
    from generate_series(1, ${count}::integer) as number`
  await add('audit.created', 10_500)
  await add('organization.created', 10_500)
  await startAnother(t, usher)
  const counts = () => sql<{ type: string, count: number }[]>`
    select type, count(*)::integer from outbox group by 1 order by 1`
  await until('bounded rows', async () => (await counts())[0]!.count === 10_000)
  t.strictSame([...await counts()], [
    { type: 'audit.created', count: 10_000 }, { type: 'organization.created', count: 10_500 },
  ], 'others are not caused by strangers')
})

t.test('12.5 beyond the limit of a consumer, the events that would expire first are dropped', async (t) => {
  const usher = await createUsher(t)
  const sql = openSql(t, usher)
  await sql`insert into outbox (consumer, type, subject, data, due_at)
    select case when number % 3 = 0 then 'webhook other' else 'webhook dead' end, 'user.updated', gen_random_uuid(),
      jsonb_build_object('number', number), now() + interval '1 hour'
    from generate_series(1, 30) as number`
  const db = (await openConnection(t)).db.withSchema(usher.options.schema!)
  t.equal(await trimConsumer(db, 'webhook dead', { keep: 20, limit: 100 }), 0, 'as many as may wait')
  t.equal(await trimConsumer(db, 'webhook dead', { keep: 15, limit: 100 }), 5)
  t.equal(
    await trimConsumer(db, 'webhook dead', { keep: 12, limit: 2 }), 2, 'at most as many as one statement may delete'
  )
  const left = (await sql`select consumer, (data ->> 'number')::integer as number from outbox order by position`)
  t.strictSame(
    left.filter(({ consumer }) => consumer === 'webhook dead').map(({ number }) => number),
    [11, 13, 14, 16, 17, 19, 20, 22, 23, 25, 26, 28, 29]
  )
  t.equal(left.filter(({ consumer }) => consumer === 'webhook other').length, 10)
})

t.test('14.4 of the entries of the account log of one user and action, 24 hours keep 1,000: the first and the last', async (t) => {
  const usher = await createUsher(t)
  const sql = openSql(t, usher)
  const user = await usher.createUser()
  const add = async (action: string, userId: string, count: number, since: number) => {
    const ids = Array.from({ length: count }, (_, index) => uuid({ msecs: since + index }))
    await sql`insert into audit (id, action, actor_id, user_id, address, user_agent)
      select id, ${action}, ${userId}, ${userId}, '198.51.100.7', 'Thief' from unnest(${ids}::uuid[]) as id`
    return ids
  }
  const now = Date.now()
  const earlier = await add('user.email-change', user.id, 1200, now - 30 * 3_600_000)
  const flood = await add('user.email-change', user.id, 2600, now - 3_600_000)
  const others = await add('user.email-change', usher.admin.id, 900, now - 1_800_000)
  const [login] = await sql`select id from audit where action = 'login' and user_id = ${user.id}`
  const idsOf = async (userId: string) =>
    (await sql`select id from audit where action = 'user.email-change' and user_id = ${userId} order by id`).map(
      ({ id }) => id
    )

  const logged = await startAnother(t, usher)
  await until('fewer entries', async () => (await idsOf(user.id)).length <= 2200)
  t.strictSame(await idsOf(user.id), [...earlier, ...flood.slice(0, 500), ...flood.slice(-500)])
  t.strictSame(await idsOf(usher.admin.id), others)
  t.equal((await sql`select id from audit where id = ${login!['id']}`).length, 1, 'the login of the thief remains')
  await until('the log', () => logged().length > 0)
  t.match(logged(), [{ level: 40, userId: user.id, action: 'user.email-change', entries: 1600 }])
})

t.test('14.4 of those about nobody, 24 hours keep 10,000 of an action, and of one network at most a quarter of them', async (t) => {
  const usher = await createUsher(t)
  const sql = openSql(t, usher)
  const since = Date.now() - 3_600_000
  let stored = 0
  const add = async (action: string, addresses: readonly string[]) => {
    const ids = addresses.map(() => uuid({ msecs: since + stored++ }))
    await sql`insert into audit (id, action, address, user_agent)
      select id, ${action}, address, 'Thief' from unnest(${ids}::uuid[], ${addresses}::text[]) as given(id, address)`
    return ids
  }
  const of = (count: number, addressOf: (index: number) => string) =>
    Array.from({ length: count }, (_, index) => addressOf(index))
  const from = {
    'an address': await add('login.failed', of(1200, () => '203.0.113.5')),
    'its neighbours': await add('login.failed', of(200, (index) => `203.0.113.${index + 6}`)),
    'a /24': await add('login.failed', of(2700, (index) => `198.51.100.${index % 250}`)),
    'a /48': await add('login.failed', of(2800, (index) => `2001:db8:1:${index.toString(16)}::1`)),
    'what is no address': await add('login.failed', of(1100, () => 'unknown')),
    'many networks': await add('password.reset-request', of(10_300, (index) => `10.${index >> 8}.${index & 255}.1`)),
  }
  const ends = (ids: readonly string[], keep: number) => [...ids.slice(0, keep / 2), ...ids.slice(-keep / 2)]

  await startAnother(t, usher)
  const left = async () => (await sql`select id from audit where user_id is null order by id`).map(({ id }) => id)
  const kept = {
    'an address': ends(from['an address'], 1000),
    'its neighbours': from['its neighbours'],
    'a /24': ends(from['a /24'], 2500),
    'a /48': ends(from['a /48'], 2500),
    'what is no address': ends(from['what is no address'], 1000),
    'many networks': ends(from['many networks'], 10_000),
  }
  const total = Object.values(kept).flat().length
  await until('fewer entries', async () => (await left()).length <= total)
  const ids = new Set(await left())
  for (const [source, expected] of Object.entries(kept)) {
    t.strictSame(from[source as keyof typeof from].filter((id) => ids.has(id)), expected, source)
  }
})
