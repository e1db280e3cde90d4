import { once } from 'node:events'
import { writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import t, { type Test } from 'tap'
import { failStart } from '../../helpers/command.ts'
import { createDatabase } from '../../helpers/database.ts'
import { isAlive } from '../../../node/embedded/cluster.ts'
import { logged, spawnNode, startNode } from '../../helpers/node.ts'
import { temporaryFolder } from '../../helpers/temporary-folder.ts'
import { startTraffic, unlike } from '../../helpers/traffic.ts'
import { until } from '../../helpers/until.ts'
import { connectionsOf, maxConnectionsFor, poolSizeOf } from '../../../node/workers/count.ts'
import { gone, pinToWorkers, serving, workersOf } from '../../helpers/workers.ts'

const admin = { email: 'root@example.com', password: 'horse battery staple' }
const ROUNDS = 20
// A worker ends at once if there is a file named `crash` in the node's folder.
const CRASH = `
  import { existsSync } from 'node:fs'
  if (process.env.USHER_WORKER && existsSync('crash')) process.exit(7)
`

t.jobs = 3

async function startWorkers (t: Test, settings: Record<string, string> = {}) {
  const databaseUrl = await createDatabase(t)
  const cwd = temporaryFolder()
  const defaults = {
    WORKERS: '2',
    DATABASE_URL: databaseUrl,
    DATA_DIR: cwd,
    LOG_LEVEL: 'debug',
    ADMIN_EMAIL: admin.email,
    ADMIN_PASSWORD: admin.password,
  }
  const node = await startNode(t, { cwd, settings: { ...defaults, ...settings }, inject: CRASH })
  return { node, cwd, pids: await serving(node, 2) }
}

// If a busy machine delays the database or a worker for a second, requests get 503, as at any other time (contract
// 1.10).
const REFUSED = ['503', 'DATABASE_UNAVAILABLE', 'OVERLOADED']

t.test('14.1 two workers', { buffered: true }, async (t) => {
  const { node, cwd } = await startWorkers(t, { METRICS_PORT: '0' })
  const { headers } = await node.login(admin)

  t.test('14.1 two processes serve one port, and what people need to know is printed once', async (t) => {
    const [one, two] = await pinToWorkers(t, node)
    t.strictSame([one.pid, two.pid].sort(), workersOf(node).sort())
    t.not(node.child.pid, one.pid)
    for (const text of [/listens on/g, /Mails are neither/g]) t.equal(node.stderr.match(text)?.length, 1, `${text}`)
    t.match(node.stderr, `\nworkers: 2, replaced by SIGHUP to process ${node.child.pid}\n`)
    t.equal(node.stdout.match(/SECRET is not set/g)?.length, 1)
  })

  t.test('14.1 a session that ends on one worker is rejected by the other', async (t) => {
    const [one, two] = await pinToWorkers(t, node)
    const { headers } = await node.login(admin)
    const authorization = { authorization: headers['authorization']! }
    const status = async ({ send }: typeof one) => (await send('/api/protected', { headers: authorization })).status
    t.strictSame([await status(one), await status(two)], [200, 200])
    t.equal((await one.send('/api/auth/logout', { method: 'POST', headers: authorization })).status, 204)
    t.equal(await status(one), 401)
    await until('the other worker rejects it', async () => await status(two) === 401)
  })

  t.test('14.1 a killed worker is replaced while the other one serves', async (t) => {
    const [one, two] = await pinToWorkers(t, node)
    process.kill(one.pid, 'SIGKILL')
    await logged(node, () => !workersOf(node).includes(one.pid))
    const replaced = serving(node, 2)
    t.equal((await two.send('/health/ready')).status, 200)
    t.equal((await fetch(`${node.url}/health/ready`, { headers: { connection: 'close' } })).status, 200)
    t.ok((await replaced).includes(two.pid))
    const pids = (await pinToWorkers(t, node)).map(({ pid }) => pid)
    t.strictSame(pids.sort(), (await replaced).sort())
  })

  t.test('14.1 SIGHUP replaces the workers without a failed request, and they read .env again', async (t) => {
    const before = workersOf(node)
    await writeFile(join(cwd, '.env'), 'USERS_VISIBLE_TO=members\n')
    const traffic = startTraffic({ url: node.url, headers })
    await traffic.flow(ROUNDS)
    node.child.kill('SIGHUP')
    await logged(node, () => node.stdout.includes('All workers are replaced'))
    await traffic.flow(ROUNDS)
    await traffic.stop()
    t.strictSame(unlike(traffic.answers, ['200', '201', ...REFUSED]), {}, JSON.stringify(traffic.answers))
    t.strictSame(workersOf(node).filter((pid) => before.includes(pid)), [])
    t.equal((await node.fetch('/api/users')).status, 401)
  })

  t.test('14.2 workers that end log no warning, although they send their last metrics', async (t) => {
    t.same(node.stdout.split('\n').filter((line) => /"level":[45]0/.test(line) && /totals|destroyed/.test(line)), [])
  })

  t.test('14.1 if a new worker cannot start, SIGHUP tries again and says so', async (t) => {
    const before = workersOf(node)
    await writeFile(join(cwd, '.env'), 'UPLOAD_MAX_BYTES=none\n')
    const log = node.stdout.length
    node.child.kill('SIGHUP')
    await logged(node, () => node.stdout.includes('A new worker could not start: another attempt follows'))
    t.strictSame(workersOf(node), before)
    await writeFile(join(cwd, '.env'), '')
    await logged(node, () => node.stdout.slice(log).includes('All workers are replaced'))
    t.strictSame(workersOf(node).filter((pid) => before.includes(pid)), [])
  })

  t.test('14.1 if a new worker cannot start, SIGHUP leaves the others serving', async (t) => {
    const before = workersOf(node)
    await writeFile(join(cwd, '.env'), 'UPLOAD_MAX_BYTES=many\n')
    node.child.kill('SIGHUP')
    await logged(node, () => node.stdout.includes('The workers are not replaced'))
    t.match(node.stderr, /^UPLOAD_MAX_BYTES must be/m)
    t.strictSame(workersOf(node), before)
    t.equal((await node.fetch('/health/ready')).status, 200)
    await writeFile(join(cwd, '.env'), '')
  })

  t.test('14.1 workers that keep ending right after their start end the node with a sentence', async (t) => {
    await writeFile(join(cwd, 'crash'), '')
    for (const pid of workersOf(node)) process.kill(pid, 'SIGKILL')
    t.equal(await node.ended, 1)
    t.match(node.stderr, /^Workers have ended 5 times in a row right after their start: the log says why\.$/m)
  })
})

t.test('14.1 with WORKERS=auto on one core, SIGHUP replaces the only worker', { buffered: true }, async (t) => {
  const cwd = temporaryFolder()
  const settings = { WORKERS: 'auto', DATABASE_URL: await createDatabase(t), DATA_DIR: cwd, LOG_LEVEL: 'debug' }
  const oneCore =
    "import os from 'node:os'; import { syncBuiltinESMExports } from 'node:module'; os.availableParallelism = () => 1; syncBuiltinESMExports()"
  const node = await startNode(t, { cwd, settings, inject: oneCore })
  const [first] = await serving(node, 1)
  node.child.kill('SIGHUP')
  await serving(node, 1, [first!])
  t.equal((await node.fetch('/health/ready')).status, 200)
})

t.test('14.1 Ctrl-C, which reaches all processes, stops the node in order', { buffered: true }, async (t) => {
  const { node, pids } = await startWorkers(t, { ADMIN_EMAIL: '', ADMIN_PASSWORD: '', PRINT_SECRETS: 'true' })
  const [, password = ''] = node.stderr.match(/The first admin is admin@example\.com, password (\S+)/)!
  t.equal(node.stderr.match(/The first admin/g)?.length, 1, 'the password is printed once')
  const { socket, answer, rest } = await node.beginLogin({ email: 'admin@example.com', password })
  for (const pid of pids) process.kill(pid, 'SIGINT')
  node.child.kill('SIGINT')
  await node.said('Usher stops on SIGINT')
  socket.write(rest)
  t.match(await answer, /^HTTP\/1\.1 100 .*HTTP\/1\.1 200 OK/s, 'the request in flight is completed')
  t.equal(await node.ended, 0)
  t.strictSame(pids.filter(isAlive), [])
})

t.test('14.1 workers complete their requests and end if the primary is killed', { buffered: true }, async (t) => {
  const { node, pids } = await startWorkers(t)
  const { socket, answer, rest } = await node.beginLogin(admin)
  node.child.kill('SIGKILL')
  await once(node.child, 'exit')
  socket.write(rest)
  t.match(await answer, /^HTTP\/1\.1 100 .*HTTP\/1\.1 200 OK/s)
  await gone(pids)
  t.pass('no worker is left')
})

t.test('14.1 a node whose first worker cannot start ends with its sentence', { buffered: true }, async (t) => {
  const node = spawnNode(t, {
    cwd: temporaryFolder(),
    settings: { WORKERS: 'auto', DATABASE_WAIT_SECONDS: '5', DATABASE_URL: 'postgres://usher@127.0.0.1:1/usher' },
  })
  t.equal(await node.ended, 1)
  t.match(node.stderr, /^DATABASE_URL: "usher" on 127\.0\.0\.1:1 cannot be reached \(ECONNREFUSED\)\.$/m)
})

t.test('14.1 all workers together leave connections of PostgreSQL to others, or an embedded one has more of them', async (t) => {
  for (const workers of [2, 3, 4, 8, 16, 17]) t.ok(connectionsOf(workers, poolSizeOf(workers)) <= 80, `${workers}`)
  t.equal(poolSizeOf(2), 10)
  for (const workers of [16, 32, 256]) {
    t.ok(maxConnectionsFor(workers) >= connectionsOf(workers, poolSizeOf(workers)) + 20, `${workers}`)
  }
})

t.test('14.1 WORKERS is checked', { buffered: true }, async (t) => {
  const { code, stderr } = await failStart({ WORKERS: 'all' }, temporaryFolder())
  t.equal(code, 1)
  t.equal(stderr, 'WORKERS must be a whole number of processes from 1 to 256, or auto for one per core.\n')
})
