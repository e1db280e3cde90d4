import { createHash, randomBytes } from 'node:crypto'
import type { ServerResponse } from 'node:http'
import t from 'tap'
import { createUsher } from '../helpers/app.ts'
import { startFakeS3, type FakeRequest, type FakeS3 } from '../helpers/fake-s3.ts'
import { upload } from '../helpers/uploads.ts'

// Stores and gateways that understand less than AWS make downloads slower, never wrong or absent.

interface Told extends FakeRequest { readonly bytes: Buffer, readonly etag: string, readonly count: number }

/** How a store answers a GET or a HEAD of an object. Undefined is the usual answer. */
type Dialect = (request: Told) => ((response: ServerResponse) => unknown) | undefined

const rangeOf = ({ headers, bytes }: Told): [number, number] | undefined => {
  const [, first, last] = /^bytes=(\d+)-(\d+)$/.exec(headers.range ?? '') ?? []
  return first === undefined ? undefined : [Number(first), Math.min(Number(last), bytes.length - 1)]
}
const hasCondition = ({ headers }: Told) => Object.keys(headers).some((name) => name.startsWith('if-'))
const refuse = (status: number, code: string) => (response: ServerResponse) =>
  response.writeHead(status).end(`<Error><Code>${code}</Code></Error>`)

/** Answers with a part of an object. */
const partial = (
  told: Told, head: (range: [number, number], total: number) => Record<string, string>, body?: (bytes: Buffer) => Buffer
) => {
  const range = rangeOf(told)
  if (!range || told.method === 'HEAD') return undefined
  const part = told.bytes.subarray(range[0], range[1] + 1)
  return (response: ServerResponse) => {
    response.writeHead(206, { etag: told.etag, ...head(range, told.bytes.length) })
    // Without a length, it is sent in chunks.
    response.write(body?.(part) ?? part)
    response.end()
  }
}

const dialects: Readonly<Record<string, Dialect>> = {
  'ranges are ignored': ({ bytes, etag, method }) => (response) => response
    .writeHead(200, { etag, 'content-length': bytes.length }).end(method === 'HEAD' ? undefined : bytes),
  'ranges are ignored, and there is no length': ({ bytes, etag, method }) => (response) => {
    response.writeHead(200, { etag, 'transfer-encoding': 'chunked' })
    response.end(method === 'HEAD' ? undefined : bytes)
  },
  'the end of the connection is the end of the bytes': ({ bytes, etag, method }) => (response) => {
    response.socket!.write(`HTTP/1.1 200 OK\r\nETag: ${etag}\r\nConnection: close\r\n\r\n`)
    response.socket!.end(method === 'HEAD' ? '' : bytes)
  },
  // A body without a length seems complete when it is cut off.
  'the connection ends too early, without a length': ({ bytes, etag, method, count }) => (response) => {
    response.socket!.write(`HTTP/1.1 200 OK\r\nETag: ${etag}\r\nConnection: close\r\n\r\n`)
    response.socket!.end(method === 'HEAD' ? '' : count % 2 === 1 ? bytes.subarray(0, bytes.length / 2) : bytes)
  },
  'a range is 501': (told) => rangeOf(told) && refuse(501, 'NotImplemented'),
  'a range is 416': (told) => rangeOf(told) && refuse(416, 'InvalidRange'),
  'a range is 400': (told) => rangeOf(told) && refuse(400, 'InvalidArgument'),
  'a condition is 501': (told) => hasCondition(told) ? refuse(501, 'NotImplemented') : undefined,
  'a condition is always false': (told) => hasCondition(told) ? refuse(412, 'PreconditionFailed') : undefined,
  'a range has no length': (told) =>
    partial(told, ([first, last], total) => ({ 'content-range': `bytes ${first}-${last}/${total}` })),
  'a range has more bytes than it says': (told) => partial(told,
    ([first, last], total) => ({ 'content-range': `bytes ${first}-${last}/${total}` }),
    (bytes) => Buffer.concat([bytes, Buffer.from('and more')])),
  'a range does not know the total': (told) => partial(told, ([first, last]) => ({ 'content-range': `bytes ${first}-${last}/*` })),
  'a range does not say which it is': (told) => partial(told, () => ({})),
  'a range is another one': (told) => partial(told, ([first, last], total) =>
    ({ 'content-range': `bytes ${first + 1}-${last + 1}/${total}` })),
  'a range is a form': (told) => partial(told, () => ({ 'content-type': 'multipart/byteranges; boundary=x' })),
  'HEAD has no length': ({ etag, method }) => method === 'HEAD'
    ? (response) => response.writeHead(200, { etag, 'transfer-encoding': 'chunked' }).end()
    : undefined,
  'entity tags are weak': ({ bytes, etag, method }) => (response) => response
    .writeHead(200, { etag: `W/${etag}`, 'content-length': bytes.length }).end(method === 'HEAD' ? undefined : bytes),
}

