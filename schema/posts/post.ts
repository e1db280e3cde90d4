import { Type } from '@sinclair/typebox'
import { content } from '../http/reply.ts'
import { pageQuery } from '../http/params.ts'
import { Content, Id, Instant, line, notNull, optionalInstant, Title } from '../strings/text.ts'
import { defineError, TooManyRequests } from '../http/errors.ts'

export const PostNotFound = defineError('POST_NOT_FOUND', 'Post not found', 404)
export const TooManyDrafts =
  defineError('TOO_MANY_DRAFTS', 'A user may have 1,000 drafts: publish or delete one first', 409)
export const AlreadyPublished =
  defineError('ALREADY_PUBLISHED', 'The post is published, and cannot become a draft again', 409)
export const CursorLost =
  defineError(
    'CURSOR_LOST', 'Posts after this cursor were lost when the database failed over: start again without it', 410
  )
export const CursorTooOld =
  defineError(
    'CURSOR_TOO_OLD', 'Deletions of posts are known for 30 days, and this cursor is older: start again without it', 410
  )

export const SearchNotReady =
  defineError('SEARCH_NOT_READY', 'The words of many posts are not in the index yet, try again later', 503)

/**
 * A user has created as many posts as they may in an hour. `retryAfter` is the number of seconds until that hour ends.
 */
export class TooManyPosts extends TooManyRequests {
  override readonly code = 'TOO_MANY_POSTS'
  override readonly message = 'You have created as many posts as you may in an hour, try again later'
}

/** The rules for `createPost(input:)` that the SDL cannot express (contract 7.6). */
export const CreatePost = Type.Object({
  title: Title,
  content: Content,
  publishedAt: Type.Optional(Type.Unsafe<string | null>({
    type: ['string', 'null'],
    format: 'date-time',
    description: 'Null for a draft, which only its author sees. A time in the future (RFC 3339) for one that is published then; any other time for a post, as without this member',
  })),
})

const AuthorId = line({ description: 'The id of the author. By default your own; only an admin may name another user' })

/** The body of POST /api/posts (contract 22.2). */
export const NewPost = Type.Object(
  { ...CreatePost.properties, authorId: Type.Optional(AuthorId) },
  { title: 'CreatePost', examples: [{ title: 'Notes', content: 'The engine weaves algebraic patterns.' }] }
)

/** The body of PATCH /api/posts/{id}: the members to change. Null is not a value of any of them. */
export const PatchPost = Type.Partial(
  Type.Object({
    title: notNull(Title),
    content: notNull(Content),
    publishedAt: Type.Unsafe<string | null>({
      type: ['string', 'null'],
      format: 'date-time',
      description: 'When a draft is published: at once, unless the time (RFC 3339) is in the future. With null, no time is planned',
    }),
  }),
  { title: 'PatchPost', examples: [{ title: 'Notes on the engine' }] }
)

/** A post, as REST returns it. */
export const Post = Type.Object({
  id: Id,
  authorId: Type.String({ description: 'The id of the author' }),
  title: Type.String(),
  content: Type.String(),
  createdAt: Instant,
  publishedAt: optionalInstant('The same as `createdAt`; null for a draft, whose `createdAt` changes when it is published'),
  publishAt: Type.Optional(optionalInstant('Of drafts only: when it will be published; null if that is not planned')),
  cursor: Type.String({
    description: 'The place of the post in commit order. Events after it are those of the posts that follow. Of a draft, its place in the list of drafts',
  }),
}, { title: 'Post', description: 'A post' })

/** What a list of posts may be sorted by; `-` is for descending. */
export const postSorts = ['createdAt', '-createdAt'] as const

export type PostSort = typeof postSorts[number]

const After = Type.String({ format: 'post-cursor', description: 'The cursor of a post, after which the list goes on' })

const OfAuthor = Type.Optional(line({ description: 'Only posts of this user' }))

/** What a search of posts looks for (contract 22.3). */
export const PostSearch = line({
  trim: true,
  minLength: 1,
  maxLength: 100,
  description: 'Only posts that have all these words in their title or content, regardless of case. The last one may be the beginning of a word',
})

/** The query of GET /api/posts (contract 22.2). */
export const ListPosts = Type.Object({
  authorId: OfAuthor,
  q: Type.Optional(PostSearch),
  since: Type.Optional(Type.String({
    format: 'date-time', description: 'Only posts that were created at this time (RFC 3339) or later',
  })),
  sort: Type.Optional(Type.Unsafe<PostSort>({
    type: 'string', enum: postSorts, description: 'The order; `-` is for descending. By default -createdAt',
  })),
  limit: pageQuery('Posts').limit,
  after: Type.Optional(After),
})

/** The response of GET /api/posts. */
export const PostList = Type.Array(Post, { description: 'Posts, by default newest first' })

/** The query of GET /api/posts/drafts (contract 22.4). */
export const ListDrafts = Type.Object(pageQuery('Drafts'))

/** The response of GET /api/posts/drafts. */
export const DraftList = Type.Array(Post, { description: 'Your own drafts, newest first' })

/** The query of GET /api/posts/events. */
export const FollowPosts = Type.Object({ authorId: OfAuthor, after: Type.Optional(After) })

/** The response of GET /api/posts/events. */
export const PostEventStream = content('Server-sent events, without end', {
  'text/event-stream': Type.String({
    description: 'The events `post.created` and `post.updated` have a post as JSON in `data`, and `post.deleted` its id. The `id` of each is its cursor',
  }),
})

/** The rules for `updatePost(input:)`. A field that is null keeps its value and is removed before this check. */
export const UpdatePost = Type.Object({
  title: Type.Optional(Title),
  content: Type.Optional(Content),
  publishedAt: CreatePost.properties.publishedAt,
})

/** The default and the maximum number of rows of a page in GraphQL. */
export const USUAL_PAGE = 50
export const LARGEST_PAGE = 100

/** The arguments of a GraphQL list. */
export const ListArguments = Type.Object({
  first: Type.Integer({ minimum: 1, maximum: LARGEST_PAGE }),
})
