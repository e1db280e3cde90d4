// The ceiling: what Node.js can do if it only reads a request and writes a body.
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'

const body = JSON.stringify({
  id: '01a1fb1f-9a52-7253-96f9-fbe7729173ff',
  name: 'User 12345',
  email: 'user12345@example.com',
  emailVerified: false,
  role: 'user',
  disabled: false,
  createdAt: '2026-11-20T22:41:54.771Z',
  updatedAt: '2026-11-20T22:41:54.771Z',
})

const server = createServer((request, response) => {
  request.resume()
  response.writeHead(200, { 'content-type': 'application/json', 'content-length': body.length }).end(body)
})

server.listen(Number(process.env['PORT'] ?? 0), '127.0.0.1', () => {
  console.log(`http://127.0.0.1:${(server.address() as AddressInfo).port}`)
})
