import { WebSocket } from 'ws'
import type { Reader, UnreadBytes } from '../quotas.ts'
import { MessageRate, type MessageRateOptions } from '../message-rate.ts'

// Bytes that a client may leave unread, not counting the message that exceeds the limit. A subscriber with 64 KiB of unread bytes
// receives no events, so only responses to the client's own messages can reach the limit.
const UNREAD_BYTES = 2 * 1024 * 1024

/** The limits of a socket. */
export interface SocketBounds {
  messages: MessageRateOptions
  /** The limit of unread bytes that all connections of the node share. */
  unread: UnreadBytes
}

/** A socket that disconnects a client that does not read, and slows down one that sends too much. */
export class BoundedSocket extends WebSocket implements Reader {
  #unread: UnreadBytes | undefined
  #rate: MessageRate | undefined
  #slowed: NodeJS.Timeout | undefined
  #busy = false
  #drained: Promise<void> | undefined

  /** Sets the limits. Must be called before anything is read. */
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

  /** Sends a message, or disconnects a client that does not read. */
  protected write (text: string): void {
    if (!this.#mayWrite()) return
    super.send(text)
    this.#unread!.update(this)
  }

  /** Answers a ping frame, or disconnects a client that does not read. ws would answer without a limit of unread pongs. */
  protected answerPing (data: Buffer): void {
    if (!this.#mayWrite()) return
    super.pong(data)
    this.#unread!.update(this)
  }

  /** Resolves when everything that was written before has been handed to the operating system. */
  drain (): Promise<void> {
    // A ping leaves after everything written before it. There is one ping at a time, because pings would pile up for a client that
    // does not read.
    this.#drained ??= new Promise((resolve) => {
      this.ping(undefined, undefined, () => {
        this.#drained = undefined
        resolve()
      })
    })
    return this.#drained
  }

  /** Counts a message or frame of the client. Pauses reading if it sends too much, and closes the socket if it continues. */
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

  /** Pauses reading while the socket is busy. */
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
    // A closing socket must read. Otherwise it would never receive the client's close frame.
    const paused = (this.#busy || this.#slowed !== undefined) && this.readyState === WebSocket.OPEN
    if (paused) this.pause()
    else this.resume()
  }
}
