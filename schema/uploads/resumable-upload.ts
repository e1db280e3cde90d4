import { isUtf8 } from 'node:buffer'
import { Type, type Static } from '@sinclair/typebox'
import { defineError, InvalidInput } from '../http/errors.ts'
import { createParser } from '../http/validator.ts'
import { block, Id, Instant, line } from '../strings/text.ts'
import { basename, UploadInput, UploadRecord, type Visibility } from './upload.ts'

/** The version of tus that is spoken (https://tus.io/protocols/resumable-upload). */
export const TUS_VERSION = '1.0.0'
export const TUS_EXTENSIONS = 'creation,creation-with-upload,expiration,termination,checksum'
export const CHECKSUM_ALGORITHMS = ['sha1', 'sha256'] as const
/** The media type of the bytes of a PATCH. */
export const OFFSET_TYPE = 'application/offset+octet-stream'

export const TusVersionUnsupported = defineError(
  'TUS_VERSION_UNSUPPORTED', `Tus-Resumable must be ${TUS_VERSION}`, 412
)
export const UploadOffsetConflict = defineError(
  'UPLOAD_OFFSET_CONFLICT', 'The upload has another offset: ask for it with HEAD, and continue there', 409
)
export const UploadTakenOver = defineError(
  'UPLOAD_TAKEN_OVER', 'Another request continues this upload now: ask for its offset with HEAD', 423
)
export const TooManyUnfinishedUploads = defineError(
  'TOO_MANY_UNFINISHED_UPLOADS', 'There are too many unfinished uploads: finish or delete some, or try again later', 429
)
export const ChecksumMismatch = defineError(
  'CHECKSUM_MISMATCH', 'The bytes do not have the checksum of Upload-Checksum: send them again', 460
)

const MAX_METADATA_BYTES = 16 * 1024

const { visibility } = UploadInput.properties
const parse = createParser(Type.Object({
  filename: Type.Optional(line({ maxLength: 255 })),
  description: Type.Optional(block({ maxLength: 2000 })),
  visibility,
}))

/** What `Upload-Metadata` says of an upload. */
export interface ResumableMetadata { filename: string, description: string, visibility: Visibility }

/**
 * Returns what the field `Upload-Metadata` says. Keys that Usher does not know are ignored, and so is `filetype`,
 * because the media type is found out from the bytes. Throws `InvalidInput`.
 */
export function readMetadata (field: string): ResumableMetadata {
  if (field.length > MAX_METADATA_BYTES) throw new InvalidInput(`Upload-Metadata must not exceed ${MAX_METADATA_BYTES} bytes`)
  const values = new Map<string, string>()
  const problems: string[] = []
  for (const pair of field.trim() === '' ? [] : field.split(',')) {
    const [key = '', value = '', ...rest] = pair.trim().split(' ')
    if (key === '' || rest.length > 0) problems.push('Upload-Metadata must be pairs of a key and a value in Base64')
    else if (values.has(key)) problems.push(`Upload-Metadata must have ${name(key)} once`)
    else values.set(key, value)
  }
  const texts: Record<string, string> = {}
  for (const key of ['filename', 'description', 'visibility']) {
    const value = values.get(key)
    const text = value === undefined ? undefined : decode(value)
    if (value !== undefined && text === undefined) problems.push(`${key} must be UTF-8 in Base64`)
    if (text !== undefined) texts[key] = text
  }
  if (problems.length > 0) throw new InvalidInput(...new Set(problems))
  const { filename, description = '', visibility = 'public' } = parse(texts)
  return { filename: basename(filename), description, visibility }
}

// A key may be anything that a header may have.
const name = (key: string): string => /^[\w.-]{1,50}$/.test(key) ? key : 'each key'

function decode (base64: string): string | undefined {
  if (!isBase64(base64)) return
  const bytes = Buffer.from(base64, 'base64')
  return isUtf8(bytes) ? bytes.toString() : undefined
}

const isBase64 = (text: string): boolean => text.length % 4 === 0 && /^[A-Za-z0-9+/]*={0,2}$/.test(text)

/** Returns the number of a header. Throws `InvalidInput` if it is none, negative or too large to be exact. */
export function readNumber (header: string, field: unknown): number {
  const value = typeof field === 'string' && /^\d{1,16}$/.test(field) ? Number(field) : NaN
  if (!Number.isSafeInteger(value)) throw new InvalidInput(`${header} must be a number of bytes`)
  return value
}

/** A checksum that bytes must have. */
export interface Checksum { algorithm: typeof CHECKSUM_ALGORITHMS[number], digest: Buffer }

const DIGEST_BYTES = { sha1: 20, sha256: 32 }

/** Returns the checksum of the field `Upload-Checksum`; undefined without the field. Throws `InvalidInput`. */
export function readChecksum (field: unknown): Checksum | undefined {
  if (field === undefined) return
  const [given, text = '', ...rest] = typeof field === 'string' ? field.split(' ') : []
  const algorithm = CHECKSUM_ALGORITHMS.find((one) => one === given)
  const digest = Buffer.from(isBase64(text) ? text : '', 'base64')
  if (!algorithm || rest.length > 0 || digest.length !== DIGEST_BYTES[algorithm]) {
    throw new InvalidInput(`Upload-Checksum must be ${CHECKSUM_ALGORITHMS.join(' or ')}, a space, and the checksum in Base64`)
  }
  return { algorithm, digest }
}

/** The state of an upload that is resumed (contract 13.5). */
export const ResumableUpload = Type.Object({
  id: Id,
  offset: Type.Integer({ description: 'How many bytes are stored durably' }),
  length: Type.Integer({ description: 'How many bytes it will have' }),
  filename: Type.String(),
  description: Type.String(),
  visibility: UploadRecord.properties.visibility,
  createdAt: Instant,
  expiresAt: Instant,
  upload: Type.Union([UploadRecord, Type.Null()], { description: 'The finished upload, or null' }),
}, { title: 'ResumableUpload', description: 'An upload that arrives in several requests' })

export type ResumableUpload = Static<typeof ResumableUpload>

export const ResumableUploadList = Type.Array(ResumableUpload, { description: 'Unfinished uploads, newest first' })

const header = (description: string) => Type.Optional(Type.String({ description }))
const version = { 'Tus-Resumable': header(`\`${TUS_VERSION}\`; 412 otherwise`) }
const checksum = {
  'Upload-Checksum': header('`sha1` or `sha256`, a space, and the checksum of the body in Base64; 460 if it differs'),
}

/** The headers of the requests, for the reference. The routes read them. */
export const ResumableHeaders = Type.Object(version)
export const CreationHeaders = Type.Object({
  ...version,
  'Upload-Length': header('How many bytes the file has. Required'),
  'Upload-Metadata': header(
    'Pairs of a key, a space and a value in Base64, with commas: `filename`, `description` and `visibility`'
  ),
  ...checksum,
})
export const AppendHeaders = Type.Object({
  ...version, 'Upload-Offset': header('Where the bytes begin: the offset of the upload. Required'), ...checksum,
})
