import { createHash } from 'node:crypto'
import { join, resolve } from 'node:path'
import { Overloaded } from '../../../schema/http/errors.ts'
import { placeOfS3, type S3Options } from '../../../schema/options/s3.ts'
import { StorageFailed, StorageFull, StorageUnavailable } from '../../../schema/uploads/upload.ts'
import { isExhausted } from '../../support/exhausted.ts'
import type { BackendOptions, SizedRange, Stage, StorageBackend, StoredBytes } from '../backend.ts'
import { createFolders, describeFailure, otherOwnerOf } from '../folder.ts'
import { countRequests } from './counts.ts'
import { openDownload, type Download } from './download.ts'
import { ChecksumsIgnored, explainStore } from './explain.ts'
import { listObjects, listParts, listUploads } from './lists.ts'
import { copyObject, deleteObject, exists, isNoSuchKey, putObject, sizeOf } from './objects.ts'
import { createRequests, InvalidAnswer, MAX_DOWNLOADS, NoAnswer, StoreError } from './requests.ts'
import { sealBytes } from './spool.ts'
import { abortUpload, complete, isNoSuchUpload, partBytesFor, uploadsOf, Writing } from './writing.ts'

const MAX_ENTRIES_PER_BATCH = 100

// A store copies at most this by one request.
const MAX_COPY_BYTES = 5 * 1024 ** 3

/**
 * Creates the backend that stores uploads as objects of a bucket: `files/` and the id is the key of each, and `parts/`
 * has those whose other bytes arrive in later requests. What is temporary is on this node, if one request can send it,
 * or at the store, in pieces that nobody can read. The folder `sending` of `uploadsDir` has what this node receives.
 */
