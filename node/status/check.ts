/** How a part of the service is. What cannot be checked, because something else has failed or is not used, is skipped. */
export type State = 'ok' | 'warning' | 'failed' | 'skipped'

/** The result of a check. */
export interface Check {
  readonly name: string
  readonly state: State
  /** What was found, and what to do about it. */
  readonly detail: string
}

type Result = Omit<Check, 'name'>

export const ok = (detail: string): Result => ({ state: 'ok', detail })
export const warning = (detail: string): Result => ({ state: 'warning', detail })
export const failed = (detail: string): Result => ({ state: 'failed', detail })
export const skipped = (detail: string): Result => ({ state: 'skipped', detail })

/** Runs a check. If it throws or takes longer than `ms`, it has failed. */
export async function check (name: string, run: () => Promise<Result> | Result, ms = 15_000): Promise<Check> {
  const late = Promise.withResolvers<Result>()
  const timer = setTimeout(() => late.resolve(failed(`no answer within ${ms / 1000} seconds`)), ms)
  try {
    return { name, ...await Promise.race([run(), late.promise]) }
  } catch (error) {
    return { name, ...failed((error as Error).message) }
  } finally {
    clearTimeout(timer)
  }
}
