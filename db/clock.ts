import type { Log } from './outages.ts'

const WARN_MS = 5000

/** The database's clock, by which tokens are issued and checked on every node, whatever the clocks of the nodes say. */
export interface Clock {
  /** Returns milliseconds since 1970. Until the database has told its time, they are those of this machine at its start. */
  now (): number
  /** Milliseconds that it may be wrong by: the time that the database took to tell its own. */
  readonly uncertainty: number
}

export interface AdjustableClock extends Clock {
  /**
   * Takes the time of the database into account.
   * @param time milliseconds since 1970, read at some moment between `sent` and `received`, which are of `performance.now()`
   */
  adjust (time: number, sent: number, received: number): void
}

/** A clock that runs on between two adjustments, also where somebody sets that of the machine. */
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
      // Only where it cannot be right: answers that take long say little.
      if (offset < least || offset > most) offset = (least + most) / 2
      warn()
    },
  }
}
