import type { FastifyInstance } from 'fastify'
import fp from 'fastify-plugin'
import { channelOf } from '../../db/driver/channel.ts'
import { batchCalls } from '../../db/batching.ts'
import { findEnd, findEpochs, type End } from '../../db/post-positions.ts'
import { listPostsAfter } from '../../db/posts.ts'
import type { Place } from '../../schema/cursor.ts'
import { CursorLost, DatabaseUnavailable, InvalidInput } from '../../schema/errors.ts'
import type { Emitter } from '../../schema/options.ts'
import { POSTS_A_PAGE, PostStream, type Source } from './post-stream.ts'
import { RecentPosts } from './recent-posts.ts'

const RETRY_MS = 1000
// How often to poll while nothing may announce posts: an emitter can lose a message, and notifications can be unavailable
// while the database answers.
const LOOK_MS = 1000

declare module 'fastify' {
  interface FastifyInstance {
    usherEvents: ReturnType<typeof createEvents>
  }
}

function createEvents (app: FastifyInstance) {
  const { usherDatabase: { db, notifications }, usherOptions: { schema, emitter } } = app
  const streams = new Set<PostStream>()
  let recent = new RecentPosts(0, 0)
  let [again, looking] = [false, false]
  // After each connection the database may be another one, which has taken over without the latest posts.
  let [connections, checked] = [0, 0]
  let pause: PromiseWithResolvers<void> | undefined

  // All who wait share one item, so that nobody has to be turned away while the node or the database is slow.
  const findSharedEnd = batchCalls(async (_: 'end'[]) => [await findEnd(db)], { patience: Infinity })
  // Those who come back together mostly have seen the same last.
  const readPage = batchCalls(async ([page]: string[]) => [await listPostsAfter(db, JSON.parse(page!))], { size: 1, waiting: Infinity, patience: Infinity })

  const channel = channelOf(schema, 'post_created')

  // A notification says no more than that there is something to see; whatever was missed is seen with it.
  notifications.listen(channel, notice, async () => {
    connections++
    resume()
    notice()
  })

  if (emitter) listenTo(emitter)
  const timer = setInterval(() => { if (emitter || !notifications.connected) notice() }, LOOK_MS).unref()
  app.addHook('onClose', async () => clearInterval(timer))

  function listenTo (emitter: Emitter): void {
    const listener = (_: object, done: () => void) => {
      notice()
      done()
    }
    emitter.on(channel, listener)
    app.addHook('onClose', async () => { emitter.removeListener(channel, listener) })
  }

  function notice (): void {
    again = true
    if (!looking) void look()
  }

  // Reads what is new, while anybody wants to know. One look at a time, and another one for who comes meanwhile.
  async function look (): Promise<void> {
    looking = true
    while (again && streams.size > 0) {
      again = false
      const posts = recent
      try {
        const rows = await listPostsAfter(db, { after: String(posts.until), limit: POSTS_A_PAGE })
        if (rows.length === POSTS_A_PAGE) again = true
        if (checked !== connections && await isLost(posts)) {
          for (const stream of streams) stream.fail(new CursorLost())
          continue
        }
        posts.add(rows)
      } catch (error) {
        again = true
        await wait(error)
      }
      for (const stream of streams) stream.wake()
    }
    looking = false
  }

  // Posts of a later epoch have positions that were given out before, and would never be read. Asked after the posts were
  // read: those of them that follow the lost ones were committed after these.
  async function isLost ({ until, epoch }: RecentPosts): Promise<boolean> {
    // There may be another connection before the answer is here.
    const connection = connections
    const { before, current } = await findEpochs(db, String(until))
    if (epoch === current) checked = connection
    return before > epoch
  }

  // Throws unless all posts after a place have later positions. In another epoch, positions that were given out but cannot be
  // seen may belong to posts that are not committed yet.
  async function requirePlace ({ position, epoch }: Place, { latest, given, epoch: current }: End): Promise<void> {
    const isOlder = epoch !== undefined && epoch < current
    if (isOlder && (Number(position) > Number(latest) || (await findEpochs(db, position)).before > epoch)) throw new CursorLost()
    if (Number(position) > Number(given) || (epoch ?? 0) > current) throw new InvalidInput('after must be the cursor of a post')
  }

  // Until the database is back, or a while. An outage is told elsewhere.
  function wait (err: unknown): Promise<void> {
    if (!(err instanceof DatabaseUnavailable)) app.log.error({ err }, 'posts could not be read for their subscribers')
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

  const source: Source = {
    get recent () { return recent },

    read: (after, authorId) => readPage(JSON.stringify({ after: String(after), authorId, limit: POSTS_A_PAGE })),
    wait,
    enter: (stream) => streams.add(stream),
    leave: (stream) => streams.delete(stream),
  }

  return {
    /** After something failed that an event needs: resolves when it may be tried again. */
    wait,

    /**
     * Returns the posts from now on, or after a place; of all authors, or of one. To be closed by who takes it. Throws
     * `InvalidInput` for a place that no post has had, `CursorLost` if posts that follow it would be missed, and
     * `DatabaseUnavailable`. A stream fails with `CursorLost` as well.
     */
    async open ({ authorId, after }: { authorId?: string | undefined, after?: Place | undefined }): Promise<PostStream> {
      const end = await findSharedEnd('end')
      const { latest, epoch } = end
      // The database may have been set back: what follows a place is not what was missed.
      if (after) await requirePlace(after, end)
      const position = Number(after?.position ?? latest)
      const isFirst = streams.size === 0
      if (isFirst) recent = new RecentPosts(Number(latest), epoch)
      const stream = new PostStream(source, { position, epoch, authorId, isLatest: after === undefined })
      // A notification may have overtaken the reply with the positions, when there was no stream to look for.
      if (isFirst) notice()
      return stream
    },
  }
}

/** Events of posts, from the commit on any node to the subscribers of this one (contract 7.7). */
export default fp(async function events (app) {
  app.decorate('usherEvents', createEvents(app))
}, { name: 'usher-events', dependencies: ['usher-database'] })
