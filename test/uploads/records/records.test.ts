import { createHash } from 'node:crypto'
import { readdir } from 'node:fs/promises'
import t from 'tap'
import { createUsher, sharedUsher, type LoggedIn } from '../../helpers/app.ts'
import { nightly } from '../../helpers/nightly.ts'
import { openSql, untilBlocked } from '../../helpers/sql.ts'
import { until } from '../../helpers/until.ts'
import { fieldPart, filePart, post, upload } from '../../helpers/uploads.ts'

const UNKNOWN = '0190a5b4-7c3e-7d11-8000-000000000000'
const usher = await sharedUsher()
const { inject, admin } = usher
const [ada, bob] = [await usher.createUser({ name: 'Ada' }), await usher.createUser({ name: 'Bob' })]

const get = (path: string, { headers }: Pick<LoggedIn, 'headers'> | { headers: object } = { headers: {} }, more = {}) =>
  inject('GET', path, { headers: { ...headers, ...more } })
const patch = (id: string, payload: object, by = ada, headers = {}) =>
  inject('PATCH', `/api/uploads/${id}`, { headers: { ...by.headers, ...headers }, payload })
const remove = (id: string, by = ada, headers = {}) =>
  inject('DELETE', `/api/uploads/${id}`, { headers: { ...by.headers, ...headers } })
const keep = (content = 'Text', by = ada, filename = 'notes.txt') => upload(usher, content, filename, by.headers)

t.test('13.1 a list has the uploads of the actor, newest first, in pages that are found by keyset', async (t) => {
  const cleo = await usher.createUser({ name: 'Cleo' })
  const kept = []
  for (const name of ['a.txt', 'b.txt', 'c.txt']) kept.unshift((await keep(name, cleo, name)).id)
  const first = await get('/api/uploads?limit=2', cleo)
  t.equal(first.statusCode, 200)
  t.same(first.json().map(({ id }: { id: string }) => id), kept.slice(0, 2))
  t.match(first.json()[0], {
    id: kept[0],
    fileUrl: `/api/uploads/${kept[0]}`,
    userId: cleo.id,
    filename: 'c.txt',
    mediaType: 'text/plain',
    size: 5,
    sha256: createHash('sha256').update('c.txt').digest('hex'),
    description: 'Something',
    visibility: 'public',
    createdAt: /^\d{4}-\d\d-\d\dT/,
  })
  const [, next] = /<([^>]*)>; rel="next"/.exec(String(first.headers.link))!
  const second = await get(next!, cleo)
  t.same(second.json().map(({ id }: { id: string }) => id), kept.slice(2))
  t.equal(second.headers.link, undefined)
  t.same((await get(`/api/uploads?user=${cleo.id.toUpperCase()}`, cleo)).json().length, 3)
})

t.test('13.1 admins list the uploads of any user, or of all; others their own only', async (t) => {
  const { id } = await keep()
  const ids = async (path: string) => (await get(path, admin)).json().map(({ id }: { id: string }) => id)
  t.ok((await ids(`/api/uploads?user=${ada.id}`)).includes(id))
  t.ok((await ids('/api/uploads?user=all')).includes(id))
  t.notOk((await ids('/api/uploads')).includes(id), 'their own by default')
  for (const user of [UNKNOWN, 'no-id', '']) t.same(await ids(`/api/uploads?user=${user}`), [], user)
  for (const user of [ada.id, 'all', UNKNOWN, 'no-id']) {
    t.equal((await get(`/api/uploads?user=${user}`, bob)).statusCode, 403, user)
    t.equal((await get(`/api/uploads?user=${user}`)).statusCode, 401, user)
  }
  t.equal((await get('/api/uploads')).statusCode, 401)
  t.equal((await get('/api/uploads?user=all&limit=0', bob)).statusCode, 403, '403 comes before 400')
})

