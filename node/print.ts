/** Says something to whoever sits at the terminal: standard output is the log's, or a program's. */
export function print (...lines: string[]): void {
  process.stderr.write(`${lines.join('\n')}\n`)
}
