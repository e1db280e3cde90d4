import { isDraft, type DraftRow } from '../../db/posts/drafts.ts'
import type { PostRow } from '../../db/posts/posts.ts'
import { encodeCursor, encodePlace } from '../../schema/http/cursor.ts'

/** Returns a post as REST shows it. */
export const showPost = ({ id, authorId, title, content, createdAt, position, epoch }: PostRow) => ({
  id, authorId, title, content, createdAt, publishedAt: createdAt, cursor: encodePlace({ position, epoch }),
})

/** Returns a draft as REST shows it. */
export const showDraft = ({ id, authorId, title, content, createdAt, publishAt }: DraftRow) =>
  ({ id, authorId, title, content, createdAt, publishedAt: null, publishAt, cursor: encodeCursor(id) })

/** Returns a post or a draft as REST shows it. */
export const showAny = (post: PostRow | DraftRow) => isDraft(post) ? showDraft(post) : showPost(post)
