import { Type } from '@sinclair/typebox'
import type { NewAuditEntry } from '../../db/audit/audit.ts'
import { batchCalls, batchLists } from '../../db/batching/batching.ts'
import type { StoredResult } from '../../db/idempotency/idempotency.ts'
import type { Page } from '../../db/tables/page.ts'
import type { LiveUploadLink } from '../../db/uploads/upload-links.ts'
import {
  deleteUpload, listUploads, listUploadsOfUsers, restoreChangedUpload, updateUpload, userUploadsKey,
  type ListUploadsQuery, type UploadRow, type UserUploadsKey,
} from '../../db/uploads/uploads.ts'
import { searchUploads, type FoundUploads } from '../../db/uploads/search-uploads.ts'
import type { AuditAction } from '../../schema/audit/audit.ts'
import { permits, type Match } from '../../schema/http/entity-tag.ts'
import { PreconditionFailed } from '../../schema/http/errors.ts'
import type { HookUpload } from '../../schema/options/hooks.ts'
import type { ResultKey } from '../../schema/http/idempotency.ts'
import { line } from '../../schema/strings/text.ts'
import { basename, PatchUpload, UploadInput, UploadNotFound } from '../../schema/uploads/upload.ts'
import { createParser } from '../../schema/http/validator.ts'
import type { Audit } from '../audit/index.ts'
import type { Caller } from '../access/caller.ts'
import type { Core } from '../core.ts'
import type { HookRunner } from '../hooks/index.ts'
import type { Idempotency } from '../idempotency/index.ts'
import { createDownloads } from './downloads.ts'
import { createUploadLinks } from './links.ts'
import { createResumableUploads } from './resumable.ts'
import type { GivenUpload, KeepOptions, Storage } from './storage.ts'
import { writerOf } from './writer.ts'

const { description, visibility } = UploadInput.properties
const parse = createParser(Type.Object({ filename: line({ maxLength: 255 }), description, visibility }))
const parseChanges = createParser(PatchUpload)

// How many rows one statement reads for lists. Their texts may be long.
const MAX_ROWS_PER_READ = 2500

const rowsOf = (key: UserUploadsKey) => Number(key.split(':')[1])

/** What `user` is in a list of the uploads of all users. */
const ALL_USERS = 'all'

/** Which page of uploads is requested. */
export interface ListRequest extends Pick<ListUploadsQuery, 'limit' | 'after'> { user?: string | undefined }

type ChangeAction = 'uploads:update' | 'uploads:delete' | 'uploads:share'

/** How an upload is changed. */
export interface UploadChangeOptions {
  /** The versions that it may have. */
  match?: Match
  /** The key under which the result is stored. */
  once?: ResultKey | undefined
}

interface Dependencies extends Core {
  storage: Storage
  hooks: HookRunner
  audit: Audit
  idempotency: Pick<Idempotency, 'changes'>
}

