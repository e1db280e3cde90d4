import type { ServingNode } from '../../helpers/node.ts'
import type { Exchange } from './history.ts'

// No fault lasts this long, so a request without a response after this time hangs.
const TIMEOUT_MS = 30_000

export interface Answer extends Exchange {
  /** The JSON body of the response, if it has one. */
  readonly body?: any
  readonly cookie?: string | undefined
}

/** Sends requests to the nodes of a run and records when each began and ended. */
export class Client {
  readonly exchanges: Exchange[] = []
  /** Requests without a response, and responses that no fault explains. */
  readonly unexpected: unknown[] = []
  readonly #nodes: readonly ServingNode[]
  readonly #started = performance.now()

  constructor (nodes: readonly ServingNode[]) {
    this.#nodes = nodes
  }

  get nodeCount (): number {
    return this.#nodes.length
  }

  urlOf (node: number): string {
    return this.#nodes[node]!.url
  }

  /** Returns the milliseconds since the start of the run. */
  now (): number {
    return performance.now() - this.#started
  }

  async send (
    node: number, method: string, path: string,
    { headers, body }: { headers?: Record<string, string>, body?: object } = {}
  ): Promise<Answer> {
    const start = this.now()
    const answer = await this.#fetch(node, method, path, headers, body).catch((error: Error) => {
      if (error.name === 'TimeoutError') this.unexpected.push({ hangs: `${method} ${path}`, node, start })
      return { status: 0 }
    })
    const exchange = { node, start, end: this.now(), status: answer.status }
    this.exchanges.push(exchange)
    return { ...answer, ...exchange }
  }

  async #fetch (
    node: number, method: string, path: string, headers: Record<string, string> | undefined, body: object | undefined
  ) {
    const response = await fetch(`${this.urlOf(node)}${path}`, {
      method,
      headers: { ...headers, ...body && { 'content-type': 'application/json' } },
      ...body && { body: JSON.stringify(body) },
      signal: AbortSignal.timeout(TIMEOUT_MS),
    })
    const text = await response.text()
    if (![200, 201, 204, 401, 409, 503].includes(response.status)) {
      this.unexpected.push({ status: response.status, method, path, node, text })
    }
    return {
      status: response.status,
      body: text && response.headers.get('content-type')?.includes('json') ? JSON.parse(text) : undefined,
      cookie: response.headers.getSetCookie()[0]?.split(';', 1)[0],
    }
  }
}
