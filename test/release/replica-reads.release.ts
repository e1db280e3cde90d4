import { context, SpanKind, trace } from '@opentelemetry/api'
import { AsyncLocalStorageContextManager } from '@opentelemetry/context-async-hooks'
import {
  BasicTracerProvider, InMemorySpanExporter, SimpleSpanProcessor, type ReadableSpan,
} from '@opentelemetry/sdk-trace-base'
import t from 'tap'
import { slow } from '../helpers/deadlines.ts'
import { createPost } from '../helpers/graphql.ts'
import { startHistory } from '../helpers/history.ts'
import { countsOf, fallbacks, folderOf, open, optionsOf, readsOf } from '../helpers/nodes-with-standbys.ts'
import { openSql } from '../helpers/sql.ts'
import { startStandbys } from '../helpers/standbys.ts'
import { until } from '../helpers/until.ts'

// Other faults are in test/release/replicas.release.ts.
const group = await startStandbys(t, folderOf(t), { count: 1 })
const { primary } = group
const standby = group.standbys[0]!
const address = `127.0.0.1:${standby.port}`
// A read that waits on the standby ends by what the test does, and not by the deadline.
const deadlines = { ...slow, replicaAnswer: 60_000 }
const usher = await open(t, { ...optionsOf(group), deadlines, slowStatementMs: 100 })
const { schema = '' } = usher.options
// Another node with the same database, which has spans, and two URLs that are wrong.
const exporter = new InMemorySpanExporter()
context.setGlobalContextManager(new AsyncLocalStorageContextManager().enable())
trace.setGlobalTracerProvider(new BasicTracerProvider({ spanProcessors: [new SimpleSpanProcessor(exporter)] }))
const wrong = standby.url.replace(/\/usher$/, '/postgres')
const traced = await open(t, {
  databaseUrl: primary.url, replicaUrls: [primary.url, wrong, standby.url], schema, deadlines,
})
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

  const there = usher.slow.filter((entry) => entry.standby === address)
  t.ok(there.some(({ statement }) => statement.includes('pg_sleep')), 'its slow statements are logged')
  const read = there.find(({ statement }) => /"users"/.test(statement))!
  t.match(read, { level: 40, statement: /\$1/ })
  t.ok(read.ms >= 100)
  t.notMatch(JSON.stringify(there), id, 'without values')
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
      // It fills a segment of 16 MB on both servers.
      if (url === requests[0]![0]) await primary.query('select pg_switch_wal()')
      const { statusCode, body } = await usher.inject('GET', url, { headers: { ...headers, ...more } })
      t.equal(statusCode, more ? 304 : 200, `${url} ${body}`)
      t.notMatch(body, /"errors"/)
    }
    t.ok((await readsOf(usher)).standby! > before, url)
  }
  t.equal((await fallbacks(usher)).failed, failed, 'the standby has no errors')
  const metrics = (await usher.app.usher.metrics()).filter(({ name }) => name.startsWith('usher_replica'))
  t.strictSame(metrics.map(({ name }) => name.slice('usher_replica_'.length)), [
    'reads_total', 'fallbacks_total', 'replay_seconds', 'used', 'lag_bytes', 'patience_seconds', 'connections',
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
    await primary.query(`set synchronous_commit = off; update "${schema}".users set name = 'after' where id = '${id}'`)
    t.equal(await usher.nameOf(id), 'after')
  } finally {
    process.kill(pid, 'SIGCONT')
  }
})

t.test('14.7 a read that waits for the WAL does not hold up the standby, which removes rows that the read could see', async (t) => {
  const { id } = await usher.createUser({ name: '0' })
  // It waits for longer than the test needs.
  const patient = await open(t, { ...optionsOf(group), schema, deadlines: { ...deadlines, replicaReplay: 100_000 } })
  await patient.untilUsed(1)
  await standby.catchUp()
  standby.link.freeze()
  t.equal(await usher.rename(id, '1'), 200)
  await primary.query(`vacuum "${schema}".users`)
  const { standby: before = 0 } = await readsOf(patient)
  const since = performance.now()
  const reading = patient.nameOf(id)
  await until('the read waits there', async () =>
    (await standby.query("select from pg_stat_activity where wait_event = 'PgSleep'")).length > 0)
  standby.link.thaw()
  t.equal(await reading, '1')
  t.ok((await readsOf(patient)).standby! > before, 'the standby has answered it')
  t.ok(performance.now() - since < 50_000)
  await patient.app.close()
})

