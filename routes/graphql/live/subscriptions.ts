import type { FastifyInstance } from 'fastify'
import type { GraphQLError } from 'graphql'
import type { PostStream } from '../../../plugins/posts/post-stream.ts'
import { encodePlace } from '../../../schema/cursor.ts'
import { TooManyConnections, TooManySubscriptions } from '../../../schema/errors.ts'
import { formatErrors } from '../format.ts'
import { ByteBudget, Quota, UnreadBytes } from './quotas.ts'
import { SharedOperation, type Subscriber, type Sink } from './shared-operation.ts'
import { keyOf, openStream, render, type Subscription } from './subscription.ts'

export type Subscriptions = ReturnType<typeof createSubscriptions>

/**
 * The subscriptions of a node, by whatever way they came. mercurius would run each for itself; here those that are the
 * same operation with the same variables are run once, however many have asked for it.
 */
export function createSubscriptions (usher: FastifyInstance) {
  const { live } = usher.usherOptions
  const running = new Map<string, Set<SharedOperation>>()
  const connections = new Quota({ perNetwork: live.connectionsPerNetwork, total: live.connections, Exceeded: TooManyConnections })
  const different = new Quota({ perNetwork: live.subscriptionsPerNetwork, total: live.subscriptions, Exceeded: TooManySubscriptions })
  const ahead = new ByteBudget(live.bufferedBytes)

  const runningAs = (key: string): SharedOperation[] => [...running.get(key) ?? []]

  function start (key: string, subscription: Subscription, stream: PostStream, subscriber: Subscriber): void {
    const operation = new SharedOperation(stream, {
      render: (event) => render(usher, subscription, event),
      // Who was behind joins others when it has caught up with them.
      onIdle (operation) {
        const other = runningAs(key).find((other) => other !== operation && other.suits(operation.position))
        if (!other) return
        operation.moveTo(other)
        end(key, operation)
      },
      // Who is slow goes on alone, at a pace of its own.
      onSlow: (operation, slow) => start(key, subscription, operation.streamFrom(slow.position), slow),
      onFailed (operation, error) {
        // Other events of its may fail as well.
        if (operation.deserted) return
        end(key, operation)
        operation.fail(formatErrors([error as GraphQLError], usher.log))
      },
      ahead,
    })
    operation.add(subscriber)
    const operations = running.get(key) ?? new Set()
    running.set(key, operations.add(operation))
    void operation.run()
  }

  function leave (key: string, subscriber: Subscriber): void {
    const operation = runningAs(key).find((operation) => operation.remove(subscriber))
    if (operation?.deserted) end(key, operation)
  }

  function end (key: string, operation: SharedOperation): void {
    operation.close()
    const operations = running.get(key)!
    operations.delete(operation)
    if (operations.size === 0) running.delete(key)
  }

  return {
    /** Bounds what the clients of all connections leave unread. */
    unread: new UnreadBytes(live.unreadBytes),

    /**
     * Admits a socket or an event stream from a network, and returns how to tell that it has closed. Throws
     * `TooManyConnections` or `Overloaded`.
     */
    admit: (network: string): () => void => connections.take(network),

    /**
     * Begins to deliver the events of a subscription, until the function that it returns is called. Throws the errors of
     * its arguments, `DatabaseUnavailable`, `TooManySubscriptions` and `Overloaded`.
     */
    async subscribe (subscription: Subscription, sink: Sink): Promise<() => void> {
      const key = keyOf(subscription)
      const release = different.take(sink.network, key)
      const stream = await openStream(usher, subscription).catch((error) => {
        release()
        throw error
      })
      // A closure that names the stream would keep it for as long as the subscriber stays.
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
