import { mkdir } from 'node:fs/promises'
import { join } from 'node:path'
import t, { type Test } from 'tap'
import type { UsherOptions } from '../../app.ts'
import { parseSettings } from '../../node/settings/settings.ts'
import { checkReplicas } from '../../node/status/replicas.ts'
import { createUsher, type TestUsher } from '../helpers/app.ts'
import { testDatabaseUrl } from '../helpers/database.ts'
import { slow } from '../helpers/deadlines.ts'
import { startHistory } from '../helpers/history.ts'
import { startStandbys, type StandbyGroup } from '../helpers/standbys.ts'
import { findPort } from '../helpers/port.ts'
import { createProxy } from '../helpers/proxy.ts'
import { until } from '../helpers/until.ts'

// Without an earlier teardown, tap would remove the folder before the servers that use it have stopped.
const folderOf = (t: Test) => {
  t.teardown(() => {})
  return t.testdir()
}


/** Returns the values of a metric by its label. */
async function countsOf ({ app }: TestUsher, name: string): Promise<Record<string, number>> {
  const { samples } = (await app.usher.metrics()).find((metric) => metric.name === name)!
  return Object.fromEntries(samples.map((sample) => [Object.values(sample.labels)[0], 'value' in sample && sample.value]))
}

const fallbacks = (usher: TestUsher) => countsOf(usher, 'usher_replica_fallbacks_total')
const readsOf = (usher: TestUsher) => countsOf(usher, 'usher_replica_reads_total')

interface Opened extends TestUsher {
  readonly lines: string[]
  /** Changes the name of a user. */
  rename (id: string, name: string): Promise<number>
  nameOf (id: string): Promise<string>
  /** Reads until so many standbys are used. */
  untilUsed (count: number): Promise<void>
}

async function open (t: Test, options: UsherOptions): Promise<Opened> {
  const lines: string[] = []
  const stream = { write: (line: string) => { lines.push(JSON.parse(line).msg) } }
  const usher = await createUsher(t, options, { logger: { level: 'info', stream } })
  const { headers } = usher.admin
  const nameOf = async (id: string) => (await usher.inject('GET', `/api/users/${id}`, { headers })).json().name
  return {
    ...usher,
    lines,
    nameOf,
    rename: async (id, name) =>
      (await usher.inject('PATCH', `/api/users/${id}`, { headers, payload: { name } })).statusCode,
    untilUsed: (count) => until(`${count} standbys are used`, async () => {
      await usher.app.usher.users.get(usher.admin.id)
      return Object.values(await countsOf(usher, 'usher_replica_used')).filter(Boolean).length === count
    }),
  }
}

const optionsOf = ({ primary, standbys }: StandbyGroup): UsherOptions => ({
  databaseUrl: primary.url, replicaUrls: standbys.map(({ url }) => url),
})

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
  for (let times = 0; times < 5; times++) t.equal(await usher.nameOf(id), '0')
  t.equal((await readsOf(usher)).standby, before + 5, 'the standby answers')

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
  await untilCounted('failed')
  t.ok(usher.lines.some((line) => line.endsWith('It does not answer')))
  proxy.thaw()
  await usher.untilUsed(1)

  proxy.refuse()
  await untilCounted('failed')
  await proxy.listen()
  await usher.untilUsed(1)
  await change()
})

t.test('14.7 what a standby shows before the primary does is not shown', async (t) => {
  const group = await startStandbys(t, folderOf(t), { settings: ['synchronous_standby_names=standby_1'] })
  const [early, synchronous] = group.standbys
  const usher = await open(t, { ...optionsOf(group), replicaUrls: [early!.url], deadlines: slow })
  const { id } = await usher.createUser({ name: 'before' })
  await usher.untilUsed(1)

  // It confirms no commit, so the primary shows none, and the other standby shows all.
  synchronous!.link.freeze()
  const renaming = usher.rename(id, 'after')
  await until('the other standby shows it', async () =>
    (await early!.query(`select name from "${usher.options.schema}".users where id = '${id}'`))[0]!.name === 'after')
  for (let times = 0; times < 30; times++) t.equal(await usher.nameOf(id), 'before')
  t.ok((await fallbacks(usher)).ahead! > 0)
  synchronous!.link.thaw()
  t.equal(await renaming, 200)
  t.equal(await usher.nameOf(id), 'after')
  await usher.untilUsed(1)
  t.equal(await usher.nameOf(id), 'after')
})

