import { createHash, randomBytes } from 'node:crypto'
import { once } from 'node:events'
import { readdirSync } from 'node:fs'
import { request as sendRequest } from 'node:http'
import { setTimeout as delay } from 'node:timers/promises'
import t, { type Test } from 'tap'
import { closeBackends, openBackends } from '../../plugins/uploads/open-backend.ts'
import { MAX_DOWNLOADS, MAX_OTHERS } from '../../plugins/uploads/s3/requests.ts'
import { PART_BYTES } from '../../plugins/uploads/s3/writing.ts'
import type { UsherOptions } from '../../schema/options/options.ts'
import { readOptions } from '../../schema/options/read-options.ts'
import type { GivenS3 } from '../../schema/options/s3.ts'
import { createUsher, type TestUsher } from '../helpers/app.ts'
import { slow } from '../helpers/deadlines.ts'
import { startFakeS3 } from '../helpers/fake-s3.ts'
import { nightly } from '../helpers/nightly.ts'
import { openSql } from '../helpers/sql.ts'
import { temporaryFolder } from '../helpers/temporary-folder.ts'
import { until } from '../helpers/until.ts'
import { fieldPart, filePart, leftoversInBucket, post, upload } from '../helpers/uploads.ts'

const MIB = 1024 * 1024

async function open (t: Test, more: UsherOptions = {}, of: Partial<UsherOptions['s3']> = {}) {
  const store = await startFakeS3(t)
  const usher = await createUsher(t, { s3: { ...store.options, prefix: 'usher', ...of }, uploadMaxBytes: 64 * MIB, ...more })
  return { store, usher }
}

const get = (usher: TestUsher, url: string, headers: Record<string, string> = {}) =>
  usher.inject('GET', url, { headers })

nightly('13.3 of the downloads from a bucket, no network takes more than a quarter', async (t) => {
  const { store, usher } = await open(t)
  const { fileUrl } = await upload(usher, 'a file')
  const from = async (remoteAddress: string) =>
    (await usher.app.inject({ method: 'GET', url: fileUrl, remoteAddress })).statusCode
  const { promise, resolve } = Promise.withResolvers<void>()
  store.misbehave(({ method }) => method === 'GET' ? promise : undefined)
  const flood = Array.from({ length: MAX_DOWNLOADS / 4 + 1 }, (_, index) => from(`2001:db8:1:${index.toString(16)}::1`))
  t.equal(await Promise.race(flood), 503)
  const other = from('192.0.2.1')
  const reads = () => store.requests.filter((request) => request.startsWith('GET usher/files/')).length
  await until('all others are read', () => reads() === MAX_DOWNLOADS / 4 + 1)
  resolve()
  t.equal(await other, 200, 'another network')
  t.equal((await Promise.all(flood)).filter((status) => status === 200).length, MAX_DOWNLOADS / 4)
  store.misbehave()
  t.equal(await from('2001:db8:1:ffff::1'), 200, 'and this one, when downloads have ended')
})

t.test('13.3 uploads are objects of the bucket, small ones by one request, and are read, listed and deleted', async (t) => {
  const { store, usher } = await open(t)
  store.requests.length = 0
  const small = await upload(usher, 'a small file')
  t.same(store.requests, [`PUT usher/files/${small.id}`])
  t.same(store.objects.get(`usher/files/${small.id}`)!.bytes.toString(), 'a small file')
  t.equal(small.sha256, createHash('sha256').update('a small file').digest('hex'))
  const empty = await upload(usher, '')
  const large = randomBytes(PART_BYTES + 3)
  const stored = await upload(usher, large)
  const { id, fileUrl } = stored
  t.same(store.requests.slice(-4), [`POST usher/files/${id}`, ...Array(2).fill(`PUT usher/files/${id}`), `POST usher/files/${id}`])

  t.equal((await get(usher, small.fileUrl)).body, 'a small file')
  t.equal((await get(usher, empty.fileUrl)).body, '')
  t.ok((await get(usher, fileUrl)).rawPayload.equals(large))
  const range = await get(usher, fileUrl, { range: `bytes=${PART_BYTES - 2}-${PART_BYTES + 2}` })
  t.equal(range.statusCode, 206)
  t.ok(range.rawPayload.equals(large.subarray(PART_BYTES - 2, PART_BYTES + 3)))
  const tag = `"${small.sha256}"`
  t.equal((await get(usher, small.fileUrl)).headers.etag, tag)
  t.equal((await get(usher, small.fileUrl, { 'if-none-match': tag })).statusCode, 304)
  t.equal((await get(usher, small.fileUrl, { 'if-match': '"x"' })).statusCode, 412)
  t.equal((await get(usher, small.fileUrl, { range: 'bytes=99-' })).statusCode, 416)
  t.equal((await usher.inject('HEAD', small.fileUrl)).headers['content-length'], '12')

  for (const { id } of [small, empty, stored]) {
    t.equal((await usher.inject('DELETE', `/api/uploads/${id}`, { headers: usher.admin.headers })).statusCode, 204)
  }
  t.same(leftoversInBucket(store, usher), { objects: 0, uploads: 0, parts: 0 })
})

