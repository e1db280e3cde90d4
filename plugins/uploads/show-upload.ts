import type { UploadLinkRow } from '../../db/uploads/upload-links.ts'
import type { UploadRow } from '../../db/uploads/uploads.ts'
import { createEntityTag } from '../../schema/http/entity-tag.ts'
import type { UsherUpload, UsherUploadLink } from '../../schema/options/usher.ts'
import type { Visibility } from '../../schema/uploads/upload.ts'

const tagOf = createEntityTag('upload 1 application/json')

/** Returns the entity tag of the record of an upload, which is the same for all of its readers. */
export const tagOfUpload = ({ rowVersion }: Pick<UploadRow, 'rowVersion'>): string => tagOf(rowVersion)

export const visibilityOf = (isPrivate: boolean): Visibility => isPrivate ? 'private' : 'public'

/**
 * Returns an upload as all surfaces show it.
 * @param base the address of all uploads
 */
export function showUpload (
  { id, userId, filename, mediaType, size, sha256, description, isPrivate, createdAt }: UploadRow, base: string
): UsherUpload {
  return {
    id,
    fileUrl: `${base}/${id}`,
    userId: userId!,
    filename,
    mediaType,
    size: Number(size),
    sha256,
    description,
    visibility: visibilityOf(isPrivate),
    createdAt: new Date(createdAt),
  }
}

/** Returns a link as all surfaces show it. */
export const showLink = (
  { id, name, createdAt, expiresAt, createdBy, keyId, keyName }: UploadLinkRow
): UsherUploadLink =>
  ({ id, name, createdAt: new Date(createdAt), expiresAt: new Date(expiresAt), createdBy, keyId, keyName })

/** Returns the address that serves an upload without a token. The secret is in the query, which nodes do not log. */
export const urlOfLink = (base: string, uploadId: string, secret: string): string =>
  `${base}/${uploadId}?link=${secret}`
