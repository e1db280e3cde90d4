import { useMemo, useSyncExternalStore } from 'react'
import { UsherError } from '../error.ts'
import type { UsherClient } from '../index.ts'
import { followPostChanges, graphql, type FollowedPost, type PostChange } from '../posts.ts'
import { useClient } from './context.ts'
import type { Loaded, Used } from './resource.ts'

export interface ListedPost extends Omit<FollowedPost, 'cursor'> {
  /** Whether the server has not answered yet: the post, or its change, is shown before it is stored. */
  isPending?: true
}

export interface PostListOptions {
  /** Only the posts of this user. */
  authorId?: string
  /** How many posts are loaded at first, and by each `loadMore()`: 1 to 100. Default: 50. */
  limit?: number
}

export interface PostActions {
  /** Creates a post, which is shown at once. Rejects, and shows it no longer, if the server rejects it. */
  create (post: { title: string, content: string }): Promise<ListedPost>
  /** Changes a post. Shows the change at once, and the former state again if the server rejects it. */
  update (id: string, changes: { title?: string, content?: string }): Promise<ListedPost>
  remove (id: string): Promise<void>
  /** Loads older posts. */
  loadMore (): Promise<void>
  /** Whether there are older posts. */
  readonly hasMore: boolean
}

type State = Loaded<ListedPost[]> & { readonly hasMore: boolean }
/** What a write that the server has not answered yet makes of the list. */
type Write = (posts: readonly ListedPost[]) => readonly ListedPost[]

interface Page { posts: { nodes: ListedPost[], pageInfo: { hasNextPage: boolean, endCursor: string | null } } }

const FIELDS = 'id title content createdAt author { id name }'
const PAGE = `query ($authorId: ID, $first: Int, $after: String) {
  posts(authorId: $authorId, first: $first, after: $after) { nodes { ${FIELDS} } pageInfo { hasNextPage endCursor } }
}`
const INITIAL: State = Object.freeze({ data: undefined, error: undefined, isLoading: true, hasMore: false })
// The list is read anew, from now on.
const START_AGAIN = new Set(['CURSOR_LOST', 'CURSOR_TOO_OLD'])
let created = 0

/** The newest posts, which follow what the server has, and writes that it has not answered yet. */
class PostList {
  readonly #client: UsherClient
  readonly #options: PostListOptions
  readonly #listeners = new Set<() => void>()
  readonly #writes = new Set<Write>()
  // The posts with events since the first of these writes: an event is not older than a response.
  readonly #heard = new Set<string>()
  #posts: readonly ListedPost[] | undefined
  #endCursor: string | null = null
  #state = INITIAL
  #aborter: AbortController | undefined
  #leave = () => {}

  constructor (client: UsherClient, options: PostListOptions) {
    this.#client = client
    this.#options = options
  }

  readonly current = (): State => this.#state

