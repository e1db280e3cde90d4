import { randomBytes } from 'node:crypto'
import { readdirSync, readFileSync, writeFileSync } from 'node:fs'
import t, { type Test } from 'tap'
import { moveUploads } from '../../node/move-uploads.ts'
import { closeBackends, openBackends } from '../../plugins/uploads/open-backend.ts'
import { PART_BYTES } from '../../plugins/uploads/s3/writing.ts'
import { readOptions } from '../../schema/options/read-options.ts'
import { createUsher, type TestUsher } from '../helpers/app.ts'
import { openCore } from '../helpers/core.ts'
import { slow } from '../helpers/deadlines.ts'
import { startFakeS3 } from '../helpers/fake-s3.ts'
import { upload } from '../helpers/uploads.ts'

async function open (t: Test) {
  const store = await startFakeS3(t)
  const before = await createUsher(t)
  const { schema, uploadsDir } = before.options as { schema: string, uploadsDir: string }
  const given = { schema, uploadsDir, s3: store.options, uploadMaxBytes: 64 * 1024 * 1024 }
  const toFolder = await createUsher(t, { ...given, uploadsTo: 'folder' })
  const toS3 = await createUsher(t, given)
  const { core: { database: { db } } } = await openCore(t, { schema })
  const backends =
    await openBackends(readOptions({ ...given, deadlines: slow, databaseUrl: 'postgres://localhost/usher' }))
  t.teardown(() => closeBackends(backends))
  const [folder, s3] = [backends.get('folder')!, backends.get('s3')!]
  const files = () => readdirSync(`${uploadsDir}/files`).sort()
  const objects = () => [...store.objects.keys()].flatMap((key) => /^files\/(.*)/.exec(key)?.[1] ?? []).sort()
  return { store, uploadsDir, toFolder, toS3, db, folder, s3, files, objects }
}

const remove = ({ inject, admin }: TestUsher, id: string) =>
  inject('DELETE', `/api/uploads/${id}`, { headers: admin.headers })

t.test('13.3 a move to an S3 and back keeps every file readable and deletable, and new ones are moved as well', async (t) => {
  const { store, toFolder, toS3, db, folder, s3, files, objects } = await open(t)
  const large = randomBytes(PART_BYTES + 1)
  const contents = [Buffer.from('one'), Buffer.alloc(0), large, Buffer.from('four'), Buffer.from('five')]
  const uploads: Awaited<ReturnType<typeof upload>>[] = []
  for (const content of contents) uploads.push(await upload(toFolder, content))
  const [doomed, ...kept] = uploads as [typeof uploads[0], ...typeof uploads]
  let late: string | undefined
  // What nodes do when a file was published at the store, and is not verified yet.
  store.misbehave(({ method, key }) => {
    if (method !== 'PUT' || late !== undefined || !key.startsWith('files/')) return undefined
    late = ''
    return (async () => {
      late = (await upload(toFolder, 'stored meanwhile')).id
      for (const { fileUrl } of uploads) {
        for (const usher of [toFolder, toS3]) {
          const { statusCode } = await usher.inject('GET', fileUrl)
          if (statusCode !== 200) throw new Error(`${statusCode}`)
        }
      }
    })()
  })
  const to = { db, from: folder, to: s3, signal: new AbortController().signal }
  const moved = await moveUploads({ ...to, async onFile () {} })
  store.misbehave()
  t.same(moved, { files: 6, bytes: PART_BYTES + 1 + 11 + 16, left: 0, damagedIds: [] })
  t.same(files(), [])
  t.same(objects(), [...uploads.map(({ id }) => id), late].sort())
  for (const [index, { fileUrl }] of uploads.entries()) {
    for (const usher of [toFolder, toS3]) t.ok((await usher.inject('GET', fileUrl)).rawPayload.equals(contents[index]!))
  }
  t.equal((await remove(toFolder, doomed.id)).statusCode, 204)
  t.same(objects(), [...kept.map(({ id }) => id), late].sort())

  t.equal((await moveUploads({ ...to, from: s3, to: folder })).files, 5)
  t.same(objects(), [])
  t.same(files(), [...kept.map(({ id }) => id), late].sort())
  t.equal((await toS3.inject('GET', kept.at(-1)!.fileUrl)).body, 'five')
  t.same(await moveUploads({ ...to, from: s3, to: folder }), { files: 0, bytes: 0, left: 0, damagedIds: [] })
})

t.test('13.3 a move that is interrupted goes on when it is repeated', async (t) => {
  const { store, toFolder, db, folder, s3, files, objects } = await open(t)
  const ids: string[] = []
  for (let index = 0; index < 6; index++) ids.push((await upload(toFolder, `file ${index}`)).id)
  const interrupted = new AbortController()
  let verified = 0
  store.misbehave(({ method, key }) => {
    if (method === 'GET' && key.startsWith('files/') && ++verified === 2) interrupted.abort(new Error('interrupted'))
    return undefined
  })
  const to = { db, from: folder, to: s3 }
  await t.rejects(moveUploads({ ...to, signal: interrupted.signal }), { message: 'interrupted' })
  store.misbehave()
  for (const id of ids) t.ok(files().includes(id) || objects().includes(id), 'no file is lost')
  await moveUploads({ ...to, signal: new AbortController().signal })
  t.same(files(), [])
  t.same(objects(), ids.sort())
})

t.test('13.3 a file that was deleted during its copy leaves nothing, and what is damaged or has no record stays', async (t) => {
  const { store, uploadsDir, toFolder, db, folder, s3, files, objects } = await open(t)
  const deleted = await upload(toFolder, randomBytes(PART_BYTES + 1))
  const damaged = await upload(toFolder, 'damaged')
  writeFileSync(`${uploadsDir}/files/${damaged.id}`, 'Damaged')
  const stray = crypto.randomUUID()
  writeFileSync(`${uploadsDir}/files/${stray}`, 'x')
  let isDeleted = false
  store.misbehave(({ query }) => {
    if (!query.has('partNumber') || isDeleted) return undefined
    isDeleted = true
    return remove(toFolder, deleted.id)
  })
  const moved = await moveUploads({ db, from: folder, to: s3, signal: new AbortController().signal })
  t.same(moved, { files: 0, bytes: 0, left: 2, damagedIds: [damaged.id] })
  t.same(files(), [damaged.id, stray].sort())
  t.same(objects(), [])
  t.equal(store.uploads.size, 0)
  t.equal(readFileSync(`${uploadsDir}/files/${damaged.id}`, 'utf8'), 'Damaged')
})

t.test('13.3 a store that returns other bytes ends the move, and the file stays', async (t) => {
  const { store, toFolder, db, folder, s3, files } = await open(t)
  const { id } = await upload(toFolder, 'kept')
  store.misbehave(({ method, key }) => method === 'GET' && key.startsWith('files/')
    ? (response) => { response.writeHead(200, { etag: '"other"', 'content-length': 4 }).end('Kept') }
    : undefined)
  const move = { db, from: folder, to: s3, signal: new AbortController().signal }
  await t.rejects(moveUploads(move), { message: /does not return the bytes/ })
  t.same(files(), [id])
})
