import { mkdir, readdir, readFile } from 'node:fs/promises'
import { join } from 'node:path'
import { setTimeout as delay } from 'node:timers/promises'
import t from 'tap'
import { parseSettings } from '../../node/settings/settings.ts'
import { checkReplicas } from '../../node/status/replicas.ts'
import { createUsher, type TestUsher } from '../helpers/app.ts'
import { testDatabaseUrl } from '../helpers/database.ts'
import { createDebianCluster } from '../helpers/debian-postgres.ts'
import { slow } from '../helpers/deadlines.ts'
import { startHistory } from '../helpers/history.ts'
import { countsOf, fallbacks, folderOf, open, optionsOf, readsOf } from '../helpers/nodes-with-standbys.ts'
import { findPort } from '../helpers/port.ts'
import { createProxy } from '../helpers/proxy.ts'
import { startStandbys, type Server } from '../helpers/standbys.ts'
import { until } from '../helpers/until.ts'

const READS = 1_000_000
// Reads between two faults.
const LONGEST_STEP = 10_000
const MEASURED_MS = 5000
// From which a node has learned how long its standbys take.
const LEARNED_READS = 200
// By which the shares of standbys are compared.
const SHARED_READS = 3000
// Of Linux.
const MS_PER_TICK = 10

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

/** Returns what `status` says of a standby. */
async function statusOf (primary: Server, standby: string): Promise<string> {
  const [checked] = await checkReplicas(parseSettings({
    DATABASE_URL: primary.url, REPLICA_URLS: standby, DEADLINE_FACTOR: '10',
  }))
  return `${checked!.state}: ${checked!.detail}`
}

t.test('14.7 a standby that is paused, delayed, cut off or does not answer is not used, and nothing is stale', async (t) => {
  const group = await startStandbys(t, folderOf(t), { count: 1 })
  const standby = group.standbys[0]!
  const proxy = await createProxy(t, standby.url)
  const usher = await open(t, { ...optionsOf(group), replicaUrls: [proxy.url], deadlines: slow })
  const { id } = await usher.createUser({ name: '0' })
  let number = 0
  const change = async () => {
    t.equal(await usher.rename(id, String(++number)), 200)
    t.equal(await usher.nameOf(id), String(number), 'what was acknowledged is shown')
  }
  const countOf = async (reason: string) => (await fallbacks(usher))[reason]!
  const untilCounted = async (reason: string) => {
    const before = await countOf(reason)
    await until(`it is ${reason}`, async () => {
      await change()
      return await countOf(reason) > before
    })
  }
  await usher.untilUsed(1)
  const { standby: before = 0 } = await readsOf(usher)
  await until('the standby answers', async () => {
    t.equal(await usher.nameOf(id), '0')
    return (await readsOf(usher)).standby! >= before + 5
  })

  await standby.query('select pg_wal_replay_pause()')
  await untilCounted('late')
  await until('it rests', async () => {
    await change()
    return usher.lines.some((line) => /Reads do not go to the standby .*has not replayed the WAL in time/.test(line))
  })
  await standby.query('select pg_wal_replay_resume()')
  await usher.untilUsed(1)

  await standby.query("alter system set recovery_min_apply_delay = '1s'")
  await standby.query('select pg_reload_conf()')
  await untilCounted('late')
  await standby.query('alter system reset recovery_min_apply_delay')
  await standby.query('select pg_reload_conf()')
  await usher.untilUsed(1)

  standby.link.freeze()
  await untilCounted('late')
  standby.link.thaw()
  await usher.untilUsed(1)

  standby.link.refuse()
  await until('it is not used', async () => {
    await change()
    return Object.values(await countsOf(usher, 'usher_replica_used'))[0] === 0
  })
  await standby.link.listen()
  await usher.untilUsed(1)

  proxy.freeze()
  await until('it rests', async () => {
    await change()
    return usher.lines.some((line) => line.endsWith('It does not answer'))
  })
  proxy.thaw()
  await usher.untilUsed(1)

  proxy.refuse()
  await untilCounted('failed')
  await proxy.listen()
  await usher.untilUsed(1)
  await change()
})