/** Keeps, lists, changes and deletes uploads. REST, GraphQL and the host call the same functions. */
export function createUploads (dependencies: Dependencies) {
  const {
    database: { db, reads, writeInTime }, telemetry: { batch }, options: { deadlines: { batch: timeoutMs } }, storage,
    hooks, audit, idempotency: { changes: budget },
  } = dependencies
  const listAll = batchLists((query: ListUploadsQuery) => listUploads(reads, query), {
    timeoutMs, telemetry: batch('uploads.list'),
  })
  const listOfUser = batchCalls((keys: UserUploadsKey[]) => listUploadsOfUsers(reads, keys), {
    size: MAX_ROWS_PER_READ, weigh: rowsOf, timeoutMs, telemetry: batch('uploads.of-user'),
  })
  const links = createUploadLinks({
    ...dependencies, findShared: (caller, id) => findFor(caller, 'uploads:share', id),
  })

  async function askHook (
    caller: Caller, { filename, description, visibility, size, sha256, mediaType }: GivenUpload
  ): Promise<Pick<GivenUpload, 'filename' | 'description' | 'visibility'>> {
    const userId = caller.getActor().id
    const input: HookUpload = { filename, description, visibility, size, sha256, mediaType, userId }
    const wanted = await hooks.change('beforeUploadKeep', input, caller, (returned) => {
      const { filename, description, visibility = input.visibility } = parse(returned)
      return { ...input, description, visibility, filename: basename(filename) }
    })
    return { filename: wanted.filename, description: wanted.description, visibility: wanted.visibility }
  }

  /**
   * Keeps a file for the caller, who is a user. Returns the upload. Throws what a hook of the host or a scan throws,
   * `StorageFull`, `StorageFailed`, `QuotaExceeded`, `InvalidToken` and, if the key `once` is taken, `KeyTaken`;
   * discard the file then, unless you call it again.
   */
  async function keep (caller: Caller, given: GivenUpload, options: KeepOptions = {}): Promise<GivenUpload> {
    caller.authorize('uploads:create')
    const upload = hooks.has('beforeUploadKeep') ? { ...given, ...await askHook(caller, given) } : given
    await storage.keep(upload, caller, options)
    return upload
  }

  return {
    keep,
    links,
    resumable: createResumableUploads({ ...dependencies, keep }),
    downloads: createDownloads({ ...dependencies, links }),

    /**
     * Returns the record of an upload. Throws `UploadNotFound`, also for a private one that the caller may not read,
     * `Unauthenticated` or `Forbidden`, which reveal nothing about it, and `InvalidToken`.
     */
    async get (caller: Caller, id: string): Promise<UploadRow> {
      const upload = requireReadable(caller, await storage.find(id))
      await caller.confirm()
      return upload
    },

    /**
     * Returns an upload to download, and the link that serves it if the secret is that of one. Throws what `get`
     * throws.
     * @param identify returns the caller of a request that may not have been identified yet. It is not called for a
     * public upload, and the same is done for a private one and for none
     */
    async getForDownload (
      caller: Caller, id: string, secret: string | undefined, identify: () => Promise<Caller>
    ): Promise<{ upload: UploadRow, link: LiveUploadLink | undefined }> {
      const [upload, link] = await Promise.all([
        storage.find(id), secret === undefined ? undefined : links.find(secret),
      ])
      if (upload && link?.uploadId === upload.id) return { upload, link }
      const reader = upload?.isPrivate === false ? caller : await identify()
      return { upload: requireReadable(reader, upload), link: undefined }
    },

    /**
     * Returns a page of the uploads of a user, of the caller by default, or of all users, newest first. Private ones
     * that the caller may not read are left out. Throws `Unauthenticated`, `Forbidden`, `InvalidToken`.
     */
    async list (caller: Caller, { user, limit, after }: ListRequest): Promise<Page<UploadRow>> {
      const userId = ownerOf(caller, user)
      caller.authorize('uploads:list', { ownerId: userId })
      const query = { limit, after, onlyPublic: !caller.allows('uploads:read-private', { ownerId: userId }) }
      const page = await (userId === undefined
        ? listAll(query, caller.client)
        : listOfUser(userUploadsKey(userId, query), caller.client))
      await caller.confirm()
      return page
    },

    /**
     * Returns a page of the uploads of a user, or of all users, whose names contain a text. Throws what `list` throws.
     */
    async search (caller: Caller, { q, user, limit, after }: ListRequest & { q: string }): Promise<FoundUploads> {
      const userId = ownerOf(caller, user)
      caller.authorize('uploads:list', { ownerId: userId })
      const onlyPublic = !caller.allows('uploads:read-private', { ownerId: userId })
      const page = await searchUploads(reads, { q, userId, limit, after, onlyPublic })
      await caller.confirm()
      return page
    },

    /** Throws `Unauthenticated` or `Forbidden` if the caller may not list these uploads. */
    authorizeList: (caller: Caller, user: string | undefined): void =>
      caller.authorize('uploads:list', { ownerId: ownerOf(caller, user) }),

    /**
     * Throws `Forbidden` or `Unauthenticated` if the caller may read an upload, but not change or delete it. Does
     * nothing if there is no such upload, which the change reports later (contract 1.7).
     */
    async forbid (caller: Caller, action: ChangeAction, id: string): Promise<void> {
      const upload = await storage.find(id)
      if (upload && isVisible(caller, upload, action)) caller.authorize(action, { ownerId: upload.userId! })
    },

    /**
     * Changes the members that are given. Throws `UploadNotFound`, `Unauthenticated`, `Forbidden`, `InvalidInput`,
     * `PreconditionFailed`, `InvalidToken`, and `KeyTaken` if the key `once` is taken.
     */
    async update (
      caller: Caller, id: string, changes: PatchUpload, { match, once }: UploadChangeOptions = {}
    ): Promise<UploadRow> {
      const upload = await findFor(caller, 'uploads:update', id)
      const { filename, description, visibility } = parseChanges(changes)
      const wanted = {
        ...filename !== undefined && { filename: basename(filename) },
        ...description !== undefined && { description },
        ...visibility !== undefined && { isPrivate: visibility === 'private' },
      }
      if (Object.keys(wanted).length === 0) return requireVersion(upload, match)
      if (once) budget.require(caller.getActor().id)
      const entry = entryOf(caller, upload, 'upload.update')
      const updated = await writeInTime(
        (until) => updateUpload(db, upload.id, wanted, writerOf(caller), { until, match, once, entry }), caller
      )
      if (once) budget.of(caller.getActor().id).take(sizeOfResult(updated))
      return updated
    },

    /**
     * Deletes an upload: nobody can read it any more, and its file is removed. Returns its id. Throws what `update`
     * throws.
     */
    async delete (caller: Caller, id: string, { match, once }: UploadChangeOptions = {}): Promise<string> {
      const upload = await findFor(caller, 'uploads:delete', id)
      const entry = entryOf(caller, upload, 'upload.delete')
      await writeInTime(
        (until) => deleteUpload(db, upload.id, writerOf(caller), { until, match, once, entry }), caller
      )
      await storage.sweep()
      return upload.id
    },

    /** Returns an upload again that was changed. Throws `Unauthenticated`, `Forbidden`. */
    restoreChanged (caller: Caller, stored: StoredResult): UploadRow {
      const upload = restoreChangedUpload(stored)
      caller.authorize('uploads:update', { ownerId: upload.userId! })
      return upload
    },

    /** Returns the id again of an upload that was deleted. Throws `Unauthenticated`, `Forbidden`. */
    restoreDeleted (caller: Caller, stored: StoredResult): string {
      const { id, userId } = JSON.parse(stored.result!) as { id: string, userId: string }
      caller.authorize('uploads:delete', { ownerId: userId })
      return id
    },
  }

  // Returns an upload that the caller may change. To whoever may not read it, it does not exist.
  async function findFor (caller: Caller, action: ChangeAction, id: string): Promise<UploadRow> {
    caller.requireIdentity()
    const upload = await storage.find(id)
    if (!upload || !isVisible(caller, upload, action)) throw new UploadNotFound()
    caller.authorize(action, { ownerId: upload.userId! })
    return upload
  }

  // What others do to the files of a user is in the account log. What users do to their own is not.
  function entryOf (caller: Caller, { userId }: UploadRow, action: AuditAction): NewAuditEntry | undefined {
    return caller.actor?.id === userId ? undefined : audit.entry(caller, { action, userId: userId! })
  }
}

