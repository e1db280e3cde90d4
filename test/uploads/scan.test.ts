import { randomBytes } from 'node:crypto'
import { readdirSync } from 'node:fs'
import type { Readable } from 'node:stream'
import { buffer } from 'node:stream/consumers'
import { setTimeout as delay } from 'node:timers/promises'
import t, { type Test } from 'tap'
import type { Hooks } from '../../app.ts'
import { PART_BYTES } from '../../plugins/uploads/s3/writing.ts'
import type { UsherOptions } from '../../schema/options/options.ts'
import { createUsher, type TestUsher } from '../helpers/app.ts'
import { startFakeClamd } from '../helpers/fake-clamd.ts'
import { startFakeS3 } from '../helpers/fake-s3.ts'
import { openSql } from '../helpers/sql.ts'
import { until } from '../helpers/until.ts'
import { fieldPart, filePart, leftovers, leftoversInBucket, post, upload } from '../helpers/uploads.ts'

const VERSION = { 'tus-resumable': '1.0.0' }
const MIB = 1024 * 1024
type Hook = NonNullable<Hooks['beforeUploadPublish']>

// Long enough for a busy machine.
const open = (t: Test, beforeUploadPublish?: Hook, options: UsherOptions = {}) =>
  createUsher(t, { hooks: { beforeUploadPublish }, scan: { seconds: 300 }, uploadMaxBytes: 64 * MIB, ...options })

const send = (usher: TestUsher, content: string | Buffer) =>
  post(usher, [filePart(content), fieldPart('description', 'Something')])

// Uploads bytes in several requests. Returns the last response.
async function resume ({ inject, admin: { headers } }: TestUsher, ...parts: (string | Buffer)[]) {
  const length = parts.reduce((sum, part) => sum + part.length, 0)
  const begun = await inject('POST', '/api/uploads/resumable', {
    headers: { ...headers, ...VERSION, 'upload-length': `${length}` },
  })
  const url = String(begun.headers.location)
  const append = (offset: number, payload: string | Buffer) => inject('PATCH', url, {
    headers: { ...headers, ...VERSION, 'upload-offset': `${offset}`, 'content-type': 'application/offset+octet-stream' },
    payload,
  })
  let offset = 0
  let response = begun
  for (const part of parts) {
    response = await append(offset, part)
    offset += part.length
  }
  return { url, response, append }
}

const partsOf = ({ options }: TestUsher) => readdirSync(`${options.uploadsDir}/parts`).length
const usageOf = async ({ inject, admin: { headers } }: TestUsher) =>
  (await inject('GET', '/api/uploads/usage', { headers })).json()
const unfinishedOf = async ({ inject, admin: { headers } }: TestUsher) =>
  (await inject('GET', '/api/uploads/resumable', { headers: { ...headers, ...VERSION } })).json()

const reject = () => {
  throw Object.assign(new Error('not here'), { statusCode: 422, code: 'NOT_HERE' })
}

t.test('23.3 a hook gets the bytes of every upload before anybody can read them', async (t) => {
  const seen: object[] = []
  const usher = await open(t, async (bytes, { filename, size }, { via, actor }) => {
    const left = await leftovers(usher, sql)
    seen.push({ bytes: (await buffer(bytes)).toString(), filename, size, left, via, actor: actor?.id })
  })
  const sql = openSql(t, usher)
  for (const text of ['a file', '']) {
    const { fileUrl } = await upload(usher, text, '../name.txt')
    t.equal((await usher.inject('GET', fileUrl)).body, text)
  }
  const { response } = await resume(usher, 'one part')
  t.equal((await usher.inject('GET', response.json().fileUrl)).body, 'one part')
  const joined = await resume(usher, 'two ', 'parts')
  t.equal((await usher.inject('GET', joined.response.json().fileUrl)).body, 'two parts')
  const of = (bytes: string, filename: string, index: number) => ({
    bytes, filename, size: bytes.length, left: { tmp: 0, files: index, rows: index }, via: 'rest', actor: usher.admin.id,
  })
  t.same(seen, [
    of('a file', 'name.txt', 0), of('', 'name.txt', 1), of('one part', 'file', 2), of('two parts', 'file', 3),
  ])
  t.equal(partsOf(usher), 0, 'and nothing else is left of them')
})

t.test('23.3 a hook need not read all bytes', async (t) => {
  const hooks: Hook[] = [() => {}, async (bytes) => { for await (const chunk of bytes) if (chunk) return }]
  for (const hook of hooks) {
    const usher = await open(t, hook)
    const { fileUrl } = await upload(usher, Buffer.alloc(MIB))
    t.equal((await usher.inject('GET', fileUrl)).rawPayload.length, MIB)
  }
})

