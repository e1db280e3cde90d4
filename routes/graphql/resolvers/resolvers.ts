import type { FastifyInstance } from 'fastify'
import { GraphQLError, GraphQLScalarType, type GraphQLResolveInfo } from 'graphql'
import { isDraft, type AnyPost } from '../../../db/posts/drafts.ts'
import { authorPostsKey, type ListedPost, type PostRow } from '../../../db/posts/posts.ts'
import type { Caller } from '../../../plugins/access/caller.ts'
import { clientInfoOf } from '../../../plugins/http/client-info.ts'
import type { Steps } from '../../../plugins/idempotency/index.ts'
import type { ChangedPost } from '../../../db/posts/followed.ts'
import type { Feed, PostEvents } from '../../../plugins/posts/events.ts'
import type { PostStream } from '../../../plugins/posts/post-stream.ts'
import type { Followed } from '../../../plugins/posts/recent-posts.ts'
import { tagOfUpload, visibilityOf } from '../../../plugins/uploads/show-upload.ts'
import { decodePlace, encodeCursor, encodePlace } from '../../../schema/http/cursor.ts'
import { entityTag, readIfMatch } from '../../../schema/http/entity-tag.ts'
import { Forbidden } from '../../../schema/http/errors.ts'
import { filtersAccounts } from '../../../schema/users/user-list.ts'
import { baseUrlOf } from '../../../schema/options/public-url.ts'
import { UploadNotFound } from '../../../schema/uploads/upload.ts'
import { toConnection, readMemberFilters, readPage, readPostSearch, readUsersPage } from './pagination.ts'
import { postReadsOf, type GraphQLContext } from '../context.ts'
import { limitFailure } from '../execution/failures.ts'
import { performOnce } from '../idempotency.ts'
import {
  countUsers, etagOfUser, fieldScalars, hidingResolvers, identifiedReaderOf, readerOf, roleResolver,
} from './reading.ts'
import { countRows, showsContents } from '../limits/result-size.ts'
import { selectedPostFields } from './selection.ts'
import type { Resolvers, SubscriptionPostCreatedArgs } from '../types.ts'

// What an event of a subscription is executed on (`routes/graphql/live/`).
interface PostEvent<Event> { followed: Event }

const typesOfChanges = { created: 'PostCreated', updated: 'PostUpdated', deleted: 'PostDeleted' } as const

const changeResolvers = {
  cursor: encodePlace,
  post ({ post }: ChangedPost, _: unknown, context: GraphQLContext, info: GraphQLResolveInfo): PostRow {
    countRows(context, info, [post!])
    return post!
  },
}

/**
 * The resolvers of `schema/graphql/schema.graphql`. Relations use the batched reads, which join the reads of all
 * concurrent requests: fifty users with their posts are two statements (contract 7.8).
 */
