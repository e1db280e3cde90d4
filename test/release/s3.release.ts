import { execFile, execFileSync } from 'node:child_process'
import { createHash, randomBytes, randomUUID } from 'node:crypto'
import { readFileSync } from 'node:fs'
import { once } from 'node:events'
import { request as sendRequest, type IncomingMessage } from 'node:http'
import { fileURLToPath } from 'node:url'
import { setTimeout as delay } from 'node:timers/promises'
import t, { type Test } from 'tap'
import { createRequests } from '../../plugins/uploads/s3/requests.ts'
import { createS3 } from '../../plugins/uploads/s3/index.ts'
import { PART_BYTES } from '../../plugins/uploads/s3/writing.ts'
import { DEADLINES } from '../../schema/options/deadlines.ts'
import type { S3Options } from '../../schema/options/s3.ts'
import { FACTOR } from '../helpers/deadlines.ts'
import { startDatabase } from '../helpers/database.ts'
import { startNode, stopNode, type ServingNode } from '../helpers/node.ts'
import { findPort } from '../helpers/port.ts'
import { openSql } from '../helpers/sql.ts'
import { temporaryFolder } from '../helpers/temporary-folder.ts'
import { fieldPart, FORM, filePart, END } from '../helpers/uploads.ts'

const KILLS = Number(process.env['S3_KILLS'] ?? 50)
const CUTS = 10
const MEMORY_GIB = Number(process.env['S3_MEMORY_GIB'] ?? 2)
const MIB = 1024 * 1024
const admin = { email: 'root@example.com', password: 'horse battery staple' }
const program = fileURLToPath(new URL('../../node/server.ts', import.meta.url))
const script = fileURLToPath(new URL('../../scripts/radosgw.sh', import.meta.url))

const port = await findPort()
const place = temporaryFolder()
execFileSync(script, ['start', place, String(port)], { stdio: ['ignore', 'ignore', 'inherit'] })
// Before the folder is removed, which has the ids of its processes.
process.prependOnceListener('exit', () => execFileSync(script, ['stop', place]))

/** Creates a bucket, and returns its options and settings, and the backend of a node that uses it. */
async function openBucket (t: Test) {
  const s3: S3Options = {
    endpoint: `http://127.0.0.1:${port}`,
    bucket: `usher-${randomUUID()}`,
    region: 'us-east-1',
    accessKeyId: 'USHERKEY',
    secretAccessKey: 'ushersecret0123456789',
    prefix: 'a/b',
    pathStyle: true,
    redirectSeconds: 0,
  }
  const counts = { attempt () {}, failure () {} }
  const requests = createRequests({ s3, timeoutMs: 10_000, connectMs: 5000, counts })
  await requests.send({ operation: 'put', method: 'PUT' }, () => {})
  const backend = createS3(s3, {
    uploadsDir: temporaryFolder(), uploadMaxBytes: 1, uploadMinBytesPerSecond: 1024, deadlines: DEADLINES,
  })
  t.teardown(() => {
    requests.close()
    backend.close()
  })
  const settings = {
    S3_ENDPOINT: s3.endpoint,
    S3_BUCKET: s3.bucket,
    S3_ACCESS_KEY_ID: s3.accessKeyId,
    S3_SECRET_ACCESS_KEY: s3.secretAccessKey,
    S3_PREFIX: s3.prefix,
    UPLOAD_MAX_BYTES: String(4 * 1024 * MIB),
    UPLOAD_QUOTA_BYTES: '0',
    LOG_LEVEL: 'warn',
  }
  return { s3, backend, settings, requests }
}

async function list (backend: ReturnType<typeof createS3>, stage: 'temporary' | 'published'): Promise<string[]> {
  const ids: string[] = []
  for await (const batch of backend.listOld(stage, -Infinity, new AbortController().signal)) {
    ids.push(...batch.map(({ id }) => id))
  }
  return ids.sort()
}

const run = (args: string[], settings: Record<string, string>, cwd: string) => {
  const env = { PATH: process.env['PATH'], ...settings }
  return execFileSync(process.execPath, [program, ...args], { cwd, env, encoding: 'utf8' })
}

