// As TCP estimates how long an answer may take (RFC 6298).
const SHARE_OF_USUAL = 1 / 8
const SHARE_OF_DEVIATION = 1 / 4
const DEVIATIONS = 4

/**
 * For how long a read waits until a standby has replayed the WAL, in milliseconds: for as long as that standby usually
 * takes, and a margin. A standby on a busy machine, or one that is far away, answers that way, and one that is usually
 * quick is not waited for when it once is not.
 */
export class Patience {
  readonly #least: number
  readonly #most: number
  #usual = 0
  #deviation = 0
  #late = 0

  constructor ({ replicaReplay, replicaReplayMax }: { replicaReplay: number, replicaReplayMax: number }) {
    this.#least = replicaReplay
    this.#most = Math.max(replicaReplay, replicaReplayMax)
  }

  get ms (): number {
    return Math.min(Math.max(this.#usual + DEVIATIONS * this.#deviation, this.#least), this.#most)
  }

  /** How often in a row reads have waited in vain. Those that waited at the same time count once. */
  get late (): number {
    return this.#late
  }

  /** Notes that a read has waited for so many milliseconds, and was answered. */
  note (ms: number): void {
    this.#late = 0
    this.#learn(ms)
  }

  /**
   * Notes that a read has waited in vain. How long it would have had to wait is not known, but the next one waits
   * longer.
   * @param ms for how long it was ready to wait
   */
  noteLate (ms: number): void {
    if (ms < this.ms) return
    this.#late++
    this.#learn(2 * ms)
  }

  #learn (ms: number): void {
    this.#deviation += SHARE_OF_DEVIATION * (Math.abs(ms - this.#usual) - this.#deviation)
    this.#usual += SHARE_OF_USUAL * (ms - this.#usual)
  }
}