t.test('14.7 what a standby shows before the primary does is not shown', async (t) => {
  const { id } = await usher.createUser({ name: 'before' })
  await usher.untilUsed(1)
  // Nobody confirms a commit, so the primary shows none, and the standby shows all.
  await primary.query("alter system set synchronous_standby_names = 'nobody'")
  await primary.query('select pg_reload_conf()')
  // The server reads its configuration a moment later. From then on, commits wait.
  const commits: Promise<unknown>[] = []
  await until('a commit waits', async () => {
    commits.push(primary.query("select pg_logical_emit_message(true, 'usher', '')"))
    return (await primary.query("select from pg_stat_activity where wait_event = 'SyncRep'")).length > 0
  }, 100)
  const renaming = usher.rename(id, 'after')
  await until('the standby shows it', async () =>
    (await standby.query(`select name from "${schema}".users where id = '${id}'`))[0]!.name === 'after')
  for (let times = 0; times < 5; times++) t.equal(await usher.nameOf(id), 'before')
  t.ok((await fallbacks(usher)).ahead! > 0)
  await primary.query('alter system reset synchronous_standby_names')
  await primary.query('select pg_reload_conf()')
  await Promise.all(commits)
  t.equal(await renaming, 200)
  t.equal(await usher.nameOf(id), 'after')
})

t.test('14.7 the primary answers a read that is cancelled on the standby by a vacuum or by a lock of the primary', async (t) => {
  const { id } = await usher.createUser({ name: '0' })
  const sql = openSql(t, { options: { databaseUrl: standby.url, schema } }, 1)
  // On the standby, each row waits for a lock that the test has there.
  await primary.query(`
    create function "${schema}".wait () returns boolean language plpgsql as $$ begin
      if pg_is_in_recovery() then
        perform pg_advisory_lock_shared(1);
        perform pg_advisory_unlock_shared(1);
      end if;
      return true;
    end $$;
    create policy waits on "${schema}".users using ("${schema}".wait());
    alter table "${schema}".users enable row level security, force row level security`)
  const causes = [
    `update "${schema}".users set name = '1' where id = '${id}'; vacuum "${schema}".users`,
    `update "${schema}".users set name = '2' where id = '${id}';
      alter table "${schema}".users disable row level security`,
  ]
  for (const [index, cause] of causes.entries()) {
    const { failed = 0 } = await fallbacks(usher)
    await sql`select pg_advisory_lock(1)`
    let reading: Promise<string> | undefined
    await until('a read waits on the standby', async () => {
      reading ??= usher.nameOf(id).finally(() => { reading = undefined })
      return (await standby.query("select from pg_locks where locktype = 'advisory' and not granted")).length > 0
    })
    const answered = reading!
    // It would cancel what the test itself asks the standby.
    await standby.query("alter system set max_standby_streaming_delay = '0'")
    await standby.query('select pg_reload_conf()')
    for (const statement of cause.split(';')) await primary.query(statement)
    t.equal(await answered, String(index + 1))
    await standby.query('alter system reset max_standby_streaming_delay')
    await standby.query('select pg_reload_conf()')
    await sql`select pg_advisory_unlock(1)`
    t.equal((await fallbacks(usher)).failed, failed + 1)
    const { standby: before = 0 } = await readsOf(usher)
    await until('the standby answers others', async () => {
      t.equal(await usher.nameOf(id), String(index + 1))
      return (await readsOf(usher)).standby! > before
    })
  }
})

