import { sql } from 'kysely'
import { NIL } from 'uuid'
import { insertAuditEntries, type NewAuditEntry } from '../audit/audit.ts'
import { insertMail, type NewMail } from '../outbox/mails.ts'
import { seconds } from '../access/sessions.ts'
import type { Database } from '../tables/index.ts'
import type { LoginLinksTable } from '../tables/mail-links.ts'
import type { Row } from '../tables/row.ts'
import { hasEmail } from '../users/user-keys.ts'
import { lockUser } from '../users/users.ts'
import { isProven } from './proven-address.ts'
import { voidLinks } from '../mail-links/kinds.ts'
import { hasAnyWay } from './ways.ts'

/** How many codes may be tried for each mail. */
export const MAX_ATTEMPTS_PER_MAIL = 5
// Such mails go to the user of the session only, so no stranger can use the limit up.
const MAX_STEP_UPS_PER_SESSION = 3

/** The secrets of a mail, as hashes. */
export interface NewLoginMail {
  /** That of the token in the link; for a step-up, which has no link, that of the id that the client has. */
  hash: Uint8Array
  codeHash: Uint8Array
  /** That of the address to which it is sent. */
  addressHash: Uint8Array
  /** Seconds. */
  lifetime: number
}

/** How many mails may be pending: of all addresses, and of each one. */
export interface PendingMails { total: number, ofAddress: number }

/**
 * Stores the link and the code of a mail with which somebody logs in, the entry `note` of the account log, and the
 * mail. Returns whether there is room: not if too many are pending in all (`full`) or for the address (`repeated`). If
 * no user has the address, the user is disabled, or the address may not get such a mail, the same statements run: the
 * code is stored for nobody, so that attempts take the same time, and the mail has no recipient. None replaces an
 * earlier one, so that somebody else who asks takes nothing from the owner.
 * @param userId that of the address, if it has one
 */
export async function insertLoginMail (
  db: Database, email: string, { hash, bindingHash, codeHash, addressHash, lifetime }:
  NewLoginMail & { bindingHash: Uint8Array }, { total, ofAddress }: PendingMails,
  noteOf: (userId: string | undefined) => NewAuditEntry, mail: NewMail
): Promise<'stored' | 'repeated' | 'full'> {
  return db.transaction().execute(async (trx) => {
    const found = await trx.selectFrom('users').select('id').where(hasEmail(email)).executeTakeFirst()
    const userId = found?.id
    // A change of the address and a repair of the account wait for this lock, and then void the mail.
    await lockUser(trx, userId ?? NIL)
    const { recipient, repeated, full } = await trx.selectNoFrom(({ selectFrom }) => [
      selectFrom('users').select('email').where('id', '=', userId ?? NIL).where(hasEmail(email))
        .where('disabled', '=', false).where('account_kind', '=', 'person').where(isProven).as('recipient'),
      sql<boolean>`${selectFrom(selectFrom('login_links').select('hash').where('address_hash', '=', addressHash)
        .where('user_id', 'is not', null).where('session_id', 'is', null).where('expires_at', '>', sql<Date>`now()`)
        .limit(ofAddress).as('pending')).select(({ fn }) => fn.countAll().as('count'))} >= ${ofAddress}::integer`
        .as('repeated'),
      sql<boolean>`${selectFrom(selectFrom('login_links').select('hash').where('expires_at', '>', sql<Date>`now()`)
        .limit(total).as('pending')).select(({ fn }) => fn.countAll().as('count'))} >= ${total}::integer`.as('full'),
    ]).executeTakeFirstOrThrow()
    await insertAuditEntries(trx, [noteOf(userId)])
    const to = full || repeated ? null : recipient
    const isSent = await insertMail(trx, mail, to, userId ?? null)
    if (full) return 'full'
    await trx.insertInto('login_links').values({
      hash,
      user_id: to !== null && isSent ? userId! : null,
      session_id: null,
      binding_hash: bindingHash,
      code_hash: codeHash,
      address_hash: addressHash,
      // Not `now()`, which is the start of the transaction: it may have waited for the lock since.
      expires_at: sql<Date>`clock_timestamp() + ${seconds(lifetime)}`,
    }).execute()
    return repeated ? 'repeated' : 'stored'
  })
}

/** A mail whose link works, with its user. */
export interface FoundLoginMail {
  userId: string
  email: string
  bindingHash: Uint8Array | null
  /** Whether the login removes what was set up before, because nobody has verified the address. */
  removes: boolean
}

/** Returns the mail of a link, or undefined if it was used, is void or has expired, or its user is disabled. */
export async function findLoginMail (db: Database, hash: Uint8Array): Promise<FoundLoginMail | undefined> {
  return db.selectFrom('login_links').innerJoin('users', 'users.id', 'login_links.user_id')
    .where('hash', '=', hash).where('session_id', 'is', null).where('expires_at', '>', sql<Date>`now()`)
    .where('disabled', '=', false)
    .select((query) => [
      'users.id as userId', 'users.email', 'binding_hash as bindingHash',
      query.and([
        query('email_verified', '=', false),
        query.or([query('password_hash', 'is not', null), hasAnyWay(query, sql`users.id`)]),
      ]).$castTo<boolean>().as('removes'),
    ])
    .executeTakeFirst()
}

/**
 * Uses up the mail with which a user logs in, and voids the user's other ones. Call it in a transaction that has locked
 * the user. Returns false if it was used, or is void or has expired.
 */
