import { spawn } from 'node:child_process'
import { randomBytes, randomUUID, createHash } from 'node:crypto'
import { once } from 'node:events'
import { existsSync, readdirSync, readFileSync, statSync } from 'node:fs'
import { mkdir, rm } from 'node:fs/promises'
import { join } from 'node:path'
import { text } from 'node:stream/consumers'
import { fileURLToPath } from 'node:url'
import t from 'tap'
import { migrate } from '../../db/migrations/index.ts'
import { openDatabase } from '../../db/driver/connection.ts'
import { createFolder } from '../../plugins/uploads/folder.ts'
import { schema, withSql } from '../helpers/backup.ts'
import { startDatabase } from '../helpers/database.ts'
import { startDebianPostgres } from '../helpers/debian-postgres.ts'
import { nodeCommand } from '../helpers/node.ts'
import { temporaryFolder } from '../helpers/temporary-folder.ts'
import { until } from '../helpers/until.ts'

const [USERS, POSTS, FILES] = [200_000, 800_000, 1000]
const server = fileURLToPath(new URL('../../node/server.ts', import.meta.url))
const MIB = 1024 * 1024

const folder = temporaryFolder()
const source = { database: (await startDatabase(t)).url, uploadsDir: join(folder, 'source/uploads') }
const target = { database: await startDebianPostgres(t, folder), uploadsDir: join(folder, 'target/uploads') }
const file = join(folder, 'backup.tar.gz')

/** Runs a command in a process of its own. `kill` ends it with SIGKILL when a condition holds. */
async function usher (
  args: string[], { database, uploadsDir }: typeof source,
  { kill, limit }: { kill?: () => Promise<boolean>, limit?: number } = {}
) {
  const measure = 'process.on("exit", () => process._rawDebug("maxRSS " + process.resourceUsage().maxRSS))'
  const { command: [program, words], env } = nodeCommand([
    '--import', `data:text/javascript,${encodeURIComponent(measure)}`, server, ...args, '--uploads-dir', uploadsDir,
  ])
  const limited = limit === undefined
    ? [program, ...words]
    : ['sh', '-c', `ulimit -f ${limit}; exec "$@"`, 'sh', program, ...words]
  const began = performance.now()
  const child = spawn(limited[0]!, limited.slice(1), { cwd: folder, env: { ...env, DATABASE_URL: database } })
  const ended = Promise.all([text(child.stdout), text(child.stderr), once(child, 'close')])
  if (kill) {
    await until('the command is halfway', kill)
    child.kill('SIGKILL')
  }
  const [stdout, stderr, [code]] = await ended
  return {
    stdout,
    stderr,
    code,
    seconds: (performance.now() - began) / 1000,
    rss: Number(/maxRSS (\d+)/.exec(stderr)?.[1]) * 1024 / MIB,
  }
}

const count = (database: string) => withSql(database, async (sql) => {
  const [row] = await sql`select (select count(*)::int from users) users, (select count(*)::int from posts) posts, (select count(*)::int from uploads) uploads,
    (select md5(string_agg(md5(p::text), '' order by id)) from (select id, author_id, title, content, created_at, position from posts) p) hash`
  return { ...row }
})

t.test('14.4 there are a million rows and a thousand files', async () => {
  const { db, close } =
    openDatabase({ database: source.database, schema, poolSize: 2, log: { warn () {}, info () {}, error () {} } })
  await migrate(db, schema)
  await close()
  const backend = createFolder(source.uploadsDir)
  await backend.claim('release-test')
  await withSql(source.database, async (sql) => {
    await sql`insert into users (id, name, email, role) select gen_random_uuid(), 'User ' || n, 'user' || n || '@example.com', 'user' from generate_series(1, ${USERS}) n`
    await sql`alter table posts disable trigger user`
    await sql`with u as (select array_agg(id) ids from users)
      insert into posts (id, author_id, title, content) select gen_random_uuid(), ids[1 + n % ${USERS}], 'Post ' || n, repeat(md5(n::text), 10) from u, generate_series(1, ${POSTS}) n`
    await sql`alter table posts enable trigger user`
    const [owner] = await sql<{ id: string }[]>`select id from users limit 1`
    for (let n = 0; n < FILES; n++) {
      const [id, bytes] = [randomUUID(), randomBytes(n % 10 === 0 ? MIB : 64 * 1024)]
      await backend.write(id, (async function * () { yield bytes })())
      await backend.publish(id)
      await sql`insert into uploads (id, user_id, filename, media_type, size, sha256, description)
        values (${id}, ${owner!.id}, 'f', 'text/plain', ${bytes.length}, ${createHash('sha256').update(bytes).digest('hex')}, 'd')`
    }
  })
})

