import { DatabaseUnavailable } from '../schema/errors.ts'

/**
 * What every statement passes. While the database is away it refuses at once, and when the database goes away
 * it fails those that wait for an answer: postgres.js gives a queued statement no deadline, and a half-open
 * connection would hang for ever (contract 1.10). `db/notifications.ts` opens and shuts it.
 */
export interface Gate {
  readonly open: boolean
  set (open: boolean): void
  /** Runs a statement. `late` gets its result where that arrives after the gate was shut. */
  pass<Result> (run: () => PromiseLike<Result>, late?: (result: Result) => void): Promise<Result>
}

export function createGate (): Gate {
  const waiting = new Set<(error: Error) => void>()
  let open = true

  return {
    get open () { return open },

    set (next) {
      open = next
      if (open) return
      for (const reject of waiting) reject(new DatabaseUnavailable())
      waiting.clear()
    },

    pass (run, late) {
      if (!open) return Promise.reject(new DatabaseUnavailable())
      return new Promise((resolve, reject) => {
        waiting.add(reject)
        run().then((result) => {
          if (waiting.delete(reject)) resolve(result)
          else late?.(result)
        }, (error) => {
          waiting.delete(reject)
          reject(isOutage(error) || overloads.has(error.code) ? new DatabaseUnavailable({ cause: error }) : error)
        })
      })
    },
  }
}

/** Whether an error says that the database cannot be reached or is going away, rather than what it answered. */
export function isOutage (error: { code?: string }): boolean {
  return outages.has(error.code ?? '')
}

const outages = new Set([
  // postgres.js
  'CONNECTION_CLOSED', 'CONNECTION_DESTROYED', 'CONNECTION_ENDED', 'CONNECT_TIMEOUT',
  // the network
  'ECONNREFUSED', 'ECONNRESET', 'EHOSTUNREACH', 'ENETUNREACH', 'ENOENT', 'ENOTFOUND', 'EPIPE', 'ETIMEDOUT', 'EAI_AGAIN',
  // PostgreSQL: shutting down, crashed, starting up
  '57P01', '57P02', '57P03',
])

// PostgreSQL is there but has no room: out of connections, a statement cancelled by its timeout.
const overloads = new Set(['53300', '57014'])
