import type { FastifyInstance } from 'fastify'
import type { GraphQLError } from 'graphql'
import { formatErrors } from '../execution/format.ts'
import { readHostError } from '../host/errors.ts'
import { ENOUGH_BYTES, type Sink } from './sink.ts'
import { openSource, render } from './subscription.ts'
import type { Subscription } from './subscription-key.ts'
import { waitForTimeSlice } from '../../../plugins/streams/time-slice.ts'

/**
 * Delivers the events of a host's subscription to a sink, one after the other. While the client does not read, no
 * further event is asked for, so at most one is in memory. Resolves with a function that ends the subscription. Throws
 * the errors of the host's `subscribe`.
 * @param release called once when the subscription ends, for whatever reason
 */
export async function followHost (
  usher: FastifyInstance, subscription: Subscription, sink: Sink, release: () => void
): Promise<() => void> {
  const iterator = await open().catch((error) => {
    release()
    throw error
  })
  const stopped = Promise.withResolvers<void>()
  let isStopped = false
  const isFull = () => !isStopped && sink.waiting >= ENOUGH_BYTES
  sink.begin?.()
  void run()
  return stop

  async function open (): Promise<AsyncIterator<unknown>> {
    return (await openSource(usher, subscription))[Symbol.asyncIterator]()
  }

  // Never rejects.
  async function run (): Promise<void> {
    try {
      for (;;) {
        // The host may have many events at once, which must not delay other requests.
        await waitForTimeSlice()
        const { value, done } = await iterator.next()
        if (isStopped) return
        if (done) return end(() => sink.complete())
        const event = await render(usher, subscription, value)
        while (isFull()) await Promise.race([sink.drain(), stopped.promise])
        if (isStopped) return
        sink.deliver(event)
      }
    } catch (error) {
      if (isStopped) return
      end(() => sink.fail(formatErrors([readHostError(error) as GraphQLError], usher.log)))
    }
  }

  function end (notify: () => void): void {
    stop()
    notify()
  }

  function stop (): void {
    if (isStopped) return
    isStopped = true
    stopped.resolve()
    release()
    void close()
  }

  // A generator that waits for something only ends when that is there. The host can end the wait with the signal of its
  // context.
  async function close (): Promise<void> {
    try {
      await iterator.return?.()
    } catch (err) {
      usher.log.debug({ err }, 'the events of a subscription could not be closed')
    }
  }
}
