import type { Generated, GeneratedAlways } from 'kysely'

/**
 * A consumer of events: a handler or a webhook of some node, with one row for each name of an event that it receives.
 */
export interface EventConsumersTable {
  /** For example `handler welcome-mail`. */
  name: string
  type: string
  /** When a node last reported that it has the consumer. */
  seen_at: Generated<Date>
}

/** A delivery that has not succeeded yet: of an event to a consumer, or of a mail. See `db/outbox/store.ts`. */
export interface OutboxTable {
  /** Deliveries with the same consumer and subject are made in this order; a bigint, which is read as text. */
  position: GeneratedAlways<string>
  id: Generated<string>
  consumer: string
  type: string
  subject: string
  data: unknown
  created_at: Generated<Date>
  /** A mail whose link has expired is not sent any more, and an event is not delivered again. */
  expires_at: Generated<Date>
  /** When to attempt it next. During an attempt, when another node may take it over. */
  due_at: Generated<Date>
  /** Identifies the attempt that is being made; null if there is none. */
  lease: Generated<string | null>
  attempts: Generated<number>
}

/** A delivery of an event that was given up. */
export interface FailedDeliveriesTable {
  id: string
  consumer: string
  type: string
  subject: string
  data: unknown
  created_at: Date
  attempts: number
  error: string
  failed_at: Generated<Date>
}

/** How many mails a recipient may get. See `limit_mail` in `db/migrations/0001.ts`. */
export interface MailLimitsTable {
  /** SHA-256 of the kind of mails and the recipient. */
  key: string
  /** When the whole limit is available again. Each mail moves it. */
  free_at: Date
}
