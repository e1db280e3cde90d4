import type { Data } from '../data.ts'

// The primary sets this variable for its workers. It is no setting.
const VARIABLE = 'USHER_WORKER'

/** What a worker gets from the primary. */
export interface Handover {
  /** The embedded PostgreSQL, which the primary owns. Absent if the settings name another one. */
  readonly data?: Omit<Data, 'stop'>
  /** The port to listen on, which all workers share. */
  readonly port: number
  readonly poolSize: number
  readonly workers: number
  /** Whether this worker prints what the node prints only once, such as its address. */
  readonly announces: boolean
}

/** Returns the variables that hand something over to a worker. */
export function environmentOf (handover: Handover): Record<string, string> {
  return { [VARIABLE]: JSON.stringify(handover) }
}

/** Returns whether this process is a worker of a node. Programs such as PM2 run a whole node as a worker of theirs. */
export function isWorker (): boolean {
  return VARIABLE in process.env
}

/**
 * Returns what the primary has handed over, or undefined in a node of a single process. Its children do not inherit it.
 */
export function takeHandover (): Handover | undefined {
  const text = process.env[VARIABLE]
  delete process.env[VARIABLE]
  return text === undefined ? undefined : JSON.parse(text)
}
