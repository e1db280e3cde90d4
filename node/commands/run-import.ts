import { describeBytes } from '../backup/format.ts'
import type { ImportOptions, ImportResult } from '../imports/import-file.ts'
import { showProgress } from '../terminal/progress.ts'
import type { Shell } from '../terminal/shell.ts'
import { WrongArguments, type Output, type Values } from './command.ts'

/** The options of a command that imports a file. */
export const importOptions = {
  'dry-run': { type: 'boolean' }, rejected: { type: 'string' }, again: { type: 'boolean' }, schema: { type: 'string' },
} as const

/** The members that the result of each such command has, for `--help`, around those of its own. */
export const importJson = (own: string): string => `{ file, imported: number, ${own}, rejected: number, ` +
  'resumed: number, rejectedFile: string or null, finishedAt: time or null, problems: [{ line: number, reason }] }'

/** What a command imports. */
export interface Imported<Result> {
  /** The command, such as `users import`. */
  readonly command: string
  /** What a line is, such as `user`. */
  readonly noun: string
  /** Imports the file. */
  import (given: Omit<ImportOptions, 'db'>, schema: { schema?: string }): Promise<Result>
  /** Returns what else is counted, such as `1 admin among them`. */
  tell (result: Result): string
}

/** Runs a command that imports a file, and shows how far it is. Throws an `Error` with a sentence. */
export async function runImport<Result extends Omit<ImportResult, 'counted'>> (
  { 'dry-run': dryRun = false, rejected, again = false, schema }: Values, [file = '']: readonly string[], shell: Shell,
  imported: Imported<Result>
): Promise<Output> {
  if (file === '') throw new WrongArguments(`${imported.command} needs FILE.`)
  const path = shell.resolve(file)
  const rejectedPath = shell.resolve(rejected === undefined ? `${path}.rejected.ndjson` : String(rejected))
  if (rejectedPath === path) throw new WrongArguments('--rejected must be another file than FILE.')
  const progress = showProgress(shell.messages, dryRun ? 'Checking' : 'Importing', describeBytes)
  const began = performance.now()
  try {
    const result = await imported.import({
      path, rejectedPath, dryRun: dryRun === true, again: again === true, onProgress: progress.update,
    }, schema === undefined ? {} : { schema: String(schema) })
    progress.end()
    const rejectedFile = result.rejected > 0 && !dryRun ? rejectedPath : null
    const seconds = (performance.now() - began) / 1000
    return {
      text: describe(result, {
        path, rejectedFile, dryRun: dryRun === true, seconds, noun: imported.noun, more: imported.tell(result),
      }),
      json: { file: path, ...result, rejectedFile },
      isFailure: result.rejected > 0,
    }
  } finally {
    progress.end()
  }
}

function describe (
  { imported, rejected, resumed, finishedAt, problems }: Omit<ImportResult, 'counted'>,
  { path, rejectedFile, dryRun, seconds, noun, more }: {
    path: string, rejectedFile: string | null, dryRun: boolean, seconds: number, noun: string, more: string
  }
): string {
  if (finishedAt) {
    return `${path} was imported on ${finishedAt.toISOString()}: ${count(imported, noun)}, ${count(rejected, 'rejected line')}. ` +
      'Nothing was changed. To import it once more, add --again.'
  }
  const done = `${count(imported, noun)} ${dryRun ? 'can be' : imported === 1 ? 'was' : 'were'} imported`
  return [
    `${done}, ${more}${resumed > 0 ? `, ${resumed} by an earlier run` : ''}: ${seconds.toFixed(1)} seconds.`,
    ...rejected === 0 ? [] : [`${count(rejected, 'line')} ${rejected === 1 ? 'was' : 'were'} rejected${rejectedFile === null ? ':' : `, see ${rejectedFile}.`}`],
    ...problems.map(({ line, reason }) => `  line ${line}: ${reason}`),
    ...problems.length < rejected && dryRun ? ['  …'] : [],
  ].join('\n')
}

/** Returns a number with what it is of. */
export const count = (number: number, what: string): string => `${number} ${what}${number === 1 ? '' : 's'}`