t.test('14.7 a server that is no standby, or has another database, is not used', async (t) => {
  const reasons = [
    `:${primary.port}: It is a primary, not a standby`,
    `:${standby.port}: Its URL names the database "postgres", and the primary has "usher"`,
  ]
  await until('the reasons are logged', async () => {
    await traced.app.usher.users.get(traced.admin.id)
    return reasons.every((reason) => traced.lines.some((line) => line.endsWith(reason)))
  })
  await traced.untilUsed(1)
  t.equal((await countsOf(traced, 'usher_replica_used'))[`127.0.0.1:${primary.port}`], 0)
})

t.test('14.2 statements on standbys have spans that name the standby', async (t) => {
  const textOf = ({ attributes }: ReadableSpan) => String(attributes['db.query.text'])
  const isOf = (part: string) => (span: ReadableSpan) => textOf(span).includes(part)
  const { headers, id } = traced.admin
  const paths = [`/api/users/${id}`, '/api/users?limit=5', '/api/users?limit=6', '/api/uploads']
  await until('one more connection is opened for requests', async () => {
    exporter.reset()
    await Promise.all(paths.map((path) => traced.inject('GET', path, { headers })))
    return (await countsOf(traced, 'usher_replica_connections'))[address]! > 1
  })
  await until('standbys answer', async () => {
    await Promise.all(paths.map((path) => traced.inject('GET', path, { headers })))
    return exporter.getFinishedSpans().some((span) => isOf('"users"')(span) && 'server.port' in span.attributes)
  })
  const spans = exporter.getFinishedSpans()
  const there = spans.filter(({ attributes }) => attributes['server.port'] !== undefined)
  for (const { attributes } of there) {
    t.match(attributes, { 'server.address': '127.0.0.1', 'server.port': standby.port, 'db.system.name': 'postgresql' })
  }
  const read = there.find(isOf('"users"'))!
  t.match(read.name, /^select users\./)
  const around = there.filter((span) => span.parentSpanContext?.spanId === read.parentSpanContext!.spanId)
  t.ok(around.some(isOf('pg_sleep')), 'that which waits for the WAL')
  t.ok(around.some(isOf('pg_xact_status')), 'that which says what was visible')
  const positions = spans.filter(isOf('pg_current_wal_insert_lsn'))
  t.ok(positions.length > 0)
  t.ok(positions.every(({ attributes }) => !('server.port' in attributes)), 'the primary has no address')
  const linked = new Set(positions.flatMap(({ links }) => links.map(({ context }) => context.spanId)))
  // A statement that was late belongs to a request of before.
  const served = spans.filter(({ kind }) => kind === SpanKind.SERVER)
  const requests = new Set(served.map((span) => span.spanContext().spanId))
  const parents = there.map(({ parentSpanContext: parent }) => parent!.spanId).filter((id) => requests.has(id))
  t.ok(parents.length > 0)
  t.ok(parents.every((id) => linked.has(id)), 'all requests share a position')
  t.notOk(spans.some(isOf('pg_backend_pid')), 'no request waits for a connection')
  await exporter.shutdown()
})

t.test('14.7 beside writes on two nodes, no read is stale, and none goes backwards', async (t) => {
  const nodes = [usher, traced]
  const ids = await Promise.all(Array.from({ length: 8 }, async () => (await usher.createUser({ name: '0' })).id))
  const before = await Promise.all(nodes.map(readsOf))
  for (const node of nodes) await node.untilUsed(1)
  const { history, stop } = startHistory(nodes, {
    ids, readers: 12, writers: 2, rename: async (node, id, name) => await nodes[node]!.rename(id, name) === 200,
  })
  t.teardown(stop)
  const untilRead = (more: number) => {
    const since = history.reads
    return until('reads go on', () => history.reads > since + more || history.faults.length > 0)
  }
  await untilRead(150)
  await standby.query(PAUSE)
  await untilRead(80)
  await standby.query(RESUME)
  await untilRead(150)
  await stop()
  t.strictSame(history.faults, [])
  for (const [index, node] of nodes.entries()) t.ok((await readsOf(node)).standby! > before[index]!.standby!)
})
