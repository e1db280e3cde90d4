import { DatabaseUnavailable, Overloaded } from '../../schema/http/errors.ts'
import type { Core } from '../core.ts'

// How many tasks may wait for the database, and the time between two attempts.
const TASKS = 10_000
const RETRY_MS = 1000

/**
 * Returns a function that runs a task in the background. While the database is unavailable, the task is repeated every
 * second for about a minute. A task is lost if that is not enough, if the last attempt fails when the app closes, or if
 * 10,000 others are waiting. The log says how many were lost, at most once a second, and logs any other failure of a
 * task.
 */
export function createRetries (
  { lifecycle, options: { deadlines } }: Pick<Core, 'lifecycle' | 'options'>
): (task: () => Promise<void>) => void {
  let [waiting, lost, closed] = [0, 0, false]
  // All waiting tasks share one timer. With one each, ten thousand of them would block the event loop.
  let pause: Promise<void> | undefined
  let endPause = () => {}
  const running = new Set<Promise<void>>()

  function waitForRetry (): Promise<void> {
    pause ??= new Promise((resolve) => {
      const timer = setTimeout(() => endPause(), RETRY_MS).unref()
      endPause = () => {
        clearTimeout(timer)
        pause = undefined
        resolve()
        reportLost()
      }
    })
    return pause
  }

  function reportLost (): void {
    if (lost > 0) {
      lifecycle.log.error(
        { lost, waiting }, 'Background tasks were lost, because the database is unavailable or too many wait for it'
      )
    }
    lost = 0
  }

  lifecycle.addHook('onClose', async () => {
    closed = true
    endPause()
    // The database closes next.
    await Promise.all(running)
    reportLost()
  })

  async function retry (task: () => Promise<void>): Promise<void> {
    const until = performance.now() + deadlines.backgroundTask
    waiting++
    for (;;) {
      const err = await task().then(() => undefined, (error: Error) => error)
      if (!err) break
      if (!(err instanceof DatabaseUnavailable || err instanceof Overloaded)) {
        lifecycle.log.error({ err }, 'A background task failed')
        break
      }
      if (closed || performance.now() > until) {
        lost++
        break
      }
      await waitForRetry()
    }
    waiting--
  }

  return (task) => {
    if (waiting >= TASKS) return void lost++
    const done = retry(task).finally(() => running.delete(done))
    running.add(done)
  }
}
