import { deleteApiKeysOf } from '../api-keys/api-keys.ts'
import { deleteSessionsOf } from '../sessions/ended-sessions.ts'
import type { Database } from '../tables/index.ts'
import { expireResumableUploads } from '../uploads/resumable-uploads.ts'
import { voidUploadLinks } from '../uploads/upload-links.ts'
import { lockUser } from '../users/users.ts'

// Each row is the token of a link or a code that was mailed for a user, or of a login that waits for the second factor.
// Their foreign keys delete them along with the user.
const linkTables = ['undo_tokens', 'password_tokens', 'email_tokens', 'login_mails', 'login_challenges'] as const

/** What another password makes void: everything that somebody else may have, except links that undo a change. */
export const tablesOfMailbox = ['password_tokens', 'email_tokens', 'login_mails', 'login_challenges'] as const

/**
 * Makes links and codes void that were mailed for a user, and logins that wait for a second factor: all of them, or
 * those of some tables. Call it in a transaction that has locked the user.
 */
export async function voidLinks (
  trx: Database, userId: string, tables: readonly typeof linkTables[number][] = linkTables
): Promise<void> {
  for (const table of tables) await trx.deleteFrom(table).where('user_id', '=', userId).execute()
}

/** The ids of what a repair has ended. */
export interface Voided { sessions: string[], keys: string[] }

/** Returns the ids of everything whose tokens and keys nodes reject from now on. */
export const endedOf = ({ sessions, keys }: Voided): string[] => [...sessions, ...keys]

/**
 * Makes everything void that was issued to a user, to whoever has it now: ends all sessions, deletes the API keys, and
 * voids logins that wait for a second factor, links to uploads, unfinished uploads, and the links that set a password,
 * verify an address, log in or undo a change. Every repair of an account calls it in its transaction (contract 11.3).
 * The user is locked first, so that a change by one of the sessions either precedes it or fails.
 * @param actorId the user who repairs; null if it is the operator or the host
 */
export async function voidIssued (trx: Database, userId: string, actorId: string | null): Promise<Voided> {
  await lockUser(trx, userId)
  await voidLinks(trx, userId)
  await voidUploadLinks(trx, userId)
  await expireResumableUploads(trx, userId)
  const keys = await deleteApiKeysOf(trx, userId, actorId)
  return { sessions: await deleteSessionsOf(trx, userId, actorId), keys }
}
