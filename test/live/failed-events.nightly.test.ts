import t from 'tap'
import { createUsher, sharedUsher } from '../helpers/app.ts'
import { openEvents } from '../helpers/events.ts'
import { createPost, openSocket, protocols, titles } from '../helpers/graphql.ts'
import { openSql } from '../helpers/sql.ts'
import { until } from '../helpers/until.ts'

const FAILED = 'a GraphQL operation failed'
const failure = { message: 'The server failed', extensions: { code: 'INTERNAL_ERROR' } }

/** A log that throws when it records the first failed operation, as a log on a full disk would. */
function createBrokenLog () {
  let broken = false
  return {
    level: 'error',
    stream: {
      write (line: string) {
        if (broken || !line.includes(FAILED)) return
        broken = true
        throw new Error('the log cannot be written')
      },
    },
  }
}

t.test('7.7 an event that cannot be created ends only the subscriptions that it is for, with an error', async (t) => {
  const usher = await createUsher(t, {}, { logger: createBrokenLog() })
  const sql = openSql(t, usher)
  const query = 'subscription { postCreated { title createdAt } }'
  const sockets = await Promise.all(
    protocols.map(async (protocol) => (await openSocket(t, usher, { protocol })).init())
  )
  for (const socket of sockets) {
    socket.start('failing', query)
    await socket.settle()
  }
  const events = await openEvents(t, usher, { method: 'POST', body: JSON.stringify({ query }) })
  const other = await (await openSocket(t, usher)).init()
  other.start('1', 'subscription { postCreated { title } }')
  await other.settle()

  // JSON has no representation of an infinite date, so this event always fails.
  await sql`insert into posts (id, author_id, title, content, created_at) select gen_random_uuid(), ${usher.admin.id}, 'Infinite', '', 'infinity' from generate_series(1, 3)`
  for (const socket of sockets) {
    t.match(await socket.next(), { type: 'error', id: 'failing', payload: [failure] })
    t.same(await socket.run('{ __typename }'), { data: { __typename: 'Query' } }, 'nothing else comes')
  }
  t.match(await events.answers(1), [{ data: null, errors: [failure] }])
  t.same(await events.next(), { event: 'complete', data: '' })
  t.equal(await events.next(), undefined)

  t.same(await titles(other, 3), ['Infinite', 'Infinite', 'Infinite'])
  for (const socket of sockets) {
    socket.start('failing', query)
    await socket.settle()
  }
  await createPost(usher, usher.admin, 'Finite')
  for (const socket of [...sockets, other]) t.same(await titles(socket, 1), ['Finite'], 'the id is free again')
})

t.test('7.7 an event is tried again if PostgreSQL cancels its statements, before its subscriptions end with an error', async (t) => {
  const usher = await sharedUsher()
  const sql = openSql(t, usher)
  const [failing, other] = [await (await openSocket(t, usher)).init(), await (await openSocket(t, usher)).init()]
  failing.start('failing', 'subscription { postCreated { title author { name } } }')
  other.start('1', 'subscription { postCreated { title } }')
  for (const socket of [failing, other]) await socket.settle()

  // Creates a post and cancels `times` statements of its event, as PostgreSQL does with a statement that takes ten
  // seconds.
  async function createAndCancel (title: string, times: number): Promise<void> {
    const cancelled = new Set<string>()
    await sql.begin(async (lock) => {
      await lock`lock table users in access exclusive mode`
      await sql`insert into posts (id, author_id, title, content) values (gen_random_uuid(), ${usher.admin.id}, ${title}, '')`
      await until(`${times} statements are cancelled`, async () => {
        // A second signal could cancel the next statement of the process instead.
        const rows = await sql`
          select query_start::text, pg_cancel_backend(pid) from pg_stat_activity
          where wait_event_type = 'Lock' and query like ${`%"${usher.options.schema!}"."users"%`} and query_start::text <> all(${[...cancelled]})`
        for (const { query_start: start } of rows) cancelled.add(start)
        return cancelled.size === times
      })
    })
  }

  await createAndCancel('Cancelled twice', 2)
  t.match(await failing.next(), {
    payload: { data: { postCreated: { title: 'Cancelled twice', author: { name: 'Admin' } } } },
  })
  await createAndCancel('Cancelled always', 3)
  t.match(
    await failing.next(), { type: 'error', id: 'failing', payload: [{ extensions: { code: 'DATABASE_UNAVAILABLE' } }] }
  )
  t.same(await titles(other, 2), ['Cancelled twice', 'Cancelled always'])
})

t.test('7.7 a message that cannot be handled closes its socket with 4500', async (t) => {
  const usher = await createUsher(t, {}, { logger: createBrokenLog() })
  const [socket, other] = [await (await openSocket(t, usher)).init(), await (await openSocket(t, usher)).init()]
  socket.start('1', 'subscription { postCreated @skip(if: true) { id } }')
  t.equal(await socket.closed, 4500)
  t.same(await other.run('{ __typename }'), { data: { __typename: 'Query' } })
})
