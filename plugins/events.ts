import type { Readable } from 'node:stream'
import type { FastifyInstance } from 'fastify'
import fp from 'fastify-plugin'
import { channelOf } from '../db/migrations.ts'
import type { PostRow } from '../db/posts.ts'

const EVENTS_WAITING = 1000
const POST_CREATED = 'postCreated'

declare module 'fastify' {
  interface FastifyInstance {
    usherEvents: ReturnType<typeof createEvents>
  }
}

/** The queue of a subscriber, as mercurius makes it: what is in `close` runs when the subscription ends. */
type Queue = Readable & { close: (() => void)[] }

function createEvents (app: FastifyInstance) {
  const { usherDatabase: { read, notifications }, usherOptions: { schema } } = app
  const queuesOf = new Map<string, Set<Queue>>()
  let tail = Promise.resolve()

  notifications.listen(channelOf(schema, 'post_created'), (id) => {
    if (queuesOf.size === 0) return
    // The posts are read at once, and told in the order of their commits.
    const post = read.post(id)
    tail = Promise.all([post, tail]).then(([post]) => post && tell(post), (err) => app.log.error({ err }, 'a post could not be told to its subscribers'))
  })

  function tell (post: PostRow): void {
    for (const topic of [topicOf(), topicOf(post.authorId)]) {
      for (const queue of queuesOf.get(topic) ?? []) push(queue, { [POST_CREATED]: post })
    }
  }

  // A subscriber that does not read is dropped, and nobody else notices.
  function push (queue: Queue, event: object): void {
    if (queue.readableLength < EVENTS_WAITING) queue.push(event)
    else queue.destroy(new Error('The subscriber is too slow'))
  }

  /** The topic of all posts, or of those of an author. */
  function topicOf (authorId?: string | null): string {
    return authorId ? `${POST_CREATED} ${authorId.toLowerCase()}` : POST_CREATED
  }

  return {
    topicOf,

    /** mercurius's publish-subscribe, fed by the database's notifications: what any node commits is told here. */
    pubsub: {
      async subscribe (topic: string, queue: Queue): Promise<void> {
        const queues = queuesOf.get(topic) ?? new Set()
        queuesOf.set(topic, queues.add(queue))
        queue.close ??= []
        queue.close.push(() => {
          queues.delete(queue)
          if (queues.size === 0) queuesOf.delete(topic)
        })
      },

      publish (): void {
        throw new Error('Events come from the database')
      },
    },
  }
}

/** Events of posts, from the commit on any node to the subscribers of this one (contract 7.7). */
export default fp(async function events (app) {
  app.decorate('usherEvents', createEvents(app))
}, { name: 'usher-events', dependencies: ['usher-database'] })
