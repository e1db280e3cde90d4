/** Settings of a timer. */
interface TimerOptions {
  /** Whether the timer keeps the process alive. */
  ref?: boolean
}

const LATE = Symbol('late')

/**
 * Returns the result of some work, or throws an error if it takes longer than `timeoutMs`. The work goes on
 * nevertheless, and what becomes of it then is ignored. The timer does not keep the process alive, unless `ref` says
 * so.
 * @param lateError creates the error. It may abort the work: how the work then ends changes nothing
 */
export async function inTime<Result> (
  work: Promise<Result>, timeoutMs: number, lateError: () => Error, { ref = false }: TimerOptions = {}
): Promise<Result> {
  const { promise: late, resolve } = Promise.withResolvers<typeof LATE>()
  const timer = setTimeout(resolve, timeoutMs, LATE)
  if (!ref) timer.unref()
  try {
    const result = await Promise.race([work, late])
    if (result === LATE) throw lateError()
    return result
  } finally {
    clearTimeout(timer)
  }
}

/**
 * Waits until some work has succeeded or failed. Returns false if that takes longer than `timeoutMs`. Never rejects.
 */
export function settlesWithin (work: Promise<unknown>, timeoutMs: number, options?: TimerOptions): Promise<boolean> {
  const settled = () => true
  return inTime(work.then(settled, settled), timeoutMs, () => new Error('late'), options).catch(() => false)
}