t.test('14.4 a backup that is killed halfway, or finds the disk full, leaves no file that looks complete', async (t) => {
  const partial = () =>
    readdirSync(folder).filter((name) => /^backup\..*\.partial$/.test(name)).map((name) => join(folder, name))
  await usher(['backup', file], source, { kill: async () => partial().some((path) => statSync(path).size > 10 * MIB) })
  t.notOk(existsSync(file))
  for (const path of partial()) await rm(path)
  const full = await usher(['backup', file], source, { limit: 20 * 1024 })
  t.equal(full.code, 1)
  t.match(
    full.stderr,
    /^There is no space for \S+ \((EFBIG|ENOSPC)\): free some, or choose another disk\. The incomplete file was removed\.\n/m
  )
  t.same(readdirSync(folder).filter((name) => name.startsWith('backup')), [])
})

t.test('14.4 a backup of a million rows and a thousand files takes constant memory', async (t) => {
  const { code, stdout, stderr, seconds, rss } = await usher(['backup', file], source)
  t.equal(code, 0, stderr)
  t.comment(`backup: ${stdout.trim()} ${seconds.toFixed(1)} s, ${Math.round(rss)} MiB of memory`)
  t.ok(rss < 300, `${rss} MiB`)
})

t.test('14.4 it is restored into another version of PostgreSQL, also after a restore that was killed halfway', async (t) => {
  await mkdir(target.uploadsDir, { recursive: true })
  const temporary = join(target.uploadsDir, 'tmp')
  await usher(
    ['restore', file], target, { kill: async () => existsSync(temporary) && readdirSync(temporary).length > FILES / 2 }
  )
  await until('PostgreSQL has ended the transaction', () => withSql(target.database, async (sql) =>
    (await sql`select from pg_stat_activity where application_name = 'usher-restore'`).length === 0))
  t.same(await withSql(target.database, (sql) => sql`select 1 from pg_namespace where nspname = ${schema}`), [])

  const { code, stdout, stderr, seconds, rss } = await usher(['restore', file], target)
  t.equal(code, 0, stderr)
  t.comment(`restore: ${stdout.trim()} ${seconds.toFixed(1)} s, ${Math.round(rss)} MiB of memory`)
  t.ok(rss < 300, `${rss} MiB`)
  t.same(await count(target.database), await count(source.database))
  t.equal(readdirSync(temporary).length, 0)
  for (const id of readdirSync(join(source.uploadsDir, 'files'))) {
    if (!readFileSync(join(source.uploadsDir, 'files', id))
      .equals(readFileSync(join(target.uploadsDir, 'files', id)))) {
      t.fail(id)
    }
  }
})

t.test('14.4 a restore over existing data that is killed halfway leaves the old data', async (t) => {
  await withSql(target.database, (sql) => sql`update users set name = 'Old' where email = 'user1@example.com'`)
  const name = () => withSql(target.database, async (sql) =>
    (await sql`select name from users where email = 'user1@example.com'`)[0]!['name'])
  const temporary = join(target.uploadsDir, 'tmp')
  await usher(
    ['restore', file, '--replace', '--yes'], target, { kill: async () => readdirSync(temporary).length > FILES / 2 }
  )
  t.equal(await name(), 'Old')
  t.equal(readdirSync(join(target.uploadsDir, 'files')).length, FILES)
  t.match(await usher(['restore', file, '--replace', '--yes'], target), { code: 0 })
  t.equal(await name(), 'User 1')
})