nightly('13.3 an upload that fails leaves neither a part nor an object', async (t) => {
  const { store, usher } = await open(t, { uploadMaxBytes: PART_BYTES + 200 })
  const large = randomBytes(PART_BYTES + 201)
  t.equal((await post(usher, [filePart(large), fieldPart('description', 'x')])).statusCode, 413)
  t.same(leftoversInBucket(store, usher), { objects: 0, uploads: 0, parts: 0 })
  // The form has no description, which is known when the file is complete.
  t.equal((await post(usher, [filePart(large.subarray(2))])).statusCode, 400)
  t.equal((await post(usher, [filePart('small')])).statusCode, 400)
  t.same(leftoversInBucket(store, usher), { objects: 0, uploads: 0, parts: 0 })

  await usher.app.listen({ port: 0, host: '127.0.0.1' })
  const { port } = usher.app.server.address() as { port: number }
  const request = sendRequest({
    port,
    method: 'POST',
    path: '/api/uploads',
    headers: { ...usher.admin.headers, 'content-type': 'multipart/form-data; boundary=the-boundary' },
  })
  request.on('error', () => {})
  request.write(filePart(large.subarray(0, PART_BYTES + 100)))
  await until('a part is at the store', () => [...store.uploads.values()].some(({ parts }) => parts.size > 0))
  request.destroy()
  await until('nothing is left', () => store.uploads.size === 0)
  t.same(leftoversInBucket(store, usher), { objects: 0, uploads: 0, parts: 0 })
})

nightly('13.3 what fails for the moment is repeated: 503, 500, lost connections and changed bytes', async (t) => {
  const { store, usher } = await open(t, { deadlines: { ...slow, storage: 1000 } })
  const large = randomBytes(PART_BYTES + 5)
  const small = large.subarray(0, 5)
  // How many kinds of request fail. An upload whose beginning has lost its answer lists what was begun, and aborts what
  // it does not know. A completion that has lost its answer asks for the object.
  for (const [fault, content, kinds] of [
    ['cut', large, 6], ['cut after', large, 8], [{ status: 503, code: 'SlowDown' }, small, 3],
    [{ status: 500, code: 'InternalError' }, small, 3], [{ status: 400, code: 'XAmzContentSHA256Mismatch' }, small, 3],
  ] as const) {
    // Each kind of request fails once.
    const failed = new Set<string>()
    store.misbehave(({ method, query }) => {
      const kind = [method, ...[...query.keys()].filter((name) => !name.startsWith('X-Amz'))].join()
      if (failed.has(kind)) return undefined
      failed.add(kind)
      return fault
    })
    const { fileUrl, id } = await upload(usher, content)
    t.ok((await get(usher, fileUrl)).rawPayload.equals(content), JSON.stringify(fault))
    await usher.inject('DELETE', `/api/uploads/${id}`, { headers: usher.admin.headers })
    t.equal(failed.size, kinds, [...failed].join(' '))
    store.misbehave()
  }
  t.same(leftoversInBucket(store, usher), { objects: 0, uploads: 0, parts: 0 })
})

