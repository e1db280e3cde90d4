/**
 * Returns the result of some work, or throws an error if it takes longer than `timeoutMs`. The work goes on nevertheless, and what becomes
 * of it then is ignored. The timer does not keep the process alive.
 * @param lateError creates the error
 */
export async function inTime<Result> (work: Promise<Result>, timeoutMs: number, lateError: () => Error): Promise<Result> {
  const { promise: late, reject } = Promise.withResolvers<never>()
  const timer = setTimeout(() => reject(lateError()), timeoutMs).unref()
  try {
    return await Promise.race([work, late])
  } finally {
    clearTimeout(timer)
  }
}
