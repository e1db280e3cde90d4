import { createHash } from 'node:crypto'
import { join, resolve } from 'node:path'
import type { IncomingMessage } from 'node:http'
import { Overloaded } from '../../../schema/http/errors.ts'
import type { Options } from '../../../schema/options/options.ts'
import type { S3Options } from '../../../schema/options/s3.ts'
import { StorageFailed, StorageFull, StorageUnavailable } from '../../../schema/uploads/upload.ts'
import { isExhausted } from '../../support/exhausted.ts'
import type { ByteRange, Stage, StorageBackend, StoredBytes } from '../backend.ts'
import { createFolders, describeFailure, otherOwnerOf } from '../folder.ts'
import { elementsOf, textOf } from './documents.ts'
import { Download } from './download.ts'
import { ChecksumsIgnored, explainStore } from './explain.ts'
import { createRequests, MAX_DOWNLOADS, NoAnswer, StoreError, type RequestCounts } from './requests.ts'
import { sealBytes } from './spool.ts'
import { abortUpload, complete, listParts, partBytesFor, sizeOf, Writing } from './writing.ts'

const MAX_ENTRIES_PER_BATCH = 100

export interface S3BackendOptions extends Pick<
  Options, 'uploadsDir' | 'uploadMaxBytes' | 'uploadMinBytesPerSecond' | 'deadlines'
> {
  readonly s3: S3Options
  readonly counts?: RequestCounts | undefined
}

const uncounted: RequestCounts = { attempt () {}, failure () {} }

// A store copies at most this by one request.
const MAX_COPY_BYTES = 5 * 1024 ** 3

/**
 * Creates the backend that stores uploads as objects of a bucket: `files/` and the id is the key of each, and `parts/`
 * has those whose other bytes arrive in later requests. What is temporary is on this node, if one request can send it,
 * or at the store, in pieces that nobody can read. The folder `sending` of `uploadsDir` has what this node receives.
 */
