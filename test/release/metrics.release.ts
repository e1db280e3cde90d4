import { execFile, spawn } from 'node:child_process'
import { once } from 'node:events'
import { readFile, writeFile } from 'node:fs/promises'
import { createServer } from 'node:http'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import type { AddressInfo } from 'node:net'
import { promisify } from 'node:util'
import t from 'tap'
import { parse } from 'yaml'
import { spawnCommand } from '../helpers/command.ts'
import { createDatabase } from '../helpers/database.ts'
import { startNode } from '../helpers/node.ts'
import { findPort } from '../helpers/port.ts'
import { runProgram } from '../helpers/program.ts'
import { until } from '../helpers/until.ts'

interface Dashboard { panels: { title: string, targets?: { expr: string }[] }[] }

// Rates need two scrapes, and the queries of the dashboard look at this much time.
const SCRAPE = '1s'
const WINDOW = '30s'
const admin = { email: 'root@example.com', password: 'horse battery staple' }

// Usher sends webhooks to it. The first attempt of each fails.
const receiver = createServer((request, response) => {
  request.resume()
  response.writeHead(fails-- > 0 ? 500 : 204).end()
}).listen(0, '127.0.0.1')
let fails = 1
await once(receiver, 'listening')
t.teardown(() => receiver.close())
const [folder, DATABASE_URL] = [t.testdir(), await createDatabase(t)]
const node = await startNode(t, {
  cwd: folder,
  settings: {
    DATABASE_URL,
    SECRET: 'a secret of many words',
    ADMIN_EMAIL: admin.email,
    ADMIN_PASSWORD: admin.password,
    METRICS_PORT: '0',
    WEBHOOK_URL: `http://127.0.0.1:${(receiver.address() as AddressInfo).port}/`,
    WEBHOOK_SECRET: `whsec_${Buffer.alloc(32, 1).toString('base64')}`,
    WEBHOOK_ALLOW_PRIVATE: 'true',
  },
})
const [, url = ''] = await node.said(/Metrics are at (\S+)/)
const { headers } = await node.login(admin)
const send = (path: string, body: object, method = 'POST', given: HeadersInit = headers) =>
  node.fetch(path, { method, headers: given, body: JSON.stringify(body) }).then((response) => response.text())
const anonymous = { 'content-type': 'application/json' }
const graphql = (query: string) => send('/graphql', { query }, 'POST', anonymous)
const following = new AbortController()
t.teardown(() => following.abort())

// Causes a little of everything that is measured.
async function work (round: number): Promise<void> {
  const email = `${round}@example.com`
  await send('/api/users', { name: 'Ada', email })
  await Promise.all(Array.from({ length: 20 }, () => node.fetch('/api/users')))
  await graphql('{ user(id: "nobody") { id } }')
  await graphql(`{ users { nodes { id } } query${round}: users { nodes { name } } }`)
  const session = await node.login(admin)
  await node.fetch('/api/auth/logout', { method: 'POST', headers: { authorization: `Bearer ${session.token}` } })
  await send('/api/auth/password-reset', { email: 'nobody@example.com' }, 'POST', anonymous)
}

t.test('14.2 every query of the dashboard returns data from a Prometheus that scrapes a node', async (t) => {
  await node.fetch('/graphql?query=subscription%7BpostCreated%7Bid%7D%7D', {
    headers: { accept: 'text/event-stream' }, signal: following.signal,
  })
  const port = await findPort()
  const folder = t.testdir()
  const config = {
    global: { scrape_interval: SCRAPE },
    scrape_configs: [{ job_name: 'usher', static_configs: [{ targets: [new URL(url).host] }] }],
  }
  await writeFile(join(folder, 'prometheus.yml'), JSON.stringify(config))
  await runProgram(t, port, [
    '/usr/bin/prometheus', `--config.file=${folder}/prometheus.yml`, `--storage.tsdb.path=${folder}/data`,
    `--web.listen-address=127.0.0.1:${port}`,
  ])
  const { panels } = JSON.parse(
    await readFile(fileURLToPath(new URL('../../deploy/grafana/usher.json', import.meta.url)), 'utf8')
  ) as Dashboard
  const queries = panels.flatMap(({ title, targets = [] }) => targets.map(({ expr }) => ({ title, expr })))
  t.ok(queries.length > 40)
  const missing = new Map(queries.map((query) => [query.expr, query]))
  let round = 0
  const ask = async (expr: string) => {
    const query = expr.replaceAll('$__rate_interval', WINDOW).replaceAll(/\$(job|instance)/g, '.*')
    const response = await fetch(`http://127.0.0.1:${port}/api/v1/query?${new URLSearchParams({ query })}`)
    const { status, error, data } =
      await response.json() as { status: string, error?: string, data?: { result: { value: [number, string] }[] } }
    if (status !== 'success') throw new Error(`${query}: ${error}`)
    return data!.result.some(({ value: [, value] }) => Number.isFinite(Number(value)))
  }
  await until('all queries have data', async () => {
    await work(round++)
    for (const { expr } of [...missing.values()]) if (await ask(expr)) missing.delete(expr)
    return missing.size === 0 || round > 60
  }, 200)
  t.same([...missing.values()], [])
})

t.test("14.2 Prometheus' own linter accepts the metrics", async (t) => {
  const text = await (await fetch(url)).text()
  const promtool = spawn('/usr/bin/promtool', ['check', 'metrics'], { stdio: ['pipe', 'pipe', 'pipe'] })
  let said = ''
  for (const output of [promtool.stdout, promtool.stderr]) {
    output.setEncoding('utf8').on('data', (text: string) => { said += text })
  }
  const ended = once(promtool, 'close')
  promtool.stdin.end(text)
  const [code] = await ended
  t.equal(said, '')
  t.equal(code, 0)
})

t.test('14.2 Prometheus accepts the alert rules, and the node has their metrics', async (t) => {
  const file = fileURLToPath(new URL('../../deploy/prometheus/alerts.yaml', import.meta.url))
  const { stdout } = await promisify(execFile)('/usr/bin/promtool', ['check', 'rules', file])
  t.match(stdout, 'SUCCESS')
  const { code } = await spawnCommand(['backup', join(folder, 'backup.tar.gz')], { DATABASE_URL, DATA_DIR: folder }, folder)
  t.equal(code, 0)
  let metrics = ''
  await until('the node has read the age of the backup', async () => {
    metrics = await (await fetch(url)).text()
    return /^usher_backup_age_seconds \d/m.test(metrics)
  })
  const { groups } = parse(await readFile(file, 'utf8')) as { groups: { rules: { expr: string }[] }[] }
  const names =
    groups.flatMap(({ rules }) => rules.flatMap(({ expr }) => [...expr.matchAll(/(\w+)\{/g)].map(([, name]) => name!)))
  t.ok(names.length > 5)
  t.strictSame(names.filter((name) => name !== 'up' && !new RegExp(`^${name}[ {]`, 'm').test(metrics)), [])
})
