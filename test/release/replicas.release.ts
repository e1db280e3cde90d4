import { readdir, readFile } from 'node:fs/promises'
import { setTimeout as delay } from 'node:timers/promises'
import t, { type Test } from 'tap'
import { createUsher } from '../helpers/app.ts'
import { slow } from '../helpers/deadlines.ts'
import { startHistory } from '../helpers/history.ts'
import { startStandbys, type Server } from '../helpers/standbys.ts'
import { until } from '../helpers/until.ts'

const READS = 1_000_000
const MEASURED_MS = 5000
// Of Linux.
const MS_PER_TICK = 10

// Without an earlier teardown, tap would remove the folder before the servers that use it have stopped.
const folderOf = (t: Test) => {
  t.teardown(() => {})
  return t.testdir()
}

/** Returns the CPU time of a server's processes in milliseconds, those included that have ended. */
async function cpuOf (server: Server): Promise<number> {
  const [row] = await server.query("select split_part(pg_read_file('postmaster.pid'), E'\\n', 1) as pid")
  let ticks = 0
  for (const pid of await readdir('/proc')) {
    if (!/^\d+$/.test(pid)) continue
    const stat = await readFile(`/proc/${pid}/stat`, 'utf8').catch(() => '')
    const [, parent, ...rest] = stat.slice(stat.lastIndexOf(')') + 2).split(' ')
    const [user = 0, system = 0, endedUser = 0, endedSystem = 0] = rest.slice(9, 13).map(Number)
    if (pid === row!.pid) ticks += user + system + endedUser + endedSystem
    else if (parent === row!.pid) ticks += user + system
  }
  return ticks * MS_PER_TICK
}

const usual = { ...slow, replicaReplay: 20, replicaAnswer: 300 }

t.test('14.7 beside writes on three nodes, a million reads: none is stale, and none goes backwards', async (t) => {
  const { primary, standbys } = await startStandbys(t, folderOf(t), { settings: ['synchronous_standby_names=ANY 1 (*)'] })
  const options = {
    databaseUrl: primary.url, replicaUrls: standbys.map(({ url }) => url), schema: 'usher', deadlines: usual, poolSize: 10,
  }
  const nodes = [await createUsher(t, options), await createUsher(t, options), await createUsher(t, options)]
  const { headers } = nodes[0]!.admin
  const ids: string[] = []
  for (let count = 0; count < 50; count++) ids.push((await nodes[0]!.createUser({ name: '0' })).id)
  const max = Number(process.env.HISTORY_READS ?? READS)
  const { history, stop } = startHistory(nodes, {
    ids,
    readers: 200,
    writers: 4,
    rename: async (node, id, name) =>
      (await nodes[node]!.inject('PATCH', `/api/users/${id}`, { headers, payload: { name } })).statusCode === 200,
  })
  t.teardown(stop)
  const untilReads = (reads: number) =>
    until('reads go on', () => history.reads > reads || history.faults.length > 0, 20)
  const faults = [
    ['select pg_wal_replay_pause()', 'select pg_wal_replay_resume()'],
    ["alter system set recovery_min_apply_delay = '30ms'", 'alter system reset recovery_min_apply_delay'],
  ]
  for (let round = 0; history.reads < max && history.faults.length === 0; round++) {
    const standby = standbys[round % 2]!
    const [begin, end] = faults[round % faults.length]!
    await untilReads(history.reads + max / 20)
    await standby.query(begin!)
    await standby.query('select pg_reload_conf()')
    await untilReads(history.reads + max / 100)
    await standby.query(end!)
    await standby.query('select pg_reload_conf()')
    standby.link.freeze()
    await untilReads(history.reads + max / 100)
    standby.link.thaw()
  }
  await stop()
  t.strictSame(history.faults, [])
  t.comment(`${history.reads} reads, ${history.writes} writes`)
  for (const { app } of nodes) {
    const metrics = (await app.usher.metrics()).filter(({ name }) => /replica_(reads|fallbacks)/.test(name))
    for (const { samples } of metrics) {
      t.comment(samples.map((sample) => [...Object.values(sample.labels), 'value' in sample && sample.value]).join('; '))
    }
  }
})

t.test('14.7 the CPU time of reads, with and without standbys', async (t) => {
  const { primary, standbys: [standby] } = await startStandbys(t, folderOf(t), { count: 1 })
  const options = { databaseUrl: primary.url, schema: 'usher', deadlines: slow, poolSize: 10 }
  const without = await createUsher(t, options)
  const ids: string[] = []
  for (let count = 0; count < 500; count++) ids.push((await without.app.usher.users.create({ name: 'A', email: `a${count}@example.com` })).id)
  const using = await createUsher(t, { ...options, replicaUrls: [standby!.url] })
  const works: Record<string, (app: typeof using.app) => Promise<unknown>> = {
    'by id': (app) => app.usher.users.get(ids[Math.floor(Math.random() * ids.length)]!),
    'list of 50': (app) => app.usher.users.list({ limit: 50, after: undefined, role: Math.random() < 0.5 ? 'user' : undefined }),
  }
  for (const [name, work] of Object.entries(works)) {
    for (const clients of [1, 64]) {
      for (const [source, { app }] of [['primary', without], ['standby', using]] as const) {
        const measured = async (ms: number) => {
          let reads = 0
          const until = performance.now() + ms
          const before = [await cpuOf(primary), await cpuOf(standby!)]
          await Promise.all(Array.from({ length: clients }, async () => {
            for (; performance.now() < until; reads++) await work(app)
          }))
          const [first, second] = [await cpuOf(primary), await cpuOf(standby!)]
          return { reads, primary: (first - before[0]!) / reads * 1000, standby: (second - before[1]!) / reads * 1000 }
        }
        await measured(1000)
        await delay(100)
        const { reads, ...micros } = await measured(MEASURED_MS)
        t.comment(`${name}, ${clients} clients, ${source}: ${reads} reads, µs a read: primary ${micros.primary.toFixed(1)}, standby ${micros.standby.toFixed(1)}`)
        t.ok(reads > 0)
      }
    }
  }
})
