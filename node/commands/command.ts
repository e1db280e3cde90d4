import type { ParseArgsConfig } from 'node:util'

type Options = NonNullable<ParseArgsConfig['options']>
type Values = Record<string, string | boolean | undefined>

/** A command of the command line. */
export interface Command {
  /** A sentence for the list of commands. */
  summary: string
  /** What `--help` prints below the summary: a line for each option, and explanations. */
  details: string
  options: Options
  /** Runs the command. Rejects with an `Error` whose message is printed, and the process exits with 1. */
  run (values: Values): Promise<void>
}
