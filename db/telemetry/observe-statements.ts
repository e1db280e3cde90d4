import type { Tracing } from './tracing.ts'

/**
 * Called after each statement with its text and its duration in milliseconds.
 * @param standby the address of the standby that it was sent to; undefined for the primary
 */
export type OnStatement = (text: string, ms: number, standby?: string) => void

/** Runs a statement, and records it by its text. */
export type ObserveStatement = <Result>(text: string, run: () => Promise<Result>) => Promise<Result>

/** Who wants to know of statements. */
export interface StatementObservers {
  /** Undefined if slow ones are not logged. */
  readonly onStatement: OnStatement | undefined
  /** Gives statements spans, if the process has an OpenTelemetry SDK. */
  readonly tracing: Tracing | undefined
}

/**
 * Returns the function that runs the statements sent to a server, or undefined if nobody wants to know of them, as in
 * most apps.
 * @param standby the address of a standby, such as `db.example.com:5432`; undefined for the primary
 */
export function observeStatements (
  { onStatement, tracing }: StatementObservers, standby?: string
): ObserveStatement | undefined {
  if (!onStatement) return tracing && ((text, run) => tracing.runStatement(text, run, standby))

  // Those that fail are of interest, too: a statement that the database cancels because it takes too long was slow.
  async function time<Result> (text: string, run: () => Promise<Result>): Promise<Result> {
    const since = performance.now()
    try {
      return await run()
    } finally {
      onStatement!(text, performance.now() - since, standby)
    }
  }

  return tracing ? (text, run) => tracing.runStatement(text, () => time(text, run), standby) : time
}
