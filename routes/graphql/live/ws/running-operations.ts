/**
 * Stops an operation. Returns a promise if it goes on for a while, which resolves when it has ended and never rejects.
 */
export type Stop = () => Promise<void> | void

/** The operations that are running on a socket, by the client's id. */
export class RunningOperations {
  readonly #stops = new Map<string, Stop>()
  // The number of operations that have been stopped, but not ended. Their ids may be used again.
  #ending = 0

  /** The number of operations that have not ended. */
  get size (): number {
    return this.#stops.size + this.#ending
  }

  has (id: string): boolean {
    return this.#stops.has(id)
  }

  /** Adds an operation. `stop` is called if the operation is stopped before it ends. */
  add (id: string, stop: Stop): void {
    this.#stops.set(id, stop)
  }

  /** Removes an operation that has ended. */
  remove (id: string): void {
    this.#stops.delete(id)
  }

  /** Stops an operation, which counts until it has ended. Does nothing if there is none with this id. */
  stop (id: unknown): void {
    const stop = this.#stops.get(id as string)
    this.#stops.delete(id as string)
    const ended = stop?.()
    if (!ended) return
    this.#ending++
    void ended.then(() => { this.#ending-- })
  }

  stopAll (): void {
    for (const id of [...this.#stops.keys()]) this.stop(id)
  }
}
