import { Type } from '@sinclair/typebox'
import type { FastifyInstance } from 'fastify'
import { copyRow } from '../../db/tables/row.ts'
import { isDraft, type DraftRow } from '../../db/posts/drafts.ts'
import { postFields, type PostRow } from '../../db/posts/posts.ts'
import { decodeCursor, decodePlace, encodeCursor, encodePlace } from '../../schema/http/cursor.ts'
import { PostNotFound } from '../../schema/posts/post.ts'
import { line } from '../../schema/strings/text.ts'
import type { PostOperations, UsherPublication } from '../../schema/options/usher.ts'
import { createParser } from '../../schema/http/validator.ts'
import { idOf, type Perform } from './perform.ts'

const page = {
  limit: Type.Integer({ minimum: 1, maximum: 100, default: 50 }),
  after: Type.Optional(line()),
}
const parsePage = createParser(Type.Object(page))
const parseQuery = createParser(Type.Object({ author: Type.Optional(line()), ...page }))
const parseGiven = createParser(Type.Object({ authorId: Type.Optional(line()) }))

/** Creates the operations on posts, which do what those of GraphQL do. */
export function createPostOperations (app: FastifyInstance, perform: Perform): PostOperations {
  // Undefined in a mount without posts.
  const { usherPosts: posts } = app

  return {
    create: (given, options) => perform(options, async (caller) => {
      caller.requireIdentity()
      const { authorId } = parseGiven(given)
      const { title, content, publishedAt } = given
      return show(await posts.changes.create(caller, { title, content, authorId, publishedAt }))
    }),

    get: (id, options) => perform(options, async (caller) => {
      const post = await posts.reads.find(caller, idOf(id), () => caller)
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

    listDrafts: (query = {}, options) => perform(options, async (caller) => {
      const { limit, after } = parsePage(query)
      const { rows, next } = await posts.reads.listDrafts(caller, { limit, after: after && decodeCursor(after) })
      return { data: rows.map(show), page: { next: next && encodeCursor(next), limit } }
    }),

    update: (id, given, options) =>
      perform(options, async (caller) => {
        const { title, content, publishedAt } = given ?? {}
        return show(await posts.changes.update(caller, idOf(id), { title, content, publishedAt }))
      }),

    delete: (id, options) => perform(options, async (caller) => { await posts.changes.delete(caller, idOf(id)) }),
  }
}

function show (post: PostRow | DraftRow): UsherPublication {
  const { id, authorId, title, content, createdAt } = post
  const times = isDraft(post)
    ? { publishedAt: null, publishAt: post.publishAt }
    : { publishedAt: createdAt, publishAt: null }
  return copyRow({ id, authorId, title, content, createdAt, ...times })
}