  readonly subscribe = (listener: () => void): () => void => {
    this.#listeners.add(listener)
    if (this.#listeners.size === 1) {
      this.#leave = this.#client.session.subscribe(this.reload)
      void this.reload()
    }
    return () => {
      this.#listeners.delete(listener)
      if (this.#listeners.size > 0) return
      this.#aborter?.abort()
      this.#leave()
    }
  }

  readonly reload = async (): Promise<void> => {
    this.#aborter?.abort()
    const aborter = this.#aborter = new AbortController()
    this.#set({ isLoading: true })
    await new Promise<void>((resolve) => { void this.#follow(aborter, resolve).then(resolve) })
  }

  readonly create = async (post: { title: string, content: string }): Promise<ListedPost> => {
    const { user } = this.#client.session.current
    const author = user ? { id: user.id, name: user.name } : null
    const shown: ListedPost =
      { ...post, id: `pending-${++created}`, createdAt: new Date().toISOString(), author, isPending: true }
    // The event of the post may arrive before the response.
    const known = new Set(this.#posts?.map(({ id }) => id))
    const isThere = (posts: readonly ListedPost[]) => posts.some(({ id, title, content, author: other }) =>
      !known.has(id) && title === post.title && content === post.content && other?.id === author?.id)
    return this.#write<ListedPost>(
      (posts) => isThere(posts) ? posts : [shown, ...posts],
      `mutation ($title: String!, $content: String!) {
        write: createPost(input: { title: $title, content: $content }) { ${FIELDS} }
      }`,
      post,
      (stored) => ({ type: 'created', cursor: '', post: stored })
    )
  }

  readonly update = async (id: string, changes: { title?: string, content?: string }): Promise<ListedPost> => {
    return this.#write<ListedPost>(
      (posts) => posts.map((post) => post.id === id ? { ...post, ...changes, isPending: true } : post),
      `mutation ($id: ID!, $title: String, $content: String) {
        write: updatePost(id: $id, input: { title: $title, content: $content }) { ${FIELDS} }
      }`,
      { id, ...changes },
      (stored) => ({ type: 'updated', cursor: '', post: stored })
    )
  }

  readonly remove = async (id: string): Promise<void> => {
    await this.#write<string>(
      (posts) => posts.filter((post) => post.id !== id), 'mutation ($id: ID!) { write: deletePost(id: $id) }', { id },
      () => ({ type: 'deleted', cursor: '', id })
    )
  }

  readonly loadMore = async (): Promise<void> => {
    if (!this.#endCursor) return
    const known = this.#posts
    const { nodes, ...page } = await this.#load(this.#endCursor)
    if (!known || !this.#posts) return
    const ids = new Set(this.#posts.map(({ id }) => id))
    this.#posts = [...this.#posts, ...nodes.filter(({ id }) => !ids.has(id))]
    this.#show(page)
  }

  // Follows before it reads, so that nothing is missed between the two.
  async #follow (aborter: AbortController, onLoaded: () => void): Promise<void> {
    const { signal } = aborter
    try {
      let onStart = () => {}
      const started = new Promise<void>((resolve) => { onStart = resolve })
      const { authorId } = this.#options
      const options = { fields: FIELDS, signal, onStart, ...authorId && { authorId } }
      const changes = followPostChanges<ListedPost>(this.#client, options)
      let next = changes.next()
      // It may fail while the list is read.
      next.catch(() => {})
      await Promise.race([started, next])
      if (signal.aborted) return
      const { nodes, ...page } = await this.#load(null, signal)
      this.#posts = nodes
      this.#show(page)
      onLoaded()
      for (let change = await next; !change.done; change = await next) {
        if (this.#writes.size > 0) this.#heard.add(idOf(change.value))
        this.#apply(change.value)
        next = changes.next()
      }
    } catch (error) {
      if (signal.aborted) return
      if (error instanceof UsherError && START_AGAIN.has(error.code!)) return this.#follow(aborter, onLoaded)
      // Nothing is followed without a list.
      aborter.abort()
      this.#set({ error, isLoading: false })
    }
  }

  async #load (after: string | null, signal?: AbortSignal) {
    const { authorId, limit: first = 50 } = this.#options
    const { posts: { nodes, pageInfo } } =
      await graphql<Page>(this.#client, PAGE, { authorId, first, after }, signal && { signal })
    return { nodes, endCursor: pageInfo.endCursor, hasMore: pageInfo.hasNextPage }
  }

  #show ({ endCursor, hasMore }: { endCursor: string | null, hasMore: boolean }): void {
    this.#endCursor = endCursor
    this.#set({ error: undefined, isLoading: false, hasMore })
  }

  // A change of a post that is not in the list is one of a page that was not loaded.
  #apply (change: PostChange<ListedPost>): void {
    if (!this.#posts) return
    if (change.type === 'deleted') this.#posts = this.#posts.filter(({ id }) => id !== change.id)
    else {
      const { post } = change
      const isKnown = this.#posts.some(({ id }) => id === post.id)
      if (isKnown) this.#posts = this.#posts.map((other) => other.id === post.id ? post : other)
      else if (change.type === 'created') this.#posts = [post, ...this.#posts]
    }
    this.#set({})
  }

  async #write<Result> (
    write: Write, mutation: string, variables: object, changeOf: (result: Result) => PostChange<ListedPost>
  ): Promise<Result> {
    this.#writes.add(write)
    this.#set({})
    try {
      const { write: result } = await graphql<{ write: Result }>(this.#client, mutation, variables)
      const change = changeOf(result)
      if (!this.#heard.has(idOf(change))) this.#apply(change)
      return result
    } finally {
      this.#writes.delete(write)
      if (this.#writes.size === 0) this.#heard.clear()
      this.#set({})
    }
  }

  #set (changes: Partial<State>): void {
    const data = this.#posts && [...[...this.#writes].reduce((posts, write) => write(posts), this.#posts)]
    this.#state = { ...this.#state, data, ...changes }
    for (const listener of this.#listeners) listener()
  }
}

const idOf = (change: PostChange<ListedPost>): string => change.type === 'deleted' ? change.id : change.post.id

/**
 * Returns the newest posts, of everybody or of one user, in step with the server: what is created, changed and deleted
 * anywhere shows at once, and what this page writes before the server has answered. Needs a service with posts and
 * GraphQL.
 */
export function usePosts (options: PostListOptions = {}, given?: UsherClient): Used<ListedPost[], PostActions> {
  const client = useClient(given)
  const { authorId, limit } = options
  const list = useMemo(
    () => new PostList(client, { ...authorId !== undefined && { authorId }, ...limit !== undefined && { limit } }),
    [client, authorId, limit]
  )
  const state = useSyncExternalStore(list.subscribe, list.current, () => INITIAL)
  const { create, update, remove, loadMore, reload } = list
  return { ...state, create, update, remove, loadMore, reload }
}
