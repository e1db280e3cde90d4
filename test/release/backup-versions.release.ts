import { randomBytes } from 'node:crypto'
import { existsSync, readFileSync, readdirSync } from 'node:fs'
import { join } from 'node:path'
import { execFileSync } from 'node:child_process'
import t from 'tap'
import { createUsher } from '../helpers/app.ts'
import { placeOf, schema, withSql } from '../helpers/backup.ts'
import { spawnCommand } from '../helpers/command.ts'
import { startDebianPostgres } from '../helpers/debian-postgres.ts'
import { nodeCommand, startNode } from '../helpers/node.ts'
import { temporaryFolder } from '../helpers/temporary-folder.ts'
import { upload } from '../helpers/uploads.ts'

const server = join(import.meta.dirname, '../../node/server.ts')
const folder = temporaryFolder()
const databaseUrl = await startDebianPostgres(t, folder)
const file = join(folder, 'backup.tar.gz')
const content = randomBytes(2 * 1024 * 1024)

t.test('14.4 a backup from an older version of PostgreSQL is restored into a new embedded database, and a node serves it', async (t) => {
  const source = await createUsher(t, { databaseUrl, schema, uploadsDir: temporaryFolder() })
  const { fileUrl } = await upload(source, content)
  const made = await spawnCommand(
    ['backup', file, '--uploads-dir', placeOf(source).uploadsDir], { DATABASE_URL: databaseUrl }, folder
  )
  t.match(made, { code: 0, stderr: '' })
  await source.app.close()
  // What goes to standard output is the same archive.
  execFileSync('sh', ['-c', 'node "$0" backup - --uploads-dir "$1" > out.tar.gz', server, placeOf(source).uploadsDir], {
    cwd: folder, env: { ...process.env, DATABASE_URL: databaseUrl }, stdio: 'ignore',
  })
  t.match(execFileSync('tar', ['tzf', join(folder, 'out.tar.gz')]).toString(), /^backup\.json\n[^]*\nend\.json\n$/)

  const cwd = temporaryFolder()
  t.match(await spawnCommand(['restore', file], { DATA_DIR: cwd }, cwd), { code: 0, stderr: '' })
  const node = await startNode(t, { cwd, settings: { DATA_DIR: cwd } })
  await node.login({ email: 'admin@example.com', password: 'horse battery staple' })
  t.ok(Buffer.from(await (await node.fetch(fileUrl)).arrayBuffer()).equals(content))
})

t.test('14.4 a restore that finds the disk full says so and changes nothing', async (t) => {
  await withSql(databaseUrl, (sql) => sql`create database other`)
  const DATABASE_URL = databaseUrl.replace(/postgres$/, 'other')
  const cwd = temporaryFolder()
  const { command: [program, words], env } = nodeCommand([server, 'restore', file])
  const output = execFileSync('sh', ['-c', 'ulimit -f 1000; "$@" 2>&1 || true', 'sh', program, ...words], {
    cwd, env: { ...env, NODE_DISABLE_COMPILE_CACHE: '1', DATABASE_URL },
  }).toString()
  t.match(output, /^The uploads cannot be written to \S+uploads \(EFBIG\): free some space\. Nothing was changed\.\n$/)
  t.same(await withSql(DATABASE_URL, (sql) => sql`select 1 from pg_namespace where nspname = ${schema}`), [])
  t.same(readdirSync(join(cwd, 'data/uploads/tmp')), [])
  t.same(readdirSync(join(cwd, 'data/uploads/files')), [])
  t.match(await spawnCommand(['restore', file], { DATABASE_URL }, cwd), { code: 0 })
  const [id = ''] = readdirSync(join(cwd, 'data/uploads/files'))
  t.ok(
    existsSync(join(cwd, 'data/uploads/files', id)) && readFileSync(join(cwd, 'data/uploads/files', id)).equals(content)
  )
})
