import { once } from 'node:events'
import { createServer, request, type IncomingMessage } from 'node:http'
import { connect, type AddressInfo } from 'node:net'
import { pipeline } from 'node:stream'
import type { Test } from 'tap'

/**
 * Starts a reverse proxy that forwards what is below a path, such as `/base`, without it, as nginx does with a slash at
 * the end of `proxy_pass`. All other paths are 404. It is stopped when the test ends.
 */
export async function startStrippingProxy (
  t: Test, path: string
): Promise<{ url: string, forwardTo (target: string): void }> {
  let target = new URL('http://127.0.0.1')
  const strip = ({ url = '' }: IncomingMessage) => url.startsWith(`${path}/`) ? url.slice(path.length) : undefined
  const headersOf = ({ headers }: IncomingMessage) =>
    ({ ...headers, 'x-forwarded-proto': 'http', 'x-forwarded-host': headers.host })

  const server = createServer((received, response) => {
    const stripped = strip(received)
    if (stripped === undefined) return void response.writeHead(404).end('not of the service')
    const { hostname, port } = target
    const { method } = received
    const options = { hostname, port, path: stripped, method, headers: headersOf(received) }
    const forwarded = request(options, (answer) => {
      response.writeHead(answer.statusCode!, answer.rawHeaders)
      pipeline(answer, response, () => {})
    })
    pipeline(received, forwarded, () => {})
  })
  server.on('upgrade', (received, socket) => {
    const { hostname, port } = target
    const upstream = connect(Number(port), hostname, () => {
      const lines = Object.entries(headersOf(received)).map(([name, value]) => `${name}: ${value}`)
      upstream.write(`GET ${strip(received)} HTTP/1.1\r\n${lines.join('\r\n')}\r\n\r\n`)
    })
    pipeline(socket, upstream, socket, () => {})
  })
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  t.teardown(() => {
    server.closeAllConnections()
    server.close()
  })
  const { port } = server.address() as AddressInfo
  return { url: `http://127.0.0.1:${port}${path}`, forwardTo: (url) => { target = new URL(url) } }
}