export function createS3 ({
  s3, uploadsDir, uploadMaxBytes, uploadMinBytesPerSecond, deadlines, counts = uncounted,
}: S3BackendOptions): StorageBackend {
  const idleMs = deadlines.storage
  const store = createRequests({ s3, timeoutMs: idleMs, connectMs: deadlines.storageConnect, counts })
  const base = s3.prefix === '' ? '' : `${s3.prefix.replace(/\/$/, '')}/`
  const files = `${base}files/`
  const parts = `${base}parts/`
  const databases = `${base}databases/`
  const folder = join(resolve(uploadsDir), 'sending')
  const partBytes = partBytesFor(uploadMaxBytes)
  const keyOf = (id: string, stage: Stage = 'published') => `${stage === 'part' ? parts : files}${id}`
  // The bytes that this process writes, or has written and not published, by their keys.
  const writings = new Map<string, Writing>()
  let downloads = 0

  interface Listed { name: string, size: number, changedAt: number }

  // Yields the objects under a prefix, with the time of the store, in pages.
  async function * list (prefix: string, limit = 1000): AsyncGenerator<{ objects: Listed[], now: number }> {
    for (let token: string | undefined; ;) {
      const query = {
        'list-type': '2', prefix, 'max-keys': `${limit}`, ...token !== undefined && { 'continuation-token': token },
      }
      const { text, headers } = await store.send({ operation: 'list', method: 'GET', query })
      const objects = elementsOf(text, 'Contents').map((element) => ({
        name: textOf(element, 'Key')!.slice(prefix.length),
        size: Number(textOf(element, 'Size')),
        changedAt: Date.parse(textOf(element, 'LastModified') ?? ''),
      }))
      yield { objects, now: Date.parse(headers.date ?? '') || Date.now() }
      token = textOf(text, 'IsTruncated') === 'true' ? textOf(text, 'NextContinuationToken') : undefined
      if (token === undefined) return
    }
  }

  interface ListedUpload { key: string, uploadId: string, begunAt: number }

  // Yields the uploads that have parts and are not published.
  async function * listUploads (prefix: string): AsyncGenerator<{ uploads: ListedUpload[], now: number }> {
    for (let markers: Record<string, string> | undefined = {}; markers !== undefined;) {
      const query = { uploads: '', prefix, 'max-uploads': '1000', ...markers }
      const { text, headers }: { text: string, headers: IncomingMessage['headers'] } =
        await store.send({ operation: 'list', method: 'GET', query })
      const uploads = elementsOf(text, 'Upload').map((element) => ({
        key: textOf(element, 'Key')!,
        uploadId: textOf(element, 'UploadId')!,
        begunAt: Date.parse(textOf(element, 'Initiated') ?? ''),
      }))
      yield { uploads, now: Date.parse(headers.date ?? '') || Date.now() }
      const [key, uploadId] = [textOf(text, 'NextKeyMarker'), textOf(text, 'NextUploadIdMarker')]
      const isMore = textOf(text, 'IsTruncated') === 'true' && key !== undefined
      markers = isMore ? { 'key-marker': key, ...uploadId && { 'upload-id-marker': uploadId } } : undefined
    }
  }

  async function uploadsOf (key: string): Promise<string[]> {
    const found: string[] = []
    for await (const { uploads } of listUploads(key)) {
      for (const { key: listed, uploadId } of uploads) if (listed === key) found.push(uploadId)
    }
    return found
  }

  async function abortAll (key: string): Promise<void> {
    const writing = writings.get(key)
    writings.delete(key)
    await writing?.abort()
    if (writing && !writing.isUncertain) return
    await Promise.all((await uploadsOf(key)).map((uploadId) => abortUpload(store, key, uploadId)))
  }

  async function open (key: string, range: ByteRange | undefined, tag?: string): Promise<IncomingMessage | undefined> {
    const headers = {
      ...range && { range: `bytes=${range.start}-${range.end}` }, ...tag !== undefined && { 'if-match': tag },
    }
    try {
      const response = await store.open({ operation: 'get', method: 'GET', key, headers })
      const { statusCode, headers: { 'content-length': length, 'content-range': sent } } = response
      const isRange = statusCode === 206 && sent?.startsWith(`bytes ${range?.start}-${range?.end}/`)
      const isAsked = range ? isRange && length === `${range.end - range.start + 1}` : statusCode === 200
      if (isAsked) return response
      response.destroy()
      throw new Error(`The store has sent other bytes than asked for (${statusCode}, ${sent}, ${length} bytes)`)
    } catch (error) {
      if (error instanceof StoreError && error.code === 'NoSuchKey') return undefined
      if (isExhausted(error)) throw error
      throw new StorageUnavailable({ cause: error })
    }
  }

  async function * listOldUploads (forMs: number, signal: AbortSignal): AsyncGenerator<StoredBytes[]> {
    for await (const { uploads, now } of listUploads(base)) {
      signal.throwIfAborted()
      const old = uploads.filter(({ begunAt }) => now - begunAt > forMs)
      for (let start = 0; start < old.length; start += MAX_ENTRIES_PER_BATCH) {
        const batch = await Promise.all(old.slice(start, start + MAX_ENTRIES_PER_BATCH).map(async (upload) => {
          const { size, changedAt } = await listParts(store, upload.key, upload.uploadId).catch(noneIfGone)
          return { id: upload.key.slice(upload.key.lastIndexOf('/') + 1), size, isOld: now - Math.max(changedAt, upload.begunAt) > forMs }
        }))
        const ids = new Map(batch.filter(({ isOld }) => isOld).map(({ id, size }) => [id, size]))
        yield [...ids].map(([id, size]) => ({ id, size }))
      }
    }
  }

  async function * listOldObjects (
    prefix: string, forMs: number, signal: AbortSignal
  ): AsyncGenerator<StoredBytes[]> {
    for await (const { objects, now } of list(prefix)) {
      signal.throwIfAborted()
      const old = objects.filter(({ changedAt }) => now - changedAt > forMs).map(({ name: id, size }) => ({ id, size }))
      for (let start = 0; start < old.length; start += MAX_ENTRIES_PER_BATCH) {
        yield old.slice(start, start + MAX_ENTRIES_PER_BATCH)
      }
    }
  }

  return {
    root: store.placeOf(base),
    location: store.placeOf(files),
    // A part takes at most this long to arrive.
    maxPauseMs: Math.ceil(partBytes / uploadMinBytesPerSecond) * 1000,

    async claim (database) {
      const text = sealBytes(Buffer.from('This database of Usher has uploads here.\n'))
      const key = `${databases}${database}`
      try {
        await createFolders(folder, await otherOwnerOf(folder))
      } catch (cause) {
        throw new Error(
          `usher: uploadsDir cannot be used, check that it is a writable folder: ${(cause as Error).message}`, { cause }
        )
      }
      try {
        await store.send({ operation: 'put', method: 'PUT', key, body: text })
        await requireChecksums(`${key}.check`)
        // Fails if the key may write and not read.
        await store.send({ operation: 'get', method: 'GET', key })
        await uploadsOf(files)
      } catch (error) {
        throw new Error(`usher: ${explainStore(error, s3)}`, { cause: error })
      }
    },

    async check ({ isRepeated } = {}) {
      const request = { operation: 'get', method: 'GET', isRepeated } as const
      // There is none with this name. Somebody who may list objects, and not get them, is told so.
      const absent = { ...request, key: `${databases}check` }
      try {
        await Promise.all([
          store.send({ ...request, operation: 'list', query: { 'list-type': '2', prefix: base, 'max-keys': '1' } }),
          store.send({ ...request, operation: 'list', query: { uploads: '', prefix: base, 'max-uploads': '1' } }),
          store.send(absent).catch((error: unknown) => {
            if (!(error instanceof StoreError && error.code === 'NoSuchKey')) throw error
          }),
        ])
      } catch (error) {
        throw new Error(`usher: ${explainStore(error, s3)}`, { cause: error })
      }
    },

    async exists () {
      const { value } = await list(base, 1).next()
      return value !== undefined && value.objects.length > 0
    },

    isClaimed: async (database) => await sizeOf(store, `${databases}${database}`) !== undefined,

    async count () {
      let count = 0
      for await (const { objects } of list(files)) count += objects.length
      return count
    },

    async isShared (database) {
      for await (const { objects } of list(databases)) {
        if (objects.some(({ name }) => name !== database)) return true
      }
      return false
    },

    async write (id, bytes, stage = 'temporary', { durable = false } = {}) {
      const key = keyOf(id, stage)
      const writing = new Writing({ store, key, folder, partBytes })
      writings.set(key, writing)
      try {
        for await (const chunk of bytes) await writing.add(chunk)
        await writing.end({ durable })
        if (stage === 'part') await writing.publish()
        else if (!durable) return
        await writing.close()
        writings.delete(key)
      } catch (error) {
        throw describe(error)
      }
    },

    async publish (id, from = 'temporary') {
      const key = keyOf(id)
      const writing = writings.get(key)
      try {
        if (from === 'part') return await publishPart(id)
        if (writing) {
          await writing.publish()
          writings.delete(key)
          return
        }
        const [uploadId] = await uploadsOf(key)
        if (uploadId === undefined) {
          throw new StorageFailed({ cause: new Error(`There is no unpublished upload ${id}`) })
        }
        const { parts, size } = await listParts(store, key, uploadId)
        await complete(store, key, uploadId, parts, size)
      } catch (error) {
        throw describe(error)
      }
    },

    maxReaders: MAX_DOWNLOADS,
    read: (id, range) => download(keyOf(id), range),
    readPart: (id) => download(keyOf(id, 'part')),

    async has (id) {
      try {
        return await sizeOf(store, keyOf(id)) !== undefined
      } catch (error) {
        throw isExhausted(error) ? error : new StorageUnavailable({ cause: error })
      }
    },

    async remove (stage, id) {
      const key = keyOf(id, stage)
      const isKnown = writings.has(key)
      if (stage !== 'published') await abortAll(key)
      if (stage !== 'temporary') await store.send({ operation: 'delete', method: 'DELETE', key })
      // A node may have been killed while it wrote a part.
      else if (!isKnown) await abortAll(keyOf(id, 'part'))
    },

    listOld: (stage, forMs, signal) => stage === 'temporary'
      ? listOldUploads(forMs, signal)
      : listOldObjects(keyOf('', stage), forMs, signal),

    addressOf: async (id, { type, disposition, cacheControl }, seconds) => store.presign(keyOf(id), {
      'response-content-type': type,
      'response-content-disposition': disposition,
      'response-cache-control': cacheControl,
    }, seconds),

    close: store.close,
  }

  async function download (key: string, range?: ByteRange): Promise<Download | undefined> {
    if (downloads >= MAX_DOWNLOADS) throw new Overloaded()
    downloads++
    let bytes: Download | undefined
    try {
      const first = await open(key, range)
      if (!first) return undefined
      const { start, end } = range ?? { start: 0, end: Number(first.headers['content-length']) - 1 }
      const tag = first.headers.etag
      bytes = new Download(first, {
        length: end - start + 1,
        idleMs,
        async reopen (offset) {
          const rest = await open(key, { start: start + offset, end }, tag)
          if (!rest) throw new Error('The object was deleted meanwhile')
          return rest
        },
      })
      return bytes.once('close', () => { downloads-- })
    } finally {
      if (!bytes) downloads--
    }
  }

  // Makes a part, whose upload has no other one, a published object.
  async function publishPart (id: string): Promise<void> {
    const [from, key] = [keyOf(id, 'part'), keyOf(id)]
    const size = await sizeOf(store, from)
    if (size === undefined) throw new StorageFailed({ cause: new Error(`There is no part ${id}`) })
    if (size <= MAX_COPY_BYTES) {
      const headers = { 'x-amz-copy-source': `/${s3.bucket}/${from}` }
      await store.send({ operation: 'put', method: 'PUT', key, headers })
    } else {
      const writing = new Writing({ store, key, folder, partBytes })
      try {
        for await (const chunk of await download(from) ?? []) await writing.add(chunk)
        await writing.end({ durable: true })
        await writing.publish()
      } catch (error) {
        await writing.abort()
        throw error
      }
    }
    await store.send({ operation: 'delete', method: 'DELETE', key: from })
  }

  // Throws if the store accepts bytes that differ from the hash that was signed with them.
  async function requireChecksums (key: string): Promise<void> {
    const bytes = sealBytes(Buffer.from('These bytes have another hash.\n'))
    const sha256 = createHash('sha256').update('other bytes').digest('hex')
    const request = { operation: 'put', method: 'PUT', key, body: { ...bytes, sha256 }, isRepeated: false } as const
    const answer = await store.send(request).catch((error: unknown) => error)
    if (answer instanceof StoreError && answer.status === 400) return
    if (answer instanceof Error) throw answer
    await store.send({ operation: 'delete', method: 'DELETE', key })
    throw new ChecksumsIgnored()
  }
}

// The account or the store has no space left, or takes no objects of this size.
const NO_SPACE = new Set(['QuotaExceeded', 'EntityTooLarge', 'InsufficientStorage', 'XMinioStorageFull'])

// Returns the error of the catalogue for one of the store, or of the folder of parts. Other errors are those of the
// bytes.
function describe (error: unknown): unknown {
  if (error instanceof NoAnswer) return new StorageFailed({ cause: error })
  if (!(error instanceof StoreError)) return describeFailure(error)
  return NO_SPACE.has(error.code) || error.status === 507
    ? new StorageFull({ cause: error })
    : new StorageFailed({ cause: error })
}

function noneIfGone (error: unknown): { size: number, changedAt: number } {
  if (error instanceof StoreError && error.status === 404) return { size: 0, changedAt: -Infinity }
  throw error
}
