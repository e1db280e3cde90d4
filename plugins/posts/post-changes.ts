import { Type } from '@sinclair/typebox'
import { restorePost, type StoredResult } from '../../db/idempotency/idempotency.ts'
import type { PostRow } from '../../db/posts/posts.ts'
import { readIfMatch, type Match } from '../../schema/http/entity-tag.ts'
import { InvalidInput } from '../../schema/http/errors.ts'
import type { HookPost } from '../../schema/options/hooks.ts'
import type { ResultKey } from '../../schema/http/idempotency.ts'
import { CreatePost, PostNotFound, UpdatePost } from '../../schema/posts/post.ts'
import { line } from '../../schema/strings/text.ts'
import { createParser } from '../../schema/http/validator.ts'
import type { Caller } from '../access/caller.ts'
import type { HookRunner } from '../hooks/index.ts'
import type { Idempotency } from '../idempotency/index.ts'
import type { UserRecords } from '../users/user-records.ts'
import { actorOf, type PostRecords } from './posts.ts'

const parsePost = createParser(CreatePost)
const parseChanges = createParser(UpdatePost)
const parseHookPost = createParser(Type.Composite([CreatePost, Type.Object({ authorId: line() })]))

/** A post to be created. Without an author, it is the caller's own. */
export interface GivenPost { title: string, content: string, authorId?: string | null | undefined }

/** How a post is changed. */
export interface PostChangeOptions {
  /** What the field `If-Match` would be, or the versions that it permits. */
  ifMatch?: string | null | undefined
  match?: Match
  /** The key under which the result is stored. */
  once?: ResultKey | undefined
}

const matchOf = ({ ifMatch, match }: PostChangeOptions): Match => match ?? readIfMatch(ifMatch ?? undefined, 'ifMatch')

// What the result of a change takes besides the content.
const OTHER_BYTES = 1024

interface Dependencies {
  records: PostRecords
  users: UserRecords
  hooks: HookRunner
  idempotency: Pick<Idempotency, 'changes'>
}

/** Creates, changes and deletes posts. REST, GraphQL and the host call the same functions. */
export function createPostChanges ({ records: posts, users, hooks, idempotency: { changes: budget } }: Dependencies) {
  // Returns a post if the caller may change it.
  async function findOwn (caller: Caller, action: 'posts:update' | 'posts:delete', id: string): Promise<PostRow> {
    caller.requireIdentity()
    const post = await posts.read(id, caller.client)
    if (!post) throw new PostNotFound()
    caller.authorize(action, { ownerId: post.authorId })
    return post
  }

  /** Returns the id of the author of a new post. Throws `Unauthenticated`, `Forbidden`, `InvalidInput`. */
  function authorizeCreation (caller: Caller, author: string | null | undefined): string {
    caller.requireIdentity()
    const authorId = author?.toLowerCase() ?? caller.actor?.id
    if (authorId === undefined) throw new InvalidInput('authorId is required')
    caller.authorize('posts:create')
    if (authorId !== caller.actor?.id) caller.authorize('posts:create-for-another')
    return authorId
  }

  async function askHook (caller: Caller, post: HookPost): Promise<HookPost> {
    await users.get(post.authorId, caller.client)
    const { title, content, authorId } = await hooks.change('beforePostCreate', post, caller, parseHookPost)
    return { title, content, authorId }
  }

  return {
    authorizeCreation,

    /**
     * Throws `Unauthenticated` or `Forbidden` if the caller may not change or delete a post. Does nothing if there is
     * no such post, which the change reports later (contract 1.7).
     */
    async forbid (caller: Caller, action: 'posts:update' | 'posts:delete', id: string): Promise<void> {
      const post = await posts.read(id, caller.client)
      if (post) caller.authorize(action, { ownerId: post.authorId })
    },

    /** Whether creating a post takes little more than a statement. */
    isQuick: !hooks.has('beforePostCreate') && !hooks.has('onPostCreate'),

    /**
     * Creates a post. Throws `Unauthenticated`, `Forbidden`, `InvalidInput`, `UserNotFound`, `Overloaded`,
     * `InvalidToken`, and `KeyTaken` if the key `once` is taken. So do the other changes.
     */
    async create (caller: Caller, { authorId: author, ...given }: GivenPost, once?: ResultKey): Promise<PostRow> {
      const authorId = authorizeCreation(caller, author)
      const { title, content } = parsePost(given)
      const post = { title, content, authorId }
      const wanted = hooks.has('beforePostCreate') ? await askHook(caller, post) : post
      const onCreate = hooks.during('onPostCreate', caller)
      // Without a hook, posts that are created at the same time share a statement, which checks their tokens.
      if (!onCreate) return posts.create({ ...wanted, ...actorOf(caller), once }, caller)
      return posts.createAfter({ ...wanted, ...actorOf(caller), once }, async (trx, id, createdAt) => {
        await onCreate(trx, { ...wanted, id, createdAt })
        await caller.confirm()
      })
    },

    /**
     * Changes the members that are given. Throws `PostNotFound`, `Unauthenticated`, `Forbidden`, `InvalidInput`,
     * `PreconditionFailed`, `InvalidToken`.
     */
    async update (
      caller: Caller, id: string,
      { title, content }: { title?: string | null | undefined, content?: string | null | undefined },
      { once, ...conditions }: PostChangeOptions = {}
    ): Promise<PostRow> {
      const post = await findOwn(caller, 'posts:update', id)
      const match = matchOf(conditions)
      const changes = parseChanges({ ...title != null && { title }, ...content != null && { content } })
      if (!once) return posts.update(caller, post.id, changes, { match })
      budget.require(caller.getActor().id)
      const updated = await posts.update(caller, post.id, changes, { match, once })
      budget.of(caller.getActor().id).take(Buffer.byteLength(updated.content) + OTHER_BYTES)
      return updated
    },

    /**
     * Deletes a post. Returns its id. Throws `PostNotFound`, `Unauthenticated`, `Forbidden`, `InvalidInput`,
     * `PreconditionFailed`, `InvalidToken`.
     */
    async delete (caller: Caller, id: string, { once, ...conditions }: PostChangeOptions = {}): Promise<string> {
      const post = await findOwn(caller, 'posts:delete', id)
      await posts.delete(caller, post.id, { match: matchOf(conditions), once })
      return post.id
    },

    /** Returns a created post again. Throws `Unauthenticated`, `Forbidden`, `InvalidInput`. */
    restoreCreated (caller: Caller, { authorId }: GivenPost, stored: StoredResult): PostRow {
      authorizeCreation(caller, authorId)
      return restorePost(stored)
    },

    /** Returns a post again that was changed or deleted. Throws `Unauthenticated`, `Forbidden`. */
    restoreChanged (caller: Caller, action: 'posts:update' | 'posts:delete', stored: StoredResult): PostRow {
      const post = restorePost(stored)
      caller.authorize(action, { ownerId: post.authorId })
      return post
    },
  }
}
