import { once } from 'node:events'
import { get, type IncomingMessage } from 'node:http'
import t from 'tap'
import { createDatabase } from '../helpers/database.ts'
import { startNode, type ServingNode } from '../helpers/node.ts'

const ROUNDS = 25
// So much that a round ends long before a download of it.
const BYTES = 150 * 1024 * 1024
const admin = { email: 'root@example.com', password: 'horse battery staple' }
const cwd = t.testdir()
const settings = {
  DATABASE_URL: await createDatabase(t),
  DATA_DIR: cwd,
  SECRET: 'a secret of many words',
  ADMIN_EMAIL: admin.email,
  ADMIN_PASSWORD: admin.password,
  UPLOAD_MAX_BYTES: `${2 * BYTES}`,
  ACCESS_LOG: '1',
  LOG_LEVEL: 'trace',
}

/** Begins a download and reads it as fast as it comes. Resolves when the first bytes have arrived. */
async function begin (node: ServingNode, url: string) {
  const request = get(new URL(url, node.url), { agent: false })
  const [response] = await once(request, 'response') as [IncomingMessage]
  let received = 0
  const closed = new Promise<number>((resolve) => {
    response.on('close', () => resolve(performance.now())).on('error', () => {})
  })
  response.on('data', ({ length }: Buffer) => { received += length })
  await once(response, 'data')
  return { closed, received: () => received }
}

t.test('13.2 a revoked link stops a download at full speed on another node, and no log has its secret', async (t) => {
  const [one, two] = [await startNode(t, { cwd, settings }), await startNode(t, { cwd, settings })]
  const { token } = await one.login(admin)
  const headers = { authorization: `Bearer ${token}` }
  const form = new FormData()
  form.append('description', 'Large')
  form.append('visibility', 'private')
  form.append('file', new Blob([new Uint8Array(BYTES)]), 'large.bin')
  const uploaded = await one.fetch('/api/uploads', { method: 'POST', headers, body: form })
  const { id } = await uploaded.json() as { id: string }
  t.equal(uploaded.status, 200)
  const delays: number[] = []
  const secrets: string[] = []
  for (let round = 0; round < ROUNDS; round++) {
    const created = await one.fetch(`/api/uploads/${id}/links`, {
      method: 'POST',
      headers: { ...headers, 'content-type': 'application/json' },
      body: JSON.stringify({ seconds: 600 }),
    })
    t.equal(created.status, 201)
    const link = await created.json() as { id: string, url: string }
    secrets.push(link.url.split('=')[1]!)
    const download = await begin(two, link.url)
    const revoked = await one.fetch(`/api/uploads/${id}/links/${link.id}`, { method: 'DELETE', headers })
    const at = performance.now()
    t.equal(revoked.status, 204)
    delays.push(await download.closed - at)
    t.ok(download.received() < BYTES, `${download.received()} bytes`)
    t.equal((await two.fetch(link.url)).status, 404)
  }
  delays.sort((one, other) => one - other)
  const [median, max] = [delays[Math.floor(ROUNDS / 2)]!, delays.at(-1)!]
  t.comment(`after the response: median ${median.toFixed(1)} ms, most ${max.toFixed(1)} ms`)
  // The client drains what the kernel has buffered, and shares the machine with both nodes.
  t.ok(median < 100, `${median} ms`)
  for (const { stdout, stderr } of [one, two]) {
    t.match(stdout, '/api/uploads/')
    t.notOk(secrets.some((secret) => stdout.includes(secret) || stderr.includes(secret)), 'the log has no secret')
  }
})