nightly('13.3 a store that does not work gets 507 for uploads and 503 for downloads, in bounded time', async (t) => {
  const lines: string[] = []
  const store = await startFakeS3(t)
  const usher = await createUsher(t, {
    s3: store.options, uploadMaxBytes: 64 * MIB, deadlines: { ...slow, storage: 300, storageConnect: 300 },
  }, { logger: { level: 'warn', stream: { write: (line: string) => { lines.push(line) } } } })
  const { fileUrl } = await upload(usher, 'stored')
  const faults = [
    { status: 503, code: 'SlowDown' }, { status: 403, code: 'ExpiredToken' }, { status: 403, code: 'InvalidAccessKeyId' },
    { status: 404, code: 'NoSuchBucket' }, { status: 403, code: 'RequestTimeTooSkewed' }, 'cut',
    new Promise(() => {}),
  ] as const
  const bytes = randomBytes(PART_BYTES + 1)
  for (const [index, fault] of faults.entries()) {
    store.misbehave(() => fault)
    // One of several parts is the more expensive, and fails in the same way.
    const contents = index % 3 === 0 ? ['x', bytes] : ['x']
    const read = get(usher, fileUrl)
    const written = await Promise.all(
      contents.map((content) => post(usher, [filePart(content), fieldPart('description', 'x')])))
    for (const { statusCode, body } of written) {
      t.equal(statusCode, 507)
      t.match(body, 'STORAGE_FAILED')
    }
    const { statusCode, headers, json } = await read
    t.equal(statusCode, 503)
    t.match(json(), { code: 'STORAGE_UNAVAILABLE' })
    t.ok(headers['retry-after'])
    store.misbehave()
  }
  t.equal((await get(usher, fileUrl)).body, 'stored')
  const { secretAccessKey } = store.options
  for (const line of lines) t.notOk(line.includes(secretAccessKey) || line.includes('Signature'), 'no secret in the log')
  t.ok(lines.some((line) => line.includes('ExpiredToken')), 'the log names the cause')
})

nightly('13.3 a request that has waited for a connection has as much time for its answer as others', async (t) => {
  const connectMs = 2000
  const { store, usher } = await open(t, { deadlines: { ...slow, storageConnect: connectMs } })
  const sent = MAX_OTHERS + 4
  const all = Promise.withResolvers<void>()
  let arrived = 0
  store.misbehave(({ method }) => {
    if (method !== 'PUT') return undefined
    if (++arrived === MAX_OTHERS) all.resolve()
    return arrived > MAX_OTHERS ? delay(1.5 * connectMs) : all.promise
  })
  const responses = await Promise.all(Array.from({ length: sent }, (_, index) =>
    post(usher, [filePart(`file ${index}`), fieldPart('description', 'x')])))
  t.same(new Set(responses.map(({ statusCode }) => statusCode)), new Set([200]))
  t.equal(arrived, sent, 'no request was repeated')
})

