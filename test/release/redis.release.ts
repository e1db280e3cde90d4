import { once, type EventEmitter } from 'node:events'
import redis from 'mqemitter-redis'
import t from 'tap'
import { createUsher } from '../helpers/app.ts'
import { createPost, openSocket } from '../helpers/graphql.ts'
import { findPort } from '../helpers/port.ts'
import { runProgram } from '../helpers/program.ts'

/** Members that the types of mqemitter-redis leave out. */
interface Inner { state: EventEmitter, subConn: Connection, pubConn: Connection }
interface Connection { disconnect (): void }

const POSTS = 'subscription { postCreated { title } }'

t.test('7.7 posts are announced through Redis, and still reach all subscribers while Redis is unavailable', async (t) => {
  const port = await findPort()
  const startRedis = () => runProgram(
    t,
    port,
    ['/usr/bin/redis-server', '--port', String(port), '--bind', '127.0.0.1', '--save', '', '--appendonly', 'no']
  )
  let server = await startRedis()
  const createEmitter = () => {
    const emitter = redis({ host: '127.0.0.1', port })
    const { state, subConn, pubConn } = emitter as typeof emitter & Inner
    // The connections reconnect by themselves, so their errors can be ignored.
    state.on('error', () => {})
    t.teardown(() => { for (const connection of [subConn, pubConn]) connection.disconnect() })
    return emitter
  }
  const usher = await createUsher(t, { emitter: createEmitter() })
  const otherNode = await createUsher(t, { ...usher.options, emitter: createEmitter() })
  const sockets = await Promise.all([usher, otherNode].map(async (node) => {
    const socket = await (await openSocket(t, node)).init()
    socket.start('1', POSTS)
    await socket.settle()
    return socket
  }))
  const isTold = async (title: string) => {
    await createPost(otherNode, otherNode.admin, title)
    for (const socket of sockets) t.match(await socket.next(), { payload: { data: { postCreated: { title } } } })
  }
  for (let round = 0; round < 3; round++) {
    for (let number = 0; number < 5; number++) await isTold(`With Redis, ${number}`)
    server.kill('SIGKILL')
    await once(server, 'close')
    for (let number = 0; number < 2; number++) await isTold(`Without, ${number}`)
    server = await startRedis()
  }
  await isTold('With Redis again')
})
