/** Prints lines for people to standard error. Standard output is for the log, and for the results of commands. */
export function print (...lines: string[]): void {
  process.stderr.write(`${lines.join('\n')}\n`)
}