export function createS3 (
  s3: S3Options, { uploadsDir, uploadMaxBytes, uploadMinBytesPerSecond, deadlines, metrics }: BackendOptions
): StorageBackend {
  const idleMs = deadlines.storage
  const counts = countRequests(metrics)
  const store = createRequests({ s3, timeoutMs: idleMs, connectMs: deadlines.storageConnect, counts })
  const { redirectSeconds } = s3
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

  async function abortAll (key: string): Promise<void> {
    const writing = writings.get(key)
    writings.delete(key)
    await writing?.abort()
    if (writing && !writing.isUncertain) return
    await Promise.all((await uploadsOf(store, key)).map((uploadId) => abortUpload(store, key, uploadId)))
  }

  async function * listOldUploads (forMs: number, signal: AbortSignal): AsyncGenerator<StoredBytes[]> {
    for await (const { uploads, now } of listUploads(store, base)) {
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
    for await (const { objects, now } of listObjects(store, prefix)) {
      signal.throwIfAborted()
      const old = objects.filter(({ changedAt }) => now - changedAt > forMs).map(({ name: id, size }) => ({ id, size }))
      for (let start = 0; start < old.length; start += MAX_ENTRIES_PER_BATCH) {
        yield old.slice(start, start + MAX_ENTRIES_PER_BATCH)
      }
    }
  }

  return {
    root: placeOfS3(s3),
    location: `${placeOfS3(s3)}files/`,
    // A part takes at most this long to arrive.
    maxPauseMs: Math.ceil(partBytes / uploadMinBytesPerSecond) * 1000,

    async claim (database) {
      const text = 'This database of Usher has uploads here.\n'
      const key = `${databases}${database}`
      try {
        await createFolders(folder, await otherOwnerOf(folder))
      } catch (cause) {
        throw new Error(
          `usher: uploadsDir cannot be used, check that it is a writable folder: ${(cause as Error).message}`, { cause }
        )
      }
      try {
        await putObject(store, key, sealBytes(Buffer.from(text)))
        await requireChecksums(`${key}.check`)
        // Fails if the key may write and not read.
        await store.send({ operation: 'get', method: 'GET', key }, (answer) => {
          if (answer.text !== text) throw new InvalidAnswer(answer, 'and other bytes than were stored')
        })
        await uploadsOf(store, files)
      } catch (error) {
        throw new Error(`usher: ${explainStore(error, s3)}`, { cause: error })
      }
    },

    async check ({ isRepeated } = {}) {
      // There is none with this name. Somebody who may list objects, and not get them, is told so.
      const absent = { operation: 'get', method: 'GET', key: `${databases}check`, isRepeated } as const
      try {
        await Promise.all([
          listObjects(store, base, { limit: 1, isRepeated }).next(),
          listUploads(store, base, { limit: 1, isRepeated }).next(),
          store.send(absent, (answer) => {
            throw new InvalidAnswer(answer, 'for an object that does not exist')
          }).catch((error: unknown) => {
            if (!isNoSuchKey(error)) throw error
          }),
        ])
      } catch (error) {
        throw new Error(`usher: ${explainStore(error, s3)}`, { cause: error })
      }
    },

    async exists () {
      const { value } = await listObjects(store, base, { limit: 1 }).next()
      return value !== undefined && value.objects.length > 0
    },

    isClaimed: async (database) => await sizeOf(store, `${databases}${database}`) !== undefined,

    async count () {
      let count = 0
      for await (const { objects } of listObjects(store, files)) count += objects.length
      return count
    },

    async isShared (database) {
      for await (const { objects } of listObjects(store, databases)) {
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
        const [uploadId] = await uploadsOf(store, key)
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
      if (stage !== 'temporary') await deleteObject(store, key)
      // A node may have been killed while it wrote a part.
      else if (!isKnown) await abortAll(keyOf(id, 'part'))
    },

    listOld: (stage, forMs, signal) => stage === 'temporary'
      ? listOldUploads(forMs, signal)
      : listOldObjects(keyOf('', stage), forMs, signal),

    ...redirectSeconds > 0 && {
      addressOf: async (id, { type, disposition, cacheControl }) => store.presign(keyOf(id), {
        'response-content-type': type,
        'response-content-disposition': disposition,
        'response-cache-control': cacheControl,
      }, redirectSeconds),
    } satisfies Pick<StorageBackend, 'addressOf'>,

    // The sentence of a store says more than its code.
    explain: ({ message }) => ({ why: message, advice: 'check the store' }),

    close: store.close,
  }

  async function download (key: string, range?: SizedRange): Promise<Download | undefined> {
    if (downloads >= MAX_DOWNLOADS) throw new Overloaded()
    downloads++
    let bytes: Download | undefined
    try {
      bytes = await openDownload(store, key, range, idleMs)
      return bytes?.once('close', () => { downloads-- })
    } catch (error) {
      throw isExhausted(error) ? error : new StorageUnavailable({ cause: error })
    } finally {
      if (!bytes) downloads--
    }
  }

  // Makes a part, whose upload has no other one, a published object.
  async function publishPart (id: string): Promise<void> {
    const [from, key] = [keyOf(id, 'part'), keyOf(id)]
    const size = await sizeOf(store, from)
    if (size === undefined) throw new StorageFailed({ cause: new Error(`There is no part ${id}`) })
    if (size > MAX_COPY_BYTES || !await tryCopy(from, key, size)) {
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
    await deleteObject(store, from)
  }

  // Returns false if the store cannot copy.
  async function tryCopy (from: string, key: string, size: number): Promise<boolean> {
    try {
      await copyObject(store, `${s3.bucket}/${from}`, key, size)
      return true
    } catch (error) {
      if (error instanceof StoreError && error.status === 501) return false
      throw error
    }
  }

  // Throws if the store accepts bytes that differ from the hash that was signed with them.
  async function requireChecksums (key: string): Promise<void> {
    const bytes = sealBytes(Buffer.from('These bytes have another hash.\n'))
    const sha256 = createHash('sha256').update('other bytes').digest('hex')
    const request = { operation: 'put', method: 'PUT', key, body: { ...bytes, sha256 }, isRepeated: false } as const
    try {
      await store.send(request, () => {})
    } catch (error) {
      if (!(error instanceof StoreError && error.status === 400)) throw error
    }
    if (!await exists(store, key)) return
    await deleteObject(store, key)
    throw new ChecksumsIgnored()
  }
}

// The account or the store has no space left, or takes no objects of this size.
const NO_SPACE = new Set(['QuotaExceeded', 'EntityTooLarge', 'InsufficientStorage', 'XMinioStorageFull'])

// Returns the error of the catalogue for one of the store, or of the folder of parts. Other errors are those of the
// bytes.
function describe (error: unknown): unknown {
  if (error instanceof NoAnswer || error instanceof InvalidAnswer) return new StorageFailed({ cause: error })
  if (!(error instanceof StoreError)) return describeFailure(error)
  return NO_SPACE.has(error.code) || error.status === 507
    ? new StorageFull({ cause: error })
    : new StorageFailed({ cause: error })
}

function noneIfGone (error: unknown): { size: number, changedAt: number } {
  if (isNoSuchUpload(error)) return { size: 0, changedAt: -Infinity }
  throw error
}