function speak ({ objects, misbehave }: FakeS3, dialect: Dialect): { cut: () => void } {
  let [count, isCut] = [0, false]
  misbehave((request) => {
    const object = objects.get(request.key)
    if (!object || !['GET', 'HEAD'].includes(request.method) || !/files|parts/.test(request.key)) return undefined
    const { bytes } = object
    const etag = `"${createHash('md5').update(bytes).digest('hex')}"`
    if (request.method === 'GET' && isCut) {
      isCut = false
      return (response) => {
        response.writeHead(200, { etag, 'content-length': bytes.length })
          .write(bytes.subarray(0, bytes.length - 10_000), () => response.socket!.destroy())
      }
    }
    const told = { ...request, bytes, etag, count: request.method === 'GET' ? ++count : count }
    return dialect(told) as ReturnType<Parameters<typeof misbehave>[0] & {}>
  })
  return { cut: () => { isCut = true } }
}

t.test('13.3 a store that understands less than AWS makes downloads slower, never wrong or absent', async (t) => {
  const store = await startFakeS3(t)
  const usher = await createUsher(t, { s3: { ...store.options, prefix: 'usher' } })
  const bytes = randomBytes(200_000)
  const { fileUrl, sha256 } = await upload(usher, bytes)
  const { fileUrl: emptyUrl } = await upload(usher, '')
  const get = (url: string, headers: Record<string, string> = {}) => usher.inject('GET', url, { headers })
  const tag = `"${sha256}"`
  const ranges: Record<string, [number, number]> = {
    'bytes=0-9': [0, 10],
    'bytes=1000-2999': [1000, 3000],
    'bytes=150000-': [150_000, 200_000],
    'bytes=-7': [199_993, 200_000],
    'bytes=199999-': [199_999, 200_000],
    'bytes=0-': [0, 200_000],
  }
  for (const [name, dialect] of Object.entries(dialects)) {
    const { cut } = speak(store, dialect)
    const whole = await get(fileUrl)
    t.same([whole.statusCode, whole.headers['content-length'], whole.rawPayload.equals(bytes)], [200, '200000', true], name)
    for (const [range, [start, end]] of Object.entries(ranges)) {
      const part = await get(fileUrl, { range })
      t.same([part.statusCode, part.headers['content-range']], [206, `bytes ${start}-${end - 1}/200000`], `${name}: ${range}`)
      t.ok(part.rawPayload.equals(bytes.subarray(start, end)), `${name}: ${range}`)
    }
    const resumed = await get(fileUrl, { range: 'bytes=100000-', 'if-range': tag })
    t.ok(resumed.statusCode === 206 && resumed.rawPayload.equals(bytes.subarray(100_000)), `${name}: a resumed download`)
    const other = await get(fileUrl, { range: 'bytes=100000-', 'if-range': '"other"' })
    t.ok(other.statusCode === 200 && other.rawPayload.equals(bytes), `${name}: a resumed download of something else`)
    t.equal((await get(fileUrl, { 'if-match': tag })).statusCode, 200, name)
    t.equal((await get(fileUrl, { 'if-match': '"other"' })).statusCode, 412, name)
    t.equal((await get(fileUrl, { 'if-none-match': tag })).statusCode, 304, name)
    t.equal((await get(fileUrl, { range: 'bytes=200000-' })).statusCode, 416, name)
    t.equal((await usher.inject('HEAD', fileUrl)).headers['content-length'], '200000', name)
    const empty = await get(emptyUrl)
    t.same([empty.statusCode, empty.headers['content-length'], empty.body], [200, '0', ''], `${name}: an empty file`)
    cut()
    t.ok((await get(fileUrl)).rawPayload.equals(bytes), `${name}: a connection that is cut`)
  }
})

