import { SLOW_LISTS_IN_FLIGHT, batchLists, batchCalls, type Client } from '../../db/batching/batching.ts'
import {
  MAX_BYTES_PER_STATEMENT, findPosts, listPosts, listPostsOfAuthors, postFields, toWholePosts, type AuthorPostsKey,
  type ListedPage, type ListedPost, type ListPostsQuery, type PostPage,
} from '../../db/posts/posts.ts'
import { readExcerpts, searchPosts, type SearchPostsQuery } from '../../db/posts/search-posts.ts'
import type { Database } from '../../db/tables/index.ts'
import type { BatchTelemetry } from '../../db/telemetry/batch.ts'
import type { Deadlines } from '../../schema/options/deadlines.ts'
import { CONTENT_BYTES } from '../../schema/strings/text.ts'

// The sizes of posts that are read by id are not known before.
const MAX_POSTS_PER_READ = 8 * 1024 * 1024 / CONTENT_BYTES

// The most content of a page of whole posts, in bytes.
const MAX_BYTES_PER_PAGE = 4 * 1024 * 1024

// The id and the size of a post with a content that a list has not read.
type LargePost = `${string} ${number}`

const idOf = (post: LargePost) => post.split(' ')[0]!
const bytesOf = (post: LargePost) => Number(post.split(' ')[1])

interface PostReadsOptions {
  batch: (name: string) => BatchTelemetry
  deadlines: Deadlines
  listsInFlight?: number
}

export type PostReadRecords = ReturnType<typeof createPostReads>

/**
 * Creates the reads of posts, whose statements concurrent requests share.
 * @param options.batch returns the telemetry of a kind of read
 * @param options.listsInFlight the number of concurrent lists
 */
export function createPostReads (db: Database, { batch, deadlines, listsInFlight }: PostReadsOptions) {
  const timeoutMs = deadlines.batch
  // Has more time: when it is sent, the response has been admitted and its posts have been read, which would be wasted.
  const readLarge = batchCalls((posts: LargePost[]) => findPosts(db, posts.map(idOf)), {
    size: MAX_BYTES_PER_STATEMENT, weigh: bytesOf, timeoutMs: deadlines.largeRead, telemetry: batch('posts.read-large'),
  })

  const search = (query: SearchPostsQuery) => searchPosts(db, query, deadlines.postSearch)
  const readWhole = async (page: Promise<ListedPage>): Promise<PostPage> =>
    toWholePosts(db, await page, MAX_BYTES_PER_PAGE)

  return {
    /** Returns a post, or undefined if the id is unknown or malformed. */
    read: batchCalls(
      (ids: string[]) => findPosts(db, ids), { size: MAX_POSTS_PER_READ, timeoutMs, telemetry: batch('posts.read') }
    ),

    /** Returns a page of posts, newest first. The contents of a long page are null, see `complete`. */
    list: batchLists((query: ListPostsQuery) => listPosts(db, query), {
      telemetry: batch('posts.list'), timeoutMs, ...listsInFlight !== undefined && { inFlight: listsInFlight },
    }),

    /** Returns a page of whole posts, which requests that wait for the same page share. */
    listWhole: batchLists(
      (query: Omit<ListPostsQuery, 'fields'>) => readWhole(listPosts(db, { ...query, fields: postFields })),
      { telemetry: batch('posts.list-whole'), timeoutMs, ...listsInFlight !== undefined && { inFlight: listsInFlight } }
    ),

    /**
     * Returns a page of the posts that have some words, newest first. It may have fewer posts than requested although
     * another page follows. Rejects with `SearchNotReady`.
     */
    search: batchLists(search, { telemetry: batch('posts.search'), timeoutMs, inFlight: SLOW_LISTS_IN_FLIGHT }),

    /** Returns a page of a search with whole posts. */
    searchWhole: batchLists(
      (query: Omit<SearchPostsQuery, 'fields'>) => readWhole(search({ ...query, fields: postFields })),
      { telemetry: batch('posts.search-whole'), timeoutMs, inFlight: SLOW_LISTS_IN_FLIGHT }
    ),

    /** Returns how the contents of posts begin, by their ids. */
    readExcerpts: (ids: readonly string[]): Promise<Map<string, string>> => readExcerpts(db, ids),

    /** Returns the newest posts of an author, who must exist. The contents of a long list are null, see `complete`. */
    listOfAuthor: batchCalls(
      (keys: AuthorPostsKey[]) => listPostsOfAuthors(db, keys), { timeoutMs, telemetry: batch('posts.of-author') }
    ),

    /**
     * Reads the contents that a list has not read, because they are more than 64 KiB. Posts that were deleted since are
     * left out. Call it only if the contents were requested, and there is room for them.
     */
    async complete<Posts extends readonly ListedPost[]> (posts: Posts, client?: Client): Promise<Posts | ListedPost[]> {
      if (posts.every(({ content }) => content !== null)) return posts
      const read = await Promise.all(
        posts.map((post) => post.content === null ? readLarge(`${post.id} ${post.contentBytes!}`, client) : post)
      )
      return read.filter((post) => post !== undefined)
    },
  }
}