t.test('23.3 what a hook rejects leaves nothing, also after the last part of a resumable upload', async (t) => {
  let hook: Hook = reject
  const usher = await open(t, (...given) => hook(...given))
  const sql = openSql(t, usher)
  const isEmpty = async (what: string) => {
    t.same(await leftovers(usher, sql), { tmp: 0, files: 0, rows: 0 }, what)
    t.equal(partsOf(usher), 0, what)
    t.match(await usageOf(usher), { bytes: 0, files: 0 }, what)
    t.same(await unfinishedOf(usher), [], what)
  }
  const rejected = await send(usher, 'bad')
  t.equal(rejected.statusCode, 422)
  t.same(rejected.json(), { error: 'not here', code: 'NOT_HERE' })
  await isEmpty('a form')
  for (const parts of [['bad'], ['very ', 'bad']]) {
    t.equal((await resume(usher, ...parts)).response.statusCode, 422)
    await isEmpty(parts.join())
  }
  for (const broken of [async () => { throw new Error('broken') }, () => false as never]) {
    hook = broken
    t.equal((await send(usher, 'a file')).statusCode, 500)
    await isEmpty('a broken hook')
  }
})

t.test('23.3 what a hook does not answer in time is not published, and can be sent again', async (t) => {
  const aborted: boolean[] = []
  let left: Readable | undefined
  const usher = await open(t, (bytes, _, { signal }) => new Promise(() => {
    left = bytes
    signal.addEventListener('abort', () => aborted.push(signal.aborted))
  }), { scan: { seconds: 2 } })
  const sql = openSql(t, usher)
  const late = await send(usher, 'a file')
  t.equal(late.statusCode, 503)
  t.match(late.json(), { code: 'SCAN_UNAVAILABLE' })
  t.ok(Number(late.headers['retry-after']) > 0)
  t.same([aborted, left?.destroyed], [[true], true])
  t.same([await leftovers(usher, sql), partsOf(usher)], [{ tmp: 0, files: 0, rows: 0 }, 0])

  const { response } = await resume(usher, 'one', 'two')
  t.equal(response.statusCode, 503)
  t.match(await unfinishedOf(usher), [{ offset: 3, length: 6 }], 'a resumable one continues')
  t.same([await leftovers(usher, sql), partsOf(usher)], [{ tmp: 0, files: 0, rows: 0 }, 1])
})

t.test('23.3 a hook that has no verdict for now keeps what a resumable upload has', async (t) => {
  let fails = true
  const usher = await open(t, () => { if (fails) throw new Error('broken') })
  const { response, append } = await resume(usher, 'one', 'two')
  t.equal(response.statusCode, 500)
  fails = false
  const last = await append(3, 'two')
  t.equal(last.statusCode, 200, last.body)
  t.equal((await usher.inject('GET', last.json().fileUrl)).body, 'onetwo')
  t.equal(partsOf(usher), 0)
})

t.test('23.3 few scans run at once, and the wait for a turn counts', async (t) => {
  const { promise, resolve } = Promise.withResolvers<void>()
  let running = 0
  const usher = await open(t, () => {
    running++
    return promise
  })
  const all = Array.from({ length: 6 }, () => send(usher, 'a file'))
  await until('four scans run', async () => running === 4)
  await delay(100)
  t.equal(running, 4)
  resolve()
  t.same((await Promise.all(all)).map(({ statusCode }) => statusCode), Array(6).fill(200))

  const slow = await open(t, () => new Promise(() => {}), { scan: { seconds: 0.3 } })
  t.same((await Promise.all(all.map(() => send(slow, 'a file')))).map(({ statusCode }) => statusCode), Array(6).fill(503))
})

t.test('23.3 uploads to an S3 are scanned before they are objects that anybody can read', async (t) => {
  let hook: Hook = () => {}
  const store = await startFakeS3(t)
  const usher = await open(t, (...given) => hook(...given), { s3: store.options })
  const large = randomBytes(PART_BYTES + 3)
  const nothing = { objects: 0, uploads: 0, parts: 0 }
  const parts = () => [...store.objects.keys()].filter((key) => key.includes('parts/'))
  for (const content of [Buffer.from('small'), large]) {
    hook = async (bytes) => {
      t.ok((await buffer(bytes)).equals(content))
      t.match(leftoversInBucket(store, usher), nothing)
      reject()
    }
    t.equal((await send(usher, content)).statusCode, 422)
    t.equal((await resume(usher, content)).response.statusCode, 422)
    t.equal((await resume(usher, content.subarray(0, 3), content.subarray(3))).response.statusCode, 422)
    t.same([leftoversInBucket(store, usher), parts()], [nothing, []])
    hook = () => {}
    const { fileUrl } = await upload(usher, content)
    t.ok((await usher.inject('GET', fileUrl)).rawPayload.equals(content))
    t.same([leftoversInBucket(store, usher).uploads, parts()], [0, []])
    await usher.inject('DELETE', fileUrl, { headers: usher.admin.headers })
  }
  store.misbehave(({ method, key }) => method === 'GET' && key.includes('parts/') ? { status: 500, code: 'Broken' } : undefined)
  const unread = await send(usher, 'small')
  t.match([unread.statusCode, unread.json().code], [503, 'STORAGE_UNAVAILABLE'], 'what cannot be read is not accepted')
})

