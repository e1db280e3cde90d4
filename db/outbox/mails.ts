import { sql, type Expression } from 'kysely'
import type { Database } from '../tables.ts'

/** A mail that a change causes. Its content is encrypted if there is a secret. */
export interface NewMail {
  id: string
  content: string
  /** How long the links in the mail work. It is not sent later. */
  seconds: number
}

/** A mail in the outbox, as its `data`. */
export interface StoredMail {
  /** Null if there is nobody to send it to: the row exists only so that an unknown address causes the same work as a known one. */
  to: string | null
  content: string
  userId: string | null
}

/** The consumer of mails, and the type of its deliveries. */
export const MAIL = 'mail'

/** The columns to fill when a statement stores a mail along with its change. */
export const mailColumns = ['id', 'consumer', 'type', 'subject', 'data', 'expires_at'] as const

/** Returns the values of `mailColumns`. Each mail is a subject of its own, so that one that fails delays no other. */
export function mailValues (
  { id, content, seconds }: { [Member in keyof NewMail]: Expression<unknown> }, to: Expression<unknown>, userId: Expression<unknown>
) {
  return [
    sql<string>`${id}::uuid`.as('id'), sql<string>`${sql.lit(MAIL)}`.as('consumer'), sql<string>`${sql.lit(MAIL)}`.as('type'), sql<string>`${id}::uuid`.as('subject'),
    sql`jsonb_build_object('to', ${to}::text, 'content', ${content}::text, 'userId', ${userId}::text)`.as('data'),
    sql<Date>`clock_timestamp() + least(make_interval(secs => ${seconds}), interval '3 days')`.as('expires'),
  ] as const
}

/** Returns a mail as expressions for `mailValues`. */
export const mailParameters = ({ id, content, seconds }: NewMail) => ({ id: sql`${id}`, content: sql`${content}`, seconds: sql`${seconds}` })

/**
 * Stores a mail, to be sent after the commit of the transaction.
 * @param to null to store one that is not sent
 */
export async function insertMail (trx: Database, mail: NewMail, to: string | null, userId: string | null): Promise<void> {
  await trx.insertInto('outbox').columns(mailColumns)
    .expression(() => trx.selectNoFrom(mailValues(mailParameters(mail), sql`${to}`, sql`${userId}`)))
    .execute()
}
