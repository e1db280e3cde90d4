import { createHash } from 'node:crypto'
import { readdir } from 'node:fs/promises'
import { join } from 'node:path'
import t from 'tap'
import { createUsher, type LoggedIn } from '../../helpers/app.ts'
import { nightly } from '../../helpers/nightly.ts'
import { openSql } from '../../helpers/sql.ts'
import { until } from '../../helpers/until.ts'

const UNKNOWN = '0190a5b4-7c3e-7d11-8000-000000000000'
const VERSION = { 'tus-resumable': '1.0.0' }
const usher = await createUsher(t)
const { inject } = usher
const [ada, bob] = [await usher.createUser({ name: 'Ada' }), await usher.createUser({ name: 'Bob' })]
const base64 = (text: string) => Buffer.from(text).toString('base64')

const create = (length: number | string, headers: object = {}, by: Pick<LoggedIn, 'headers'> = ada, payload?: string) =>
  inject('POST', '/api/uploads/resumable', {
    headers: {
      ...by.headers,
      ...VERSION,
      'upload-length': `${length}`,
      ...payload !== undefined && { 'content-type': 'application/offset+octet-stream' },
      ...headers,
    },
    ...payload !== undefined && { payload },
  })
const begin = async (length: number, headers: object = {}, by: Pick<LoggedIn, 'headers'> = ada) =>
  String((await create(length, headers, by)).headers.location)
const append = (
  url: string, offset: number | string, payload: string | Buffer, headers: object = {}, by: Pick<LoggedIn, 'headers'> = ada
) => inject('PATCH', url, {
  headers: {
    ...by.headers, ...VERSION, 'upload-offset': `${offset}`, 'content-type': 'application/offset+octet-stream', ...headers,
  },
  payload,
})
const head = (url: string, by: Pick<LoggedIn, 'headers'> = ada) =>
  inject('HEAD', url, { headers: { ...by.headers, ...VERSION } })

t.test('13.5 an upload in several requests becomes the upload that one request would have made', async (t) => {
  const text = 'Hello, resumable world'
  const begun = await create(text.length, {
    'upload-metadata': `filename ${base64('notes.txt')},filetype ${base64('image/png')},description ${base64('Wörter')},` +
      `visibility ${base64('private')},other`,
  })
  t.equal(begun.statusCode, 201, begun.body)
  t.match(begun.headers, { 'tus-resumable': '1.0.0', 'upload-offset': '0', 'upload-expires': / GMT$/ })
  const url = String(begun.headers.location)
  t.match(begun.json(), { offset: 0, length: text.length, filename: 'notes.txt', description: 'Wörter', upload: null })
  const first = await append(url, 0, text.slice(0, 5))
  t.equal(first.statusCode, 204, first.body)
  t.equal(first.headers['upload-offset'], '5')
  t.match((await head(url)).headers, { 'upload-offset': '5', 'upload-length': `${text.length}`, 'cache-control': 'no-store' })
  const last = await append(url, 5, text.slice(5))
  t.equal(last.statusCode, 200, last.body)
  const upload = last.json()
  t.match(upload, {
    fileUrl: `/api/uploads/${upload.id}`,
    filename: 'notes.txt',
    mediaType: 'text/plain',
    size: text.length,
    sha256: createHash('sha256').update(text).digest('hex'),
    description: 'Wörter',
    visibility: 'private',
  })
  t.equal((await inject('GET', upload.fileUrl, { headers: ada.headers })).body, text)
  t.match((await head(url)).headers, { 'upload-offset': `${text.length}`, 'content-location': /record$/ })
  const state = (await inject('GET', url, { headers: { ...ada.headers, ...VERSION } })).json()
  t.match(state.upload, { id: upload.id, userId: ada.id }, 'the result is there if its response was lost')
})

t.test('13.5 OPTIONS says what is supported, without a token', async (t) => {
  const { statusCode, headers } = await inject('OPTIONS', '/api/uploads/resumable')
  t.equal(statusCode, 204)
  t.match(headers, {
    'tus-resumable': '1.0.0',
    'tus-version': '1.0.0',
    'tus-extension': 'creation,creation-with-upload,expiration,termination,checksum',
    'tus-checksum-algorithm': 'sha1,sha256',
    'tus-max-size': `${10 * 1024 * 1024}`,
  })
})

