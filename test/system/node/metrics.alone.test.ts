import cluster from 'node:cluster'
import { once } from 'node:events'
import { readFile } from 'node:fs/promises'
import { connect } from 'node:net'
import { fileURLToPath } from 'node:url'
import t from 'tap'
import { failStart } from '../../helpers/command.ts'
import { createDatabase } from '../../helpers/database.ts'
import { slowNode } from '../../helpers/deadlines.ts'
import { nightly } from '../../helpers/nightly.ts'
import { startNode, stopNode } from '../../helpers/node.ts'
import { serveMetricsOfWorkers } from '../../../node/metrics/workers.ts'
import { until } from '../../helpers/until.ts'

const admin = { email: 'root@example.com', password: 'horse battery staple' }
const settings = {
  DATABASE_URL: await createDatabase(t),
  SECRET: 'a secret of many words',
  ADMIN_EMAIL: admin.email,
  ADMIN_PASSWORD: admin.password,
}
// Tells at its end whether the library has been loaded.
const inject = `
  import module from 'node:module'
  import { writeSync } from 'node:fs'
  process.on('exit', () => writeSync(2, Object.keys(module._cache).some((name) => name.includes('@prometheus-io')) ? 'loaded' : 'not needed'))`
const node = await startNode(t, { cwd: t.testdir(), settings: { ...settings, METRICS_PORT: '0' }, inject })
const [, url = ''] = await node.said(/Metrics are at (\S+)/)
const scrape = async (from = url) => (await fetch(from)).text()

/** Returns the value of a line, or undefined if there is none. */
function valueOf (text: string, name: string, labels = ''): number | undefined {
  const line = text.split('\n').find((line) => line.startsWith(`${name}${labels} `))
  return line === undefined ? undefined : Number(line.slice(line.lastIndexOf(' ')))
}

t.test('14.2 METRICS_PORT serves metrics by route pattern and status, and nothing of what clients choose', async (t) => {
  const { headers, token } = await node.login(admin)
  const created = await node.fetch(
    '/api/users', { method: 'POST', headers, body: JSON.stringify({ name: 'Ada', email: 'ada@example.com' }) }
  )
  const { id } = await created.json() as { id: string }
  for (let request = 0; request < 3; request++) await node.fetch(`/api/users/${id}?secret=sesame`)
  await node.fetch('/api/users/nobody')
  await node.fetch('/wp-admin/sesame')
  await node.fetch('/api/sesame')
  await node.fetch(
    '/graphql', { method: 'POST', headers, body: JSON.stringify({ query: 'query Sesame { users { nodes { id } } }' }) }
  )
  const count = (text: string, method: string, route: string, status: number) =>
    valueOf(
      text,
      'http_server_request_duration_seconds_count',
      `{http_request_method="${method}",http_route="${route}",http_response_status_code="${status}"}`
    )
  await until('all requests are counted', async () => count(await scrape(), 'POST', '/graphql', 200) === 1)
  const response = await fetch(url)
  t.equal(response.headers.get('content-type'), 'text/plain; version=0.0.4; charset=utf-8')
  const text = await response.text()
  t.equal(count(text, 'GET', '/api/users/:id', 200), 3)
  t.equal(count(text, 'GET', '/api/users/:id', 404), 1)
  t.equal(count(text, 'POST', '/api/users', 201), 1)
  t.equal(count(text, 'GET', 'unknown', 404), 1)
  for (const chosen of [id, 'sesame', 'Sesame', 'wp-admin', 'ada@example.com', '127.0.0.1', token]) {
    t.notMatch(text, chosen)
  }
  t.ok(valueOf(text, 'usher_batch_items_count', '{batch="users.read"}')! >= 3)
  t.ok(valueOf(text, 'process_cpu_seconds_total')! > 0)
  t.ok(valueOf(text, 'usher_process_gc_seconds_total', '{process="1"}')! > 0)
  t.ok(valueOf(text, 'usher_process_event_loop_delay_seconds', '{process="1"}')! > 0)
  t.ok(valueOf(text, 'usher_process_heap_bytes', '{process="1"}')! > 1_000_000)
})

t.test('14.2 only GET /metrics is answered, and clients that do not read or send do not stop others', async (t) => {
  const address = new URL(url)
  for (const [path, method] of [
    ['/', 'GET'], ['/metrics/', 'GET'], ['/metrics', 'POST'], ['/api/users', 'GET'], ['/%', 'GET'],
  ] as const) {
    t.equal((await fetch(new URL(path, url), { method })).status, 404, `${method} ${path}`)
  }
  t.equal((await node.fetch('/metrics')).status, 404, 'the API does not serve them')
  const slow = Array.from({ length: 10 }, () => connect(Number(address.port), address.hostname))
  for (const socket of slow) socket.on('error', () => {}).pause().write('GET /metrics HTTP/1.1\r\nhost: x\r\n')
  await Promise.all(slow.map((socket) => once(socket, 'connect')))
  const texts = await Promise.all(Array.from({ length: 20 }, () => scrape()))
  for (const text of texts) t.match(text, 'usher_database_available 1')
  for (const socket of slow) socket.destroy()
})

