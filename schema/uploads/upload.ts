import { Type, type Static } from '@sinclair/typebox'
import { content } from '../http/reply.ts'
import { pageQuery } from '../http/params.ts'
import { block, Id, Instant, line, notNull } from '../strings/text.ts'
import { defineError } from '../http/errors.ts'

export const UploadNotFound = defineError('UPLOAD_NOT_FOUND', 'Upload not found', 404)
export const QuotaExceeded = defineError('QUOTA_EXCEEDED', 'This upload would exceed your storage quota', 413)
export const StorageFull = defineError('STORAGE_FULL', 'There is no space for the file', 507)
export const StorageFailed = defineError('STORAGE_FAILED', 'The file cannot be stored now', 507)

export const StorageUnavailable = defineError('STORAGE_UNAVAILABLE', 'The storage of files is unavailable, try again', 503)

// What a scan says about a file (contract 23.3).
export const MalwareFound = defineError('MALWARE_FOUND', 'The file has malware and was rejected', 422)
export const TooLargeToScan = defineError('TOO_LARGE_TO_SCAN', 'The file is too large to be scanned for malware', 413)
export const ScanUnavailable = defineError('SCAN_UNAVAILABLE', 'The file cannot be scanned now, try again', 503)

/** Who may read an upload: whoever the policy lets read uploads, or the owner and whom it lets read private ones. */
export type Visibility = 'public' | 'private'

const ofVisibility = {
  type: 'string',
  enum: ['public', 'private'],
  description: 'Who may download the file: `public` is everybody, `private` the owner, admins and holders of a link',
}
const Visibility = Type.Unsafe<Visibility>(ofVisibility)

const file = { contentMediaType: 'application/octet-stream', description: 'The file' }
const description = block({ maxLength: 2000, description: 'What the file is', examples: ['A greeting'] })

/** A body with bytes of a file, for the API reference. */
export const UploadFile = Type.Optional(Type.String({ ...file, description: 'Bytes of the file' }))

/** The form of POST /api/uploads (contract 5.1), for the API reference. */
export const UploadForm = Type.Object({
  file: Type.String(file),
  description,
  visibility: Type.Optional(Type.Unsafe<Visibility>({ ...ofVisibility, default: 'public' })),
}, { title: 'UploadForm' })

/** The fields that are read from the form, for their validation. */
export const UploadInput = Type.Object({
  file: Type.Unknown(file),
  filename: Type.Optional(line({ maxLength: 255 })),
  description,
  visibility: Type.Optional(Visibility),
})

/**
 * The maximum number of bytes that is read of a description. 2,000 characters never have more, so a description that is
 * cut off here is too long in any case.
 */
export const MAX_DESCRIPTION_BYTES = 8192

const members = {
  fileUrl: Type.String({ description: 'The address of the bytes; absolute if the public URL is set' }),
  id: Id,
  filename: Type.String({ description: 'The name of the file, without a path' }),
  mediaType: Type.String({ description: 'Found out from the bytes' }),
  size: Type.Integer({ description: 'Size in bytes' }),
  sha256: Type.String({ description: 'Hash of the bytes, hexadecimal' }),
  description: Type.String(),
  visibility: Visibility,
}

/** The response to an upload. */
export const Upload = Type.Object(members, { title: 'Upload', description: 'The file and its record are stored' })

/** The record of an upload (contract 13.1). */
export const UploadRecord = Type.Object({
  ...members,
  userId: Type.String({ description: 'The id of the owner' }),
  createdAt: Instant,
}, { title: 'UploadRecord', description: 'An upload, without its bytes' })

/** The body of PATCH /api/uploads/{id} (contract 13.1): the members to change. Null is not a value of any of them. */
export const PatchUpload = Type.Partial(Type.Object({
  description: notNull(description),
  filename: notNull(line({ maxLength: 255, description: 'A path is cut off' })),
  visibility: notNull(Visibility),
}), { title: 'PatchUpload', examples: [{ description: 'A greeting' }] })

export type PatchUpload = Static<typeof PatchUpload>

/** The query of GET /api/uploads (contract 13.1). */
export const ListUploads = Type.Object({
  user: Type.Optional(line({
    description: 'Only uploads of this user, or `all` for those of every user. By default your own. ' +
      'Only an admin may name another user',
  })),
  ...pageQuery('Uploads'),
})

/** The response of GET /api/uploads. */
export const UploadList = Type.Array(UploadRecord, { description: 'Uploads, newest first' })

const quota = (what: string) => Type.Union(
  [Type.Integer(), Type.Null()], { description: `How many ${what} they may take; null if there is no limit` }
)

/** The response of GET /api/uploads/usage (contract 13.4). */
export const UploadUsage = Type.Object({
  bytes: Type.Integer({ description: 'Bytes that the uploads of the actor take' }),
  files: Type.Integer({ description: 'How many there are' }),
  quotaBytes: quota('bytes'),
  quotaFiles: quota('files'),
}, { title: 'UploadUsage', description: 'What the uploads of the actor take, and may take' })

/** The responses of GET /api/uploads/{id} (contract 5.2): the bytes, a range of them, or 304. */
const bytes = {
  '*/*': Type.String({ contentMediaType: 'application/octet-stream', description: 'In the media type of the file' }),
}
export const UploadBytes = content('The bytes', bytes)
export const UploadElsewhere = Type.Null({
  description: 'The bytes are at `Location` for some seconds, if the option `s3.redirectSeconds` is set',
})
export const UploadRange = content('A range of the bytes', bytes)

/**
 * Returns the name that a client gave a file, without the part up to the last separator, since a name must never become
 * part of a path. Returns `file` if no name remains.
 */
export function basename (given: string | undefined): string {
  const name = given?.split(/[/\\]/).at(-1) ?? ''
  return /^\s*\.*\s*$/.test(name) ? 'file' : name
}

// Types that a browser shows without executing anything. SVG and HTML are missing because they may contain scripts, PDF
// because no browser shows it in a sandbox.
const inline = new Set(['image/png', 'image/jpeg', 'image/gif', 'image/webp', 'image/avif', 'text/plain'])

/** Returns whether a browser may show files of this type. All other types are sent as attachments (contract 5.2). */
export function isShown (mediaType: string): boolean {
  return inline.has(mediaType)
}
