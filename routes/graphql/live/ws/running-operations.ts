/** The operations that are running on a socket, by the client's id. */
export class RunningOperations {
  readonly #stops = new Map<string, () => void>()

  get size (): number {
    return this.#stops.size
  }

  has (id: string): boolean {
    return this.#stops.has(id)
  }

  /** Adds an operation. `stop` is called if the operation is stopped before it ends. */
  add (id: string, stop: () => void): void {
    this.#stops.set(id, stop)
  }

  /** Removes an operation that has ended. */
  remove (id: string): void {
    this.#stops.delete(id)
  }

  /** Stops an operation. Does nothing if there is none with this id. */
  stop (id: unknown): void {
    const stop = this.#stops.get(id as string)
    this.#stops.delete(id as string)
    stop?.()
  }

  stopAll (): void {
    for (const id of [...this.#stops.keys()]) this.stop(id)
  }
}
