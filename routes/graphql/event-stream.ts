import { Readable } from 'node:stream'

/** Server-sent events (HTML, 9.2) on their way to a client. */
export class EventStream extends Readable {
  #taken = Promise.withResolvers<void>()
  #isTaken = true
  #over = false

  override _read (): void {
    this.#isTaken = true
    this.#taken.resolve()
    this.#taken = Promise.withResolvers()
  }

  write (text: string): void {
    if (!this.#over) this.push(text)
  }

  end (): void {
    this.#over = true
    this.push(null)
  }

  /** Ends a stream of which nothing was taken since the last time, and keeps others from looking idle. */
  check (): void {
    if (!this.#isTaken && this.readableLength > 0) {
      this.destroy()
    } else {
      this.#isTaken = false
      this.write(':\n\n')
    }
  }

  /** Resolves when some of what was sent has been taken. */
  drain (): Promise<void> {
    return this.#taken.promise
  }

  override _destroy (error: Error | null, done: (error?: Error | null) => void): void {
    this.#taken.resolve()
    done(error)
  }
}
