import { DatabaseUnavailable, Overloaded } from '../../schema/http/errors.ts'
import type { Failure } from './sockets.ts'

/**
 * The code of postgres.js for a BEGIN on a shared connection, which is then inside an open transaction
 * (porsager/postgres#823).
 */
export const UNSAFE_TRANSACTION = 'UNSAFE_TRANSACTION'

/**
 * The circuit breaker that every statement passes. While it is closed, statements pass. When it opens, all statements
 * that wait for an answer fail, and new ones fail at once (contract 1.10): postgres.js gives queued statements no
 * deadline, and a statement on a half-open connection would hang forever. The heartbeat opens and closes it
 * (`db/driver/outages.ts`).
 */
export interface CircuitBreaker {
  readonly closed: boolean
  /** The number of statements that wait for an answer. */
  readonly waiting: number
  /** How often it has opened. */
  readonly outages: number
  /** The number of results so far. If it grows, the database is answering statements. */
  readonly answers: number
  /** Closes the circuit breaker, or opens it and fails every waiting statement with `DatabaseUnavailable`. */
  setClosed (closed: boolean): void
  /** Lets no further statements pass, for ever. Those that wait for an answer can still get it. */
  stop (): void
  readonly stopped: boolean
  /** The milliseconds for which the oldest waiting statement has waited; 0 if none waits. */
  readonly longestWait: number
  /** Fails the statements that have waited for longer than `milliseconds`. Returns whether there were any. */
  expire (milliseconds: number): boolean
  /**
   * Runs a statement and resolves with its result. Rejects with PostgreSQL's error, with `Overloaded` if too many
   * statements wait, or with `DatabaseUnavailable`. That has a cause unless the circuit breaker was open, and then the
   * statement may have been sent. `isUndecided` tells whether it may still take effect.
   *
   * @param on.late receives a result that arrives after the statement has failed
   * @param on.lost is called at once if the failure also means that the connection is lost
   */
  run<Result> (
    run: () => PromiseLike<Result>, on?: { late?: (result: Result) => void, lost?: (failure: Failure) => void }
  ): Promise<Result>
}

// PostgreSQL answers this many reads in a fraction of a second. With more of them, statements would only wait for
// longer.
const MAX_WAITING = 10_000

export interface CircuitBreakerOptions {
  /** The number of statements that may wait for an answer. */
  maxWaiting?: number
  /** Called with the seconds that each answered statement has taken. */
  onAnswer?: ((seconds: number) => void) | undefined
}

/** Creates a closed circuit breaker. */
export function createCircuitBreaker (
  { maxWaiting = MAX_WAITING, onAnswer }: CircuitBreakerOptions = {}
): CircuitBreaker {
  // From each statement's reject function to the time of its start, oldest first.
  const waiting = new Map<(error: Error) => void, number>()
  let [closed, stopped] = [true, false]
  let [answers, outages] = [0, 0]

  function fail (reject: (error: Error) => void): void {
    waiting.delete(reject)
    const cause = Object.assign(new Error('The database did not answer in time'), { code: 'ETIMEDOUT' })
    reject(new DatabaseUnavailable({ cause }))
  }

  return {
    get closed () { return closed },
    get stopped () { return stopped },
    get answers () { return answers },
    get waiting () { return waiting.size },
    get outages () { return outages },

    get longestWait () {
      const [oldest] = waiting.values()
      return oldest === undefined ? 0 : performance.now() - oldest
    },

    setClosed (next) {
      if (closed && !next) outages++
      closed = next
      if (!closed) for (const reject of waiting.keys()) fail(reject)
    },

    stop () { stopped = true },

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
      if (!closed || stopped) return Promise.reject(new DatabaseUnavailable())
      if (waiting.size >= maxWaiting) return Promise.reject(new Overloaded())
      return new Promise((resolve, reject) => {
        const since = performance.now()
        run().then((result) => {
          answers++
          onAnswer?.((performance.now() - since) / 1000)
          if (waiting.delete(reject)) resolve(result)
          else late?.(result)
        }, (error) => {
          waiting.delete(reject)
          if (isLoss(error) || error.code === UNSAFE_TRANSACTION) lost?.(error)
          reject(isOutage(error) || isOverload(error) ? new DatabaseUnavailable({ cause: error }) : error)
        })
        waiting.set(reject, since)
      })
    },
  }
}

