import { lock } from './postgres.ts'
import type { Database, Row, SigningKeysTable } from './tables.ts'

export type SigningKeyRow = Row<SigningKeysTable, 'id' | 'private_key' | 'public_key'>

/** The keys, newest first. */
export async function listSigningKeys (db: Database): Promise<SigningKeyRow[]> {
  return db.selectFrom('signing_keys').select(['id', 'private_key as privateKey', 'public_key as publicKey'])
    .orderBy('created_at', 'desc').orderBy('id').execute()
}

/** Keeps a first key, where there is none: of many nodes that start at once, one does. The keys that there are then. */
export async function insertFirstSigningKey (db: Database, key: SigningKeyRow): Promise<SigningKeyRow[]> {
  return db.transaction().execute(async (trx) => {
    await lock(trx, 'first-signing-key')
    const keys = await listSigningKeys(trx)
    if (keys.length > 0) return keys
    await trx.insertInto('signing_keys')
      .values({ id: key.id, private_key: key.privateKey, public_key: key.publicKey }).execute()
    return [key]
  })
}
