import { Readable } from 'node:stream'
import type { Reader, UnreadBytes } from './unread-bytes.ts'

/** A stream of server-sent events (section 9.2 of the HTML standard) to one client. */
export class EventStream extends Readable implements Reader {
  readonly #unread: UnreadBytes
  // Resolves on the next read.
  #read = Promise.withResolvers<void>()
  #over = false
  // Bytes that were written, and how many of them had been read at the last check.
  #writtenBytes = 0
  #readAtLastCheck = -1

  constructor (unread: UnreadBytes) {
    super()
    this.#unread = unread
  }

  // A destroyed stream discards its unread bytes.
  get unread (): number {
    return this.destroyed ? 0 : this.readableLength
  }

  disconnect (): void {
    this.destroy()
  }

  override _read (): void {
    this.#read.resolve()
    this.#read = Promise.withResolvers()
  }

  write (text: string): void {
    if (this.#over) return
    const bytes = Buffer.from(text)
    this.#writtenBytes += bytes.length
    this.push(bytes)
    this.#unread.update(this)
  }

  end (): void {
    this.#over = true
    this.push(null)
  }

  /**
   * Closes the stream if its client has unread bytes and has read nothing since the last check. Otherwise sends a
   * comment, so that the connection does not look idle.
   */
  check (): void {
    const readBytes = this.#writtenBytes - this.readableLength
    if (this.readableLength > 0 && readBytes === this.#readAtLastCheck) return void this.destroy()
    this.#readAtLastCheck = readBytes
    this.write(':\n\n')
  }

  /** Resolves when some of the written bytes have been read. */
  drain (): Promise<void> {
    return this.#read.promise
  }

  override _destroy (error: Error | null, done: (error?: Error | null) => void): void {
    this.#over = true
    this.#unread.forget(this)
    this.#read.resolve()
    done(error)
  }
}
