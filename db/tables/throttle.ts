import type { Generated } from 'kysely'

/** The used part of a limit, for example of an account or a network. See `db/throttle/throttle.ts`. */
export interface ThrottleTable {
  /** The name of the limit, and the SHA-256 hash of what it is counted for. */
  key: string
  /** The time when the whole limit is available again. After that, the row has no effect. */
  free_at: Date
  /** The number of attempts that the last statement let through; that statement returns it. */
  granted: number
}

/** A recognised network: one that a user has logged in from. See `schema/http/network.ts`. */
export interface RecognisedNetworksTable {
  user_id: string
  network: string
  last_used_at: Generated<Date>
}

/**
 * The number of failed logins in a row. Unlike `throttle`, this table is not `unlogged`: a crash must not give an
 * attacker another hundred attempts.
 */
export interface LoginFailuresTable {
  /** SHA-256 of the e-mail address, which may belong to no user. */
  key: Uint8Array
  count: number
  last_failed_at: Generated<Date>
}
