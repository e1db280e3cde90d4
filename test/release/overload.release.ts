import type { Sql } from 'postgres'
import t, { type Test } from 'tap'
import { createUsher, type TestUsher } from '../helpers/app.ts'
import { testDatabaseUrl } from '../helpers/database.ts'
import { post } from '../helpers/graphql.ts'
import { openSql } from '../helpers/sql.ts'
import { until } from '../helpers/until.ts'

// How many writes may wait, and how many are in flight: two statements of 100 items (`db/batching/batching.ts`,
// `plugins/database/index.ts`).
const WAITING = 10_000
const IN_FLIGHT = 2 * 100

const created = '201'
const overloaded = '503 OVERLOADED, retry after 1'
const taken = '409 EMAIL_TAKEN, retry after undefined'
const cancelled = '503 DATABASE_UNAVAILABLE, retry after 1'

/** Takes a lock for which inserts wait, but not reads. Returns a function that releases it. */
async function lockUsers (sql: Sql): Promise<() => Promise<void>> {
  const [locked, released] = [Promise.withResolvers<void>(), Promise.withResolvers<void>()]
  const ended = sql.begin(async (sql) => {
    await sql`lock table users in exclusive mode`
    locked.resolve()
    await released.promise
  })
  await Promise.race([locked.promise, ended])
  return async () => {
    released.resolve()
    await ended
  }
}

async function create ({ inject, admin }: TestUsher, email: string): Promise<string> {
  const { statusCode, headers, body } = await inject(
    'POST', '/api/users', { headers: admin.headers, payload: { name: 'Somebody', email } }
  )
  return statusCode === 201 ? created : `${statusCode} ${JSON.parse(body).code}, retry after ${headers['retry-after']}`
}

/**
 * Creates a user, and when this waits for the lock, `count` more users at the same time. `answers` collects the
 * results.
 */
async function createMany (usher: TestUsher, sql: Sql, count: number) {
  const answers: string[] = []
  let look = () => {}
  const send = async (_: unknown, index: number) => {
    answers.push(await create(usher, `many-${index}@example.com`))
    look()
  }
  const first = send(undefined, count)
  await until('the first one waits', async () =>
    (await sql`select from pg_locks where relation = 'users'::regclass and not granted`).length > 0)
  const all = Promise.all([first, ...Array.from({ length: count }).map(send)])
  return {
    answers,
    all,
    /** Resolves when `count` requests have got a response. */
    answered: (count: number) =>
      new Promise<void>((resolve) => { look = () => { if (answers.length >= count) resolve() } }),
  }
}

/** Checks after the release of the lock that exactly the acknowledged users exist, and that later requests succeed. */
async function judge (t: Test, usher: TestUsher, sql: Sql, answers: string[]): Promise<void> {
  const { length } = answers.filter((answer) => answer === created)
  t.comment(`${length} of ${answers.length} created`)
  // On a machine that is busy with all these requests, the node may regard the database as unavailable. Statements in
  // flight then get 503, whether or not they are committed.
  const undecided = answers.filter((answer) => answer === cancelled).length
  t.ok(length + undecided > 0, 'some were sent')
  t.strictSame(answers.filter((answer) => ![overloaded, created, cancelled].includes(answer)), [])
  const [{ count }] =
    await sql`select count(*)::int from users where email like 'many-%'` as unknown as [{ count: number }]
  t.ok(count >= length && count <= length + undecided, `${length} acknowledged, ${undecided} undecided, ${count} there`)
  const later = await Promise.all(Array.from({ length: 50 }, (_, index) => create(usher, `later-${index}@example.com`)))
  t.strictSame(new Set(later), new Set([created]))
}

t.test('SPEED 3 if too many writes wait for a locked table, some get 503 at once, and the others succeed later', async (t) => {
  const usher = await createUsher(t)
  const sql = openSql(t, usher)
  const release = await lockUsers(sql)
  const { answers, all, answered } = await createMany(usher, sql, WAITING + IN_FLIGHT + 1300)
  await answered(1300)
  await until(
    'reads succeed', async () => (await usher.inject('GET', `/api/users/${usher.admin.id}`)).statusCode === 200
  )
  await release()
  await all
  await judge(t, usher, sql, answers)
})

t.test('SPEED 3 writes that wait for too long for a locked table get 503, while those in flight continue to wait', async (t) => {
  const usher = await createUsher(t)
  const sql = openSql(t, usher)
  const release = await lockUsers(sql)
  const { answers, all, answered } = await createMany(usher, sql, IN_FLIGHT + 300)
  await answered(300)
  // On a busy machine, the node may regard the database as unavailable.
  t.strictSame(
    answers.filter((answer) => ![overloaded, cancelled].includes(answer)),
    [],
    'before statements in flight are cancelled'
  )
  await release()
  await all
  await judge(t, usher, sql, answers)
})

t.test('SPEED 3 a write that exceeds the time limit of statements is cancelled with 503, and later ones succeed', async (t) => {
  const usher = await createUsher(t, { databaseUrl: `${await testDatabaseUrl()}?statement_timeout=500` })
  const sql = openSql(t, { options: { ...usher.options, databaseUrl: await testDatabaseUrl() } })
  const release = await lockUsers(sql)
  const mutation = { mutation: '{ createPost(input: { title: "Cancelled", content: "" }) { id } }' }
  const [user, { data, errors }] =
    await Promise.all([create(usher, 'cancelled@example.com'), post(usher, mutation, usher.admin)])
  t.equal(user, cancelled)
  t.strictSame(data, null)
  t.strictSame(errors?.map(({ extensions }) => extensions.code), ['DATABASE_UNAVAILABLE'])
  await release()
  // On a busy machine, a write may take longer than the limit without a lock, and may be made although it got 503.
  await until('a user is created', async () => [created, taken].includes(await create(usher, 'later@example.com')))
  t.same(await sql`select count(*)::int from users where email = 'cancelled@example.com'`, [{ count: 0 }])
  const another = { mutation: '{ createPost(input: { title: "Another", content: "" }) { id } }' }
  await until('a post is created', async () => (await post(usher, another, usher.admin)).data)
  t.same(await sql`select count(*)::int from posts where title = 'Cancelled'`, [{ count: 0 }])
})
