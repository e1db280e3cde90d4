import { createHash, createPublicKey, generateKeyPairSync } from 'node:crypto'
import { sql } from 'kysely'
import { allowPauses, lock } from './postgres.ts'
import { isEncrypted, encrypt, decrypt } from './encryption.ts'
import type { Database, Row, SigningKeysTable } from './tables.ts'

/** Seconds from a key's coming to its first signature: by then all nodes know it, and all who cache the key set. */
export const LEAD_SECONDS = 300

const LOCK = 'signing-keys'

/** A key as it is stored, maybe sealed. */
export interface SigningKeyRow extends Row<SigningKeysTable, 'id' | 'private_key' | 'public_key'> {
  /** Seconds until it signs, by the database's clock; negative where it does. */
  activeIn: number
}

export interface Rotation {
  /** Seals the new key. */
  secret?: string | undefined
  /** Seconds until it signs. */
  leadSeconds?: number
  /** How long a token may live at the most, clocks that differ included. */
  tokenSeconds: number
  /** Nothing is done while the newest key has not signed for so long. */
  ageSeconds?: number
  /** Whether every other key is deleted, so that no token that it signed is valid any more. */
  revoke?: boolean
  /** Runs in the same transaction once there is a new key. */
  also?: (trx: Database) => Promise<unknown>
}

/** The keys; the one that signs last comes first. */
export async function listSigningKeys (db: Database): Promise<SigningKeyRow[]> {
  return db.selectFrom('signing_keys')
    .select(['id', 'private_key as privateKey', 'public_key as publicKey'])
    .select(sql<number>`extract(epoch from active_at - clock_timestamp())::float8`.as('activeIn'))
    .orderBy('active_at', 'desc').orderBy('id').execute()
}

/** Returns which of some keys exist, in their order: `true` or `undefined`. */
export async function findSigningKeys (db: Database, ids: readonly string[]): Promise<(true | undefined)[]> {
  const rows = await db.selectFrom('signing_keys').select('id').where('id', '=', sql<string>`any(${ids}::text[])`).execute()
  const existing = new Set(rows.map(({ id }) => id))
  return ids.map((id) => existing.has(id) || undefined)
}

/** Makes a first key, where there is none: of many nodes that start at once, one does. The keys that there are then. */
export async function insertFirstSigningKey (db: Database, secret?: string): Promise<SigningKeyRow[]> {
  return db.transaction().execute(async (trx) => {
    // A node that starts may be busy with its other plugins.
    await allowPauses(trx)
    await lock(trx, LOCK)
    const keys = await listSigningKeys(trx)
    if (keys.length > 0) return keys
    await insertSigningKey(trx, 0, secret)
    return listSigningKeys(trx)
  })
}

/**
 * Makes another key, which takes over the signing, and forgets those that no living token is signed with: the id of
 * the new one, or `undefined` where none was due. Of many that rotate by age at once, one does.
 */
export async function rotateSigningKey (
  db: Database, { secret, leadSeconds = LEAD_SECONDS, tokenSeconds, ageSeconds = -Infinity, revoke = false, also }: Rotation
): Promise<string | undefined> {
  return db.transaction().execute(async (trx) => {
    await lock(trx, LOCK)
    const [newest] = await listSigningKeys(trx)
    if (newest && -newest.activeIn < ageSeconds) return undefined
    if (revoke) await trx.deleteFrom('signing_keys').execute()
    else await deleteSupersededSigningKeys(trx, tokenSeconds)
    await also?.(trx)
    return insertSigningKey(trx, leadSeconds, secret)
  })
}

/** Deletes the keys that another one superseded longer ago than that. */
export async function deleteSupersededSigningKeys (db: Database, seconds: number): Promise<void> {
  await db.deleteFrom('signing_keys')
    .where('active_at', '<', ({ selectFrom }) => selectFrom('signing_keys')
      .select(({ fn }) => fn.max('active_at').as('since'))
      .where('active_at', '<', fromNow(-seconds)))
    .execute()
}

/**
 * Replaces the keys that are stored in plain text, which may have been read in a backup: another key signs from now on.
 * Those that have signed stay valid for as long as their tokens live, and are encrypted, because nodes that were started
 * without the secret still use them. Of many nodes that start at once, one does it.
 */
export async function replacePlainSigningKeys (db: Database, secret: string): Promise<void> {
  await db.transaction().execute(async (trx) => {
    await allowPauses(trx)
    await lock(trx, LOCK)
    const plain = (await listSigningKeys(trx)).filter(({ privateKey }) => !isEncrypted(privateKey))
    if (plain.length === 0) return
    for (const { id, privateKey, activeIn } of plain) {
      if (activeIn > 0) await trx.deleteFrom('signing_keys').where('id', '=', id).execute()
      else await trx.updateTable('signing_keys').set({ private_key: encrypt(secret, id, privateKey) }).where('id', '=', id).execute()
    }
    await insertSigningKey(trx, 0, secret)
  })
}

/** The private key, in plain. Throws one sentence that names the option, where the secret is not the one that opens it. */
export function openSigningKey (secret: string | undefined, { id, privateKey }: SigningKeyRow): string {
  if (!isEncrypted(privateKey)) return privateKey
  if (secret === undefined) throw new Error('usher: secret is required, since the signing keys in the database are sealed')
  try {
    return decrypt(secret, id, privateKey)
  } catch (cause) {
    throw new Error('usher: secret is not the one that the signing keys in the database are sealed with', { cause })
  }
}

async function insertSigningKey (trx: Database, leadSeconds: number, secret?: string): Promise<string> {
  const { privateKey, publicKey } = generateKeyPairSync('ed25519', {
    privateKeyEncoding: { type: 'pkcs8', format: 'pem' },
    publicKeyEncoding: { type: 'spki', format: 'pem' },
  })
  const { crv, kty, x } = createPublicKey(publicKey).export({ format: 'jwk' })
  // RFC 7638, RFC 8037: the members in this order.
  const id = createHash('sha256').update(JSON.stringify({ crv, kty, x })).digest('base64url')
  await trx.insertInto('signing_keys').values({
    id,
    private_key: secret === undefined ? privateKey : encrypt(secret, id, privateKey),
    public_key: publicKey,
    active_at: fromNow(leadSeconds),
  }).execute()
  return id
}

// Rather than when the transaction began: it may have waited for the lock.
const fromNow = (seconds: number) => sql<Date>`clock_timestamp() + make_interval(secs => ${seconds})`
