import { FrameReader, opcodes, writeFrame, writeUpgrade } from './frames.ts'
import { HttpConnection, type Target } from './http-connection.ts'

export interface Message { type: string, id?: string, payload?: unknown }

/** A raw WebSocket. The caller decides what is sent and whether anything is read. */
export class RawSocket {
  readonly connection: HttpConnection
  readonly messages: Message[] = []
  closeCode: number | undefined
  #changed = Promise.withResolvers<void>()

  private constructor (connection: HttpConnection) {
    this.connection = connection
    const reader = new FrameReader((opcode, payload) => {
      if (opcode === opcodes.text) this.messages.push(JSON.parse(payload.toString()) as Message)
      else if (opcode === opcodes.close) this.closeCode = payload.length >= 2 ? payload.readUInt16BE(0) : 1005
      else if (opcode === opcodes.ping) this.send(payload, opcodes.pong)
      this.#change()
    })
    connection.socket.on('data', (chunk: Buffer) => reader.push(chunk))
    connection.closed.then(() => this.#change())
  }

  /**
   * Opens a socket and sends `early` together with the handshake. Returns the status if it was rejected. Throws
   * `NodeIsDown`.
   */
  static async open (
    target: Target,
    { address, protocol, headers = [], early }: {
      address?: string, protocol?: string | undefined, headers?: string[], early?: Buffer
    }
  ): Promise<RawSocket | number> {
    const connection = await HttpConnection.open(target, address)
    const upgrade = connection.reply()
    connection.send(Buffer.concat([Buffer.from(writeUpgrade('/graphql', protocol, headers)), early ?? Buffer.alloc(0)]))
    const { status, rest } = await upgrade.then(
      (reply) => ({ status: reply.status, rest: connection.takeRest() }), () => ({ status: 0, rest: Buffer.alloc(0) })
    )
    if (status !== 101) {
      await connection.close()
      return status
    }
    const socket = new RawSocket(connection)
    if (rest.length > 0) connection.socket.emit('data', rest)
    return socket
  }

  send (payload: string | Buffer | object, opcode: number = opcodes.text): void {
    const isRaw = typeof payload === 'string' || Buffer.isBuffer(payload)
    this.connection.send(writeFrame(isRaw ? payload : JSON.stringify(payload), { opcode }))
  }

  get isOpen (): boolean {
    return !this.connection.socket.destroyed && this.closeCode === undefined
  }

  /** Returns the first message that fits, or undefined if the socket is closed or the time is over. */
  async hear (fits: (message: Message) => boolean, milliseconds = 5000): Promise<Message | undefined> {
    const deadline = performance.now() + milliseconds
    for (;;) {
      const found = this.messages.find(fits)
      if (found || !this.isOpen) return found
      const left = deadline - performance.now()
      if (left <= 0) return undefined
      let timer: NodeJS.Timeout | undefined
      await Promise.race([this.#changed.promise, new Promise<void>((resolve) => { timer = setTimeout(resolve, left) })])
      clearTimeout(timer)
    }
  }

  close (): Promise<void> {
    return this.connection.close()
  }

  #change (): void {
    this.#changed.resolve()
    this.#changed = Promise.withResolvers()
  }
}
