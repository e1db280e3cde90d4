// Connections with fewer unread bytes are not counted, which saves work. Twenty thousand of them have 320 MB at most.
const SMALL_BYTES = 16 * 1024

/** A connection whose client may not have read everything that was written to it. */
export interface Reader {
  /** Bytes that were written and not read yet. */
  readonly unread: number
  /** Closes the connection at once and discards the unread bytes. */
  disconnect (): void
}

/**
 * Limits the unread bytes of all clients together. Above the limit, clients with the most unread bytes are disconnected
 * first.
 */
export class UnreadBytes {
  readonly #limit: number
  readonly #known = new Map<Reader, number>()
  #sum = 0

  constructor (limit: number) {
    this.#limit = limit
  }

  /** An upper bound of the unread bytes of all readers with many of them. */
  get sum (): number { return this.#sum }

  /** Updates the unread bytes of a reader. Must be called after each write to it. */
  update (reader: Reader): void {
    const { unread } = reader
    const before = this.#known.get(reader) ?? 0
    if (unread <= SMALL_BYTES && before === 0) return
    this.#known.set(reader, unread)
    this.#sum += unread - before
    if (this.#sum > this.#limit) this.#relieve()
  }

  /** Stops counting a reader. Must be called when its connection has closed. */
  forget (reader: Reader): void {
    this.#sum -= this.#known.get(reader) ?? 0
    this.#known.delete(reader)
  }

  // No event signals what clients have read since the last write, so the sum is only an upper bound until all readers
  // are checked. Freeing more than necessary makes these checks rare.
  #relieve (): void {
    const readers = [...this.#known.keys()].map((reader) => ({ reader, unread: reader.unread }))
      .sort((a, b) => a.unread - b.unread)
    this.#known.clear()
    this.#sum = 0
    for (const { reader, unread } of readers) {
      if (this.#sum + unread > this.#limit * 0.75) {
        reader.disconnect()
      } else if (unread > 0) {
        this.#known.set(reader, unread)
        this.#sum += unread
      }
    }
  }
}
