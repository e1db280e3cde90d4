import type { Messages } from './print.ts'

const TERMINAL_MS = 100
const LOG_MS = 5_000

/** Shows how far a long operation is. */
export interface Progress {
  /** Sets how much is done, of how much if that is known. Both are in the unit of the operation. */
  update (done: number, total?: number): void
  /** Ends the display. */
  end (): void
}

/**
 * Shows the progress of an operation on standard error (contract 14.5): as one line that changes on a terminal, and as
 * a line every five seconds elsewhere.
 *
 * @param label what is being done, such as `Backing up`
 * @param describe formats an amount, such as a number of bytes
 */
export function showProgress (
  messages: Messages, label: string, describe: (amount: number) => string = String
): Progress {
  const { isOnTerminal } = messages
  let shownAt = performance.now() - (isOnTerminal ? TERMINAL_MS : 0)
  let isShown = false
  return {
    update (done, total) {
      if (performance.now() - shownAt < (isOnTerminal ? TERMINAL_MS : LOG_MS)) return
      shownAt = performance.now()
      const line = total
        ? `${label}: ${describe(done)} of ${describe(total)} (${Math.floor(100 * done / total)} %)`
        : `${label}: ${describe(done)}`
      isShown = true
      if (isOnTerminal) messages.printLine(line)
      else messages.print(line)
    },
    end () {
      if (isShown && isOnTerminal) messages.printLine('')
      isShown = false
    },
  }
}