nightly('13.3 a download goes on when the connection to the store is cut, and never has other bytes', async (t) => {
  const { store, usher } = await open(t, { deadlines: { ...slow, storage: 500 } })
  const bytes = randomBytes(MIB)
  const { fileUrl, id } = await upload(usher, bytes)
  const etag = `"${createHash('md5').update(bytes).digest('hex')}"`
  const head = (length: number, more = {}) => ({ etag, 'content-length': `${length}`, ...more })
  let cuts = 0
  store.misbehave(({ headers }) => (response) => {
    const [, first, last] = /^bytes=(\d+)-(\d+)$/.exec(headers.range ?? `bytes=0-${MIB - 1}`)!
    const rest = bytes.subarray(Number(first), Number(last) + 1)
    const range = { 'content-range': `bytes ${first}-${last}/${bytes.length}` }
    response.writeHead(206, head(rest.length, range))
    if (++cuts < 5) response.write(rest.subarray(0, 200_000), () => response.socket!.destroy())
    else response.end(rest)
  })
  t.ok((await get(usher, fileUrl)).rawPayload.equals(bytes))
  t.equal(cuts, 5)

  await usher.app.listen({ port: 0, host: '127.0.0.1' })
  const { port } = usher.app.server.address() as { port: number }
  const url = `http://127.0.0.1:${port}${fileUrl}`
  const wrong: Record<string, (response: import('node:http').ServerResponse) => void> = {
    'a shorter object': (response) => response.writeHead(206, head(9, { 'content-range': `bytes 0-8/${MIB}` })).end('a shorter'),
    'a longer object': (response) => response.writeHead(200, head(MIB + 1)).end(Buffer.alloc(MIB + 1)),
    'another range': (response) => response.writeHead(206, head(MIB, { 'content-range': `bytes 1-${MIB}/${MIB + 1}` })).end(bytes),
  }
  for (const [name, fault] of Object.entries(wrong)) {
    store.misbehave(() => fault)
    t.equal((await fetch(url)).status, 503, name)
  }
  store.misbehave(() => (response) => {
    response.writeHead(206, head(MIB, { 'content-range': `bytes 0-${MIB - 1}/${MIB}` })).write(bytes.subarray(0, 100))
  })
  await t.rejects(fetch(url).then((response) => response.text()), 'a store that falls silent ends the download')
  const key = `usher/files/${id}`
  let isCut = false
  store.misbehave(() => {
    if (isCut) return undefined
    isCut = true
    store.objects.set(key, { bytes: randomBytes(MIB), modified: Date.now() })
    return (response) => {
      response.writeHead(206, head(MIB, { 'content-range': `bytes 0-${MIB - 1}/${MIB}` }))
        .write(bytes.subarray(0, 100), () => response.socket!.destroy())
    }
  })
  await t.rejects(fetch(url).then((response) => response.text()), 'the rest of another object is not sent')
  store.misbehave()
  store.objects.delete(key)
  t.equal((await fetch(url)).status, 404)
})

nightly('13.3 deleting an upload and ending its link or session cut its download off, at the store as well', async (t) => {
  const { store, usher } = await open(t)
  await usher.app.listen({ port: 0, host: '127.0.0.1' })
  const { port } = usher.app.server.address() as { port: number }
  const user = await usher.createUser()
  const bytes = randomBytes(32 * MIB)
  const { id } = (await post(usher, [
    filePart(bytes), fieldPart('description', 'x'), fieldPart('visibility', 'private'),
  ], { headers: user.headers })).json()
  const path = `/api/uploads/${id}`
  const link = (await usher.inject('POST', `${path}/links`, { headers: user.headers, payload: { seconds: 600 } })).json()
  const ends: Record<string, [string, object, () => Promise<unknown>]> = {
    'a revoked link': [link.url, {}, () => usher.inject('DELETE', `${path}/links/${link.id}`, { headers: user.headers })],
    'a session that has ended': [path, user.headers, () => usher.inject('POST', '/api/auth/logout', {
      headers: { ...user.headers, cookie: user.cookie },
    })],
    'a deleted upload': [path, usher.admin.headers, () => usher.inject('DELETE', path, { headers: usher.admin.headers })],
  }
  for (const [name, [path, headers, end]] of Object.entries(ends)) {
    const before = await store.connections()
    const sending = sendRequest({ port, path, headers: headers as Record<string, string>, agent: false }).end()
    const [response] = await once(sending, 'response')
    t.equal(response.statusCode, 200, name)
    // Nobody reads, so the rest waits at the store.
    const cut = once(response, 'error')
    const since = performance.now()
    await end()
    response.resume()
    await cut
    t.ok(performance.now() - since < 5000, name)
    await until('the connection to the store is closed', async () => await store.connections() <= before)
  }
})

