import { once } from 'node:events'
import { Agent, request } from 'node:http'
import type { Socket } from 'node:net'
import { setTimeout as delay } from 'node:timers/promises'
import t from 'tap'
import { createDatabase } from '../helpers/database.ts'
import { logged, startNode } from '../helpers/node.ts'
import { openSql } from '../helpers/sql.ts'
import { temporaryFolder } from '../helpers/temporary-folder.ts'
import { startTraffic } from '../helpers/traffic.ts'
import { serving, workersOf } from '../helpers/workers.ts'
import { findFaults, noFaults } from '../helpers/writes.ts'

const admin = { email: 'root@example.com', password: 'horse battery staple' }
const CLIENTS = 16
const KILLS = 30
const KILL_MS = 1000
const RELOADS = 5
const ROUNDS = 100
const TIMEOUT_MS = 20_000
// Each response names the process that has sent it.
const NAME_PROCESS = `
  import { Server } from 'node:http'
  const { emit } = Server.prototype
  Server.prototype.emit = function (name, ...args) {
    if (name === 'request') args[1].setHeader('x-process', process.pid)
    return emit.call(this, name, ...args)
  }
`

t.test('14.1 two workers under load', async (t) => {
  const databaseUrl = await createDatabase(t)
  const cwd = temporaryFolder()
  const settings = {
    WORKERS: '2', DATABASE_URL: databaseUrl, DATA_DIR: cwd, ADMIN_EMAIL: admin.email, ADMIN_PASSWORD: admin.password,
  }
  const node = await startNode(t, { cwd, settings, inject: NAME_PROCESS })
  await serving(node, 2)
  const { headers } = await node.login(admin)

  t.test('14.1 killing a worker every second fails only requests on its own connections', async (t) => {
    const killed = new Set<number>()
    const stopping = new AbortController()
    const clients = Array.from({ length: CLIENTS }, () => startReader(node.url, killed, stopping.signal))
    for (let count = 0; count < KILLS; count++) {
      await delay(KILL_MS)
      await logged(node, () => workersOf(node).length === 2)
      const [oldest] = workersOf(node) as [number]
      killed.add(oldest)
      process.kill(oldest, 'SIGKILL')
    }
    await serving(node, 2)
    stopping.abort()
    const results = await Promise.all(clients)
    const sum = (name: Exclude<keyof Result, 'others'>) => results.reduce((total, result) => total + result[name], 0)
    t.comment(`${sum('answers')} responses; failed: ${sum('onKilled')} on connections of a killed worker, ${sum('onNew')} on new ones`)
    t.ok(sum('answers') > KILLS * CLIENTS)
    t.strictSame(results.flatMap(({ others }) => others), [], 'no other request fails, and none hangs')
    t.ok(sum('onKilled') + sum('onNew') <= KILLS * CLIENTS)
  })

  t.test('14.1 SIGHUP under load, five times, fails no request and loses no write', async (t) => {
    const traffic = startTraffic({ url: node.url, headers })
    await traffic.flow(ROUNDS)
    for (let count = 1; count <= RELOADS; count++) {
      const before = workersOf(node)
      node.child.kill('SIGHUP')
      await logged(node, () => node.stdout.match(/All workers are replaced/g)?.length === count)
      await serving(node, 2, before)
      await traffic.flow(ROUNDS)
    }
    await traffic.stop()
    t.comment(traffic.answers)
    t.strictSame(Object.keys(traffic.answers).sort(), ['200', '201'])
    t.strictSame(await findFaults(openSql(t, { options: { databaseUrl, schema: 'usher' } }), traffic.writes), noFaults)
  })
})

interface Result { answers: number, onKilled: number, onNew: number, others: string[] }

// Sends requests without a pause, on a connection that is kept alive.
async function startReader (url: string, killed: ReadonlySet<number>, stopping: AbortSignal): Promise<Result> {
  const agent = new Agent({ keepAlive: true, maxSockets: 1 })
  const processes = new WeakMap<Socket, number>()
  const result: Result = { answers: 0, onKilled: 0, onNew: 0, others: [] }
  while (!stopping.aborted) {
    const sent = request(`${url}/api/users?limit=1`, { agent, signal: AbortSignal.timeout(TIMEOUT_MS) }).end()
    try {
      const [response] = await once(sent, 'response')
      processes.set(sent.socket!, Number(response.headers['x-process']))
      await once(response.resume(), 'end')
      if (response.statusCode === 200) result.answers++
      else result.others.push(`${response.statusCode}`)
    } catch (error) {
      const pid = sent.socket ? processes.get(sent.socket) : undefined
      const { code = '', message } = error as NodeJS.ErrnoException
      const isReset = ['ECONNRESET', 'EPIPE'].includes(code)
      if (isReset && pid === undefined) result.onNew++
      else if (isReset && killed.has(pid!)) result.onKilled++
      else result.others.push(`${code}: ${message}, of ${pid ?? 'no worker yet'}`)
    }
  }
  agent.destroy()
  return result
}
