import { GraphQLError, GraphQLScalarType } from 'graphql'
import { authorPostsKey, deletePost, updatePost, type PostRow } from '../../db/posts.ts'
import type { PostEvent } from '../../plugins/events.ts'
import { PostNotFound, Unauthenticated, UserNotFound } from '../../schema/errors.ts'
import type { Actor } from '../../schema/policy.ts'
import { CreatePost, UpdatePost } from '../../schema/post.ts'
import { createCheck } from '../../schema/validator.ts'
import { connect, readPage } from './connection.ts'
import { count, type GraphQLContext, type SocketContext } from './context.ts'
import { selectedPostFields } from './selection.ts'
import type { Resolvers } from './types.ts'

const checkCreate = createCheck(CreatePost)
const checkUpdate = createCheck(UpdatePost)

/**
 * The resolvers of `schema/schema.graphql`. Relations go through the joined reads, which are loaders for all
 * requests at once: fifty users with their posts are two statements (contract 7.8).
 */
export const resolvers = {
  DateTime: new GraphQLScalarType({ name: 'DateTime', serialize: (value) => (value as Date).toISOString() }),

  Query: {
    async user (_, { id }, { usher, client }) {
      const user = await usher.usherDatabase.read.user(id, client)
      if (!user) throw new UserNotFound()
      return user
    },

    async users (_, args, context) {
      const { first: limit, ...where } = readPage(args)
      return connect(count(context, await context.usher.usherDatabase.read.users({ limit, ...where }, context.client)), where.after)
    },

    post: async (_, { id }, { usher, client }) => usher.usherDatabase.read.post(id, client),

    async posts (_, { authorId, ...args }, context, info) {
      const { first: limit, after } = readPage(args)
      const query = { fields: selectedPostFields(info), authorId: authorId ?? undefined, limit, after }
      return connect(count(context, await context.usher.usherDatabase.read.posts(query, context.client)), after)
    },

    async me (_, __, { usher, client, actor }) {
      const known = await actor()
      return known && usher.usherDatabase.read.user(known.id, client)
    },
  },

  User: {
    async posts ({ id }, args, context, info) {
      const key = authorPostsKey(id, readPage(args).first, selectedPostFields(info))
      const rows = await context.usher.usherDatabase.read.postsOfAuthor(key, context.client)
      count(context, { rows })
      return rows
    },
  },

  Post: {
    async author ({ authorId }, _, { usher, client }) {
      const author = await usher.usherDatabase.read.user(authorId!, client)
      // Deleted, and the post with it, since the post was read.
      if (!author) throw new UserNotFound()
      return author
    },
  },

  Mutation: {
    async createPost (_, { input: { authorId, ...given } }, context) {
      const { usherDatabase: { write }, usherAuth: { authorize } } = context.usher
      const actor = await requireActor(context)
      authorize(actor, 'posts:create')
      const author = authorId?.toLowerCase() ?? actor.id
      if (author !== actor.id) authorize(actor, 'posts:create-for-another')
      const post = { ...given }
      checkCreate(post)
      return write.post({ ...post, authorId: author }, context.client)
    },

    async updatePost (_, { id, input }, context) {
      const actor = await requireActor(context)
      const { id: postId } = await ownPost(context, actor, 'posts:update', id)
      const changes = { ...input.title != null && { title: input.title }, ...input.content != null && { content: input.content } }
      checkUpdate(changes)
      return updatePost(context.usher.usherDatabase.db, postId, changes)
    },

    async deletePost (_, { id }, context) {
      const actor = await requireActor(context)
      const { id: postId } = await ownPost(context, actor, 'posts:delete', id)
      await deletePost(context.usher.usherDatabase.db, postId)
      return postId
    },
  },

  Subscription: {
    postCreated: {
      subscribe: async (_, { authorId }, { usher, pubsub, drop }) => pubsub.subscribe(usher.usherEvents.topicOf(authorId), drop),
      // Each event is an operation of its own to the bound on rows.
      resolve: ({ postCreated, taken }: Partial<PostEvent>, _: unknown, context: GraphQLContext) => {
        if (!postCreated) throw new GraphQLError('A subscription needs a socket', { extensions: { code: 'BAD_REQUEST' } })
        taken!()
        context.rows = 0
        return postCreated
      },
    },
  },
} satisfies Resolvers<SocketContext & { pubsub: { subscribe (topic: string, drop: () => void): Promise<AsyncIterable<PostEvent>> } }>

async function requireActor ({ actor }: GraphQLContext): Promise<Actor> {
  const known = await actor()
  if (!known) throw new Unauthenticated()
  return known
}

async function ownPost ({ usher, client }: GraphQLContext, actor: Actor, action: 'posts:update' | 'posts:delete', id: string): Promise<PostRow> {
  const post = await usher.usherDatabase.read.post(id, client)
  if (!post) throw new PostNotFound()
  usher.usherAuth.authorize(actor, action, post.authorId)
  return post
}