t.test('13.5 every hostile header of a creation is rejected, and nothing is created', async (t) => {
  const errors = async (length: string, headers: object = {}) => {
    const response = await create(length, headers)
    t.equal(response.statusCode, 400, response.body)
    return response.json().errors.join()
  }
  for (const length of ['-1', 'NaN', '1e3', '0x10', '', ' ', '1.5', '99999999999999999999', '1,1']) {
    t.equal(await errors(length), 'Upload-Length must be a number of bytes', length)
  }
  t.equal(await errors('1', { 'upload-defer-length': '1' }), 'Upload-Defer-Length is not supported')
  t.equal(await errors('1', { 'upload-concat': 'partial' }), 'Upload-Concat is not supported')
  const metadata = (field: string) => errors('1', { 'upload-metadata': field })
  t.match(await metadata(`filename ${base64('a')},filename ${base64('b')}`), /must have filename once/)
  for (const invalid of ['filename !', 'filename YQ', 'filename YR=', 'description /w==', 'visibility YQ===']) {
    t.match(await metadata(invalid), /must be UTF-8 in Base64|visibility must be/, invalid)
  }
  t.match(await metadata('a b c'), /must be pairs/)
  t.match(await metadata(',,'), /must be pairs/)
  t.match(await metadata(`visibility ${base64('secret')}`), /^visibility must be/)
  t.match(await metadata(`filename ${base64('a\nb')}`), /^filename must not contain control/)
  t.match(await metadata(`filename ${base64('x'.repeat(256))}`), /^filename must/)
  t.match(await metadata(`description ${base64('x'.repeat(2001))}`), /^description must/)
  for (const checksum of ['md5 YQ==', 'sha1', 'sha1 YQ==', 'sha256 !', `sha1 ${Buffer.alloc(20).toString('base64')} x`]) {
    t.match(await errors('1', { 'upload-checksum': checksum }), /^Upload-Checksum must be/, checksum)
  }
  t.equal((await create(10 * 1024 * 1024 + 1)).statusCode, 413)
  t.equal((await create(3, {}, ada, 'four')).statusCode, 413)
  t.equal((await create(1, { 'content-type': 'text/plain' }, ada, 'x')).statusCode, 415)
  t.equal((await create(1, { 'content-encoding': 'gzip' }, ada, 'x')).statusCode, 415)
  for (const version of ['', '0.2.2', '1.0', '1.0.0, 1.0.0']) {
    const response = await create(1, { 'tus-resumable': version })
    t.equal(response.statusCode, 412, version)
    t.match(response.headers, { 'tus-version': '1.0.0', 'tus-resumable': '1.0.0' })
  }
  t.equal((await inject('POST', '/api/uploads/resumable', { headers: VERSION })).statusCode, 401)
  t.equal((await inject('GET', '/api/uploads/resumable', { headers: { ...ada.headers, ...VERSION } })).json().length, 0)
  const names = await create(1, { 'upload-metadata': ` filename ${base64('C:\\a\\b.txt')} , x-é ${base64('?')}` })
  t.equal(names.json().filename, 'b.txt', 'a path is cut off, and unknown keys are ignored')
})

