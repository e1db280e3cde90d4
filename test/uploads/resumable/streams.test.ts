import { createHash, randomBytes } from 'node:crypto'
import { once } from 'node:events'
import { readdir } from 'node:fs/promises'
import { connect, type Socket } from 'node:net'
import { join } from 'node:path'
import t, { type Test } from 'tap'
import { Upload, type HttpRequest, type HttpResponse, type UploadOptions } from 'tus-js-client'
import { createUsherClient } from '../../../client/index.ts'
import { createUsher, type TestUsher } from '../../helpers/app.ts'
import { startFakeS3 } from '../../helpers/fake-s3.ts'
import { nightly } from '../../helpers/nightly.ts'
import { until } from '../../helpers/until.ts'
import { END, FORM, filePart } from '../../helpers/uploads.ts'

const MIB = 1024 * 1024
const VERSION = { 'tus-resumable': '1.0.0' }
const usher = await createUsher(t, { uploadMaxBytes: 64 * MIB, uploadIdleSeconds: 30 })
await usher.app.listen({ port: 0, host: '127.0.0.1' })
const other = await createUsher(t, usher.options)
const portOf = ({ app }: TestUsher) => (app.server.address() as { port: number }).port
const endpoint = `http://127.0.0.1:${portOf(usher)}${usher.prefix}/api/uploads/resumable`
const base64 = (bytes: Buffer | string) => Buffer.from(bytes).toString('base64')
const sha256 = (bytes: Buffer) => createHash('sha256').update(bytes).digest('hex')

interface Sent { upload: Upload, last: HttpResponse }

// Uploads by the client of tus, and resolves with its last response.
function send (file: Buffer, by: { token: string }, options: Partial<UploadOptions> = {}): Promise<Sent> {
  return new Promise((resolve, reject) => {
    let last: HttpResponse
    const upload = new Upload(file, {
      endpoint,
      headers: { authorization: `Bearer ${by.token}` },
      metadata: { filename: 'video.bin', filetype: 'video/mp4', visibility: 'private', description: 'A video' },
      retryDelays: [0, 10, 50, 100],
      storeFingerprintForResuming: false,
      onAfterResponse: (_: HttpRequest, response: HttpResponse) => { last = response },
      onError: reject,
      onSuccess: () => resolve({ upload, last }),
      ...options,
    })
    upload.start()
  })
}

async function begin (length: number, by = usher.admin): Promise<string> {
  const { headers, statusCode, body } = await usher.inject('POST', '/api/uploads/resumable', {
    headers: { ...by.headers, ...VERSION, 'upload-length': `${length}` },
  })
  if (statusCode !== 201) throw new Error(body)
  return String(headers.location)
}

async function offsetOf (url: string, by = usher.admin, node = usher): Promise<number> {
  const response = await node.inject('HEAD', url, { headers: { ...by.headers, ...VERSION } })
  return Number(response.headers['upload-offset'])
}

// Sends the head of a PATCH, whose body follows.
function open (t: Test, url: string, offset: number, framing: string, by = usher.admin, node = usher): Socket {
  const socket = connect(portOf(node), '127.0.0.1')
  t.teardown(() => socket.destroy())
  socket.on('error', () => {})
  socket.write(`PATCH ${url} HTTP/1.1\r\nHost: usher\r\nAuthorization: Bearer ${by.token}\r\n` +
    `Tus-Resumable: 1.0.0\r\nUpload-Offset: ${offset}\r\nContent-Type: application/offset+octet-stream\r\n${framing}\r\n\r\n`)
  return socket
}

const answer = async (socket: Socket): Promise<string> => String((await once(socket, 'data'))[0])
const parts = async () => (await readdir(join(usher.options.uploadsDir!, 'parts')).catch(() => [])).length
const arrives = (count: number) => until('a part arrives', async () => await parts() === count)