async function post (node: ServingNode, headers: Record<string, string>, content: Buffer, visibility = 'public') {
  const body = Buffer.concat([filePart(content), fieldPart('description', 'x'), fieldPart('visibility', visibility), END])
  const response =
    await node.fetch('/api/uploads', { method: 'POST', headers: { ...headers, 'content-type': FORM }, body })
  if (response.status !== 200) throw new Error(`${response.status} ${await response.text()}`)
  return await response.json() as { id: string, fileUrl: string, sha256: string }
}

const bytesOf = async (node: ServingNode, path: string, headers: Record<string, string> = {}) =>
  Buffer.from(await (await node.fetch(path, { headers })).arrayBuffer())

t.test('13.3 uploads in radosgw: sizes, ranges, private files, links, redirects, deletion, move, backup and restore', async (t) => {
  const { backend, settings, requests } = await openBucket(t)
  const { url: DATABASE_URL, dataDir: cwd } = await startDatabase(t)
  const all = { ...settings, DATABASE_URL, ADMIN_EMAIL: admin.email, ADMIN_PASSWORD: admin.password }
  const node = await startNode(t, { cwd, settings: all })
  const { headers: { authorization = '' } } = await node.login(admin)
  const headers = { authorization }
  const contents = [0, 1, 70_000, PART_BYTES, PART_BYTES + 1, 20 * MIB].map((size) => randomBytes(size))
  const uploads = []
  for (const content of contents) uploads.push(await post(node, headers, content))
  for (const [index, { fileUrl }] of uploads.entries()) {
    t.ok((await bytesOf(node, fileUrl)).equals(contents[index]!))
  }
  const range = { range: `bytes=${PART_BYTES - 5}-${PART_BYTES + 5}` }
  t.ok((await bytesOf(node, uploads[5]!.fileUrl, range)).equals(contents[5]!.subarray(PART_BYTES - 5, PART_BYTES + 6)))

  const hidden = await post(node, headers, Buffer.from('private'), 'private')
  t.equal((await node.fetch(hidden.fileUrl)).status, 404)
  const link = await (await node.fetch(`${hidden.fileUrl}/links`, {
    method: 'POST', headers: { ...headers, 'content-type': 'application/json' }, body: '{"seconds":60}',
  })).json() as { url: string }
  t.equal(String(await bytesOf(node, link.url)), 'private')
  await t.rejects(requests.send({
    operation: 'put',
    method: 'PUT',
    key: 'wrong',
    body: { size: 1, sha256: createHash('sha256').digest('hex'), open: () => [Buffer.from('x')].values() as never },
    isRepeated: false,
  }, () => {}), { message: /400 XAmzContentSHA256Mismatch/ }, 'radosgw refuses bytes that differ from their hash')

  run(['backup', 'b.tar.gz'], all, cwd)
  const target = await startDatabase(t, temporaryFolder())
  const folder = { DATABASE_URL: target.url }
  run(['restore', `${cwd}/b.tar.gz`, '--yes'], folder, target.dataDir)
  const second = await openBucket(t)
  run(['backup', 'c.tar.gz'], folder, target.dataDir)
  run(['restore', `${target.dataDir}/c.tar.gz`, '--yes', '--replace'], { ...folder, ...second.settings }, temporaryFolder())
  t.same(await list(second.backend, 'published'), await list(backend, 'published'))
  t.same(await list(second.backend, 'temporary'), [])

  const redirecting = await startNode(t, { cwd, settings: { ...all, S3_REDIRECT_SECONDS: '30' } })
  const redirected = await redirecting.fetch(uploads[4]!.fileUrl, { redirect: 'manual' })
  t.equal(redirected.status, 307)
  t.ok((await bytesOf(redirecting, uploads[4]!.fileUrl)).equals(contents[4]!))
  await stopNode(redirecting)

  // Downloads and uploads go on during the move.
  const over = new AbortController()
  const failures: unknown[] = []
  const reading = (async () => {
    while (!over.signal.aborted) {
      for (const [index, { fileUrl }] of uploads.entries()) {
        const isRight = (await bytesOf(node, fileUrl)).equals(contents[index]!)
        if (!isRight) failures.push(fileUrl)
      }
    }
  })()
  const move = async () => JSON.parse(await new Promise<string>((resolve, reject) => execFile(
    process.execPath, [program, 'uploads', 'move', '--to', 'folder', '--yes', '--json'],
    { cwd, env: { PATH: process.env['PATH'], ...all } }, (error, out) => error ? reject(error) : resolve(out)))) as
      { files: number, left: number, damagedIds: string[] }
  // They still go to the old place.
  const writing = (async () => {
    for (let count = 0; count < 50; count++) {
      const content = randomBytes(10_000)
      uploads.push(await post(node, headers, content))
      contents.push(content)
    }
  })()
  const first = await move()
  await writing
  const rest = await move()
  over.abort()
  await reading
  t.same(failures, [])
  t.equal(first.files + rest.files, 57)
  t.same([first.left, rest.left, first.damagedIds, rest.damagedIds], [0, 0, [], []])
  t.comment(`${first.files} files moved at first, ${rest.files} that were uploaded meanwhile`)
  t.same(await list(backend, 'published'), [])
  for (const [index, { fileUrl }] of uploads.entries()) {
    t.ok((await bytesOf(node, fileUrl)).equals(contents[index]!))
    t.equal((await node.fetch(fileUrl, { method: 'DELETE', headers })).status, 204)
  }
})

