import { resolve } from 'node:path'
import type { Readable } from 'node:stream'
import { Messages, type Output } from './print.ts'

/** A stream of input, which may be a terminal. */
export type Input = Readable & { readonly isTTY?: boolean }

/** The arguments, streams and environment with which a command runs. */
export interface Invocation {
  /** The words after the name of the program. */
  readonly args: readonly string[]
  /** The environment. Variables of `.env` are added to it. */
  readonly env: NodeJS.ProcessEnv
  /** The working directory, from which relative paths start. */
  readonly cwd: string
  readonly stdin: Input
  readonly stdout: Output
  readonly stderr: Output
  /**
   * The process, if running this command is its only purpose. Its signals then end the command in order, and only such
   * a process can become a node.
   */
  readonly process?: NodeJS.Process
}

/** The surroundings of a command while it runs: those of its process, or of a test. It uses no others. */
export class Shell {
  readonly env: NodeJS.ProcessEnv
  readonly cwd: string
  readonly stdout: Output
  readonly stderr: Output
  readonly process: NodeJS.Process | undefined
  /** What the command says on standard error. */
  readonly messages: Messages
  /** Resolves with the exit code when a signal has ended the command. */
  readonly interruption: Promise<number>
  readonly #invocation: Omit<Invocation, 'args'>
  readonly #interrupt: (code: number) => void
  #isInterrupted = false

  constructor (invocation: Omit<Invocation, 'args'>) {
    this.env = invocation.env
    this.cwd = invocation.cwd
    this.stdout = invocation.stdout
    this.stderr = invocation.stderr
    this.process = invocation.process
    this.messages = new Messages(invocation.stderr)
    this.#invocation = invocation
    const { promise, resolve } = Promise.withResolvers<number>()
    this.interruption = promise
    this.#interrupt = resolve
  }

  // The process opens its standard input when it is read for the first time.
  get stdin (): Input {
    return this.#invocation.stdin
  }

  /** Whether a signal ends the command. Its failures are then not worth a message. */
  get isInterrupted (): boolean {
    return this.#isInterrupted
  }

  /**
   * Records that a signal ends the command.
   * @param ended resolves with the exit code when everything that must not outlive the command has stopped
   */
  interrupt (ended: Promise<number>): void {
    this.#isInterrupted = true
    void ended.then(this.#interrupt)
  }

  /** Returns the absolute path of a file that is named on the command line. */
  resolve (path: string): string {
    return resolve(this.cwd, path)
  }
}
