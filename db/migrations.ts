import { sql, type Kysely } from 'kysely'
import { createAccounts } from './migrations/accounts.ts'
import { createDeletedUsers } from './migrations/deleted-users.ts'
import { timeEndedSessions } from './migrations/ended-at.ts'
import { createEpochs } from './migrations/epochs.ts'
import { createPosts, createSessions, createUploads, createUsers } from './migrations/initial.ts'
import { createPositions } from './migrations/positions.ts'
import { createRecognisedNetworks } from './migrations/recognised-networks.ts'
import { allowPauses, lock } from './postgres.ts'
import type { Tables } from './tables.ts'

/**
 * Brings the Postgres schema up to date. Many nodes may start at once: they wait for one another, and each
 * migration runs once. Throws the cause where one fails; nothing of it is left behind.
 *
 * Not by Kysely's migrator: its lock is the session's, which hangs on some connection of the pool, and its look
 * at all tables of the database fails where somebody else drops one of theirs at that moment.
 */
export async function migrate (db: Kysely<Tables>, schema: string): Promise<void> {
  // Mostly there is nothing to do, and no reason to wait for anybody.
  const ran = await listRan(db, schema)
  if (Object.keys(migrations).every((name) => ran.has(name))) return
  await db.transaction().execute(async (trx) => {
    // A table with many rows takes a while, and so do the other nodes.
    await sql`set local statement_timeout = 0`.execute(trx)
    // A node that starts may be busy with its other plugins.
    await allowPauses(trx)
    // Until the commit: whoever comes next sees all of it.
    await lock(trx, `migrations of ${schema}`)
    if (!await exists(trx, schema)) await createLog(trx, schema)
    const ran = await listRan(trx, schema)
    for (const [name, run] of Object.entries(migrations)) {
      if (ran.has(name)) continue
      await run(trx.withSchema(schema), schema)
      await logOf(trx, schema).insertInto('migrations').values({ name, timestamp: new Date().toISOString() }).execute()
    }
  })
}

// In this order. One that has been released stays as it is; what changes comes as another.
const migrations: Record<string, (db: Kysely<Tables>, schema: string) => Promise<void>> = {
  '0001-users': createUsers,
  '0002-sessions': createSessions,
  '0003-posts': createPosts,
  '0004-uploads': createUploads,
  '0005-accounts': createAccounts,
  '0006-positions': createPositions,
  '0007-deleted-users': createDeletedUsers,
  '0008-recognised-networks': createRecognisedNetworks,
  '0009-ended-at': timeEndedSessions,
  '0010-epochs': createEpochs,
}

const logOf = (db: Kysely<Tables>, schema: string) => db.withSchema(schema).withTables<{ migrations: { name: string, timestamp: string } }>()

async function listRan (db: Kysely<Tables>, schema: string): Promise<ReadonlySet<string>> {
  if (!await exists(db, schema)) return new Set()
  return new Set((await logOf(db, schema).selectFrom('migrations').select('name').execute()).map(({ name }) => name))
}

// Asked, rather than `if not exists`, for which a role needs the right to create even where all is there. And of the
// catalogue's tables: `to_regclass` answers from the cache of its connection, which remembers that there was nothing
// and learns nothing while it waits for an advisory lock.
async function exists (db: Kysely<Tables>, schema: string): Promise<boolean> {
  const { rows } = await sql`
    select 1 from pg_class join pg_namespace on pg_namespace.oid = relnamespace
    where nspname = ${schema} and relname = 'migrations'`.execute(db)
  return rows.length > 0
}

async function createLog (db: Kysely<Tables>, schema: string): Promise<void> {
  const { rows } = await sql`select 1 from pg_namespace where nspname = ${schema}`.execute(db)
  if (rows.length === 0) await db.schema.createSchema(schema).execute()
  await db.withSchema(schema).schema.createTable('migrations')
    .addColumn('name', 'text', (column) => column.primaryKey())
    .addColumn('timestamp', 'text', (column) => column.notNull())
    .execute()
}
