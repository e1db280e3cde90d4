import type { Log } from './outages.ts'

const WARN_MS = 5000

/** The database's clock, by which tokens are issued and checked on every node, whatever the clocks of the nodes say. */
export interface Clock {
  /** Returns milliseconds since 1970. Until the database has told its time, they are those of this machine at its start. */
  now (): number
  /** The largest error of `now`, in milliseconds: the time that the latest adjustment took. */
  readonly uncertainty: number
}

export interface AdjustableClock extends Clock {
  /**
   * Takes the time of the database into account.
   * @param time milliseconds since 1970, read at some moment between `sent` and `received`, which are of `performance.now()`
   */
  adjust (time: number, sent: number, received: number): void
}

/** Returns a clock that continues monotonically between two adjustments, so that setting the machine's clock does not change it. */
export function createClock (log: Log): AdjustableClock {
  let offset = performance.timeOrigin
  let [isOff, uncertainty] = [false, 0]

  function warn (): void {
    const difference = Math.round((Date.now() - performance.now() - offset) / 1000)
    const wasOff = isOff
    isOff = Math.abs(difference) * 1000 >= WARN_MS
    if (isOff && !wasOff) log.warn({ difference }, 'The clock of this machine is seconds off that of the database, which counts')
  }

  return {
    now: () => performance.now() + offset,
    get uncertainty () { return uncertainty },

    adjust (time, sent, received) {
      const [least, most] = [time - received, time - sent]
      uncertainty = received - sent
      // Only if the offset contradicts this answer, since a slow answer is an imprecise measurement.
      if (offset < least || offset > most) offset = (least + most) / 2
      warn()
    },
  }
}
