import type { Log } from './outages.ts'

const WARN_MS = 5000

/**
 * The clock of the database. All nodes issue and check tokens by it, so the clocks of the nodes' machines may differ.
 */
export interface Clock {
  /**
   * Returns milliseconds since 1970. Before the first adjustment, it continues from the machine's time at the process
   * start.
   */
  now (): number
  /**
   * Returns what `now` returns, but never less than before: if the database's clock was set back, it runs at half speed
   * until that has caught up, so nodes that had the same time before still have the same one. Throws before the first
   * adjustment.
   */
  rising (): number
  /** The largest error of `now`, in milliseconds: the round-trip time of the latest measurement. */
  readonly uncertainty: number
}

export interface AdjustableClock extends Clock {
  /**
   * Adjusts the clock to a measured time of the database.
   * @param time milliseconds since 1970, read by the database between `sent` and `received`
   * @param sent the time when the statement was sent (`performance.now()`)
   * @param received the time when its answer was received (`performance.now()`)
   */
  adjust (time: number, sent: number, received: number): void
}

/**
 * Creates a clock that is monotonic between two adjustments, so that setting the machine's clock does not affect it.
 */
export function createClock (log: Log): AdjustableClock {
  let offset = performance.timeOrigin
  let [isOff, uncertainty] = [false, 0]
  // By how much `rising` was ahead of `now`, and when. Undefined before the first adjustment.
  let lead: { ms: number, since: number } | undefined

  const leadAt = (at: number, { ms, since }: NonNullable<typeof lead>) => Math.max(0, ms - (at - since) / 2)

  function warn (): void {
    const difference = Math.round((Date.now() - performance.now() - offset) / 1000)
    const wasOff = isOff
    isOff = Math.abs(difference) * 1000 >= WARN_MS
    if (isOff && !wasOff) {
      log.warn({ difference }, 'The clock of this machine differs from the database clock, which is used instead')
    }
  }

  return {
    now: () => performance.now() + offset,

    rising () {
      if (!lead) throw new Error('The clock of the database is not known yet')
      const at = performance.now()
      return at + offset + leadAt(at, lead)
    },

    get uncertainty () { return uncertainty },

    adjust (time, sent, received) {
      const [min, max] = [time - received, time - sent]
      const at = performance.now()
      const former = lead && offset + leadAt(at, lead)
      uncertainty = received - sent
      // Keep an offset that is consistent with this answer, because the measurement is only as precise as the answer is
      // fast.
      if (offset < min || offset > max) offset = (min + max) / 2
      lead = { ms: Math.max(0, (former ?? offset) - offset), since: at }
      warn()
    },
  }
}
