import { spawn } from 'node:child_process'
import { randomBytes } from 'node:crypto'
import { once } from 'node:events'
import { readdir } from 'node:fs/promises'
import { text } from 'node:stream/consumers'
import { fileURLToPath } from 'node:url'
import t, { type Test } from 'tap'
import postgres from 'postgres'
import { migrations } from '../../../db/migrations/index.ts'
import { runCommand } from '../../helpers/command.ts'
import { createDatabase } from '../../helpers/database.ts'
import { folder, isDown } from '../../helpers/embedded.ts'
import { nextMigrations } from '../../helpers/next-migrations.ts'
import { createNextRelease } from '../../helpers/next-release.ts'
import { nodeCommand, spawnNode, startNode, type ServingNode } from '../../helpers/node.ts'
import { temporaryFolder } from '../../helpers/temporary-folder.ts'
import { until } from '../../helpers/until.ts'

const server = fileURLToPath(new URL('../../../node/server.ts', import.meta.url))
// What a command shows that takes longer than five seconds.
const PROGRESS = /^(Backing up: .+\n)*$/
const admin = { email: 'root@example.com', password: 'horse battery staple' }
const adminSettings = { ADMIN_EMAIL: admin.email, ADMIN_PASSWORD: admin.password }

function usher (t: Test, args: string[], cwd: string, settings: Record<string, string> = {}) {
  const { command, env } = nodeCommand([server, ...args])
  const child = spawn(...command, { cwd, env: { ...env, ...settings }, stdio: ['ignore', 'pipe', 'pipe'] })
  t.teardown(() => child.kill('SIGKILL'))
  return { child, stderr: text(child.stderr), ended: once(child, 'close').then(([code, signal]) => code ?? signal) }
}

// Random bytes cannot be compressed, and a pipe holds 64 KiB, so a command that prints them waits for its reader.
async function upload (node: ServingNode): Promise<void> {
  const { headers: { authorization } } = await node.login(admin)
  const body = new FormData()
  body.set('description', 'Random bytes')
  body.set('file', new Blob([randomBytes(1024 * 1024)]), 'random.bin')
  const { status } = await node.fetch(
    '/api/uploads', { method: 'POST', headers: { authorization: authorization! }, body }
  )
  if (status !== 200) throw new Error(`upload: ${status}`)
}

t.test('14.4 a signal ends a command, and the PostgreSQL that it has started is stopped first', { buffered: true }, async (t) => {
  const cwd = folder(t)
  const node = await startNode(t, { cwd, settings: adminSettings })
  await upload(node)
  node.child.kill('SIGTERM')
  await node.ended
  t.equal(await isDown(`${cwd}/data`), true)

  const { child, stderr, ended } = usher(t, ['backup', '-'], cwd)
  await once(child.stdout, 'readable')
  t.equal(await isDown(`${cwd}/data`), false)
  child.kill('SIGINT')
  child.stdout.resume()
  t.equal(await ended, 130)
  t.match(await stderr, PROGRESS, 'what the signal interrupts is no failure')
  t.equal(await isDown(`${cwd}/data`), true)
})

t.test('14.4 restore refuses embedded databases and folders that are not empty before it reads the backup', { buffered: true }, async (t) => {
  const cwd = folder(t)
  const node = await startNode(t, { cwd, settings: adminSettings })
  await upload(node)
  const busy = await runCommand(['restore', 'none.tar.gz', '--replace', '--yes'], {}, cwd)
  t.equal(busy.code, 1)
  t.match(
    busy.stderr, /^Nodes or commands of Usher use the database \(\d+ connections\): stop all of them first\.\n$/
  )
  node.child.kill('SIGTERM')
  await node.ended

  const refused = await runCommand(['restore', 'none.tar.gz'], {}, cwd)
  t.equal(refused.code, 1)
  t.match(
    refused.stderr, /^There is a database with 1 users and 1 files of uploads already: repeat .* with --replace/
  )
  t.equal(await isDown(`${cwd}/data`), true)

  const other = temporaryFolder()
  const files = await runCommand(['restore', 'none.tar.gz', '--uploads-dir', `${cwd}/data/uploads`], {}, other)
  t.equal(files.code, 1)
  t.match(files.stderr, /^There is an empty database and 1 files of uploads already: repeat .* with --replace/)
  t.same(await readdir(other), [], 'no database was created')
})

t.test('14.4 a backup that nobody reads to its end says so, and one that a signal ends leaves no file', { buffered: true }, async (t) => {
  const cwd = folder(t)
  const settings = { DATABASE_URL: await createDatabase(t) }
  const node = await startNode(t, { cwd, settings: { ...settings, ...adminSettings } })
  await upload(node)

  const unread = usher(t, ['backup', '-'], cwd, settings)
  await once(unread.child.stdout, 'readable')
  unread.child.stdout.destroy()
  t.equal(await unread.ended, 1)
  t.match(await unread.stderr, /The program that reads the output has ended, so the backup is incomplete\.\n$/)

  const sql = postgres(settings.DATABASE_URL, { max: 1, onnotice: () => {} })
  t.teardown(() => sql.end({ timeout: 0 }))
  await sql.begin(async (sql) => {
    await sql`lock table usher.users in access exclusive mode`
    const killed = usher(t, ['backup', 'backup.tar.gz'], cwd, settings)
    await until('there is a partial file', async () => (await readdir(cwd)).some((name) => name.endsWith('.partial')))
    killed.child.kill('SIGTERM')
    t.equal(await killed.ended, 143)
    t.match(await killed.stderr, PROGRESS)
  })
  t.same(await readdir(cwd), ['data'])
})

t.test('14.4 a node that starts while tables are locked says what to wait for', { buffered: true }, async (t) => {
  const cwd = folder(t)
  const settings = { DATABASE_URL: await createDatabase(t) }
  t.equal((await runCommand(['migrate'], settings, cwd)).code, 0)
  const sql = postgres(settings.DATABASE_URL, { max: 1, onnotice: () => {} })
  t.teardown(() => sql.end({ timeout: 0 }))
  await sql.unsafe(`alter database ${sql.options.database} set lock_timeout = 100`)
  await sql.begin(async (sql) => {
    await sql`lock table usher.users, usher.migrations in access exclusive mode`
    const node = spawnNode(t, { cwd, settings: { ...settings, DEADLINE_FACTOR: '1' } })
    t.equal(await node.ended, 1)
    t.match(
      node.stderr,
      /another program has locked tables of the schema "usher", for example a restore or a migration\. Start again when it has ended/
    )
  })
})

t.test('8 a signal ends a node whose migration waits, and the next start continues it', { buffered: true }, async (t) => {
  const cwd = folder(t)
  const settings = { DATABASE_URL: await createDatabase(t) }
  t.equal((await runCommand(['migrate'], settings, cwd)).code, 0)
  const sql = postgres(settings.DATABASE_URL, { max: 1, onnotice: () => {} })
  t.teardown(() => sql.end({ timeout: 0 }))
  const names = async () => (await sql`select name from usher.migrations order by name`).map(({ name }) => name)
  const program = createNextRelease()
  const all = Object.keys({ ...migrations, ...nextMigrations })
  await sql.begin(async (sql) => {
    await sql`lock table usher.uploads in row exclusive mode`
    const node = spawnNode(t, { cwd, settings, program })
    await until('the migration waits', () => node.stdout.includes('a migration waits for a lock'))
    node.child.kill('SIGTERM')
    t.equal(await node.ended, 0)
  })
  t.same(await names(), all.slice(0, -1))
  await startNode(t, { cwd, settings, program })
  t.same(await names(), all)
})
