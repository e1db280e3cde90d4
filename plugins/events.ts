import type { Readable } from 'node:stream'
import type { FastifyInstance } from 'fastify'
import fp from 'fastify-plugin'
import { joinCalls } from '../db/join.ts'
import { channelOf } from '../db/channel.ts'
import { findPosts, listLatePosts, type PostRow } from '../db/posts.ts'

// Of events that a subscriber has not read. Many small ones may come at once, and large ones may not pile up.
const OCTETS_WAITING = 32 * 1024 * 1024
const OCTETS_AN_EVENT = 500
// How long after its beginning a transaction may commit.
const COMMIT_MS = 15_000
const POSTS_REMEMBERED = 10_000
const POST_CREATED = 'postCreated'

declare module 'fastify' {
  interface FastifyInstance {
    usherEvents: ReturnType<typeof createEvents>
  }
}

/** The queue of a subscriber, as mercurius makes it: what is in `close` runs when the subscription ends. */
type Queue = Readable & { close: (() => void)[] }

interface Subscriber {
  queue: Queue
  octetsWaiting: number
  /** Ends its connection. */
  drop: () => void
}

/** An event, on its way to one subscriber. */
export interface PostEvent {
  postCreated: PostRow
  /** To be called when it is no longer waiting. */
  taken (): void
}

function createEvents (app: FastifyInstance) {
  const { usherDatabase: { db, notifications }, usherOptions: { schema } } = app
  // Of its own: what has been announced is read however long that takes.
  const read = joinCalls((ids: string[]) => findPosts(db, ids), { waiting: Infinity, patience: Infinity })
  const subscribersOf = new Map<string, Set<Subscriber>>()
  // The latest posts heard of.
  const heard = new Set<string>()
  let heardAt = performance.now()
  let tail = Promise.resolve()

  notifications.listen(channelOf(schema, 'post_created'), hear, catchUp)

  function hear (id: string): void {
    if (heard.has(id)) return
    heardAt = performance.now()
    heard.add(id)
    if (heard.size > POSTS_REMEMBERED) heard.delete(heard.values().next().value!)
    if (subscribersOf.size === 0) return
    // The posts are read at once, and told in the order of their commits.
    const post = read(id).catch(() => read(id)).catch((err) => {
      heard.delete(id)
      app.log.error({ err, id }, 'a post could not be told to its subscribers')
    })
    tail = Promise.all([post, tail]).then(([post]) => { if (post) tell(post) })
  }

  // Whatever was missed while the connection was down. Since the last one heard of, there is little else.
  async function catchUp (): Promise<void> {
    const seconds = (performance.now() - heardAt + COMMIT_MS) / 1000
    for (const id of await listLatePosts(db, { seconds, limit: POSTS_REMEMBERED })) hear(id)
  }

  function tell (post: PostRow): void {
    for (const topic of [topicOf(), topicOf(post.authorId)]) {
      for (const subscriber of subscribersOf.get(topic) ?? []) push(subscriber, post)
    }
  }

  // A subscriber that does not read is dropped, and nobody else notices.
  function push (subscriber: Subscriber, postCreated: PostRow): void {
    const octets = OCTETS_AN_EVENT + postCreated.content.length
    if (subscriber.octetsWaiting + octets > OCTETS_WAITING) return subscriber.drop()
    subscriber.octetsWaiting += octets
    subscriber.queue.push({ postCreated, taken: () => { subscriber.octetsWaiting -= octets } } satisfies PostEvent)
  }

  /** The topic of all posts, or of those of an author. */
  function topicOf (authorId?: string | null): string {
    return authorId == null ? POST_CREATED : `${POST_CREATED} ${authorId.toLowerCase()}`
  }

  return {
    topicOf,

    /** mercurius's publish-subscribe, fed by the database's notifications: what any node commits is told here. */
    pubsub: {
      async subscribe (topic: string, queue: Queue, drop: () => void): Promise<void> {
        const subscriber = { queue, octetsWaiting: 0, drop }
        const subscribers = subscribersOf.get(topic) ?? new Set()
        subscribersOf.set(topic, subscribers.add(subscriber))
        queue.close = [() => {
          subscribers.delete(subscriber)
          if (subscribers.size === 0) subscribersOf.delete(topic)
        }]
      },
    },
  }
}

/** Events of posts, from the commit on any node to the subscribers of this one (contract 7.7). */
export default fp(async function events (app) {
  app.decorate('usherEvents', createEvents(app))
}, { name: 'usher-events', dependencies: ['usher-database'] })
