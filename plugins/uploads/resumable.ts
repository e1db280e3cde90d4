import { createHash, timingSafeEqual } from 'node:crypto'
import { isUndecided } from '../../db/driver/circuit-breaker.ts'
import type { UploadPart } from '../../db/tables/uploads.ts'
import {
  continueUpload, deleteExpiredResumableUploads, deleteResumableUpload, findResumableUpload, finishResumableUpload,
  insertResumableUpload, listResumableUploads, listUnrecordedParts, recordParts, type ContinuedUpload,
  type ResumableUploadRow,
} from '../../db/uploads/resumable-uploads.ts'
import type { UploadRow } from '../../db/uploads/uploads.ts'
import { InvalidInput, PayloadTooLarge } from '../../schema/http/errors.ts'
import type { ResultKey } from '../../schema/http/idempotency.ts'
import { networksOf } from '../../schema/http/network.ts'
import { UploadNotFound } from '../../schema/uploads/upload.ts'
import {
  ChecksumMismatch, readMetadata, UploadTakenOver, type Checksum,
} from '../../schema/uploads/resumable-upload.ts'
import type { Caller } from '../access/caller.ts'
import type { Core } from '../core.ts'
import { purgeRegularly } from '../support/purge.ts'
import type { GivenUpload, KeepOptions, Storage, TemporaryFile } from './storage.ts'

// What arrives in one request is recorded after so many bytes or so much time, so that a node that is killed loses no
// more than that.
const PART_BYTES = 8 * 1024 * 1024
const PART_MS = 10_000
// With more parts than this, small ones are written together. The others stay as they are, so that each byte is written
// again only a few times.
const MAX_PARTS = 100
const EXPIRY_SECONDS = 60
const SWEEP_SECONDS = 3600
const PURGE_BATCH_SIZE = 100
// What the client can try again, perhaps after it has authenticated. Another rejection is one of the whole file.
const REPEATABLE = new Set([401, 408, 409, 423, 429, 499])

/** The body of a request, which may end before it is complete. */
export interface IncomingBytes {
  readonly chunks: AsyncIterator<Uint8Array, undefined>
  /** Makes `chunks` throw this error. What was read is not kept then. */
  stop (error: Error): void
  /**
   * Why the body has ended before it was complete. `chunks` has ended without an error then, and what arrived counts.
   */
  readonly failure: Error | undefined
}

/** How far an upload is once a request has continued it, and the upload that it has become. */
export interface Progress {
  offset: number
  expiresAt: Date
  upload?: GivenUpload
}

interface Dependencies extends Core {
  storage: Storage
  /** Keeps a complete file, as any other upload. */
  keep (caller: Caller, given: GivenUpload, options: KeepOptions): Promise<GivenUpload>
}

/**
 * Uploads that arrive in several requests (contract 13.5). What arrives is written as parts, each of which is durable
 * and never changes. One update of the record adds a part and moves the offset, if the request is still the one that
 * continues the upload. So a node that is killed, or two clients at one offset, can neither lose nor mix bytes.
 */
