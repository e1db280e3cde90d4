import { execFile } from 'node:child_process'
import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { promisify } from 'node:util'
import { median, round, type Report } from './report.ts'
import { login, type Server } from './servers.ts'
import type { Stage } from './stage.ts'
import type { Transfer, Transferred } from './transfer.ts'

const KIB = 1024
const CONNECTIONS = 8
const works = {
  'upload of 1 MiB': { method: 'POST', size: 1024 * KIB },
  'download of 1 MiB': { method: 'GET', size: 1024 * KIB },
  'download of 64 KiB': { method: 'GET', size: 64 * KIB },
} as const

/**
 * Measures uploads and downloads, compared with a server that only writes and reads files, and with one that is written
 * plainly. With `S3_ENDPOINT` and its companions in the environment, another Usher stores them there.
 */
export async function uploads (stage: Stage): Promise<Report> {
  const { rounds, seconds } = stage.options
  await stage.users()
  const folder = await mkdtemp(join(tmpdir(), 'usher-bench-files-'))
  const servers: Server[] = []
  try {
    const env = { FILES_DIR: folder }
    servers.push(await stage.start('files-ceiling', { env }), await stage.start('files-baseline', { env }))
    servers.push(await stage.start('usher', { env: { S3_ENDPOINT: '' } }))
    if (process.env['S3_ENDPOINT']) servers.push({ ...await stage.start('usher'), name: 'usher, S3' })
    const headers = { authorization: `Bearer ${await login(servers[2]!.url)}` }
    const figures = []
    for (const [work, { method, size }] of Object.entries(works)) {
      const targets = await Promise.all(servers.map(async ({ name, url }) => ({
        name, url: method === 'POST' ? `${url}/api/uploads` : await createFile(url, headers, size),
      })))
      const samples = new Map(servers.map(({ name }) => [name, [] as Transferred[]]))
      for (let index = -1; index < rounds; index++) {
        for (const { name, url } of targets) {
          const sample = await transfer({
            url, method, headers, ...method === 'POST' && { size }, seconds: index < 0 ? 1 : seconds, connections: CONNECTIONS,
          })
          if (index >= 0) samples.get(name)!.push(sample)
        }
      }
      const rateOf = (name: string) => median(samples.get(name)!.map(({ rate }) => rate))
      for (const [server, all] of samples) {
        figures.push({
          work,
          server,
          rate: rateOf(server),
          p99: median(all.map(({ p99 }) => p99)),
          failures: all.reduce((sum, { failures }) => sum + failures, 0),
          againstCeiling: rateOf(server) / rateOf('files-ceiling'),
          againstBaseline: rateOf(server) / rateOf('files-baseline'),
        })
      }
    }
    return {
      title: 'Uploads and downloads',
      how: `${CONNECTIONS} connections, ${rounds} rounds of ${seconds} s in turn`,
      columns: ['work', 'server', 'requests/s', 'p99 ms', 'failures', 'of the ceiling', 'of the baseline'],
      rows: figures.map(({ work, server, rate, p99, failures, againstCeiling, againstBaseline }) => [
        work, server, round(rate), round(p99, 1), failures, round(againstCeiling, 2), round(againstBaseline, 2),
      ]),
      figures,
    }
  } finally {
    for (const server of servers) await server.stop()
    await rm(folder, { recursive: true, force: true })
  }
}

// Uploads a file and returns its address.
async function createFile (url: string, headers: Record<string, string>, size: number): Promise<string> {
  const body = new FormData()
  body.append('description', 'Benchmark')
  body.append('file', new Blob([Buffer.alloc(size, 'usher ')]), 'file.bin')
  const response = await fetch(`${url}/api/uploads`, { method: 'POST', headers, body })
  if (!response.ok) throw new Error(`${url} has answered ${response.status}: ${await response.text()}`)
  const { fileUrl } = await response.json() as { fileUrl: string }
  return new URL(fileUrl, url).href
}

async function transfer (given: Transfer): Promise<Transferred> {
  const script = fileURLToPath(new URL('transfer.ts', import.meta.url))
  const { stdout } = await promisify(execFile)(process.execPath, [script, JSON.stringify(given)])
  return JSON.parse(stdout) as Transferred
}
