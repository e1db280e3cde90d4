import { once } from 'node:events'
import { connect, type Socket } from 'node:net'

export interface Asked { method: 'GET' | 'POST', path: string, body?: object, token?: string }

/** Sends as many requests as the options say, each connection one after the other. Throws if one of them fails. */
export async function sendAll (
  url: string, { requests, connections }: { requests: number, connections: number }, next: () => Asked
): Promise<void> {
  let left = requests
  await Promise.all(Array.from({ length: connections }, async () => {
    const connection = await Connection.open(url)
    while (left-- > 0) await connection.send(next())
    connection.close()
  }))
}

/**
 * A connection that sends one request after the other and reads of each response what is needed: a client of node:http
 * costs more than the servers that are measured, which would then wait, and share statements among few requests.
 */
class Connection {
  readonly #socket: Socket
  #received = ''
  #reader: PromiseWithResolvers<string> | undefined

  private constructor (socket: Socket) {
    this.#socket = socket.setNoDelay(true).setEncoding('latin1')
    socket.on('data', (chunk: string) => {
      this.#received += chunk
      this.#read()
    })
    socket.on('close', () => this.#reader?.reject(new Error('The server has closed the connection')))
    socket.on('error', (error) => this.#reader?.reject(error))
  }

  static async open (url: string): Promise<Connection> {
    const { hostname, port } = new URL(url)
    const socket = connect(Number(port), hostname)
    await once(socket, 'connect')
    return new Connection(socket)
  }

  async send ({ method, path, body, token }: Asked): Promise<void> {
    const text = body === undefined ? '' : JSON.stringify(body)
    const content = body && `content-type: application/json\r\ncontent-length: ${Buffer.byteLength(text)}\r\n`
    const authorization = token && `authorization: Bearer ${token}\r\n`
    this.#reader = Promise.withResolvers()
    this.#socket.write(`${method} ${path} HTTP/1.1\r\nhost: bench\r\n${content ?? ''}${authorization ?? ''}\r\n${text}`)
    const response = await this.#reader.promise
    const isDone = response.startsWith('HTTP/1.1 2') && !response.includes('{"errors"') && !response.includes('"data":null')
    if (!isDone) throw new Error(`${method} ${path}: ${response}`)
  }

  close (): void {
    this.#socket.destroy()
  }

  // All responses of these works have a length.
  #read (): void {
    const head = this.#received.indexOf('\r\n\r\n')
    if (head === -1) return
    const length = /\r\ncontent-length: (\d+)/i.exec(this.#received.slice(0, head))
    const end = head + 4 + Number(length?.[1] ?? 0)
    if (this.#received.length < end) return
    const response = this.#received.slice(0, end)
    this.#received = this.#received.slice(end)
    this.#reader?.resolve(response)
  }
}
