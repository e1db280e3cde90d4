import { Type } from '@sinclair/typebox'
import { Content, Title } from '../strings/text.ts'
import { defineError, TooManyRequests } from '../http/errors.ts'

export const PostNotFound = defineError('POST_NOT_FOUND', 'Post not found', 404)
export const CursorLost =
  defineError(
    'CURSOR_LOST', 'Posts after this cursor were lost when the database failed over: start again without it', 410
  )
export const CursorTooOld =
  defineError(
    'CURSOR_TOO_OLD', 'Deletions of posts are known for 30 days, and this cursor is older: start again without it', 410
  )

/**
 * A user has created as many posts as they may in an hour. `retryAfter` is the number of seconds until that hour ends.
 */
export class TooManyPosts extends TooManyRequests {
  override readonly code = 'TOO_MANY_POSTS'
  override readonly message = 'You have created as many posts as you may in an hour, try again later'
}

/** The rules for `createPost(input:)` that the SDL cannot express (contract 7.6). */
export const CreatePost = Type.Object({ title: Title, content: Content })

/** The rules for `updatePost(input:)`. A field that is null keeps its value and is removed before this check. */
export const UpdatePost = Type.Object({
  title: Type.Optional(Title),
  content: Type.Optional(Content),
})

/** The default and the maximum number of rows of a page in GraphQL. */
export const USUAL_PAGE = 50
export const LARGEST_PAGE = 100

/** The arguments of a GraphQL list. */
export const ListArguments = Type.Object({
  first: Type.Integer({ minimum: 1, maximum: LARGEST_PAGE }),
})