t.test(`13.3 ${KILLS} times kill -9 during uploads and deletions: nothing acknowledged is lost, and nothing is left`, async (t) => {
  const { backend, settings } = await openBucket(t)
  const { url: DATABASE_URL, dataDir: cwd } = await startDatabase(t)
  const nodePort = await findPort()
  const all = {
    ...settings, DATABASE_URL, ADMIN_EMAIL: admin.email, ADMIN_PASSWORD: admin.password, PORT: String(nodePort),
  }
  await stopNode(await startNode(t, { cwd, settings: all }))
  const kept = new Map<string, string>()
  // Deletions whose response did not arrive may have happened.
  const uncertain = new Set<string>()
  let acknowledged = 0
  let headers: Record<string, string> | undefined
  const large = randomBytes(2 * PART_BYTES + 100)
  for (let kill = 0; kill < KILLS; kill++) {
    const node = await startNode(t, { cwd, settings: all })
    headers ??= { authorization: (await node.login(admin)).headers['authorization']! }
    const writing = Array.from({ length: 4 }, async (_, index) => {
      for (;;) {
        const content = index === 0 ? large : randomBytes(1 + Math.floor(Math.random() * 100_000))
        const { id, sha256 } = await post(node, headers!, content)
        kept.set(id, sha256)
        acknowledged++
        const [oldest] = kept.keys()
        if (kept.size < 10 || oldest === undefined) continue
        kept.delete(oldest)
        uncertain.add(oldest)
        await node.fetch(`/api/uploads/${oldest}`, { method: 'DELETE', headers: headers! })
        uncertain.delete(oldest)
      }
    }).map((work) => work.catch(() => {}))
    await delay(Math.random() * 700)
    node.child.kill('SIGKILL')
    await node.ended
    await Promise.all(writing)
  }
  const node = await startNode(t, { cwd, settings: all })
  const strays = JSON.parse(run(['uploads', 'clean', '--yes', '--older-than', '0', '--json'], all, cwd)) as { removed: number }
  const sql = openSql(t, { options: { databaseUrl: DATABASE_URL, schema: 'usher' } })
  for (;;) {
    const [{ count }] = await sql<[{ count: number }]>`select count(*)::int from uploads where user_id is null`
    if (count === 0) break
    await delay(1000)
  }
  const records = (await sql<{ id: string, sha256: string }[]>`select id, sha256 from uploads order by id`)
  for (const [id] of kept) t.ok(records.some((record) => record.id === id), 'an acknowledged upload has its record')
  for (const { id, sha256 } of records) {
    const bytes = await bytesOf(node, `/api/uploads/${id}`)
    if (createHash('sha256').update(bytes).digest('hex') !== sha256) t.fail(`the bytes of ${id}`)
  }
  t.same(await list(backend, 'published'), records.map(({ id }) => id), 'no object without a record')
  t.same(await list(backend, 'temporary'), [], 'no parts')
  t.comment(`${KILLS} kills, ${acknowledged} acknowledged uploads, ${records.length} kept, ${strays.removed} swept`)
})