nightly('13.5 tus-js-client uploads a file in one request, or in chunks, and gets the record', async (t) => {
  const file = randomBytes(20 * MIB)
  for (const options of [{}, { chunkSize: 3 * MIB }, { chunkSize: 3 * MIB, uploadDataDuringCreation: true }]) {
    const { last } = await send(file, usher.admin, options)
    const record = JSON.parse(last.getBody())
    t.match(record, {
      filename: 'video.bin',
      description: 'A video',
      visibility: 'private',
      size: file.length,
      sha256: sha256(file),
      mediaType: 'application/octet-stream',
    })
    const { rawPayload } = await usher.inject('GET', record.fileUrl, { headers: usher.admin.headers })
    t.ok(file.equals(rawPayload))
  }
  t.equal(await parts(), 0, 'no part is left')
})

t.test('13.5 tus-js-client continues an upload that was cut off, on another node, and one whose last response was lost', async (t) => {
  const file = randomBytes(10 * MIB)
  const url = await begin(file.length)
  const socket = open(t, url, 0, `Content-Length: ${file.length}`)
  socket.write(file.subarray(0, MIB), () => socket.end())
  await until('what arrived is kept', async () => await offsetOf(url) > 0)
  const offset = await offsetOf(url)
  t.ok(offset <= MIB, `${offset} bytes`)
  t.equal(await offsetOf(url, usher.admin, other), offset, 'on every node')
  const uploadUrl = `http://127.0.0.1:${portOf(usher)}${url}`
  const { last } = await send(file, usher.admin, { uploadUrl })
  t.equal(JSON.parse(last.getBody()).sha256, sha256(file))
  const again = await send(file, usher.admin, { uploadUrl })
  t.equal(again.last.getStatus(), 200)
  t.match(again.last.getHeader('content-location'), /\/record$/)
})

nightly('13.5 what arrived at a node that stops is kept, and an upload that it cuts off leaves nothing', async (t) => {
  const leaving = await createUsher(t, usher.options)
  await leaving.app.listen({ port: 0, host: '127.0.0.1' })
  const file = randomBytes(MIB)
  const url = await begin(file.length)
  const before = await parts()
  const socket = open(t, url, 0, `Content-Length: ${file.length}`, usher.admin, leaving)
  socket.write(file.subarray(0, 1000))
  await arrives(before + 1)
  await leaving.app.close()
  t.equal(await offsetOf(url), 1000)
  t.equal(await parts(), before + 1)
  await usher.inject('DELETE', url, { headers: { ...usher.admin.headers, ...VERSION } })

  const store = await startFakeS3(t)
  const stored = await createUsher(t, { s3: store.options, uploadMaxBytes: 64 * MIB })
  await stored.app.listen({ port: 0, host: '127.0.0.1' })
  const form = Buffer.concat([filePart(randomBytes(20 * MIB)), END])
  const sending = connect(portOf(stored), '127.0.0.1').on('error', () => {})
  t.teardown(() => sending.destroy())
  sending.write(`POST ${stored.prefix}/api/uploads HTTP/1.1\r\nHost: usher\r\nContent-Type: ${FORM}\r\n` +
    `Authorization: ${stored.admin.headers.authorization}\r\nContent-Length: ${form.length}\r\n\r\n`)
  sending.write(form.subarray(0, 10 * MIB))
  await until('some of it is stored', () => [...store.uploads.values()].some(({ parts }) => parts.size > 0))
  await stored.app.close()
  t.equal(store.uploads.size, 0)
  t.equal(store.objects.size, 1, 'only what says that the database has used the bucket')
})

