import { once } from 'node:events'
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http'
import { isIPv6, type AddressInfo } from 'node:net'
import { NODE_DEADLINES, type NodeDeadlines } from '../process/deadlines.ts'
import { explainMetrics, type MetricsAddress } from './address.ts'
import { CONTENT_TYPE } from './prometheus.ts'

const CONNECTIONS = 32

export interface ServeOptions extends MetricsAddress {
  deadlines?: NodeDeadlines
}

export interface MetricsServer {
  /** The address of the metrics. */
  readonly url: string
  close (): Promise<void>
}

/**
 * Serves metrics at /metrics, and nothing else. It is a server of its own, so that it can have an address that clients
 * of the API cannot reach, and answers while the API is overloaded. Scrapes at the same time share one reading. Throws
 * an `Error` with a sentence if the address cannot be used.
 *
 * @param read returns the metrics in the text format of Prometheus, in bounded time
 * @param onError is called if it throws
 */
export async function serveText (
  { host, port, deadlines: { scrape } = NODE_DEADLINES }: ServeOptions,
  read: () => Promise<string>, onError: (error: unknown) => void
): Promise<MetricsServer> {
  let reading: Promise<string> | undefined
  const limits = { headersTimeout: scrape, requestTimeout: scrape, connectionsCheckingInterval: 1000 }
  const server = createServer(limits, respond)
  server.maxConnections = CONNECTIONS
  server.listen(port, host)
  try {
    await once(server, 'listening')
  } catch (error) {
    throw new Error(explainMetrics(error as NodeJS.ErrnoException, { host, port }), { cause: error })
  }

  function respond (request: IncomingMessage, response: ServerResponse): void {
    // A request body is not read.
    request.resume()
    const timer = setTimeout(() => request.socket.destroy(), scrape).unref()
    response.once('close', () => clearTimeout(timer))
    const isKnown =
      (request.method === 'GET' || request.method === 'HEAD') && request.url!.split('?', 1)[0] === '/metrics'
    if (!isKnown) return send(response, 404, 'Not found. Metrics are at /metrics.\n')
    reading ??= read().finally(() => { reading = undefined })
    reading.then((text) => send(response, 200, text, CONTENT_TYPE), (error: unknown) => {
      onError(error)
      send(response, 500, 'The metrics could not be read. The log has the cause.\n')
    })
  }

  const { address, port: actual } = server.address() as AddressInfo
  return {
    url: `http://${isIPv6(address) ? `[${address}]` : address}:${actual}/metrics`,

    async close () {
      const closed = once(server, 'close')
      server.close()
      server.closeAllConnections()
      await closed
    },
  }
}

function send (response: ServerResponse, status: number, text: string, type = 'text/plain; charset=utf-8'): void {
  response.writeHead(status, {
    'content-type': type, 'content-length': Buffer.byteLength(text), 'x-content-type-options': 'nosniff',
  }).end(text)
}
