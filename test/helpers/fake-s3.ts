import { createHash, randomUUID } from 'node:crypto'
import { once } from 'node:events'
import { createServer, ServerResponse, type IncomingMessage } from 'node:http'
import type { AddressInfo } from 'node:net'
import { buffer } from 'node:stream/consumers'
import type { Test } from 'tap'
import { presign, signRequest } from '../../plugins/uploads/s3/signature.ts'
import type { GivenS3 } from '../../schema/options/s3.ts'

const CREDENTIALS = { accessKeyId: 'USHERKEY', secretAccessKey: 'usher/secret+0123456789', region: 'us-east-1' }
const BUCKET = 'photos'
const SKEW_MS = 900_000

interface StoredObject { bytes: Buffer, modified: number }
interface StoredUpload { key: string, begun: number, parts: Map<number, StoredObject> }

/** A request, as a fault sees it. */
export interface FakeRequest { method: string, key: string, query: URLSearchParams, headers: IncomingMessage['headers'] }

/**
 * What the store does in place of its answer: an error, the end of the connection before or after it has done what was
 * asked, silence until the promise resolves, or an answer of its own, before or after it has done what was asked.
 */
export type Fault =
  | { status: number, code: string, more?: string }
  | 'cut'
  | 'cut after'
  | Promise<unknown>
  | ((response: ServerResponse) => void)
  | { answer: (response: ServerResponse) => void }

export interface FakeS3 {
  readonly options: GivenS3
  readonly objects: Map<string, StoredObject>
  readonly uploads: Map<string, StoredUpload>
  /** The requests so far, such as `PUT files/…`. */
  readonly requests: string[]
  /** How many connections are open. */
  connections (): Promise<number>
  /** Sets what happens to requests. Called for each of them; undefined lets one through. */
  misbehave (fault?: (request: FakeRequest) => Fault | undefined): void
  /** How far the clock of the store is ahead, in milliseconds. */
  clock: number
  ignoresChecksums: boolean
}

