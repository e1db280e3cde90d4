import { DatabaseUnavailable, Overloaded } from '../../schema/errors.ts'
import { UNSAFE_TRANSACTION } from './pool.ts'
import type { Failure } from './sockets.ts'

/**
 * What every statement passes. While the database is away it refuses at once, and when the database goes away
 * it fails those that wait for an answer: postgres.js gives a queued statement no deadline, and a half-open
 * connection would hang for ever (contract 1.10). `db/driver/notifications.ts` opens and shuts it.
 */
export interface CircuitBreaker {
  readonly closed: boolean
  /** How many answers have come: one that grows says that the database is there. */
  readonly answers: number
  setClosed (open: boolean): void
  /** How many milliseconds the oldest of the waiting statements has waited; 0 if none waits. */
  readonly longestWait: number
  /** Fails what has waited longer than that, and tells whether there was any. */
  expire (milliseconds: number): boolean
  /**
   * Runs a statement. `late` gets its result if that arrives after the statement was given up, and `lost` is called at
   * once for a failure that took the connection along. Throws the database's refusal, `Overloaded` if too many statements
   * wait, or `DatabaseUnavailable`: with a cause if the statement was sent and may yet take effect, without one otherwise.
   */
  run<Result> (run: () => PromiseLike<Result>, on?: { late?: (result: Result) => void, lost?: (failure: Failure) => void }): Promise<Result>
}

// More would only wait: PostgreSQL answers this many reads in a fraction of a second.
const WAITING = 10_000

export function createCircuitBreaker ({ room = WAITING } = {}): CircuitBreaker {
  // In the order of their coming.
  const waiting = new Map<(error: Error) => void, number>()
  let open = true
  let answers = 0

  function fail (reject: (error: Error) => void): void {
    waiting.delete(reject)
    reject(new DatabaseUnavailable({ cause: new Error('The database has not answered') }))
  }

  return {
    get closed () { return open },
    get answers () { return answers },

    get longestWait () {
      const [oldest] = waiting.values()
      return oldest === undefined ? 0 : performance.now() - oldest
    },

    setClosed (next) {
      open = next
      if (!open) for (const reject of waiting.keys()) fail(reject)
    },

    expire (milliseconds) {
      const before = performance.now() - milliseconds
      const { size } = waiting
      for (const [reject, since] of waiting) {
        if (since > before) break
        fail(reject)
      }
      return waiting.size < size
    },

    run (run, { late, lost } = {}) {
      if (!open) return Promise.reject(new DatabaseUnavailable())
      if (waiting.size >= room) return Promise.reject(new Overloaded())
      return new Promise((resolve, reject) => {
        run().then((result) => {
          answers++
          if (waiting.delete(reject)) resolve(result)
          else late?.(result)
        }, (error) => {
          waiting.delete(reject)
          const away = isOutage(error)
          // What PostgreSQL calls fatal it says before it hangs up.
          if (away || error.severity === 'FATAL' || error.code === UNSAFE_TRANSACTION) lost?.(error)
          reject(away || isOverload(error) ? new DatabaseUnavailable({ cause: error }) : error)
        })
        waiting.set(reject, performance.now())
      })
    },
  }
}

/** Whether a statement that failed may yet take effect: it was sent, and no answer came. */
export function isUndecided (error: unknown): boolean {
  return error instanceof DatabaseUnavailable && error.cause !== undefined && (error.cause as Failure).code !== 'ECONNREFUSED'
}

/** Whether an error says that the database cannot be reached or is going away, rather than what it answered. */
export function isOutage (error: Failure): boolean {
  return outages.has(error.code ?? '')
}

// PostgreSQL is there, but has no room or no time for this statement now: it may be sent again.
function isOverload ({ code = '' }: Failure): boolean {
  return overloads.has(code) || /^(08|28|53)...$/.test(code)
}

const outages = new Set([
  // postgres.js
  'CONNECTION_CLOSED', 'CONNECTION_DESTROYED', 'CONNECTION_ENDED', 'CONNECT_TIMEOUT',
  // the network
  'EAI_AGAIN', 'EADDRNOTAVAIL', 'ECONNABORTED', 'ECONNREFUSED', 'ECONNRESET', 'EHOSTDOWN', 'EHOSTUNREACH', 'EMFILE',
  'ENETDOWN', 'ENETUNREACH', 'ENOENT', 'ENOTFOUND', 'EPIPE', 'ETIMEDOUT',
  // db/driver/sockets.ts: none of several hosts takes writes, as while one fails over to another
  'READ_ONLY',
  // PostgreSQL: shutting down, crashed, starting up
  '57P01', '57P02', '57P03',
])

// Besides the classes of connections, logins and resources: cancelled by its timeout or by hand, idle for too
// long, a deadlock, a failed serialization, a lock not to be had, a standby that has not taken over yet.
const overloads = new Set(['57014', '57P05', '25P03', '40P01', '40001', '55P03', '25006', '3D000'])
