import { Type, type Static } from '@sinclair/typebox'
import { isOfDraft, restoreDraft, restorePost, type StoredResult } from '../../db/idempotency/idempotency.ts'
import { isDraft, type DraftRow } from '../../db/posts/drafts.ts'
import type { PostRow } from '../../db/posts/posts.ts'
import { permits, readIfMatch, type Match } from '../../schema/http/entity-tag.ts'
import { InvalidInput, Overloaded, PreconditionFailed } from '../../schema/http/errors.ts'
import type { HookPost } from '../../schema/options/hooks.ts'
import type { ResultKey } from '../../schema/http/idempotency.ts'
import { AlreadyPublished, CreatePost, PostNotFound, UpdatePost } from '../../schema/posts/post.ts'
import { Content, line, Title } from '../../schema/strings/text.ts'
import { createParser } from '../../schema/http/validator.ts'
import type { Caller } from '../access/caller.ts'
import type { Clock } from '../../db/driver/clock.ts'
import type { HookRunner } from '../hooks/index.ts'
import type { Idempotency } from '../idempotency/index.ts'
import type { DraftId } from './drafts.ts'
import type { UserRecords } from '../users/user-records.ts'
import type { PostRecords } from './posts.ts'
import { actorOf } from './writer.ts'

const parsePost = createParser(CreatePost)
const parseChanges = createParser(UpdatePost)
const parseHookPost = createParser(Type.Object({ title: Title, content: Content, authorId: line() }))

/** A post to be created. Without an author, it is the caller's own. */
export interface GivenPost {
  title: string
  content: string
  authorId?: string | null | undefined
  /** When it is published, see `timeOf`; absent if at once. */
  publishedAt?: string | Date | null | undefined
}

/** The members of a post that are changed. Others are absent, or null in the case of `title` and `content`. */
export interface GivenChanges {
  title?: string | null | undefined
  content?: string | null | undefined
  /** When a draft is published, see `timeOf`. */
  publishedAt?: string | Date | null | undefined
}

/** How a post is changed. */
export interface PostChangeOptions {
  /** What the field `If-Match` would be, or the versions that it permits. */
  ifMatch?: string | null | undefined
  match?: Match
  /** The key under which the result is stored. */
  once?: ResultKey | undefined
}

type Conditions = Pick<PostChangeOptions, 'match' | 'once'>

const matchOf = ({ ifMatch, match }: PostChangeOptions): Match => match ?? readIfMatch(ifMatch ?? undefined, 'ifMatch')

// What the result of a change takes besides the content.
const OTHER_BYTES = 1024

// The host may give a `Date`.
function withText ({ publishedAt }: Pick<GivenPost, 'publishedAt'>): { publishedAt?: unknown } {
  if (publishedAt === undefined) return {}
  const isTime = publishedAt instanceof Date && !Number.isNaN(publishedAt.getTime())
  return { publishedAt: isTime ? publishedAt.toISOString() : publishedAt }
}

interface Dependencies {
  clock: Clock
  records: PostRecords
  users: UserRecords
  hooks: HookRunner
  idempotency: Pick<Idempotency, 'changes'>
}

export type PostChanges = ReturnType<typeof createPostChanges>

