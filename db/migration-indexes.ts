import { setTimeout as delay } from 'node:timers/promises'
import { sql, type Kysely, type RawBuilder } from 'kysely'
import { openSession } from './driver/session.ts'
import type { Tables } from './tables.ts'

/** An index that a migration creates. */
export interface MigrationIndex {
  name: string
  /** What follows `on`: the table, the method and the columns. */
  on: RawBuilder<unknown>
}

/** Returns the indexes of a migration in a PostgreSQL schema. */
export type IndexesOf = (schema: string) => readonly MigrationIndex[]

/** Creates indexes on tables that nobody uses yet, in a transaction. */
export async function createIndexes (trx: Kysely<Tables>, indexes: readonly MigrationIndex[]): Promise<void> {
  for (const { name, on } of indexes) await sql`create index ${sql.id(name)} on ${on}`.execute(trx)
}

const LOOK_MS = 1000

/**
 * Creates those of the indexes that are missing, while others read and write the table. A build that has failed leaves an invalid index,
 * which is dropped and built again.
 * @param report receives the number of blocks, of how many
 */
export async function buildIndexes (
  db: Kysely<Tables>, schema: string, indexes: readonly MigrationIndex[], report: (index: string, done: number, total: number) => void
): Promise<void> {
  for (const { name, on } of indexes) {
    const isValid = await findIndex(db, schema, name)
    if (isValid) continue
    if (isValid === false) await runAlone(db, sql`drop index concurrently if exists ${sql.id(schema, name)}`)
    const ended = new AbortController()
    const watching = watch(db, ended.signal, (done, total) => report(name, done, total))
    try {
      await runAlone(db, sql`create index concurrently ${sql.id(name)} on ${on}`)
    } finally {
      ended.abort()
      await watching
    }
  }
}

// Returns whether an index is valid, or undefined if there is none.
async function findIndex (db: Kysely<Tables>, schema: string, name: string): Promise<boolean | undefined> {
  const { rows: [found] } = await sql<{ isValid: boolean }>`
    select indisvalid as "isValid" from pg_index join pg_class on pg_class.oid = indexrelid join pg_namespace on pg_namespace.oid = relnamespace
    where nspname = ${schema} and relname = ${name}`.execute(db)
  return found?.isValid
}

// These statements must not be in a transaction, and take longer than the timeout of the statements of the pools.
async function runAlone (db: Kysely<Tables>, statement: RawBuilder<unknown>): Promise<void> {
  const session = openSession(db)
  try {
    await session.run(statement.compile(db).sql)
  } finally {
    session.destroy()
  }
}

// A failed look changes nothing about the build.
async function watch (db: Kysely<Tables>, signal: AbortSignal, report: (done: number, total: number) => void): Promise<void> {
  try {
    for (;;) {
      await delay(LOOK_MS, undefined, { signal, ref: false })
      const { rows: [found] } = await sql<{ done: string, total: string }>`
        select blocks_done as done, blocks_total as total from pg_stat_progress_create_index where datname = current_database() limit 1`.execute(db)
      if (found) report(Number(found.done), Number(found.total))
    }
  } catch {}
}