/**
 * Returns whether a failed statement may still take effect, because it may have been sent and its outcome is unknown.
 */
export function isUndecided (error: unknown): boolean {
  return error instanceof DatabaseUnavailable && error.cause !== undefined &&
    (error.cause as Failure).code !== 'ECONNREFUSED'
}

/**
 * Returns whether an error means that the database is unreachable or shutting down, rather than that it rejected a
 * statement.
 */
export function isOutage (error: Failure): boolean {
  return outages.has(error.code ?? '') && !isRaised(error) && !isOfFile(error)
}

/**
 * Returns whether an error means that the connection is lost. PostgreSQL closes it after an error of the severity
 * FATAL.
 */
export function isLoss (error: Failure & { severity?: string }): boolean {
  return isOutage(error) || error.severity === 'FATAL'
}

/** Returns whether a failure is a consequence of an outage, which the log reports once (`db/driver/outages.ts`). */
export function isConsequence (error: unknown): boolean {
  return error instanceof DatabaseUnavailable && refusalOf(error) === undefined
}

/**
 * Returns why PostgreSQL could not run a statement at the moment, or undefined if an error has another cause, such as
 * an outage.
 */
export function refusalOf (error: unknown): Failure | undefined {
  if (!(error instanceof DatabaseUnavailable)) return undefined
  const cause = error.cause as Failure | undefined
  return cause?.code === undefined || isOutage(cause) ? undefined : cause
}

// PostgreSQL is available, but could not run this statement at the moment. The client may try again.
function isOverload (error: Failure): boolean {
  const { code = '' } = error
  return (overloads.has(code) || /^(08|28|53)...$/.test(code)) && !isRaised(error)
}

// Returns whether a file or folder cannot be read, for which Node.js has codes of sockets. Errors of sockets have an
// `address`, no `path`.
const isOfFile = (error: Failure): boolean => 'path' in error

// Returns whether a statement, such as a trigger of the host, has raised an error that PostgreSQL and poolers only
// report about the connection, with the severity FATAL.
function isRaised ({ code = '', severity, severity_local: local }: Failure): boolean {
  return (severity ?? local) === 'ERROR' && (code.startsWith('28') || connectionErrors.has(code))
}

const connectionErrors = new Set(['57P01', '57P02', '57P03', '57P05', '25P03', '3D000'])

const outages = new Set([
  // postgres.js
  'CONNECTION_CLOSED', 'CONNECTION_DESTROYED', 'CONNECTION_ENDED', 'CONNECT_TIMEOUT',
  // errors of the network and of DNS
  'EAI_AGAIN', 'EADDRNOTAVAIL', 'ECONNABORTED', 'ECONNREFUSED', 'ECONNRESET', 'EHOSTDOWN', 'EHOSTUNREACH',
  'EMFILE', 'ENFILE', 'ENOBUFS', 'ENOMEM',
  'ENETDOWN', 'ENETUNREACH', 'ENOENT', 'ENOTFOUND', 'EPIPE', 'ETIMEDOUT',
  // errors of a Unix socket: a folder that is closed to this user, a server with too many connections that wait
  'EACCES', 'EAGAIN',
  // db/driver/require-scram.ts and postgres.js: another server has taken the place of the database
  'SCRAM_REQUIRED', 'SASL_SIGNATURE_MISMATCH',
  // db/driver/sockets.ts: none of several hosts accepts writes, for example during a failover
  'READ_ONLY',
  // PostgreSQL: shutting down, crashed, starting up
  '57P01', '57P02', '57P03',
])

// In addition to the classes for connections (08), logins (28) and resources (53): a statement cancelled by its timeout
// or by an administrator, a session or transaction that was idle for too long, a deadlock, a serialization failure, a
// lock that is not available, a standby that has not taken over yet, a database that does not exist.
const overloads = new Set(['57014', '57P05', '25P03', '40P01', '40001', '55P03', '25006', '3D000'])
