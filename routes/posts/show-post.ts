import type { PostRow } from '../../db/posts/posts.ts'
import { encodePlace } from '../../schema/http/cursor.ts'

/** Returns a post as REST shows it. */
export const showPost = ({ id, authorId, title, content, createdAt, position, epoch }: PostRow) =>
  ({ id, authorId, title, content, createdAt, cursor: encodePlace({ position, epoch }) })
