/** A number of bytes that many users share, first come, first served. */
export class BytePool {
  readonly #limit: number
  #taken = 0

  constructor (limit: number) {
    this.#limit = limit
  }

  /** Takes bytes if that many remain. Returns whether it has taken them. */
  tryTake (bytes: number): boolean {
    if (this.#taken + bytes > this.#limit) return false
    this.#taken += bytes
    return true
  }

  /** The bytes that are taken. */
  get taken (): number { return this.#taken }

  /** Gives bytes back. */
  give (bytes: number): void {
    this.#taken -= bytes
  }
}
