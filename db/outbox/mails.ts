import { sql, type Expression } from 'kysely'
import { anyOf } from '../driver/postgres.ts'
import { linkTables } from '../mail-links/kinds.ts'
import { replanned } from '../driver/replanned.ts'
import type { Database } from '../tables/index.ts'
import { deliveryOwner } from './owner.ts'

/**
 * Which limit of its recipient a mail counts toward. Each kind has its own, so that mails that strangers cause do not
 * keep others from being sent:
 * - `account`: notices of changes of an account. What exceeds the limit waits, and is sent in one mail.
 * - `invitation`: links to set a first password, which only an admin or the host can cause.
 * - `organization`: invitations to organisations, which their members can cause.
 * - `reset`: links to set a password, which anybody can request. Whoever does so sends the owner links that work.
 * - `login`: links and codes to log in, which anybody can request as well, with the same effect.
 * - `step-up`: codes that only a session of the user can request.
 * - `request`: other mails that anybody can cause.
 */
export type MailBudget = 'account' | 'invitation' | 'organization' | 'reset' | 'login' | 'step-up' | 'request'

/** How many mails one recipient may get: `burst` at once, and one in `seconds` in the long run. */
export interface MailLimit { burst: number, seconds: number }

/** A mail that a change causes. */
export interface NewMail {
  id: string
  /** JSON of `StoredMailDetails`. */
  content: string
  /** How long the links in the mail work. It is not sent later. */
  seconds: number
}

/** What a mail says. */
export interface StoredContent {
  /** Encrypted if there is a secret. */
  content: string
  /** The hash of the token in its link, in hexadecimal digits; null if it has no link that can become void. */
  token: string | null
  /**
   * The content to send if its link is void by then, in the form of `content`. Notices have one, because they are
   * always sent.
   */
  withoutLink?: string
}

/** What a notice says in a mail with several of them. */
export interface NewNotice extends Omit<StoredContent, 'token'> {
  /** The name of the mail. */
  name: string
}

/** A notice that another one has in the same mail. */
export interface MergedNotice extends NewNotice, StoredContent {
  /** The id of the mail that it would have been. */
  id: string
  /** When the change was made, in ISO 8601. */
  at: string
  /** Whether further ones of this name are not in the mail. */
  isLast: boolean
}

/** What is known about a mail before its recipient is. */
export interface StoredMailDetails extends StoredContent {
  budget: MailBudget
  /** Of notices, whose budget is `account`. */
  notice?: NewNotice
  /** Removed when it is stored. */
  limits?: { verified: MailLimit, unverified: MailLimit }
}

/** A mail in the outbox, as its `data`. */
export interface StoredMail extends Omit<StoredMailDetails, 'limits'> {
  /**
   * Null if there is nobody to send it to: the row exists only so that an unknown address causes the same work as a
   * known one, or so that a node logs that the limit of the recipient is used up.
   */
  to: string | null
  userId: string | null
  isLimited?: true
  /** Notices that have followed while this one waited: see `merge_notice` in `db/migrations/0001.ts`. */
  merged?: MergedNotice[]
}

/** The consumer of mails, and the type of its deliveries. */
export const MAIL = 'mail'

/** Whether a delivery is a mail; the others are events. In parentheses, because it is compared with booleans. */
export const isMail = sql<boolean>`(type = ${sql.lit(MAIL)})`

/** The columns to fill when a statement stores a mail along with its change. */
export const mailColumns = ['id', 'consumer', 'type', 'subject', 'data', 'expires_at'] as const

/** Returns the values of `mailColumns`. Each mail is a subject of its own, so that one that fails delays no other. */
export function mailValues (
  { id, content, seconds }: { [Member in keyof NewMail]: Expression<unknown> }, to: Expression<unknown>,
  userId: Expression<unknown>
) {
  return [
    sql<string>`${id}::uuid`.as('id'), sql<string>`${sql.lit(MAIL)}`.as('consumer'),
    sql<string>`${sql.lit(MAIL)}`.as('type'), sql<string>`${id}::uuid`.as('subject'),
    sql`${content}::text::jsonb || jsonb_build_object('to', ${to}::text, 'userId', ${userId}::text)`.as('data'),
    sql<Date>`clock_timestamp() + least(make_interval(secs => ${seconds}), interval '3 days')`.as('expires'),
  ] as const
}

/** Returns a mail as expressions for `mailValues`. */
export const mailParameters = ({ id, content, seconds }: NewMail) =>
  ({ id: sql`${id}`, content: sql`${content}`, seconds: sql`${seconds}` })

/**
 * Stores a mail, to be sent after the commit of the transaction. Returns whether it will be sent, or would be if it had
 * a recipient: not if the limit of the recipient is used up. A notice is always sent, maybe later in a mail with
 * others.
 * @param to null to store one that is not sent
 */
export async function insertMail (
  trx: Database, mail: NewMail, to: string | null, userId: string | null
): Promise<boolean> {
  const stored = await trx.insertInto('outbox').columns(mailColumns)
    .expression(() => trx.selectNoFrom(mailValues(mailParameters(mail), sql`${to}`, sql`${userId}`)))
    .returning(sql<boolean>`data ? 'isLimited'`.as('isLimited')).executeTakeFirst()
  // A notice that is added to another one has no row.
  return !stored?.isLimited
}

/**
 * Returns what to send of each content about a user, in the form in which it is stored. If its link is void, or its
 * user is disabled, that is the content without the link, or undefined if there is none: then it is not sent. Nor is
 * anything sent about a user who was deleted.
 */
export async function findContents (
  db: Database, userId: string | null, contents: readonly StoredContent[]
): Promise<(string | undefined)[]> {
  const user = userId === null
    ? { disabled: false }
    : await db.selectFrom('users').select('disabled').where('id', '=', userId).executeTakeFirst()
  const found: (string | undefined)[] = []
  for (const { token, content, withoutLink } of contents) {
    const isValid = token === null || (user !== undefined && !user.disabled && await isTokenValid(db, token))
    found.push(user && (isValid ? content : withoutLink))
  }
  return found
}

async function isTokenValid (db: Database, token: string): Promise<boolean> {
  const hash = Buffer.from(token, 'hex')
  const { isValid } = await db.selectNoFrom(({ or, exists, selectFrom }) => or(linkTables.map((table) =>
    exists(selectFrom(table).select('hash').where('hash', '=', hash)
      .where('expires_at', '>', sql<Date>`now()`)))).as('isValid'))
    .executeTakeFirstOrThrow()
  return Boolean(isValid)
}

/** Deletes the failed mails about users, and at most `limit` of the waiting ones. Returns the number of the latter. */
export async function deleteMailsOf (db: Database, userIds: readonly string[], limit: number): Promise<number> {
  // There are at most some thousand.
  await db.deleteFrom('failed_deliveries').where('type', '=', MAIL)
    .where(deliveryOwner, '=', sql<string>`any(${userIds}::text[])`).execute()
  const { numDeletedRows } = await replanned(db).deleteFrom('outbox').where('position', '=', ({ selectFrom }) =>
    anyOf(selectFrom('outbox').select('position').where('consumer', '=', sql.lit(MAIL))
      .where(deliveryOwner, '=', sql<string>`any(${userIds}::text[])`).limit(limit).forUpdate()
      .skipLocked())).executeTakeFirstOrThrow()
  return Number(numDeletedRows)
}
