import type { ParseArgsConfig } from 'node:util'
import type { Shell } from '../terminal/shell.ts'

type Options = NonNullable<ParseArgsConfig['options']>
export type Values = Record<string, string | boolean | undefined>

/** Thrown by a command if its arguments are wrong. The process then exits with 2. */
export class WrongArguments extends Error {}

/** What a command has found or done. */
export interface Output {
  /** For people, without the last line break. */
  readonly text: string
  /** For programs: what `--json` prints, as one JSON document. */
  readonly json: unknown
  /** Whether the process exits with 1 nevertheless, as `status` does if something is wrong. */
  readonly isFailure?: boolean
}

/** A command of the command line. */
export interface Command {
  /** What `--help` prints below the summary: a line for each option, and explanations. */
  details: string
  /** The names of the arguments that must follow the name of the command, such as `FILE`. None by default. */
  arguments?: readonly string[]
  /** The options that take the place of the arguments, if there are any. */
  insteadOfArguments?: readonly string[]
  /** The shape of what `--json` prints, for `--help`. A command without it does not have this option. */
  json?: string
  options: Options
  /**
   * Runs the command with the values of its options and of its arguments, in a shell. Returns what is printed, unless
   * the command prints by itself. Rejects with an `Error` whose message is printed, and the process exits with 1, or
   * with 2 for `WrongArguments`.
   */
  run (values: Values, args: readonly string[], shell: Shell): Promise<Output | void>
}
