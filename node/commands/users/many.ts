import type { UserRow } from '../../../db/tables/index.ts'
import { beginImport, findImport, lockImport, updateImport } from '../../../db/users/user-imports.ts'
import { describeFile, taskOf } from '../../imports/import-file.ts'
import { readLines } from '../../imports/lines.ts'
import { RejectedLines } from '../../imports/rejected-lines.ts'
import { showProgress } from '../../terminal/progress.ts'
import type { Shell } from '../../terminal/shell.ts'
import { describeBytes } from '../../backup/format.ts'
import { WrongArguments, type Output, type Values } from '../command.ts'
import { withService, type ServiceContext } from '../with-service.ts'
import { findUser, UnknownUser } from './shown.ts'

// An address or an id. A longer line is something else.
const MAX_LINE_BYTES = 1000

/** The options of a command that changes one user or, with `--file`, many of them. */
export const fileOptions = { file: { type: 'string' }, rejected: { type: 'string' } } as const

/** Their lines for `--help`, behind a column of this width. */
export const fileHelp = (width: number): string =>
  `  ${'--file <file>'.padEnd(width)}many users in place of USER: an id or an address a line. If it is interrupted, run it\n` +
  `  ${''.padEnd(width)}again: it continues where it was\n` +
  `  ${'--rejected <file>'.padEnd(width)}the file of the lines that were rejected, by default FILE.rejected.ndjson`

/** What a command prints with `--file` and `--json`. */
export const FILE_JSON =
  '{ file, changed: number, skipped: number, rejected: number, resumed: number, rejectedFile: string or null }'

/** What is done to each user of a file. */
export interface ManyChanges {
  /** The command with the options that matter. The same file is another task of another command. */
  readonly task: string
  /** For the progress, such as `Disabling`. */
  readonly label: string
  /** For the result, such as `disabled`. */
  readonly done: string
  /** Why a user is skipped, such as `disabled before`. */
  readonly skipped?: string
  /** Is asked before the first change. Without it, and if it returns true, the changes are made. */
  mayBegin? (): Promise<boolean>
  /** Throws an `Error` with a sentence if no user can be changed. */
  require? (context: ServiceContext): void
  /** Whether a user who is gone is done: the run that was interrupted has deleted them. */
  readonly deletes?: boolean
  /** Changes a user. Returns whether there was anything to change. */
  change (context: ServiceContext, user: UserRow): Promise<boolean>
}

/**
 * Changes the users of a file one after the other, each like the command without a file, and stores how far it is, so
 * that a command that was interrupted continues there when it is run again. What was finished begins anew. A line that
 * names nobody, or whose user cannot be changed, is written to another file. Throws an `Error` with a sentence.
 */
export async function changeMany (
  { file, rejected: given }: Values, [user]: readonly string[], shell: Shell, changes: ManyChanges
): Promise<Output> {
  if (user !== undefined) throw new WrongArguments('Only one of USER and --file is possible.')
  const path = shell.resolve(String(file))
  const rejectedPath = shell.resolve(given === undefined ? `${path}.rejected.ndjson` : String(given))
  if (rejectedPath === path) throw new WrongArguments('--rejected must be another file than --file.')
  const { size, hash } = await describeFile(path)
  const task = taskOf(changes.task, hash)
  if (await changes.mayBegin?.() === false) {
    const none = { changed: 0, skipped: 0, rejected: 0, resumed: 0, rejectedFile: null }
    return { text: 'Nobody was changed.', json: { file: path, ...none } }
  }
  const progress = showProgress(shell.messages, changes.label, describeBytes)
  try {
    return await withService(shell, (context) => run(context))
  } finally {
    progress.end()
  }

  async function run (context: ServiceContext): Promise<Output> {
    const { db } = context
    changes.require?.(context)
    const known = await findImport(db, task)
    const stored = known?.finishedAt ? undefined : known
    const rejectedLines = new RejectedLines(rejectedPath, stored?.rejectedBytes ?? 0)
    if (!stored) {
      await rejectedLines.requireAbsent()
      await beginImport(db, task)
    }
    const state = { position: 0, line: 0, imported: 0, counted: 0, rejected: 0, rejectedBytes: 0, ...stored }
    const resumed = state.imported
    let isResumed = stored !== undefined

    async function store (position: number, line: number, isFinished: boolean): Promise<void> {
      await db.transaction().execute(async (trx) => {
        if (!await lockImport(trx, task, state.position)) {
          throw new Error('Another process changes the users of this file.')
        }
        Object.assign(state, { position, line, rejectedBytes: rejectedLines.size })
        await updateImport(trx, task, state, isFinished)
      })
    }

    try {
      for await (const { number, end, bytes } of readLines(path, state, MAX_LINE_BYTES)) {
        const name = bytes?.toString('utf8').trim()
        if (name !== '') {
          const result = await changeOne(context, name, isResumed)
          if (typeof result === 'string') {
            state.rejected++
            await rejectedLines.append([JSON.stringify({ line: number, reason: result, user: name })])
          } else if (result) state.imported++
          else state.counted++
        }
        isResumed = false
        await store(end, number, false)
        progress.update(end, size)
      }
      await store(state.position, state.line, true)
    } finally {
      await rejectedLines.close()
    }
    const { imported: changed, counted: skipped, rejected } = state
    const rejectedFile = rejected > 0 ? rejectedPath : null
    return {
      text: [
        `${count(changed)} ${changes.done}${resumed > 0 ? `, ${resumed} of them by an earlier run` : ''}.`,
        ...skipped > 0 ? [`${count(skipped)} ${changes.skipped ?? 'done before'}.`] : [],
        ...rejectedFile === null ? [] : [`${rejected} line${rejected === 1 ? ' was' : 's were'} rejected, see ${rejectedFile}.`],
      ].join('\n'),
      json: { file: path, changed, skipped, rejected, resumed, rejectedFile },
      isFailure: rejected > 0,
    }
  }

  // Returns whether there was anything to change, or why the line is rejected.
  async function changeOne (
    context: ServiceContext, name: string | undefined, isResumed: boolean
  ): Promise<boolean | string> {
    if (name === undefined) return `The line has more than ${MAX_LINE_BYTES} bytes`
    let user: UserRow
    try {
      user = await findUser(context.db, name)
    } catch (error) {
      if (!(error instanceof UnknownUser)) throw error
      // An earlier run may have deleted the user of the line at which it was interrupted.
      return isResumed && changes.deletes ? true : (error as Error).message
    }
    try {
      return await changes.change(context, user)
    } catch (error) {
      const { statusCode = 500, message } = error as { statusCode?: number, message: string }
      if (statusCode >= 500 || statusCode === 429) throw error
      return message
    }
  }
}

const count = (number: number): string => `${number} user${number === 1 ? ' was' : 's were'}`
