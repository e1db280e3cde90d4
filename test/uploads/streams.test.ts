import { once } from 'node:events'
import { createHash, randomBytes } from 'node:crypto'
import { mkdir, readdir, rm, writeFile } from 'node:fs/promises'
import { setTimeout as delay } from 'node:timers/promises'
import t from 'tap'
import { createUsher, type TestUsher } from '../helpers/app.ts'
import { testDatabaseUrl } from '../helpers/database.ts'
import { nightly } from '../helpers/nightly.ts'
import { createProxy } from '../helpers/proxy.ts'
import { openSql } from '../helpers/sql.ts'
import {
  chunked, END, fieldPart, filePart, leftovers, nothingLeft, open, post, received, upload,
} from '../helpers/uploads.ts'
import { until } from '../helpers/until.ts'

const MIB = 1024 * 1024
const description = fieldPart('description', 'Something')

const writing = ({ options }: TestUsher) =>
  until('the file is being written', async () => (await readdir(`${options.uploadsDir}/tmp`)).length === 1)

t.test('5.5 a failed upload leaves nothing behind', async (t) => {
  const usher = await createUsher(t)
  const sql = openSql(t, usher)

  await t.test('5.5 if the client disconnects in the middle of the file', async (t) => {
    for (const framing of ['Content-Length: 9000000', 'Transfer-Encoding: chunked']) {
      const socket = await open(t, usher, framing)
      const half = Buffer.concat([description, filePart(Buffer.alloc(100_000)).subarray(0, -50)])
      socket.write(framing.startsWith('T') ? chunked(half) : half)
      await writing(usher)
      socket.destroy()
      await nothingLeft(usher, sql)
    }
  })

  await t.test('5.5 if the client disconnects after the file', async (t) => {
    const socket = await open(t, usher, 'Content-Length: 9000000')
    socket.write(Buffer.concat([filePart('Hello'), description.subarray(0, 20)]))
    await writing(usher)
    socket.resetAndDestroy()
    await nothingLeft(usher, sql)
  })

  await t.test('5.5 if the body ends early and the connection stays open: 400', async (t) => {
    const socket = await open(t, usher, 'Transfer-Encoding: chunked\r\nConnection: close')
    socket.write(Buffer.concat([chunked(filePart(Buffer.alloc(5000)).subarray(0, -50)), Buffer.from('0\r\n\r\n')]))
    t.match(await received(socket), /^HTTP\/1\.1 400 [^]*body is not valid multipart\/form-data/)
    await nothingLeft(usher, sql)
  })

  await t.test('5.5 if the user is deleted meanwhile: 401', async (t) => {
    const user = await usher.createUser()
    const socket = await open(t, { ...usher, admin: user }, 'Transfer-Encoding: chunked\r\nConnection: close')
    socket.write(chunked(filePart('Hello')))
    await writing(usher)
    await usher.inject('DELETE', `/api/users/${user.id}`, { headers: usher.admin.headers })
    socket.write(Buffer.concat([chunked(Buffer.concat([description, END])), Buffer.from('0\r\n\r\n')]))
    t.match(await received(socket), /^HTTP\/1\.1 401 [^]*INVALID_TOKEN/)
    await nothingLeft(usher, sql)
  })

  await t.test('5.5 if the folder is not writable: 507 { error }', async (t) => {
    const { options } = usher
    for (const folder of ['tmp', 'files']) {
      const path = `${options.uploadsDir}/${folder}`
      await rm(path, { recursive: true })
      await writeFile(path, 'not a folder')
      const response = await post(usher, [filePart('Hello'), description])
      t.equal(response.statusCode, 507, folder)
      t.same(response.json(), { error: 'The file cannot be stored now', code: 'STORAGE_FAILED' })
      await rm(path)
      await mkdir(path)
    }
    await nothingLeft(usher, sql)
    await upload(usher, 'works again')
  })
})

t.test('1.10 an upload while the database is unavailable gets 503 and leaves nothing behind', async (t) => {
  const proxy = await createProxy(t, await testDatabaseUrl())
  const usher = await createUsher(t, { databaseUrl: proxy.url, deadlines: {} })
  const socket = await open(t, usher, 'Transfer-Encoding: chunked\r\nConnection: close')
  socket.write(chunked(filePart('Hello')))
  await writing(usher)
  await proxy.refuse()
  await until('the node knows', async () => (await usher.inject('GET', '/health/ready')).statusCode === 503, 20)
  socket.write(Buffer.concat([chunked(Buffer.concat([description, END])), Buffer.from('0\r\n\r\n')]))
  t.match(await received(socket), /^HTTP\/1\.1 503 /)
  await proxy.listen()
  await until(
    'the node is ready again', async () => (await usher.inject('GET', '/health/ready')).statusCode === 200, 20
  )
  await nothingLeft(usher, openSql(t, usher))
})

