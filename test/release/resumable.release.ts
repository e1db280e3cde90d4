import { createHash, randomBytes, randomInt } from 'node:crypto'
import { once } from 'node:events'
import { request as openRequest } from 'node:http'
import { join } from 'node:path'
import { setTimeout as delay } from 'node:timers/promises'
import t from 'tap'
import { createDatabase } from '../helpers/database.ts'
import { startNginx } from '../helpers/nginx.ts'
import { startNode } from '../helpers/node.ts'
import { findPort } from '../helpers/port.ts'
import { until } from '../helpers/until.ts'

const KILLS = 20
const KILLING_MS = 90_000
const CLIENTS = 4
const MIB = 1024 * 1024
const admin = { email: 'root@example.com', password: 'horse battery staple' }
const cwd = t.testdir()
const settings = {
  DATABASE_URL: await createDatabase(t),
  DATA_DIR: cwd,
  SECRET: 'a secret of many words',
  ADMIN_EMAIL: admin.email,
  ADMIN_PASSWORD: admin.password,
  UPLOAD_MAX_BYTES: `${64 * MIB}`,
  UPLOAD_QUOTA_BYTES: '0',
  TRUST_PROXY: '127.0.0.1',
  LOG_LEVEL: 'silent',
}
const VERSION = { 'tus-resumable': '1.0.0' }
const OFFSET_TYPE = 'application/offset+octet-stream'
const sha256 = (bytes: Uint8Array) => createHash('sha256').update(bytes).digest('hex')

t.test('13.5 a node that is killed during the PATCHes of several clients loses nothing that it has acknowledged', async (t) => {
  // Clients know its port, so the restarted node uses the same one.
  const fixed = { ...settings, PORT: `${await findPort()}` }
  let node = await startNode(t, { cwd, settings: fixed })
  const { url } = node
  const { token } = await node.login(admin)
  const headers = { authorization: `Bearer ${token}`, ...VERSION }
  const counts = { kills: 0, cutOff: 0, resumed: 0, files: 0, bytes: 0, lost: 0, damaged: 0 }
  const others: Record<string, number> = {}
  let patching = 0
  const ending = new AbortController()
  const over = ending.signal

  // Repeats what can be repeated, until the node answers.
  async function ask (path: string, init: RequestInit = {}): Promise<Response> {
    for (;;) {
      try {
        const response = await fetch(new URL(path, url), { ...init, headers: { ...headers, ...init.headers } })
        if (response.status < 500) return response
        await response.body?.cancel()
      } catch {}
      await delay(20)
    }
  }

  // Returns the offset that the node acknowledges, or undefined if no response has arrived.
  async function append (path: string, offset: number, bytes: Uint8Array<ArrayBuffer>): Promise<number | undefined> {
    patching++
    try {
      const response = await fetch(new URL(path, url), {
        method: 'PATCH',
        headers: { ...headers, 'content-type': OFFSET_TYPE, 'upload-offset': `${offset}` },
        body: bytes,
      })
      const acknowledged = Number(response.headers.get('upload-offset'))
      await response.arrayBuffer()
      if (response.ok) return acknowledged
      others[response.status] = (others[response.status] ?? 0) + 1
    } catch {
      counts.cutOff++
    } finally {
      patching--
    }
    return undefined
  }

  async function uploadOne (): Promise<void> {
    const content = randomBytes(randomInt(4 * MIB, 20 * MIB))
    const { headers: { location } } = await create(content.length)
    let acknowledged = 0
    let offset = 0
    while (offset < content.length) {
      const size = randomInt(64 * 1024, 10 * MIB)
      const now = await append(location, offset, content.subarray(offset, offset + size))
      if (now !== undefined) {
        offset = acknowledged = now
        continue
      }
      const state = await ask(location, { method: 'HEAD' })
      offset = Number(state.headers.get('upload-offset'))
      if (state.status !== 200 || offset < acknowledged) {
        counts.lost++
        return
      }
      counts.resumed++
      acknowledged = offset
    }
    const { upload } = await (await ask(location)).json() as { upload: { id: string, sha256: string } }
    const stored = await download(upload.id)
    if (upload.sha256 !== sha256(content) || sha256(stored) !== upload.sha256) counts.damaged++
    counts.files++
    counts.bytes += content.length
    await ask(`/api/uploads/${upload.id}`, { method: 'DELETE' })
  }

  async function create (length: number): Promise<{ headers: { location: string } }> {
    const response = await ask('/api/uploads/resumable', {
      method: 'POST', headers: { 'upload-length': `${length}`, 'idempotency-key': crypto.randomUUID() },
    })
    if (response.status !== 201) throw new Error(`create: ${response.status} ${await response.text()}`)
    await response.arrayBuffer()
    return { headers: { location: response.headers.get('location')! } }
  }

  async function download (id: string): Promise<Uint8Array> {
    for (;;) {
      try {
        return new Uint8Array(await (await ask(`/api/uploads/${id}`)).arrayBuffer())
      } catch {}
    }
  }

  const clients = Array.from({ length: CLIENTS }, async () => { while (!over.aborted) await uploadOne() })
  const end = performance.now() + KILLING_MS
  while (counts.kills < KILLS && performance.now() < end) {
    await delay(randomInt(50, 1500))
    await until('PATCHes are under way', () => patching > 1)
    node.child.kill('SIGKILL')
    await node.ended
    counts.kills++
    node = await startNode(t, { cwd, settings: fixed })
  }
  ending.abort()
  await Promise.all(clients)
  t.comment({ ...counts, others })
  t.match(counts, { lost: 0, damaged: 0 })
  t.strictSame(others, {}, 'no PATCH was rejected')
  t.ok(counts.kills > 0 && counts.cutOff > 0 && counts.resumed > 0, 'PATCHes were cut off and resumed')
})

