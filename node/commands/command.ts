import type { ParseArgsConfig } from 'node:util'

type Options = NonNullable<ParseArgsConfig['options']>
type Values = Record<string, string | boolean | undefined>

/** A command of the terminal. */
export interface Command {
  /** One line. */
  summary: string
  /** What `--help` says below the usage: options, a line each, and what there is to know. */
  details: string
  options: Options
  /** Throws an `Error` of one sentence. */
  run (values: Values): Promise<void>
}