const resolvers = {
  DateTime: new GraphQLScalarType({
    name: 'DateTime', serialize: (value) => (value instanceof Date ? value : new Date(value as string)).toISOString(),
  }),

  Query: {
    async user (_, { id }, context, info) {
      const user = await context.usher.usherUsers.get(await readerOf(context, 'users:read'), id)
      await countUsers(context, info, [user])
      return user
    },

    async users (_, args, context, info) {
      const query = readUsersPage(args)
      // Only admins may filter by what concerns accounts, also where anybody may list users.
      const reader = await (filtersAccounts(query)
        ? identifiedReaderOf(context)
        : readerOf(context, 'users:list', 'users:read-email'))
      const { page, next, cursorOf } = await context.usher.usherUsers.list(reader, query)
      await countUsers(context, info, page.rows)
      return toConnection({ rows: page.rows, next }, query.after, cursorOf)
    },

    async post (_, { id }, context, info) {
      const reader = await readerOf(context, 'posts:read')
      const post = await postReadsOf(context).find(reader, id, () => identifiedReaderOf(context))
      if (post) countRows(context, info, [post])
      return post
    },

    async drafts (_, args, context, info) {
      const { first: limit, after } = readPage(args)
      const page = await postReadsOf(context).listDrafts(await identifiedReaderOf(context), { limit, after })
      countRows(context, info, page.rows)
      return toConnection({ rows: page.rows, next: page.next && encodeCursor(page.next) }, after, cursorOf)
    },

    async posts (_, { authorId, q, ...args }, context, info) {
      const reader = await readerOf(context, 'posts:read')
      const { first: limit, after } = readPage(args, (cursor) => decodePlace(cursor).position)
      const fields = [...selectedPostFields(info), 'position' as const, 'epoch' as const]
      const query = { fields, authorId: authorId?.toLowerCase(), limit, after, ...readPostSearch({ q }) }
      const { rows: listed, next } = await postReadsOf(context).list(reader, query)
      const rows = await countAndComplete(context, info, reader, listed)
      return toConnection({ rows, next: next && encodePlace(next) }, after, cursorOf)
    },

    async upload (_, { id }, context, info) {
      const reader = await readerOf(context, 'uploads:read', 'uploads:read-private')
      const upload = await context.usher.usherUploads.get(reader, id).catch((error: unknown) => {
        if (error instanceof UploadNotFound) return null
        throw error
      })
      if (upload) countRows(context, info, [upload])
      return upload
    },

    async organization (_, { id }, context, info) {
      const { operations } = context.usher.usherOrganizations
      const { organization, membership } =
        await operations.read(await identifiedReaderOf(context), 'organizations:read', id)
      const seen = { ...organization, role: membership?.role ?? null }
      countRows(context, info, [seen])
      return seen
    },

    async me (_, __, context, info) {
      const user = await context.usher.usherUsers.getOwn(await identifiedReaderOf(context))
      if (user) await countUsers(context, info, [user])
      return user
    },
  },

  User: {
    etag: etagOfUser,

    async posts ({ id }, args, context, info) {
      try {
        const reader = await readerOf(context, 'posts:read')
        const key = authorPostsKey(id, readPage(args).first, selectedPostFields(info))
        const posts = await postReadsOf(context).listOfAuthor(reader, id, key)
        return await countAndComplete(context, info, reader, posts)
      } catch (error) {
        throw limitFailure(context, error)
      }
    },

    async uploads ({ id }, args, context, info) {
      try {
        const reader = await readerOf(context, 'uploads:list', 'uploads:read-private')
        const { first: limit, after } = readPage(args)
        const page = await context.usher.usherUploads.list(reader, { user: id, limit, after })
        countRows(context, info, page.rows)
        const next = page.next && encodeCursor(page.next)
        return toConnection({ rows: page.rows, next }, after, (upload) => encodeCursor(upload.id))
      } catch (error) {
        throw limitFailure(context, error)
      }
    },

    async organizations ({ id }, args, context, info) {
      try {
        const reader = await identifiedReaderOf(context)
        const { first } = readPage(args)
        const listed = (await context.usher.usherOrganizations.operations.listOf(reader, id)).slice(0, first)
        countRows(context, info, listed)
        return listed
      } catch (error) {
        throw limitFailure(context, error)
      }
    },
  },

  Organization: {
    async members ({ id }, args, context, info) {
      try {
        const reader = await identifiedReaderOf(context)
        const { first: limit, after } = readPage(args)
        const { role, q } = readMemberFilters(args)
        const { operations } = context.usher.usherOrganizations
        const page = await operations.listMembers(reader, id, { role, q, limit, after })
        countRows(context, info, page.rows)
        const next = page.next && encodeCursor(page.next)
        return toConnection({ rows: page.rows, next }, after, ({ userId }) => encodeCursor(userId))
      } catch (error) {
        throw limitFailure(context, error)
      }
    },
  },

  Membership: {
    async user ({ userId }, _, context, info) {
      try {
        const user = await context.usher.usherUsers.get(await readerOf(context, 'users:read'), userId)
        await countUsers(context, info, [user])
        return user
      } catch (error) {
        throw limitFailure(context, error)
      }
    },
  },

  Upload: {
    fileUrl: ({ id }, _, { usher: { usherOptions } }) => `${baseUrlOf(usherOptions)}/api/uploads/${id}`,
    size: ({ size }) => Number(size),
    visibility: ({ isPrivate }) => visibilityOf(isPrivate),
    etag: tagOfUpload,
  },

  Post: {
    cursor: cursorOf,
    publishedAt: (post) => isDraft(post) ? null : post.createdAt!,
    publishAt: (post) => isDraft(post) ? post.publishAt : null,
    etag: ({ rowVersion }) => entityTag(rowVersion!),

    async author ({ authorId }, _, context, info) {
      try {
        // It throws if the author was deleted, together with the post, after the post was read.
        const author = await context.usher.usherUsers.get(await readerOf(context, 'users:read'), authorId!)
        await countUsers(context, info, [author])
        return author
      } catch (error) {
        throw limitFailure(context, error)
      }
    },
  },

  Mutation: {
    async createPost (_, { input }, context, info) {
      const { changes } = context.usher.usherPosts
      return perform(context, info, (caller) => ({
        isQuick: changes.isQuick,
        operate: (key) => changes.create(caller, input, key),
        restore: (stored) => changes.restoreCreated(caller, input, stored),
      }))
    },

    async updatePost (_, { id, input, ifMatch }, context, info) {
      const { changes } = context.usher.usherPosts
      return perform(context, info, (caller) => ({
        isQuick: true,
        operate: (key) => changes.update(caller, id, input, { ifMatch, once: key }),
        restore: (stored) => changes.restoreChanged(caller, 'posts:update', stored),
      }))
    },

    async deletePost (_, { id, ifMatch }, context, info) {
      const { changes } = context.usher.usherPosts
      return perform(context, info, (caller) => ({
        isQuick: true,
        operate: (key) => changes.delete(caller, id, { ifMatch, once: key }),
        restore: (stored) => changes.restoreChanged(caller, 'posts:delete', stored).id,
      }))
    },

    async updateUpload (_, { id, input, ifMatch }, context, info) {
      const { usherUploads: uploads } = context.usher
      const changes = Object.fromEntries(Object.entries(input).filter(([, value]) => value !== null))
      return perform(context, info, (caller) => ({
        isQuick: true,
        operate: (key) => uploads.update(caller, id.toLowerCase(), changes, { match: readMatch(ifMatch), once: key }),
        restore: (stored) => uploads.restoreChanged(caller, stored),
      }))
    },

    async deleteUpload (_, { id, ifMatch }, context, info) {
      const { usherUploads: uploads } = context.usher
      return perform(context, info, (caller) => ({
        isQuick: true,
        operate: (key) => uploads.delete(caller, id.toLowerCase(), { match: readMatch(ifMatch), once: key }),
        restore: (stored) => uploads.restoreDeleted(caller, stored),
      }))
    },
  },

  PostCreated: changeResolvers,
  PostUpdated: changeResolvers,
  PostDeleted: { cursor: encodePlace },
  PostChange: {
    __resolveType: ({ kind }: ChangedPost) => typesOfChanges[kind],
  },

  Subscription: {
    postCreated: {
      subscribe: (_, args, context) => follow(context, args, ({ created }) => created),
      resolve (
        { followed }: Partial<PostEvent<ListedPost>>, _: unknown, context: GraphQLContext, info: GraphQLResolveInfo
      ) {
        if (!followed) throw needsStream()
        countRows(context, info, [followed])
        return followed
      },
    },

    postChanged: {
      subscribe: (_, args, context) => follow(context, args, ({ changed }) => changed),
      resolve ({ followed }: Partial<PostEvent<ChangedPost>>) {
        if (!followed) throw needsStream()
        return followed
      },
    },
  },
} satisfies Resolvers<GraphQLContext>

