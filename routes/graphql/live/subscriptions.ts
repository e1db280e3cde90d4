import type { FastifyInstance } from 'fastify'
import type { GraphQLError } from 'graphql'
import { ClientQuota } from '../../../plugins/support/client-quota.ts'
import type { PostStream } from '../../../plugins/posts/post-stream.ts'
import type { Followed } from '../../../plugins/posts/recent-posts.ts'
import { encodePlace } from '../../../schema/http/cursor.ts'
import { TooManySubscriptions } from '../../../schema/graphql/limits.ts'
import { formatErrors } from '../execution/format.ts'
import { BytePool } from '../limits/byte-pool.ts'
import { SharedOperation, type Subscriber } from './shared-operation.ts'
import type { Sink } from './sink.ts'
import { followHost } from './host-subscription.ts'
import { openStream, render } from './subscription.ts'
import { describe, keyOf, type Subscription } from './subscription-key.ts'

// The rest is for users, so that nobody else, from however many networks, keeps them from subscribing.
const SHARE_OF_STRANGERS = 3 / 4

export type Subscriptions = ReturnType<typeof createSubscriptions>

/**
 * Creates the engine that runs the subscriptions of all transports. mercurius would execute each subscription
 * separately. Here, subscriptions with the same operation and the same variables are executed once for all their
 * subscribers.
 */
export function createSubscriptions (usher: FastifyInstance) {
  const { usherOptions: { live }, usherStreams: { connections }, usherTelemetry: { metrics, tracing } } = usher
  const running = new Map<string, Set<SharedOperation>>()
  const different = new ClientQuota({
    perNetwork: live.subscriptionsPerNetwork,
    total: live.subscriptions,
    ofStrangers: Math.ceil(live.subscriptions * SHARE_OF_STRANGERS),
    Exceeded: TooManySubscriptions,
  })
  const ahead = new BytePool(live.bufferedBytes)
  metrics.gauge(
    'usher_shared_subscriptions',
    'Different subscriptions to posts that are executed, each for all its subscribers',
    () => [...running.values()].reduce((sum, { size }) => sum + size, 0)
  )

  const runningAs = (key: string): SharedOperation[] => [...running.get(key) ?? []]

  function start (
    key: string, subscription: Subscription, stream: PostStream<Followed>, subscriber: Subscriber
  ): void {
    const operation = new SharedOperation(stream, {
      render: (followed) => render(usher, subscription, { followed }),
      // An operation that has caught up with another one for the same key is merged into it.
      onIdle (operation) {
        const other = runningAs(key).find((other) => other !== operation && other.suits(operation.position))
        if (!other) return
        operation.moveTo(other)
        end(key, operation)
      },
      // A slow subscriber continues on its own stream.
      onSlow: (operation, slow) => start(key, subscription, operation.streamFrom(slow.position), slow),
      onFailed (operation, error) {
        // The operation has already failed because of an earlier event, or nobody is left to notify.
        if (operation.hasNoSubscribers) return
        end(key, operation)
        operation.fail(formatErrors([error as GraphQLError], usher.log))
      },
      ahead,
    })
    operation.add(subscriber)
    const operations = running.get(key) ?? new Set()
    running.set(key, operations.add(operation))
    // The operation outlives the request of its first subscriber.
    if (tracing) tracing.detached(() => { void operation.run() })
    else void operation.run()
  }

  function leave (key: string, subscriber: Subscriber): void {
    const operation = runningAs(key).find((operation) => operation.remove(subscriber))
    if (operation?.hasNoSubscribers) end(key, operation)
  }

  function end (key: string, operation: SharedOperation): void {
    operation.close()
    const operations = running.get(key)!
    operations.delete(operation)
    if (operations.size === 0) running.delete(key)
  }

  return {
    /**
     * Starts delivering the events of a subscription to a sink. Resolves with a function that ends the subscription.
     * Throws the errors of its arguments, `DatabaseUnavailable`, `TooManySubscriptions` and `Overloaded`.
     */
    async subscribe (given: Subscription, sink: Sink): Promise<() => void> {
      const key = keyOf(usher, given)
      const { isHosts, isExclusive } = describe(usher, given)
      const ended = isExclusive ? new AbortController() : undefined
      const subscription = ended ? { ...given, stopped: ended.signal } : given
      const taken = different.take(sink.networks, key, { isKnown: subscription.reader !== null })
      const uncount = connections.addSubscriber(sink.transport)
      const release = () => {
        taken()
        uncount()
        ended?.abort()
      }
      if (isHosts) return followHost(usher, subscription, sink, release)
      const stream = await openStream(usher, subscription).catch((error) => {
        release()
        throw error
      })
      // The returned closure must not refer to the stream. Otherwise the stream would stay in memory as long as the
      // subscription.
      const { position, epoch } = stream
      const subscriber: Subscriber = { sink, position }
      sink.begin?.(encodePlace({ position: String(position), epoch }))
      const shared = runningAs(key).find((operation) => operation.suits(position))
      if (shared) {
        stream.close()
        shared.add(subscriber)
      } else {
        start(key, subscription, stream, subscriber)
      }
      return () => {
        release()
        leave(key, subscriber)
      }
    },
  }
}
