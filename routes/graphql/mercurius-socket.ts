import type { Operation } from './operation.ts'
import { PingedSocket } from './pinged-socket.ts'

// What mercurius sends begins with the type and the id, here always one of ours.
const HEAD = /^\{"type":"(\w+)"(?:,"id":"(\d+)")?/

/**
 * A socket on which mercurius runs queries and mutations. It hears only what it can take: it neither limits nor validates
 * what comes by a socket, takes a raw AST, chokes on `__proto__`, and mixes up operations of one id, also of one that has
 * just ended. So it gets ids of our own, each once; and nothing at all on a socket where nobody asks for anything.
 */
export abstract class MercuriusSocket extends PingedSocket {
  readonly #answers = new Map<string, (type: string, rest: string) => void>()
  #asked = 0

  /** Has mercurius serve the socket. */
  protected abstract attach (): void

  /**
   * Has mercurius run an operation, of which it is told by the word `start`, until the function that it returns is called.
   *
   * @param answer gets what it sends: the type of the message, and the message without its type and id
   */
  protected ask (start: string, payload: Operation, answer: (type: string, rest: string) => void): () => void {
    if (this.#asked === 0) {
      this.attach()
      this.#pass({ type: 'connection_init' })
    }
    const id = String(++this.#asked)
    this.#answers.set(id, answer)
    this.#pass({ type: start, id, payload })
    return () => this.#answers.delete(id)
  }

  /** For mercurius alone; what the client gets is sent by `say`. */
  override send (data: string, ...rest: unknown[]): void {
    const [head, type, id] = HEAD.exec(data) as unknown as [string, string, string | undefined]
    // The client was acknowledged before; or it has stopped the operation meanwhile.
    this.#answers.get(id!)?.(type, data.slice(head.length))
    const done = rest.at(-1) as () => void
    done()
  }

  #pass (message: object): void {
    super.emit('message', Buffer.from(JSON.stringify(message)), false)
  }
}