t.test('13.1 bad parameters of a list are named', async (t) => {
  const errors = async (query: string, headers = {}) => {
    const response = await get(`/api/uploads?${query}`, ada, headers)
    t.equal(response.statusCode, 400, query)
    return response.json().errors.join()
  }
  t.match(await errors('limit=0'), /^limit must be/)
  t.match(await errors('limit=1001'), /^limit must be/)
  t.match(await errors('limit=1&limit=2'), /^limit must be/)
  t.match(await errors('after=nonsense'), /^after must be/)
  t.match(await errors('user=1&user=2'), /^user must be/)
  t.match(await errors('sort=size', { prefer: 'handling=strict' }), /^sort is not a parameter/)
  t.equal((await get('/api/uploads?sort=size', ada)).statusCode, 200)
})

t.test('13.1 a list and a record are revalidated by their entity tags, which every change renews', async (t) => {
  const { id } = await keep()
  for (const path of ['/api/uploads', `/api/uploads/${id}/record`]) {
    const { headers: { etag } } = await get(path, ada)
    const again = await get(path, ada, { 'if-none-match': etag })
    t.equal(again.statusCode, 304, path)
    t.equal(again.body, '')
    t.match(again.headers, { etag, 'cache-control': 'private, no-cache' })
    t.equal((await get(path, ada, { 'if-match': '"other"' })).statusCode, 412)
    t.equal((await inject('HEAD', path, { headers: ada.headers })).headers.etag, etag)
    t.equal((await patch(id, { description: path })).statusCode, 200)
    t.equal((await get(path, ada, { 'if-none-match': etag })).statusCode, 200)
  }
})

t.test('13.1 a record is that of the upload, for whoever may download it', async (t) => {
  const kept = await keep('Recorded')
  const record = (await get(`/api/uploads/${kept.id}/record`)).json()
  t.match(record, { ...kept, userId: ada.id, visibility: 'public' })
  t.same((await get('/api/uploads', ada)).json()[0], record)
  for (const id of [UNKNOWN, 'no-id', '%00']) {
    t.match((await get(`/api/uploads/${id}/record`)).json(), { code: 'UPLOAD_NOT_FOUND' })
  }
})

t.test('13.1 PATCH changes the members that are given', async (t) => {
  const { id } = await keep()
  const before = (await get(`/api/uploads/${id}/record`)).json()
  const changed = await patch(id, { description: 'Better\ntext' })
  t.same(changed.json(), { ...before, description: 'Better\ntext' })
  t.equal(changed.headers.etag, (await get(`/api/uploads/${id}/record`)).headers.etag)
  const renamed = await inject('PATCH', `/api/uploads/${id}`, {
    headers: { ...ada.headers, 'content-type': 'application/merge-patch+json' },
    payload: '{"filename":"C:\\\\folder\\\\report.txt"}',
  })
  t.equal(renamed.json().filename, 'report.txt', 'as at the upload')
  const unchanged = await patch(id, {})
  t.equal(unchanged.statusCode, 200)
  t.equal(unchanged.headers.etag, renamed.headers.etag, 'nothing changes')
  t.same((await patch(id, { ...renamed.json(), id: UNKNOWN, sha256: '0', userId: bob.id })).json(), renamed.json())
})

t.test('13.1 a change that is invalid, or not permitted, changes nothing', async (t) => {
  const { id } = await keep()
  const { headers: { etag } } = await get(`/api/uploads/${id}/record`)
  const errors = async (payload: object) => (await patch(id, payload)).json().errors
  t.same(await errors({ description: null, filename: null, visibility: null }), [
    'description must not be null', 'filename must not be null', 'visibility must not be null',
  ])
  t.same(await errors({ filename: 'a\nb' }), ['filename must not contain control characters'])
  t.same(await errors({ filename: '\ud800' }), ['filename must not contain control characters'])
  t.match(await errors({ filename: 'x'.repeat(256), description: 'x'.repeat(2001) }), [/^description/, /^filename/])
  t.match(await errors({ visibility: 'secret', description: 1 }), [/^description must be/, /^visibility must be/])
  const status = async (by: LoggedIn, payload: object) => (await patch(id, payload, by)).statusCode
  t.equal(await status(bob, { description: 'Mine' }), 403)
  t.equal(await status(bob, { description: null }), 403, '403 comes before 400')
  t.equal((await inject('PATCH', `/api/uploads/${id}`, { payload: {} })).statusCode, 401)
  t.match(
    await inject('PATCH', `/api/uploads/${id}`, { headers: { ...ada.headers, 'content-type': 'text/plain' }, payload: 'x' }),
    { statusCode: 415, headers: { 'accept-patch': 'application/merge-patch+json, application/json' } }
  )
  for (const unknown of [UNKNOWN, 'no-id']) t.equal((await patch(unknown, {})).statusCode, 404)
  t.equal((await get(`/api/uploads/${id}/record`)).headers.etag, etag)
})

