import { setTimeout as delay } from 'node:timers/promises'
import t from 'tap'
import { migrations } from '../../db/migrations/index.ts'
import { startDatabase } from '../helpers/database.ts'
import { Follower, ways } from '../helpers/follower.ts'
import { startNode, stopNode, type ServingNode } from '../helpers/node.ts'
import { Posting } from '../helpers/posting.ts'
import { nextMigrations } from '../helpers/next-migrations.ts'
import { createNextRelease } from '../helpers/next-release.ts'
import { openSql } from '../helpers/sql.ts'
import { SteadyRequests } from '../helpers/steady-requests.ts'
import { compareEvents, isExact, readPosts } from './faults/check-events.ts'

const USERS = 50_000
const POSTS_PER_PHASE = 150
const TIMEOUT_MS = 30_000
const admin = { email: 'root@example.com', password: 'horse battery staple' }

// Release 0.1.0 is the first one that is upgraded from. So this release is the previous one here, and the next one is a
// copy of it that has more migrations.
t.test('14.3 the previous release serves while a new one migrates and serves beside it, and back: no request fails and no event is lost', async (t) => {
  const program = createNextRelease()
  const { url: databaseUrl, dataDir: cwd } = await startDatabase(t)
  const settings = {
    DATABASE_URL: databaseUrl, ADMIN_EMAIL: admin.email, ADMIN_PASSWORD: admin.password, LOG_LEVEL: 'warn',
  }
  // The nodes that get requests, as a load balancer would have them.
  const urls: string[] = []
  const start = async (isPrevious: boolean): Promise<ServingNode> => {
    const node = await startNode(t, { cwd, settings, ...!isPrevious && { program } })
    urls.push(node.url)
    return node
  }
  const stop = async (node: ServingNode): Promise<void> => {
    urls.splice(urls.indexOf(node.url), 1)
    // As a load balancer does: requests in flight end first.
    await delay(1000)
    t.equal(await stopNode(node), 0)
  }

  const previous = await start(true)
  const sql = openSql(t, { options: { databaseUrl, schema: 'usher' } })
  const ran = async () => (await sql`select name from migrations order by name`).map(({ name }) => name)
  t.same(await ran(), Object.keys(migrations))
  await sql`insert into users (id, name, email, role) select gen_random_uuid(), 'User ' || n, n || '@example.org', 'user' from generate_series(1, ${USERS}::int) n`

  const { headers } = await previous.login(admin)
  const [{ id: authorId }] = await sql<[{ id: string }]>`select id from users where role = 'admin'`
  const posting = new Posting({ urls, headers, authorIds: [authorId] })
  const after = await posting.postUntilAcknowledged()
  const followers = Array.from({ length: 12 }, (_, index) =>
    new Follower({ urls, way: Object.keys(ways)[index % 4]!, after, patience: 20 + index }))
  const followed = Promise.all(followers.map((follower, index) => follower.run(index)))
  const requests = new SteadyRequests(urls, headers)
  const written = Promise.all([posting.run(4), requests.run(4)])

  await posting.more(POSTS_PER_PHASE)
  const next = await start(false)
  t.same(
    await ran(), Object.keys({ ...migrations, ...nextMigrations }),
    'the new release has migrated while the previous one served'
  )
  const [{ time }] = await sql<[{ time: string }]>`select clock_timestamp()::text as time`
  await posting.more(POSTS_PER_PHASE)
  await stop(previous)
  await posting.more(POSTS_PER_PHASE)
  const again = await start(true)
  await posting.more(POSTS_PER_PHASE)
  await stop(next)
  await posting.more(POSTS_PER_PHASE)
  t.match(again.stdout, 'a newer version of Usher has migrated the database')

  posting.stop()
  requests.stop()
  await written
  const last = await posting.postUntilAcknowledged()
  await Promise.race([
    Promise.all(followers.map((follower) => follower.sees([last]))), delay(TIMEOUT_MS, undefined, { ref: false }),
  ])
  for (const follower of followers) follower.stop()
  await followed

  t.same(requests.failed.slice(0, 5), [], 'no request fails')
  t.same([...posting.undecided], [])
  t.equal(posting.refused, 0)
  const posts = await readPosts(sql)
  const expected = posts.map(({ cursor }) => cursor)
  const faults = followers.map(({ options: { way }, seen }) => ({ way, ...compareEvents(seen, expected) }))
  t.same(faults.filter((result) => !isExact(result)).slice(0, 3), [], 'each follower has got all posts, once, in order')
  t.equal(posts.length, posting.acknowledged.size)
  const [{ files, actual }] = await sql<[{ files: string, actual: string }]>`
    select (select files from upload_usage where user_id = ${authorId}) as files, count(*) as actual from uploads where user_id = ${authorId}`
  t.equal(files, actual, 'uploads of both releases count')
  // The previous release serves alone at the end, so its uploads are among them.
  const [{ noted, unnoted }] = await sql<[{ noted: number, unnoted: number }]>`
    select count(upload_id)::int as noted, (count(*) - count(upload_id))::int as unnoted
    from uploads left join next_notes on upload_id = id where created_at > ${time}::text::timestamptz`
  t.ok(noted > 0)
  t.equal(unnoted, 0, 'and what the migration added holds for both')
  t.comment(`${requests.count} requests, ${posts.length} posts, ${urls.length} node`)
})
