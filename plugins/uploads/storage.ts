import { Readable } from 'node:stream'
import { isConsequence, isUndecided } from '../../db/driver/circuit-breaker.ts'
import { batchCalls } from '../../db/batching/batching.ts'
import { KeyTaken } from '../../db/idempotency/idempotency.ts'
import {
  deleteOwnerlessUploads, findUploads, insertUpload, installationOf, type UploadRow,
} from '../../db/uploads/uploads.ts'
import type { UploadPart } from '../../db/tables/uploads.ts'
import type { Database } from '../../db/tables/index.ts'
import type { ResultKey } from '../../schema/http/idempotency.ts'
import { Overloaded } from '../../schema/http/errors.ts'
import type { Network } from '../../schema/http/network.ts'
import { PROGRAM } from '../../schema/runtime/program.ts'
import { UploadNotFound, type Visibility } from '../../schema/uploads/upload.ts'
import type { Caller } from '../access/caller.ts'
import type { Core } from '../core.ts'
import { ClientQuota } from '../support/client-quota.ts'
import { purgeRegularly } from '../support/purge.ts'
import type { AddressHeaders, ByteRange, Stage, WrittenStage } from './backend.ts'
import { measure, type Measures } from './measure.ts'
import { exactly } from './exactly.ts'
import { openBackend } from './open-backend.ts'
import { createQuota, type SizeLimit } from './quota.ts'
import type { Scanner } from './scanner.ts'
import { listStrayFiles, STRAY_AFTER_MS } from './stray-files.ts'

// Of several databases that use a backend, each knows its own parts only. No upload may be unfinished for this long.
const SHARED_PARTS_AFTER_MS = 8 * 24 * 3_600_000
const SWEEP_BATCH_SIZE = 100
const SWEEP_SECONDS = 60
const TEMPORARY_SECONDS = 3600

/** A file that is durable, but has not been kept yet, and where its bytes are. */
export type TemporaryFile = Measures & { id: string, stage: WrittenStage }

/** A file that is complete, and what its form says about it. */
export type GivenUpload = TemporaryFile & { filename: string, description: string, visibility: Visibility }

/** How an upload is kept. */
export interface KeepOptions {
  /** Under what the result is stored. */
  once?: ResultKey | undefined
  /** What the transaction of its record does first. */
  inTransaction?: ((trx: Database, uploadId: string) => Promise<void>) | undefined
}

export type Storage = Awaited<ReturnType<typeof createStorage>>