t.test('10.2 of two changes with the same entity tag one succeeds, and so it is with a deletion', async (t) => {
  const { id } = await keep()
  const tag = async () => String((await get(`/api/uploads/${id}/record`)).headers.etag)
  const match = { 'if-match': await tag() }
  const writers = await Promise.all(['1', '2', '3', '4'].map((description) => patch(id, { description }, ada, match)))
  t.same(writers.map(({ statusCode }) => statusCode).sort(), [200, 412, 412, 412])
  t.equal((await patch(id, {}, ada, match)).statusCode, 412)
  t.equal((await patch(id, { description: 5 }, ada, match)).statusCode, 400)
  t.equal((await patch(id, {}, ada, { 'if-match': 'broken' })).statusCode, 400)
  t.equal((await patch(id, { description: 'x' }, ada, { 'if-none-match': await tag() })).statusCode, 412)
  t.equal((await patch(id, { description: 'x' }, ada, { 'if-none-match': '*' })).statusCode, 412)
  t.equal((await patch(id, { description: 'x' }, ada, { 'if-none-match': match['if-match'] })).statusCode, 200)
  t.equal((await remove(id, ada, match)).statusCode, 412)
  t.equal((await remove(UNKNOWN, ada, match)).statusCode, 404, '404 comes first')
  t.equal((await remove(id, ada, { 'if-match': await tag() })).statusCode, 204)
})

t.test('13.1 DELETE removes the upload and its bytes, and frees the quota', async (t) => {
  const { id } = await keep('To be deleted')
  const usage = async () => (await get('/api/uploads/usage', ada)).json().files
  const before = await usage()
  t.equal((await remove(id, bob)).statusCode, 403)
  t.equal((await inject('DELETE', `/api/uploads/${id}`)).statusCode, 401)
  const removed = await remove(id)
  t.equal(removed.statusCode, 204)
  t.equal(removed.body, '')
  t.equal(await usage(), before - 1)
  for (const path of [`/api/uploads/${id}`, `/api/uploads/${id}/record`]) {
    t.equal((await get(path, ada)).statusCode, 404, path)
  }
  t.equal((await patch(id, {})).statusCode, 404)
  t.equal((await remove(id)).statusCode, 404)
  const files = async () => readdir(`${usher.options.uploadsDir}/files`)
  await until('the bytes are removed', async () => !(await files()).includes(id))
})

nightly('13.1 the bytes are also removed if the node was killed in between', async (t) => {
  const other = await createUsher(t)
  const { id } = await upload(other, 'Left behind')
  const sql = openSql(t, other)
  // What is committed when a node dies before it removes the file.
  await sql`update uploads set user_id = null where id = ${id}`
  const next = await createUsher(t, { schema: other.options.schema!, uploadsDir: other.options.uploadsDir! })
  await until('the next start has removed it', async () =>
    (await readdir(`${next.options.uploadsDir}/files`)).length === 0 && (await sql`select from uploads`).length === 0)
})

t.test('13.1 what admins do to the uploads of others is in the account log of the owner', async (t) => {
  const dora = await usher.createUser({ name: 'Dora' })
  const [one, two] = [await keep('1', dora), await keep('2', dora)]
  await patch(one.id, { description: 'By the owner' }, dora)
  await patch(one.id, { description: 'By an admin' }, admin)
  await remove(one.id, admin)
  await remove(two.id, dora)
  const log = (await get(`/api/audit?user=${dora.id}`, admin)).json() as { action: string, actorId: string }[]
  t.match(log.filter(({ action }) => action.startsWith('upload.')), [
    { action: 'upload.delete', actorId: admin.id }, { action: 'upload.update', actorId: admin.id },
  ])
})

