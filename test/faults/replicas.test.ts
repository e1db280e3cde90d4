import t from 'tap'
import { slow } from '../helpers/deadlines.ts'
import { createPost } from '../helpers/graphql.ts'
import { startHistory } from '../helpers/history.ts'
import { countsOf, fallbacks, folderOf, open, optionsOf, readsOf } from '../helpers/nodes-with-standbys.ts'
import { startStandbys } from '../helpers/standbys.ts'
import { until } from '../helpers/until.ts'

// Other faults are in test/release/replicas.release.ts.
const group = await startStandbys(t, folderOf(t), { count: 1 })
const { primary } = group
const standby = group.standbys[0]!
const usher = await open(t, { ...optionsOf(group), deadlines: slow })
const PAUSE = 'select pg_wal_replay_pause()'
const RESUME = 'select pg_wal_replay_resume()'

t.test('14.7 a standby that is late is not used, and nothing is stale', async (t) => {
  const { id } = await usher.createUser({ name: '0' })
  await usher.untilUsed(1)
  const { standby: before = 0 } = await readsOf(usher)
  await until('the standby answers', async () => {
    t.equal(await usher.nameOf(id), '0')
    return (await readsOf(usher)).standby! >= before + 5
  })

  await standby.query(PAUSE)
  const isUsed = async () => Object.values(await countsOf(usher, 'usher_replica_used'))[0] === 1
  for (let number = 1; number <= 20 && await isUsed(); number++) {
    t.equal(await usher.rename(id, String(number)), 200)
    t.equal(await usher.nameOf(id), String(number), 'what was acknowledged is shown')
  }
  t.notOk(await isUsed(), 'it rests')
  t.ok((await fallbacks(usher)).late! > 0)
  t.ok(usher.lines.some((line) => /Reads do not go to the standby .*has not replayed the WAL in time/.test(line)))
  await standby.query(RESUME)
  await usher.untilUsed(1)
})

t.test('14.7 a standby answers each kind of read, also right after a switch of segments', async (t) => {
  const { id, headers } = usher.admin
  const postId = await createPost(usher, usher.admin)
  const { etag } = (await usher.inject('GET', `/api/users/${id}`, { headers })).headers
  const graphql = (query: string) => `/graphql?query=${encodeURIComponent(query)}`
  const requests: [url: string, more?: { 'if-none-match': string }][] = [
    [`/api/users/${id}`], [`/api/users/${id}`, { 'if-none-match': String(etag) }], ['/api/users?limit=5'],
    ['/api/users?q=admin'], ['/api/users?limit=100'], ['/api/uploads'], [`/api/uploads?userId=${id}`],
    [graphql('{ posts { nodes { title author { name posts { title } uploads { nodes { id } } } } } }')],
    [graphql(`{ post(id: "${postId}") { title } }`)], [graphql(`{ posts(authorId: "${id}") { nodes { title } } }`)],
  ]
  const { failed } = await fallbacks(usher)
  for (const [url, more] of requests) {
    const { standby: before = 0 } = await readsOf(usher)
    // The primary answers if its own clean-ups write at this moment.
    for (let times = 0; times < 10 && (await readsOf(usher)).standby === before; times++) {
      await primary.query('select pg_switch_wal()')
      const { statusCode, body } = await usher.inject('GET', url, { headers: { ...headers, ...more } })
      t.equal(statusCode, more ? 304 : 200, `${url} ${body}`)
      t.notMatch(body, /"errors"/)
    }
    t.ok((await readsOf(usher)).standby! > before, url)
  }
  t.equal((await fallbacks(usher)).failed, failed, 'the standby has no errors')
  const metrics = (await usher.app.usher.metrics()).filter(({ name }) => name.startsWith('usher_replica'))
  t.strictSame(metrics.map(({ name }) => name.slice('usher_replica_'.length)), [
    'reads_total', 'fallbacks_total', 'replay_seconds', 'used', 'lag_bytes', 'connections',
  ])
})

t.test('14.7 what was acknowledged before it was flushed is shown', async (t) => {
  const { id } = await usher.createUser({ name: 'before' })
  await usher.untilUsed(1)
  // It writes what nobody waits for.
  const [writer] = await primary.query("select pid from pg_stat_activity where backend_type = 'walwriter'")
  const pid = Number(writer!.pid)
  process.kill(pid, 'SIGSTOP')
  try {
    await primary.query(`set synchronous_commit = off; update "${usher.options.schema}".users set name = 'after'
      where id = '${id}'`)
    t.equal(await usher.nameOf(id), 'after')
  } finally {
    process.kill(pid, 'SIGCONT')
  }
})

t.test('14.7 what a standby shows before the primary does is not shown', async (t) => {
  const { id } = await usher.createUser({ name: 'before' })
  await usher.untilUsed(1)
  // Nobody confirms a commit, so the primary shows none, and the standby shows all.
  await primary.query("alter system set synchronous_standby_names = 'nobody'")
  await primary.query('select pg_reload_conf()')
  const renaming = usher.rename(id, 'after')
  await until('the standby shows it', async () =>
    (await standby.query(`select name from "${usher.options.schema}".users where id = '${id}'`))[0]!.name === 'after')
  for (let times = 0; times < 5; times++) t.equal(await usher.nameOf(id), 'before')
  t.ok((await fallbacks(usher)).ahead! > 0)
  await primary.query('alter system reset synchronous_standby_names')
  await primary.query('select pg_reload_conf()')
  t.equal(await renaming, 200)
  t.equal(await usher.nameOf(id), 'after')
})

t.test('14.7 a server that is no standby is not used', async (t) => {
  const { url, port } = primary
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
