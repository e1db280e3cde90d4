// This server does nothing. Its response time is that of the machine, without the node.
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { readConfiguration, report } from './helpers.ts'

await readConfiguration()
const server = createServer((request, response) => {
  request.resume()
  response.end('{}')
})
server.listen(0, '127.0.0.1', () => report({ type: 'listening', port: (server.address() as AddressInfo).port }))