t.test('13.1 a new file name is another representation, which caches fetch again', async (t) => {
  const { id, sha256 } = await keep('0123456789')
  const path = `/api/uploads/${id}`
  const first = await get(path)
  t.equal(first.headers.etag, `"${sha256}"`)
  await patch(id, { description: 'Does not change the representation' })
  t.equal((await get(path)).headers.etag, first.headers.etag)
  await patch(id, { filename: 'renamed.txt' })
  const second = await get(path, { headers: {} }, { 'if-none-match': first.headers.etag })
  t.equal(second.statusCode, 200)
  t.equal(second.headers['content-disposition'], 'inline; filename=renamed.txt')
  t.not(second.headers.etag, first.headers.etag)
  const modified = { 'if-modified-since': first.headers['last-modified'] }
  t.equal((await get(path, { headers: {} }, modified)).statusCode, 200, 'also by date')
  t.equal((await get(path, { headers: {} }, { 'if-none-match': second.headers.etag })).statusCode, 304)
  const range = { range: 'bytes=0-3', 'if-range': first.headers.etag }
  t.equal((await get(path, { headers: {} }, range)).statusCode, 200, 'a range of the former one does not apply')
  await patch(id, { filename: 'renamed.txt' })
  t.equal((await get(path)).headers.etag, second.headers.etag, 'the same name changes nothing')
})

t.test('13.2 to others a private upload does not exist, and what is private must be one word', async (t) => {
  const form = (value: string) =>
    post(usher, [filePart('Secret'), fieldPart('description', 'D'), fieldPart('visibility', value)], ada)
  const { id, visibility } = (await form('private')).json()
  t.equal(visibility, 'private')
  for (const wrong of ['', 'Private', 'secret']) {
    t.match((await form(wrong)).json(), { errors: [/^visibility must be/] }, wrong)
  }
  const twice = await post(usher, [
    filePart('Secret'), fieldPart('description', 'D'), fieldPart('visibility', 'private'), fieldPart('visibility', 'public'),
  ], ada)
  t.same(twice.json(), { errors: ['visibility must be given once'] })
  const asFile = await post(usher, [
    filePart('Secret'), fieldPart('description', 'D'), filePart('private', 'x', 'visibility'),
  ], ada)
  t.match(asFile.json(), { errors: ['file must be a single file', 'visibility must be a text field'] })
  for (const path of [`/api/uploads/${id}`, `/api/uploads/${id}/record`]) {
    t.equal((await get(path, ada)).statusCode, 200)
    t.equal((await get(path, ada)).headers['cache-control'], 'private, no-store')
    t.equal((await get(path, admin)).statusCode, 200)
    t.equal((await get(path, bob)).statusCode, 404)
    t.equal((await get(path)).statusCode, 404)
  }
  t.equal((await patch(id, {}, bob)).statusCode, 404)
  t.equal((await remove(id, bob)).statusCode, 404)
  t.equal((await patch(id, { visibility: 'public' })).json().visibility, 'public')
  t.equal((await get(`/api/uploads/${id}`)).statusCode, 200)
})

t.test('1.12 a change by a session that ends while it waits gets 401', async (t) => {
  const sql = openSql(t, usher)
  for (const method of ['PATCH', 'DELETE'] as const) {
    const eve = await usher.createUser({ name: 'Eve' })
    const { id } = await keep('Waits', eve)
    const locked = Promise.withResolvers<void>()
    const release = Promise.withResolvers<void>()
    const holding = sql.begin(async (sql) => {
      await sql`select from uploads where id = ${id} for update`
      locked.resolve()
      await release.promise
    })
    await locked.promise
    const change = inject(method, `/api/uploads/${id}`, { headers: eve.headers, payload: { description: 'Late' } })
    await untilBlocked(sql, usher)
    await inject('POST', '/api/auth/logout', { headers: eve.headers })
    release.resolve()
    await holding
    t.equal((await change).statusCode, 401, method)
    t.equal((await get(`/api/uploads/${id}/record`)).json().description, 'Something')
  }
})