nightly('13.3 S3_REDIRECT_SECONDS redirects a permitted download to an address that works for seconds', async (t) => {
  const { store, usher } = await open(t, {}, { redirectSeconds: 30 })
  const { fileUrl, id, sha256 } = await upload(usher, '<b>hello</b>', 'ä b.html')
  const response = await get(usher, fileUrl)
  t.equal(response.statusCode, 307)
  t.equal(response.headers['cache-control'], 'private, no-store')
  const address = new URL(`${response.headers.location}`)
  t.equal(address.searchParams.get('X-Amz-Expires'), '30')
  t.notOk(address.href.includes(store.options.secretAccessKey))
  const served = await fetch(address)
  t.equal(await served.text(), '<b>hello</b>')
  t.match(served.headers.get('content-disposition'), 'inline; filename="? b.html"; filename*=UTF-8\'\'%C3%A4%20b.html')
  t.equal(served.headers.get('content-type'), 'text/plain; charset=utf-8')
  store.clock = 31_000
  t.equal((await fetch(address)).status, 403)
  store.clock = 0

  t.equal((await usher.inject('HEAD', fileUrl)).statusCode, 200)
  t.equal((await get(usher, fileUrl, { 'if-none-match': `"${sha256}"` })).statusCode, 304)
  await usher.inject('PATCH', `/api/uploads/${id}`, {
    headers: { ...usher.admin.headers, 'content-type': 'application/merge-patch+json' }, payload: '{"visibility":"private"}',
  })
  t.equal((await get(usher, fileUrl)).statusCode, 404)
  t.equal((await get(usher, fileUrl, usher.admin.headers)).statusCode, 307)
  const { fileUrl: empty } = await upload(usher, '')
  t.equal((await get(usher, empty)).statusCode, 200)
})

t.test('13.3 a start fails with one sentence that names the option', async (t) => {
  const store = await startFakeS3(t)
  const deadlines = { ...slow, storage: 300, storageConnect: 300 }
  // What a start does first with a backend.
  const start = async (of: Partial<UsherOptions['s3']>, uploadsDir = temporaryFolder()) => {
    const s3 = { ...store.options, ...of } as GivenS3
    const backends = await openBackends(readOptions({ s3, uploadsDir, deadlines, databaseUrl: 'postgres://localhost/x' }))
    await backends.get('s3')!.claim('database').finally(() => closeBackends(backends))
  }
  await t.rejects(createUsher(t, { s3: { ...store.options, bucket: 'nowhere' } }), {
    message: /^usher: s3\.bucket nowhere does not exist/,
  })
  await t.rejects(start({ bucket: 'nowhere' }), { message: /^usher: s3\.bucket nowhere does not exist at 127.0.0.1:\d+: create it/ })
  await t.rejects(start({ accessKeyId: 'NOBODY' }), { message: /^usher: s3\.accessKeyId is not known/ })
  await t.rejects(start({ secretAccessKey: 'a-wrong-one' }), { message: /^usher: s3\.secretAccessKey is not the secret of s3\.accessKeyId/ })
  await t.rejects(start({ endpoint: 'http://127.0.0.1:9' }), { message: /^usher: s3\.endpoint 127.0.0.1:9 cannot be reached \(ECONNREFUSED\)/ })
  store.clock = 3_600_000
  await t.rejects(start({}), { message: /^usher: s3\.endpoint .* rejects the clock of this machine, 3\d\d\d seconds behind: set the clock$/ })
  store.clock = 0
  const answers: [number, string, string | undefined, RegExp][] = [
    [403, 'ExpiredToken', undefined, /^usher: s3\.accessKeyId has expired/],
    [403, 'AccessDenied', undefined, /^usher: s3\.accessKeyId may not use the bucket photos/],
    [400, 'AuthorizationHeaderMalformed', '<Region>eu-west-3</Region>', /^usher: s3\.region us-east-1 .*: use eu-west-3$/],
    [301, 'PermanentRedirect', undefined, /^usher: s3\.region/],
    [503, 'SlowDown', undefined, /^usher: s3\.endpoint .* cannot be used \(503 SlowDown\)/],
  ]
  for (const [status, code, more, message] of answers) {
    store.misbehave(() => ({ status, code, ...more !== undefined && { more } }))
    await t.rejects(start({}), { message })
  }
  store.misbehave(() => new Promise(() => {}))
  await t.rejects(start({}), { message: /^usher: s3\.endpoint .* cannot be reached \(ETIMEDOUT\)/ })
  store.misbehave()
  store.ignoresChecksums = true
  await t.rejects(start({}), { message: /^usher: s3\.endpoint .* stores bytes that differ from their signed checksum/ })
  store.ignoresChecksums = false
  await t.rejects(start({}, '/dev/null/x'), { message: /^usher: uploadsDir cannot be used/ })
  t.notOk([...store.objects.keys()].some((key) => key.endsWith('.check')))
})