t.test('14.2 docs/operations/metrics.md lists all metrics with their labels', async (t) => {
  const document = await readFile(fileURLToPath(new URL('../../../docs/operations/metrics.md', import.meta.url)), 'utf8')
  const listed = new Map([...document.matchAll(/^\| `(\w+)` \| (\w+) \| ([^|]*) \|/gm)].map(([, name, type, labels]) =>
    [name!, `${type} ${[...labels!.matchAll(/`(\w+)`/g)].map(([, label]) => label).join()}`]))
  const text = await scrape()
  const served = new Map<string, string>()
  for (const [, name, type] of text.matchAll(/^# TYPE (\w+) (\w+)$/gm)) {
    const line = text.split('\n').find((line) => new RegExp(`^${name}(_count)?[{ ]`).test(line)) ?? ''
    const labels = [...line.matchAll(/(\w+)="/g)].map(([, label]) => label).join()
    served.set(name!, `${type} ${labels}`)
  }
  t.ok(served.size > 40)
  for (const [name, described] of served) {
    // Nothing has been counted for some labels.
    const matches =
      listed.get(name) === described || (described.endsWith(' ') && listed.get(name)?.startsWith(described))
    t.ok(matches, `${name}: ${described}, listed as ${listed.get(name)}`)
  }
  // This node has neither workers, an S3, standbys nor breached passwords.
  const others = /^usher_(workers|storage_request|replica|breached)/
  for (const name of listed.keys()) t.ok(served.has(name) || others.test(name), `${name} is served`)
})

nightly('14.2 a METRICS_PORT in use stops the start with a sentence', async (t) => {
  const { port } = new URL(url)
  const { code, stderr } = await failStart({ ...settings, METRICS_PORT: port }, t.testdir())
  t.equal(code, 1)
  t.match(stderr, `METRICS_PORT ${port} is in use on 127.0.0.1`)
})

nightly('14.2 the first scrape has the metrics of all workers, also of those that are starting or slow', async (t) => {
  const worker = fileURLToPath(new URL('fixtures/metrics-worker.ts', import.meta.url))
  cluster.setupPrimary({ exec: worker, execArgv: [], silent: true })
  const deadlines = { ...slowNode, workerMetrics: 100 }
  const onError = (error: unknown) => { t.fail(`${error}`) }
  const server = await serveMetricsOfWorkers({ host: '127.0.0.1', port: 0, onError, deadlines })
  const workers = [cluster.fork({ READS_FOR_MS: '2000' }), cluster.fork({ STARTS_FOR_MS: '2000' })]
  t.teardown(async () => {
    const ended = workers.map((worker) => once(worker, 'exit'))
    for (const worker of workers) worker.process.kill('SIGKILL')
    await Promise.all(ended)
    await server.close()
  })
  const text = await scrape(server.url)
  t.equal(valueOf(text, 'test_open'), 2)
  t.equal(valueOf(text, 'usher_workers'), 2)
  t.equal(valueOf(text, 'usher_workers_late'), 0)
})

nightly('14.2 the primary of a cluster serves the metrics of all workers, also of those that are slow or have ended', async (t) => {
  const worker = fileURLToPath(new URL('fixtures/metrics-worker.ts', import.meta.url))
  cluster.setupPrimary({ exec: worker, execArgv: [], silent: true })
  const deadlines = { ...slowNode, workerMetrics: 2000 }
  const onError = (error: unknown) => { t.fail(`${error}`) }
  const server = await serveMetricsOfWorkers({ host: '127.0.0.1', port: 0, onError, deadlines })
  const workers = [cluster.fork(), cluster.fork()] as const
  t.teardown(async () => {
    for (const worker of Object.values(cluster.workers!)) worker!.process.kill('SIGKILL')
    await server.close()
  })
  await Promise.all(workers.map((worker) => once(worker, 'message')))
  let text = await scrape(server.url)
  // Each tells its metrics when it starts, and is asked for them.
  t.equal(valueOf(text, 'test_served_total'), 4)
  t.equal(valueOf(text, 'test_open'), 2)
  t.equal(valueOf(text, 'test_available'), 2, 'the smallest')
  t.equal(valueOf(text, 'test_seconds_bucket', '{le="1"}'), 2)
  t.equal(valueOf(text, 'usher_workers'), 2)

  const processesIn = (text: string) =>
    [1, 2, 3].map((place) => valueOf(text, 'usher_process_heap_bytes', `{process="${place}"}`))
  const pids = workers.map((worker) => worker.process.pid)
  const [one, two, none] = processesIn(text)
  t.strictSame([one, two].sort(), [...pids].sort(), 'each process has its own value')
  t.equal(none, undefined)

  workers[0].process.kill('SIGSTOP')
  text = await scrape(server.url)
  t.equal(valueOf(text, 'usher_workers_late'), 1)
  t.equal(valueOf(text, 'test_served_total'), 5, 'one has counted once more, and the other has its last known value')
  workers[0].process.kill('SIGCONT')

  const ended = once(workers[0], 'exit')
  workers[0].process.kill('SIGTERM')
  await ended
  text = await scrape(server.url)
  t.equal(valueOf(text, 'usher_workers'), 1)
  t.equal(valueOf(text, 'test_open'), 1)
  t.ok(valueOf(text, 'test_served_total')! >= 7, 'what it has counted remains')

  const third = cluster.fork()
  await once(third, 'message')
  const before = valueOf(text, 'test_served_total')!
  text = await scrape(server.url)
  t.ok(valueOf(text, 'test_served_total')! > before)
  const replaced = [one, two].map((pid) => pid === workers[0].process.pid ? third.process.pid : pid)
  t.strictSame(
    processesIn(text), [...replaced, undefined], 'a process that takes the place of another one has its label'
  )
  t.equal(valueOf(text, 'usher_workers'), 2)
})

nightly('14.2 without METRICS_PORT nothing is served and the library is not loaded', async (t) => {
  const quiet = await startNode(t, { cwd: t.testdir(), settings, inject })
  t.equal(await stopNode(quiet), 0)
  t.match(quiet.stderr, 'not needed')
  t.notMatch(quiet.stderr, 'Metrics are at')
  t.equal(await stopNode(node), 0)
  t.match(node.stderr, 'loaded')
})
