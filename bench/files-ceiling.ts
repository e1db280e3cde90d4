// The ceiling for files: Node.js writes the body of a request to a file, and sends a file.
import { randomUUID } from 'node:crypto'
import { createReadStream, createWriteStream } from 'node:fs'
import { stat } from 'node:fs/promises'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { join } from 'node:path'
import { pipeline } from 'node:stream/promises'

const folder = process.env['FILES_DIR']!

const server = createServer(async (request, response) => {
  if (request.method === 'POST') {
    const id = randomUUID()
    await pipeline(request, createWriteStream(join(folder, id)))
    response.writeHead(201, { 'content-type': 'application/json' }).end(JSON.stringify({ id, fileUrl: `/files/${id}` }))
    return
  }
  const file = join(folder, request.url!.split('/').at(-1)!)
  const { size } = await stat(file)
  response.writeHead(200, { 'content-type': 'application/octet-stream', 'content-length': size })
  await pipeline(createReadStream(file), response).catch(() => {})
})

server.listen(0, '127.0.0.1', () => {
  console.log(`http://127.0.0.1:${(server.address() as AddressInfo).port}`)
})
