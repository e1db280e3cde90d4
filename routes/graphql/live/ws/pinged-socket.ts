import { WebSocket } from 'ws'
import { BoundedSocket } from './bounded-socket.ts'

/** A socket that detects dead connections with pings. */
export class PingedSocket extends BoundedSocket {
  #alive = true

  /** Closes the connection if the client has not answered the last ping. Otherwise sends another one. */
  check (): void {
    // If the event loop was busy, a pong may have arrived that has not been read yet, so the check waits for two turns.
    if (!this.#alive) return void setImmediate(() => setImmediate(() => this.#endUnlessAlive()))
    this.#alive = false
    this.once('pong', () => { this.#alive = true })
    if (this.readyState === WebSocket.OPEN) this.ping()
  }

  #endUnlessAlive (): void {
    // While reading is paused, pongs are not received.
    if (!this.#alive && !this.isPaused) this.terminate()
  }
}