/** Stores uploads: their bytes in a storage backend, their records in the database (contract 5). */
export async function createStorage (core: Core, scanner: Scanner) {
  const { lifecycle: { log }, database: { db, newId, atStart }, telemetry: { batch, metrics }, options } = core
  const { schema } = options
  const backend = await openBackend({ ...options, metrics })
  const quota = createQuota(core)
  const installation = atStart.installation ?? await installationOf(db, schema)
  await backend.claim(installation).catch((error: unknown) => {
    backend.close()
    throw error
  })
  const read = batchCalls((ids: string[]) => findUploads(db, ids), {
    timeoutMs: options.deadlines.batch, telemetry: batch('uploads.read'),
  })
  // A network can keep what it has taken for as long as it likes, by reading slowly.
  const readers = backend.maxReaders === undefined
    ? undefined
    : new ClientQuota({
      perNetwork: backend.maxReaders / 4, total: backend.maxReaders, Exceeded: Overloaded,
    })
  let background = Promise.resolve()
  const receiving = new Set<Promise<unknown>>()
  const closing = new AbortController()
  // The published files whose record is not written yet, because another node writes one under the same key, and may
  // fail.
  const waiting = new Set<string>()

  /** Runs a job in the background, after those before it. The app only closes when all have ended. */
  function later (job: () => Promise<void>): void {
    background = background.then(job)
  }

  // A file that cannot be removed now is left to a later sweep.
  async function tryRemove (stage: Stage, id: string): Promise<boolean> {
    try {
      await backend.remove(stage, id)
      return true
    } catch (error) {
      log.error({ err: error }, 'An upload could not be removed')
      return false
    }
  }

  async function writeAs (
    stage: WrittenStage, bytes: AsyncIterable<Uint8Array>, limit: SizeLimit = quota.usual
  ): Promise<TemporaryFile> {
    const id = newId()
    try {
      return { id, stage, ...await measure(bytes, limit, (measured) => backend.write(id, measured, stage)) }
    } catch (error) {
      await tryRemove(stage, id)
      throw error
    }
  }

  async function readPart (id: string, size: number): Promise<Readable> {
    if (size === 0) return Readable.from([])
    const bytes = await backend.readPart(id)
    if (!bytes) throw new Error(`A part of an upload is missing: ${id}`)
    return exactly(bytes, size)
  }

  /**
   * Removes the files and records of deleted users: one batch now, the rest in the background. Never throws: failures
   * are logged and left to the next sweep.
   */
  async function sweep (): Promise<void> {
    try {
      const swept = await deleteOwnerlessUploads(db, SWEEP_BATCH_SIZE, (id) => tryRemove('published', id))
      if (swept === SWEEP_BATCH_SIZE && !closing.signal.aborted) later(sweep)
    } catch (err) {
      log[isConsequence(err) ? 'debug' : 'error']({ err }, 'Uploads of deleted users could not be removed')
    }
  }

  // For uploads that were deleted while a backup read them, by SQL, or by a node that was killed before it removed the
  // files.
  purgeRegularly(core.lifecycle, 'files of deleted uploads', SWEEP_SECONDS, async () => {
    await sweep()
    return 0
  })

  // For those of nodes that were killed.
  purgeRegularly(core.lifecycle, 'temporary files of uploads', TEMPORARY_SECONDS, async () => {
    try {
      for await (const files of backend.listOld('temporary', STRAY_AFTER_MS + backend.maxPauseMs, closing.signal)) {
        await Promise.all(files.map(({ id }) => tryRemove('temporary', id)))
      }
    } catch (error) {
      if (!closing.signal.aborted) throw error
    }
    return 0
  })

  /** Logs the number of stray files. */
  async function checkFiles (): Promise<void> {
    try {
      await reportStrays()
    } catch (err) {
      log[isConsequence(err) ? 'debug' : 'warn']({ err }, 'The check of the upload folder was not completed')
    }
  }

  // Stray files are never removed here, because their record may be in another database or missing in a restored backup
  // (contract 5.5).
  async function reportStrays (): Promise<void> {
    if (await backend.isShared(installation)) {
      return log.warn(
        { folder: backend.location }, 'Stray files are not counted, because several databases use the upload folder'
      )
    }
    let [files, bytes] = [0, 0]
    for await (const strays of listStrayFiles(db, backend, closing.signal)) {
      files += strays.length
      bytes += strays.reduce((sum, { size }) => sum + size, 0)
    }
    if (files === 0) return
    log.warn(
      { folder: backend.location, files, bytes },
      `Stored files have no record. They are kept; "${PROGRAM} uploads clean" removes them`
    )
  }

  return {
    quota,
    sweep,

    /**
     * Runs what stores the body of a request. The app only closes, and its database, when it has ended: what arrived of
     * a body that the end of the node cuts off is then kept or removed, as of any other.
     */
    async receive<Result> (job: () => Promise<Result>): Promise<Result> {
      const running = job()
      receiving.add(running)
      try {
        return await running
      } finally {
        receiving.delete(running)
      }
    },

    /**
     * Writes a file in constant memory and syncs it. If it throws, it leaves no file: the error of the limit,
     * `StorageFull`, `StorageFailed`, or the error with which `bytes` ends.
     */
    write: (bytes: AsyncIterable<Uint8Array>, limit?: SizeLimit): Promise<TemporaryFile> =>
      // Temporary bytes may be where nobody can read them, also no scanner.
      writeAs(scanner.isOn ? 'part' : 'temporary', bytes, limit),

    /** Writes a part of an upload durably. Does what `write` does otherwise. */
    writePart: (bytes: AsyncIterable<Uint8Array>, limit?: SizeLimit): Promise<TemporaryFile> =>
      writeAs('part', bytes, limit),

    /** Returns the bytes of parts, one after the other. Throws if one is missing or has another size. */
    async * readParts (parts: readonly UploadPart[]): AsyncGenerator<Uint8Array> {
      for (const [id, size] of parts) yield * await readPart(id, size) as AsyncIterable<Uint8Array>
    },

    /** Removes a part and returns whether it no longer exists. */
    removePart: (id: string): Promise<boolean> => tryRemove('part', id),

    /**
     * Removes parts that are older than an hour and have no record: those of nodes that were killed, and of users or
     * databases that are gone.
     * @param listUnrecorded returns those of the ids that no record has
     */
    async sweepParts (listUnrecorded: (ids: string[]) => Promise<string[]>): Promise<void> {
      const forMs = await backend.isShared(installation) ? SHARED_PARTS_AFTER_MS : STRAY_AFTER_MS
      try {
        for await (const parts of backend.listOld('part', forMs + backend.maxPauseMs, closing.signal)) {
          const stray = await listUnrecorded(parts.map(({ id }) => id))
          await Promise.all(stray.map((id) => tryRemove('part', id)))
        }
      } catch (error) {
        if (!closing.signal.aborted) throw error
      }
    },

    /**
     * Has a file scanned, moves it to the stored files and writes its record, without which nobody can read it: every
     * upload becomes readable here. Resolves when both are durable. Throws what a scan throws, `StorageFull`,
     * `StorageFailed`, `InvalidToken` or `QuotaExceeded`: `discard` the file then, or `KeyTaken`: call it again, or
     * `discard`.
     *
     * @param caller the uploader, a user, who is asked again right before the record is written
     */
    async keep (
      { stage, visibility, ...file }: GivenUpload, caller: Caller, { once, inTransaction }: KeepOptions = {}
    ): Promise<void> {
      const { id, size } = file
      const userId = caller.getActor().id
      const record = { ...file, userId, isPrivate: visibility === 'private' }
      if (!waiting.has(id)) await scanner.scan({ ...file, visibility, userId }, caller, () => readPart(id, size))
      try {
        if (!waiting.has(id)) await backend.publish(id, stage)
        await caller.confirm()
        const token = caller.token!
        if (inTransaction) {
          await db.transaction().execute(async (trx) => {
            await inTransaction(trx, id)
            await insertUpload(trx, record, quota.ofStatement, token, once)
          })
        } else {
          await insertUpload(db, record, quota.ofStatement, token, once)
        }
        waiting.delete(id)
      } catch (error) {
        if (error instanceof KeyTaken) {
          waiting.add(id)
          throw error
        }
        waiting.delete(id)
        // If the database did not respond, the record may still be committed, so the file stays. If it is not
        // committed, the stray file is reported at the next start.
        if (!isUndecided(error)) await tryRemove('published', id)
        throw error
      }
    },

    /** Removes a file that is not kept. */
    async discard ({ id, stage }: TemporaryFile): Promise<void> {
      await tryRemove(stage, id)
      if (waiting.delete(id)) await tryRemove('published', id)
    },

    /** Returns the record of an upload, or undefined if it does not exist. */
    find: (id: string): Promise<UploadRow | undefined> => read(id),

    /**
     * Returns the bytes of an upload, which are as many as its record says, or a range of them, for a client of these
     * networks. Throws `UploadNotFound`, and `Overloaded` if the storage has too many readers, or a quarter of them
     * from one of the networks.
     */
    async open (
      { id, size }: { id: string, size: number }, networks: readonly Network[],
      range: ByteRange = { start: 0, end: size - 1 }
    ): Promise<Readable> {
      if (size === 0) return Readable.from([])
      const leave = readers?.take(networks)
      let bytes: Readable | undefined
      try {
        bytes = await backend.read(id, { ...range, size })
      } finally {
        if (!bytes) leave?.()
      }
      if (bytes) return exactly(bytes, range.end - range.start + 1).once('close', () => leave?.())
      log.error({ id }, 'The file of an upload is missing')
      throw new UploadNotFound()
    },

    /** Checks the storage, in the background. */
    start (): void {
      later(checkFiles)
    },

    /**
     * Returns an address at which anybody can read the bytes of an upload for a while, without this node, if the
     * options say so and the storage has such addresses.
     */
    addressOf: async (id: string, headers: AddressHeaders): Promise<string | undefined> =>
      backend.addressOf?.(id, headers),

    async close (): Promise<void> {
      closing.abort()
      await background
      await Promise.allSettled(receiving)
      backend.close()
    },
  }
}
