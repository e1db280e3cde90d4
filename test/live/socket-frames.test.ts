import { once } from 'node:events'
import t from 'tap'
import { createUsher, sharedUsher } from '../helpers/app.ts'
import { frame, upgrade } from '../helpers/frames.ts'
import { hostOf, openSocket, protocols } from '../helpers/graphql.ts'
import { nightly } from '../helpers/nightly.ts'

const [TEXT, PING, PONG, CLOSE] = [0x81, 0x89, 0x8a, 0x88]

const malformed: Record<string, Buffer> = {
  'an unmasked frame': Buffer.from([TEXT, 1, 0x41]),
  'a reserved bit': frame(TEXT | 0x40, 'x'),
  'a compressed frame': frame(0xc1, 'x'),
  'an unknown opcode': frame(0x83, 'x'),
  'a continuation of nothing': frame(0x80, 'x'),
  'a message within a message': Buffer.concat([frame(0x01, 'x'), frame(TEXT, 'x')]),
  'text that is not UTF-8': frame(TEXT, Buffer.from([0xff, 0xfe])),
  'a ping in fragments': frame(0x09, 'x'),
  'a ping of 126 bytes': frame(PING, 'x'.repeat(126)),
  'a length beyond 2^53': Buffer.from([TEXT, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff]),
  'a message in a thousand fragments': Buffer.concat([frame(0x01, 'x'), ...Array<Buffer>(1000).fill(frame(0x00, 'x'))]),
  'a close frame of one byte': frame(CLOSE, 'x'),
  'a close frame with an invalid code': frame(CLOSE, Buffer.from([0x03, 0xed])),
  'a close frame with a reason that is not UTF-8': frame(CLOSE, Buffer.from([0x03, 0xe8, 0xff])),
}

const usher = await sharedUsher()

t.test('1.13 malformed frames close their socket with either subprotocol, and affect no other', async (t) => {
  const other = await (await openSocket(t, usher)).init()
  for (const protocol of ['', 'other', ...protocols]) {
    for (const [what, bytes] of Object.entries(malformed)) {
      const together = await upgrade(t, await hostOf(usher), { protocol, rest: bytes })
      t.match(String(await together.closed), /^HTTP\/1\.1 101 /, `${protocol}: ${what}, in the same segment`)
      const apart = await upgrade(t, await hostOf(usher), { protocol })
      await once(apart.socket, 'data')
      for (const byte of bytes.subarray(0, 20)) apart.socket.write(Buffer.from([byte]))
      apart.socket.end(bytes.subarray(20))
      await apart.closed
    }
  }
  t.same(await other.run('{ __typename }'), { data: { __typename: 'Query' } })
})

t.test('7.7 a socket without an acceptable subprotocol is closed with 4406, even if it keeps sending', async (t) => {
  for (const protocol of ['', 'other']) {
    const rest = Buffer.concat([
      frame(PING, 'x'), frame(PONG), frame(TEXT, '{"type":"connection_init"}'), frame(TEXT, '{"type":"ping"}'),
    ])
    const { socket, closed } = await upgrade(t, await hostOf(usher), { protocol, rest })
    // The server sends nothing but the close frame. 0x1136 is 4406.
    await once(socket, 'data')
    socket.write(frame(CLOSE, Buffer.from([0x11, 0x36])))
    const answer = await closed
    t.same(answer.subarray(answer.indexOf('\r\n\r\n') + 4), Buffer.from(
      '\x88\x1c\x11\x36Subprotocol not acceptable', 'latin1'
    ))
  }
})

t.test('7.7 a client that does not respond to the close frame is disconnected', async (t) => {
  const { closed } = await upgrade(t, await hostOf(usher))
  t.match(String(await closed), /^HTTP\/1\.1 101 /)
})

nightly('1.13 a client that sends but does not read is disconnected, whatever the responses are', async (t) => {
  // Small responses first exceed the limit of unread bytes of all connections together. Reaching the limit of one
  // socket takes long.
  const usher = await createUsher(t, { live: { messages: { burst: 1_000_000 } } })
  const small = await createUsher(
    t, { ...usher.options, live: { messages: { burst: 1_000_000 }, unreadBytes: 65_536 } }
  )
  // Each operation has a different id, because an id that is in use closes the socket.
  let operations = 0
  const subscribe = (query: string) =>
    frame(TEXT, JSON.stringify({ type: 'subscribe', id: `${operations++}${'x'.repeat(10_000)}`, payload: { query } }))
  const sent: Record<string, () => Buffer> = {
    'ping frames': () => frame(PING, 'x'.repeat(125)),
    'ping messages': () => frame(TEXT, '{"type":"ping"}'),
    errors: () => subscribe('{'),
    results: () => subscribe('{ __typename }'),
  }
  for (const [what, message] of Object.entries(sent)) {
    const init = frame(TEXT, '{"type":"connection_init"}')
    const { socket } = await upgrade(
      t, await hostOf(what.startsWith('ping') ? small : usher), { protocol: 'graphql-transport-ws', rest: init }
    )
    await once(socket, 'data')
    socket.pause()
    const closed = Promise.withResolvers<void>()
    socket.once('error', () => closed.resolve())
    const perBatch = Math.ceil(65_536 / message().length)
    let batches = 0
    const send = () => {
      if (batches++ === 2000) return closed.reject(new Error(`${what}: ${batches} batches were taken`))
      socket.write(
        Buffer.concat(Array.from({ length: perBatch }, message)), (error) => error ? closed.resolve() : send()
      )
    }
    send()
    await closed.promise
    t.ok(socket.destroyed || socket.errored, what)
  }
})

nightly('1.13 a socket that sends too many messages is slowed down', async (t) => {
  const usher = await createUsher(t, { live: { messages: { burst: 5, perMinute: 6000 } } })
  const socket = await (await openSocket(t, usher)).init()
  for (let round = 0; round < 20; round++) socket.send({ type: 'ping' })
  for (let round = 0; round < 20; round++) t.same(await socket.next(), { type: 'pong' })
  t.same(await socket.run('{ __typename }'), { data: { __typename: 'Query' } }, 'it goes on')

  const slow = await createUsher(
    t, { ...usher.options, live: { messages: { burst: 5, perMinute: 0.01 } }, pingSeconds: 0.05 }
  )
  const [stopped, quiet] = [await (await openSocket(t, slow)).init(), await openSocket(t, slow)]
  for (let round = 0; round < 5; round++) stopped.send({ type: 'ping' })
  for (let round = 0; round < 5; round++) await stopped.next()
  stopped.send({ type: 'ping' })
  // The other socket is not closed for missing pongs while its messages are not read.
  for (let round = 0; round < 4; round++) await once(quiet.socket, 'ping')
  await slow.app.close()
  t.equal(await stopped.closed, 1001)
})

t.test('1.13 a socket that sends far too many messages or control frames is closed with 1008', async (t) => {
  const usher = await createUsher(t, { live: { messages: { burst: 5, perMinute: 60 } } })
  for (const bytes of [frame(TEXT, '{"type":"ping"}'), frame(PING), frame(PONG)]) {
    const { closed } = await upgrade(
      t, await hostOf(usher), { protocol: 'graphql-transport-ws', rest: Buffer.concat(Array<Buffer>(30).fill(bytes)) }
    )
    // 0x03f0 is 1008.
    t.ok((await closed).includes(Buffer.from('\x03\xf0Too many messages', 'latin1')))
  }
})
