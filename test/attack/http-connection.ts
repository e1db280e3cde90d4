import { once } from 'node:events'
import { connect, type Socket } from 'node:net'
import { ReplyParser, type Reply } from './reply-parser.ts'

/** The address at which the node listens. */
export interface Target { host: string, port: number }

/** Thrown if the connection could not be opened because the node is down. */
export class NodeIsDown extends Error {}

/** Thrown if the connection ended before the reply did. */
export class NoReply extends Error {}

const SILENCE_MS = 30_000

interface Waiting { isHead: boolean, resolve: (reply: Reply) => void, reject: (error: Error) => void }

/**
 * A raw HTTP connection. Unlike an HTTP client it sends any bytes, and it parses the replies. Requests may be
 * pipelined; replies are returned in order.
 */
export class HttpConnection {
  readonly socket: Socket
  /** Replies without a request: more than the number of requests sent. */
  readonly unexpected: Reply[] = []
  /** Resolves when either side has closed the connection. */
  readonly closed: Promise<void>
  #waiting: Waiting[] = []
  #isClosing = false
  readonly #parser = new ReplyParser(() => this.#waiting[0]?.isHead ?? false, (reply) => this.#accept(reply))

  private constructor (socket: Socket) {
    this.socket = socket
    socket.setNoDelay(true)
    socket.setTimeout(SILENCE_MS, () => socket.destroy(new NoReply(`silent for ${SILENCE_MS / 1000} s`)))
    socket.on('data', (chunk) => this.#parser.push(chunk))
    socket.on('end', () => {
      this.#parser.end()
      this.#fail(new NoReply('the connection was closed'))
    })
    socket.on('error', (error) => this.#fail(error))
    this.closed = new Promise((resolve) => socket.once('close', () => {
      this.#fail(new NoReply('the connection was closed'))
      resolve()
    }))
  }

  /** Opens a connection from an address of this machine. Throws `NodeIsDown`. */
  static async open ({ host, port }: Target, localAddress?: string): Promise<HttpConnection> {
    const socket = connect({ host, port, allowHalfOpen: true, ...localAddress !== undefined && { localAddress } })
    try {
      await once(socket, 'connect')
    } catch (cause) {
      throw new NodeIsDown('the node cannot be reached', { cause })
    }
    return new HttpConnection(socket)
  }

  /** Whether another request may be sent on it. */
  get isUsable (): boolean {
    return !this.#isClosing && this.socket.writable && this.socket.readable
  }

  send (bytes: string | Buffer): void {
    if (this.socket.writable) this.socket.write(typeof bytes === 'string' ? Buffer.from(bytes, 'latin1') : bytes)
  }

  /** Returns the next reply. Skips informational responses. Rejects with `NoReply`. */
  reply ({ isHead = false } = {}): Promise<Reply> {
    const early = this.unexpected.shift()
    if (early) return Promise.resolve(early)
    if (this.socket.destroyed || this.socket.readableEnded) {
      return Promise.reject(new NoReply('the connection was closed'))
    }
    return new Promise((resolve, reject) => this.#waiting.push({ isHead, resolve, reject }))
  }

  /** Returns the bytes that followed the response to an upgrade, and stops reading from the socket. */
  takeRest (): Buffer {
    this.socket.removeAllListeners('data')
    return this.#parser.takeRest()
  }

  /** Closes the connection at once. */
  async close (): Promise<void> {
    this.socket.destroy()
    await this.closed
  }

  #accept (reply: Reply): void {
    if (/^connection: *close/im.test(reply.head)) this.#isClosing = true
    const waiting = this.#waiting.shift()
    if (waiting) waiting.resolve(reply)
    else this.unexpected.push(reply)
  }

  #fail (cause: Error): void {
    this.#isClosing = true
    const waiting = this.#waiting
    this.#waiting = []
    for (const { reject } of waiting) reject(new NoReply(cause.message, { cause }))
    // The other side has ended its half of the connection, and nothing more will be sent.
    this.socket.destroy()
  }
}
