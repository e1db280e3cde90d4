import { Type } from '@sinclair/typebox'
import { batchLists } from '../../db/batching/batching.ts'
import { deleteUpload, listUploads, type ListUploadsQuery, type UploadRow } from '../../db/uploads/uploads.ts'
import type { HookUpload } from '../../schema/options/hooks.ts'
import type { ResultKey } from '../../schema/http/idempotency.ts'
import { line } from '../../schema/text/text.ts'
import { basename, UploadInput, UploadNotFound } from '../../schema/uploads/upload.ts'
import { createParser } from '../../schema/http/validator.ts'
import type { Caller } from '../auth/caller.ts'
import type { Core } from '../core.ts'
import type { HookRunner } from '../hooks/index.ts'
import type { Storage, TemporaryFile } from './storage.ts'

const parse = createParser(
  Type.Object({ filename: line({ maxLength: 255 }), description: UploadInput.properties.description })
)

/** A file that is complete, and what its form says about it. */
export type GivenUpload = TemporaryFile & { filename: string, description: string }

interface Dependencies extends Core {
  storage: Storage
  hooks: HookRunner
}

/** Keeps, lists and deletes uploads. REST, GraphQL and the host call the same functions. */
export function createUploads (
  { database: { db }, telemetry: { batch }, options: { deadlines }, storage, hooks }: Dependencies
) {
  const list = batchLists((query: ListUploadsQuery) => listUploads(db, query), {
    timeoutMs: deadlines.batch, telemetry: batch('uploads.list'),
  })

  async function askHook (
    caller: Caller, { filename, description, size, sha256, mediaType }: GivenUpload
  ): Promise<{ filename: string, description: string }> {
    const input: HookUpload = { filename, description, size, sha256, mediaType, userId: caller.getActor().id }
    const wanted = await hooks.change('beforeUploadKeep', input, caller, (returned) => {
      const texts = parse(returned)
      return { ...input, description: texts.description, filename: basename(texts.filename) }
    })
    return { filename: wanted.filename, description: wanted.description }
  }

  return {
    /**
     * Keeps a file for the caller, who is a user. Returns the upload. Throws what a hook of the host throws,
     * `StorageFull`, `StorageFailed`, `QuotaExceeded`, `InvalidToken` and, if the key `once` is taken, `KeyTaken`;
     * discard the file then, unless you call it again.
     */
    async keep (caller: Caller, given: GivenUpload, once?: ResultKey): Promise<GivenUpload> {
      caller.authorize('uploads:create')
      const upload = hooks.has('beforeUploadKeep') ? { ...given, ...await askHook(caller, given) } : given
      const { id: userId } = caller.getActor()
      await storage.keep({ ...upload, userId }, { token: caller.token!, confirm: () => caller.confirm() }, once)
      return upload
    },

    /** Returns the record of an upload. Throws `Unauthenticated`, `Forbidden`, `UploadNotFound`. */
    async get (caller: Caller, id: string): Promise<UploadRow> {
      const upload = await storage.find(id)
      // A reader who may not read the upload does not learn whether it exists.
      caller.authorize('uploads:read', upload?.userId ?? undefined)
      if (!upload) throw new UploadNotFound()
      return upload
    },

    /** Returns a page of the uploads of a user or of all users, newest first. */
    list,

    /**
     * Deletes an upload: nobody can read it any more, and its file is removed. Throws `UploadNotFound`, `InvalidToken`.
     */
    async delete (caller: Caller, id: string): Promise<void> {
      const upload = await storage.find(id)
      if (!upload || !caller.allows('uploads:delete', upload.userId ?? undefined)) {
        caller.requireIdentity()
        throw new UploadNotFound()
      }
      await caller.confirm()
      const { actor, token } = caller
      if (!await deleteUpload(db, upload.id, actor && { id: actor.id, token: token! })) throw new UploadNotFound()
      await storage.sweep()
    },
  }
}
