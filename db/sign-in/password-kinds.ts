import { sql } from 'kysely'
import type { Database } from '../tables/index.ts'
import { decryptWithAny, encrypt, isEncrypted, tryDecrypt, type Secrets } from './encryption.ts'

/** A kind of imported password hashes, with the signer key as it is stored. */
export interface PasswordKind { readonly kind: string, readonly signerKey: string | null }

// How long it takes until a kind is forgotten that no user has any more. Looking for one reads all users.
const CHECKED_EVERY = '1 day'

// A key is authenticated with its kind.
const nameOf = (kind: string) => `signer key ${kind}`

/** Returns the kinds of imported password hashes that users may have. */
export async function listPasswordKinds (db: Database): Promise<PasswordKind[]> {
  return db.selectFrom('password_kinds').select(['kind', 'signer_key as signerKey']).orderBy('kind').execute()
}

/**
 * Stores kinds of password hashes in the transaction that stores hashes of these kinds. A kind that is known keeps its
 * signer key if none is given. Until the transaction ends, none of them is forgotten.
 */
export async function insertPasswordKinds (trx: Database, kinds: readonly PasswordKind[]): Promise<void> {
  if (kinds.length === 0) return
  // In order, so that two imports do not wait for each other.
  const sorted = kinds.toSorted((one, other) => one.kind < other.kind ? -1 : 1)
  await trx.insertInto('password_kinds')
    .values(sorted.map(({ kind, signerKey }) => ({ kind, signer_key: signerKey })))
    .onConflict((conflict) => conflict.column('kind').doUpdateSet({
      checked_at: sql`now()`, signer_key: sql`coalesce(excluded.signer_key, password_kinds.signer_key)`,
    })).execute()
}

/**
 * Looks whether any user still has one of the kinds, at most once a day for each, and forgets those that nobody has.
 * Returns the number of kinds that it has looked for.
 */
export async function forgetPasswordKinds (db: Database): Promise<number> {
  return db.transaction().execute(async (trx) => {
    const [due] = await trx.selectFrom('password_kinds').select('kind')
      .where('checked_at', '<', sql<Date>`now() - ${sql.lit(CHECKED_EVERY)}::interval`)
      .orderBy('checked_at').limit(1).forUpdate().skipLocked().execute()
    if (!due) return 0
    // A statement of its own, which sees what an import has committed before it was possible to lock the row. An undo
    // link restores a former hash.
    const { isUsed } = await trx.selectNoFrom(({ exists, selectFrom, or }) => or([
      exists(selectFrom('users').select('id').where(sql<boolean>`starts_with(password_hash, ${due.kind})`)),
      exists(selectFrom('undo_links').select('hash').where(sql<boolean>`starts_with(password_hash, ${due.kind})`)),
    ]).as('isUsed')).executeTakeFirstOrThrow()
    if (isUsed) {
      await trx.updateTable('password_kinds').set({ checked_at: sql`now()` }).where('kind', '=', due.kind).execute()
    } else {
      await trx.deleteFrom('password_kinds').where('kind', '=', due.kind).execute()
    }
    return 1
  })
}

/** Returns a signer key as it is stored for a kind: encrypted if there is a secret of the node to encrypt it with. */
export function sealSignerKey ({ secret }: Secrets, kind: string, signerKey: Buffer): string {
  const text = signerKey.toString('base64')
  return secret === undefined ? text : encrypt(secret, nameOf(kind), text, 'signer key')
}

/** Returns the signer key of a kind. Throws if no secret of the node opens it. */
export function openSignerKey (secrets: Secrets, kind: string, stored: string): Buffer {
  const text = isEncrypted(stored) ? decryptWithAny(secrets, nameOf(kind), stored, 'signer key').text : stored
  return Buffer.from(text, 'base64')
}

/** What `reencryptSignerKeys` has done: keys that are encrypted anew, and those that neither secret opens. */
export interface ReencryptedKeys { encrypted: number, unreadable: number }

/** Encrypts the signer keys with the secret of the node that are stored in plain text or with the former secret. */
export async function reencryptSignerKeys (
  db: Database, secrets: Secrets & { secret: string }
): Promise<ReencryptedKeys> {
  const done = { encrypted: 0, unreadable: 0 }
  for (const { kind, signerKey } of await listPasswordKinds(db)) {
    if (signerKey === null) continue
    const opened = isEncrypted(signerKey)
      ? tryDecrypt(secrets, nameOf(kind), signerKey, 'signer key')
      : { text: signerKey, isFormer: true }
    if (!opened) done.unreadable++
    if (!opened?.isFormer) continue
    const sealed = sealSignerKey(secrets, kind, Buffer.from(opened.text, 'base64'))
    await db.updateTable('password_kinds').set({ signer_key: sealed })
      .where('kind', '=', kind).where('signer_key', '=', signerKey).execute()
    done.encrypted++
  }
  return done
}
