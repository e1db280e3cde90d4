import type { Messages } from './print.ts'

/** Shows the password of the first admin, which exists nowhere else. */
export interface FirstAdminNotice {
  /** Keeps the credentials until `show`, so that they are the last that a start prints. */
  keep (credentials: { email: string, password: string }): void
  /** Prints them, if there are any: in a box on a terminal. */
  show (): void
}

/** Creates the notice of a start. If the process ends before `show`, it prints the credentials then. */
export function createFirstAdminNotice (messages: Messages): FirstAdminNotice {
  let line: string | undefined
  return {
    keep ({ email, password }) {
      line = `The first admin is ${email}, password ${password} (not shown again)`
      process.once('exit', show)
    },
    show,
  }

  function show (): void {
    if (line !== undefined) messages.print(messages.isOnTerminal ? boxed(line) : line)
    line = undefined
    process.off('exit', show)
  }
}

function boxed (line: string): string {
  const edge = '─'.repeat(line.length + 4)
  return `┌${edge}┐\n│  ${line}  │\n└${edge}┘`
}
