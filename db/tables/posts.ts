import type { Generated, GeneratedAlways } from 'kysely'

export interface PostsTable {
  id: string
  /**
   * The number of the post in commit order, with gaps; a bigint, which is read as text. See `post_ordered` in
   * `db/migrations/0001.ts`.
   */
  position: GeneratedAlways<string>
  /** The epoch in which the post was created. See `current_epoch` in `db/migrations/0001.ts`. */
  epoch: GeneratedAlways<number>
  author_id: string
  title: string
  content: string
  created_at: Generated<Date>
  updated_at: Generated<Date>
  /** Every update changes it; a bigint, which is read as text. See `renew_row_version` in `db/migrations/0001.ts`. */
  row_version: GeneratedAlways<string>
  /** The position of its last change; null if there is none. A bigint, which is read as text. */
  change_position: GeneratedAlways<string | null>
  /** The epoch of its last change. */
  change_epoch: GeneratedAlways<number | null>
}

/** The deletions of posts of the last 30 days. */
export interface PostDeletionsTable {
  /** A position after all that were committed before; a bigint, which is read as text. */
  position: string
  epoch: number
  /** Null if the row stands for all changes and deletions up to its position, which are not known any more. */
  post_id: string | null
  author_id: string | null
  deleted_at: Generated<Date>
}

/** The drafts of posts that are not published yet. */
export interface PostDraftsTable {
  /** Also the id of the post. */
  id: string
  author_id: string
  title: string
  content: string
  /** When it will be published; null if that is not planned. */
  publish_at: Date | null
  created_at: Generated<Date>
  updated_at: Generated<Date>
  /** Every update changes it; a bigint, which is read as text. */
  row_version: GeneratedAlways<string>
}

/** A view with one row: the current epoch. */
export interface CurrentEpochView { epoch: number }

/** The sequence that assigns positions, as a relation to read from. */
export interface PositionSequence {
  last_value: GeneratedAlways<string>
  is_called: GeneratedAlways<boolean>
}

/** How many posts a user has created in the hour that began at `since`. */
export interface PostRatesTable {
  user_id: string
  since: Date
  /** A bigint, which is read as text. Includes posts that were rejected. */
  posts: string
}

/** The words of a post, for searches. */
export interface PostWordsTable {
  post_id: string
  /** That of the post; a bigint, which is read as text. */
  position: string
  /** That of the post with these words: if it has another, they are out of date. A bigint, which is read as text. */
  change_position: string | null
  /** See `words_of_post` in `db/migrations/0006.ts`. */
  words: string
}

/** A table with one row: the position up to which posts, changes and deletions are in `post_words`. */
export interface IndexedPostsTable {
  is_only: Generated<true>
  /** A bigint, which is read as text. */
  position: string
}