t.test('13.5 of two clients at one offset the later one continues, and the other gets 423 and adds nothing', async (t) => {
  const url = await begin(12)
  const first = open(t, url, 0, 'Content-Length: 12')
  first.write('aaaa')
  await arrives(1)
  const second = open(t, url, 0, 'Content-Length: 12')
  second.write('bbbb')
  t.match(await answer(first), /^HTTP\/1.1 423 [^]*UPLOAD_TAKEN_OVER/)
  t.equal(await offsetOf(url), 0)
  second.write('bbbbbbbb')
  t.match(await answer(second), /^HTTP\/1.1 200 /)
  const [one, two] = [await begin(2), await begin(2)]
  const patch = (node: TestUsher, url: string, payload: string) => node.inject('PATCH', url, {
    headers: {
      ...usher.admin.headers, ...VERSION, 'upload-offset': '0', 'content-type': 'application/offset+octet-stream',
    },
    payload,
  })
  for (const url of [one, two]) {
    const responses = await Promise.all(['aa', 'bb', 'cc', 'dd'].map((text, index) =>
      patch(index % 2 ? usher : other, url, text)))
    const statuses = responses.map(({ statusCode }) => statusCode)
    t.equal(statuses.filter((status) => status === 200).length, 1, `${statuses}`)
    t.ok(statuses.every((status) => [200, 409, 423].includes(status)), `${statuses}`)
  }
  t.equal(await parts(), 0)
})

t.test('13.5 a request that stops another one on another node wins there as well', async (t) => {
  const url = await begin(6)
  const first = open(t, url, 0, 'Content-Length: 6')
  first.write('aaa')
  await arrives(1)
  const taken = await other.inject('PATCH', url, {
    headers: {
      ...usher.admin.headers, ...VERSION, 'upload-offset': '0', 'content-type': 'application/offset+octet-stream',
    },
    payload: 'bbb',
  })
  t.equal(taken.statusCode, 204)
  first.write('aaa')
  t.match(await answer(first), /^HTTP\/1.1 423 /)
  t.equal(await offsetOf(url), 3)
})

t.test('13.5 a body that exceeds the length gets 413, and nothing of it is kept', async (t) => {
  const url = await begin(4)
  const socket = open(t, url, 0, 'Transfer-Encoding: chunked')
  socket.write('4\r\nabcd\r\n1\r\ne\r\n')
  t.match(await answer(socket), /^HTTP\/1.1 413 /)
  t.equal(await offsetOf(url), 0)
})

t.test('13.5 a body that stalls gets 408, and what arrived is kept', async (t) => {
  const node = await createUsher(t, { ...usher.options, uploadIdleSeconds: 0.2, uploadMinBytesPerSecond: 1 })
  await node.app.listen({ port: 0, host: '127.0.0.1' })
  const url = await begin(9)
  const socket = connect(portOf(node), '127.0.0.1')
  t.teardown(() => socket.destroy())
  socket.write(`PATCH ${url} HTTP/1.1\r\nHost: usher\r\nAuthorization: Bearer ${usher.admin.token}\r\n` +
    'Tus-Resumable: 1.0.0\r\nUpload-Offset: 0\r\nContent-Type: application/offset+octet-stream\r\nContent-Length: 9\r\n\r\nabc')
  const response = await answer(socket)
  t.match(response, /^HTTP\/1.1 408 [^]*BODY_STALLED/)
  t.equal(await offsetOf(url), 3)
})

t.test('13.5 the end of a session, on any node, stops a PATCH, and nothing of it is kept', async (t) => {
  const ends: Record<string, (user: { id: string, headers: object }) => Promise<{ statusCode: number }>> = {
    logout: ({ headers }) => other.inject('POST', '/api/auth/logout', { headers: { ...headers } }),
    disabled: ({ id }) => other.inject('PATCH', `/api/users/${id}`, {
      headers: usher.admin.headers, payload: { disabled: true },
    }),
    deleted: ({ id }) => other.inject('DELETE', `/api/users/${id}`, { headers: usher.admin.headers }),
  }
  for (const [name, end] of Object.entries(ends)) {
    const user = await usher.createUser()
    const before = await parts()
    const url = await begin(9, user)
    const socket = open(t, url, 0, 'Content-Length: 9', user)
    socket.write('abc')
    await arrives(before + 1)
    const response = answer(socket)
    const { statusCode } = await end(user)
    t.equal(Math.floor(statusCode / 100), 2, name)
    t.match(await response, /^HTTP\/1.1 401 /, name)
    await arrives(before)
  }
})