t.test('13.3 a store without ranges and lengths never passes something else for a file', async (t) => {
  const store = await startFakeS3(t)
  const usher = await createUsher(t, { s3: store.options })
  const bytes = randomBytes(5000)
  const { fileUrl } = await upload(usher, bytes)
  const page = Buffer.alloc(5000, '<p>Please log in')
  await usher.app.listen({ port: 0, host: '127.0.0.1' })
  const { port } = usher.app.server.address() as { port: number }
  const download = async (headers: Record<string, string>) => {
    const response = await fetch(`http://127.0.0.1:${port}${fileUrl}`, { headers })
    return response.status === 503 ? undefined : Buffer.from(await response.arrayBuffer())
  }
  const wrong: Record<string, (response: ServerResponse) => unknown> = {
    'a page': (response) => response.writeHead(200, { 'content-type': 'text/html' }).end(page),
    'a page without a length': (response) => response.writeHead(200, { 'transfer-encoding': 'chunked' }).end(page),
    'a longer page, with a tag and without a length': (response) =>
      response.writeHead(200, { etag: '"x"', 'transfer-encoding': 'chunked' }).end(Buffer.concat([page, page])),
    'a page of this length, with a tag and without a length': (response) =>
      response.writeHead(200, { etag: '"x"', 'transfer-encoding': 'chunked' }).end(page),
    'compressed bytes': (response) =>
      response.writeHead(200, { etag: '"x"', 'content-encoding': 'gzip', 'content-length': '5000' }).end(page),
  }
  for (const [name, answer] of Object.entries(wrong)) {
    store.misbehave(({ method, key }) => method === 'GET' && key.startsWith('files/') ? answer : undefined)
    t.equal(await download({}), undefined, name)
    t.equal(await download({ range: 'bytes=10-19' }), undefined, `${name}, for a range`)
    store.misbehave()
    t.ok((await download({}))!.equals(bytes), name)
  }
})

t.test('13.5 a store that cannot copy joins resumable uploads all the same', async (t) => {
  const store = await startFakeS3(t)
  const usher = await createUsher(t, { s3: store.options })
  store.misbehave(({ headers }) => headers['x-amz-copy-source'] === undefined ? undefined : { status: 501, code: 'NotImplemented' })
  const bytes = randomBytes(3000)
  const created = await usher.inject('POST', '/api/uploads/resumable', {
    headers: { ...usher.admin.headers, 'tus-resumable': '1.0.0', 'upload-length': '3000' },
  })
  t.equal(created.statusCode, 201)
  const ended = await usher.inject('PATCH', new URL(`${created.headers['location']}`, 'http://host').pathname, {
    headers: {
      ...usher.admin.headers, 'tus-resumable': '1.0.0', 'upload-offset': '0', 'content-type': 'application/offset+octet-stream',
    },
    payload: bytes,
  })
  t.equal(ended.statusCode, 200)
  t.ok((await usher.inject('GET', ended.json().fileUrl)).rawPayload.equals(bytes))
  t.same([...store.objects.keys()].filter((key) => key.startsWith('parts/')), [])
})
