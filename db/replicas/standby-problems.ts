/** Which database a server has. */
export interface Identity {
  /** The identifier of the cluster, which its standbys and copies share. */
  readonly system: string
  readonly database: string
}

/** What a server says about the primary that it follows. */
export interface Following {
  /** Whether it is a standby. */
  readonly standby: boolean
  /** The status of its WAL receiver; null if there is none, and `hidden` if the user of the database may not see it. */
  readonly receiver: string | null
  /** What that has received last; null as `receiver`, or if it may not be seen. */
  readonly timeline: number | null
}

/** The columns of `Following`, from `FOLLOWING_FROM`. Only a member of pg_read_all_stats sees the last two. */
export const FOLLOWING = `pg_is_in_recovery() as standby,
  case when receiver.pid is not null then coalesce(receiver.status, 'hidden') end as receiver,
  receiver.received_tli as timeline`

/** Reads the WAL receiver once, so that its status and its timeline belong together. */
export const FOLLOWING_FROM = '(select) as one left join pg_stat_wal_receiver as receiver on true'

// What is wrong begins in lower case, because `status` puts it behind a colon.

/** What is wrong with a primary. */
export const IS_PRIMARY = 'it is a primary, not a standby'

/** Returns what is wrong with a server that has another database than the primary, or undefined. */
export function findForeign ({ system, database }: Identity, primary: Identity): string | undefined {
  if (system !== primary.system) return 'it belongs to another cluster (another system identifier)'
  if (database === primary.database) return undefined
  return `its URL names the database "${database}", and the primary has "${primary.database}"`
}

/**
 * Returns why a server does not get what is written to the primary, or undefined if it does.
 * @param expected the timeline of the primary
 */
export function findDetached ({ standby, receiver, timeline }: Following, expected: number): string | undefined {
  if (!standby) return IS_PRIMARY
  if (receiver === null) return 'it is not connected to the primary (it has no WAL receiver)'
  if (receiver === 'hidden') return 'its timeline cannot be read: grant pg_read_all_stats to the database user'
  if (receiver !== 'streaming') return `it does not stream from the primary (the state of its WAL receiver is ${receiver})`
  return timeline === expected ? undefined : `it has timeline ${timeline}, and the primary has timeline ${expected}`
}