export function createResumableUploads (
  { lifecycle, database: { db }, telemetry: { metrics }, options, storage, keep }: Dependencies
) {
  const { uploadMaxBytes, unfinishedUploadSeconds: seconds } = options
  const limits = {
    perUser: options.unfinishedUploadsPerUser,
    perNetwork: options.unfinishedUploadsPerNetwork,
    total: options.unfinishedUploads,
  }
  // The bodies that this node receives, by upload.
  const receiving = new Map<string, IncomingBytes>()
  const ended = metrics.counter(
    'usher_resumable_uploads_total', 'Resumable uploads that have ended, by how', {
      label: 'outcome', values: ['finished', 'deleted', 'expired'],
    }
  )

  purgeRegularly(lifecycle, 'expired resumable uploads', EXPIRY_SECONDS, async () => {
    let step
    do {
      step = await deleteExpiredResumableUploads(db, PURGE_BATCH_SIZE, storage.removePart)
      if (step.unfinished > 0) ended.add(step.unfinished, 'expired')
    } while (step.deleted === PURGE_BATCH_SIZE)
    return 0
  })
  purgeRegularly(lifecycle, 'parts of uploads that no record has', SWEEP_SECONDS, async () => {
    await storage.sweepParts((ids) => listUnrecordedParts(db, ids))
    return 0
  })

  // Continues an upload with a body. The upload is this request's.
  async function receive (
    caller: Caller, given: ContinuedUpload, incoming: IncomingBytes, checksum: Checksum | undefined
  ): Promise<Progress> {
    let upload = given
    receiving.get(upload.id)?.stop(new UploadTakenOver())
    receiving.set(upload.id, incoming)
    try {
      if (upload.length === 0) return await finish(caller, upload, undefined)
      for (;;) {
        const first = await incoming.chunks.next()
        if (first.done) break
        if (upload.parts.length >= MAX_PARTS) upload = await mergeParts(caller, upload)
        const part = await receivePart(upload, first.value, incoming, checksum)
        if (upload.received + part.size === upload.length) return await finish(caller, upload, part)
        upload = await record(caller, upload, [...upload.parts, [part.id, part.size]], part)
      }
      if (incoming.failure) throw incoming.failure
      return { offset: upload.received, expiresAt: new Date(upload.expiresAt) }
    } finally {
      if (receiving.get(upload.id) === incoming) receiving.delete(upload.id)
    }
  }

  // Writes a part of the body. With a checksum, it is the whole body.
  async function receivePart (
    upload: ContinuedUpload, first: Uint8Array, incoming: IncomingBytes, checksum: Checksum | undefined
  ): Promise<TemporaryFile> {
    const hash = checksum && createHash(checksum.algorithm)
    const left = upload.length - upload.received
    const until = performance.now() + PART_MS
    const isFull = (size: number) => !hash && (size >= PART_BYTES || performance.now() > until)
    let hasEnded = false

    async function * bytes (): AsyncGenerator<Uint8Array> {
      let size = 0
      for (let chunk: Uint8Array | undefined = first; chunk; chunk = await next()) {
        hash?.update(chunk)
        size += chunk.length
        yield chunk
        if (isFull(size)) return
      }
    }

    async function next (): Promise<Uint8Array | undefined> {
      const { done, value } = await incoming.chunks.next()
      hasEnded = done === true
      return value
    }

    const part = await storage.writePart(bytes(), { maxBytes: left, tooLarge: () => new PayloadTooLarge() })
    try {
      if (part.size === left && !hasEnded && await next()) throw new PayloadTooLarge()
      if (!hash) return part
      if (incoming.failure) throw incoming.failure
      if (!timingSafeEqual(hash.digest(), checksum!.digest)) throw new ChecksumMismatch()
      return part
    } catch (error) {
      await storage.removePart(part.id)
      throw error
    }
  }

  // Records the parts of an upload, of which one is new.
  async function record (
    caller: Caller, upload: ContinuedUpload, parts: UploadPart[], added: TemporaryFile
  ): Promise<ContinuedUpload> {
    try {
      await recordParts(db, upload, parts, caller.token!)
      return { ...upload, parts, received: parts.reduce((sum, [, size]) => sum + size, 0) }
    } catch (error) {
      if (!isUndecided(error)) await storage.removePart(added.id)
      throw error
    }
  }

  async function mergeParts (caller: Caller, upload: ContinuedUpload): Promise<ContinuedUpload> {
    const start = startOfSmallParts(upload.parts)
    const small = upload.parts.slice(start)
    const merged = await storage.writePart(storage.readParts(small))
    const updated = await record(
      caller, upload, [...upload.parts.slice(0, start), [merged.id, merged.size]], merged
    )
    await removeParts(small)
    return updated
  }

  const removeParts = async (parts: readonly UploadPart[]): Promise<void> => {
    for (const [id] of parts) await storage.removePart(id)
  }

  // Makes one file of all parts, the last of which is not recorded, and keeps it as an upload.
  async function finish (
    caller: Caller, upload: ContinuedUpload, last: TemporaryFile | undefined
  ): Promise<Progress> {
    const parts: UploadPart[] = [...upload.parts, ...last ? [[last.id, last.size] as UploadPart] : []]
    const isJoined = parts.length !== 1
    let file = last
    try {
      const limit = { maxBytes: upload.length, tooLarge: () => new PayloadTooLarge() }
      if (isJoined) file = await storage.write(storage.readParts(parts), limit)
      const kept = await keep(caller, { ...file!, ...readMetadata(upload.metadata) }, {
        inTransaction: (trx, uploadId) => finishResumableUpload(trx, upload, uploadId),
      })
      ended.add(1, 'finished')
      if (isJoined) await removeParts(parts)
      return { offset: upload.length, expiresAt: new Date(upload.expiresAt), upload: kept }
    } catch (error) {
      if (file) await storage.discard(file)
      if (last && isJoined) await storage.discard(last)
      if (isRejection(error)) await remove(caller, upload.id).catch(() => {})
      throw error
    }
  }

  async function remove (caller: Caller, id: string): Promise<void> {
    const parts = await deleteResumableUpload(db, id, caller.getActor().id, caller.token!)
    receiving.get(id)?.stop(new UploadNotFound())
    await removeParts(parts)
    ended.add(1, 'deleted')
  }

  return {
    /**
     * Creates an upload of the caller, who is a user, of `length` bytes. Throws `Unauthenticated`, `Forbidden`,
     * `InvalidInput`, `PayloadTooLarge`, `QuotaExceeded`, `TooManyUnfinishedUploads`, `InvalidToken`, and `KeyTaken` if
     * the key `once` is taken.
     */
    async create (
      caller: Caller, { length, metadata }: { length: number, metadata: string }, once?: ResultKey
    ): Promise<ResumableUploadRow> {
      caller.authorize('uploads:create')
      readMetadata(metadata)
      if (length > uploadMaxBytes) throw new PayloadTooLarge()
      await caller.confirm()
      const created = { userId: caller.getActor().id, networks: networksOf(caller.address), metadata, length, seconds }
      return insertResumableUpload(db, created, caller.token!, { quota: storage.quota.ofStatement, limits, once })
    },

    /**
     * Returns an upload of the caller, and the finished upload that it has become. Throws `UploadNotFound`, also if
     * that one was deleted, `Unauthenticated`, `Forbidden`, `InvalidToken`.
     */
    async get (caller: Caller, id: string): Promise<ResumableUploadRow & { upload: UploadRow | null }> {
      caller.authorize('uploads:create')
      const row = await findResumableUpload(db, id, caller.getActor().id)
      const upload = row?.uploadId == null ? undefined : await storage.find(row.uploadId)
      await caller.confirm()
      if (!row || (row.uploadId !== null && !upload)) throw new UploadNotFound()
      return { ...row, upload: upload ?? null }
    },

    /**
     * Returns the unfinished uploads of the caller, newest first. Throws `Unauthenticated`, `Forbidden`,
     * `InvalidToken`.
     */
    async list (caller: Caller): Promise<ResumableUploadRow[]> {
      caller.authorize('uploads:create')
      const uploads = await listResumableUploads(db, caller.getActor().id)
      await caller.confirm()
      return uploads
    },

    /**
     * Adds bytes to an upload of the caller, whose offset is `offset`. When it is complete, keeps it as `uploads.keep`
     * does, and throws what that throws; an upload that is rejected then is deleted. Throws `Unauthenticated`,
     * `Forbidden`, `UploadNotFound`, `UploadOffsetConflict`, `UploadTakenOver`, `PayloadTooLarge`, `ChecksumMismatch`,
     * `InvalidToken`, `StorageFull`, `StorageFailed`, and `incoming.failure` once what arrived is kept.
     */
    async append (
      caller: Caller, id: string, offset: number, incoming: IncomingBytes, checksum?: Checksum
    ): Promise<Progress> {
      caller.authorize('uploads:create')
      return storage.receive(async () =>
        receive(caller, await continueUpload(db, id, caller.getActor().id, offset), incoming, checksum))
    },

    /**
     * Deletes an upload of the caller that is not complete, and its bytes. Of a complete one, forgets that it arrived
     * in several requests. Throws `UploadNotFound`, `Unauthenticated`, `Forbidden`, `InvalidToken`.
     */
    async delete (caller: Caller, id: string): Promise<void> {
      caller.authorize('uploads:create')
      await caller.confirm()
      await remove(caller, id)
    },
  }
}

export type ResumableUploads = ReturnType<typeof createResumableUploads>

// Returns where the parts begin that are together at least as large as the first of them.
function startOfSmallParts (parts: readonly UploadPart[]): number {
  let rest = parts.reduce((sum, [, size]) => sum + size, 0)
  return parts.findIndex(([, size]) => size <= (rest -= size))
}

function isRejection (error: unknown): boolean {
  const { statusCode = 500 } = error as { statusCode?: number }
  return error instanceof InvalidInput || (statusCode >= 400 && statusCode < 500 && !REPEATABLE.has(statusCode))
}
