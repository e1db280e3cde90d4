import { createHash, randomBytes } from 'node:crypto'
import { batchCalls } from '../../db/batching/batching.ts'
import {
  areLinksLive, deleteUploadLink, findUploadLinks, insertUploadLink, listUploadLinks,
  type LiveUploadLink, type UploadLinkRow,
} from '../../db/uploads/upload-links.ts'
import type { UploadRow } from '../../db/uploads/uploads.ts'
import { createParser } from '../../schema/http/validator.ts'
import { CreateUploadLink, LinkNotFound } from '../../schema/uploads/upload-link.ts'
import type { Audit } from '../audit/index.ts'
import type { Caller } from '../access/caller.ts'
import type { Core } from '../core.ts'
import { writerOf } from './writer.ts'

const parse = createParser(CreateUploadLink)
// 256 bits in base64url.
const isSecret = (text: string): boolean => /^[\w-]{43}$/.test(text)

/** A link that was just created, with the secret, which is stored nowhere. */
export type CreatedLink = UploadLinkRow & { secret: string }

export type UploadLinks = ReturnType<typeof createUploadLinks>

interface Dependencies extends Core {
  audit: Audit
  /** Returns an upload whose links the caller may create, see and revoke. Throws if there is none. */
  findShared (caller: Caller, id: string): Promise<UploadRow>
}

/** Creates, lists, revokes and finds links that serve an upload without a token (contract 13.2). */
export function createUploadLinks (dependencies: Dependencies) {
  const { database: { db }, telemetry: { batch }, options: { deadlines }, audit, findShared } = dependencies
  const timeoutMs = deadlines.batch
  const read = batchCalls((hashes: string[]) => findUploadLinks(db, hashes), {
    timeoutMs, telemetry: batch('upload-links.read'),
  })

  return {
    /**
     * Creates a link. Throws `UploadNotFound`, `Unauthenticated`, `Forbidden`, `InvalidInput`, `TooManyLinks`,
     * `InvalidToken`.
     */
    async create (caller: Caller, uploadId: string, given: CreateUploadLink): Promise<CreatedLink> {
      const upload = await findShared(caller, uploadId)
      const { seconds, name = '' } = parse(given)
      await caller.confirm()
      const secret = randomBytes(32).toString('base64url')
      const entry = audit.entry(caller, { action: 'upload-link.create', userId: upload.userId! })
      const link = await insertUploadLink(
        db, upload, { name, secretHash: hash(secret), seconds }, writerOf(caller), entry
      )
      return { ...link, secret }
    },

    /**
     * Returns the links of an upload, newest first. Throws `UploadNotFound`, `Unauthenticated`, `Forbidden`,
     * `InvalidToken`.
     */
    async list (caller: Caller, uploadId: string): Promise<UploadLinkRow[]> {
      const { id } = await findShared(caller, uploadId)
      const links = await listUploadLinks(db, id)
      await caller.confirm()
      return links
    },

    /**
     * Revokes a link: it works nowhere any more, and stops the downloads that it serves. Throws `UploadNotFound`,
     * `LinkNotFound`, `Unauthenticated`, `Forbidden`, `InvalidToken`.
     */
    async revoke (caller: Caller, uploadId: string, id: string): Promise<void> {
      const upload = await findShared(caller, uploadId)
      await caller.confirm()
      const entry = audit.entry(caller, { action: 'upload-link.revoke', userId: upload.userId! })
      if (!await deleteUploadLink(db, upload.id, id, writerOf(caller), entry)) throw new LinkNotFound()
    },

    /** Returns the link with a secret, or undefined if there is none that works. */
    find: async (secret: string): Promise<LiveUploadLink | undefined> =>
      isSecret(secret) ? read(hash(secret).toString('hex')) : undefined,

    /** Returns whether a link still works. */
    isLive: batchCalls((ids: string[]) => areLinksLive(db, ids), { timeoutMs }),
  }
}

const hash = (secret: string): Buffer => createHash('sha256').update(secret).digest()
