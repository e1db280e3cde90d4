import { once } from 'node:events'
import { createInterface } from 'node:readline/promises'
import type { Shell } from '../terminal/shell.ts'

/**
 * Asks for confirmation of a step at the terminal. Returns whether the answer is yes. Throws an `Error` with a
 * sentence if the input is not a terminal.
 * @param reason why it asks
 */
export async function confirm (
  { stdin: input, stderr: output }: Pick<Shell, 'stdin' | 'stderr'>, question: string,
  reason = 'This cannot be undone'
): Promise<boolean> {
  if (!input.isTTY) throw new Error(`${reason}, and there is no terminal to confirm it: repeat the command with --yes.`)
  const prompt = createInterface({ input, output })
  // When the input ends, `question` either stays pending or rejects, depending on the version of Node.
  const closed = once(prompt, 'close').then(() => 'no')
  const answer = prompt.question(`${question} [y/N] `)
  answer.catch(() => {})
  try {
    return /^y(es)?$/i.test((await Promise.race([answer, closed])).trim())
  } finally {
    prompt.close()
  }
}
