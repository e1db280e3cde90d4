// Uploads a large file to a node and watches the node's memory, which must not grow with the file (contract 5.4).
// Prints the figures and exits with 1 if the growth exceeds the limit. Usage: `node bench/upload-memory.ts [--mebibytes
// 1024] [--limit 50]`.
import { randomBytes } from 'node:crypto'
import { mkdtemp, readFile, rm } from 'node:fs/promises'
import { request } from 'node:http'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { Readable } from 'node:stream'
import { json } from 'node:stream/consumers'
import { pipeline } from 'node:stream/promises'
import { parseArgs } from 'node:util'
import { startEmbedded } from '../node/embedded/server.ts'
import { login, startServer } from './servers.ts'

const MIB = 1024 * 1024
const BOUNDARY = 'usher-bench'
const { values } =
  parseArgs({ options: { mebibytes: { type: 'string', default: '1024' }, limit: { type: 'string', default: '50' } } })
const mebibytes = Number(values.mebibytes)

const folder = await mkdtemp(join(tmpdir(), 'usher-bench-'))
const database = await startEmbedded({ dataDir: folder })
try {
  const node = await startServer('usher', {
    DATABASE_URL: database.url,
    UPLOADS_DIR: join(folder, 'uploads'),
    UPLOAD_MAX_BYTES: `${mebibytes * MIB}`,
    NODE_ENV: 'production',
  })
  try {
    const token = await login(node.url)
    const pid = node.process.pid!
    // A few small uploads allocate the memory that the node needs in any case.
    for (let index = 0; index < 20; index++) await upload(node.url, token, 8)
    const before = await residentMebibytes(pid)
    let peak = before
    const watch = setInterval(async () => { peak = Math.max(peak, await residentMebibytes(pid)) }, 50)
    const started = performance.now()
    const { size, fileUrl } = await upload(node.url, token, mebibytes)
    const seconds = (performance.now() - started) / 1000
    clearInterval(watch)
    await download(`${node.url}${fileUrl}`)
    const after = await residentMebibytes(pid)
    const growth = Math.max(peak, after) - before
    console.log(`${size / MIB} MiB in ${seconds.toFixed(1)} s, ${(mebibytes / seconds).toFixed(0)} MiB/s`)
    console.log(
      `resident: ${before.toFixed(0)} MiB before, ${peak.toFixed(0)} MiB at most, ${after.toFixed(0)} MiB after the download`
    )
    console.log(`growth: ${growth.toFixed(1)} MiB, at most ${values.limit} allowed`)
    if (size !== mebibytes * MIB || growth > Number(values.limit)) process.exitCode = 1
  } finally {
    await node.stop()
  }
} finally {
  await database.stop()
  await rm(folder, { recursive: true, force: true })
}

async function upload (url: string, token: string, mebibytes: number): Promise<{ size: number, fileUrl: string }> {
  const outgoing = request(`${url}/api/uploads`, {
    method: 'POST',
    headers: { authorization: `Bearer ${token}`, 'content-type': `multipart/form-data; boundary=${BOUNDARY}` },
  })
  const answer = new Promise<{ size: number, fileUrl: string }>((resolve, reject) => {
    outgoing.on('response', (response) => resolve(json(response) as Promise<{ size: number, fileUrl: string }>)).on(
      'error', reject
    )
  })
  await pipeline(Readable.from(form(mebibytes)), outgoing)
  return answer
}

function * form (mebibytes: number): Generator<Buffer> {
  yield Buffer.from(`--${BOUNDARY}\r\nContent-Disposition: form-data; name="description"\r\n\r\nLarge\r\n`)
  yield Buffer.from(`--${BOUNDARY}\r\nContent-Disposition: form-data; name="file"; filename="large.bin"\r\n\r\n`)
  const chunk = randomBytes(MIB)
  for (let index = 0; index < mebibytes; index++) yield chunk
  yield Buffer.from(`\r\n--${BOUNDARY}--\r\n`)
}

async function download (url: string): Promise<void> {
  const { body } = await fetch(url)
  await body!.pipeTo(new WritableStream())
}

// The file /proc/<pid>/status only exists on Linux.
async function residentMebibytes (pid: number): Promise<number> {
  const status = await readFile(`/proc/${pid}/status`, 'utf8')
  return Number(/^VmRSS:\s+(\d+) kB$/m.exec(status)![1]) / 1024
}
