import type { IncomingMessage } from 'node:http'
import { Readable } from 'node:stream'
import { isTransient } from './requests.ts'

// Times in a row that a connection may end without having brought a byte.
const ATTEMPTS = 3

export interface DownloadOptions {
  /** Opens the rest of the object, from an offset of the download. */
  reopen (offset: number): Promise<IncomingMessage>
  /** How many bytes there are. */
  length: number
  /** How long the store may be silent while somebody waits for its bytes. */
  idleMs: number
}

/**
 * The bytes of an object. If the connection to the store is cut, the rest comes over another one, so that a reader only
 * notices that it takes longer. Destroying it closes the connection.
 */
export class Download extends Readable {
  readonly #options: DownloadOptions
  #source: IncomingMessage
  #received = 0
  #attempts = 0
  #timer: NodeJS.Timeout | undefined

  constructor (first: IncomingMessage, options: DownloadOptions) {
    super()
    this.#options = options
    this.#source = first
    this.#follow(first)
  }

  override _read (): void {
    this.#wait()
    this.#source.resume()
  }

  override _destroy (error: Error | null, callback: (error?: Error | null) => void): void {
    clearTimeout(this.#timer)
    this.#source.destroy()
    callback(error)
  }

  #wait (): void {
    clearTimeout(this.#timer)
    const { idleMs } = this.#options
    const late = () => this.#source.destroy(Object.assign(
      new Error(`The store has sent nothing for ${idleMs} ms`), { code: 'ETIMEDOUT', syscall: 'read' }))
    this.#timer = setTimeout(late, idleMs)
  }

  #follow (source: IncomingMessage): void {
    this.#source = source
    let failure: Error | undefined
    source.on('data', (chunk: Buffer) => {
      clearTimeout(this.#timer)
      this.#attempts = 0
      this.#received += chunk.length
      if (this.push(chunk)) this.#wait()
      else source.pause()
    })
    source.on('error', (error) => { failure = error })
    source.on('close', () => {
      clearTimeout(this.#timer)
      if (this.destroyed) return
      if (source.complete || this.#received >= this.#options.length) this.push(null)
      else void this.#continue(failure ?? Object.assign(new Error('The connection to the store has ended'), { code: 'ECONNRESET' }))
    })
    source.pause()
  }

  async #continue (error: Error): Promise<void> {
    if (++this.#attempts > ATTEMPTS || !isTransient(error)) return void this.destroy(error)
    try {
      const next = await this.#options.reopen(this.#received)
      if (this.destroyed) return void next.destroy()
      this.#follow(next)
      this._read()
    } catch (error) {
      this.destroy(error as Error)
    }
  }
}