t.test('14.7 promotions: a standby that becomes a primary, or follows another one, is not used', async (t) => {
  const group = await startStandbys(t, folderOf(t), { count: 3 })
  const [first, second, third] = group.standbys
  // That of status.
  const schema = 'usher'
  const usher = await open(t, {
    ...optionsOf(group), databaseUrl: group.primary.url, schema, deadlines: slow,
  })
  const { id } = await usher.createUser({ name: '0' })
  await usher.untilUsed(3)
  let number = 0
  const change = async () => {
    t.equal(await usher.rename(id, String(++number)), 200)
    t.equal(await usher.nameOf(id), String(number))
  }
  const untilSaid = (reason: RegExp, { port }: { port: number }) => until('the reason is logged', async () => {
    await change()
    return usher.lines.some((line) => line.includes(`:${port}: `) && reason.test(line))
  })

  // It has nothing that the new primary lacks, so it can follow it.
  second!.link.refuse()
  await until('it is cut off', async () => (await second!.query('select from pg_stat_wal_receiver')).length === 0)
  await first!.query('select pg_promote()')
  await untilSaid(/It is a primary, not a standby/, first!)
  await second!.follow(first!)
  // It goes on from there, and its position gets beyond that of the primary.
  await first!.query('create table public.more as select generate_series(1, 300000)')
  await first!.query(`update "${schema}".users set name = 'another history' where id = '${id}'`)
  await until('it follows', async () =>
    (await second!.query(`select from "${schema}".users where name = 'another history'`)).length === 1)
  await untilSaid(/It has timeline 2, and the primary has timeline 1$/, second!)
  for (let times = 0; times < 20; times++) await change()
  t.equal((await countsOf(usher, 'usher_replica_used'))[`127.0.0.1:${third!.port}`], 1)

  // The other way round: this one is the primary from now on.
  await usher.app.close()
  const other = await open(t, { ...optionsOf(group), schema, databaseUrl: first!.url, deadlines: slow })
  await other.untilUsed(1)
  t.equal((await countsOf(other, 'usher_replica_used'))[`127.0.0.1:${second!.port}`], 1, 'it follows this one')
  t.equal(await other.nameOf(id), 'another history')
  await other.app.close()

  // Both have timeline 2 now, and the standby of the first one is ahead of the third one.
  third!.link.refuse()
  await until('it is cut off', async () => (await third!.query('select from pg_stat_wal_receiver')).length === 0)
  await third!.query('select pg_promote()')
  const foreign = 'follows another primary: what was written to this one is missing'
  const last = await open(t, { databaseUrl: third!.url, replicaUrls: [second!.url], schema, deadlines: slow })
  await until('the reason is logged', async () => {
    t.equal(await last.nameOf(id), String(number))
    return last.lines.some((line) => line.endsWith(`:${second!.port}: It ${foreign}`))
  })
  t.match(await statusOf(third!, second!.url), `warning: it ${foreign}`)
})

t.test('14.7 reads and status have one rule for the WAL receiver: one that does not stream is not used', async (t) => {
  const group = await startStandbys(t, folderOf(t), { count: 2 })
  const { primary, standbys: [first, second] } = group
  await second!.follow(first!)
  const untilReceives = (state: string) => until(`the receiver is ${state}`, async () =>
    (await second!.query(`select from pg_stat_wal_receiver where status = '${state}' and sender_port = ${first!.port}`))
      .length === 1)
  await untilReceives('streaming')
  const usher = await open(t, { databaseUrl: primary.url, replicaUrls: [second!.url], schema: 'usher', deadlines: slow })
  await usher.untilUsed(1)
  t.match(await statusOf(primary, second!.url), /^ok: /, 'through another standby')

  // The process that would let it stream from the next timeline.
  const [startup] = await second!.query("select pid from pg_stat_activity where backend_type = 'startup'")
  const pid = Number(startup!.pid)
  process.kill(pid, 'SIGSTOP')
  try {
    await first!.query('select pg_promote()')
    await untilReceives('waiting')
    const problem = 'does not stream from the primary (the state of its WAL receiver is waiting)'
    t.match(await statusOf(primary, second!.url), `warning: it ${problem}`)
    await until('the reason is logged', async () => {
      await usher.app.usher.users.get(usher.admin.id)
      return usher.lines.some((line) => line.endsWith(`: It ${problem}`))
    })
  } finally {
    process.kill(pid, 'SIGCONT')
  }
})

