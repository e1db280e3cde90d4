/** Which database a server has. */
export interface Identity {
  /** The identifier of the cluster, which its standbys and copies share. */
  readonly system: string
  readonly database: string
}

// Sentences begin in lower case, because `status` puts them behind a colon.

export const IS_PRIMARY = 'it is a primary, not a standby'

/** Returns what is wrong with a server that has another database than the primary, or undefined. */
export function findForeign ({ system, database }: Identity, primary: Identity): string | undefined {
  if (system !== primary.system) return 'it belongs to another cluster (another system identifier)'
  if (database === primary.database) return undefined
  return `its URL names the database "${database}", and the primary has "${primary.database}"`
}

/**
 * Returns what is wrong with the WAL receiver of a standby, or undefined.
 * @param receiver its status; null if there is none, and `hidden` if the user of the database may not see it
 */
export function findReceiverProblem (receiver: string | null): string | undefined {
  if (receiver === null) return 'it is not connected to the primary (it has no WAL receiver)'
  return receiver === 'hidden' ? 'its timeline cannot be read: grant pg_read_all_stats to the database user' : undefined
}
