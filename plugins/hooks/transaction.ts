import { sql as bind } from 'kysely'
import type { Database } from '../../db/tables/index.ts'
import type { TransactionContext } from '../../schema/options/hooks.ts'

// After the deadline, so that the hook fails by it rather than by the failure of a statement.
const GRACE_MS = 100
// The words with which a hook would end the transaction, or lose it.
const CONTROL = /^[\s;]*(abort|begin|commit|end|prepare\s+transaction|release|rollback|savepoint|start)\b/i

/**
 * Runs a hook inside a transaction, with a function `sql` for its statements. All statements have ended when this
 * returns, and there can be no others: the connection may then be used by another transaction.
 *
 * @param remaining returns the milliseconds until the deadline of the hook
 */
export async function runInTransaction (
  trx: Database, remaining: () => number, run: (sql: TransactionContext['sql']) => Promise<void>
): Promise<void> {
  let isOpen = true
  const pending = new Set<Promise<unknown>>()

  const sql: TransactionContext['sql'] = <Row extends object>(text: TemplateStringsArray, ...values: unknown[]) => {
    if (!isOpen) throw new Error('usher: the sql of a hook was called after the hook had ended: await every statement')
    if (CONTROL.test(text[0] ?? '')) throw new Error('usher: a hook must not begin or end a transaction')
    const statement = execute<Row>(text, values)
    pending.add(statement)
    // The hook may not wait for it, and then it fails the hook below.
    statement.catch(() => {})
    return statement
  }

  async function execute<Row extends object> (text: TemplateStringsArray, values: unknown[]): Promise<Row[]> {
    await limit(Math.max(1, Math.ceil(remaining()) + GRACE_MS))
    return (await bind<Row>(text, ...values).execute(trx)).rows
  }

  // The hook may pause between statements, and a statement must not run for longer than the hook.
  const limit = (milliseconds: number) =>
    bind`select set_config('idle_in_transaction_session_timeout', ${String(milliseconds + GRACE_MS)}, true),
    set_config('statement_timeout', ${String(milliseconds)}, true)`.execute(trx)

  await limit(Math.max(1, Math.ceil(remaining()) + GRACE_MS))
  try {
    await run(sql)
    await Promise.all(pending)
  } finally {
    isOpen = false
  }
  await bind`set local statement_timeout to default`.execute(trx)
}
