import { setTimeout as delay } from 'node:timers/promises'
import { sql, type Kysely, type RawBuilder } from 'kysely'
import { DEADLINES } from '../../schema/options/deadlines.ts'
import { openSession } from '../driver/session.ts'
import { lockNotFree, type MigrationStep } from './steps.ts'
import type { Tables } from '../tables/index.ts'

/** An index that a migration creates. */
export interface MigrationIndex {
  name: string
  /** What follows `on`: the table, the method and the columns. */
  on: RawBuilder<unknown>
}

/** Returns the indexes of a migration in a PostgreSQL schema. */
export type IndexesOf = (schema: string) => readonly MigrationIndex[]

/** Returns the statements that create indexes on tables that nobody uses yet. */
export const createIndexes = (indexes: readonly MigrationIndex[]): RawBuilder<unknown>[] =>
  indexes.map(({ name, on }) => sql`create index ${sql.id(name)} on ${on}`)

type IndexStep = Pick<MigrationStep, 'state' | 'done' | 'total'>
type ReportIndex = (step: IndexStep & { index: string }) => void

const POLL_MS = 1000
// Characters of a statement that PostgreSQL shows to others, at least.
const KNOWN = 100

/**
 * Creates those of the indexes that are missing, while others read and write the table. A build that has failed leaves
 * an invalid index, which is dropped and built again. A build waits for transactions that began before it. Throws a
 * `StartError` if it has waited for one of them for five minutes.
 * @param report receives the number of blocks, of how many, and that a build waits
 */
export async function buildIndexes (
  db: Kysely<Tables>, schema: string, indexes: readonly MigrationIndex[], report: ReportIndex,
  timeoutMs = DEADLINES.migrationLock
): Promise<void> {
  for (const { name, on } of indexes) {
    const isValid = await findIndex(db, schema, name)
    if (isValid) continue
    let last: IndexStep['state'] | undefined
    // Both statements may wait for the same transaction.
    const tell = (step: IndexStep) => {
      if (step.state !== 'waiting' || last !== 'waiting') report({ index: name, ...step })
      last = step.state
    }
    const run = (statement: RawBuilder<unknown>) => runAlone(db, statement, tell, timeoutMs)
    if (isValid === false) await run(sql`drop index concurrently if exists ${sql.id(schema, name)}`)
    await run(sql`create index concurrently ${sql.id(name)} on ${on}`)
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
async function runAlone (
  db: Kysely<Tables>, statement: RawBuilder<unknown>, report: (step: IndexStep) => void, timeoutMs: number
): Promise<void> {
  const session = openSession(db)
  const ended = new AbortController()
  let isTooLong = false
  try {
    // PostgreSQL then ends the statement when this process is killed. Not every operating system can.
    await session.run("set client_connection_check_interval = '5s'").catch(() => {})
    const text = statement.compile(db).sql
    const cancel = async (pid: number) => {
      // Behind a pooler, the process may have begun a statement of another client.
      await sql`select pg_cancel_backend(pid) from pg_stat_activity
        where pid = ${pid}::integer and state = 'active' and left(query, ${KNOWN}) = left(${text}, ${KNOWN})`
        .execute(db)
      isTooLong = true
    }
    const watching = watch(db, text, { signal: ended.signal, report, timeoutMs, cancel })
    await session.run(text).finally(() => {
      ended.abort()
      return watching
    })
  } catch (error) {
    if (isTooLong) throw lockNotFree('the build of an index', timeoutMs)
    throw error
  } finally {
    session.destroy()
  }
}

interface Watch {
  signal: AbortSignal
  report: (step: IndexStep) => void
  timeoutMs: number
  cancel: (pid: number) => Promise<void>
}

// Reports what a statement does, when that has changed. A failed poll changes nothing about the statement. It is found
// by its text, because a pooler may run it on any connection.
async function watch (db: Kysely<Tables>, text: string, { signal, report, timeoutMs, cancel }: Watch): Promise<void> {
  let [last, waitsSince] = ['', 0]
  while (await delay(POLL_MS, true, { signal, ref: false }).catch(() => false)) {
    const found = await findStatement(db, text).catch(() => undefined)
    if (!found) continue
    const state = `${found.waits} ${found.done}`
    if (state !== last && found.waits) {
      report({ state: 'waiting' })
    } else if (state !== last && found.done !== null) {
      report({ state: 'building', done: Number(found.done), total: Number(found.total) })
    }
    last = state
    waitsSince = found.waits ? waitsSince || performance.now() : 0
    if (waitsSince > 0 && performance.now() - waitsSince > timeoutMs) await cancel(found.pid).catch(() => {})
  }
}

async function findStatement (db: Kysely<Tables>, text: string) {
  const { rows: [found] } = await sql<{ pid: number, waits: boolean, done: string | null, total: string | null }>`
    select pid, coalesce(wait_event_type = 'Lock', false) as waits, blocks_done as done, blocks_total as total
    from pg_stat_activity left join pg_stat_progress_create_index using (pid)
    where pg_stat_activity.datname = current_database() and state = 'active' and left(query, ${KNOWN}) = left(${text}, ${KNOWN}) limit 1`
    .execute(db)
  return found
}