t.test('13.5 a DELETE stops a PATCH, and removes the bytes', async (t) => {
  const before = await parts()
  const url = await begin(9)
  const socket = open(t, url, 0, 'Content-Length: 9')
  socket.write('abc')
  await arrives(before + 1)
  const response = answer(socket)
  const removed = await usher.inject('DELETE', url, { headers: { ...usher.admin.headers, ...VERSION } })
  t.equal(removed.statusCode, 204)
  t.match(await response, /^HTTP\/1.1 404 /)
  await arrives(before)
})

t.test('13.5 a cut-off body with a checksum keeps nothing', async (t) => {
  const url = await begin(9)
  const before = await parts()
  const socket = open(t, url, 0, `Upload-Checksum: sha1 ${base64(Buffer.alloc(20))}\r\nContent-Length: 9`)
  socket.write('abc')
  await arrives(before + 1)
  socket.destroy()
  await arrives(before)
  t.equal(await offsetOf(url), 0)
})

t.test('13.5 with the client, an upload goes on when its token has expired, as docs/client.md says', async (t) => {
  const client = createUsherClient({ baseUrl: endpoint.slice(0, -'/api/uploads/resumable'.length) })
  const { email, password } = await usher.createUser()
  await client.login({ email, password })
  const used: (string | undefined)[] = []
  const file = randomBytes(2 * MIB)
  const { last } = await send(file, { token: 'expired' }, {
    chunkSize: MIB,
    async onBeforeRequest (request) {
      // The first token is rejected, as one that has expired.
      const token = used.length === 1 ? await client.session.renew(used[0]) : await client.session.token()
      used.push(token)
      request.setHeader('Authorization', `Bearer ${used.length === 1 ? 'expired' : token}`)
    },
    onShouldRetry: (error) => [401, 408, 409, 423, 429].includes(error.originalResponse?.getStatus() ?? 0),
  })
  t.match(JSON.parse(last.getBody()), { sha256: sha256(file) })
})

nightly('13.5 in an S3, parts are objects, which one object replaces when the upload is finished', async (t) => {
  const store = await startFakeS3(t)
  const node = await createUsher(t, { s3: { ...store.options, prefix: 'usher' } })
  const headers = { ...node.admin.headers, ...VERSION, 'content-type': 'application/offset+octet-stream' }
  const keys = () => [...store.objects.keys()].filter((key) => /^usher\/(parts|tmp|files)\//.test(key))
  const text = 'Stored in several parts'
  const begin = async (payload: string) => {
    const response = await node.inject('POST', '/api/uploads/resumable', {
      headers: { ...headers, 'upload-length': `${text.length}` }, payload,
    })
    return String(response.headers.location)
  }
  const append = (url: string, offset: number, payload: string) =>
    node.inject('PATCH', url, { headers: { ...headers, 'upload-offset': `${offset}` }, payload })
  const url = await begin(text.slice(0, 4))
  t.equal((await append(url, 4, text.slice(4, 9))).statusCode, 204)
  t.equal(keys().filter((key) => key.includes('/parts/')).length, 2)
  const { fileUrl, id, sha256: hash } = (await append(url, 9, text.slice(9))).json()
  t.equal(hash, sha256(Buffer.from(text)))
  t.same(keys(), [`usher/files/${id}`], 'no part is left')
  t.equal((await node.inject('GET', fileUrl)).body, text)
  const whole = await node.inject('GET', await begin(text), { headers })
  t.equal((await node.inject('GET', whole.json().upload.fileUrl)).body, text, 'of one part as well')
  const given = await begin(text.slice(0, 4))
  t.equal((await node.inject('DELETE', given, { headers: { ...node.admin.headers, ...VERSION } })).statusCode, 204)
  t.equal(keys().length, 2)
  t.equal(store.uploads.size, 0)
})
