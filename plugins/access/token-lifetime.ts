/**
 * How much the clocks of a database server and of the standby that takes over may differ. Nodes use the database's
 * clock.
 */
export const CLOCK_SKEW_SECONDS = 60

/**
 * Returns for how many seconds after it was signed a token may be accepted. This is more than `accessTokenSeconds`,
 * because a token lives a little longer after a failover to a server whose clock is behind.
 */
export function longestLifeOf ({ accessTokenSeconds }: { accessTokenSeconds: number }): number {
  return accessTokenSeconds + CLOCK_SKEW_SECONDS
}
