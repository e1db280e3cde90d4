import { channelOf } from '../../db/driver/channel.ts'
import { batchCalls } from '../../db/batching/batching.ts'
import { listChangesAfter, listPostsAfter, type ListAfterQuery, type ChangedPost } from '../../db/posts/followed.ts'
import { findEnd, findEpochs, type End, type FollowedKind } from '../../db/posts/positions.ts'
import type { PostRow } from '../../db/posts/posts.ts'
import type { Database } from '../../db/tables/index.ts'
import type { Place } from '../../schema/http/cursor.ts'
import { CursorLost, CursorTooOld } from '../../schema/posts/post.ts'
import { DatabaseUnavailable, InvalidInput } from '../../schema/http/errors.ts'
import type { Emitter } from '../../schema/options/options.ts'
import type { Access } from '../access/index.ts'
import type { Caller } from '../access/caller.ts'
import type { Core } from '../core.ts'
import { POSTS_PER_PAGE, PostStream, type Source } from './post-stream.ts'
import { RecentPosts, type Followed } from './recent-posts.ts'

const RETRY_MS = 1000
// How often to poll for posts that may not have been announced: an emitter can lose a message, and notifications can be
// unavailable while statements succeed.
const POLL_MS = 1000

interface Dependencies extends Core {
  access: Pick<Access, 'verifyWatched'>
}

export type PostEvents = ReturnType<typeof createEvents>

/** What opens streams of one kind. */
export interface Feed<Event extends Followed> {
  /**
   * Returns a stream of the events from now on, or after a place, of the posts of all authors or of one. Whoever opens
   * it must close it. Throws `Unauthenticated`, `Forbidden`, `InvalidInput` for a place that no event has had,
   * `CursorLost` if events that follow it would be missed, `CursorTooOld`, and `DatabaseUnavailable`. The stream itself
   * can fail with `CursorLost`, too.
   */
  open (
    caller: Caller, options: { authorId?: string | undefined, after?: Place | undefined }
  ): Promise<PostStream<Event>>
}

/**
 * Delivers every post created on any node to the subscribers of this one, exactly once and in commit order (contract
 * 7.7), and the changes and deletions of posts (contract 22.1).
 */
