import { randomUUID } from 'node:crypto'
import { once } from 'node:events'
import { mkdir, readdir, readFile, rmdir, stat, utimes, writeFile } from 'node:fs/promises'
import t from 'tap'
import { createScanner } from '../../plugins/uploads/scanner.ts'
import { createStorage } from '../../plugins/uploads/storage.ts'
import audit from '../../plugins/audit/index.ts'
import hooks from '../../plugins/hooks/index.ts'
import idempotency from '../../plugins/idempotency/index.ts'
import uploads from '../../plugins/uploads/index.ts'
import { openCore } from '../helpers/core.ts'
import { createUsher, type TestUsher } from '../helpers/app.ts'
import { testDatabaseUrl } from '../helpers/database.ts'
import { nightly } from '../helpers/nightly.ts'
import { createProxy } from '../helpers/proxy.ts'
import { openSql } from '../helpers/sql.ts'
import { END, fieldPart, filePart, leftovers, nothingLeft, open, upload } from '../helpers/uploads.ts'
import { until } from '../helpers/until.ts'
import { temporaryFolder } from '../helpers/temporary-folder.ts'

const HOURS = 3600

async function writeOld (path: string, seconds: number): Promise<void> {
  await writeFile(path, 'x')
  const then = Date.now() / 1000 - seconds
  await utimes(path, then, then)
}

const deleteUser = ({ inject, admin }: TestUsher, id: string) =>
  inject('DELETE', `/api/users/${id}`, { headers: admin.headers })

t.test('2.5 deleting a user also deletes the user\'s uploads, rows and files', async (t) => {
  const usher = await createUsher(t)
  const sql = openSql(t, usher)
  const user = await usher.createUser()
  for (let index = 0; index < 3; index++) await upload(usher, 'x', 'a', user.headers)
  await upload(usher, 'of another')
  t.equal((await deleteUser(usher, user.id)).statusCode, 204)
  t.same(await leftovers(usher, sql), { tmp: 0, files: 1, rows: 1 })
})

nightly('2.5 this also works for many uploads and with several nodes', async (t) => {
  const usher = await createUsher(t)
  const other = await createUsher(t, usher.options)
  const sql = openSql(t, usher)
  const users = [await usher.createUser(), await usher.createUser()] as const
  for (const { id } of users) {
    const ids = Array.from({ length: 250 }, () => randomUUID())
    await sql`insert into uploads (id, user_id, filename, media_type, size, sha256, description) select id, ${id}, '', '', 1, '', '' from unnest(${ids}::uuid[]) as id`
    await Promise.all(ids.map((id) => writeFile(`${usher.options.uploadsDir}/files/${id}`, 'x')))
  }
  const answers =
    await Promise.all([deleteUser(usher, users[0].id), deleteUser({ ...other, admin: usher.admin }, users[1].id)])
  t.same(answers.map(({ statusCode }) => statusCode), [204, 204])
  await nothingLeft(usher, sql)
})

t.test('2.5 if a file cannot be removed, the response is still 204, and a later sweep removes the file', async (t) => {
  const usher = await createUsher(t)
  const sql = openSql(t, usher)
  const [user, next] = [await usher.createUser(), await usher.createUser()]
  const id = randomUUID()
  await sql`insert into uploads (id, user_id, filename, media_type, size, sha256, description) values (${id}, ${user.id}, '', '', 1, '', '')`
  await mkdir(`${usher.options.uploadsDir}/files/${id}`)
  const { fileUrl } = await upload(usher, 'x', 'a', user.headers)

  t.equal((await deleteUser(usher, user.id)).statusCode, 204)
  t.same(await leftovers(usher, sql), { tmp: 0, files: 1, rows: 1 })
  for (const url of [fileUrl, `/api/uploads/${id}`]) t.equal((await usher.inject('GET', url)).statusCode, 404)

  await rmdir(`${usher.options.uploadsDir}/files/${id}`)
  t.equal((await deleteUser(usher, next.id)).statusCode, 204)
  t.same(await leftovers(usher, sql), { tmp: 0, files: 0, rows: 0 })
})

