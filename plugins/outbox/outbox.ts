import { channelOf } from '../../db/driver/channel.ts'
import { findLargeBacklogs, trimBacklog, trimConsumer } from '../../db/outbox/backlog.ts'
import { loadConsumed } from '../../db/outbox/consumed.ts'
import { deleteOldConsumers, recordConsumers } from '../../db/outbox/consumers.ts'
import type { Delivery } from '../../db/outbox/deliveries.ts'
import {
  deleteOldFailures, giveUpExpired, listFailedDeliveries, retryFailedDelivery,
} from '../../db/outbox/failures.ts'
import type {
  DeliveryContext, EventHandler, EventName, FailedDelivery, UsherEvent,
} from '../../schema/outbox/events.ts'
import { isConsumerName, readEventNames, type Webhook } from '../../schema/options/webhooks.ts'
import type { Core } from '../core.ts'
import { PURGE_BATCH_SIZE } from '../support/purge.ts'
import { createRetries } from '../support/retries.ts'
import { createSampler } from '../support/sampler.ts'
import type { Resolve } from '../support/addresses.ts'
import { describeError } from './describe-error.ts'
import { measureAttempts } from './measure.ts'
import { createWorker, type Target, type Worker, type WorkerOptions } from './worker.ts'

const HANDLER_SLOTS = 16
const WEBHOOK_SLOTS = 8
// A consumer that no node has had for this long is deleted with its deliveries.
const CONSUMER_DAYS = 7
const FAILURE_DAYS = 30
const FAILURES = 10_000
// No link of a mail works for longer in a mail that is sent late.
const FAILED_MAIL_DAYS = 3
const FAILED_MAILS = 1000
const CONSUMERS = 1000
// How many events of each kind may wait for a consumer about one user, and how many in all. An event has some 500
// bytes.
const MAX_EVENTS_PER_USER = 10_000
const MAX_EVENTS_PER_CONSUMER = 1_000_000

/** Pauses and the resolver, which tests replace. */
export interface OutboxOptions extends WorkerOptions {
  resolve?: Resolve
}

export type Outbox = ReturnType<typeof createOutbox>

