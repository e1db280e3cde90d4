import type { AuthorPostsKey, ListedPage, ListedPost, ListPostsQuery, PostPage, PostRow } from '../../db/posts/posts.ts'
import type { Caller } from '../access/caller.ts'
import type { PostRecords } from './posts.ts'

/** What a list or a search of posts is asked for. */
export interface PostQuery extends ListPostsQuery {
  /** The words that a post must have in its title or content. The last one may be the beginning of a word. */
  q?: string | undefined
}

const isSearch = <Query extends { q?: string | undefined }>(query: Query): query is Query & { q: string } =>
  query.q !== undefined

export type PostReads = ReturnType<typeof createReadPosts>

/**
 * Creates the reads of posts that the policy permits, for GraphQL, the console and the host. All throw
 * `Unauthenticated` or `Forbidden`, and `InvalidToken` if the session of the caller has ended meanwhile.
 */
export function createReadPosts (records: PostRecords['costly']) {
  return {
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
