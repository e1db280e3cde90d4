import { isBackupTable, backupTables } from '../../db/tables/backup-tables.ts'
import { listRanMigrations } from '../../db/migrations/index.ts'
import { FORMAT, RELEASE, type Manifest } from './format.ts'
import { quote, type Session } from './session.ts'

// Rows are collected up to this size, because the header of an entry contains its size.
const PART_BYTES = 4 * 1024 * 1024
const LINE_FEED = 0x0A

/** Rows of a table in PostgreSQL's text format, which all versions read. */
export interface Part { readonly bytes: Buffer, readonly rows: number }

/**
 * Describes the content of the schema, as the transaction of the session sees it. Throws an `Error` if it is not that
 * of Usher.
 */
export async function describeSchema (session: Session, schema: string): Promise<Manifest> {
  const ran = await listRanMigrations(session.db, schema)
  const [server] = await session.query<{ version: string, time: string }>(`
    select current_setting('server_version') as version,
      to_char(now() at time zone 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS.MS"Z"') as time`)
  const [epoch] = ran.length > 0
    ? await session.query<{ epoch: number }>(`select epoch from ${quote(schema, 'current_epoch')}`)
    : []
  const tables = await listTables(session, schema)
  return {
    format: 'usher backup',
    version: FORMAT,
    release: RELEASE,
    createdAt: server!.time,
    postgresql: server!.version,
    epoch: epoch?.epoch ?? 0,
    migrations: ran,
    tables,
    sequences: await listSequences(session, schema, tables.map(({ name }) => name)),
  }
}

/** Yields the rows of a table in parts of a few megabytes. */
export async function * dumpTable (
  session: Session, schema: string, { name, columns }: Manifest['tables'][number]
): AsyncGenerator<Part> {
  const stream = await session.copyOut(
    `copy ${quote(schema, name)} (${columns.map((column) => quote(column.name)).join(', ')}) to stdout`
  )
  let chunks: Buffer[] = []
  let [size, rows] = [0, 0]
  for await (const chunk of stream as AsyncIterable<Buffer>) {
    // A chunk shares the memory of a larger one, which would be kept.
    chunks.push(Buffer.from(chunk))
    size += chunk.length
    rows += countLines(chunk)
    if (size < PART_BYTES || chunk.at(-1) !== LINE_FEED) continue
    yield { bytes: Buffer.concat(chunks), rows };
    [chunks, size, rows] = [[], 0, 0]
  }
  if (size > 0) yield { bytes: Buffer.concat(chunks), rows }
}

// Each row ends with a line feed. Those in values are escaped.
function countLines (chunk: Buffer): number {
  let count = 0
  for (let at = chunk.indexOf(LINE_FEED); at >= 0; at = chunk.indexOf(LINE_FEED, at + 1)) count++
  return count
}

// Returns the tables to back up. Those that others refer to come first.
async function listTables (session: Session, schema: string): Promise<Manifest['tables']> {
  const found = await session.query<{ table: string, column: string, type: string }>(`
    select relname as table, attname as column, format_type(atttypid, atttypmod) as type
    from pg_attribute join pg_class on pg_class.oid = attrelid join pg_namespace on pg_namespace.oid = relnamespace
    where nspname = $1 and relkind in ('r', 'p') and attnum > 0 and not attisdropped and attgenerated = ''
    order by relname, attnum`, [schema])
  const references = await session.query<{ table: string, referred: string }>(`
    select source.relname as table, target.relname as referred
    from pg_constraint join pg_class source on source.oid = conrelid join pg_class target on target.oid = confrelid
    join pg_namespace on pg_namespace.oid = source.relnamespace where nspname = $1 and contype = 'f'`, [schema])
  const sorted = new Map<string, Manifest['tables'][number]>()
  const names = new Set(
    found.map(({ table }) => table).filter((name) => isBackupTable(name) && backupTables[name] !== 'left out')
  )
  const add = (name: string, path: readonly string[]) => {
    if (!names.has(name) || sorted.has(name) || path.includes(name)) return
    for (const { table, referred } of references) if (table === name) add(referred, [...path, name])
    const columns = found.filter(({ table }) => table === name).map(({ column, type }) => ({ name: column, type }))
    sorted.set(name, { name, columns })
  }
  for (const name of names) add(name, [])
  return [...sorted.values()]
}

async function listSequences (
  session: Session, schema: string, tables: readonly string[]
): Promise<Manifest['sequences']> {
  const columns = await session.query<{ table: string, column: string, sequence: string }>(`
    select relname as table, attname as column, pg_get_serial_sequence(format('%I.%I', nspname, relname), attname) as sequence
    from pg_attribute join pg_class on pg_class.oid = attrelid join pg_namespace on pg_namespace.oid = relnamespace
    where nspname = $1 and relkind = 'r' and attidentity <> '' order by relname, attname`, [schema])
  const sequences: Manifest['sequences'] = []
  for (const { table, column, sequence } of columns) {
    if (!tables.includes(table)) continue
    const [last] = await session.query<{ value: string, isCalled: boolean }>(
      `select last_value as value, is_called as "isCalled" from ${sequence}`
    )
    sequences.push({ table, column, ...last! })
  }
  return sequences
}
