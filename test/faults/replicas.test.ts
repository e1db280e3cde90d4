import t from 'tap'
import { slow } from '../helpers/deadlines.ts'
import { startHistory } from '../helpers/history.ts'
import { countsOf, fallbacks, folderOf, open, optionsOf, readsOf } from '../helpers/nodes-with-standbys.ts'
import { startStandbys } from '../helpers/standbys.ts'
import { until } from '../helpers/until.ts'

// Other faults are in test/release/replicas.release.ts.
const group = await startStandbys(t, folderOf(t), { count: 1 })
const standby = group.standbys[0]!
const PAUSE = 'select pg_wal_replay_pause()'
const RESUME = 'select pg_wal_replay_resume()'

t.test('14.7 a standby that is late is not used, and nothing is stale', async (t) => {
  const usher = await open(t, { ...optionsOf(group), deadlines: slow })
  const { id } = await usher.createUser({ name: '0' })
  await usher.untilUsed(1)
  const { standby: before = 0 } = await readsOf(usher)
  for (let times = 0; times < 5; times++) t.equal(await usher.nameOf(id), '0')
  t.equal((await readsOf(usher)).standby, before + 5, 'the standby answers')

  await standby.query(PAUSE)
  for (let number = 1; Object.values(await countsOf(usher, 'usher_replica_used'))[0] === 1; number++) {
    t.equal(await usher.rename(id, String(number)), 200)
    t.equal(await usher.nameOf(id), String(number), 'what was acknowledged is shown')
  }
  t.ok((await fallbacks(usher)).late! > 0)
  t.ok(usher.lines.some((line) => /Reads do not go to the standby .*has not replayed the WAL in time/.test(line)))
  await standby.query(RESUME)
  await usher.untilUsed(1)
})

t.test('14.7 a server that is no standby is not used', async (t) => {
  const { url, port } = group.primary
  const usher = await open(t, { databaseUrl: url, replicaUrls: [url], deadlines: slow })
  await until('the reason is logged', async () => {
    await usher.app.usher.users.get(usher.admin.id)
    return usher.lines.some((line) => line.endsWith(`:${port}: It is a primary, not a standby`))
  })
  t.equal((await readsOf(usher)).standby, 0)
})

t.test('14.7 beside writes on two nodes, no read is stale, and none goes backwards', async (t) => {
  const one = await open(t, { ...optionsOf(group), deadlines: slow, poolSize: 4 })
  const nodes = [one, await open(t, { ...optionsOf(group), schema: one.options.schema!, deadlines: slow, poolSize: 4 })]
  const ids = await Promise.all(Array.from({ length: 8 }, async () => (await one.createUser({ name: '0' })).id))
  for (const node of nodes) await node.untilUsed(1)
  const { history, stop } = startHistory(nodes, {
    ids, readers: 12, writers: 2, rename: async (node, id, name) => await nodes[node]!.rename(id, name) === 200,
  })
  t.teardown(stop)
  const untilRead = (more: number) => {
    const since = history.reads
    return until('reads go on', () => history.reads > since + more || history.faults.length > 0)
  }
  await untilRead(300)
  await standby.query(PAUSE)
  await untilRead(100)
  await standby.query(RESUME)
  await untilRead(300)
  await stop()
  t.strictSame(history.faults, [])
  for (const node of nodes) t.ok((await readsOf(node)).standby! > 0)
})