/** Creates, changes and deletes posts. REST, GraphQL and the host call the same functions. */
export function createPostChanges ({
  clock, records: posts, users, hooks, idempotency: { changes: budget },
}: Dependencies) {
  const { drafts } = posts

  // Returns a post, or a draft of the caller, that the caller may change.
  async function findOwn (
    caller: Caller, action: 'posts:update' | 'posts:delete', id: string
  ): Promise<PostRow | DraftRow> {
    caller.requireIdentity()
    const post = await posts.find(caller, id)
    if (!post) throw new PostNotFound()
    caller.authorize(action, { ownerId: post.authorId })
    return post
  }

  // Returns when a post is published: at a time in the future, never (null), or now (undefined), which any other time
  // means. Throws `InvalidInput` for a date that does not exist, which the validator accepts.
  function timeOf (publishedAt: string | null): Date | null | undefined {
    if (publishedAt === null) return null
    const time = new Date(publishedAt)
    if (Number.isNaN(time.getTime())) throw new InvalidInput('publishedAt must be a date and time in RFC 3339 format')
    return time.getTime() > clock.now() ? time : undefined
  }

  // Runs a change of a draft. It may be published meanwhile, and is then changed as a post.
  async function unlessPublished<Result> (
    caller: Caller, id: string, change: () => Promise<Result>, changePost: (post: PostRow) => Promise<Result>
  ): Promise<Result> {
    try {
      return await change()
    } catch (error) {
      const post = error instanceof PostNotFound ? await posts.read(id, caller.client) : undefined
      if (!post) throw error
      return changePost(post)
    }
  }

  // Publishes a draft. What hooks reject remains a draft.
  async function publish (
    caller: Caller, draft: DraftRow, given: { title?: string, content?: string }, { match, once }: Conditions
  ): Promise<PostRow> {
    const { id, authorId } = draft
    if (!hooks.has('beforePostCreate') && !hooks.has('onPostCreate')) {
      return drafts.publish(caller, draft, given, { match, once })
    }
    if (!permits(match, draft.rowVersion)) throw new PreconditionFailed()
    const { title, content } = { title: draft.title, content: draft.content, ...given }
    const asked = await askHook(caller, { title, content, authorId })
    // A draft has one author, who stays that of the post.
    const wanted = { title: asked.title, content: asked.content }
    const onCreate = hooks.during('onPostCreate', caller)
    return drafts.publishAfter(caller, draft, wanted, { once }, async (trx, createdAt) => {
      await onCreate?.(trx, { ...wanted, id, authorId, createdAt })
      await caller.confirm()
    })
  }

  async function updateDraft (
    caller: Caller, draft: DraftRow, given: Static<typeof UpdatePost>, conditions: Conditions
  ): Promise<PostRow | DraftRow> {
    const { publishedAt, ...changes } = given
    if (publishedAt === undefined) return drafts.update(caller, draft, changes, conditions)
    const publishAt = timeOf(publishedAt)
    if (publishAt !== null) caller.authorize('posts:create')
    return publishAt === undefined
      ? publish(caller, draft, changes, conditions)
      : drafts.update(caller, draft, { ...changes, publishAt }, conditions)
  }

  function updatePost (
    caller: Caller, { id }: PostRow, { publishedAt, ...changes }: Static<typeof UpdatePost>, conditions: Conditions
  ): Promise<PostRow> {
    if (publishedAt !== undefined && timeOf(publishedAt) !== undefined) throw new AlreadyPublished()
    return posts.update(caller, id, changes, conditions)
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
      const post = await posts.find(caller, id)
      if (post) caller.authorize(action, { ownerId: post.authorId })
    },

    /** Whether creating a post takes little more than a statement. */
    isQuick: !hooks.has('beforePostCreate') && !hooks.has('onPostCreate'),

    /**
     * Creates a post, or a draft of the caller. Throws `Unauthenticated`, `Forbidden`, `InvalidInput`, `UserNotFound`,
     * `Overloaded`, `TooManyPosts`, `TooManyDrafts`, `InvalidToken`, and `KeyTaken` if the key `once` is taken. So do
     * the other changes.
     */
    async create (
      caller: Caller, { authorId: author, ...given }: GivenPost, once?: ResultKey
    ): Promise<PostRow | DraftRow> {
      const authorId = authorizeCreation(caller, author)
      const { title, content, publishedAt } = parsePost({ ...given, ...withText(given) })
      const post = { title, content, authorId }
      const publishAt = publishedAt === undefined ? undefined : timeOf(publishedAt)
      if (publishAt !== undefined) {
        if (authorId !== caller.actor?.id) throw new InvalidInput('publishedAt must not make a draft of another author')
        return drafts.create({ ...post, publishAt, ...actorOf(caller), once }, caller)
      }
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
     * Changes the members that are given, and publishes a draft or plans when. Throws `PostNotFound`,
     * `Unauthenticated`, `Forbidden`, `InvalidInput`, `PreconditionFailed`, `InvalidToken`, and `AlreadyPublished` if a
     * post would become a draft.
     */
    async update (
      caller: Caller, id: string, { title, content, ...given }: GivenChanges,
      { once, ...conditions }: PostChangeOptions = {}
    ): Promise<PostRow | DraftRow> {
      const post = await findOwn(caller, 'posts:update', id)
      const match = matchOf(conditions)
      const changes = parseChanges({
        ...title != null && { title }, ...content != null && { content }, ...withText(given),
      })
      if (once) budget.require(caller.getActor().id)
      const asPost = (post: PostRow) => updatePost(caller, post, changes, { match, once })
      const updated = isDraft(post)
        ? await unlessPublished<PostRow | DraftRow>(
          caller, post.id, () => updateDraft(caller, post, changes, { match, once }), asPost
        )
        : await asPost(post)
      if (once) budget.of(caller.getActor().id).take(Buffer.byteLength(updated.content) + OTHER_BYTES)
      return updated
    },

    /**
     * Deletes a post or a draft. Returns its id. Throws `PostNotFound`, `Unauthenticated`, `Forbidden`, `InvalidInput`,
     * `PreconditionFailed`, `InvalidToken`.
     */
    async delete (caller: Caller, id: string, { once, ...conditions }: PostChangeOptions = {}): Promise<string> {
      const post = await findOwn(caller, 'posts:delete', id)
      const matching = { match: matchOf(conditions), once }
      const asPost = ({ id }: Pick<PostRow, 'id'>) => posts.delete(caller, id, matching)
      await (isDraft(post)
        ? unlessPublished(caller, post.id, () => drafts.delete(caller, post, matching), asPost)
        : asPost(post))
      return post.id
    },

    /** Returns a created post or draft again. Throws `Unauthenticated`, `Forbidden`, `InvalidInput`. */
    restoreCreated (caller: Caller, { authorId }: GivenPost, stored: StoredResult): PostRow | DraftRow {
      authorizeCreation(caller, authorId)
      return restore(stored)
    },

    /** Returns a post again that was changed or deleted. Throws `Unauthenticated`, `Forbidden`. */
    restoreChanged (caller: Caller, action: 'posts:update' | 'posts:delete', stored: StoredResult): PostRow | DraftRow {
      const post = restore(stored)
      caller.authorize(action, { ownerId: post.authorId })
      return post
    },

    /**
     * Publishes a draft whose time has come, for the host. Does nothing if another node publishes it, or it has changed
     * meanwhile. What a hook rejects remains a draft without a time.
     */
    async publishDue (caller: Caller, { id, authorId }: DraftId): Promise<void> {
      const draft = await drafts.read(authorId, id)
      if (!draft?.publishAt || draft.publishAt.getTime() > clock.now()) return
      try {
        await publish(caller, draft, {}, {})
      } catch (err) {
        if (err instanceof PostNotFound || err instanceof PreconditionFailed || err instanceof Overloaded) return
        if ((err as { statusCode?: unknown }).statusCode === 503) throw err
        caller.log.warn({ err, postId: id }, 'A hook of the host has rejected a draft whose time had come')
        await drafts.cancel(draft)
      }
    },
  }
}

const restore = (stored: StoredResult) => isOfDraft(stored) ? restoreDraft(stored) : restorePost(stored)
