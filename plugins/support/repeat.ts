import { isConsequence } from '../../db/driver/circuit-breaker.ts'
import type { Lifecycle } from '../core.ts'

interface RepeatOptions {
  /** The average time between two runs. */
  seconds: number
  /** The message of the log if a run fails. */
  failure: string
  /** Further members of that entry. */
  data?: object
}

/**
 * Runs work in the background when the app is ready, and then at random intervals, so that nodes that start together do
 * not all run at the same time. Its timer does not keep the process alive, and it stops when the app closes.
 *
 * Returns a function that starts a run at once.
 *
 * @param work returns whether there is more to do. Then it is called again
 */
export function repeatRegularly (
  lifecycle: Lifecycle, { seconds, failure, data }: RepeatOptions, work: () => Promise<boolean>
): () => void {
  let timer: NodeJS.Timeout | undefined
  let running = Promise.resolve()
  const closing = new AbortController()

  async function run (): Promise<void> {
    clearTimeout(timer)
    try {
      while (!closing.signal.aborted && await work());
    } catch (err) {
      lifecycle.log[isConsequence(err) ? 'debug' : 'warn']({ err, ...data }, failure)
    }
    if (!closing.signal.aborted) timer = setTimeout(start, seconds * 1000 * (0.5 + Math.random())).unref()
  }

  function start (): void {
    running = running.then(run)
  }

  lifecycle.addHook('onReady', async () => start())
  lifecycle.addHook('onClose', async () => {
    closing.abort()
    clearTimeout(timer)
    await running
  })
  return start
}
