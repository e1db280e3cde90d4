// This server costs almost nothing. In a quiet phase the attackers attack it instead of the node: they cost the machine
// as much as before, but the node nothing.
import { createHash } from 'node:crypto'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { readConfiguration, report } from '../helpers.ts'

// RFC 6455 1.3.
const MAGIC = '258EAFA5-E914-47DA-95CA-C5AB0DC85B11'
const ACKNOWLEDGED = Buffer.concat([Buffer.from([0x81, 25]), Buffer.from('{"type":"connection_ack"}')])

await readConfiguration()
const server = createServer((request, response) => {
  request.resume()
  response.writeHead(200, { 'content-type': 'application/json', 'content-length': 2 }).end('{}')
})
server.requestTimeout = 0
server.headersTimeout = 0
server.on('upgrade', (request, socket) => {
  const accept = createHash('sha1').update(`${request.headers['sec-websocket-key']}${MAGIC}`).digest('base64')
  socket.on('error', () => socket.destroy())
  socket.write(
    `HTTP/1.1 101 Switching Protocols\r\nupgrade: websocket\r\nconnection: upgrade\r\nsec-websocket-accept: ${accept}\r\nsec-websocket-protocol: graphql-transport-ws\r\n\r\n`
  )
  socket.write(ACKNOWLEDGED)
  socket.resume()
  socket.on('end', () => socket.end())
})
server.listen(0, '127.0.0.1', () => report({ type: 'listening', port: (server.address() as AddressInfo).port }))