nightly('13.3 a sweep aborts the uploads of nodes that were killed, and spares those that go on', async (t) => {
  const { store, usher } = await open(t)
  const HOUR = 3_600_000
  const begin = (hours: number, lastPart?: number) => {
    const upload = { key: `usher/files/${crypto.randomUUID()}`, begun: Date.now() - hours * HOUR, parts: new Map() }
    if (lastPart !== undefined) upload.parts.set(1, { bytes: Buffer.alloc(1), modified: Date.now() - lastPart * HOUR })
    store.uploads.set(crypto.randomUUID(), upload)
    return upload
  }
  const kept = [begin(1), begin(30, 2)]
  for (let count = 0; count < 120; count++) begin(4, 4)
  begin(5)
  await usher.app.close()
  const next = await createUsher(t, usher.options)
  await until('the old ones are gone', () => store.uploads.size === kept.length)
  t.same([...store.uploads.values()], kept)
  const stray = `usher/files/${crypto.randomUUID()}`
  store.objects.set(stray, { bytes: Buffer.from('x'), modified: Date.now() - 2 * HOUR })
  await next.app.close()
  const lines: string[] = []
  await createUsher(t, usher.options, { logger: { level: 'warn', stream: { write: (line: string) => { lines.push(line) } } } })
  await until('the stray object is reported', () => lines.length)
  t.match(JSON.parse(lines[0]!), { folder: 's3://photos/usher/files/', files: 1, bytes: 1 })
  t.ok(store.objects.has(stray))
})

t.test('13.3 metrics count the requests to the store and those that have failed', async (t) => {
  const { store, usher } = await open(t)
  let isFirst = true
  store.misbehave(({ method }) => {
    if (method !== 'PUT' || !isFirst) return undefined
    isFirst = false
    return { status: 503, code: 'SlowDown' }
  })
  const valueOf = async (name: string, operation: string) => {
    const metrics = await usher.app.usher.metrics()
    const metric = metrics.find((metric) => metric.name === name)!
    return metric.samples.find(({ labels }) => labels['operation'] === operation) as { value: number }
  }
  const [before, failed] = [await valueOf('usher_storage_requests_total', 'put'), await valueOf('usher_storage_request_failures_total', 'put')]
  await upload(usher, 'x')
  t.equal((await valueOf('usher_storage_requests_total', 'put')).value, before.value + 2)
  t.equal((await valueOf('usher_storage_request_failures_total', 'put')).value, failed.value + 1)
})

nightly('13.3 with a folder and an S3, bytes of either are read and deleted, and uploadsTo says where new ones go', async (t) => {
  const store = await startFakeS3(t)
  const before = await createUsher(t)
  const old = await upload(before, 'in the folder')
  const { schema, uploadsDir } = before.options
  const shared = { schema: schema!, uploadsDir: uploadsDir!, s3: { ...store.options, redirectSeconds: 9 } }
  const [toFolder, toS3] = [await createUsher(t, { ...shared, uploadsTo: 'folder' }), await createUsher(t, shared)]
  const [first, second] = [await upload(toFolder, 'also in the folder'), await upload(toS3, 'in the bucket')]
  t.same([...store.objects.keys()].filter((key) => key.startsWith('files/')), [`files/${second.id}`])
  for (const [{ fileUrl }, body] of [[old, 'in the folder'], [first, 'also in the folder']] as const) {
    for (const usher of [toFolder, toS3]) t.equal((await get(usher, fileUrl)).body, body)
  }
  t.equal((await get(toFolder, second.fileUrl)).body, 'in the bucket')
  t.equal((await get(toS3, second.fileUrl)).statusCode, 307)
  for (const { id } of [old, second]) {
    t.equal((await toS3.inject('DELETE', `/api/uploads/${id}`, { headers: toS3.admin.headers })).statusCode, 204)
  }
  t.same(readdirSync(`${shared.uploadsDir}/files`), [first.id])
  t.notOk(store.objects.has(`files/${second.id}`))
  const [{ count }] = await openSql(t, before)<[{ count: number }]>`select count(*)::int from uploads`
  t.equal(count, 1)
  await t.rejects(createUsher(t, { uploadsTo: 's3' }), { message: 'usher: uploadsTo s3 needs the option s3' })
})
