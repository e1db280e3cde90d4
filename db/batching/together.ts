import { sql, type CompiledQuery, type Kysely, type QueryResult } from 'kysely'
import { executedBy } from '../driver/executed-by.ts'
import type { Tables } from '../tables/index.ts'

// Statements without rows in their answers.
const DEFINITION = /^\s*(create|alter|drop|lock|update|delete)\s/i

/**
 * Runs `work` with a database that collects definitions, such as `create table`, and what changes rows without
 * parameters, and sends them together: some hundred of them would each wait for a distant database. Other statements
 * are sent at once, after those before them, so that the effect is that of one after the other.
 * @param trx a transaction
 */
export async function defineTogether<Result> (
  trx: Kysely<Tables>, work: (db: Kysely<Tables>) => Promise<Result>
): Promise<Result> {
  let collected: string[] = []

  async function flush (): Promise<void> {
    const definitions = collected
    collected = []
    // One statement, which has one answer. The tags occur in no definition.
    const steps = definitions.map((text) => `execute $usher_step$${text}$usher_step$;`)
    if (steps.length > 0) await sql.raw(`do $usher_steps$ begin ${steps.join('\n')} end $usher_steps$`).execute(trx)
  }

  async function executeQuery<Row> (query: CompiledQuery): Promise<QueryResult<Row>> {
    if (DEFINITION.test(query.sql) && query.parameters.length === 0 && !/\sreturning\s/i.test(query.sql)) {
      collected.push(query.sql)
      return { rows: [] }
    }
    await flush()
    return trx.executeQuery<Row>(query as CompiledQuery<Row>)
  }

  const db = executedBy(trx, executeQuery, 'There is a transaction already')
  const result = await work(db)
  await flush()
  return result
}
