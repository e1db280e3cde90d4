import type { FastifyPluginAsyncTypebox } from '@fastify/type-provider-typebox'
import type { FastifyError } from 'fastify'
import type { ChangedPost } from '../../db/posts/followed.ts'
import { setRetryAfter } from '../../plugins/http/errors.ts'
import type { PostStream } from '../../plugins/posts/post-stream.ts'
import type { EventStream } from '../../plugins/streams/event-stream.ts'
import { RECONNECT, RETRY_AFTER_SECONDS } from '../../plugins/streams/event-streams.ts'
import { waitForTimeSlice } from '../../plugins/streams/time-slice.ts'
import { decodePlace, encodePlace } from '../../schema/http/cursor.ts'
import { isOutage } from '../../schema/http/errors.ts'
import { failures } from '../../schema/http/reply.ts'
import { FollowPosts, PostEventStream } from '../../schema/posts/post.ts'
import type { ReplyOf, RequestOf } from '../http/route-types.ts'
import { showPost } from './show-post.ts'

// A client with this many unread bytes needs no further events for now.
const ENOUGH_BYTES = 64 * 1024

const schema = {
  tags: ['posts'],
  operationId: 'followPosts',
  summary: 'Follow new posts, changes and deletions as server-sent events, each once and in commit order',
  description: 'A client that connects again sends the `id` of the last event as `Last-Event-ID`, as browsers do, and gets what it has missed.',
  querystring: FollowPosts,
  response: { 200: PostEventStream, ...failures(400, 401, 403, 410, 429) },
}

// Each event is rendered once for all who follow posts.
const rendered = new WeakMap<ChangedPost, string>()

/** Adds the stream of posts (contract 22.2), which is that of the subscription `postChanged`. */
const eventsRoute: FastifyPluginAsyncTypebox = async (app) => {
  const {
    usherPosts: { events: { changed: changes } }, usherStreams: { connections, events },
    usherAccess: { identifies, policy, readerOf },
  } = app

  app.get('/posts/events', {
    schema: { ...schema, ...policy.securityOf('posts:read') },
    exposeHeadRoute: false,
    onRequest: identifies('posts:read'),
  }, onFollow)

  async function onFollow (request: RequestOf<typeof schema>, reply: ReplyOf<typeof schema>) {
    const { query: { authorId, after }, headers: { 'last-event-id': lastEventId } } = request
    const cursor = [lastEventId].flat()[0] || after
    try {
      const stream = await events.open(request, async (stream) => {
        const followed = await changes.open(readerOf(request), {
          authorId: authorId?.toLowerCase(), after: cursor === undefined ? undefined : decodePlace(cursor),
        })
        const { position, epoch } = followed
        // So a client that loses the connection before the first event misses nothing.
        stream.write(`${RECONNECT}id: ${encodePlace({ position: String(position), epoch })}\n\n`)
        const uncount = connections.addSubscriber('sse')
        void deliver(followed, stream)
        return () => {
          followed.close()
          uncount()
        }
      })
      events.describe(reply)
      events.send(stream, request, reply)
    } catch (error) {
      // Browsers connect again after a stream that ends, and never after a status that is an error.
      if (isOutage(error)) {
        events.describe(reply)
        return reply.send(`${RECONNECT}\n` as never)
      }
      if ((error as FastifyError).statusCode === 429) setRetryAfter(reply, RETRY_AFTER_SECONDS)
      throw error
    }
  }
}

// Delivers events until the stream of either side is closed. If events were lost, the client learns it when it connects
// again.
async function deliver (changes: PostStream<ChangedPost>, stream: EventStream): Promise<void> {
  try {
    for await (const change of changes) {
      await waitForTimeSlice()
      stream.write(render(change))
      if (stream.unread < ENOUGH_BYTES) continue
      // Otherwise each of many clients that do not read would keep a page in memory.
      changes.release()
      while (stream.unread >= ENOUGH_BYTES) await stream.drain()
    }
  } catch {
    stream.end()
  }
}

function render (change: ChangedPost): string {
  const known = rendered.get(change)
  if (known !== undefined) return known
  const data = JSON.stringify(change.post ? showPost(change.post) : { id: change.id })
  const text = `id: ${encodePlace(change)}\nevent: post.${change.kind}\ndata: ${data}\n\n`
  rendered.set(change, text)
  return text
}

export default eventsRoute
