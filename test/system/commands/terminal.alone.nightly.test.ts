import { existsSync } from 'node:fs'
import { connect, createServer, type AddressInfo } from 'node:net'
import { once } from 'node:events'
import { PassThrough } from 'node:stream'
import { text } from 'node:stream/consumers'
import { fileURLToPath } from 'node:url'
import postgres from 'postgres'
import t, { type Test } from 'tap'
import { explainListening } from '../../../node/preflight.ts'
import { createFirstAdminNotice } from '../../../node/terminal/first-admin-notice.ts'
import { localUrl } from '../../../node/http/local-address.ts'
import { createPrettyLog } from '../../../node/terminal/pretty-log.ts'
import { Messages } from '../../../node/terminal/print.ts'
import { failStart, runCommand, spawnCommand } from '../../helpers/command.ts'
import { createDatabase } from '../../helpers/database.ts'
import { slowNode } from '../../helpers/deadlines.ts'
import { logged, spawnNode, stopNode, type TestNode } from '../../helpers/node.ts'
import { spawnOnTerminal } from '../../helpers/terminal.ts'

const server = fileURLToPath(new URL('../../../node/server.ts', import.meta.url))

t.jobs = 3

/** Returns the lines of the log as a terminal shows them, without colors. */
async function pretty (...entries: object[]): Promise<string[]> {
  const output = new PassThrough()
  const log = createPrettyLog(output)
  for (const entry of entries) log.write(`${JSON.stringify(entry)}\n`)
  output.end()
  // eslint-disable-next-line no-control-regex
  return (await text(output)).replaceAll(/\u001B\[[\d;]*m/g, '').split('\n').slice(0, -1)
}

t.test('14.5 the log on a terminal has one readable line per entry, and no control characters of others', async (t) => {
  const time = new Date(2026, 0, 2, 3, 4, 5).getTime()
  t.same(await pretty(
    { level: 30, time, pid: 1, hostname: 'h', msg: 'a message' },
    {
      level: 40,
      time,
      pid: 1,
      hostname: 'h',
      reqId: 'r-1',
      count: 2,
      user: { id: 'u' },
      msg: 'a \u001B[31mwarning\u202E',
    },
    { level: 50, time, err: { type: 'Error', message: 'no', stack: 'Error: no\n    at \u0007x' } }
  ), [
    '03:04:05 INFO  a message',
    '03:04:05 WARN  a \uFFFD[31mwarning\uFFFD reqId=r-1 count=2 user={"id":"u"}',
    '03:04:05 ERROR ',
    '  Error: no',
    '      at \uFFFDx',
  ])
})

t.test('14.5 a start on a terminal prints readable lines, and last the password of the first admin in a box', { buffered: true }, async (t) => {
  const DATABASE_URL = await createDatabase(t)
  const node = spawnOnTerminal(t, [server], {
    cwd: t.testdir(), settings: { PORT: '0', DATABASE_URL, ADMIN_EMAIL: '', ADMIN_PASSWORD: '', SECRET: '' },
  })
  const [, url] = await node.shows(/Usher listens on (http:\/\/localhost:\d+)\n/)
  const [box] = await node.shows(
    /┌─+┐\n│ {2}The first admin is admin@example\.com, password \S{20} \(not shown again\) {2}│\n└─+┘\n/
  )
  t.ok(node.output.endsWith(box), 'nothing follows')
  t.match(node.output, /^\d\d:\d\d:\d\d WARN {2}SECRET is not set: /m)
  t.notMatch(node.output, '{"level"')
  t.equal((await fetch(`${url}/health/live`)).status, 200)
  node.type('\u0003')
  t.equal(await node.ended, 0)
  t.match(node.output, 'Usher stops on SIGINT')
})

t.test('14.5 the password of the first admin is printed once, without a box elsewhere than on a terminal', async (t) => {
  const written: string[] = []
  for (const isTTY of [true, false]) {
    const output = Object.assign(new PassThrough({ encoding: 'utf8' }), { isTTY })
    const notice = createFirstAdminNotice(new Messages(output))
    notice.show()
    notice.keep({ email: 'a@example.com', password: 'secret' })
    notice.show()
    notice.show()
    written.push(String(output.read()))
  }
  const line = 'The first admin is a@example.com, password secret (not shown again)'
  const edge = '─'.repeat(line.length + 4)
  t.same(written, [`┌${edge}┐\n│  ${line}  │\n└${edge}┘\n`, `${line}\n`])
})

t.test('14.5 the password of the first admin is printed although the start fails after its creation', { buffered: true }, async (t) => {
  // The first server only checks the port. The second one is the node's.
  const inject = `import { Server } from 'node:net'
    const { listen } = Server.prototype
    let count = 0
    Server.prototype.listen = function (...args) {
      if (++count !== 2) return listen.apply(this, args)
      process.nextTick(() => this.emit('error', Object.assign(new Error('taken'), { code: 'EADDRINUSE' })))
      return this
    }`
  const settings = { DATABASE_URL: await createDatabase(t), PRINT_SECRETS: 'true' }
  const node = spawnNode(t, { cwd: t.testdir(), settings, inject })
  t.equal(await node.ended, 1)
  t.match(
    node.stderr,
    /^PORT 0 is in use on 127\.0\.0\.1: .+\nThe first admin is admin@example\.com, password \S{20} \(not shown again\)\n$/
  )
})

t.test('14.5 the printed address is localhost, unless that leads to another program or the node listens elsewhere', async (t) => {
  const listen = async (host: string, port = 0) => {
    const server = createServer((socket) => socket.destroy()).listen(port, host)
    await once(server, 'listening')
    t.teardown(() => server.close())
    return server.address() as AddressInfo
  }
  const bound = await listen('127.0.0.1')
  const url = `http://127.0.0.1:${bound.port}`
  t.equal(await localUrl(url, bound, slowNode.localConnection), `http://localhost:${bound.port}`)
  t.equal(
    await localUrl('http://192.0.2.1:3000', { address: '192.0.2.1', family: 'IPv4', port: 3000 }),
    'http://192.0.2.1:3000'
  )
  const hasIpv6 = await listen('::1', bound.port).then(() => true, () => false)
  const { lookup } = await import('node:dns/promises')
  const names = (await lookup('localhost', { all: true })).map(({ address }) => address)
  const shown = await localUrl(url, bound, slowNode.localConnection)
  if (hasIpv6 && names.includes('::1')) t.equal(shown, url, 'another program listens on ::1')
})

t.test('14.5 settings, port and data folder: all problems are reported at once, and nothing is created', { buffered: true }, async (t) => {
  const [port, metricsPort] = await Promise.all([1, 2].map(async () => {
    const taken = createServer().listen(0, '127.0.0.1')
    await once(taken, 'listening')
    t.teardown(() => taken.close())
    return (taken.address() as AddressInfo).port
  }))
  const cwd = t.testdir({ file: '', '.env': 'DATABSE_URL=postgres://h/d\nLOG_LEVEL=loud\n' })
  const { code, stderr } = await failStart({
    PORT: `${port}`,
    METRICS_PORT: `${metricsPort}`,
    DATA_DIR: 'file/data',
    ADMIN_EMAIL: 'a@example.com',
    ADMIN_PASSWORD: 'password1',
  }, cwd)
  t.equal(code, 1)
  t.equal(stderr, [
    'DATABSE_URL is not a setting and has no effect: did you mean DATABASE_URL?',
    'LOG_LEVEL must be one of fatal, error, warn, info, debug, trace and silent.',
    `PORT ${port} is in use on 127.0.0.1: stop the program that uses it, or set another PORT (0 for any free one).`,
    `METRICS_PORT ${metricsPort} is in use on 127.0.0.1: stop the program that uses it, or set another METRICS_PORT (0 for any free one).`,
    `DATA_DIR cannot be used, because ${cwd}/file is not a writable folder (it is not a folder): start the node as the user who owns it, or choose another DATA_DIR.`,
    'ADMIN_PASSWORD is too common\n',
  ].join('\n'))
})

t.test('14.5 a DATA_DIR in /proc and a METRICS_PORT like PORT are reported at once', {
  buffered: true, skip: !existsSync('/proc/self'),
}, async (t) => {
  const { code, stderr } = await failStart({ PORT: '3000', METRICS_PORT: '3000', DATA_DIR: '/proc/x' }, t.testdir())
  t.equal(code, 1)
  t.match(
    stderr,
    /^PORT and METRICS_PORT must differ\.\nDATA_DIR cannot be used, because \/proc is not a writable folder \(.+\): start the node as .+\n$/
  )
})

t.test('14.5 explains why a port below 1024 cannot be used', async (t) => {
  t.match(
    explainListening({ code: 'EACCES' } as NodeJS.ErrnoException, { HOST: '::1', PORT: 80 }),
    /another HOST or PORT\. Ports below 1024 need a privilege, or a proxy in front\.$/
  )
  t.notMatch(explainListening({ code: 'EACCES' } as NodeJS.ErrnoException, { HOST: '::1', PORT: 8080 }), 'privilege')
})

t.test('14.5 a start waits for the database and says so, and SIGTERM ends the wait', { buffered: true }, async (t) => {
  const DATABASE_URL = 'postgres://u:secret@127.0.0.1:1/d'
  const node = spawnNode(t, { cwd: t.testdir(), settings: { DATABASE_URL, DATABASE_WAIT_SECONDS: '3600' } })
  await node.said(
    /^DATABASE_URL: "d" on 127\.0\.0\.1:1 cannot be reached \(ECONNREFUSED\): waiting for up to 3600 seconds\.\n/
  )
  node.child.kill('SIGTERM')
  t.equal(await node.ended, 0)
  t.match(node.stderr, 'Usher stops on SIGTERM\n')
  t.notMatch(node.stderr, 'secret')
})

t.test('14.5 a start continues when the database can be reached, and warns of an ignored ADMIN_EMAIL', { buffered: true }, async (t) => {
  const { port, hostname, username, password, pathname } = new URL(await createDatabase(t))
  // The database cannot be reached until something listens on this port and passes the connections on.
  const proxy = createServer((socket) => {
    const target = connect(Number(port), hostname)
    for (const [one, other] of [[socket, target], [target, socket]] as const) {
      one.on('error', () => other.destroy()).pipe(other)
    }
  }).listen(0, '127.0.0.1')
  await once(proxy, 'listening')
  const { port: proxied } = proxy.address() as AddressInfo
  await new Promise((resolve) => proxy.close(resolve))
  const settings = {
    DATABASE_URL: `postgres://${username}:${password}@127.0.0.1:${proxied}${pathname}`,
    SECRET: 'a secret of many words',
  }
  const node = spawnNode(t, {
    cwd: t.testdir(), settings: { ...settings, ADMIN_EMAIL: 'a@example.com', ADMIN_PASSWORD: 'horse battery staple' },
  })
  await node.said('waiting for up to 60 seconds')
  proxy.listen(proxied, '127.0.0.1')
  t.teardown(() => proxy.close())
  await node.said(/The database can be reached\.\n[^]*listens on/)
  t.notMatch(node.stderr, /^ADMIN_EMAIL/m)

  const next = spawnNode(t, {
    cwd: t.testdir(),
    settings: {
      ...settings, NODE_ENV: 'production', ADMIN_EMAIL: 'b@example.com', ADMIN_PASSWORD: 'horse battery staple',
    },
  })
  await next.said(
    'ADMIN_EMAIL and ADMIN_PASSWORD have no effect, because the database has another admin. To make b@example.com one'
  )
  t.match(next.stdout, '"msg":"SMTP_URL is not set: no mails are sent, so nobody can reset a password"')
})

t.test('14.5 a start waits for a standby to be promoted, as for an unreachable database', { buffered: true }, async (t) => {
  const url = await createDatabase(t)
  const sql = postgres(url, { onnotice () {} })
  t.teardown(() => sql.end())
  const name = new URL(url).pathname.slice(1)
  // Like a standby, it answers and accepts no writes.
  await sql`alter database ${sql(name)} set default_transaction_read_only = on`
  const settings = { DATABASE_URL: url, SECRET: 'a secret of many words' }
  const failed = spawnNode(t, { cwd: t.testdir(), settings: { ...settings, DATABASE_WAIT_SECONDS: '0' } })
  t.equal(await failed.ended, 1)
  t.match(failed.stderr, /^DATABASE_URL: "[^"]+" on [^ ]+ accepts no writes: it is a standby, or set to read only\.$/m)

  const node = spawnNode(t, { cwd: t.testdir(), settings })
  await node.said(/^DATABASE_URL: .* accepts no writes \(READ_ONLY\): waiting for up to 60 seconds\.$/m)
  await sql.begin('read write', (writable) =>
    writable`alter database ${writable(name)} reset default_transaction_read_only`)
  await node.said(/The database can be reached\.\n[^]*listens on/)
})

t.test('14.5 a database that accepts connections and does not answer: a start and commands say so, and end', { buffered: true }, async (t) => {
  // The messages of a login that succeeds, and nothing after them.
  const welcome = Buffer.from('R\0\0\0\x08\0\0\0\0Z\0\0\0\x05I', 'latin1')
  const silent = createServer((socket) => {
    socket.once('data', () => socket.write(welcome)).on('error', () => {})
  }).listen(0, '127.0.0.1')
  t.teardown(() => silent.close())
  await once(silent, 'listening')
  const settings = {
    DATABASE_URL: `postgres://usher@127.0.0.1:${(silent.address() as AddressInfo).port}/usher?sslmode=disable`,
    DATABASE_WAIT_SECONDS: '1',
    DEADLINE_FACTOR: '1',
  }
  const cwd = t.testdir()
  const [start, ...commands] = await Promise.all([
    spawnCommand([], { ...settings, PORT: '0' }, cwd),
    ...[['status'], ['users', 'list'], ['users', 'create', '--name', 'A', '--email', 'a@example.com']]
      .map((args) => runCommand(args, settings, cwd)),
  ])
  t.equal(start!.code, 1)
  t.match(start!.stderr, /cannot be reached \(it does not answer\)/)
  for (const { code, stdout, stderr } of commands) {
    t.equal(code, 1)
    t.match(stdout + stderr, /cannot be reached \(it does not answer\)/)
  }
})

t.test('14.5 arguments that commands repeat cannot control the terminal', { buffered: true }, async (t) => {
  const hostile = 'a\u001B[31mb\u001B]52;c;eA==\u0007'
  for (const [args, code] of [[[hostile], 2], [['restore', hostile], 1], [['status', `--${hostile}`], 2]] as const) {
    const { stderr, ...result } = await runCommand(args, {}, t.testdir())
    t.equal(result.code, code)
    t.match(stderr, 'a\uFFFD[31mb\uFFFD]52')
    // eslint-disable-next-line no-control-regex
    t.notMatch(stderr, /[\u001B\u0007]/)
  }
})

/** Returns the entries of both streams of a node that has ended. Throws if a line is no entry of a log. */
function entriesOf (t: Test, { stdout, rawStderr }: TestNode): Entry[] {
  const lines = `${stdout}${rawStderr}`.split('\n').filter((line) => line !== '')
  const entries = lines.map((line) => JSON.parse(line) as Entry)
  for (const entry of entries) {
    t.match(entry, { level: Number, time: Number, pid: Number, hostname: String, msg: String }, entry.msg)
  }
  return entries
}

interface Entry { level: number, pid: number, msg: string, err?: { type: string, stack: string } }

t.test('14.5 every line of a node is JSON if there is no terminal: the start, warnings, the console of libraries, the stop', { buffered: true }, async (t) => {
  const inject = `
    setTimeout(() => {
      process.emitWarning('old and\\nlong', 'DeprecationWarning', 'DEP0000')
      process.emitWarning('new', 'ExperimentalWarning')
      console.log('%s of a library', 'a line')
      console.error(new Error('of a library'))
    }, 1)`
  const settings = {
    DATABASE_URL: await createDatabase(t), PRODUCT_COLOUR: 'x', WORKERS: '2', PRINT_SECRETS: 'true', LOG_LEVEL: 'debug',
  }
  const node = spawnNode(t, { cwd: t.testdir(), settings, inject })
  await node.said('workers: 2')
  await logged(node, () => node.stdout.split('"msg":"A worker listens"').length === 3)
  const worker = entriesOf(t, node).find(({ msg }) => msg.startsWith('Usher listens on'))!.pid
  t.not(worker, node.child.pid)
  process.kill(worker, 'SIGKILL')
  await logged(node, () => node.stdout.includes('A worker has ended unexpectedly'))
  t.equal(await stopNode(node), 0)
  const entries = entriesOf(t, node)
  const found = (msg: string | RegExp) =>
    entries.find((entry) => typeof msg === 'string' ? entry.msg === msg : msg.test(entry.msg))
  t.match(found('old and\nlong'), { level: 40, err: { type: 'DeprecationWarning', code: 'DEP0000', stack: String } })
  t.match(found('new'), { level: 40, err: { type: 'ExperimentalWarning' } })
  t.match(found('a line of a library'), { level: 30 })
  t.match(found(/^Error: of a library\n/), { level: 50 })
  t.match(found(/^PRODUCT_COLOUR is not a setting/), { level: 40 })
  t.match(found('Usher stops on SIGTERM'), { level: 30, pid: node.child.pid })
})

t.test('14.5 why a node does not start, or has crashed, is JSON if there is no terminal', { buffered: true }, async (t) => {
  const settings = { DATABASE_URL: 'postgres://127.0.0.1:1/none' }
  const bug = { level: 60, err: { message: 'a bug', stack: /^Error: a bug\n/ } }
  const now = { DATABASE_WAIT_SECONDS: '0' }
  const cases: [given: Record<string, string>, inject: string | undefined, expected: object[]][] = [
    [
      { PORT: 'x', LOG_LEVEL: 'loud' },
      undefined,
      [{ level: 60, msg: /^PORT must be/ }, { level: 60, msg: /^LOG_LEVEL must be/ }],
    ],
    [
      { ...now, WORKERS: '2' },
      undefined,
      [{ level: 60, msg: /^DATABASE_URL: "none" on 127\.0\.0\.1:1 cannot be reached/ }],
    ],
    [{}, "process.nextTick(() => process.on('newListener', (name) => { if (name === 'uncaughtException') setTimeout(() => { throw new Error('a bug') }) }))", [bug]],
    [{}, "setTimeout(() => { Promise.reject(new Error('a bug')) }, 2000)", [bug]],
  ]
  for (const [given, inject, expected] of cases) {
    const node = spawnNode(
      t, { cwd: t.testdir(), settings: { ...settings, ...given }, ...inject !== undefined && { inject } }
    )
    t.equal(await node.ended, 1)
    t.match(entriesOf(t, node).filter(({ level }) => level === 60).slice(0, expected.length), expected)
  }
})