t.test('13.3 a revoked link, an ended session and a deletion cut downloads of radosgw off', async (t) => {
  const { settings } = await openBucket(t)
  const { url: DATABASE_URL, dataDir: cwd } = await startDatabase(t)
  const all = { ...settings, DATABASE_URL, ADMIN_EMAIL: admin.email, ADMIN_PASSWORD: admin.password }
  const node = await startNode(t, { cwd, settings: all })
  const { headers: { authorization = '' } } = await node.login(admin)
  const headers = { authorization }
  const json = { ...headers, 'content-type': 'application/json' }
  const content = randomBytes(32 * MIB)
  const send = async (path: string, method: string, headers: Record<string, string>, body?: string) => {
    const response = await node.fetch(path, { method, headers, ...body !== undefined && { body } })
    if (!response.ok) throw new Error(`${method} ${path}: ${response.status}`)
    return response
  }
  const times: Record<string, number[]> = { link: [], session: [], deletion: [] }
  const cut = async (path: string, headers: Record<string, string>, end: () => Promise<unknown>) => {
    const sending = sendRequest(`${node.url}${path}`, { headers, agent: false }).end()
    const [response] = await once(sending, 'response') as [IncomingMessage]
    if (response.statusCode !== 200) throw new Error(`GET ${path}: ${response.statusCode}`)
    const since = performance.now()
    const isCut = once(response, 'error')
    await end()
    response.resume()
    await isCut
    return performance.now() - since
  }
  for (let round = 0; round < CUTS; round++) {
    const { fileUrl } = await post(node, headers, content, 'private')
    const link = await (await send(`${fileUrl}/links`, 'POST', json, '{"seconds":600}')).json() as { id: string, url: string }
    times['link']!.push(await cut(link.url, {}, () => send(`${fileUrl}/links/${link.id}`, 'DELETE', headers)))
    const other = await node.login(admin)
    times['session']!.push(await cut(fileUrl, { authorization: other.headers['authorization']! }, () =>
      send('/api/auth/logout', 'POST', { authorization: other.headers['authorization']!, cookie: other.cookie })))
    times['deletion']!.push(await cut(fileUrl, headers, () => send(fileUrl, 'DELETE', headers)))
  }
  for (const [name, measured] of Object.entries(times)) {
    const sorted = measured.sort((one, other) => one - other)
    t.comment(`${name}: ms from the request to the end of the download: ${sorted.map((ms) => ms.toFixed()).join(' ')}`)
    t.ok(sorted[Math.floor(sorted.length / 2)]! < 100 * FACTOR, name)
  }
})

t.test(`13.3 memory is flat for ${MEMORY_GIB} GiB up and down`, async (t) => {
  const { settings } = await openBucket(t)
  const { url: DATABASE_URL, dataDir: cwd } = await startDatabase(t)
  const all = { ...settings, DATABASE_URL, ADMIN_EMAIL: admin.email, ADMIN_PASSWORD: admin.password }
  const node = await startNode(t, { cwd, settings: all })
  const { headers: { authorization = '' } } = await node.login(admin)
  await post(node, { authorization }, randomBytes(20 * MIB))
  const memory = () => Number(/VmHWM:\s+(\d+)/.exec(readFileSync(`/proc/${node.child.pid}/status`, 'utf8'))![1]) / 1024
  const before = memory()
  const chunk = randomBytes(MIB)
  const head = filePart('').subarray(0, -2)
  const request = sendRequest(`${node.url}/api/uploads`, {
    method: 'POST', headers: { authorization, 'content-type': FORM },
  })
  const answered = new Promise<string>((resolve, reject) => request.on('error', reject).on('response', (response) => {
    let body = ''
    response.setEncoding('utf8').on('data', (text) => { body += text }).on('end', () => resolve(body))
  }))
  request.write(head)
  for (let sent = 0; sent < MEMORY_GIB * 1024; sent++) {
    if (!request.write(chunk)) await new Promise((resolve) => request.once('drain', resolve))
  }
  request.end(Buffer.concat([Buffer.from('\r\n'), fieldPart('description', 'x'), END]))
  const { fileUrl, size } = JSON.parse(await answered) as { fileUrl: string, size: number }
  t.equal(size, MEMORY_GIB * 1024 * MIB)
  const up = memory()
  let length = 0
  for await (const bytes of (await node.fetch(fileUrl)).body!) length += bytes.length
  t.equal(length, size)
  const down = memory()
  t.comment(`peak RSS in MiB: ${before.toFixed()} before, ${up.toFixed()} after the upload, ${down.toFixed()} after the download`)
  t.ok(down - before < 96, 'less than 96 MiB more')
})
