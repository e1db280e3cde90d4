import { once } from 'node:events'
import { connect, type AddressInfo } from 'node:net'
import t from 'tap'
import { createUsher } from '../../helpers/app.ts'
import { openSql } from '../../helpers/sql.ts'
import { until } from '../../helpers/until.ts'

t.test('1.10 a waiting write is dropped if its client disconnects, and writes in flight are completed', async (t) => {
  const usher = await createUsher(t)
  const { app, admin } = usher
  const sql = openSql(t, usher)
  const url = await app.listen({ port: 0, host: '127.0.0.1' })
  const { port } = app.server.address() as AddressInfo
  const waitForLock = (count: number) => until(`${count} inserts that wait`, async () => {
    const rows = await sql`select from pg_stat_activity where wait_event_type = 'Lock' and query like ${`%insert into "${usher.options.schema}"."users"%`}`
    return rows.length === count
  })
  const create = (name: string) => fetch(`${url}/api/users`, {
    method: 'POST',
    headers: { ...admin.headers, 'content-type': 'application/json' },
    body: JSON.stringify({ name, email: `${name}@example.com` }),
  })

  const locked = Promise.withResolvers<void>()
  const held = Promise.withResolvers<void>()
  const lock = sql.begin(async (sql) => {
    await sql`lock table users in exclusive mode`
    locked.resolve()
    await held.promise
  })
  await locked.promise
  // Two statements is the most that may be in flight, so the next write waits.
  const first = create('first')
  await waitForLock(1)
  const second = create('second')
  await waitForLock(2)

  const body = JSON.stringify({ name: 'gone', email: 'gone@example.com' })
  const socket = connect(port, '127.0.0.1')
  await once(socket, 'connect')
  const asked = once(app.server, 'request')
  socket.write(
    `POST /api/users HTTP/1.1\r\nhost: x\r\nauthorization: ${admin.headers.authorization}\r\ncontent-type: application/json\r\ncontent-length: ${body.length}\r\n\r\n${body}`
  )
  const [request] = await asked
  await until('the body is read', () => request.complete)
  socket.destroy()
  await until('the node has detected that the client disconnected', () => request.socket.destroyed)
  held.resolve()
  await lock

  t.same([(await first).status, (await second).status], [201, 201])
  t.equal((await create('later')).status, 201)
  t.same(
    (await sql`select name from users where role = 'user' order by id`).map(({ name }) => name),
    ['first', 'second', 'later']
  )
})