t.test('13.5 every hostile header of a PATCH is rejected, and the offset stays', async (t) => {
  const url = await begin(10)
  t.equal((await append(url, 0, 'abc')).statusCode, 204)
  for (const offset of ['-1', 'NaN', '', '1e1', '0x3', '99999999999999999999', '3.0', '3,3']) {
    t.same((await append(url, offset, 'd')).json(), { errors: ['Upload-Offset must be a number of bytes'] }, offset)
  }
  for (const offset of [0, 2, 4, 10, 9007199254740991]) {
    const { statusCode } = await append(url, offset, 'd')
    t.equal(statusCode, offset < 10 ? 409 : 413, `${offset}`)
  }
  t.equal((await append(url, 3, 'x'.repeat(8))).statusCode, 413)
  t.equal((await append(url, 3, 'd', { 'content-type': 'application/octet-stream' })).statusCode, 415)
  t.equal((await append(url, 3, 'd', { 'content-encoding': 'br' })).statusCode, 415)
  t.equal((await append(url, 3, 'd', { 'tus-resumable': '2.0.0' })).statusCode, 412)
  t.equal((await append(url, 3, 'd', { 'upload-checksum': 'crc32 YQ==' })).statusCode, 400)
  t.equal((await append(url, 3, 'd', {}, { headers: {} as never })).statusCode, 401)
  for (const id of [UNKNOWN, 'no-id', '%00', '..%2f..']) {
    const response = await append(`/api/uploads/resumable/${id}`, 0, 'd')
    t.match(response.json(), { code: 'UPLOAD_NOT_FOUND' }, id)
  }
  t.equal((await inject('POST', url, { headers: { ...ada.headers, 'x-http-method-override': 'PATCH' } })).statusCode, 405)
  t.equal((await head(url)).headers['upload-offset'], '3')
  t.equal((await append(url, 3, '')).headers['upload-offset'], '3', 'an empty body adds nothing')
  t.equal((await append(url, 3, 'defghij')).statusCode, 200)
  t.equal((await append(url, 10, '')).statusCode, 409, 'it is complete')
})

t.test('13.5 the upload of another user does not exist, for admins either, and an API key needs uploads:create', async (t) => {
  const url = await begin(4)
  for (const by of [bob, usher.admin]) {
    t.equal((await head(url, by)).statusCode, 404)
    t.match((await append(url, 0, 'ab', {}, by)).json(), { code: 'UPLOAD_NOT_FOUND' })
    t.equal((await inject('DELETE', url, { headers: { ...by.headers, ...VERSION } })).statusCode, 404)
  }
  const { key } = (await inject('POST', '/api/auth/keys', {
    headers: ada.headers, payload: { name: 'Reader', actions: ['posts:create'] },
  })).json()
  t.equal((await head(url, { headers: { authorization: `Bearer ${key}` } as never })).statusCode, 403)
  t.equal((await head(url)).headers['upload-offset'], '0')
})

t.test('13.5 of bytes with a wrong checksum nothing is kept, and right ones are', async (t) => {
  const url = await begin(6)
  const sum = (algorithm: string, text: string) =>
    ({ 'upload-checksum': `${algorithm} ${createHash(algorithm).update(text).digest('base64')}` })
  for (const algorithm of ['sha1', 'sha256']) {
    const wrong = await append(url, 0, 'abc', sum(algorithm, 'abd'))
    t.equal(wrong.statusCode, 460)
    t.match(wrong.json(), { code: 'CHECKSUM_MISMATCH' })
  }
  t.equal((await head(url)).headers['upload-offset'], '0')
  t.equal((await append(url, 0, 'abc', sum('sha1', 'abc'))).headers['upload-offset'], '3')
  t.equal((await append(url, 3, 'def', sum('sha256', 'dee'))).statusCode, 460)
  t.equal((await append(url, 3, 'def', sum('sha256', 'def'))).json().size, 6)
})

t.test('13.5 an upload can begin with its bytes, or have none', async (t) => {
  const part = await create(6, {}, ada, 'abc')
  t.equal(part.headers['upload-offset'], '3')
  t.equal((await append(String(part.headers.location), 3, 'def')).json().size, 6)
  const whole = await create(3, { 'upload-metadata': `filename ${base64('whole.txt')}` }, ada, 'abc')
  t.equal(whole.statusCode, 201)
  t.match(whole.json().upload, { filename: 'whole.txt', size: 3, userId: ada.id })
  const empty = await create(0)
  t.match(empty.json(), { offset: 0, upload: { size: 0, mediaType: 'text/plain' } })
  const wrong = await create(3, { 'upload-checksum': `sha1 ${Buffer.alloc(20).toString('base64')}` }, ada, 'abc')
  t.equal(wrong.statusCode, 460)
  t.equal(wrong.headers.location, undefined)
})

