import { mkdir, readFile, writeFile } from 'node:fs/promises'
import { fileURLToPath } from 'node:url'
import { setTimeout as delay } from 'node:timers/promises'
import t, { type Test } from 'tap'
import { Follower, ways } from '../helpers/follower.ts'
import { Posting } from '../helpers/posting.ts'
import { until } from '../helpers/until.ts'
import { compareEvents, isExact, readPosts } from './faults/check-events.ts'
import { checkRegisters } from './faults/check-registers.ts'
import { checkSessions } from './faults/check-sessions.ts'
import { Client } from './faults/client.ts'
import { admin, startCluster } from './faults/cluster.ts'
import type { RegisterOperation, SessionHistory } from './faults/history.ts'
import { RegisterClients } from './faults/register-clients.ts'
import { report } from './faults/report.ts'
import { createSchedule, type Fault } from './faults/schedule.ts'
import { SessionClients } from './faults/session-clients.ts'

// FAULTS_SEED runs the schedule of one seed. FAULTS_HISTORY checks the recorded history of an earlier run again.
const { FAULTS_SEED, FAULTS_HISTORY } = process.env
const SECONDS = Number(process.env.FAULTS_SECONDS ?? 120)
const COUNT = Number(process.env.FAULTS_SEEDS ?? 6)
// Each day has others. Test names tell which.
const FIRST = FAULTS_SEED ? Number(FAULTS_SEED) : Math.floor(Date.now() / 86_400_000) * COUNT
const SEEDS = Array.from({ length: FAULTS_SEED ? 1 : COUNT }, (_, index) => FIRST + index)
const NODES = 3
const FOLLOWERS = 8
const POSTERS = 3
const SHOWN = 3
const folder = fileURLToPath(new URL('../../.tap/faults/', import.meta.url))

t.setTimeout(0)

/** The recorded history of a run. */
interface History {
  readonly seed: number
  readonly faults: readonly Fault[]
  readonly operations: readonly RegisterOperation[]
  readonly sessions: readonly SessionHistory[]
  readonly titles: readonly string[]
}

for (const seed of FAULTS_HISTORY ? [] : SEEDS) {
  t.test(`three nodes under the faults of seed ${seed}: users, sessions and events are as the contract says`, (t) =>
    run(t, seed))
}

if (FAULTS_HISTORY) {
  t.test('a recorded history is as the contract says', async (t) =>
    check(t, JSON.parse(await readFile(FAULTS_HISTORY, 'utf8'))))
}

async function run (t: Test, seed: number): Promise<void> {
  const cluster = await startCluster(t, NODES)
  const client = new Client(cluster.nodes)
  const urls = cluster.nodes.map(({ url }) => url)
  const { headers } = await cluster.nodes[0]!.login(admin)
  const registers = new RegisterClients(client, headers)
  await registers.prepare()
  const sessions = new SessionClients(client, headers)
  const posting = new Posting({ urls, headers, authorIds: registers.users })
  const after = await posting.postUntilAcknowledged()
  const followers = Array.from({ length: FOLLOWERS }, (_, index) => new Follower({
    urls, way: Object.keys(ways)[index % 4]!, after, patience: 500 + 100 * index,
  }))
  const working = [registers.run(), sessions.run(), posting.run(POSTERS)]
  const following = followers.map((follower, index) => follower.run(index))

  const faults = createSchedule(seed, SECONDS * 1000, NODES)
  await Promise.all(faults.map(async (fault) => {
    await delay(fault.at - client.now())
    await cluster.perform(fault)
  }))
  await delay(SECONDS * 1000 - client.now())
  for (const clients of [registers, sessions, posting]) clients.stop()
  await Promise.all(working)

  const areReady = async () => {
    const answers = await Promise.all(urls.map((_, node) => client.send(node, 'GET', '/health/ready')))
    return answers.every(({ status }) => status === 200)
  }
  await until('all nodes serve', areReady, 100)
  const end = await posting.postUntilAcknowledged()
  await Promise.all(followers.map((follower) => follower.sees([end])))
  for (const follower of followers) follower.stop()
  await Promise.all(following)

  const posts = await readPosts(cluster.sql)
  const history = {
    seed,
    faults,
    operations: registers.operations,
    sessions: sessions.sessions,
    titles: posts.map(({ title }) => title),
  }
  await mkdir(folder, { recursive: true })
  await writeFile(`${folder}seed-${seed}.json`, JSON.stringify(history))
  const verdict = check(t, history)

  const expected = posts.slice(
    posts.findIndex(({ cursor }) => cursor === after), posts.findIndex(({ cursor }) => cursor === end) + 1
  )
    .map(({ cursor }) => cursor)
  t.strictSame(
    followers.map(({ seen, options }) => ({ ...options, ...compareEvents(seen, expected) }))
      .filter((result) => !isExact(result)).slice(0, SHOWN),
    [],
    'every subscriber got every post, once, in order'
  )
  const ids = new Map(posts.map(({ title, id }) => [title, id]))
  t.strictSame(
    [...posting.acknowledged].filter(([title, { id }]) => ids.get(title) !== id), [], 'every acknowledged post exists'
  )
  t.equal(ids.size, posts.length, 'no post exists twice')

  for (const { id, cookie } of history.sessions.slice(-SHOWN)) {
    let status = 503
    // A busy machine may take the database for unavailable once more.
    while (status === 503) ({ status } = await client.send(0, 'POST', '/api/auth/refresh', { headers: { cookie } }))
    t.equal(status, 401, `the cookie of the ended session ${id}`)
  }
  const ended = new Set(history.sessions.map(({ id }) => id))
  t.strictSame(
    (await cluster.sql`select id from sessions`).filter(({ id }) => ended.has(id)), [], 'every ended session is gone'
  )
  t.strictSame(
    client.unexpected.slice(0, SHOWN), [], 'every request is answered, and with a status that a fault explains'
  )
  await until('no connection is inside a transaction', async () =>
    (await cluster.sql`select pid from pg_stat_activity where state like 'idle in transaction%'`).length === 0)
  for (const node of cluster.nodes) t.notMatch(node.stdout, /"level":60/)
  t.comment(JSON.stringify({ seed, posts: posts.length, ...report(faults, client.exchanges, verdict) }))
}

function check (t: Test, { seed, faults, operations, sessions, titles }: History) {
  const registers = checkRegisters(operations)
  const verdict = checkSessions(sessions, new Set(titles))
  const succeeded = operations.filter(({ status }) => status === 200).length
  t.comment(`seed ${seed}: ${faults.length} faults, ${succeeded} of ${operations.length} operations on registers succeeded, ${sessions.length} sessions`)
  t.ok(succeeded > 0 && sessions.length > 0)
  t.strictSame(registers.slice(0, SHOWN), [], 'users are registers')
  t.strictSame(verdict.violations.slice(0, SHOWN), [], 'live tokens are accepted, and no others')
  if (registers.length + verdict.violations.length > 0) t.comment(`the schedule: ${JSON.stringify(faults)}`)
  return verdict
}
