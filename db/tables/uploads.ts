import type { ColumnType, Generated, GeneratedAlways } from 'kysely'

/** The record of a stored file. Without an owner, the file is no longer served and will be deleted. */
export interface UploadsTable {
  id: string
  user_id: string | null
  filename: string
  media_type: string
  /** Bytes; a bigint, which is read as text. */
  size: ColumnType<string, number, number>
  /** Hexadecimal. */
  sha256: string
  description: string
  /** Whether only the owner, and those whom the policy admits, may read it. */
  is_private: Generated<boolean>
  created_at: Generated<Date>
  /** When the file name was changed last; null if it never was. */
  renamed_at: Generated<Date | null>
  /** Every update changes it; a bigint, which is read as text. */
  row_version: GeneratedAlways<string>
}

/** A link that serves the bytes of an upload without a token. */
export interface UploadLinksTable {
  id: string
  upload_id: string
  /** The owner of the upload. */
  owner_id: string
  /** The user who created it; null if it was the host. */
  created_by: string | null
  /** The API key with which it was created, which may be gone by now; null if it was another way. */
  key_id: string | null
  name: string
  /** SHA-256 of the secret in the link. */
  secret_hash: Uint8Array
  created_at: Generated<Date>
  expires_at: Date
}

/** A part of an upload that is resumed: its id in the storage backend, and its size in bytes. */
export type UploadPart = [id: string, size: number]

/** An upload that arrives in several requests (contract 13.5). It remains for a while once it is finished. */
export interface ResumableUploadsTable {
  id: string
  user_id: string
  /** The networks of the client that has created it, narrowest first. */
  networks: string[]
  /** The field `Upload-Metadata`, as it was sent. */
  metadata: string
  /** How many bytes it will have; a bigint, which is read as text. */
  length: ColumnType<string, number, never>
  /** How many bytes are durable; a bigint, which is read as text. */
  received: ColumnType<string, never, number>
  /** The parts with these bytes, in order. */
  parts: Generated<UploadPart[]>
  /** The request that may add to it. A later request takes its place. */
  writer: ColumnType<string | null, never, string | null>
  /** The upload that it has become. */
  upload_id: ColumnType<string | null, never, string>
  created_at: Generated<Date>
  expires_at: Date
}

/**
 * What the uploads of a user take. Triggers keep it: see `add_upload_usage` in `db/migrations/0001.ts`. A user without
 * a row has not been counted yet.
 */
export interface UploadUsageTable {
  user_id: string
  /** A bigint, which is read as text. */
  bytes: GeneratedAlways<string>
  /** A bigint, which is read as text. */
  files: GeneratedAlways<string>
}
