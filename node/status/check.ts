import { inTime } from '../../schema/runtime/in-time.ts'

/**
 * How a part of the service is. What cannot be checked, because something else has failed or is not used, is skipped.
 */
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

/** Runs a check. If it throws or takes longer than `timeoutMs`, it has failed. */
export async function check (name: string, run: () => Promise<Result> | Result, timeoutMs = 15_000): Promise<Check> {
  const isLate = () => new Error(`no answer within ${timeoutMs / 1000} seconds`)
  try {
    return { name, ...await inTime((async () => run())(), timeoutMs, isLate, { ref: true }) }
  } catch (error) {
    return { name, ...failed((error as Error).message) }
  }
}
