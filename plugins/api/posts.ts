import { Type } from '@sinclair/typebox'
import type { FastifyInstance } from 'fastify'
import { copyRow } from '../../db/tables/row.ts'
import { postFields, type PostRow } from '../../db/posts/posts.ts'
import { decodePlace, encodePlace } from '../../schema/http/cursor.ts'
import type { UsherPost } from '../../schema/options/hooks.ts'
import { PostNotFound } from '../../schema/posts/post.ts'
import { line } from '../../schema/strings/text.ts'
import type { PostOperations } from '../../schema/options/usher.ts'
import { createParser } from '../../schema/http/validator.ts'
import { idOf, type Perform } from './perform.ts'

const parseQuery = createParser(Type.Object({
  author: Type.Optional(line()),
  limit: Type.Integer({ minimum: 1, maximum: 100, default: 50 }),
  after: Type.Optional(line()),
}))
const parseGiven = createParser(Type.Object({ authorId: Type.Optional(line()) }))

/** Creates the operations on posts, which do what those of GraphQL do. */
export function createPostOperations (app: FastifyInstance, perform: Perform): PostOperations {
  // Undefined in a mount without posts.
  const { usherPosts: posts } = app

  return {
    create: (given, options) => perform(options, async (caller) => {
      caller.requireIdentity()
      parseGiven(given)
      return show(await posts.changes.create(caller, given))
    }),

    get: (id, options) => perform(options, async (caller) => {
      const post = await posts.reads.get(caller, idOf(id))
      if (!post) throw new PostNotFound()
      return show(post)
    }),

    list: (query = {}, options) => perform(options, async (caller) => {
      const { author, limit, after } = parseQuery(query)
      const { rows, next } = await posts.reads.list(caller, {
        fields: postFields, authorId: author?.toLowerCase(), limit, after: after && decodePlace(after).position,
      })
      const data = await posts.reads.complete(caller, rows) as readonly PostRow[]
      return { data: data.map(show), page: { next: next && encodePlace(next), limit } }
    }),

    update: (id, given, options) =>
      perform(options, async (caller) => show(await posts.changes.update(caller, idOf(id), given ?? {}))),

    delete: (id, options) => perform(options, async (caller) => { await posts.changes.delete(caller, idOf(id)) }),
  }
}

const show = ({ id, authorId, title, content, createdAt }: PostRow): UsherPost =>
  copyRow({ id, authorId, title, content, createdAt })
