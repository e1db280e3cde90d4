import type { Telemetry } from '../../db/telemetry/telemetry.ts'
import { undelivered, type Target } from './worker.ts'

const KINDS = ['handler', 'webhook', 'mail'] as const

/** Adds the metrics of deliveries, by the kind of the target: handler, webhook or mail. */
export function measureAttempts ({ metrics }: Pick<Telemetry, 'metrics'>) {
  const delivered = metrics.counter(
    'usher_outbox_delivered_total', 'Events and mails that were delivered', { label: 'target', values: KINDS }
  )
  const failed = metrics.counter(
    'usher_outbox_failed_attempts_total',
    'Attempts to deliver an event or a mail that failed',
    { label: 'target', values: KINDS }
  )
  const dropped = metrics.counter(
    'usher_outbox_dropped_total', 'Events that were dropped because too many wait', { label: 'target', values: KINDS }
  )

  /** Makes a target count its attempts. */
  function measured (target: Target): Target {
    const kind = kindOf(target.name)
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

  return {
    measured,
    /** Counts events that were dropped. */
    addDropped: (consumer: string, events: number): void => dropped.add(events, kindOf(consumer)),
  }
}

const kindOf = (name: string): string => name.split(' ')[0]!