nightly('5.5 a start removes temporary files and files of deleted users, and reports files without a record', async (t) => {
  const first = await createUsher(t)
  const { id } = await upload(first, 'kept')
  const folder = first.options.uploadsDir!
  const sql = openSql(t, first)
  const ownerless = randomUUID()
  await sql`insert into uploads (id, filename, media_type, size, sha256, description) values (${ownerless}, '', '', 1, '', '')`
  await writeFile(`${folder}/files/${ownerless}`, 'x')
  await utimes(`${folder}/files/${id}`, 1, 1)
  const unknown = Array.from({ length: 150 }, () => randomUUID())
  for (const name of [...unknown, 'no-uuid']) await writeOld(`${folder}/files/${name}`, 2 * HOURS)
  await mkdir(`${folder}/files/${randomUUID()}`)
  await writeOld(`${folder}/tmp/old`, 2 * HOURS)
  await writeOld(`${folder}/tmp/young`, HOURS / 2)
  await writeOld(`${folder}/files/${randomUUID()}`, HOURS / 2)
  const before = await readdir(`${folder}/files`)

  const lines: string[] = []
  await createUsher(
    t, first.options, { logger: { level: 'warn', stream: { write: (line: string) => { lines.push(line) } } } }
  )
  await until('the files are reported', () => lines.length)
  t.match(JSON.parse(lines[0]!), {
    level: 40,
    folder: `${folder}/files`,
    files: 150,
    bytes: 150,
    msg: /They are kept; "npm start -- uploads clean" removes them/,
  })
  // A record is removed after its file, and neither waits for the report.
  await until('the record is removed', async () => (await sql`select from uploads where id = ${ownerless}`).length === 0)
  t.same((await readdir(`${folder}/files`)).sort(), before.filter((name) => name !== ownerless).sort())
  t.same(await readdir(`${folder}/tmp`), ['young'])
  t.equal((await first.inject('GET', `/api/uploads/${id}`)).body, 'kept')
  t.same(await sql`select id from uploads`, [{ id }])
})

nightly('5.5 files that are newer than a restored database are kept', async (t) => {
  const usher = await createUsher(t)
  const sql = openSql(t, usher)
  const { id } = await upload(usher, 'newer than the backup')
  const file = `${usher.options.uploadsDir}/files/${id}`
  const [record] = await sql`delete from uploads where id = ${id} returning *`
  await utimes(file, 1, 1)
  await usher.app.close()

  const lines: string[] = []
  const next = await createUsher(
    t, usher.options, { logger: { level: 'warn', stream: { write: (line: string) => { lines.push(line) } } } }
  )
  await until('the file is reported', () => lines.length)
  await sql`insert into uploads ${sql(record!)}`
  t.equal((await next.inject('GET', `/api/uploads/${id}`)).body, 'newer than the backup')
})

nightly('5.5 the age of a stored file counts from the end of its request', async (t) => {
  const usher = await createUsher(t)
  const [body, rest] = [filePart('slow'), Buffer.concat([fieldPart('description', 'Late'), END])]
  const socket = await open(t, usher, `Content-Length: ${body.length + rest.length}`)
  socket.write(body)
  const tmp = `${usher.options.uploadsDir}/tmp`
  await until('the file is written', async () => {
    const [name] = await readdir(tmp)
    return name && (await readFile(`${tmp}/${name}`, 'utf8')) === 'slow' &&
      utimes(`${tmp}/${name}`, 1, 1).then(() => true)
  })
  socket.write(rest)
  const [answer] = await once(socket, 'data')
  t.match(String(answer), /^HTTP\/1.1 200 /)
  const [name] = await readdir(`${usher.options.uploadsDir}/files`)
  t.ok((await stat(`${usher.options.uploadsDir}/files/${name}`)).mtimeMs > 1000)
})

nightly('9 two databases that share a folder leave each other\'s files alone', async (t) => {
  const first = await createUsher(t)
  const { id } = await upload(first, 'kept')
  const folder = first.options.uploadsDir!
  await utimes(`${folder}/files/${id}`, 1, 1)
  await writeOld(`${folder}/tmp/old`, 2 * HOURS)

  const second = await createUsher(t, { uploadsDir: folder })
  await until('the temporary file is gone', async () => (await readdir(`${folder}/tmp`)).length === 0)
  await second.app.close()
  t.same(await readdir(`${folder}/files`), [id])
  t.equal((await first.inject('GET', `/api/uploads/${id}`)).body, 'kept')
})

nightly('5.5 closing the app ends the check of the folder', async (t) => {
  const { app, lines } = await openCore(t, { uploadsDir: t.testdir({ files: { [randomUUID()]: 'x' } }) })
  await app.register(hooks)
  await app.register(audit)
  await app.register(idempotency)
  await app.register(uploads)
  await app.ready()
  await app.close()
  t.match(lines.map((line) => JSON.parse(line).msg), ['The check of the upload folder was not completed'])
})

t.test('8 an unusable folder stops the start with one sentence', async (t) => {
  const folder = t.testdir({ file: 'not a folder' })
  await t.rejects(createUsher(t, { uploadsDir: `${folder}/file` }), {
    message: /^usher: uploadsDir cannot be used, check that it is a writable folder: \w+/,
  })
})

t.test('1.10 a sweep while the database is unavailable does no harm', async (t) => {
  const proxy = await createProxy(t, await testDatabaseUrl())
  const { app, core } = await openCore(t, { databaseUrl: proxy.url, deadlines: {}, uploadsDir: temporaryFolder() })
  await app.register(hooks)
  const { sweep } = await createStorage(core, createScanner({ ...core, hooks: app.usherHooks }))
  await app.ready()
  await proxy.refuse()
  await sweep()
})