/** Starts a store with one bucket that checks signatures, checksums and clocks like S3, on this machine. */
export async function startFakeS3 (t: Test): Promise<FakeS3> {
  let faultOf: (request: FakeRequest) => Fault | undefined = () => undefined
  const server = createServer((request, response) => {
    handle(request, response).catch((error) => response.destroy(error))
  })
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  t.teardown(() => {
    server.closeAllConnections()
    server.close()
  })
  const { port } = server.address() as AddressInfo
  const store: FakeS3 = {
    options: { endpoint: `http://127.0.0.1:${port}`, bucket: BUCKET, ...CREDENTIALS },
    objects: new Map(),
    uploads: new Map(),
    requests: [],
    connections: () => new Promise((resolve, reject) =>
      server.getConnections((error, count) => error ? reject(error) : resolve(count))),
    misbehave (fault = () => undefined) { faultOf = fault },
    clock: 0,
    ignoresChecksums: false,
  }
  const now = () => Date.now() + store.clock
  return store

  async function handle (request: IncomingMessage, response: ServerResponse): Promise<void> {
    const { pathname, searchParams: query } = new URL(request.url!, 'http://store')
    const [, bucket, ...path] = pathname.split('/').map(decodeURIComponent)
    const key = path.join('/')
    const { method = '', headers } = request
    store.requests.push(`${method} ${key}`)
    const fault = faultOf({ method, key, query, headers })
    if (fault === 'cut') return void request.socket.destroy()
    if (typeof fault === 'function') return fault(response)
    if (fault instanceof Promise) await fault
    const bytes = await buffer(request)
    if (fault && typeof fault === 'object' && 'status' in fault) {
      return fail(response, fault.status, fault.code, fault.more)
    }
    const refusal = refuse(request, pathname, query, bytes) ??
      (bucket === BUCKET ? undefined : [404, 'NoSuchBucket'] as const)
    if (refusal) return fail(response, ...refusal)
    const { answer } = typeof fault === 'object' && 'answer' in fault ? fault : {}
    // With such a fault, nobody gets the usual answer.
    const usual = answer || fault === 'cut after' ? new ServerResponse(request) : response
    act({ method, key, query, headers }, bytes, usual)
    if (fault === 'cut after') request.socket.destroy()
    answer?.(response)
  }

  function refuse (
    { method = '', headers }: IncomingMessage, path: string, query: URLSearchParams, bytes: Buffer
  ): readonly [number, string] | undefined {
    const given = Object.fromEntries(query)
    const time = query.get('X-Amz-Date') ?? `${headers['x-amz-date']}`
    const date = new Date(time.replace(/^(....)(..)(..T..)(..)(..Z)$/, '$1-$2-$3:$4:$5'))
    if (Math.abs(date.getTime() - now()) > SKEW_MS) return [403, 'RequestTimeTooSkewed']
    const parts = { method, host: headers.host!, path, query: given }
    const signature = query.get('X-Amz-Signature')
    if (signature !== null) {
      const seconds = Number(query.get('X-Amz-Expires'))
      if (date.getTime() + seconds * 1000 < now()) return [403, 'AccessDenied']
      for (const name of Object.keys(given)) if (name.startsWith('X-Amz-')) delete given[name]
      const right = presign(parts, seconds, CREDENTIALS, date)['X-Amz-Signature']
      return signature === right ? undefined : [403, 'SignatureDoesNotMatch']
    }
    const authorization = headers.authorization ?? ''
    if (!authorization.includes(`Credential=${CREDENTIALS.accessKeyId}/`)) return [403, 'InvalidAccessKeyId']
    const names = /SignedHeaders=([^,]*)/.exec(authorization)?.[1]?.split(';') ?? []
    const sha256 = `${headers['x-amz-content-sha256']}`
    const signed = Object.fromEntries(names.map((name) => [name, `${headers[name]}`]))
    if (signRequest(parts, signed, sha256, CREDENTIALS, date)['authorization'] !== authorization) {
      return [403, 'SignatureDoesNotMatch']
    }
    const isRight = createHash('sha256').update(bytes).digest('hex') === sha256
    return isRight || store.ignoresChecksums ? undefined : [400, 'XAmzContentSHA256Mismatch']
  }

  function act ({ method, key, query, headers }: FakeRequest, bytes: Buffer, response: ServerResponse): void {
    const send = (status: number, body = '', more: Record<string, string> = {}) =>
      void response.writeHead(status, { date: new Date(now()).toUTCString(), ...more }).end(body)
    const uploadId = query.get('uploadId')
    const stored: StoredObject = { bytes, modified: now() }
    if (key === '') return query.has('uploads') ? listUploads(query, send) : listObjects(query, send)
    if (method === 'POST' && query.has('uploads')) {
      const id = randomUUID()
      store.uploads.set(id, { key, begun: now(), parts: new Map() })
      const begun = `<Bucket>${BUCKET}</Bucket><Key>${key}</Key><UploadId>${id}</UploadId>`
      return send(200, documentOf('InitiateMultipartUploadResult', begun))
    }
    if (uploadId !== null) {
      const upload = store.uploads.get(uploadId)
      if (!upload) return fail(response, 404, 'NoSuchUpload')
      if (method === 'PUT') {
        upload.parts.set(Number(query.get('partNumber')), stored)
        return send(200, '', { etag: tagOf(bytes) })
      }
      if (method === 'GET') return listParts(upload, send)
      store.uploads.delete(uploadId)
      if (method === 'DELETE') return send(204)
      const numbers = [...bytes.toString().matchAll(/<PartNumber>(\d+)</g)].map(([, number]) => Number(number))
      if (numbers.some((number) => !upload.parts.has(number))) return fail(response, 400, 'InvalidPart')
      const parts = numbers.map((number) => upload.parts.get(number)!.bytes)
      if (parts.slice(0, -1).some(({ length }) => length < 5 * 1024 * 1024)) return fail(response, 400, 'EntityTooSmall')
      store.objects.set(key, { bytes: Buffer.concat(parts), modified: now() })
      const tag = `&quot;${tagOf(Buffer.concat(parts)).slice(1, -1)}-${parts.length}&quot;`
      const completed = `<Location>http://store/${key}</Location><Bucket>${BUCKET}</Bucket><Key>${key}</Key><ETag>${tag}</ETag>`
      return send(200, `  \n${documentOf('CompleteMultipartUploadResult', completed)}`)
    }
    const object = store.objects.get(key)
    const source = headers['x-amz-copy-source']
    if (method === 'PUT' && source !== undefined) {
      const copied = store.objects.get(String(source).replace(`/${BUCKET}/`, ''))
      if (!copied) return fail(response, 404, 'NoSuchKey')
      store.objects.set(key, { bytes: copied.bytes, modified: now() })
      return send(200, documentOf('CopyObjectResult', `<ETag>${tagOf(copied.bytes)}</ETag>`))
    }
    if (method === 'PUT') {
      store.objects.set(key, stored)
      return send(200, '', { etag: tagOf(bytes) })
    }
    if (method === 'DELETE') {
      store.objects.delete(key)
      return send(204)
    }
    if (!object) return fail(response, 404, 'NoSuchKey')
    const named = Object.fromEntries(['content-type', 'content-disposition', 'cache-control']
      .flatMap((name) => query.has(`response-${name}`) ? [[name, query.get(`response-${name}`)!]] : []))
    const etag = tagOf(object.bytes)
    if (![undefined, etag].includes(headers['if-match'])) return fail(response, 412, 'PreconditionFailed')
    const { length } = object.bytes
    const [, first, last] = /^bytes=(\d+)-(\d*)$/.exec(headers.range ?? '') ?? []
    if (first === undefined) {
      send(200, method === 'HEAD' ? '' : object.bytes as never, { ...named, etag, 'content-length': `${length}` })
      return
    }
    const end = Math.min(Number(last || length - 1), length - 1)
    const range = object.bytes.subarray(Number(first), end + 1)
    const sizes = { 'content-range': `bytes ${first}-${end}/${length}`, 'content-length': `${range.length}` }
    send(206, range as never, { ...named, etag, ...sizes })
  }

  type Send = (status: number, body?: string, more?: Record<string, string>) => void

  function listObjects (query: URLSearchParams, send: Send): void {
    const [prefix, after] = [query.get('prefix') ?? '', query.get('continuation-token') ?? '']
    const max = Number(query.get('max-keys'))
    const found = [...store.objects].filter(([key]) => key.startsWith(prefix) && key > after).sort(byKey)
    const items = found.slice(0, max).map(([key, { bytes, modified }]) =>
      `<Contents><Key>${key}</Key><Size>${bytes.length}</Size><LastModified>${timeOf(modified)}</LastModified></Contents>`)
    const isMore = found.length > max
    send(200, documentOf('ListBucketResult', `${items.join('')}<IsTruncated>${isMore}</IsTruncated>${isMore
      ? `<NextContinuationToken>${found[max - 1]![0]}</NextContinuationToken>`
      : ''}`))
  }

  function listUploads (query: URLSearchParams, send: Send): void {
    const [prefix, after] = [query.get('prefix') ?? '', query.get('key-marker') ?? '']
    const max = Number(query.get('max-uploads'))
    const found = [...store.uploads].map(([id, upload]) => [upload.key, id, upload] as const)
      .filter(([key]) => key.startsWith(prefix) && key > after).sort(byKey)
    const items = found.slice(0, max).map(([key, id, { begun }]) =>
      `<Upload><Key>${key}</Key><UploadId>${id}</UploadId><Initiated>${timeOf(begun)}</Initiated></Upload>`)
    const isMore = found.length > max
    send(200, documentOf('ListMultipartUploadsResult', `${items.join('')}<IsTruncated>${isMore}</IsTruncated>${isMore
      ? `<NextKeyMarker>${found[max - 1]![0]}</NextKeyMarker>`
      : ''}`))
  }

  function listParts ({ parts }: StoredUpload, send: Send): void {
    const items = [...parts].map(([number, { bytes, modified }]) =>
      `<Part><PartNumber>${number}</PartNumber><ETag>&quot;${tagOf(bytes).slice(1, -1)}&quot;</ETag>` +
      `<Size>${bytes.length}</Size><LastModified>${timeOf(modified)}</LastModified></Part>`)
    send(200, documentOf('ListPartsResult', `${items.join('')}<IsTruncated>false</IsTruncated>`))
  }

  function fail (response: ServerResponse, status: number, code: string, more = ''): void {
    response.writeHead(status, { date: new Date(now()).toUTCString() })
      .end(`<?xml version="1.0"?><Error><Code>${code}</Code><Message>no</Message>${more}</Error>`)
  }
}

const documentOf = (name: string, content: string): string =>
  `<?xml version="1.0" encoding="UTF-8"?>\n<${name} xmlns="http://s3.amazonaws.com/doc/2006-03-01/">${content}</${name}>`
const tagOf = (bytes: Buffer): string => `"${createHash('md5').update(bytes).digest('hex')}"`
const timeOf = (ms: number): string => new Date(ms).toISOString()
const byKey = ([one]: readonly [string, ...unknown[]], [other]: readonly [string, ...unknown[]]) => one < other ? -1 : 1
