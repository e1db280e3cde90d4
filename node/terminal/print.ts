import { hostname } from 'node:os'
import type { Writable } from 'node:stream'
import { format } from 'node:util'

// The levels of the log.
const [INFO, WARN, ERROR, FATAL] = [30, 40, 50, 60]
// The listener with which Node prints its warnings.
const NODE_WARNING = 'onWarning'

/** A stream of output, which may be a terminal. */
export type Output = Writable & { readonly isTTY?: boolean }

/**
 * Prints lines for people to standard error. Standard output is for the log, and for the results of commands. In a node
 * whose standard error is no terminal, each argument of a method becomes an entry like those of the log.
 */
export class Messages {
  readonly #output: Output
  #base: { pid: number, hostname: string } | undefined

  /** @param output standard error */
  constructor (output: Output) {
    this.#output = output
  }

  /** Whether people read the messages as they come. */
  get isOnTerminal (): boolean {
    return this.#output.isTTY === true
  }

  print (...lines: string[]): void {
    this.#write(INFO, lines)
  }

  /** Prints sentences about what a node should not do, or has not done. */
  printWarning (...lines: string[]): void {
    this.#write(WARN, lines)
  }

  /** Prints why a command or a start has failed, in one or more lines. */
  printFailure (...lines: string[]): void {
    this.#write(FATAL, lines)
  }

  /** Replaces the last line of a terminal. */
  printLine (line: string): void {
    this.#output.write(`\r\u001B[2K${line}`)
  }

  /** Makes every message an entry like those of the log, unless standard error is a terminal (contract 14.5). */
  becomeEntries (): void {
    if (!this.isOnTerminal) this.#base = { pid: process.pid, hostname: hostname() }
  }

  /**
   * Also prints what else a process writes to standard error, as entries if messages are: warnings of Node and its
   * libraries, what these write to the console, and why the process has crashed.
   */
  takeOver (process: NodeJS.Process): void {
    if (!this.#base) return
    const toConsole = (level: number) => (...words: unknown[]) => this.#writeEntry(level, { msg: format(...words) })
    Object.assign(console, {
      debug: toConsole(INFO),
      log: toConsole(INFO),
      info: toConsole(INFO),
      warn: toConsole(WARN),
      error: toConsole(ERROR),
    })
    // Without this listener, warnings are turned off.
    const listener = process.listeners('warning').find(({ name }) => name === NODE_WARNING)
    if (listener) process.off('warning', listener).on('warning', this.#onWarning)
    process.on('uncaughtException', this.#onCrash)
  }

  /** Leaves unexpected errors to others, such as those who stop the node in order. */
  leaveCrashes (): void {
    process.off('uncaughtException', this.#onCrash)
  }

  // With one write, so that a reader never has only some of the lines.
  #write (level: number, lines: readonly string[]): void {
    this.#output.write(
      this.#base ? lines.map((line) => this.#entryOf(level, { msg: line.trim() })).join('') : `${lines.join('\n')}\n`
    )
  }

  #writeEntry (level: number, entry: { msg: string, err?: object }): void {
    this.#output.write(this.#entryOf(level, entry))
  }

  #entryOf (level: number, entry: { msg: string, err?: object }): string {
    return `${JSON.stringify({ level, time: Date.now(), ...this.#base, ...entry })}\n`
  }

  readonly #onWarning = (warning: Error & { code?: string }): void => {
    const { name, message, code, stack } = warning
    const ignored = [...process.execArgv, process.env['NODE_OPTIONS'] ?? ''].join(' ')
      .matchAll(/--disable-warning[= ](\S+)/g)
    if ([...ignored].some(([, what]) => what === name || what === code)) return
    this.#writeEntry(WARN, { msg: message, err: { type: name, message, stack, ...code !== undefined && { code } } })
  }

  readonly #onCrash = (error: unknown): void => {
    const { name, message, stack } = error instanceof Error ? error : new Error(format(error))
    this.#writeEntry(FATAL, { msg: 'Unexpected error', err: { type: name, message, stack } })
    process.exit(1)
  }
}

/**
 * Writes the result of a command to standard output. Resolves when it is written, or when nobody reads it any more, as
 * behind `head`. Throws an `Error` with a sentence if it cannot be written. `console.log` would ignore that.
 */
export async function printResult (output: Output, text: string): Promise<void> {
  const { promise: written, resolve, reject } = Promise.withResolvers<void>()
  // The stream also reports the error as an event, which would end the process.
  output.once('error', reject)
  output.write(`${text}\n`, (error) => error ? reject(error) : resolve())
  try {
    await written
    output.off('error', reject)
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
