import type { IncomingMessage } from 'node:http'
import type { SendPublic } from '../../support/public-request.ts'

const PREFIX_DIGITS = 5
// A range with padding has some 40 KiB.
const MAX_BYTES = 256 * 1024
const LINE = /^([\dA-F]{35}):(\d{1,15})$/i

/**
 * Asks a service of ranges whether it has a hash. It learns the first five digits of the hash, which hundreds of
 * passwords share, and by the padding nobody learns from the size of the response which range it was. Throws if the
 * response is anything else than a range.
 */
export async function askBreachedService (
  send: SendPublic, base: string, hash: string, signal: AbortSignal
): Promise<boolean> {
  const url = new URL(hash.slice(0, PREFIX_DIGITS), base.endsWith('/') ? base : `${base}/`)
  const headers = { 'user-agent': 'Usher', 'add-padding': 'true', accept: 'text/plain', 'accept-encoding': 'identity' }
  const response = await send(url, { method: 'GET', headers, signal })
  if (response.statusCode !== 200) {
    response.destroy()
    throw new Error(`the service of breached passwords has answered ${response.statusCode}`)
  }
  const lines = (await read(response)).split(/\r?\n/).filter((line) => line !== '')
  const entries = lines.map((line) => LINE.exec(line))
  if (entries.length === 0 || entries.includes(null)) throw new Error('the service of breached passwords has sent no range')
  const suffix = hash.slice(PREFIX_DIGITS)
  // Padding has the count 0.
  return entries.some((entry) => entry![1]!.toUpperCase() === suffix && Number(entry![2]) > 0)
}

async function read (response: IncomingMessage): Promise<string> {
  const chunks: Buffer[] = []
  let size = 0
  for await (const chunk of response as AsyncIterable<Buffer>) {
    size += chunk.length
    // Leaving the loop destroys the response.
    if (size > MAX_BYTES) throw new Error(`the service of breached passwords has sent over ${MAX_BYTES} bytes`)
    chunks.push(chunk)
  }
  return Buffer.concat(chunks).toString('latin1')
}