t.test('13.5 creation with an idempotency key happens once', async (t) => {
  const key = { 'idempotency-key': 'once' }
  const first = await create(4, key)
  const again = await create(4, key)
  t.equal(again.headers.location, first.headers.location)
  t.equal(again.headers['idempotency-replayed'], 'true')
  t.equal((await create(5, key)).statusCode, 422)
  t.equal((await append(String(first.headers.location), 0, 'ab')).statusCode, 204)
  t.equal((await create(4, key)).headers['upload-offset'], '2', 'a repetition says how far it is')
  await inject('DELETE', String(first.headers.location), { headers: { ...ada.headers, ...VERSION } })
  t.equal((await create(4, key)).statusCode, 410)
})

t.test('13.5 unfinished uploads take their whole length of the quota, until they are deleted or expire', async (t) => {
  const usher = await createUsher(t, { uploadQuotaBytes: 100, uploadQuotaFiles: 3 })
  const sql = openSql(t, usher)
  const { inject, admin: { headers } } = usher
  const make = (length: number) => inject('POST', '/api/uploads/resumable', {
    headers: { ...headers, ...VERSION, 'upload-length': `${length}` },
  })
  const usage = async () => (await inject('GET', '/api/uploads/usage', { headers })).json()
  const [one, two] = [await make(60), await make(40)]
  t.equal(two.statusCode, 201)
  t.match((await make(1)).json(), { code: 'QUOTA_EXCEEDED' })
  t.match(await usage(), { bytes: 100, files: 2 })
  await sql`delete from upload_usage`
  t.match(await usage(), { bytes: 100, files: 2 }, 'also if they are counted anew')
  t.equal((await inject('DELETE', String(one.headers.location), { headers: { ...headers, ...VERSION } })).statusCode, 204)
  t.match(await usage(), { bytes: 40, files: 1 })
  const patch = (url: string, payload: string, offset = 0) => inject('PATCH', url, {
    headers: { ...headers, ...VERSION, 'upload-offset': `${offset}`, 'content-type': 'application/offset+octet-stream' },
    payload,
  })
  t.equal((await patch(String(two.headers.location), 'x'.repeat(30))).statusCode, 204)
  const full = await make(60)
  t.equal((await patch(String(full.headers.location), 'x'.repeat(60))).statusCode, 200, 'at the limit it can be finished')
  t.match(await usage(), { bytes: 100, files: 2 })
  t.equal((await readdir(join(usher.options.uploadsDir!, 'parts'))).length, 1)
  await sql`update resumable_uploads set expires_at = now() where upload_id is null`
  t.equal((await inject('HEAD', String(two.headers.location), { headers: { ...headers, ...VERSION } })).statusCode, 404)
  t.equal((await patch(String(two.headers.location), 'x', 30)).statusCode, 404)
  // Another node removes what has expired when it starts.
  await createUsher(t, usher.options)
  await until('the bytes of the expired upload are removed', async () =>
    (await readdir(join(usher.options.uploadsDir!, 'parts'))).length === 0 && (await usage()).bytes === 60)
  t.match(await usage(), { bytes: 60, files: 1 })
})

nightly('13.5 unfinished uploads are limited per user, per network and in total', async (t) => {
  for (const [option, users] of [
    ['unfinishedUploadsPerUser', 1], ['unfinishedUploadsPerNetwork', 3], ['unfinishedUploads', 3],
  ] as const) {
    const usher = await createUsher(t, { [option]: 3 })
    const actors = [usher.admin, ...users > 1 ? [await usher.createUser(), await usher.createUser()] : []]
    const responses = await Promise.all(Array.from({ length: 12 }, (_, index) =>
      usher.inject('POST', '/api/uploads/resumable', {
        headers: { ...actors[index % actors.length]!.headers, ...VERSION, 'upload-length': '1' },
      })))
    t.equal(responses.filter(({ statusCode }) => statusCode === 201).length, 3, option)
    const refused = responses.find(({ statusCode }) => statusCode !== 201)!
    t.equal(refused.statusCode, 429)
    t.match(refused.json(), { code: 'TOO_MANY_UNFINISHED_UPLOADS' })
  }
})

