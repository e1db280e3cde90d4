import type { AuthorPostsKey, ListedPage, ListedPost, ListPostsQuery, PostPage, PostRow } from '../../db/posts/posts.ts'
import type { DraftRow, ListDraftsQuery } from '../../db/posts/drafts.ts'
import type { Page } from '../../db/tables/page.ts'
import { isGranted } from '../../schema/options/policy.ts'
import type { Caller } from '../access/caller.ts'
import { denialOf } from '../access/policy.ts'
import type { Drafts } from './drafts.ts'
import { findUnpublished } from './find-post.ts'
import type { PostRecords } from './posts.ts'

/** What a list or a search of posts is asked for. */
export interface PostQuery extends ListPostsQuery {
  /** The words that a post must have in its title or content. The last one may be the beginning of a word. */
  q?: string | undefined
}

const isSearch = <Query extends { q?: string | undefined }>(query: Query): query is Query & { q: string } =>
  query.q !== undefined

export type PostReads = ReturnType<typeof createReadPosts>

// Anybody may read posts, and therefore an API key without the action as well, but no drafts.
const mayReadDrafts = (caller: Caller) => caller.actor !== null && isGranted(caller.actor, 'posts:read') &&
  caller.allows('posts:read', { ownerId: caller.actor.id })

/**
 * Creates the reads of posts that the policy permits, for GraphQL, the console and the host. All throw
 * `Unauthenticated` or `Forbidden`, and `InvalidToken` if the session of the caller has ended meanwhile.
 */
export function createReadPosts (records: PostRecords['costly'], drafts: Drafts) {
  return {
    /**
     * Returns a post, or a draft of the reader; undefined if the id is unknown or malformed. A draft that the reader
     * may not read is like an unknown id.
     * @param identify returns who reads, where anyone may read posts and the caller is nobody
     */
    async find (
      caller: Caller, id: string, identify: () => Caller | Promise<Caller>
    ): Promise<PostRow | DraftRow | undefined> {
      const post = await records.read(id, caller.client)
      const reader = post ? caller : await identify()
      const found = !post && mayReadDrafts(reader) ? await findUnpublished(records.read, drafts, reader, id) : post
      await (found ? reader : caller).confirm()
      caller.authorize('posts:read', { ownerId: found?.authorId })
      return found
    },

    /** Returns a page of the drafts of the caller, newest first. One with more than 4 MiB of content has fewer. */
    async listDrafts (caller: Caller, query: Omit<ListDraftsQuery, 'authorId'>): Promise<Page<DraftRow>> {
      const actor = caller.getActor()
      const { id: authorId } = actor
      if (!mayReadDrafts(caller)) throw denialOf(actor, 'posts:read')
      const page = await drafts.list({ ...query, authorId }, caller.client)
      await caller.confirm()
      return page
    },

    /** Returns a post, or undefined if the id is unknown or malformed. */
    async get (caller: Caller, id: string): Promise<PostRow | undefined> {
      const post = await records.read(id, caller.client)
      await caller.confirm()
      caller.authorize('posts:read', { ownerId: post?.authorId })
      return post
    },

    /**
     * Returns a page of posts, newest first. The contents of a long page are null, see `complete`. That of a search may
     * have fewer posts than requested although another page follows. Throws `SearchNotReady`.
     */
    async list (caller: Caller, query: PostQuery): Promise<ListedPage> {
      caller.authorize('posts:read', { ownerId: query.authorId })
      const page = await (isSearch(query) ? records.search(query, caller.client) : records.list(query, caller.client))
      await caller.confirm()
      return page
    },

    /** Returns a page of whole posts. One with more than 4 MiB of content has fewer. Requests may share it. */
    async listWhole (caller: Caller, query: Omit<PostQuery, 'fields'>): Promise<PostPage> {
      caller.authorize('posts:read', { ownerId: query.authorId })
      const page = await (isSearch(query)
        ? records.searchWhole(query, caller.client)
        : records.listWhole(query, caller.client))
      await caller.confirm()
      return page
    },

    /** Returns how the contents of the posts of a list begin, by their ids. */
    async readExcerpts (caller: Caller, posts: readonly ListedPost[]): Promise<Map<string, string>> {
      const excerpts = await records.readExcerpts(posts.map(({ id }) => id))
      await caller.confirm()
      return excerpts
    },

    /** Returns the newest posts of an author, who must exist. The contents of a long list are null, see `complete`. */
    async listOfAuthor (caller: Caller, authorId: string, key: AuthorPostsKey): Promise<ListedPost[]> {
      caller.authorize('posts:read', { ownerId: authorId })
      const posts = await records.listOfAuthor(key, caller.client)
      await caller.confirm()
      return posts
    },

    /** Reads the contents that one of these lists has not read, because they are more than 64 KiB. */
    async complete<Posts extends readonly ListedPost[]> (caller: Caller, posts: Posts): Promise<Posts | ListedPost[]> {
      const complete = await records.complete(posts, caller.client)
      if (complete !== posts) await caller.confirm()
      return complete
    },
  }
}