t.test('23.3 a clamd decides about uploads: malware and what is too large are rejected', async (t) => {
  const clamd = await startFakeClamd(t)
  const lines: string[] = []
  const usher = await createUsher(t, { scan: { clamd: clamd.place, seconds: 300 }, uploadMaxBytes: 64 * MIB }, {
    logger: { level: 'warn', stream: { write: (line: string) => { lines.push(line) } } },
  })
  const sql = openSql(t, usher)
  clamd.behave({ answer: (bytes) => bytes.includes('EICAR') ? 'stream: Eicar-Signature FOUND\0' : 'stream: OK\0' })
  for (const content of ['fine', '', Buffer.alloc(3 * MIB)]) {
    const { fileUrl } = await upload(usher, content)
    t.ok((await usher.inject('GET', fileUrl)).rawPayload.equals(Buffer.from(content)))
    await usher.inject('DELETE', fileUrl, { headers: usher.admin.headers })
  }
  const left = async () => [await leftovers(usher, sql), partsOf(usher), await unfinishedOf(usher)]
  const nothing = [{ tmp: 0, files: 0, rows: 0 }, 0, []]
  for (const found of [await send(usher, 'an EICAR file'), (await resume(usher, 'an EIC', 'AR file')).response]) {
    t.equal(found.statusCode, 422)
    t.match(found.json(), { code: 'MALWARE_FOUND' })
    t.same(await left(), nothing)
  }
  t.match(JSON.parse(lines[0]!), { level: 40, found: 'Eicar-Signature', userId: usher.admin.id, sha256: /^[\da-f]{64}$/ })

  const limits = [
    { answer: () => 'stream: OK\0', limit: 1000 },
    { answer: () => 'stream: Heuristics.Limits.Exceeded.MaxFileSize FOUND\0' },
  ]
  for (const behaviour of limits) {
    clamd.behave(behaviour)
    for (const content of ['x'.repeat(1001), Buffer.alloc(3 * MIB)]) {
      const large = await send(usher, content)
      t.match([large.statusCode, large.json().code], [413, 'TOO_LARGE_TO_SCAN'])
    }
  }
  t.same(await left(), nothing)
})

t.test('23.3 without the verdict of a clamd that has all bytes, nothing is published', async (t) => {
  const clamd = await startFakeClamd(t)
  const usher = await open(t, undefined, { scan: { clamd: clamd.place, seconds: 300 } })
  const sql = openSql(t, usher)
  const fails = async (what: string, by = usher) => {
    const response = await send(by, Buffer.alloc(MIB))
    t.match([response.statusCode, response.json().code], [503, 'SCAN_UNAVAILABLE'], what)
    t.ok(Number(response.headers['retry-after']) > 0, what)
    t.same([await leftovers(usher, sql), partsOf(usher)], [{ tmp: 0, files: 0, rows: 0 }, 0], what)
  }
  const texts = [
    '', '\0', 'OK\0', 'stream: ok\0', 'stream: OK', 'stream: OK\n\0', ' stream: OK\0', 'stream: OK\0stream: OK\0',
    'stream: FOUND\0', 'stream: \x01 FOUND\0', 'UNKNOWN COMMAND\0', 'x'.repeat(100_000),
  ]
  for (const text of texts) {
    clamd.behave({ answer: () => text })
    await fails(JSON.stringify(text.slice(0, 30)))
  }
  clamd.behave({ early: 'stream: OK\0', answer: () => 'stream: OK\0' })
  await fails('an answer before it has the bytes')
  const waiting = await createUsher(t, { ...usher.options, scan: { clamd: clamd.place, seconds: 0.3 } })
  clamd.behave({ answer: () => undefined })
  await fails('silence', waiting)
  await clamd.stop()
  await fails('nobody listens')
})

t.test('23.3 with a clamd and a hook, both must accept an upload', async (t) => {
  const clamd = await startFakeClamd(t)
  const seen: string[] = []
  const usher = await open(t, async (bytes) => {
    const text = (await buffer(bytes)).toString()
    seen.push(text)
    if (text === 'not for me') reject()
  }, { scan: { clamd: clamd.place, seconds: 300 } })
  clamd.behave({ answer: (bytes) => bytes.includes('EICAR') ? 'stream: X FOUND\0' : 'stream: OK\0' })
  const statuses = []
  for (const text of ['fine', 'not for me', 'EICAR']) statuses.push((await send(usher, text)).statusCode)
  t.same([statuses, seen], [[200, 422, 422], ['fine', 'not for me']])
})

t.test('23.3 the address of a clamd is a host and a port, or the path of a socket', async (t) => {
  for (const clamd of ['', 'clamd', 'clamd:', 'clamd:0', 'http://clamd:3310', 'clamd:3310/x', ' clamd:3310']) {
    await t.rejects(createUsher(t, { scan: { clamd } }), { message: /scan/ }, clamd)
  }
  for (const clamd of ['clamd:3310', '127.0.0.1:3310', '[::1]:3310', '/run/clamav/clamd.ctl']) {
    await createUsher(t, { scan: { clamd } })
  }
})
