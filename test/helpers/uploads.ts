import { readdirSync } from 'node:fs'
import { readdir } from 'node:fs/promises'
import { connect, type Socket } from 'node:net'
import type { Sql } from 'postgres'
import type { Test } from 'tap'
import type { TestUsher } from './app.ts'
import type { FakeS3 } from './fake-s3.ts'
import { until } from './until.ts'

const BOUNDARY = 'the-boundary'

/** Returns one part of a multipart form, from its header fields and its content. */
export function part (header: string, content: string | Buffer, encoding: BufferEncoding = 'utf8'): Buffer {
  return Buffer.concat([
    Buffer.from(`--${BOUNDARY}\r\n${header}\r\n\r\n`, encoding), Buffer.from(content), Buffer.from('\r\n'),
  ])
}

export const filePart = (content: string | Buffer, filename = 'notes.txt', name = 'file') =>
  part(
    `Content-Disposition: form-data; name="${name}"; filename="${filename}"\r\nContent-Type: application/x-claimed`,
    content
  )

export const fieldPart = (name: string, value: string | Buffer) =>
  part(`Content-Disposition: form-data; name="${name}"`, value)

export const END = Buffer.from(`--${BOUNDARY}--\r\n`)
export const FORM = `multipart/form-data; boundary=${BOUNDARY}`

/** Posts the parts as the admin. Adds the final boundary unless `raw` is set. */
export async function post (
  { inject, admin }: TestUsher, parts: Buffer[], { raw = false, type = FORM, headers = admin.headers as object } = {}
) {
  const payload = Buffer.concat(raw ? parts : [...parts, END])
  return inject('POST', '/api/uploads', { headers: { ...headers, 'content-type': type }, payload })
}

/** Uploads a file and returns the response body. Throws if the upload fails. */
export async function upload (usher: TestUsher, content: string | Buffer, filename?: string, headers?: object) {
  const response = await post(
    usher, [filePart(content, filename), fieldPart('description', 'Something')], headers && { headers }
  )
  if (response.statusCode !== 200) throw new Error(`upload: ${response.statusCode} ${response.body}`)
  return response.json() as {
    fileUrl: string, id: string, filename: string, mediaType: string, size: number, sha256: string
  }
}

/** Counts the files on the disk and the rows in the table. */
export async function leftovers ({ options }: TestUsher, sql: Sql) {
  const [tmp, files] = await Promise.all(['tmp', 'files'].map((folder) => readdir(`${options.uploadsDir}/${folder}`)))
  const [{ rows }] = await sql<[{ rows: number }]>`select count(*)::int as rows from uploads`
  return { tmp: tmp!.length, files: files!.length, rows }
}

/** Counts what of uploads is in a store, and the parts on the node. */
export const leftoversInBucket = ({ objects, uploads }: FakeS3, { options }: TestUsher) => ({
  objects: [...objects.keys()].filter((key) => key.includes('/files/')).length,
  uploads: uploads.size,
  parts: readdirSync(`${options.uploadsDir}/sending`).length,
})

/** Waits until nothing of an upload remains on the disk and in the table. Throws after a minute. */
export async function nothingLeft (usher: TestUsher, sql: Sql): Promise<void> {
  await until('nothing is left of the upload', async () => {
    const { tmp, files, rows } = await leftovers(usher, sql)
    return tmp + files + rows === 0
  })
}

/** Makes the app listen on a free port, and returns a socket on which the head of an upload has been sent. */
export async function open (t: Test, { app, admin, prefix }: TestUsher, framing: string): Promise<Socket> {
  if (!app.server.listening) await app.listen({ port: 0, host: '127.0.0.1' })
  const { port } = app.server.address() as { port: number }
  const socket = connect(port, '127.0.0.1')
  t.teardown(() => socket.destroy())
  socket.write(
    `POST ${prefix}/api/uploads HTTP/1.1\r\nHost: usher\r\nAuthorization: Bearer ${admin.token}\r\nContent-Type: ${FORM}\r\n${framing}\r\n\r\n`
  )
  return socket
}

/** Resolves with everything a socket receives until the server closes it. */
export async function received (socket: Socket): Promise<string> {
  let answer = ''
  socket.setEncoding('utf8').on('data', (text: string) => { answer += text })
  // A client that writes after the server has closed the connection gets an error. Only what it received counts.
  socket.on('error', () => {})
  await new Promise((resolve) => { socket.once('close', resolve) })
  return answer
}

/** Returns one chunk of a body with chunked transfer encoding. */
export function chunked (content: Buffer): Buffer {
  return Buffer.concat([Buffer.from(`${content.length.toString(16)}\r\n`), content, Buffer.from('\r\n')])
}
