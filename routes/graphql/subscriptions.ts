import type { FastifyInstance } from 'fastify'
import type { PostStream } from '../../plugins/post-stream.ts'
import { SharedOperation, type Subscriber, type Taker } from './shared-operation.ts'
import { keyOf, openStream, render, type Subscription } from './subscription.ts'

export type Subscriptions = ReturnType<typeof createSubscriptions>

/**
 * The subscriptions of a node, by whatever way they came. mercurius would run each for itself; here those that are the
 * same operation with the same variables are run once, however many have asked for it.
 */
export function createSubscriptions (usher: FastifyInstance) {
  const running = new Map<string, Set<SharedOperation>>()

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
    })
    operation.add(subscriber)
    const operations = running.get(key) ?? new Set()
    running.set(key, operations.add(operation))
    operation.run().catch((err) => usher.log.error({ err }, 'a subscription has failed'))
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
    /**
     * Begins to deliver the events of a subscription, until the function that it returns is called. Throws the errors of
     * its arguments, and `DatabaseUnavailable`.
     */
    async subscribe (subscription: Subscription, taker: Taker): Promise<() => void> {
      const stream = await openStream(usher, subscription)
      const key = keyOf(subscription)
      // A closure that names the stream would keep it for as long as the subscriber stays.
      const { position } = stream
      const subscriber: Subscriber = { taker, position }
      taker.begin?.(position)
      const shared = runningAs(key).find((operation) => operation.suits(position))
      if (shared) {
        stream.close()
        shared.add(subscriber)
      } else {
        start(key, subscription, stream, subscriber)
      }
      return () => leave(key, subscriber)
    },
  }
}
