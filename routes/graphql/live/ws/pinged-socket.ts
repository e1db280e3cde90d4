import { WebSocket } from 'ws'
import { BoundedSocket } from './bounded-socket.ts'

/** A socket that is asked now and then whether anybody is there. */
export class PingedSocket extends BoundedSocket {
  #alive = true

  /** Ends a connection whose other side has not answered since the last time, and asks again. */
  check (): void {
    // The event loop may have been busy since then, so that an answer has arrived and was not read.
    if (!this.#alive) return void setImmediate(() => setImmediate(() => this.#endUnlessAlive()))
    this.#alive = false
    this.once('pong', () => { this.#alive = true })
    if (this.readyState === WebSocket.OPEN) this.ping()
  }

  #endUnlessAlive (): void {
    // Where nothing is read, no answer can be seen.
    if (!this.#alive && !this.isPaused) this.terminate()
  }
}
