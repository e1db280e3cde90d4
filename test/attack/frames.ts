import { randomBytes } from 'node:crypto'

export const opcodes = { continuation: 0x0, text: 0x1, binary: 0x2, close: 0x8, ping: 0x9, pong: 0xa } as const

/** Parts of a WebSocket frame that may be wrong on purpose. */
export interface FrameOptions {
  opcode?: number
  isFinal?: boolean
  reserved?: number
  isMasked?: boolean
  /** The length in the header, if it differs from the payload's. */
  length?: number
}

const MASK = Buffer.from([1, 2, 3, 4])

/** Returns the bytes of a client frame (RFC 6455 5.2). */
export function writeFrame (
  payload: string | Buffer,
  { opcode = opcodes.text, isFinal = true, reserved = 0, isMasked = true, length }: FrameOptions = {}
): Buffer {
  const bytes = Buffer.from(payload)
  const first = (isFinal ? 0x80 : 0) | (reserved << 4) | opcode
  const mask = isMasked ? 0x80 : 0
  const claimed = length ?? bytes.length
  let head: Buffer
  if (claimed < 126) head = Buffer.from([first, mask | claimed])
  else if (claimed < 65536) head = Buffer.from([first, mask | 126, claimed >> 8, claimed & 255])
  else {
    head = Buffer.alloc(10)
    head.set([first, mask | 127])
    head.writeBigUInt64BE(BigInt(claimed), 2)
  }
  if (!isMasked) return Buffer.concat([head, bytes])
  return Buffer.concat([head, MASK, bytes.map((byte, index) => byte ^ MASK[index % 4]!)])
}

/** Parses the frames of a server. */
export class FrameReader {
  #buffer: Buffer = Buffer.alloc(0)
  readonly #accept: (opcode: number, payload: Buffer) => void

  constructor (accept: (opcode: number, payload: Buffer) => void) {
    this.#accept = accept
  }

  push (chunk: Buffer): void {
    this.#buffer = Buffer.concat([this.#buffer, chunk])
    for (;;) {
      const short = this.#buffer[1]! & 0x7f
      const head = short < 126 ? 2 : short === 126 ? 4 : 10
      if (this.#buffer.length < head) return
      const length = short < 126
        ? short
        : short === 126 ? this.#buffer.readUInt16BE(2) : Number(this.#buffer.readBigUInt64BE(2))
      if (this.#buffer.length < head + length) return
      this.#accept(this.#buffer[0]! & 0x0f, this.#buffer.subarray(head, head + length))
      this.#buffer = this.#buffer.subarray(head + length)
    }
  }
}

/** Returns the head of a WebSocket handshake. */
export function writeUpgrade (path: string, protocol: string | undefined, headers: readonly string[] = []): string {
  const lines = [
    `GET ${path} HTTP/1.1`, 'host: localhost', 'connection: upgrade', 'upgrade: websocket', 'sec-websocket-version: 13',
    `sec-websocket-key: ${randomBytes(16).toString('base64')}`,
  ]
  if (protocol !== undefined) lines.push(`sec-websocket-protocol: ${protocol}`)
  return `${[...lines, ...headers].join('\r\n')}\r\n\r\n`
}
