import { WebSocket } from 'ws'

/** A socket that is asked now and then whether anybody is there. */
export class PingedSocket extends WebSocket {
  #alive = true

  /** Ends a connection whose other side has not answered since the last time, and asks again. */
  check (): void {
    if (!this.#alive) return this.terminate()
    this.#alive = false
    this.once('pong', () => { this.#alive = true })
    if (this.readyState === WebSocket.OPEN) this.ping()
  }
}