/** Returns the resolvers of the parts that a mount has. */
export function createResolvers (usher: FastifyInstance) {
  const {
    DateTime, Query, User, Post, PostCreated, PostUpdated, PostDeleted, PostChange, Upload, Organization, Membership,
    Mutation, Subscription,
  } = resolvers
  const { user, users, me, post, posts, drafts, upload, organization } = Query
  const { createPost, updatePost, deletePost, updateUpload, deleteUpload } = Mutation
  const { without, organizations } = usher.usherOptions
  const [hasPosts, hasUploads] = [!without.includes('posts'), !without.includes('uploads')]
  const mutations = {
    ...hasPosts && { createPost, updatePost, deletePost }, ...hasUploads && { updateUpload, deleteUpload },
  }
  return {
    DateTime,
    ...fieldScalars(usher),
    Query: {
      user,
      users,
      me,
      ...hasPosts && { post, posts, drafts },
      ...hasUploads && { upload },
      ...organizations && { organization },
    },
    User: {
      etag: User.etag,
      ...hasPosts && { posts: User.posts },
      ...hasUploads && { uploads: User.uploads },
      ...organizations && { organizations: User.organizations },
      ...hidingResolvers(usher),
      ...roleResolver(usher),
    },
    ...hasPosts && {
      Post,
      PostCreated,
      PostUpdated,
      PostDeleted,
      // mercurius has another name for it than the generated types.
      PostChange: { resolveType: PostChange.__resolveType },
      Subscription,
    },
    ...hasUploads && { Upload },
    ...organizations && { Organization, Membership },
    ...Object.keys(mutations).length > 0 && { Mutation: mutations },
  }
}