// Returns an upload that the caller may read. The error is the same for one that does not exist.
function requireReadable (caller: Caller, upload: UploadRow | undefined): UploadRow {
  const isHidden = upload?.isPrivate && !caller.allows('uploads:read-private', { ownerId: upload.userId! })
  if (!upload || isHidden) {
    caller.authorize('uploads:read')
    throw new UploadNotFound()
  }
  if (!upload.isPrivate) caller.authorize('uploads:read', { ownerId: upload.userId! })
  return upload
}

// Returns whether the caller may know of an upload.
function isVisible (caller: Caller, { isPrivate, userId }: UploadRow, action: ChangeAction): boolean {
  if (isPrivate) return caller.allows('uploads:read-private', { ownerId: userId! })
  return caller.allows('uploads:read', { ownerId: userId! }) || caller.allows(action, { ownerId: userId! })
}

function requireVersion (upload: UploadRow, match: Match): UploadRow {
  if (!permits(match, upload.rowVersion)) throw new PreconditionFailed()
  return upload
}

// Returns the id of the user whose uploads are listed; undefined for those of all users.
const ownerOf = (caller: Caller, user: string | undefined): string | undefined =>
  user === ALL_USERS ? undefined : user?.toLowerCase() ?? caller.actor?.id

// What the result of a change takes besides the texts.
const OTHER_BYTES = 1024

const sizeOfResult = ({ filename, description }: UploadRow): number =>
  Buffer.byteLength(filename) + Buffer.byteLength(description) + OTHER_BYTES
