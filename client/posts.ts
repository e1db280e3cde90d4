import { UsherError } from './error.ts'
import { readEvents } from './event-stream.ts'
import { NO_SESSION, TEMPORARY, toGraphqlError, type GraphqlResult } from './graphql.ts'
import type { UsherClient } from './index.ts'
import { backoff, wait, type RetryOptions } from './retry.ts'
import { readSocket, SocketClosed } from './socket.ts'
import { pageUrl } from './tabs.ts'

export { graphql, type GraphqlOptions, type GraphqlResult } from './graphql.ts'

/** A post as followed without the option `fields`. */
export interface FollowedPost {
  id: string
  title: string
  content: string
  createdAt: string
  author: { id: string, name: string } | null
  cursor: string
}

/** What has happened to a post. The post is as it was when this was read. */
export type PostChange<Post = Omit<FollowedPost, 'cursor'>> =
  { type: 'created' | 'updated', cursor: string, post: Post } | { type: 'deleted', cursor: string, id: string }

export interface FollowOptions {
  /** Only the posts of this user. */
  authorId?: string
  /**
   * The cursor of what is known: the `startCursor` of a page of posts, or the `cursor` of a followed post or change.
   * Default: now.
   */
  after?: string
  /** Called once, with the cursor after which it follows, before anything is yielded: read then what is followed. */
  onStart?: (after: string) => void
  /** The fields of each post, in GraphQL. `followPosts` adds `cursor`. */
  fields?: string
  /** Server-sent events, or a WebSocket. Default: `events`. */
  transport?: 'events' | 'socket'
  /** Ends the iteration. */
  signal?: AbortSignal
  /** How long to wait before connecting again. There is no limit of tries. */
  retry?: RetryOptions
}

const FIELDS = 'id title content createdAt author { id name }'
const FORBIDDEN = [4401, 4403]
// A connection that lasted for this long has worked.
const STABLE_MS = 1000

/**
 * Follows new posts: yields every one exactly once, in commit order, whatever happens to connections and nodes in
 * between. Throws an `UsherError` when the session is over, or if the server rejects the subscription.
 */
export function followPosts<Post extends { cursor: string } = FollowedPost> (
  client: UsherClient, options: FollowOptions = {}
): AsyncGenerator<Post, void> {
  return follow<Post>(client, options, 'postCreated', `cursor ${options.fields ?? FIELDS}`)
}

/**
 * Follows new posts, changes and deletions, in commit order, whatever happens to connections and nodes in between.
 * After an interruption, it yields the last state of what has changed meanwhile. Throws what `followPosts` throws, and
 * an `UsherError` with the code `CURSOR_TOO_OLD` after an interruption of more than 30 days.
 */
export async function * followPostChanges<Post = Omit<FollowedPost, 'cursor'>> (
  client: UsherClient, options: FollowOptions = {}
): AsyncGenerator<PostChange<Post>, void> {
  const post = `cursor post { ${options.fields ?? FIELDS} }`
  const changes = follow<ChangeOfPost<Post>>(
    client, options, 'postChanged',
    `__typename ... on PostCreated { ${post} } ... on PostUpdated { ${post} } ... on PostDeleted { cursor id }`
  )
  for await (const { __typename: name, cursor, post, id } of changes) {
    if (name === 'PostDeleted') yield { type: 'deleted', cursor, id: id! }
    else yield { type: name === 'PostCreated' ? 'created' : 'updated', cursor, post: post! }
  }
}

interface ChangeOfPost<Post> { __typename: string, cursor: string, post?: Post, id?: string }

async function * follow<Event extends { cursor: string }> (
  client: UsherClient, options: FollowOptions, field: string, selection: string
): AsyncGenerator<Event, void> {
  const { authorId, transport = 'events', retry = {} } = options
  const query =
    `subscription ($authorId: ID, $after: String) { ${field}(authorId: $authorId, after: $after) { ${selection} } }`
  const stop = new AbortController()
  const end = () => stop.abort()
  options.signal?.addEventListener('abort', end)
  if (options.signal?.aborted) end()
  const { signal } = stop
  const hasUser = client.session.current.state === 'active'
  let { after, onStart } = options
  let failures = 0

  const begin = (cursor: string) => {
    after = cursor
    onStart?.(cursor)
    onStart = undefined
  }

  const payload = () => ({ query, variables: { authorId, after } })
  // Events start with the cursor that their posts follow.
  async function * byEvents (): AsyncGenerator<GraphqlResult | undefined, void> {
    const headers = { 'Content-Type': 'application/json', Accept: 'text/event-stream' }
    const response = await client.fetch(
      '/graphql', { method: 'POST', headers, body: JSON.stringify(payload()), signal }
    )
    if (!response.ok || !response.body) throw new TypeError(`The server responded with ${response.status}`)
    // The server rejects a token before it starts a stream.
    if (/json/.test(response.headers.get('Content-Type') ?? '')) return yield await response.json() as GraphqlResult
    for await (const { id, event, data } of readEvents(response.body)) {
      if (event === 'next' && data) yield JSON.parse(data) as GraphqlResult
      else if (id) { begin(after ?? id); yield undefined }
    }
  }

  async function readCursor (): Promise<void> {
    const events = byEvents()
    const { value: result } = await events.next()
    await events.return()
    if (result) throw toGraphqlError(result)
  }

  async function * bySocket (): AsyncGenerator<GraphqlResult | undefined, void> {
    // Without a cursor, what is created before a socket connects again would be missed.
    if (after === undefined) await readCursor()
    else begin(after)
    const url = new URL(`${client.baseUrl}/graphql`, pageUrl)
    url.protocol = url.protocol.replace('http', 'ws')
    yield * readSocket(url.href, payload(), token, signal)
  }

  let token: string | undefined
  try {
    while (!signal.aborted) {
      const startedAt = Date.now()
      try {
        token = await client.session.token()
        if (hasUser && !token) throw over()
        for await (const result of transport === 'socket' ? bySocket() : byEvents()) {
          if (!result) continue
          const event = result.data?.[field] as Event | null | undefined
          if (!event) throw toGraphqlError(result)
          // Before the caller has the event, because it may stop here and go on with its cursor.
          after = event.cursor
          failures = 0
          yield event
        }
      } catch (error) {
        if (signal.aborted) return
        await recover(error)
      }
      if (signal.aborted) return
      if (Date.now() - startedAt > STABLE_MS) failures = 0
      // A stream that worked and has ended is opened again at once: the session may be over, and its user should know
      // soon.
      if (failures++ > 0) await wait(backoff(failures - 1, retry), signal).catch(() => {})
    }
  } finally {
    options.signal?.removeEventListener('abort', end)
    end()
  }

  async function recover (error: unknown): Promise<void> {
    const isRejected = error instanceof SocketClosed
      ? FORBIDDEN.includes(error.code)
      : error instanceof UsherError && NO_SESSION.has(error.code!)
    if (isRejected) {
      const renewed = await client.session.renew(token).catch((failure: unknown) => {
        if (failure instanceof UsherError && failure.status < 500) throw failure
        // The server cannot be reached.
        return token
      })
      if (!renewed) throw over()
    } else if (error instanceof UsherError && !TEMPORARY.has(error.code!)) throw error
  }
}

const over = () => new UsherError(401, ['The session is over'], 'INVALID_SESSION')