// Opens the stream of a subscription.
async function follow<Event extends Followed> (
  context: GraphQLContext, { authorId, after }: SubscriptionPostCreatedArgs,
  feedOf: (events: PostEvents) => Feed<Event>
): Promise<PostStream<Event>> {
  const cursor = context.lastEventId ?? after
  return feedOf(context.usher.usherPosts.events).open(await readerOf(context, 'posts:read'), {
    authorId: authorId?.toLowerCase(), after: cursor == null ? undefined : decodePlace(cursor),
  })
}

const needsStream = () => new GraphQLError(
  'Subscriptions need a WebSocket or server-sent events', { extensions: { code: 'BAD_REQUEST' } }
)

const readMatch = (ifMatch: string | null | undefined) => readIfMatch(ifMatch ?? undefined, 'ifMatch')

function cursorOf (post: AnyPost): string {
  return isDraft(post) ? encodeCursor(post.id) : encodePlace({ position: post.position!, epoch: post.epoch! })
}

// Counts the posts of a list before the contents of a long one are read. A response that is too large costs nearly
// nothing that way.
async function countAndComplete<Posts extends readonly ListedPost[]> (
  context: GraphQLContext, info: GraphQLResolveInfo, reader: Caller, posts: Posts
): Promise<Posts | ListedPost[]> {
  countRows(context, info, posts)
  return showsContents(info) ? postReadsOf(context).complete(reader, posts) : posts
}

// Runs a mutation, and adds its rejection to the account log. In REST routes the error handler does that
// (`plugins/http/errors.ts`), but errors of resolvers do not reach it, and the status of GraphQL responses is always
// 200.
async function perform<Result> (
  context: GraphQLContext, info: GraphQLResolveInfo, stepsOf: (caller: Caller) => Steps<Result>
): Promise<Result> {
  const { usher, request, client, actor } = context
  // Each mutation of a document is an operation of its own, and one over a socket has a connection of its own.
  const caller = usher.usherAccess.createCaller({
    actor: await actor(), client, via: 'graphql', log: request!.log, ...clientInfoOf(request!),
  })
  try {
    return await performOnce(context, info, caller, stepsOf(caller))
  } catch (error) {
    const rejection = await usher.usherAccess.rejectionOf(error as Error, caller.actor, client)
    if (rejection instanceof Forbidden) usher.usherAudit.addRejection(caller, 403)
    throw rejection
  }
}
