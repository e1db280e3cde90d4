import { Overloaded } from '../../schema/http/errors.ts'
import { settlesWithin } from '../../schema/runtime/in-time.ts'

const MAX_WAITING = 10_000

/** Runs tasks with the same key one after the other, in the order of the calls. */
export interface InTurn {
  /**
   * Runs a task. Rejects with its error, or with `Overloaded` if too many tasks wait, or the task has waited for too
   * long.
   */
  run<Result> (key: string, task: () => Promise<Result>): Promise<Result>
  /** Returns whether a task with this key would wait. */
  isBusy (key: string): boolean
}

/** @param options.timeoutMs how long a task may wait, in milliseconds */
export function createInTurn (
  { timeoutMs, maxWaiting = MAX_WAITING }: { timeoutMs: number, maxWaiting?: number }
): InTurn {
  // The end of the last task of each key.
  const last = new Map<string, Promise<void>>()
  let waiting = 0

  return { run, isBusy: (key) => last.has(key) }

  async function run<Result> (key: string, task: () => Promise<Result>): Promise<Result> {
    const previous = last.get(key)
    if (previous && waiting >= maxWaiting) throw new Overloaded()
    const { promise, resolve } = Promise.withResolvers<void>()
    last.set(key, promise)
    const end = () => {
      resolve()
      if (last.get(key) === promise) last.delete(key)
    }
    if (previous && !await isOver(previous)) {
      // The next task must not overtake the previous one.
      void previous.then(end)
      throw new Overloaded()
    }
    try {
      return await task()
    } finally {
      end()
    }
  }

  // Waits for the end of a task. Returns false if that takes too long.
  async function isOver (task: Promise<void>): Promise<boolean> {
    waiting++
    const hasEnded = await settlesWithin(task, timeoutMs, { ref: true })
    waiting--
    return hasEnded
  }
}
