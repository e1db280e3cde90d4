import { createHash, createPublicKey, generateKeyPairSync, type KeyObject } from 'node:crypto'
import { sql } from 'kysely'
import type { SigningAlgorithm } from '../../schema/options/signing-algorithm.ts'
import { allowPauses, lock } from '../driver/postgres.ts'
import { decryptWithAny, encrypt, isEncrypted, tryDecrypt, type Secrets } from '../sign-in/encryption.ts'
import type { Row } from '../tables/row.ts'
import type { Database } from '../tables/index.ts'
import type { SigningKeysTable } from '../tables/access.ts'

/**
 * Seconds between the creation of a key and its first signature. By then all nodes know it, and so do clients that
 * cache the key set.
 */
export const LEAD_SECONDS = 300

const LOCK = 'signing-keys'

const DEFAULT_ALGORITHM: SigningAlgorithm = 'EdDSA'

// A key whose time comes later than this has signed nothing, even by the clock of a node that is a little ahead.
const UNUSED_SECONDS = 5

/** A key as it is stored. The private key may be encrypted. */
export interface SigningKeyRow extends Row<SigningKeysTable, 'id' | 'private_key' | 'public_key'> {
  /** Seconds until the key signs, by the database's clock; negative if it signs already. */
  activeIn: number
}

export interface Rotation {
  /** The secret that encrypts the new key. Without it, the key is stored in plain text. */
  secret?: string | undefined
  /** The algorithm of the new key, by default that of the newest key. */
  algorithm?: SigningAlgorithm | undefined
  /** Seconds until the new key signs. */
  leadSeconds?: number
  /** The maximum lifetime of a token, plus a margin for clocks that differ. */
  tokenSeconds: number
  /** Does nothing if the newest key has been signing for less than this time. */
  ageSeconds?: number
  /** Whether all other keys are deleted, so that the tokens they have signed become invalid. */
  revoke?: boolean
  /** Runs in the same transaction, if the key is rotated. */
  inTransaction?: (trx: Database) => Promise<unknown>
}

/** Returns all keys, in descending order of the time from which they sign. */
export async function listSigningKeys (db: Database): Promise<SigningKeyRow[]> {
  return db.selectFrom('signing_keys')
    .select(['id', 'private_key as privateKey', 'public_key as publicKey'])
    .select(sql<number>`extract(epoch from active_at - clock_timestamp())::float8`.as('activeIn'))
    .orderBy('active_at', 'desc').orderBy('id').execute()
}

/** Returns the algorithm of a public key in PEM. */
export function algorithmOf (publicKey: string): SigningAlgorithm {
  return createPublicKey(publicKey).asymmetricKeyType === 'ec' ? 'ES256' : 'EdDSA'
}

/**
 * Creates the first key if there is none, by default with EdDSA. If many nodes start at the same time, only one
 * creates it. Returns all keys.
 */
export async function insertFirstSigningKey (
  db: Database, { secret, algorithm = DEFAULT_ALGORITHM }: Pick<Rotation, 'secret' | 'algorithm'> = {}
): Promise<SigningKeyRow[]> {
  return db.transaction().execute(async (trx) => {
    // While a node starts, its event loop may be busy with other plugins.
    await allowPauses(trx)
    await lock(trx, LOCK)
    const keys = await listSigningKeys(trx)
    if (keys.length > 0) return keys
    await insertSigningKey(trx, { leadSeconds: 0, secret, algorithm })
    return listSigningKeys(trx)
  })
}

/**
 * Creates another key, which will sign instead of the current one, and deletes the keys that have signed no token that
 * is still valid. Returns the id of the new key, or undefined if the newest key is younger than `ageSeconds`. If many
 * nodes rotate by age at the same time, only one creates a key.
 */
export async function rotateSigningKey (
  db: Database,
  {
    secret, algorithm, leadSeconds = LEAD_SECONDS, tokenSeconds, ageSeconds = -Infinity, revoke = false, inTransaction,
  }: Rotation
): Promise<string | undefined> {
  return db.transaction().execute(async (trx) => {
    await lock(trx, LOCK)
    const [newest] = await listSigningKeys(trx)
    if (newest && -newest.activeIn < ageSeconds) return undefined
    if (revoke) await trx.deleteFrom('signing_keys').execute()
    else await deleteSupersededSigningKeys(trx, tokenSeconds)
    await inTransaction?.(trx)
    return insertSigningKey(trx, { leadSeconds, secret, algorithm: algorithm ?? newestAlgorithm(newest) })
  })
}

/**
 * Creates a key of another algorithm, which will sign instead of the current one. The tokens that others have signed
 * stay valid. A key that was to take over and has another algorithm is deleted. Does nothing if the newest key has
 * the algorithm. If many nodes start at the same time, only one creates a key. Returns whether it did.
 */