t.test('14.7 while the database fails over and the former primary rejoins, no read is stale, and none goes backwards', async (t) => {
  const folder = folderOf(t)
  const group = await startStandbys(t, folder, {
    settings: ['synchronous_standby_names=ANY 1 (*)'], cluster: await createDebianCluster(folder),
  })
  const former = group.primary
  const servers = [former, ...group.standbys]
  const databaseUrl = former.url.replace(/@[^/]+/, `@${servers.map(({ port }) => `127.0.0.1:${port}`).join()}`)
  const options = { databaseUrl, replicaUrls: servers.map(({ url }) => url), deadlines: slow, poolSize: 10 }
  const one = await open(t, options)
  const nodes = [one, await open(t, { ...options, schema: one.options.schema! })]
  const ids = await Promise.all(Array.from({ length: 20 }, async () => (await one.createUser({ name: '0' })).id))
  for (const node of nodes) await node.untilUsed(2)
  const { history, stop } = startHistory(nodes, {
    ids, readers: 40, writers: 4, rename: async (node, id, name) => await nodes[node]!.rename(id, name) === 200,
  })
  t.teardown(stop)
  const untilMore = async () => {
    const { reads, writes } = history
    await until('reads and writes go on', () =>
      (history.reads > reads + 2000 && history.writes > writes + 20) || history.faults.length > 0, 20)
  }
  const usedOf = async (node: TestUsher, { port }: Server) =>
    (await countsOf(node, 'usher_replica_used'))[`127.0.0.1:${port}`] === 1
  const untilUsed = (server: Server) => until('it is used', async () =>
    (await Promise.all(nodes.map((node) => usedOf(node, server)))).every(Boolean))
  await untilMore()

  await former.crash()
  // That which has received more has every change that was acknowledged.
  const received = await Promise.all(group.standbys.map(async (server) => {
    await until('it has received all', async () => (await server.query('select from pg_stat_wal_receiver')).length === 0)
    const [row] = await server.query("select pg_wal_lsn_diff(pg_last_wal_receive_lsn(), '0/0')::float8 as bytes")
    return { server, bytes: Number(row!.bytes) }
  }))
  const [next, other] = received.sort((a, b) => b.bytes - a.bytes).map(({ server }) => server)
  await next!.query('select pg_promote()')
  await other!.follow(next!)
  await untilUsed(other!)
  await untilMore()
  for (const node of nodes) t.notOk(await usedOf(node, former), 'the former primary is not there')
  for (const node of nodes) t.notOk(await usedOf(node, next!), 'the new primary is not read as a standby')

  await former.rejoin(next!)
  await untilUsed(former)
  await untilMore()
  // The other standby does not answer any more.
  await other!.query('select pg_wal_replay_pause()')
  await until('it is not used', async () =>
    !(await Promise.all(nodes.map((node) => usedOf(node, other!)))).some(Boolean))
  const before = await Promise.all(nodes.map(readsOf))
  await untilMore()
  for (const [index, node] of nodes.entries()) {
    t.ok((await readsOf(node)).standby! > before[index]!.standby!, 'the former primary answers reads')
  }
  await stop()
  t.strictSame(history.faults, [])
  t.comment(`${history.reads} reads, ${history.writes} writes`)
})

