import { once } from 'node:events'
import type { Socket } from 'node:net'
import { setTimeout as delay } from 'node:timers/promises'
import t, { type Test } from 'tap'
import type { UsherOptions } from '../../app.ts'
import { createUsher, type TestUsher } from '../helpers/app.ts'
import { nightly } from '../helpers/nightly.ts'
import { openSql } from '../helpers/sql.ts'
import { until } from '../helpers/until.ts'
import { chunked, fieldPart, filePart, leftovers, open, post, upload } from '../helpers/uploads.ts'

const description = fieldPart('description', 'Something')
const send = (usher: TestUsher, content: string | Buffer, headers?: object) =>
  post(usher, [filePart(content), description], headers && { headers })
const usageOf = async ({ inject, admin }: TestUsher, headers = admin.headers) =>
  (await inject('GET', '/api/uploads/usage', { headers })).json()

// The response, without waiting until the connection is closed.
async function responseOf (socket: Socket): Promise<string> {
  const [head] = await once(socket, 'data')
  socket.destroy()
  return String(head)
}

async function openTwo (t: Test, options: UsherOptions) {
  const one = await createUsher(t, options)
  const two = await createUsher(t, one.options)
  return [one, two] as const
}

nightly('13.4 forty uploads at once on two nodes stay within the quota of bytes, and the others get 413 and leave nothing behind', async (t) => {
  const nodes = await openTwo(t, { uploadQuotaBytes: 10_000 })
  const sql = openSql(t, nodes[0])
  const responses = await Promise.all(
    Array.from({ length: 40 }, async (_, index) => send(nodes[index % 2]!, Buffer.alloc(999, index)))
  )
  const stored = responses.filter(({ statusCode }) => statusCode === 200)
  t.equal(stored.length, 10)
  for (const response of responses) {
    if (response.statusCode !== 200) t.match(response.json(), { code: 'QUOTA_EXCEEDED', error: /storage quota/ })
  }
  t.ok(responses.every(({ statusCode }) => statusCode === 200 || statusCode === 413))
  t.same(await leftovers(nodes[0], sql), { tmp: 0, files: 10, rows: 10 })
  t.same(await usageOf(nodes[1]), { bytes: 9990, files: 10, quotaBytes: 10_000, quotaFiles: 10_000 })
  t.equal((await send(nodes[0], Buffer.alloc(10))).statusCode, 200, 'what fits exactly is stored')
  t.equal((await send(nodes[1], 'x')).statusCode, 413)
  t.equal((await send(nodes[1], '')).statusCode, 200, 'an empty file takes no space')
})

t.test('13.4 forty uploads at once stay within the quota of files, and admins have one as well', async (t) => {
  const nodes = await openTwo(t, { uploadQuotaFiles: 3 })
  const sql = openSql(t, nodes[0])
  const responses = await Promise.all(
    Array.from({ length: 40 }, async (_, index) => send(nodes[index % 2]!, `${index}`))
  )
  t.equal(responses.filter(({ statusCode }) => statusCode === 200).length, 3)
  t.same(await leftovers(nodes[0], sql), { tmp: 0, files: 3, rows: 3 })
  const { headers } = await nodes[0].createUser()
  t.equal((await send(nodes[0], 'x', headers)).statusCode, 200, 'each user has a quota')
})

t.test('13.4 an upload beyond the quota is rejected before its body arrives, or as soon as its bytes exceed what is left', async (t) => {
  const usher = await createUsher(t, { uploadQuotaBytes: 300_000 })
  const sql = openSql(t, usher)
  await upload(usher, Buffer.alloc(250_000))
  const declared = await open(t, usher, 'Content-Length: 900000')
  t.match(await responseOf(declared), /^HTTP\/1.1 413 [^]*QUOTA_EXCEEDED/)
  const socket = await open(t, usher, 'Transfer-Encoding: chunked')
  socket.write(chunked(filePart(Buffer.alloc(50_001)).subarray(0, -2)))
  // More of the file never arrives, so the parser has to pass on what it has.
  for (let sent = 0; sent < 4; sent++) {
    socket.write(chunked(Buffer.alloc(16_384)))
    await delay(1)
  }
  t.match(await responseOf(socket), /^HTTP\/1.1 413 [^]*QUOTA_EXCEEDED/)
  t.same(await leftovers(usher, sql), { tmp: 0, files: 1, rows: 1 })
})

