import { once } from 'node:events'
import type { IncomingMessage } from 'node:http'
import t from 'tap'
import { createToResultKey } from '../../schema/http/idempotency.ts'
import { createUsher, type TestUsher } from '../helpers/app.ts'
import { slow } from '../helpers/deadlines.ts'
import { createTwo, shareOne } from '../helpers/idempotency.ts'
import { nightly } from '../helpers/nightly.ts'
import { openSql } from '../helpers/sql.ts'
import { END, fieldPart, filePart, leftovers, open, post, received } from '../helpers/uploads.ts'
import { until } from '../helpers/until.ts'

const send = (
  usher: TestUsher, key: string, { content = 'Hello', description = 'A greeting', filename = 'a.txt' } = {}
) =>
  post(
    usher,
    [filePart(content, filename), fieldPart('description', description)],
    { headers: { ...usher.admin.headers, 'idempotency-key': key } }
  )

t.test('10.4 a repeated upload returns the first one and leaves no file', async (t) => {
  const [one, other] = await createTwo(t)
  const sql = openSql(t, one)
  const first = await send(one, 'key')
  for (const usher of [one, other]) {
    const again = await send(usher, 'key')
    t.same(
      [again.statusCode, again.body, again.headers['idempotency-replayed']], [first.statusCode, first.body, 'true']
    )
  }
  for (const different of [{ content: 'Bye' }, { description: 'Other' }, { filename: 'b.txt' }]) {
    t.match((await send(one, 'key', different)).json(), { code: 'IDEMPOTENCY_KEY_REUSED' })
  }
  t.same(await leftovers(one, sql), { tmp: 0, files: 1, rows: 1 })
  t.equal((await one.inject('GET', first.json().fileUrl)).body, 'Hello')
  await one.app.usher.uploads.delete(first.json().id)
  const gone = await send(one, 'key')
  t.match([gone.statusCode, gone.json()], [410, { code: 'GONE' }])
})

nightly('10.4 concurrent uploads with one key on two nodes store one file', async (t) => {
  const [one, other] = await createTwo(t)
  const sql = openSql(t, one)
  // On a busy machine, storing a file may take longer than a repeat waits.
  const persist = async (usher: TestUsher) => {
    for (;;) {
      const response = await send(usher, 'key')
      if (response.statusCode !== 409) return response
      t.match(response.json(), { code: 'IDEMPOTENCY_KEY_IN_USE' })
    }
  }
  const responses = await Promise.all(Array.from({ length: 12 }, (_, index) => persist(index % 2 ? one : other)))
  const { body } = responses.find(({ headers }) => headers['idempotency-replayed'] === undefined)!
  for (const response of responses) t.same([response.statusCode, response.body], [200, body])
  t.equal(responses.filter(({ headers }) => headers['idempotency-replayed'] === undefined).length, 1)
  t.same(await leftovers(one, sql), { tmp: 0, files: 1, rows: 1 })
})

nightly('10.4 while an upload is in progress, a repeat returns 409 before its body is read', async (t) => {
  const usher = await shareOne({ deadlines: { ...slow, idempotency: 200 } })
  const sql = openSql(t, usher)
  const body = Buffer.concat([filePart('Hello'), fieldPart('description', 'A greeting'), END])
  const first = await open(t, usher, `Idempotency-Key: key\r\nContent-Length: ${body.length}\r\nConnection: close`)
  const answer = received(first)
  first.write(body.subarray(0, -END.length))
  await until('the first upload has the key', async () => (await leftovers(usher, sql)).tmp > 0)
  // It never sends its body.
  const repeat = await open(t, usher, `Idempotency-Key: key\r\nContent-Length: ${body.length}`)
  const [response] = await once(repeat, 'data') as [Buffer]
  t.match(String(response), /^HTTP\/1\.1 409 [^]*retry-after: 1\r\n[^]*IDEMPOTENCY_KEY_IN_USE/i)
  first.write(END)
  t.match(await answer, /^HTTP\/1\.1 200 /)
  const again = await send(usher, 'key', { filename: 'notes.txt' })
  t.equal(again.headers['idempotency-replayed'], 'true')
})

t.test('10.4 an upload whose client disconnects before its body is read frees its key at once', async (t) => {
  const usher = await createUsher(t, { uploadIdleSeconds: 3600 })
  await usher.app.listen({ port: 0, host: '127.0.0.1' })
  const arrived = once(usher.app.server, 'request') as Promise<[IncomingMessage]>
  // What Node.js does if the connection is reset.
  usher.app.server.once('request', (request: IncomingMessage) => request.destroy())
  await open(t, usher, 'Idempotency-Key: key\r\nContent-Length: 1000')
  await arrived
  await until('a repeat has the key', async () => (await send(usher, 'key')).statusCode === 200)
})

t.test('10.4 an upload whose key another node has taken is stored if that one fails, and removed if it takes too long', async (t) => {
  let tries = 0
  const usher = await createUsher(
    t, { deadlines: { ...slow, idempotency: 1000 }, hooks: { beforeUploadKeep: () => { tries++ } } }
  )
  const sql = openSql(t, usher)
  const { key } = createToResultKey(undefined)({ actorId: usher.admin.id, key: 'key', operation: '', content: null })
  const { response } = await sql.begin(async (otherNode) => {
    await otherNode`select pg_advisory_xact_lock(uuid_hash_extended(${key}::uuid, 0))`
    t.match((await send(usher, 'key')).json(), { code: 'IDEMPOTENCY_KEY_IN_USE' })
    t.same(await leftovers(usher, sql), { tmp: 0, files: 0, rows: 0 })
    tries = 0
    const response = send(usher, 'key')
    await until('it was tried once, and is tried again', () => tries === 2)
    return { response }
  })
  // On a busy machine, the other node takes too long.
  const { statusCode } = await response
  t.equal(statusCode === 409 ? (await send(usher, 'key')).statusCode : statusCode, 200)
  t.same(await leftovers(usher, sql), { tmp: 0, files: 1, rows: 1 })
})

t.test('10.4 a rejected upload is not stored under its key', async (t) => {
  const usher = await shareOne()
  t.equal((await send(usher, 'key', { description: 'x'.repeat(2001) })).statusCode, 400)
  t.match((await send(usher, 'key')).headers, { 'idempotency-replayed': undefined })
  t.equal((await send(usher, 'a b')).statusCode, 400)
})
