import { WebSocket } from 'ws'
import type { Reader, UnreadBytes } from '../../../../plugins/streams/unread-bytes.ts'
import { MessageRate, type MessageRateOptions } from '../message-rate.ts'
import { CloseCode } from './close-codes.ts'

// Bytes that a client may leave unread, not counting the message that exceeds the limit. A subscription pauses while
// its socket has 64 KiB of unread bytes, but each of the ten on a socket may then have added one event, in which every
// byte of a content may be escaped: 10 * 64 KiB * 2. More than that are responses to the client's own messages.
const UNREAD_BYTES = 2 * 1024 * 1024

// A control frame has at most 125 bytes (RFC 6455, 5.5), two of which are the code.
const REASON_BYTES = 123

export interface BoundedSocketOptions {
  messages: MessageRateOptions
  /** The limit of unread bytes that all connections of the node share. */
  unread: UnreadBytes
  onMessage: (text: string) => void
  onError: (error: Error) => void
}

/**
 * A WebSocket with limits: it disconnects a client that does not read or does not answer pings, and slows down one that
 * sends too much. Requires the option `autoPong: false` of ws.
 */
export class BoundedSocket implements Reader {
  readonly #socket: WebSocket
  readonly #unread: UnreadBytes
  readonly #rate: MessageRate
  #slowed: NodeJS.Timeout | undefined
  #busy = false
  #alive = true
  #drained: Promise<void> | undefined

  /**
   * Must be called before anything is read: an `error` event without a listener ends the process, even while the socket
   * is closing.
   */
  constructor (socket: WebSocket, { messages, unread, onMessage, onError }: BoundedSocketOptions) {
    this.#socket = socket
    this.#unread = unread
    this.#rate = new MessageRate(messages)
    socket.on('error', onError)
    socket.on('message', (data) => { if (this.#count()) onMessage(String(data)) })
    socket.on('ping', (data) => { if (this.#count()) this.#answerPing(data) })
    socket.on('pong', () => { if (this.#count()) this.#alive = true })
    socket.once('close', () => {
      clearTimeout(this.#slowed)
      unread.forget(this)
    })
  }

  get isOpen (): boolean {
    return this.#socket.readyState === WebSocket.OPEN
  }

  get unread (): number {
    return this.#socket.bufferedAmount
  }

  onceClosed (listener: () => void): void {
    this.#socket.once('close', listener)
  }

  /** Closes the socket. A reason that is longer than a close frame may be is cut off. */
  close (code?: number, reason = ''): void {
    this.#socket.close(code, new TextDecoder().decode(Buffer.from(reason).subarray(0, REASON_BYTES), { stream: true }))
    this.#pauseOrResume()
  }

  disconnect (): void {
    this.#socket.terminate()
  }

  /** Sends a message, or disconnects a client that does not read. */
  write (text: string): void {
    if (!this.#mayWrite()) return
    this.#socket.send(text)
    this.#unread.update(this)
  }

  /** Resolves when everything that was written before has been handed to the operating system. */
  drain (): Promise<void> {
    // A ping leaves after everything written before it. There is one ping at a time, because pings would pile up for a
    // client that does not read.
    this.#drained ??= new Promise((resolve) => {
      this.#socket.ping(undefined, undefined, () => {
        this.#drained = undefined
        resolve()
      })
    })
    return this.#drained
  }

  /** Disconnects a client that has not answered the ping of the last call. Otherwise sends another one. */
  checkAlive (): void {
    // If the event loop was busy, a pong may have arrived that has not been read yet, so the check waits for two turns.
    if (!this.#alive) return void setImmediate(() => setImmediate(() => this.#disconnectUnlessAlive()))
    this.#alive = false
    if (this.isOpen) this.#socket.ping()
  }

  /** Pauses reading while the socket is busy. */
  setBusy (busy: boolean): void {
    if (busy === this.#busy) return
    this.#busy = busy
    this.#pauseOrResume()
  }

  #disconnectUnlessAlive (): void {
    // While reading is paused, pongs are not received.
    if (!this.#alive && !this.#socket.isPaused) this.disconnect()
  }

  // ws would answer without a limit of unread pongs.
  #answerPing (data: Buffer): void {
    if (!this.#mayWrite()) return
    this.#socket.pong(data)
    this.#unread.update(this)
  }

  // Counts a message or frame of the client. Pauses reading if it sends too much, and closes the socket if it
  // continues. Returns false if the socket was closing before, because messages after one that has closed the socket
  // are ignored.
  #count (): boolean {
    if (!this.isOpen) return false
    const pauseMs = this.#rate.count()
    if (pauseMs > 0) this.#slowDown(pauseMs)
    return true
  }

  #slowDown (pauseMs: number): void {
    clearTimeout(this.#slowed)
    if (pauseMs === Infinity) {
      this.#slowed = undefined
      return this.close(CloseCode.TooManyMessages, 'Too many messages')
    }
    this.#slowed = setTimeout(() => {
      this.#slowed = undefined
      this.#pauseOrResume()
    }, pauseMs)
    this.#pauseOrResume()
  }

  #mayWrite (): boolean {
    if (!this.isOpen) return false
    if (this.unread <= UNREAD_BYTES) return true
    this.disconnect()
    return false
  }

  #pauseOrResume (): void {
    // A closing socket must read. Otherwise it would never receive the client's close frame.
    const paused = (this.#busy || this.#slowed !== undefined) && this.isOpen
    if (paused) this.#socket.pause()
    else this.#socket.resume()
  }
}
