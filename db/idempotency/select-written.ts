import { sql, type QueryCreator, type RawBuilder } from 'kysely'
import { detectConflict, withStoredResult, type KeyedWrite, type ResultKind } from './idempotency.ts'
import type { Database } from '../tables/index.ts'

/** How a statement of writes ends. */
export interface Ending {
  /** The common table expression with the written rows, as in `withStoredResult`. */
  from: string
  kind: ResultKind
  /** The writes that have a key, if any has one. */
  keyed: readonly KeyedWrite[] | undefined
  /** A condition that fails if nothing may be written. */
  condition: RawBuilder<boolean>
  /** That of `withStoredResult`. */
  hasVersion?: boolean
}

/** The rows that a statement has written, and the ids of the writes that it has refused, because their key is taken. */
export interface Outcome<Written> {
  written: Written[]
  refused: ReadonlySet<string>
}

const refusedWrites = sql<{ refused_id: string }>`(select record_id as refused_id from refused)`
  .as<'refusals'>(sql`refusals`)

/**
 * Runs a statement of writes, of which some may have keys, and stores the results of those. Throws `KeyTaken`.
 * @param query a statement with the common table expression `from`, which begins with `withIdempotencyKeys` if some
 * writes have keys
 */
export async function selectWritten<Written extends object> (
  db: Database, query: object, { from, kind, keyed, condition, hasVersion }: Ending
): Promise<Outcome<Written>> {
  // The rows depend on the statement.
  const statement = query as QueryCreator<any>
  const refused = new Set<string>()
  if (!keyed) {
    return { written: await statement.selectFrom(from).selectAll().where(condition).execute() as Written[], refused }
  }
  const all = withStoredResult(statement, kind, from, hasVersion).selectFrom(from)
    .fullJoin(refusedWrites, 'refusals.refused_id', `${from}.id`).selectAll(from).select('refused_id').where(condition)
  const written: Written[] = []
  for (const { refused_id: id, ...row } of await detectConflict(db, () => all.execute()) as {
    refused_id: string | null
  }[]) {
    if (id === null) written.push(row as Written)
    else refused.add(id)
  }
  return { written, refused }
}