nightly('13.4 a repeated upload gets its response again when the quota is used up, and another one with the key does not', async (t) => {
  for (const options of [{ uploadQuotaFiles: 1 }, { uploadQuotaBytes: 5 }]) {
    const usher = await createUsher(t, options)
    const headers = { ...usher.admin.headers, 'idempotency-key': 'once' }
    const first = await send(usher, 'Hello', headers)
    t.equal(first.statusCode, 200)
    const again = await send(usher, 'Hello', headers)
    t.equal(again.statusCode, 200)
    t.equal(again.headers['idempotency-replayed'], 'true')
    t.same(again.json(), first.json())
    t.equal((await send(usher, 'Other', headers)).statusCode, 422)
    t.match((await send(usher, 'Hello', { ...headers, 'idempotency-key': 'twice' })).json(), { code: 'QUOTA_EXCEEDED' })
    t.same(await leftovers(usher, openSql(t, usher)), { tmp: 0, files: 1, rows: 1 })
  }
})

t.test('13.4 deleting frees space, whoever deletes: an upload, an account, psql', async (t) => {
  const usher = await createUsher(t, { uploadQuotaFiles: 4 })
  const sql = openSql(t, usher)
  const user = await usher.createUser()
  const stored = []
  for (const content of ['one', 'two', 'three', 'four']) stored.push((await send(usher, content, user.headers)).json())
  t.equal((await send(usher, 'five', user.headers)).statusCode, 413)
  await usher.app.usher.uploads.delete(stored[0].id)
  t.match(await usageOf(usher, user.headers), { bytes: 12, files: 3 })
  await sql`delete from uploads where id in ${sql([stored[1].id, stored[2].id])}`
  t.match(await usageOf(usher, user.headers), { bytes: 4, files: 1 })
  await sql`update uploads set size = 40 where user_id = ${user.id}`
  t.match(await usageOf(usher, user.headers), { bytes: 40, files: 1 })
  await upload(usher, 'of the admin')
  await usher.inject('DELETE', `/api/users/${user.id}`, { headers: usher.admin.headers })
  await sql`delete from uploads where user_id = ${usher.admin.id}`
  await until('the uploads of the deleted user are gone', async () => (await sql`select 1 from uploads`).length === 0)
  t.same([...await sql`select * from upload_usage`], [])
})

nightly('13.4 uploads count that were stored before there were quotas, also if several change at once', async (t) => {
  const usher = await createUsher(t, { uploadQuotaFiles: 25 })
  const sql = openSql(t, usher)
  await Promise.all(Array.from({ length: 20 }, async () => upload(usher, 'abc')))
  await sql`delete from upload_usage`
  t.match(await usageOf(usher), { bytes: 60, files: 20 })
  const deleting = sql`delete from uploads where id in (select id from uploads limit 5)`
  const [responses] =
    await Promise.all([Promise.all(Array.from({ length: 20 }, async () => send(usher, 'abc'))), deleting])
  const { files } = await usageOf(usher)
  t.equal(files, 20 - 5 + responses.filter(({ statusCode }) => statusCode === 200).length)
  const [{ actual }] =
    await sql<[{ actual: number }]>`select count(*)::int as actual from uploads where user_id is not null`
  t.equal(files, actual)
  t.ok(actual <= 25)
})

t.test('13.4 0 is no limit, and the usage needs a token', async (t) => {
  const usher = await createUsher(t, { uploadQuotaBytes: 0, uploadQuotaFiles: 0 })
  await upload(usher, 'abc')
  t.same(await usageOf(usher), { bytes: 3, files: 1, quotaBytes: null, quotaFiles: null })
  t.equal((await usher.inject('GET', '/api/uploads/usage')).statusCode, 401)
})