/** Delivers events to handlers and webhooks from an outbox in the database (contract 12.5). */
export function createOutbox (core: Core, { resolve, ...workerOptions }: OutboxOptions) {
  const {
    lifecycle: { log }, database: { db, notifications }, telemetry, options: { schema, webhooks, deadlines },
  } = core
  const targets = new Map<string, Target>()
  const workers = new Map<string, Worker>()
  const retry = createRetries(core)
  const { measured, addDropped } = measureAttempts(telemetry)
  let scannedUntil = '0'
  let recorded: readonly Target[] | undefined
  let [ready, stopped] = [false, false]

  const wakeAll = () => { for (const worker of workers.values()) worker.wake() }
  // Without a notification, the node learns of new consumers when it purges, and of new deliveries when it polls.
  notifications.listen(channelOf(schema, 'outbox_written'), wakeAll, async () => wakeAll())
  notifications.listen(
    channelOf(schema, 'consumers_changed'), () => retry(() => loadConsumed(db)), () => loadConsumed(db)
  )

  function add (target: Target): void {
    if (targets.has(target.name)) {
      throw new Error(`usher: there is a consumer "${target.name}" already: pass another name`)
    }
    if (targets.size >= CONSUMERS) throw new Error(`usher: there are more than ${CONSUMERS} consumers of events`)
    targets.set(target.name, target)
    if (!ready) return
    retry(async () => {
      await record([target])
      start([target])
    })
  }

  async function record (added: readonly Target[]): Promise<void> {
    // Mails are not events. They are stored whenever there is a mailer, so the mailer need not be recorded as a
    // consumer.
    if (!added.some(isConsumer)) return
    await recordConsumers(db, added.filter(isConsumer))
    await loadConsumed(db)
  }

  function start (added: readonly Target[]): void {
    for (const target of added) {
      if (stopped) return
      const worker = createWorker(core, measured(target), workerOptions)
      workers.set(target.name, worker)
      worker.start()
    }
  }

  async function addWebhook (webhook: Webhook): Promise<void> {
    const { createSender, nameOfWebhook, WebhookGone } = await import('./webhooks.ts')
    const name = nameOfWebhook(webhook)
    add({
      name,
      types: webhook.events,
      slots: WEBHOOK_SLOTS,
      attemptMs: deadlines.webhook,
      deliver: createSender(core, webhook, resolve),
      report: reportTo(name),
      isFinal: (error) => error instanceof WebhookGone,
    })
  }

  // A consumer that fails does so for each of its events, so the log gets one entry per minute, and one for each that
  // is given up.
  function reportTo (consumer: string): Target['report'] {
    const isNew = createSampler({ keys: 1 })
    return ({ id, type, subject, attempts }, error, final) => {
      const err = describeError(error)
      const fields = { err, consumer, event: { id, type, subject }, attempts }
      if (final) log.error(fields, 'An event could not be delivered, and is listed as failed')
      else if (isNew(consumer)) log.warn(fields, 'An event could not be delivered: another attempt follows')
      return err.message
    }
  }

  async function boundConsumer (consumer: string): Promise<void> {
    const dropped =
      await deleteAll(() => trimConsumer(db, consumer, { keep: MAX_EVENTS_PER_CONSUMER, limit: PURGE_BATCH_SIZE }))
    if (dropped === 0) return
    addDropped(consumer, dropped)
    log.error({ consumer, events: dropped }, 'The oldest events were dropped, because too many wait for this consumer')
  }

  // Returns the number of rows that were deleted.
  async function deleteAll (deleteSome: () => Promise<number>): Promise<number> {
    const count = await deleteSome()
    return count < PURGE_BATCH_SIZE || stopped ? count : count + await deleteAll(deleteSome)
  }

  return {
    /**
     * Bounds what one user can make wait for a consumer that is unavailable (contract 12.5), so that changes of one's
     * own name do not fill the disk.
     */
    async boundBacklogs (): Promise<number> {
      const { backlogs, last, more } = await findLargeBacklogs(db, { after: scannedUntil, keep: MAX_EVENTS_PER_USER })
      scannedUntil = last
      for (const backlog of backlogs) {
        const dropped =
          await deleteAll(() => trimBacklog(db, backlog, { keep: MAX_EVENTS_PER_USER, limit: PURGE_BATCH_SIZE }))
        addDropped(backlog.consumer, dropped)
        if (dropped > 0) {
          log.error(
            { ...backlog, events: dropped },
            backlog.userId === null
              ? 'Events of the account log about nobody were dropped, because too many wait for this consumer'
              : 'Events were dropped, because too many about one user wait for this consumer'
          )
        }
      }
      return more ? PURGE_BATCH_SIZE : 0
    },

    /**
     * Calls a handler for every event of these names, on one of the nodes that have it: at least once, and in order per
     * subject. An event is delivered again if the handler throws or takes longer than 30 seconds. Throws an `Error` if
     * a name is unknown or taken.
     *
     * @param name identifies the handler on all nodes and across restarts. By default it consists of the names of the
     * events
     */
    on<Name extends EventName> (
      names: Name | readonly Name[], handler: EventHandler<Name>, { name }: { name?: string | undefined } = {}
    ): void {
      const types = readEventNames('usher: on', names)
      if (typeof handler !== 'function') throw new Error('usher: on needs a handler, which is a function')
      if (name !== undefined && !isConsumerName(name)) {
        throw new Error(
          'usher: the name of a handler must have 1 to 100 letters, digits, dots, colons, hyphens or underscores'
        )
      }
      const consumer = `handler ${name ?? types.join()}`
      add({
        name: consumer,
        types,
        slots: HANDLER_SLOTS,
        attemptMs: deadlines.handler,
        deliver: async (delivery, signal) =>
          handler(eventOf(delivery) as UsherEvent<Name>, contextOf(delivery, signal)),
        report: reportTo(consumer),
        isFinal: () => false,
      })
    },

    /** Adds a target of deliveries that are not events, such as the mailer. */
    add,

    /**
     * Returns up to `limit` deliveries that were given up, oldest first, after the one with the id `after`. They are
     * kept for 30 days.
     */
    failed: (
      { limit = 100, after }: { limit?: number | undefined, after?: string | undefined } = {}
    ): Promise<FailedDelivery[]> =>
      listFailedDeliveries(db, { limit: Math.min(Math.max(1, Math.trunc(limit) || 1), 1000), after }),

    /**
     * Delivers a failed delivery again, with new attempts for three days. Returns whether there is one with that id.
     */
    retry: (id: string): Promise<boolean> => retryFailedDelivery(db, id),

    /** Adds the webhooks of the options. Their module is loaded only if there are any. */
    async addWebhooks (): Promise<void> {
      for (const webhook of webhooks) await addWebhook(webhook)
    },

    /**
     * Records the consumers that have been added so far. Those that are added from now on are recorded and started at
     * once.
     */
    async record (): Promise<void> {
      ready = true
      recorded ??= [...targets.values()]
      await record(recorded)
    },

    /** Starts to deliver to them. */
    start: (): void => start(recorded ?? []),

    /** Finishes what is being delivered. The rest waits for another node, or for the next start. */
    async stop (): Promise<void> {
      stopped = true
      await Promise.all([...workers.values()].map((worker) => worker.stop(deadlines.drain)))
    },

    /**
     * Says that this node's consumers still exist, and deletes what is too old. Returns the number of rows as
     * `purgeRegularly` expects.
     */
    async purge (): Promise<number> {
      if (ready) await recordConsumers(db, [...targets.values()].filter(isConsumer))
      await loadConsumed(db)
      const { consumers, deliveries } = await deleteOldConsumers(db, { days: CONSUMER_DAYS, limit: PURGE_BATCH_SIZE })
      for (const { name, types } of consumers) {
        log.warn(
          { consumer: name, events: types }, 'A consumer of events is forgotten, because no node has had it for a week'
        )
      }
      const { events, mails } = await giveUpExpired(db, PURGE_BATCH_SIZE)
      if (events + mails > 0) {
        log.error({ events, mails }, 'Events and mails were given up, because no node has attempted them in time')
      }
      for (const consumer of new Set([...targets.values()].filter(isConsumer).map(({ name }) => name))) {
        await boundConsumer(consumer)
      }
      const limit = PURGE_BATCH_SIZE
      const failures = await deleteOldFailures(db, { of: 'events', days: FAILURE_DAYS, keep: FAILURES, limit })
      const failedMails =
        await deleteOldFailures(db, { of: 'mails', days: FAILED_MAIL_DAYS, keep: FAILED_MAILS, limit })
      return Math.max(deliveries, events + mails, failures, failedMails)
    },
  }
}

const isConsumer = ({ name }: Target): boolean => name.includes(' ')

function eventOf ({ id, type, createdAt, subject, data }: Delivery): UsherEvent {
  return { id, type, timestamp: createdAt, subject, data } as UsherEvent
}

const contextOf = ({ attempts }: Delivery, signal: AbortSignal): DeliveryContext => ({ signal, attempt: attempts })