const limited = await createUsher(t, { uploadMaxBytes: MIB })

t.test('5.3 a file over the limit gets 413 as soon as the limit is exceeded', async (t) => {
  await t.test('5.3 also while the client keeps sending; a Content-Length over the limit gets 413 before the body', async (t) => {
    const starts = [filePart('').subarray(0, -2), fieldPart('other', '').subarray(0, -2), Buffer.from('no form')]
    await Promise.all([...starts.map(sendForEver), announce()])

    async function sendForEver (start: Buffer): Promise<void> {
      const socket = await open(t, limited, 'Transfer-Encoding: chunked')
      const answer = once(socket, 'data')
      // The server finally resets the connection, which stops the client.
      socket.on('error', () => {})
      socket.write(chunked(start))
      let sent = 0
      for (; !socket.destroyed; await delay(10)) {
        socket.write(chunked(Buffer.alloc(MIB / 16)))
        sent += MIB / 16
      }
      t.match(`${await answer}`, /^HTTP\/1\.1 413 [^]*PAYLOAD_TOO_LARGE/)
      t.ok(sent > MIB, 'the other end has closed')
    }

    async function announce (): Promise<void> {
      const socket = await open(t, limited, `Content-Length: ${100 * MIB}`)
      t.match(`${await once(socket, 'data')}`, /^HTTP\/1\.1 413 /)
      await once(socket, 'close')
    }
  })

  await t.test('5.3 a client that sends the body to its end can reuse the connection', async (t) => {
    const socket = await open(t, limited, 'Transfer-Encoding: chunked')
    socket.write(Buffer.concat([chunked(filePart(Buffer.alloc(2 * MIB))), Buffer.from('0\r\n\r\n')]))
    t.match(`${await once(socket, 'data')}`, /^HTTP\/1\.1 413 /)
    socket.write('GET /health/live HTTP/1.1\r\nHost: usher\r\nConnection: close\r\n\r\n')
    t.match(await received(socket), /^HTTP\/1\.1 200 /)
  })

  await nothingLeft(limited, openSql(t, limited))
})

nightly('5.5 a client that stops sending gets 408, and nothing remains', async (t) => {
  const usher = await createUsher(t, { uploadIdleSeconds: 0.2 })
  for (const sent of [Buffer.alloc(0), description, filePart(Buffer.alloc(5000)).subarray(0, -50)]) {
    const socket = await open(t, usher, 'Content-Length: 90000')
    socket.write(sent)
    t.match(await received(socket), /^HTTP\/1\.1 408 [^]*BODY_STALLED/)
  }
  await nothingLeft(usher, openSql(t, usher))
})

t.test('5.4 concurrent uploads are not mixed up', async (t) => {
  const contents = Array.from({ length: 20 }, (_, index) => randomBytes(200_000 + index))
  const uploads = await Promise.all(contents.map((content) => upload(limited, content, 'same.bin')))
  t.equal(new Set(uploads.map(({ id }) => id)).size, 20)
  for (const [index, { fileUrl, sha256, size }] of uploads.entries()) {
    t.equal(size, 200_000 + index)
    t.equal(sha256, createHash('sha256').update(contents[index]!).digest('hex'))
    t.ok((await limited.inject('GET', fileUrl)).rawPayload.equals(contents[index]!))
  }
  t.same(await leftovers(limited, openSql(t, limited)), { tmp: 0, files: 20, rows: 20 })
})

nightly('5.5 if the database stalls while the record is written: 503, and never a record without its file', async (t) => {
  const databaseUrl = await testDatabaseUrl()
  const proxy = await createProxy(t, databaseUrl)
  const usher = await createUsher(t, { databaseUrl: proxy.url, deadlines: {} })
  const sql = openSql(t, { ...usher, options: { ...usher.options, databaseUrl } })
  const release = Promise.withResolvers<void>()
  t.teardown(() => release.resolve())
  // The insert waits for the row of the owner, and its response is lost on the way back.
  const held = Promise.withResolvers<void>()
  const locked = sql.begin(async (transaction) => {
    await transaction`select from users where id = ${usher.admin.id} for update`
    held.resolve()
    await release.promise
  })
  await held.promise
  const answer = post(usher, [filePart('Hello'), description])
  await until('the record waits', async () =>
    (await sql`select from pg_stat_activity where wait_event_type = 'Lock' and query like ${`%insert into "${usher.options.schema}"."uploads"%`}`).length === 1)
  proxy.freeze()
  t.equal((await answer).statusCode, 503)
  release.resolve()
  await locked
  await until('the record is there', async () => (await leftovers(usher, sql)).rows === 1, 20)
  proxy.abandon()
  t.equal((await leftovers(usher, sql)).files, 1)
  const [{ id }] = await sql<[{ id: string }]>`select id from uploads`
  await until('served', async () => (await usher.inject('GET', `/api/uploads/${id}`)).body === 'Hello', 20)
})
