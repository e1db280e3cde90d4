import type { ParseArgsConfig } from 'node:util'

type Options = NonNullable<ParseArgsConfig['options']>
type Values = Record<string, string | boolean | undefined>

/** A command of the command line. */
export interface Command {
  /** A sentence for the list of commands. */
  summary: string
  /** What `--help` prints below the summary: a line for each option, and explanations. */
  details: string
  /** The names of the arguments that must follow the name of the command, such as `FILE`. None by default. */
  arguments?: readonly string[]
  options: Options
  /**
   * Runs the command with the values of its options and of its arguments. Rejects with an `Error` whose message is printed, and
   * the process exits with 1.
   */
  run (values: Values, args: readonly string[]): Promise<void>
}
