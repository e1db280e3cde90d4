import type { GeneratedAlways } from 'kysely'

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

/** How many posts a user has created in the hour that began at `since`. */
export interface PostRatesTable {
  user_id: string
  since: Date
  /** A bigint, which is read as text. Includes posts that were rejected. */
  posts: string
}
