/** Prints lines for people to standard error. Standard output is for the log, and for the results of commands. */
export function print (...lines: string[]): void {
  process.stderr.write(`${lines.join('\n')}\n`)
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
