import { WebSocket } from 'ws'
import type { Reader, UnreadBytes } from '../quotas.ts'
import { MessageRate, type MessageRateOptions } from '../message-rate.ts'

// What a client may leave unread, besides the message that went over it. A subscriber gets no events while it has 64 KiB
// to read, so only answers to its own messages come to that much.
const UNREAD_BYTES = 2 * 1024 * 1024

/** What a socket may take of its node. */
export interface SocketBounds {
  messages: MessageRateOptions
  /** Shared by all connections of the node. */
  unread: UnreadBytes
}

/** A socket that writes no more than its client reads, and reads no more than its client may send. */
export class BoundedSocket extends WebSocket implements Reader {
  #unread: UnreadBytes | undefined
  #rate: MessageRate | undefined
  #slowed: NodeJS.Timeout | undefined
  #busy = false
  #drained: Promise<void> | undefined

  /** Sets the bounds. To be called before anything is read. */
  protected setBounds ({ messages, unread }: SocketBounds): void {
    this.#unread = unread
    this.#rate = new MessageRate(messages)
    this.once('close', () => {
      clearTimeout(this.#slowed)
      unread.forget(this)
    })
  }

  get unread (): number {
    return this.bufferedAmount
  }

  disconnect (): void {
    this.terminate()
  }

  /** Sends a message, or hangs up on a client that does not read. */
  protected write (text: string): void {
    if (!this.#mayWrite()) return
    super.send(text)
    this.#unread!.update(this)
  }

  /** Answers a ping frame, likewise: ws would by itself, however many pongs are unread. */
  protected answerPing (data: Buffer): void {
    if (!this.#mayWrite()) return
    super.pong(data)
    this.#unread!.update(this)
  }

  /** Resolves when all that was written before has been taken. */
  drain (): Promise<void> {
    // A ping is sent after all that was sent before it. One at a time: each would be written to a client that does not read.
    this.#drained ??= new Promise((resolve) => {
      this.ping(undefined, undefined, () => {
        this.#drained = undefined
        resolve()
      })
    })
    return this.#drained
  }

  /** Counts what the client has sent. Slows a client down that sends too much, and closes the socket if it goes on. */
  protected count (): void {
    const pauseMs = this.#rate!.count()
    if (pauseMs === 0) return
    clearTimeout(this.#slowed)
    if (pauseMs === Infinity) {
      this.#slowed = undefined
      this.close(1008, 'Too many messages')
      return this.#pauseOrResume()
    }
    this.#slowed = setTimeout(() => {
      this.#slowed = undefined
      this.#pauseOrResume()
    }, pauseMs)
    this.#pauseOrResume()
  }

  /** Stops reading while there is enough to do. */
  protected setBusy (busy: boolean): void {
    if (busy === this.#busy) return
    this.#busy = busy
    this.#pauseOrResume()
  }

  #mayWrite (): boolean {
    if (this.readyState !== WebSocket.OPEN) return false
    if (this.bufferedAmount <= UNREAD_BYTES) return true
    this.terminate()
    return false
  }

  #pauseOrResume (): void {
    // A socket that is closing has to read, or it would never get the client's close frame.
    const paused = (this.#busy || this.#slowed !== undefined) && this.readyState === WebSocket.OPEN
    if (paused) this.pause()
    else this.resume()
  }
}
