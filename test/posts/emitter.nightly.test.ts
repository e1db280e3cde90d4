import { once } from 'node:events'
import { PassThrough } from 'node:stream'
import mqemitter from 'mqemitter'
import t from 'tap'
import { createUsher } from '../helpers/app.ts'
import { createPost, openSocket, titles } from '../helpers/graphql.ts'
import { openSql } from '../helpers/sql.ts'
import { until } from '../helpers/until.ts'

const POSTS = 'subscription { postCreated { title } }'

t.test('7.7 with an emitter, nodes announce posts through it and not through the database', async (t) => {
  const emitter = mqemitter()
  const usher = await createUsher(t, { emitter })
  const otherNode = await createUsher(t, { ...usher.options, emitter })
  const sql = openSql(t, usher)
  const notified: string[] = []
  await sql.listen(`${usher.options.schema}_post_created`, (payload) => { notified.push(payload) })
  const sockets = await Promise.all([usher, otherNode].map(async (node) => {
    const socket = await (await openSocket(t, node)).init()
    socket.start('1', POSTS)
    await socket.settle()
    return socket
  }))
  const topic = `${usher.options.schema}_post_created`
  let announced = 0
  emitter.on(topic, (_, done) => {
    announced++
    done()
  })
  for (const node of [usher, otherNode]) {
    await createPost(node, node.admin, 'By the emitter')
    for (const socket of sockets) t.same(await titles(socket, 1), ['By the emitter'])
  }
  t.equal(announced, 2)
  t.same(notified, [])
  // The database sends the notification for a post that is created without a node.
  await sql`insert into posts (id, author_id, title, content) values (gen_random_uuid(), ${usher.admin.id}, 'By hand', '')`
  for (const socket of sockets) t.same(await titles(socket, 1), ['By hand'])
  // The test's own connection receives the notification independently of the nodes.
  await until('the database has notified', () => notified.length > 0)
  t.same(notified, [''])
})

t.test('7.7 posts whose announcement an emitter loses are found soon, and its failures are logged', async (t) => {
  const lines = new PassThrough()
  const reliable = mqemitter()
  const emitter = {
    on () {}, removeListener () {}, emit: (_: object, done?: (error: Error) => void) => done?.(new Error('away')),
  }
  const writer = await createUsher(t, { emitter }, { logger: { stream: lines, level: 'warn' } })
  const usher = await createUsher(t, { ...writer.options, emitter: reliable })
  const socket = await (await openSocket(t, usher)).init()
  socket.start('1', POSTS)
  await socket.settle()
  await createPost(writer, writer.admin, 'Found')
  const [line] = await once(lines, 'data')
  t.match(
    JSON.parse(line), { level: 40, msg: 'New posts could not be announced to other nodes', err: { message: 'away' } }
  )
  t.same(await titles(socket, 1), ['Found'])
  await createPost(writer, writer.admin, 'And found')
  t.same(await titles(socket, 1), ['And found'])
})

t.test('9 when Usher closes, it leaves no listener in the host\'s emitter', async (t) => {
  const listeners = new Set<unknown>()
  const emitter = {
    on: (_: string, listener: unknown) => listeners.add(listener),
    removeListener: (_: string, listener: unknown) => listeners.delete(listener),
    emit () {},
  }
  const { app } = await createUsher(t, { emitter })
  t.equal(listeners.size, 1)
  await app.close()
  t.equal(listeners.size, 0)
})
