import { readdirSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { gunzipSync, gzipSync } from 'node:zlib'
import t, { type Test } from 'tap'
import { createUsher } from '../../helpers/app.ts'
import { backUp, placeOf, restore, rewrite, rowsOf, schema, withSql } from '../../helpers/backup.ts'
import { createDatabase } from '../../helpers/database.ts'
import { temporaryFolder } from '../../helpers/temporary-folder.ts'
import { upload } from '../../helpers/uploads.ts'

type Content = [name: string, content: Buffer][]

const UNKNOWN = 'ffffffff-ffff-7fff-bfff-ffffffffffff'

const emptyPlace = async (t: Test) =>
  ({ database: await createDatabase(t, { empty: true }), uploadsDir: temporaryFolder() })

// A header of a file with another size, and the checksum for it.
function withSize (tar: Buffer, name: string, size: string): Buffer {
  const changed = Buffer.from(tar)
  const header = changed.subarray(changed.indexOf(`${name}\0`)).subarray(0, 512)
  header.write(size, 124, 'latin1')
  header.fill(' ', 148, 156)
  const sum = header.reduce((sum, byte) => sum + byte, 0)
  header.write(`${sum.toString(8).padStart(6, '0')}\0 `, 148)
  return changed
}

t.test('14.4 a restore refuses a hostile or damaged archive with a sentence, and nothing changes', async (t) => {
  const source = await createUsher(t, {
    databaseUrl: await createDatabase(t), schema, uploadsDir: temporaryFolder(),
  })
  const place = placeOf(source)
  const ids = [(await upload(source, 'the first')).id, (await upload(source, 'the second')).id]
  const file = join(temporaryFolder(), 'backup.tar.gz')
  await backUp(place, file)
  await source.app.close()
  const [before, files] = [await rowsOf(place.database), readdirSync(join(place.uploadsDir, 'files'))]
  const [first, second] = ids.map((id) => `uploads/${id}`) as [string, string]
  const tar = gunzipSync(readFileSync(file))
  const hostile = join(temporaryFolder(), 'hostile.tar.gz')

  const refused = async (message: RegExp) => {
    await t.rejects(restore(hostile, place, { replaces: true }), { message })
    t.same(await rowsOf(place.database), before)
    t.same(readdirSync(join(place.uploadsDir, 'files')), files)
    for (const id of ids) t.match(readFileSync(join(place.uploadsDir, 'files', id), 'utf8'), /^the (first|second)$/)
    t.same(readdirSync(join(place.uploadsDir, 'tmp')), [])
  }
  const headers: [what: string, tar: Buffer, message: RegExp][] = [
    ['a negative size', withSize(tar, first, '-0000000011 '), /is damaged: the header of an entry is invalid/],
    ['a negative size in base 256', withSize(tar, first, `${'\xff'.repeat(11)}\x01`), /header of an entry is invalid/],
    ['an impossible size', withSize(tar, first, `\x80${'\xff'.repeat(11)}`), /has an impossible size/],
    ['a size that is no number', withSize(tar, first, 'zzzzzzzzzzz '), /the header of an entry is invalid/],
  ]
  for (const [what, bytes, message] of headers) {
    await t.test(`14.4 ${what} is refused`, async () => {
      writeFileSync(hostile, gzipSync(bytes))
      await refused(message)
    })
  }

  // These have correct checksums.
  const changes: [what: string, change: (name: string, content: Buffer) => Content, message: RegExp][] = [
    ['a file twice', (name, content) => name === first ? [[name, content], [name, content]] : [[name, content]],
      /is damaged: uploads\/\S+ is in it twice, or at the wrong place\. Copy it again, or use another backup\.$/],
    ['a file twice, not one after the other', (name, content) =>
      name === second ? [[name, content], [first, Buffer.from('the first')]] : [[name, content]],
    /is in it twice, or at the wrong place/],
    ['rows twice', (name, content) =>
      name.startsWith('tables/users/') ? [[name, content], [name, content]] : [[name, content]],
    /is damaged: tables\/users\/00000000\.copy is in it twice/],
    ['rows after files', (name, content) =>
      name === second ? [[name, content], ['tables/throttle/00000000.copy', Buffer.from('')]] : [[name, content]],
    /is in it twice, or at the wrong place|a table that it does not describe/],
    ['a manifest twice', (name, content) =>
      name === 'backup.json' ? [[name, content], [name, content]] : [[name, content]],
    /is damaged: backup\.json is unknown or in it twice/],
    ['other bytes than recorded', (name, content) => [[name, name === first ? Buffer.from('the FIRST') : content]],
      /is damaged: the file of an upload differs from its record \([\w-]+\)\. Nothing was changed: copy/],
    ['fewer bytes than recorded', (name, content) => [[name, name === first ? Buffer.from('the') : content]],
      /the file of an upload differs from its record/],
    ['a file without a record', (name, content) =>
      name === second ? [[name, content], [`uploads/${UNKNOWN}`, content]] : [[name, content]],
    /is damaged: it has the file of an upload without its record \(f{8}-\S+\)\. Nothing was changed/],
    ['a record without a file', (name, content) => name === first ? [] : [[name, content]],
      /is damaged: the files of 1 uploads are missing or differ from their records, and 0 did when the backup/],
  ]
  for (const [what, change, message] of changes) {
    await t.test(`14.4 ${what} is refused`, async () => {
      const copy = join(temporaryFolder(), 'hostile.tar.gz')
      await rewrite(file, copy, change)
      writeFileSync(hostile, readFileSync(copy))
      await refused(message)
    })
  }
  t.match(await restore(file, place, { replaces: true }), { files: 2, missing: 0 }, 'the unchanged one is restored')
})

t.test('14.3 a backup of a checkout from before release 0.1.0 is refused with a sentence, and nothing changes', async (t) => {
  const target = await emptyPlace(t)
  await t.rejects(restore(join(import.meta.dirname, 'fixtures/backup-before-release.tar.gz'), target), {
    message: /was made by a checkout of Usher from before release 0\.1\.0, .*import the users that "users export"/,
  })
  t.same(await withSql(target.database, (sql) => sql`select from pg_namespace where nspname = ${schema}`), [])
})
