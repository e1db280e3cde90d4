import t from 'tap'
import { createUsher } from '../../helpers/app.ts'
import { openEvents } from '../../helpers/events.ts'
import { createPost, openSocket, protocols, titles } from '../../helpers/graphql.ts'
import { openSql } from '../../helpers/sql.ts'

const FAILED = 'a GraphQL operation failed'
const failure = { message: 'The server failed', extensions: { code: 'INTERNAL_ERROR' } }

/** A log whose first line about a failed operation cannot be written, as on a full disk. */
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

t.test('7.7 an event that cannot be made ends the subscriptions that it is for, with an error, and no others', async (t) => {
  const usher = await createUsher(t, {}, { logger: createBrokenLog() })
  const sql = openSql(t, usher)
  const query = 'subscription { postCreated { title createdAt } }'
  const sockets = await Promise.all(protocols.map(async (protocol) => (await openSocket(t, usher, { protocol })).init()))
  for (const socket of sockets) {
    socket.start('failing', query)
    await socket.settle()
  }
  const events = await openEvents(t, usher, { method: 'POST', body: JSON.stringify({ query }) })
  const other = await (await openSocket(t, usher)).init()
  other.start('1', 'subscription { postCreated { title } }')
  await other.settle()

  // No JSON date is infinite.
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

t.test('7.7 a message that cannot be handled closes its socket with 4500', async (t) => {
  const usher = await createUsher(t, {}, { logger: createBrokenLog() })
  const [socket, other] = [await (await openSocket(t, usher)).init(), await (await openSocket(t, usher)).init()]
  socket.start('1', 'subscription { postCreated @skip(if: true) { id } }')
  t.equal(await socket.closed, 4500)
  t.same(await other.run('{ __typename }'), { data: { __typename: 'Query' } })
})