t.test('14.7 promotions: a standby that becomes a primary, or follows another one, is not used', async (t) => {
  const group = await startStandbys(t, folderOf(t), { count: 3 })
  const [first, second, third] = group.standbys
  const usher = await open(t, {
    ...optionsOf(group), databaseUrl: group.primary.url, deadlines: slow,
  })
  const { schema } = usher.options
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
  await first!.query('create table public.more as select generate_series(1, 10000)')
  await first!.query(`update "${schema}".users set name = 'another history' where id = '${id}'`)
  await until('it follows', async () =>
    (await second!.query(`select from "${schema}".users where name = 'another history'`)).length === 1)
  await untilSaid(/does not stream from the primary, which has timeline 1 \(timeline 2\)/, second!)
  for (let times = 0; times < 20; times++) await change()
  t.equal((await countsOf(usher, 'usher_replica_used'))[`127.0.0.1:${third!.port}`], 1)

  // The other way round: this one is the primary from now on.
  await usher.app.close()
  const other = await open(t, { ...optionsOf(group), schema: schema!, databaseUrl: first!.url, deadlines: slow })
  await other.untilUsed(1)
  t.equal((await countsOf(other, 'usher_replica_used'))[`127.0.0.1:${second!.port}`], 1, 'it follows this one')
  t.equal(await other.nameOf(id), 'another history')
})

t.test('14.7 status says how far each standby is behind, and why one is not used', async (t) => {
  const folder = folderOf(t)
  const { primary, standbys: [standby] } = await startStandbys(t, folder, { count: 1 })
  await createUsher(t, { databaseUrl: primary.url, replicaUrls: [standby!.url], schema: 'usher' })
  const check = async (url: string) => {
    const [checked] = await checkReplicas(parseSettings({ DATABASE_URL: primary.url, REPLICA_URLS: url }))
    return `${checked!.state}: ${checked!.detail}`
  }
  await standby!.catchUp()
  t.match(await check(standby!.url), /^ok: 0 KiB behind the primary, [1-9]\d* connections? of nodes$/)
  t.match(await check(primary.url), /^warning: it is a primary, not a standby/)
  await primary.query('revoke pg_read_all_stats from usher')
  await standby!.catchUp()
  t.match(await check(standby!.url), /^warning: its timeline cannot be read: grant pg_read_all_stats/)
  t.match(await check(await testDatabaseUrl()), /^warning: it is a primary, not a standby/)
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
  const two = await startStandbys(t, join(folder, 'two'), { count: 1 })
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

t.test('14.7 beside writes on three nodes, no read is stale, and none goes backwards', async (t) => {
  const group = await startStandbys(t, folderOf(t), { settings: ['synchronous_standby_names=ANY 1 (*)'] })
  const one = await open(t, { ...optionsOf(group), deadlines: { ...slow, replicaReplay: 50 }, poolSize: 8 })
  const { schema } = one.options
  const nodes = [one]
  const options = { ...optionsOf(group), schema: schema!, deadlines: { ...slow, replicaReplay: 50 }, poolSize: 8 }
  for (let count = 1; count < 3; count++) nodes.push(await open(t, options))
  const ids: string[] = []
  for (let count = 0; count < 30; count++) ids.push((await one.createUser({ name: '0' })).id)
  for (const node of nodes) await node.untilUsed(2)
  const max = Number(process.env.HISTORY_READS ?? 3000)
  const { history, stop } = startHistory(nodes, {
    ids, readers: 60, writers: 4, rename: async (node, id, name) => await nodes[node]!.rename(id, name) === 200,
  })
  t.teardown(stop)
  const standby = group.standbys[0]!
  for (let share = 0; share < 1 && history.faults.length === 0;) {
    for (const [what, undo] of [['select pg_wal_replay_pause()', 'select pg_wal_replay_resume()']]) {
      await standby.query(what!)
      const since = history.reads
      await until('reads went on', () => history.reads > since + max / 20 || history.faults.length > 0)
      await standby.query(undo!)
      await until('reads went on', () => history.reads > since + max / 10 || history.faults.length > 0)
      share = history.reads / max
    }
  }
  await stop()
  t.strictSame(history.faults, [])
  for (const node of nodes) {
    t.comment(await readsOf(node), await fallbacks(node))
    t.ok((await readsOf(node)).standby! > 0)
  }
  t.comment(`${history.reads} reads, ${history.writes} writes`)
})
