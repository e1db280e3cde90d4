import { hostname } from 'node:os'
import { format } from 'node:util'

// The levels of the log.
const [INFO, WARN, ERROR, FATAL] = [30, 40, 50, 60]
// The listener with which Node prints its warnings.
const NODE_WARNING = 'onWarning'

let base: { pid: number, hostname: string } | undefined

/**
 * Prints lines for people to standard error. Standard output is for the log, and for the results of commands. In a node
 * whose standard error is no terminal, each argument becomes an entry like those of the log.
 */
export function print (...lines: string[]): void {
  write(INFO, lines)
}

/** Prints sentences about what a node should not do, or has not done. */
export function printWarning (...lines: string[]): void {
  write(WARN, lines)
}

/** Prints why a command or a start has failed, in one or more lines. */
export function printFailure (...lines: string[]): void {
  write(FATAL, lines)
}

// With one write, so that a reader never has only some of the lines.
function write (level: number, lines: readonly string[]): void {
  process.stderr.write(
    base ? lines.map((line) => entryOf(level, { msg: line.trim() })).join('') : `${lines.join('\n')}\n`
  )
}

function writeEntry (level: number, entry: { msg: string, err?: object }): void {
  process.stderr.write(entryOf(level, entry))
}

function entryOf (level: number, entry: { msg: string, err?: object }): string {
  return `${JSON.stringify({ level, time: Date.now(), ...base, ...entry })}\n`
}

/**
 * Makes every line that this process writes to standard error an entry like those of the log, unless it is a terminal
 * (contract 14.5): what `print` prints, warnings of Node and its libraries, what these write to the console, and why
 * the process has crashed.
 */
export function printEntries (): void {
  if (process.stderr.isTTY) return
  base = { pid: process.pid, hostname: hostname() }
  const toConsole = (level: number) => (...words: unknown[]) => writeEntry(level, { msg: format(...words) })
  Object.assign(console, {
    debug: toConsole(INFO), log: toConsole(INFO), info: toConsole(INFO), warn: toConsole(WARN), error: toConsole(ERROR),
  })
  // Without this listener, warnings are turned off.
  const listener = process.listeners('warning').find(({ name }) => name === NODE_WARNING)
  if (listener) process.off('warning', listener).on('warning', onWarning)
  process.on('uncaughtException', onCrash)
}

/** Leaves unexpected errors to others, such as those who stop the node in order. */
export function leaveCrashes (): void {
  process.off('uncaughtException', onCrash)
}

function onWarning (warning: Error & { code?: string }): void {
  const { name, message, code, stack } = warning
  const ignored = [...process.execArgv, process.env['NODE_OPTIONS'] ?? ''].join(' ')
    .matchAll(/--disable-warning[= ](\S+)/g)
  if ([...ignored].some(([, what]) => what === name || what === code)) return
  writeEntry(WARN, { msg: message, err: { type: name, message, stack, ...code !== undefined && { code } } })
}

function onCrash (error: unknown): void {
  const { name, message, stack } = error instanceof Error ? error : new Error(format(error))
  writeEntry(FATAL, { msg: 'Unexpected error', err: { type: name, message, stack } })
  process.exit(1)
}

/**
 * Writes the result of a command to standard output. Resolves when it is written, or when nobody reads it any more, as
 * behind `head`. Throws an `Error` with a sentence if it cannot be written. `console.log` would ignore that.
 */
export async function printResult (text: string): Promise<void> {
  const { promise: written, resolve, reject } = Promise.withResolvers<void>()
  // The stream also reports the error as an event, which would end the process.
  process.stdout.once('error', reject)
  process.stdout.write(`${text}\n`, (error) => error ? reject(error) : resolve())
  try {
    await written
  } catch (error) {
    const { code, message } = error as NodeJS.ErrnoException
    if (code === 'EPIPE') return
    throw new Error(`The result could not be written to standard output (${code ?? message}).`, { cause: error })
  }
}

/** Returns text without characters that a terminal would interpret, or that change the direction of what follows. */
export function printable (text: string): string {
  return text.replaceAll(/[\p{Cc}\p{Cf}\u2028\u2029]/gu, '\uFFFD')
}