nightly('13.5 of all unfinished uploads, no network has more than a quarter, whatever its size', async (t) => {
  const usher = await createUsher(t, {
    unfinishedUploads: 40, unfinishedUploadsPerNetwork: 4, unfinishedUploadsPerUser: 100,
  })
  const from = async (remoteAddress: string) => (await usher.inject('POST', '/api/uploads/resumable', {
    remoteAddress, headers: { ...usher.admin.headers, ...VERSION, 'upload-length': '1' },
  })).statusCode
  const accepted = async (addresses: readonly string[]) => {
    let count = 0
    for (const address of addresses) if (await from(address) === 201) count++
    return count
  }
  const twelve = (addressOf: (index: number) => string) => Array.from({ length: 12 }, (_, index) => addressOf(index))
  t.equal(await accepted(twelve(() => '2001:db8:1::1')), 4, 'a /64')
  t.equal(await accepted(twelve((index) => `2001:db8:1:${index.toString(16)}::1`)), 6, 'a /56 with it')
  t.equal(await accepted(twelve((index) => `2001:db8:1:${index}00::1`)), 0, 'a /48 with both')
  t.equal(await accepted(twelve((index) => `192.0.2.${index}`)), 10, 'a /24')
  t.equal(await from('198.51.100.7'), 201, 'another network')
})

nightly('13.5 small parts are written together, and what they had is not lost', async (t) => {
  const text = Array.from({ length: 230 }, (_, index) => String.fromCharCode(97 + index % 26)).join('')
  const url = await begin(text.length)
  const parts = async () => (await readdir(join(usher.options.uploadsDir!, 'parts'))).length
  const before = await parts()
  let most = 0
  for (let offset = 0; offset < text.length - 1; offset++) {
    t.equal((await append(url, offset, text[offset]!)).statusCode, 204)
    most = Math.max(most, await parts() - before)
  }
  t.ok(most <= 100, `${most} parts`)
  const last = await append(url, text.length - 1, text.at(-1)!)
  t.equal((await inject('GET', last.json().fileUrl)).body, text)
  t.equal(await parts(), before)
})

nightly('13.5 a hook that rejects the complete file ends the upload', async (t) => {
  let rejects = true
  const usher = await createUsher(t, {
    hooks: {
      beforeUploadKeep (upload) {
        if (rejects) throw Object.assign(new Error('No'), { statusCode: 422 })
        return { ...upload, filename: 'changed.txt' }
      },
    },
  })
  const { inject, admin: { headers } } = usher
  const send = () => inject('POST', '/api/uploads/resumable', {
    headers: { ...headers, ...VERSION, 'upload-length': '3', 'content-type': 'application/offset+octet-stream', 'idempotency-key': `${rejects}` },
    payload: 'abc',
  })
  t.equal((await send()).statusCode, 422)
  t.same((await inject('GET', '/api/uploads/resumable', { headers: { ...headers, ...VERSION } })).json(), [])
  t.match((await inject('GET', '/api/uploads/usage', { headers })).json(), { bytes: 0, files: 0 })
  t.same(await readdir(join(usher.options.uploadsDir!, 'parts')), [])
  rejects = false
  t.match((await send()).json().upload, { filename: 'changed.txt' })
})

t.test('13.5 unfinished uploads are void when the account is repaired or deleted', async (t) => {
  const usher = await createUsher(t)
  const sql = openSql(t, usher)
  const owner = await usher.createUser()
  const make = () => usher.inject('POST', '/api/uploads/resumable', {
    headers: { ...owner.headers, ...VERSION, 'upload-length': '3' },
  })
  t.equal((await make()).statusCode, 201)
  await usher.app.usher.users.delete(owner.id)
  const [{ live }] = await sql<[{ live: number }]>`
    select count(*)::int as live from resumable_uploads where expires_at > now()` as [{ live: number }]
  t.equal(live, 0)
})