export async function useLoginMail (trx: Database, hash: Uint8Array, userId: string): Promise<boolean> {
  const { numDeletedRows } = await trx.deleteFrom('login_links')
    .where('hash', '=', hash).where('user_id', '=', userId).where('session_id', 'is', null)
    .where('expires_at', '>', sql<Date>`clock_timestamp()`).executeTakeFirstOrThrow()
  if (numDeletedRows === 0n) return false
  await voidLinks(trx, userId, ['login_links'])
  return true
}

/** A mail that a browser has asked for, and whose code it may therefore try. */
export type PendingCode = Row<LoginLinksTable, 'binding_hash' | 'address_hash'> & {
  /** Whether the owner has logged in from the network before. */
  isRecognised: boolean
}

/** Returns the mails that the browser with these secrets has asked for. */
export async function findPendingCodes (
  db: Database, bindings: readonly Uint8Array[], network: string
): Promise<PendingCode[]> {
  const rows = await db.selectFrom('login_links').select(({ exists, selectFrom }) => [
    'binding_hash as bindingHash', 'address_hash as addressHash',
    exists(selectFrom('recognised_networks').select('recognised_networks.user_id')
      .whereRef('recognised_networks.user_id', '=', 'login_links.user_id').where('network', '=', network))
      .$castTo<boolean>().as('isRecognised'),
  ]).where('binding_hash', 'in', bindings).where('expires_at', '>', sql<Date>`now()`).execute()
  return rows
}

/** A mail for which a code was tried. */
export type TriedCode = Row<LoginLinksTable, 'hash' | 'user_id' | 'binding_hash' | 'code_hash'>

/**
 * Counts the attempt of a browser at the codes of its mails. Returns those that had less than five attempts: no others
 * may be compared with the code.
 */
export async function countCodeAttempt (db: Database, bindings: readonly Uint8Array[]): Promise<TriedCode[]> {
  return db
    // In the order of the keys, so that two statements cannot wait for each other.
    .with('tried', (cte) => cte.selectFrom('login_links').select('hash')
      .where('binding_hash', 'in', bindings).orderBy('hash').forUpdate())
    .updateTable('login_links').from('tried').whereRef('login_links.hash', '=', 'tried.hash')
    .set({ attempts: sql<number>`attempts + 1` })
    .where('attempts', '<', MAX_ATTEMPTS_PER_MAIL).where('expires_at', '>', sql<Date>`now()`)
    .returning([
      'login_links.hash as hash', 'user_id as userId', 'binding_hash as bindingHash', 'code_hash as codeHash',
    ])
    .execute()
}

/**
 * Stores the code with which the user of a session steps up, and the mail. It replaces the oldest one of the session
 * beyond three. Call it in a transaction. Returns undefined if there is no such user, or the user is disabled, and
 * otherwise whether the mail is sent: not if the address is not verified or the limit of its mails is used up.
 */
export async function insertStepUpMail (
  trx: Database, { userId, sessionId, hash, codeHash, addressHash, lifetime }:
  NewLoginMail & { userId: string, sessionId: string }, mail: NewMail
): Promise<'sent' | 'unverified' | 'limited' | undefined> {
  const user = await lockUser(trx, userId)
  if (!user || user.disabled) return undefined
  if (!user.emailVerified) return 'unverified'
  if (!await insertMail(trx, mail, user.email, userId)) return 'limited'
  await trx.insertInto('login_links').values({
    hash,
    user_id: userId,
    session_id: sessionId,
    binding_hash: null,
    code_hash: codeHash,
    address_hash: addressHash,
    created_at: sql<Date>`clock_timestamp()`,
    expires_at: sql<Date>`clock_timestamp() + ${seconds(lifetime)}`,
  }).execute()
  await trx.deleteFrom('login_links').where('hash', 'in', ({ selectFrom }) => selectFrom('login_links').select('hash')
    .where('user_id', '=', userId).where('session_id', '=', sessionId)
    .orderBy('created_at', 'desc').offset(MAX_STEP_UPS_PER_SESSION)).execute()
  return 'sent'
}

/**
 * Counts an attempt at the code of a step-up. Returns the hash of the code, or undefined if there is no such mail of
 * the session, or it had five attempts.
 */
export async function countStepUpAttempt (
  db: Database, { hash, userId, sessionId }: { hash: Uint8Array, userId: string, sessionId: string }
): Promise<Uint8Array | undefined> {
  const row = await db.updateTable('login_links').set({ attempts: sql<number>`attempts + 1` })
    .where('hash', '=', hash).where('user_id', '=', userId).where('session_id', '=', sessionId)
    .where('attempts', '<', MAX_ATTEMPTS_PER_MAIL).where('expires_at', '>', sql<Date>`now()`)
    .returning('code_hash as codeHash').executeTakeFirst()
  return row?.codeHash
}

/**
 * Uses up the mail with which the user of a session steps up. Call it in a transaction that has locked the user.
 * Returns false if it was used, or is void or has expired.
 */
export async function useStepUpMail (trx: Database, hash: Uint8Array): Promise<boolean> {
  const { numDeletedRows } = await trx.deleteFrom('login_links').where('hash', '=', hash)
    .where('expires_at', '>', sql<Date>`clock_timestamp()`).executeTakeFirstOrThrow()
  return numDeletedRows > 0n
}
