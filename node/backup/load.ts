import { pipeline } from 'node:stream/promises'
import { Readable } from 'node:stream'
import { sql, type Kysely } from 'kysely'
import { backupTables, isBackupTable } from '../../db/tables/backup-tables.ts'
import { runMigrations } from '../../db/migrations/index.ts'
import type { Tables } from '../../db/tables/index.ts'
import { BackupError, type Manifest } from './format.ts'
import { quote, type Session } from './session.ts'

/** The tables of a schema that is being restored, in a transaction. */
export interface Target {
  readonly session: Session
  readonly trx: Kysely<Tables>
  readonly schema: string
}

/**
 * Drops the tables of Usher, and nothing else, so that what the host has in the same schema stays. Throws `BackupError`
 * if something of the host depends on them.
 */
export async function dropTables ({ session, schema }: Target): Promise<void> {
  const tables = [...Object.keys(backupTables), 'migrations']
  // The functions of triggers, and those that they call. Others belong to the host.
  const functions = await session.query<{ name: string }>(`
    with recursive ours as (
      select distinct pg_proc.oid, prosrc from pg_proc join pg_trigger on tgfoid = pg_proc.oid join pg_class on pg_class.oid = tgrelid
      where relnamespace = $1::regnamespace and pronamespace = relnamespace and relname = any($2::text[]) and not tgisinternal
      union select called.oid, called.prosrc from ours join pg_proc called on strpos(replace(ours.prosrc, '"', ''), format('%s.%s(', $3::text, called.proname)) > 0
      where called.pronamespace = $1::regnamespace
    ) select oid::regprocedure::text as name from ours`, [quote(schema), tables, schema])
  try {
    await session.query(`drop view if exists ${quote(schema, 'current_epoch')}`)
    await session.query(`drop table if exists ${tables.map((name) => quote(schema, name)).join(', ')}`)
    for (const { name } of functions) await session.query(`drop function ${name}`)
  } catch (error) {
    const { code, detail } = error as { code?: string, detail?: string }
    if (code === '2BP01') {
      throw new BackupError(
        `Something else in the database refers to the tables of Usher (${detail?.split('\n')[0]}): restore into another database, or drop it first.`,
        { cause: error }
      )
    }
    throw error
  }
}

/**
 * Creates the tables as they were in the backup, with the columns that the host had added. They have no indexes that
 * slow down loading.
 */
export async function createTables (target: Target, { migrations, tables }: Manifest): Promise<string[]> {
  const { session, trx, schema } = target
  await runMigrations(trx, schema, { only: new Set(migrations) })
  const found = await session.query<{ table: string, column: string }>(`
    select relname as table, attname as column from pg_attribute join pg_class on pg_class.oid = attrelid
    join pg_namespace on pg_namespace.oid = relnamespace where nspname = $1 and attnum > 0 and not attisdropped`, [
    schema,
  ])
  const existing = new Set(found.map(({ table, column }) => `${table} ${column}`))
  for (const { name, columns } of tables) {
    if (!isBackupTable(name)) throw new BackupError(`The backup has a table ${name} that this release does not know.`)
    for (const column of columns) {
      if (existing.has(`${name} ${column.name}`)) continue
      // The name of a type cannot be quoted as a whole: it may have a length, and several words.
      if (!/^[a-z_][a-z0-9_ ]*(\(\d+(,\d+)?\))?[a-z ]*(\[\])*$/.test(column.type)) {
        throw new BackupError(
          `The column ${column.name} of ${name} has a type that cannot be restored: ${column.type}.`
        )
      }
      await session.query(`alter table ${quote(schema, name)} add column ${quote(column.name)} ${column.type}`)
    }
    // Neither events nor locks: all rows were there before.
    await session.query(`alter table ${quote(schema, name)} disable trigger user`)
  }
  const indexes = await session.query<{ name: string, definition: string }>(`
    select indexrelid::regclass::text as name, pg_get_indexdef(indexrelid) as definition from pg_index
    join pg_class on pg_class.oid = indrelid join pg_namespace on pg_namespace.oid = relnamespace
    where nspname = $1 and not indisunique and relname = any($2::text[])`, [schema, tables.map(({ name }) => name)])
  for (const { name } of indexes) await session.query(`drop index ${name}`)
  return indexes.map(({ definition }) => definition)
}

/** Loads rows into a table. Throws `BackupError` if the table does not accept them. */
export async function loadRows (
  { session, schema }: Target, { name, columns }: Manifest['tables'][number], rows: AsyncIterable<Buffer>
): Promise<void> {
  const input = await session.copyIn(
    `copy ${quote(schema, name)} (${columns.map((column) => quote(column.name)).join(', ')}) from stdin`
  )
  try {
    await pipeline(Readable.from(rows, { objectMode: false }), input)
  } catch (error) {
    const { code, message } = error as { code?: string, message: string }
    // Invalid values, and violated constraints.
    if (!/^2[23]...$/.test(code ?? '')) throw error
    throw new BackupError(
      `The rows of ${name} in the backup cannot be restored (${code}: ${message}). Nothing was changed: restore another backup.`,
      { cause: error }
    )
  }
}

/** Completes tables that are loaded: sequences, indexes, triggers, and the migrations of newer releases. */
export async function finishTables (
  target: Target, { tables, sequences }: Manifest, indexes: readonly string[]
): Promise<void> {
  const { session, trx, schema } = target
  for (const { table, column, value, isCalled } of sequences) {
    await session.query(
      `select setval(pg_get_serial_sequence($1, $2), $3::bigint, ${isCalled})`, [quote(schema, table), column, value]
    )
  }
  for (const definition of indexes) await session.query(definition)
  for (const { name } of tables) await session.query(`alter table ${quote(schema, name)} enable trigger user`)
  await runMigrations(trx, schema)
}

/**
 * Begins a new epoch of posts. Cursors of posts that were created after the backup then lead to `CURSOR_LOST` instead
 * of missing posts whose positions were given out again. PostgreSQL's timeline, from which epochs come, does not tell a
 * restored database from others. Epochs are at least the minutes since 1970, so that they also rise if a backup is
 * restored in several places, one after the other.
 */
export async function renewEpoch ({ session, schema }: Target, last: number): Promise<void> {
  const view = quote(schema, 'current_epoch')
  const [row] = await session.query<{ epoch: number, seconds: number, definition: string, value: string }>(`
    select epoch, extract(epoch from now())::float8 as seconds, pg_get_viewdef($1::regclass) as definition, (
      select pg_get_expr(adbin, adrelid) from pg_attrdef join pg_attribute on attrelid = adrelid and attnum = adnum
      where adrelid = $2::regclass and attname = 'epoch'
    ) as value from ${view}`, [view, quote(schema, 'posts')])
  const offset = Math.max(last + 1, Math.floor(row!.seconds / 60)) - row!.epoch
  await session.query(
    `create or replace view ${view} as select epoch + ${offset} as epoch from (${row!.definition.replace(/;\s*$/, '')}) as timeline`
  )
  await session.query(`alter table ${quote(schema, 'posts')} alter epoch set default (${row!.value}) + ${offset}`)
}

/**
 * Sets the text that identifies the database among those that use a folder of uploads, see `installationOf`. A copy of
 * a database on another machine is another one.
 */
export async function setInstallation ({ trx, schema }: Target, timestamp: string): Promise<void> {
  await sql`update ${sql.id(schema, 'migrations')} set timestamp = ${timestamp} where name = (select min(name) from ${sql.id(schema, 'migrations')})`
    .execute(trx)
}