export function createEvents (
  {
    lifecycle, database: { db, notifications }, telemetry: { batch }, options: { schema, emitter }, access,
  }: Dependencies
) {
  let isClosing = false
  // After each reconnection, the server may be a standby that has taken over without the latest posts, so it is checked
  // once.
  let connections = 0
  let pause: PromiseWithResolvers<void> | undefined

  const channel = channelOf(schema, 'post_created')
  const created = createFeed('created', listPostsAfter)
  const changed = createFeed('changed', listChangesAfter)
  const notice = () => {
    created.notice()
    changed.notice()
  }

  // A notification carries no post. It only makes the node read the table, which also finds everything that was missed.
  notifications.listen(channel, notice, async () => {
    connections++
    resume()
    notice()
  })

  if (emitter) listenTo(emitter)
  const timer = setInterval(() => { if (emitter || !notifications.listening) notice() }, POLL_MS).unref()
  lifecycle.addHook('onClose', async () => {
    isClosing = true
    clearInterval(timer)
    created.close()
    changed.close()
    resume()
    // The database closes next.
    await Promise.all([created.polling, changed.polling])
  })

  function listenTo (emitter: Emitter): void {
    const listener = (_: object, done: () => void) => {
      notice()
      done()
    }
    emitter.on(channel, listener)
    lifecycle.addHook('onClose', async () => { emitter.removeListener(channel, listener) })
  }

  // A notification of a post arrives after those of the sessions that ended before, so the subscribers are known to be
  // permitted. Without notifications they are verified, and those who may not read any more do not get the posts
  // (contract 4).
  async function requireSubscribers (): Promise<void> {
    if (emitter ? !notifications.connected : !notifications.listening) await access.verifyWatched()
  }

  // Resolves after a second, or when notifications are received again. Rejects when the app closes. Outages are logged
  // in `db/driver/`.
  async function wait (err: unknown): Promise<void> {
    if (!(err instanceof DatabaseUnavailable)) lifecycle.log.error({ err }, 'Posts could not be read for subscribers')
    if (isClosing) throw err
    if (!pause) {
      pause = Promise.withResolvers()
      setTimeout(resume, RETRY_MS).unref()
    }
    return pause.promise
  }

  function resume (): void {
    pause?.resolve()
    pause = undefined
  }

  function createFeed<Event extends Followed> (
    kind: FollowedKind, list: (db: Database, query: ListAfterQuery) => Promise<Event[]>
  ) {
    const streams = new Set<PostStream<Event>>()
    let recent = new RecentPosts<Event>(0, 0)
    let [again, isPolling, checked] = [false, false, 0]
    let polling = Promise.resolve()

    // All callers share one item, so no subscriber has to be rejected while the node or the database is slow.
    const findSharedEnd = batchCalls(
      async (_: 'end'[]) => [await findEnd(db, kind)],
      { timeoutMs: Infinity, telemetry: batch(`posts.${kind}-end`) }
    )
    // Subscribers who reconnect together mostly resume from the same position, and share a page.
    const readPage = batchCalls(
      async ([page]: string[]) => [await list(db, JSON.parse(page!))],
      { size: 1, waiting: Infinity, timeoutMs: Infinity, telemetry: batch(`posts.${kind}`) }
    )

    function notice (): void {
      again = true
      if (!isPolling && !isClosing) polling = poll()
    }

    // Reads new events while there are streams. One read runs at a time. A notice that arrives meanwhile leads to
    // another one.
    async function poll (): Promise<void> {
      isPolling = true
      while (again && streams.size > 0) {
        again = false
        const events = recent
        try {
          const rows = await list(db, { after: String(events.until), limit: POSTS_PER_PAGE })
          if (rows.length === POSTS_PER_PAGE) again = true
          if (checked !== connections && await isLost(events)) {
            for (const stream of streams) stream.fail(new CursorLost())
            continue
          }
          if (rows.length > 0) await requireSubscribers()
          events.add(rows)
        } catch (error) {
          again = true
          await wait(error).catch(() => {})
        }
        for (const stream of streams) stream.wake()
      }
      isPolling = false
    }

    // Returns whether events of a later epoch have positions that were given out before, and would never be read. This
    // must run after new events were read: those that follow such events were committed after them, so this statement
    // sees them all.
    async function isLost ({ until, epoch }: RecentPosts<Event>): Promise<boolean> {
      // There may be another reconnection before the result arrives.
      const connection = connections
      const { before, current } = await findEpochs(db, kind, String(until))
      if (epoch === current) checked = connection
      return before > epoch
    }

    // Throws unless all events that follow a place have later positions. A place of an older epoch must not be after
    // the last visible event, because events of the present epoch with positions up to that place may not be committed
    // yet.
    async function requirePlace (
      { position, epoch }: Place, { latest, given, epoch: current, forgotten }: End
    ): Promise<void> {
      const isOlder = epoch < current
      if (isOlder && (Number(position) > Number(latest) || (await findEpochs(db, kind, position)).before > epoch)) {
        throw new CursorLost()
      }
      if (Number(position) > Number(given) || epoch > current) {
        throw new InvalidInput('after must be the cursor of a post')
      }
      if (Number(position) < Number(forgotten)) throw new CursorTooOld()
    }

    const source: Source<Event> = {
      get recent () { return recent },

      async read (after, authorId) {
        const page = await readPage(JSON.stringify({ after: String(after), authorId, limit: POSTS_PER_PAGE }))
        await requireSubscribers()
        return page
      },
      wait,
      enter: (stream) => streams.add(stream),
      leave: (stream) => streams.delete(stream),
    }

    return {
      notice,
      get polling () { return polling },

      close (): void {
        for (const stream of [...streams]) stream.close()
      },

      async open (caller, { authorId, after }) {
        caller.authorize('posts:read', { ownerId: authorId })
        const end = await findSharedEnd('end')
        const { latest, epoch } = end
        // After a failover or a restored backup, the events that follow a position may not be those that the client has
        // missed.
        if (after) await requirePlace(after, end)
        const position = Number(after?.position ?? latest)
        const isFirst = streams.size === 0
        if (isFirst) recent = new RecentPosts(Number(latest), epoch)
        const stream = new PostStream(source, { position, epoch, authorId, isLatest: after === undefined })
        // A notification may have arrived before the result with the positions, when no stream made the node read.
        if (isFirst) notice()
        return stream
      },
    } satisfies Feed<Event> & Record<string, unknown>
  }

  return {
    /**
     * Resolves when an operation that failed for an event may be tried again. Logs errors that are not outages. Rejects
     * when the app closes.
     */
    wait,
    /** New posts. */
    created: created as Feed<PostRow>,
    /** New posts, and changes and deletions of posts. */
    changed: changed as Feed<ChangedPost>,
  }
}
