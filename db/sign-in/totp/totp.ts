import { sql } from 'kysely'
import { NIL } from 'uuid'
import { decryptWithAny, encrypt, isEncrypted, tryDecrypt, type Secrets } from '../encryption.ts'
import type { Row } from '../../tables/row.ts'
import type { Database } from '../../tables/index.ts'
import type { TotpTable } from '../../tables/sign-in.ts'

/** The TOTP of a user, with the secret as it is stored. */
export type StoredTotp = Row<TotpTable, 'secret' | 'confirmed_at' | 'last_step'>

// A statement that runs longer would delay others.
const BATCH_SIZE = 1000

// A secret is authenticated with its user, so that nobody who can write to the table moves it to another user
// unnoticed.
const nameOf = (userId: string) => `totp ${userId}`

/** Returns a secret as it is stored for a user: encrypted if there is a secret of the node to encrypt it with. */
export const sealTotp = ({ secret }: Secrets, userId: string, totpSecret: string): string =>
  secret === undefined ? totpSecret : encrypt(secret, nameOf(userId), totpSecret, 'totp')

/**
 * Returns the secret of a user in base32. Throws an error that names the option if the secrets of the node are missing
 * or wrong.
 */
export function openTotp (secrets: Secrets, userId: string, stored: string): string {
  if (!isEncrypted(stored)) return stored
  if (secrets.secret === undefined) {
    throw new Error('usher: secret is required, because the secrets of authenticator apps are encrypted with one')
  }
  try {
    return decryptWithAny(secrets, nameOf(userId), stored, 'totp').text
  } catch (cause) {
    throw new Error(
      'usher: secret must be the one that the secrets of authenticator apps are encrypted with', { cause }
    )
  }
}

/** Returns the TOTP of a user, which may not be confirmed, or undefined if there is none. */
export async function findTotp (db: Database, userId: string): Promise<StoredTotp | undefined> {
  return db.selectFrom('totp').select(['secret', 'confirmed_at as confirmedAt', 'last_step as lastStep'])
    .where('user_id', '=', userId).executeTakeFirst()
}

/** Stores the secret of an existing user. It replaces one that is not confirmed. Returns false if one is confirmed. */
export async function insertTotp (db: Database, userId: string, secret: string): Promise<boolean> {
  const row = await db.insertInto('totp').values({ user_id: userId, secret })
    .onConflict((conflict) => conflict.column('user_id')
      .doUpdateSet({ secret, created_at: sql`clock_timestamp()`, last_step: '0' }).where('totp.confirmed_at', 'is', null))
    .returning('user_id').executeTakeFirst()
  return row !== undefined
}

/** Which code was accepted: its time step, and the stored secret that it was computed from. */
export interface AcceptedStep { userId: string, secret: string, step: number }

/**
 * Confirms the secret of a user with the step of its first code. Returns false if another secret was stored meanwhile.
 */
export async function confirmTotp (db: Database, { userId, secret, step }: AcceptedStep): Promise<boolean> {
  const row = await db.updateTable('totp').set({ confirmed_at: sql<Date>`clock_timestamp()`, last_step: String(step) })
    .where('user_id', '=', userId).where('secret', '=', secret).where('confirmed_at', 'is', null)
    .returning('user_id').executeTakeFirst()
  return row !== undefined
}

/**
 * Accepts a step once: of all statements with the same or an earlier step, on all nodes, the first one succeeds.
 * Returns whether this one did.
 */
export async function useTotpStep (db: Database, { userId, secret, step }: AcceptedStep): Promise<boolean> {
  const row = await db.updateTable('totp').set({ last_step: String(step) })
    .where('user_id', '=', userId).where('secret', '=', secret).where('confirmed_at', 'is not', null)
    .where('last_step', '<', String(step))
    .returning('user_id').executeTakeFirst()
  return row !== undefined
}

/**
 * Deletes the TOTP of a user with the recovery codes. Returns whether it was a second factor, or undefined if there was
 * none.
 */
export async function deleteTotp (db: Database, userId: string): Promise<boolean | undefined> {
  const row = await db
    .with('codes', (cte) => cte.deleteFrom('recovery_codes').where('user_id', '=', userId))
    .deleteFrom('totp').where('user_id', '=', userId).returning('confirmed_at as confirmedAt').executeTakeFirst()
  return row && row.confirmedAt !== null
}

/** What `reencryptTotp` has done. */
export interface Reencrypted {
  /** Secrets that are encrypted anew. */
  encrypted: number
  /** Secrets that neither secret of the node opens. */
  unreadable: number
}

/**
 * Encrypts the secrets of all users with the secret of the node that are stored in plain text, or that only the former
 * secret opens. Codes are accepted meanwhile. If it is interrupted, the next call does the rest.
 */
export async function reencryptTotp (db: Database, secrets: Secrets & { secret: string }): Promise<Reencrypted> {
  const done = { encrypted: 0, unreadable: 0 }
  let after: string = NIL
  while (true) {
    const rows = await db.selectFrom('totp').select(['user_id as userId', 'secret']).where('user_id', '>', after)
      .orderBy('user_id').limit(BATCH_SIZE).execute()
    const changes = rows.flatMap(({ userId, secret }) => {
      const opened = isEncrypted(secret)
        ? tryDecrypt(secrets, nameOf(userId), secret, 'totp')
        : { text: secret, isFormer: true }
      if (!opened) done.unreadable++
      return opened?.isFormer ? [{ userId, from: secret, to: sealTotp(secrets, userId, opened.text) }] : []
    })
    // A secret that was replaced meanwhile is encrypted already.
    if (changes.length > 0) {
      await db.updateTable('totp').from(sql<{ id: string, former: string, next: string }>`unnest(
        ${changes.map(({ userId }) => userId)}::uuid[], ${changes.map(({ from }) => from)}::text[], ${changes.map(({ to }) => to)}::text[]
      )`.as<'given'>(sql`given(id, former, next)`))
        .set(({ ref }) => ({ secret: ref('given.next') }))
        .whereRef('user_id', '=', 'given.id').whereRef('secret', '=', 'given.former').execute()
    }
    done.encrypted += changes.length
    if (rows.length < BATCH_SIZE) return done
    after = rows.at(-1)!.userId
  }
}