t.test('13.5 behind nginx the bytes of a PATCH arrive before its end, and it is resumed where it was cut off', async (t) => {
  const nodes = [await startNode(t, { cwd, settings }), await startNode(t, { cwd, settings })]
  const url = await startNginx(t, join(cwd, 'nginx'), nodes)
  const { token } = await nodes[0]!.login(admin)
  const headers = { authorization: `Bearer ${token}`, ...VERSION }
  const content = randomBytes(20 * MIB)
  const created = await fetch(`${url}/api/uploads/resumable`, {
    method: 'POST', headers: { ...headers, 'upload-length': `${content.length}` },
  })
  t.equal(created.status, 201, await created.text())
  const address = new URL(created.headers.get('location')!, url)
  const offset = async () =>
    Number((await fetch(address, { method: 'HEAD', headers })).headers.get('upload-offset'))

  const sending = openRequest(address, {
    method: 'PATCH',
    agent: false,
    headers: {
      ...headers, 'content-type': OFFSET_TYPE, 'upload-offset': '0', 'content-length': content.length,
    },
  })
  const failed = once(sending, 'error')
  sending.write(content.subarray(0, 10 * MIB))
  await until('bytes are stored of a PATCH that has not ended', async () => await offset() >= 8 * MIB)
  sending.destroy(new Error('cut off'))
  await failed

  // What had arrived when the connection was cut off may be recorded after the offset was read.
  let last = await resume()
  while (last.status === 409) last = await resume()
  t.equal(last.status, 200)
  const upload = await last.json() as { id: string, size: number, sha256: string }
  t.match(upload, { size: content.length, sha256: sha256(content) })
  const stored = new Uint8Array(await (await fetch(`${url}/api/uploads/${upload.id}`, { headers })).arrayBuffer())
  t.equal(sha256(stored), sha256(content))

  async function resume (): Promise<Response> {
    const from = await offset()
    return fetch(address, {
      method: 'PATCH',
      headers: { ...headers, 'content-type': OFFSET_TYPE, 'upload-offset': `${from}` },
      body: content.subarray(from),
    })
  }
})
