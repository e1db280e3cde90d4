/** A response. The body is text and is cut off after a mebibyte. */
export interface Reply { status: number, head: string, body: string }

const KEPT_BYTES = 1024 * 1024

type State = 'head' | 'length' | 'chunk-size' | 'chunk' | 'chunk-end' | 'last-chunk' | 'until-close' | 'upgraded'

/** Parses the responses of one connection, incrementally. It is lenient, because the requests may be garbage. */
export class ReplyParser {
  #state: State = 'head'
  #buffer: Buffer = Buffer.alloc(0)
  #left = 0
  #kept = 0
  #chunks: Buffer[] = []
  #reply: Reply = { status: 0, head: '', body: '' }
  readonly #isHead: () => boolean
  readonly #accept: (reply: Reply) => void

  /**
   * @param isHead tells whether the next response is one to a HEAD request, which has no body
   * @param accept is called with each complete response
   */
  constructor (isHead: () => boolean, accept: (reply: Reply) => void) {
    this.#isHead = isHead
    this.#accept = accept
  }

  push (chunk: Buffer): void {
    this.#buffer = this.#buffer.length === 0 ? chunk : Buffer.concat([this.#buffer, chunk])
    while (this.#buffer.length > 0 && this.#step());
  }

  /** Returns the bytes that have not been parsed. After an upgrade these belong to another protocol. */
  takeRest (): Buffer {
    return this.#buffer
  }

  /** Handles the end of the stream: completes a body that lasts until then. */
  end (): void {
    if (this.#state === 'until-close') this.#finish()
  }

  // Returns whether it made progress.
  #step (): boolean {
    switch (this.#state) {
      case 'head': return this.#takeHead()
      case 'chunk-size': return this.#takeChunkSize()
      case 'chunk-end':
      case 'last-chunk': return this.#takeLineBreak()
      case 'upgraded': return false
      case 'until-close':
        this.#keep(this.#buffer)
        this.#buffer = Buffer.alloc(0)
        return false
      default: return this.#takeBody()
    }
  }

  #takeHead (): boolean {
    const end = this.#buffer.indexOf('\r\n\r\n')
    if (end < 0) return false
    const head = this.#buffer.toString('latin1', 0, end)
    this.#buffer = this.#buffer.subarray(end + 4)
    const status = Number(/^HTTP\/1\.[01] (\d{3})/.exec(head)?.[1] ?? 0)
    if (status === 101) this.#state = 'upgraded'
    else if (status >= 100 && status < 200) return true
    this.#reply = { status, head, body: '' }
    this.#begin(head, status)
    return true
  }

  #begin (head: string, status: number): void {
    this.#chunks = []
    this.#kept = 0
    this.#left = Number(/^content-length: *(\d+)/im.exec(head)?.[1] ?? -1)
    if (status === 101 || status === 204 || status === 304 || this.#isHead() || this.#left === 0) this.#finish()
    else if (/^transfer-encoding: *chunked/im.test(head)) this.#state = 'chunk-size'
    else this.#state = this.#left > 0 ? 'length' : 'until-close'
  }

  #takeBody (): boolean {
    const part = this.#buffer.subarray(0, this.#left)
    this.#keep(part)
    this.#left -= part.length
    this.#buffer = this.#buffer.subarray(part.length)
    if (this.#left > 0) return false
    if (this.#state === 'chunk') this.#state = 'chunk-end'
    else this.#finish()
    return true
  }

  #takeChunkSize (): boolean {
    const end = this.#buffer.indexOf('\r\n')
    if (end < 0) return false
    this.#left = parseInt(this.#buffer.toString('latin1', 0, end), 16)
    this.#buffer = this.#buffer.subarray(end + 2)
    this.#state = this.#left > 0 ? 'chunk' : 'last-chunk'
    return true
  }

  // Skips the line break after a chunk, or the empty trailer section after the last one.
  #takeLineBreak (): boolean {
    if (this.#buffer.length < 2) return false
    this.#buffer = this.#buffer.subarray(2)
    if (this.#state === 'last-chunk') this.#finish()
    else this.#state = 'chunk-size'
    return true
  }

  #keep (part: Buffer): void {
    if (this.#kept < KEPT_BYTES) this.#chunks.push(part)
    this.#kept += part.length
  }

  #finish (): void {
    if (this.#state !== 'upgraded') this.#state = 'head'
    this.#accept({ ...this.#reply, body: Buffer.concat(this.#chunks).toString('utf8') })
  }
}
