import type { FastifyInstance } from 'fastify'
import { undelivered, type Target } from './worker.ts'

const KINDS = ['handler', 'webhook', 'mail'] as const

/** Adds the metrics of attempts. Returns a function that makes a target count its own, by its kind: handler, webhook or mail. */
export function measureAttempts ({ usherTelemetry: { metrics } }: FastifyInstance): (target: Target) => Target {
  const delivered = metrics.counter('usher_outbox_delivered_total', 'Events and mails that were delivered', { label: 'target', values: KINDS })
  const failed = metrics.counter('usher_outbox_failed_attempts_total', 'Attempts to deliver an event or a mail that failed', { label: 'target', values: KINDS })

  return (target) => {
    const [kind] = target.name.split(' ') as [string]
    return {
      ...target,
      async deliver (delivery, signal) {
        const result = await target.deliver(delivery, signal)
        // An attempt that has taken too long is a failure, and is reported as one.
        if (!signal.aborted && result !== undelivered) delivered.add(1, kind)
      },
      report (delivery, error, final) {
        failed.add(1, kind)
        return target.report(delivery, error, final)
      },
    }
  }
}
