import { Readable } from 'node:stream'
import type { Reader, UnreadBytes } from '../quotas.ts'

/** Server-sent events (HTML, 9.2) on their way to a client. */
export class EventStream extends Readable implements Reader {
  readonly #unread: UnreadBytes
  #taken = Promise.withResolvers<void>()
  #over = false
  // Octets that it was given, and how many of them had been taken at the last check.
  #given = 0
  #takenThen = -1

  constructor (unread: UnreadBytes) {
    super()
    this.#unread = unread
  }

  // What a stream that is gone was given is discarded.
  get unread (): number {
    return this.destroyed ? 0 : this.readableLength
  }

  disconnect (): void {
    this.destroy()
  }

  override _read (): void {
    this.#taken.resolve()
    this.#taken = Promise.withResolvers()
  }

  write (text: string): void {
    if (this.#over) return
    const octets = Buffer.from(text)
    this.#given += octets.length
    this.push(octets)
    this.#unread.update(this)
  }

  end (): void {
    this.#over = true
    this.push(null)
  }

  /** Ends a stream of which nothing was taken since the last time, and keeps others from looking idle. */
  check (): void {
    const taken = this.#given - this.readableLength
    if (this.readableLength > 0 && taken === this.#takenThen) return void this.destroy()
    this.#takenThen = taken
    this.write(':\n\n')
  }

  /** Resolves when some of what was sent has been taken. */
  drain (): Promise<void> {
    return this.#taken.promise
  }

  override _destroy (error: Error | null, done: (error?: Error | null) => void): void {
    this.#over = true
    this.#unread.forget(this)
    this.#taken.resolve()
    done(error)
  }
}