t.test('14.7 status says how far each standby is behind, and why one is not used', async (t) => {
  const folder = folderOf(t)
  const { primary, standbys: [standby] } = await startStandbys(t, folder, { count: 1 })
  await createUsher(t, { databaseUrl: primary.url, replicaUrls: [standby!.url], schema: 'usher' })
  const check = (url: string) => statusOf(primary, url)
  await standby!.catchUp()
  await until('a node is connected to it', async () =>
    /^ok: [01] KiB behind the primary, [1-9]\d* connections? of nodes$/.test(await check(standby!.url)))
  t.match(await check(primary.url), /^warning: it is a primary, not a standby/)
  await primary.query('revoke pg_read_all_stats from usher')
  await standby!.catchUp()
  t.match(await check(standby!.url), /^warning: its timeline cannot be read: grant pg_read_all_stats/)
  t.match(await check(await testDatabaseUrl()), /^warning: it is a primary, not a standby/)
  t.match(
    await check(standby!.url.replace(/\/usher$/, '/postgres')),
    /^warning: its URL names the database "postgres", and the primary has "usher"/
  )
  standby!.link.refuse()
  await until('it is cut off', async () => (await standby!.query('select from pg_stat_wal_receiver')).length === 0)
  t.match(await check(standby!.url), /^warning: it is not connected to the primary/)
  const free = await findPort()
  t.match(await check(`postgres://u:secret@127.0.0.1:${free}/d`), /^warning: it cannot be used \((?!.*secret)/)
})

t.test('14.7 a server that is no standby of the primary is not used', async (t) => {
  const folder = folderOf(t)
  await mkdir(join(folder, 'one'))
  await mkdir(join(folder, 'two'))
  const one = await startStandbys(t, join(folder, 'one'), { count: 1 })
  // Embedded clusters are copies of one, so they have the same identifier.
  const cluster = await createDebianCluster(join(folder, 'two'))
  const two = await startStandbys(t, join(folder, 'two'), { count: 1, cluster })
  const usher = await open(t, {
    databaseUrl: one.primary.url, replicaUrls: [one.primary.url, two.standbys[0]!.url], deadlines: slow,
  })
  const untilSaid = (reason: RegExp) => until(`${reason}`, async () => {
    await usher.app.usher.users.get(usher.admin.id)
    return usher.lines.some((line) => reason.test(line))
  })
  await untilSaid(new RegExp(`:${one.primary.port}: It is a primary, not a standby`))
  await untilSaid(new RegExp(`:${two.standbys[0]!.port}: It belongs to another cluster`))
  t.equal((await readsOf(usher)).standby, 0)
})

t.test('14.7 beside writes on three nodes, a million reads: none is stale, and none goes backwards', async (t) => {
  const { primary, standbys } = await startStandbys(t, folderOf(t), { settings: ['synchronous_standby_names=ANY 1 (*)'] })
  const options = {
    databaseUrl: primary.url, replicaUrls: standbys.map(({ url }) => url), schema: 'usher', deadlines: slow, poolSize: 10,
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
  const step = Math.min(max / 20, LONGEST_STEP)
  const end = performance.now() + Number(process.env.HISTORY_SECONDS ?? Infinity) * 1000
  for (let round = 0; history.reads < max && performance.now() < end && history.faults.length === 0; round++) {
    const standby = standbys[round % 2]!
    const [begin, undo] = faults[round % faults.length]!
    await untilReads(history.reads + step)
    await standby.query(begin!)
    await standby.query('select pg_reload_conf()')
    await untilReads(history.reads + step / 5)
    await standby.query(undo!)
    await standby.query('select pg_reload_conf()')
    standby.link.freeze()
    await untilReads(history.reads + step / 5)
    standby.link.thaw()
  }
  await stop()
  t.strictSame(history.faults, [])
  t.comment(`${history.reads} reads, ${history.writes} writes`)
  for (const node of nodes) {
    t.ok((await readsOf(node)).standby! > 0)
    const metrics = (await node.app.usher.metrics()).filter(({ name }) => /replica_(reads|fallbacks)/.test(name))
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

// Of the reads of users and lists, beside writes.
for (const delayMs of [0, 30]) {
  const title = `14.7 standbys that get the WAL ${delayMs} ms late beside all that runs: a limit that follows them, and a fixed one`
  t.test(title, async (t) => {
    const group = await startStandbys(t, folderOf(t), { count: 2 })
    for (const { link } of group.standbys) link.delayReplies(delayMs)
    const schema = 'usher'
    const deadlines = { ...slow, replicaReplay: 20 }
    const fixed = await open(t, { ...optionsOf(group), schema, deadlines: { ...deadlines, replicaReplayMax: 20 } })
    const following = await open(t, { ...optionsOf(group), schema, deadlines })
    const nodes = [fixed, following]
    const ids = await Promise.all(Array.from({ length: 8 }, async () => (await fixed.createUser({ name: '0' })).id))
    const { history, stop } = startHistory(nodes, {
      ids, readers: 8, writers: 2, rename: async (node, id, name) => await nodes[node]!.rename(id, name) === 200,
    })
    t.teardown(stop)
    const untilRead = (more: number) => {
      const since = history.reads
      return until('reads go on', () => history.reads > since + more || history.faults.length > 0)
    }
    // The first answers are what it learns from. Meanwhile the primary may answer any number of reads.
    await until('it has learned', async () => (await readsOf(following)).standby! > LEARNED_READS)
    const before = await Promise.all(nodes.map(readsOf))
    await untilRead(SHARED_READS)
    const shares = await Promise.all(nodes.map(async (node, index) => {
      const { standby = 0, primary = 0 } = await readsOf(node)
      const [there, here] = [standby - before[index]!.standby!, primary - before[index]!.primary!]
      return there / (there + here)
    }))
    await stop()
    const patience = await countsOf(following, 'usher_replica_patience_seconds')
    t.comment({ delayMs, shares, patience, fallbacks: await Promise.all(nodes.map(fallbacks)) })
    t.strictSame(history.faults, [])
    t.ok(shares[1]! > 0.5, `standbys answer ${shares[1]}`)
    if (delayMs > 0) t.ok(shares[0]! < 0.1, `with a fixed limit they answer ${shares[0]}`)
  })
}