export async function changeSigningAlgorithm (
  db: Database, { secret, algorithm }: { secret?: string | undefined, algorithm: SigningAlgorithm }
): Promise<boolean> {
  return db.transaction().execute(async (trx) => {
    await allowPauses(trx)
    await lock(trx, LOCK)
    const keys = await listSigningKeys(trx)
    const isUnused = ({ activeIn, publicKey }: SigningKeyRow) =>
      activeIn > UNUSED_SECONDS && algorithmOf(publicKey) !== algorithm
    const unused = keys.filter(isUnused).map(({ id }) => id)
    const newest = keys.find(({ id }) => !unused.includes(id))
    // It may sign all the same if there is no other one.
    if (newest && unused.length > 0) await trx.deleteFrom('signing_keys').where('id', 'in', unused).execute()
    if (newest && algorithmOf(newest.publicKey) === algorithm) return false
    await insertSigningKey(trx, { leadSeconds: newest ? LEAD_SECONDS : 0, secret, algorithm })
    return true
  })
}

function newestAlgorithm (newest: SigningKeyRow | undefined): SigningAlgorithm {
  return newest ? algorithmOf(newest.publicKey) : DEFAULT_ALGORITHM
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
 * Replaces the keys that are stored in plain text, because somebody may have read them in a backup: a new key signs
 * from now on. Keys that have signed tokens stay valid until these tokens expire. They are encrypted rather than
 * deleted, because nodes that were started without the secret still use them. If many nodes start at the same time,
 * only one replaces the keys.
 * The new key has the given algorithm, or that of the newest one.
 */
export async function replacePlainSigningKeys (
  db: Database, { secret, algorithm }: { secret: string, algorithm?: SigningAlgorithm | undefined }
): Promise<void> {
  await db.transaction().execute(async (trx) => {
    await allowPauses(trx)
    await lock(trx, LOCK)
    const keys = await listSigningKeys(trx)
    const plain = keys.filter(({ privateKey }) => !isEncrypted(privateKey))
    if (plain.length === 0) return
    for (const { id, privateKey, activeIn } of plain) {
      if (activeIn > 0) {
        await trx.deleteFrom('signing_keys').where('id', '=', id).execute()
      } else {
        await trx.updateTable('signing_keys').set({ private_key: encrypt(secret, id, privateKey) })
          .where('id', '=', id).execute()
      }
    }
    await insertSigningKey(trx, { leadSeconds: 0, secret, algorithm: algorithm ?? newestAlgorithm(keys[0]) })
  })
}

/** Returns the private key in plain text. Throws an error that names the option if the secret is missing or wrong. */
export function openSigningKey (
  secrets: Secrets, { id, privateKey }: Pick<SigningKeyRow, 'id' | 'privateKey'>
): string {
  if (!isEncrypted(privateKey)) return privateKey
  if (secrets.secret === undefined) {
    throw new Error('usher: secret is required, because the signing keys in the database are encrypted with one')
  }
  try {
    return decryptWithAny(secrets, id, privateKey).text
  } catch (cause) {
    throw new Error('usher: secret must be the one that the signing keys in the database are encrypted with', { cause })
  }
}

/**
 * Encrypts the keys anew that only the former secret opens, so that it is not needed any more. Nodes keep the keys that
 * they know.
 */
export async function reencryptSigningKeys (db: Database, secrets: Secrets & { secret: string }): Promise<void> {
  for (const { id, privateKey } of await listSigningKeys(db)) {
    if (!isEncrypted(privateKey)) continue
    const opened = tryDecrypt(secrets, id, privateKey)
    if (!opened?.isFormer) continue
    await db.updateTable('signing_keys').set({ private_key: encrypt(secrets.secret, id, opened.text) })
      .where('id', '=', id).where('private_key', '=', privateKey).execute()
  }
}

interface NewKey { leadSeconds: number, secret: string | undefined, algorithm: SigningAlgorithm }

async function insertSigningKey (trx: Database, { leadSeconds, secret, algorithm }: NewKey): Promise<string> {
  const { privateKey, publicKey } = generateKey(algorithm)
  const id = thumbprint(createPublicKey(publicKey))
  await trx.insertInto('signing_keys').values({
    id,
    private_key: secret === undefined ? privateKey : encrypt(secret, id, privateKey),
    public_key: publicKey,
    active_at: fromNow(leadSeconds),
  }).execute()
  return id
}

function generateKey (algorithm: SigningAlgorithm) {
  const privateKeyEncoding = { type: 'pkcs8', format: 'pem' } as const
  const publicKeyEncoding = { type: 'spki', format: 'pem' } as const
  if (algorithm === 'EdDSA') return generateKeyPairSync('ed25519', { privateKeyEncoding, publicKeyEncoding })
  return generateKeyPairSync('ec', { namedCurve: 'P-256', privateKeyEncoding, publicKeyEncoding })
}

// RFC 7638 3.2 and RFC 8037 2 require these members, in this order. JSON leaves out `y`, which only ECDSA has.
function thumbprint (publicKey: KeyObject): string {
  const { crv, kty, x, y } = publicKey.export({ format: 'jwk' })
  return createHash('sha256').update(JSON.stringify({ crv, kty, x, y })).digest('base64url')
}

// Not `now()`, which is the start of the transaction: it may have waited for the lock since.
const fromNow = (seconds: number) => sql<Date>`clock_timestamp() + make_interval(secs => ${seconds})`
