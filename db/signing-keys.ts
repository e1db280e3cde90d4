import { createHash, createPublicKey, generateKeyPairSync } from 'node:crypto'
import { sql } from 'kysely'
import { allowPauses, lock } from './postgres.ts'
import { isEncrypted, encrypt, decrypt } from './encryption.ts'
import type { Row } from './row.ts'
import type { Database } from './tables.ts'
import type { SigningKeysTable } from './tables/auth.ts'

/** Seconds between the creation of a key and its first signature. By then all nodes know it, and so do clients that cache the key set. */
export const LEAD_SECONDS = 300

const LOCK = 'signing-keys'

/** A key as it is stored. The private key may be encrypted. */
export interface SigningKeyRow extends Row<SigningKeysTable, 'id' | 'private_key' | 'public_key'> {
  /** Seconds until the key signs, by the database's clock; negative if it signs already. */
  activeIn: number
}

export interface Rotation {
  /** The secret that encrypts the new key. Without it, the key is stored in plain text. */
  secret?: string | undefined
  /** Seconds until the new key signs. */
  leadSeconds?: number
  /** The maximum lifetime of a token, plus a margin for clocks that differ. */
  tokenSeconds: number
  /** Does nothing if the newest key has been signing for less than this time. */
  ageSeconds?: number
  /** Whether all other keys are deleted, so that the tokens they have signed become invalid. */
  revoke?: boolean
  /** Runs in the same transaction, if the key is rotated. */
  also?: (trx: Database) => Promise<unknown>
}

/** Returns all keys, in descending order of the time from which they sign. */
export async function listSigningKeys (db: Database): Promise<SigningKeyRow[]> {
  return db.selectFrom('signing_keys')
    .select(['id', 'private_key as privateKey', 'public_key as publicKey'])
    .select(sql<number>`extract(epoch from active_at - clock_timestamp())::float8`.as('activeIn'))
    .orderBy('active_at', 'desc').orderBy('id').execute()
}

/** Creates the first key if there is none. If many nodes start at the same time, only one creates it. Returns all keys. */
export async function insertFirstSigningKey (db: Database, secret?: string): Promise<SigningKeyRow[]> {
  return db.transaction().execute(async (trx) => {
    // While a node starts, its event loop may be busy with other plugins.
    await allowPauses(trx)
    await lock(trx, LOCK)
    const keys = await listSigningKeys(trx)
    if (keys.length > 0) return keys
    await insertSigningKey(trx, 0, secret)
    return listSigningKeys(trx)
  })
}

/**
 * Creates another key, which will sign instead of the current one, and deletes the keys that have signed no token that is still
 * valid. Returns the id of the new key, or undefined if the newest key is younger than `ageSeconds`. If many nodes rotate by age
 * at the same time, only one creates a key.
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

/** Deletes the keys that were superseded by another one more than `seconds` ago. */
export async function deleteSupersededSigningKeys (db: Database, seconds: number): Promise<void> {
  await db.deleteFrom('signing_keys')
    .where('active_at', '<', ({ selectFrom }) => selectFrom('signing_keys')
      .select(({ fn }) => fn.max('active_at').as('since'))
      .where('active_at', '<', fromNow(-seconds)))
    .execute()
}

/**
 * Replaces the keys that are stored in plain text, because somebody may have read them in a backup: a new key signs from now on.
 * Keys that have signed tokens stay valid until these tokens expire. They are encrypted rather than deleted, because nodes that
 * were started without the secret still use them. If many nodes start at the same time, only one replaces the keys.
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

/** Returns the private key in plain text. Throws an error that names the option if the secret is missing or wrong. */
export function openSigningKey (secret: string | undefined, { id, privateKey }: SigningKeyRow): string {
  if (!isEncrypted(privateKey)) return privateKey
  if (secret === undefined) throw new Error('usher: secret is required, because the signing keys in the database are encrypted with one')
  try {
    return decrypt(secret, id, privateKey)
  } catch (cause) {
    throw new Error('usher: secret must be the one that the signing keys in the database are encrypted with', { cause })
  }
}

async function insertSigningKey (trx: Database, leadSeconds: number, secret?: string): Promise<string> {
  const { privateKey, publicKey } = generateKeyPairSync('ed25519', {
    privateKeyEncoding: { type: 'pkcs8', format: 'pem' },
    publicKeyEncoding: { type: 'spki', format: 'pem' },
  })
  const { crv, kty, x } = createPublicKey(publicKey).export({ format: 'jwk' })
  // The thumbprint of RFC 7638 and RFC 8037 requires the members in this order.
  const id = createHash('sha256').update(JSON.stringify({ crv, kty, x })).digest('base64url')
  await trx.insertInto('signing_keys').values({
    id,
    private_key: secret === undefined ? privateKey : encrypt(secret, id, privateKey),
    public_key: publicKey,
    active_at: fromNow(leadSeconds),
  }).execute()
  return id
}

// Not `now()`, which is the start of the transaction: it may have waited for the lock since.
const fromNow = (seconds: number) => sql<Date>`clock_timestamp() + make_interval(secs => ${seconds})`
