import postgres from 'postgres'
import { backupTables } from '../../db/tables/backup-tables.ts'
import { createReadStream } from 'node:fs'
import { buffer } from 'node:stream/consumers'
import { createGunzip } from 'node:zlib'
import { archive, writeArchive } from '../../node/backup/archive.ts'
import { makeBackup, type Result } from '../../node/backup/backup.ts'
import { SUMMARY } from '../../node/backup/format.ts'
import { restoreBackup, verifyBackup, type Destination, type Restored } from '../../node/backup/restore.ts'
import { readTar } from '../../node/backup/tar.ts'
import { createFolder } from '../../plugins/uploads/folder.ts'
import type { TestUsher } from './app.ts'
import { socketOf } from './database.ts'

/** A database and a folder of uploads. */
export interface Place { readonly database: string, readonly uploadsDir: string }

/** The schema that the commands use by default. */
export const schema = 'usher'

export const placeOf = ({ options }: Pick<TestUsher, 'options'>): Place =>
  ({ database: options.databaseUrl!, uploadsDir: options.uploadsDir! })

/** Makes a backup of a place. `onChunk` is called before each chunk is written. */
export async function backUp (place: Place, file: string, onChunk = async () => {}): Promise<Result> {
  return makeBackup({ ...place, schema, backend: createFolder(place.uploadsDir) }, async (bytes) => {
    async function * observed () {
      for await (const chunk of bytes) {
        await onChunk()
        yield chunk
      }
    }
    await writeArchive(file, observed(), () => {})
  })
}

/** Verifies a backup and restores it. Existing data are replaced if `replaces` is set. */
export async function restore (
  file: string, place: Place, { replaces = false, ...options }: Partial<Destination> & { replaces?: boolean } = {}
): Promise<Restored> {
  const confirm = async (existing: string) => { if (!replaces) throw new Error(`there is ${existing}`) }
  const verified = await verifyBackup(file, () => {})
  return restoreBackup({
    file,
    ...place,
    schema,
    backend: createFolder(place.uploadsDir),
    keepsSessions: false,
    secret: undefined,
    confirm,
    onBytes () {},
    ...options,
  }, verified)
}

/** Runs a function on a connection to a database, in the schema of Usher. */
export async function withSql<Value> (database: string, run: (sql: postgres.Sql) => Promise<Value>): Promise<Value> {
  const sql = postgres(database, {
    ...socketOf(database), max: 1, onnotice: () => {}, connection: { search_path: schema },
  })
  return run(sql).finally(() => sql.end({ timeout: 0 }))
}

/** Returns the rows of every table, as text and in order. */
export async function rowsOf (database: string): Promise<Record<string, string[]>> {
  return withSql(database, async (sql) => {
    const rows: [string, string[]][] = []
    for (const name of Object.keys(backupTables)) {
      const found = await sql<{ row: string }[]>`select to_jsonb(t)::text as row from ${sql(name)} t order by 1`
      rows.push([name, found.map(({ row }) => row)])
    }
    return Object.fromEntries(rows)
  })
}

/** Returns what a schema consists of: columns, indexes, constraints and triggers. */
export async function structureOf (database: string): Promise<string[]> {
  return withSql(database, async (sql) => (await sql<{ line: string }[]>`
    select format('%s.%s %s %s', relname, attname, format_type(atttypid, atttypmod), attnotnull) as line
    from pg_attribute join pg_class on pg_class.oid = attrelid where relnamespace = ${schema}::regnamespace and relkind = 'r' and attnum > 0 and not attisdropped
    union all select indexdef from pg_indexes where schemaname = ${schema}
    union all select conrelid::regclass || ' ' || pg_get_constraintdef(oid) from pg_constraint where connamespace = ${schema}::regnamespace and contype <> 'n'
    union all select pg_get_triggerdef(oid) || tgenabled::text from pg_trigger where tgrelid in (select oid from pg_class where relnamespace = ${schema}::regnamespace) and not tgisinternal
    union all select proname from pg_proc where pronamespace = ${schema}::regnamespace
    order by 1`).map(({ line }) => line))
}

/**
 * Writes a copy of a backup with correct checksums, in which `change` has replaced the content of entries. It gets each
 * name and content, and returns the entries to write instead.
 */
export async function rewrite (
  file: string, copy: string, change: (name: string, content: Buffer) => [name: string, content: Buffer][]
): Promise<void> {
  const bytes = archive(async (copied) => {
    let summary
    for await (const { name, content } of readTar(createReadStream(file).pipe(createGunzip()))) {
      const whole = await buffer(content)
      if (name === SUMMARY) summary = JSON.parse(whole.toString())
      else if (!name.startsWith('checksums/')) {
        for (const [renamed, bytes] of change(name, whole)) await copied.add(renamed, bytes.length, [bytes])
      }
    }
    const { entries: _, checksums: __, ...rest } = summary
    await copied.end(rest)
  })
  await writeArchive(copy, bytes, () => {})
}
