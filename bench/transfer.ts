// Sends the same request again and again, over several connections, and reads each response to its end. Prints how many
// there were, as JSON. Started by uploads.ts in a process of its own.
import { Agent, request } from 'node:http'
import { performance } from 'node:perf_hooks'

export interface Transfer {
  url: string
  method: 'GET' | 'POST'
  headers: Record<string, string>
  /** The body of a POST: a description, and a file of this size, in bytes. */
  size?: number
  seconds: number
  connections: number
}

export interface Transferred { rate: number, p50: number, p99: number, failures: number }

const BOUNDARY = 'usher-bench'

if (process.argv[2]) console.log(JSON.stringify(await transfer(JSON.parse(process.argv[2]) as Transfer)))

async function transfer ({ url, method, headers, size, seconds, connections }: Transfer): Promise<Transferred> {
  const agent = new Agent({ keepAlive: true, maxSockets: connections })
  const body = size === undefined ? undefined : bodyOf(size)
  const sent = body
    ? { ...headers, 'content-type': `multipart/form-data; boundary=${BOUNDARY}`, 'content-length': body.length }
    : headers
  const latencies: number[] = []
  let failures = 0
  const began = performance.now()
  const end = began + seconds * 1000

  const send = () => new Promise<void>((resolve, reject) => {
    const since = performance.now()
    request(url, { method, headers: sent, agent }, (response) => {
      if (response.statusCode! >= 400) failures++
      response.on('error', reject).on('end', () => {
        latencies.push(performance.now() - since)
        resolve()
      }).resume()
    }).on('error', reject).end(body)
  })
  await Promise.all(Array.from({ length: connections }, async () => {
    while (performance.now() < end) await send().catch(() => { failures++ })
  }))
  const passed = (performance.now() - began) / 1000
  agent.destroy()
  latencies.sort((a, b) => a - b)
  const at = (share: number) => latencies[Math.min(latencies.length - 1, Math.floor(latencies.length * share))] ?? NaN
  return { rate: latencies.length / passed, p50: at(0.5), p99: at(0.99), failures }
}

function bodyOf (size: number): Buffer {
  const head = `--${BOUNDARY}\r\ncontent-disposition: form-data; name="description"\r\n\r\nBenchmark\r\n` +
    `--${BOUNDARY}\r\ncontent-disposition: form-data; name="file"; filename="file.bin"\r\n` +
    'content-type: application/octet-stream\r\n\r\n'
  return Buffer.concat([Buffer.from(head), Buffer.alloc(size, 'usher '), Buffer.from(`\r\n--${BOUNDARY}--\r\n`)])
}
