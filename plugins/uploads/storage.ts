import { join } from 'node:path'
import type { FastifyInstance } from 'fastify'
import fp from 'fastify-plugin'
import { v7 as uuid } from 'uuid'
import { isUndecided } from '../../db/driver/circuit-breaker.ts'
import { batchCalls } from '../../db/batching.ts'
import { deleteOwnerlessUploads, findUploads, insertUpload, installationOf, type NewUpload } from '../../db/uploads.ts'
import { StorageFull, UploadNotFound } from '../../schema/errors.ts'
import { claimFolder, isOfDisk, listOld, move, remove, writeDurably, type WrittenFile } from './files.ts'
import { listStrayFiles, STRAY_AFTER_MS } from './stray-files.ts'

const RECORDS_A_SWEEP = 100

/** A file that is durable, but not kept yet. */
export type TemporaryFile = WrittenFile & { id: string }

declare module 'fastify' {
  interface FastifyInstance {
    usherStorage: Awaited<ReturnType<typeof createStorage>>
  }
}

async function createStorage (app: FastifyInstance) {
  const { log, usherDatabase: { db }, usherOptions: { schema, uploadsDir, uploadMaxBytes } } = app
  const folder = await claimFolder(uploadsDir, await installationOf(db, schema))
  const read = batchCalls((ids: string[]) => findUploads(db, ids))
  const temporary = (id: string) => join(folder.tmp, id)
  const kept = (id: string) => join(folder.files, id)
  let background = Promise.resolve()
  const closing = new AbortController()

  /** Goes on with something after the answer; the app closes only when it has ended. */
  function later (job: () => Promise<void>): void {
    background = background.then(job)
  }

  // What cannot be removed now is left to the next sweep.
  async function tryRemove (path: string): Promise<boolean> {
    try {
      await remove(path)
      return true
    } catch (error) {
      log.error({ err: error }, 'An upload could not be removed')
      return false
    }
  }

  /**
   * Removes the files and records of deleted users: a batch of them at once, what is left in the background.
   * Never throws: what fails is logged, and is the next sweep's.
   */
  async function sweep (): Promise<void> {
    try {
      const swept = await deleteOwnerlessUploads(db, RECORDS_A_SWEEP, (id) => tryRemove(kept(id)))
      if (swept === RECORDS_A_SWEEP && !closing.signal.aborted) later(sweep)
    } catch (error) {
      log.error({ err: error }, 'Uploads of deleted users could not be swept away')
    }
  }

  /** Removes the temporary files of nodes that were killed, and reports stored files that have no record. */
  async function checkFolder (): Promise<void> {
    try {
      for await (const ids of listOld(folder.tmp, STRAY_AFTER_MS, closing.signal)) await Promise.all(ids.map((id) => tryRemove(temporary(id))))
      await reportStrays()
    } catch (error) {
      log.warn({ err: error }, 'The check of the upload folder has ended early')
    }
  }

  // A stored file without a record is never removed here: the database may have been restored from a backup (contract 5.5).
  async function reportStrays (): Promise<void> {
    if (folder.shared) return log.warn({ uploadsDir }, 'Several databases share this folder: files without a record are not looked for')
    let [files, bytes] = [0, 0]
    for await (const strays of listStrayFiles(db, folder.files, closing.signal)) {
      files += strays.length
      bytes += strays.reduce((sum, { size }) => sum + size, 0)
    }
    if (files > 0) log.warn({ folder: folder.files, files, bytes }, 'Stored files have no record. They are kept; "usher uploads clean" removes them')
  }

  return {
    sweep,

    /** The folder of the files, each named by its id. */
    folder: folder.files,

    /**
     * Writes a file and syncs it, in constant memory. Throws `PayloadTooLarge`, `StorageFull`, and whatever the
     * bytes end with; nothing is left then.
     */
    async write (bytes: AsyncIterable<Uint8Array>): Promise<TemporaryFile> {
      const id = uuid()
      try {
        return { id, ...await writeDurably(temporary(id), bytes, uploadMaxBytes) }
      } catch (error) {
        await tryRemove(temporary(id))
        throw isOfDisk(error) ? new StorageFull({ cause: error }) : error
      }
    },

    /**
     * Keeps a written file, with its record: both durable. Throws `StorageFull`, `InvalidToken`; the file is gone then.
     *
     * @param confirm runs right before the record is written, and throws if the upload must not be kept any more
     */
    async keep (upload: NewUpload, confirm: () => Promise<void>): Promise<void> {
      try {
        await move(temporary(upload.id), folder.files)
        await confirm()
        await insertUpload(db, upload)
      } catch (error) {
        // Where no answer came, the record may yet be committed; a file that stays without one is reported at the next start.
        if (!isUndecided(error)) await tryRemove(kept(upload.id))
        throw isOfDisk(error) ? new StorageFull({ cause: error as Error }) : error
      }
    },

    /** Gives up a written file. */
    async discard ({ id }: TemporaryFile): Promise<void> {
      await tryRemove(temporary(id))
    },

    /** The record of an upload. Throws `UploadNotFound`. */
    async get (id: string) {
      const upload = await read(id)
      if (!upload) throw new UploadNotFound()
      return upload
    },

    /** Sweeps and checks the folder in the background, as a node does on start. */
    start (): void {
      later(sweep)
      later(checkFolder)
    },

    async close (): Promise<void> {
      closing.abort()
      await background
    },
  }
}

/** Uploads on the disk and in the database (contract 5). */
export default fp(async function storage (app) {
  app.decorate('usherStorage', await createStorage(app))
  const { start, close } = app.usherStorage
  app.addHook('onReady', async () => start())
  app.addHook('onClose', close)
}, { name: 'usher-storage', dependencies: ['usher-database'] })
