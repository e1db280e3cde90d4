import t from 'tap'
import { failStart } from '../../helpers/command.ts'
import { createDatabase } from '../../helpers/database.ts'
import { createProxy } from '../../helpers/proxy.ts'
import { until } from '../../helpers/until.ts'
import { logged, startNode, stopNode, type ServingNode } from '../../helpers/node.ts'

const admin = { email: 'root@example.com', password: 'horse battery staple' }
const settings = {
  DATABASE_URL: await createDatabase(t),
  SECRET: 'a secret of many words',
  ADMIN_EMAIL: admin.email,
  ADMIN_PASSWORD: admin.password,
}

interface Line { level: number, msg: string, reqId?: string, route?: string, [name: string]: unknown }

const linesOf = ({ stdout }: ServingNode) => stdout.split('\n').slice(0, -1).map((line) => JSON.parse(line) as Line)
const accessesOf = (node: ServingNode) => linesOf(node).filter(({ msg }) => msg === 'request')

t.test('14.5 with ACCESS_LOG=1, every request has one line with its ids, pattern, status, duration and size, and no secrets', async (t) => {
  const node = await startNode(t, { cwd: t.testdir(), settings: { ...settings, ACCESS_LOG: '1' } })
  const { token, cookie, headers } = await node.login(admin)
  const traceId = '0af7651916cd43dd8448eb211c80319c'
  const traced = { ...headers, cookie, traceparent: `00-${traceId}-b7ad6b7169203331-01`, 'x-request-id': 'the-request' }
  const shown = await node.fetch(`/api/protected?secret=${token}`, { headers: traced })
  const size = (await shown.text()).length
  await node.fetch('/set-password%23token=sesame', { redirect: 'manual', headers: { 'x-request-id': 'silent' } })
  await node.fetch('/api/users/sesame')
  await node.fetch('/sesame', { headers: { traceparent: `00-${'0'.repeat(32)}-b7ad6b7169203331-01` } })
  await node.fetch('/health/live', { headers: { 'x-request-id': 'last' } })
  await logged(node, () => node.stdout.includes('"reqId":"last"'))
  const accesses = accessesOf(node)
  t.match(accesses.find(({ reqId }) => reqId === 'the-request'), {
    level: 30, method: 'GET', route: '/api/protected', status: 200, ms: Number, bytes: size, traceId,
  })
  t.same(accesses.map(({ method, route, status }) => [method, route, status]), [
    ['POST', '/api/auth/login', 200], ['GET', '/api/protected', 200], ['GET', '/api/users/:id', 404],
    ['GET', 'unknown', 404], ['GET', '/health/live', 200],
  ])
  t.notOk(accesses.find(({ route }) => route === 'unknown')!['traceId'], 'a trace of zeros is none')
  for (const secret of ['sesame', token, cookie, admin.password]) {
    t.notOk(node.stdout.includes(secret), 'no secret in the log')
  }
  t.equal(await stopNode(node), 0)
})

t.test('14.5 a share of the requests is logged, and all failures of the server', async (t) => {
  const proxy = await createProxy(t, settings.DATABASE_URL)
  const node = await startNode(t, {
    cwd: t.testdir(), settings: { ...settings, DATABASE_URL: proxy.url, DEADLINE_FACTOR: '1', ACCESS_LOG: '0.5' },
  })
  for (let id = 0; id < 200; id++) await node.fetch('/health/live', { headers: { 'x-request-id': `request-${id}` } })
  await proxy.refuse()
  const ready = async (id: string) => (await node.fetch('/health/ready', { headers: { 'x-request-id': id } })).status
  await until('the node is not ready', async () => await ready('others') === 503)
  for (const id of ['failed-0', 'failed-1']) t.equal(await ready(id), 503)
  t.equal(await stopNode(node), 0)
  const logged = (prefix: string) => accessesOf(node).filter(({ reqId }) => reqId!.startsWith(prefix))
  t.match(logged('failed'), [{ status: 503 }, { status: 503 }])
  // With a share of a half, other numbers than these have a probability of one in a hundred million.
  const { length } = logged('request')
  t.ok(length > 60 && length < 140, `${length} of 200`)
})

t.test('14.5 no request is logged by default, and ACCESS_LOG without the level info stops the start', async (t) => {
  const node = await startNode(t, { cwd: t.testdir(), settings })
  await node.fetch('/health/live')
  t.equal(await stopNode(node), 0)
  t.same(accessesOf(node), [])
  for (const [ACCESS_LOG = '', LOG_LEVEL = '', sentence] of [
    ['1', 'warn', 'ACCESS_LOG needs LOG_LEVEL info, debug or trace.'],
    ['2', 'info', 'ACCESS_LOG must be a number from 0 (no requests) to 1 (all), such as 0.01, not 2.'],
    ['-1', 'info', 'ACCESS_LOG must be a number from 0 (no requests) to 1 (all), such as 0.01, not -1.'],
    ['all', 'info', 'ACCESS_LOG must be a number from 0 (no requests) to 1 (all), such as 0.01.'],
  ]) {
    const { code, stderr } = await failStart({ ...settings, ACCESS_LOG, LOG_LEVEL }, t.testdir())
    t.equal(code, 1)
    t.equal(stderr, `${sentence}\n`)
  }
})
