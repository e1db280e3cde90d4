import { setTimeout as delay } from 'node:timers/promises'
import t from 'tap'
import { HEARTBEAT } from '../../db/driver/notification-connection.ts'
import { startDatabase } from '../helpers/database.ts'
import { Follower, ways } from '../helpers/follower.ts'
import { startNode, stopNode, type ServingNode } from '../helpers/node.ts'
import { findPort } from '../helpers/port.ts'
import { Posting } from '../helpers/posting.ts'
import { openSql } from '../helpers/sql.ts'
import { compareEvents, isExact, readPosts } from './faults/check-events.ts'

const STEPS = 100
const POSTS_PER_STEP = 8
const TIMEOUT_MS = 20_000
const admin = { email: 'root@example.com', password: 'horse battery staple' }

t.test('7.7 each subscriber gets each post once, in order, while nodes, PostgreSQL and connections are killed', async (t) => {
  const { url: databaseUrl, dataDir: cwd, postmaster } = await startDatabase(t)
  const sql = openSql(t, { options: { databaseUrl, schema: 'usher' } })
  const settings = {
    DATABASE_URL: databaseUrl, ADMIN_EMAIL: admin.email, ADMIN_PASSWORD: admin.password, LOG_LEVEL: 'silent',
  }
  const ports = [await findPort(), await findPort()]
  const urls = ports.map((port) => `http://127.0.0.1:${port}`)
  let failedStarts = 0
  const start = async (port: number): Promise<ServingNode> => {
    for (;;) {
      try {
        return await startNode(t, { cwd, settings: { ...settings, HOST: '127.0.0.1', PORT: String(port) } })
      } catch {
        // The database was unavailable.
        failedStarts++
      }
    }
  }
  // A node writes its compile cache when it is stopped, but not when it is killed. This node fills the cache.
  await stopNode(await start(ports[0]!))
  const serving = [await start(ports[0]!), await start(ports[1]!)].map((node) => Promise.resolve(node))

  const { headers } = await (await serving[0]!).login(admin)
  const authorIds = await Promise.all(['One', 'Two'].map(async (name) => {
    const response = await fetch(
      `${urls[0]}/api/users`, { method: 'POST', headers, body: JSON.stringify({ name, email: `${name}@example.com` }) }
    )
    return (await response.json() as { id: string }).id
  }))
  const posting = new Posting({ urls, headers, authorIds })
  const after = await posting.postUntilAcknowledged()

  const followers = Array.from({ length: 50 }, (_, index) => new Follower({
    urls,
    way: Object.keys(ways)[index % 4]!,
    authorId: index % 3 === 0 ? authorIds[index % 2] : undefined,
    fields: index % 5 === 0 ? 'author { id }' : '',
    after,
    patience: 20 + index,
  }))
  const followed = Promise.all(followers.map((follower, index) => follower.run(index)))
  const written = posting.run(20)

  const killed = { listeners: 0, nodes: 0, databases: 0 }
  for (let step = 0; step < STEPS; step++) {
    await posting.more(POSTS_PER_STEP)
    if (step % 2 === 0) await killListener()
    if (step % 5 === 1) await killNode(killed.nodes % 2)
    if (step % 20 === 10) await killDatabase()
  }

  // Terminates the connection on which a node receives notifications.
  async function killListener (): Promise<void> {
    for (;; await delay(20)) {
      const rows = await sql`
        select pg_terminate_backend(pid) from (
          select pid from pg_stat_activity where application_name = 'usher' and query = ${HEARTBEAT} order by random() limit 1
        ) listener`.catch(() => [])
      if (rows.length > 0) return void killed.listeners++
    }
  }

  async function killNode (index: number): Promise<void> {
    const { child, ended, stderr } = await serving[index]!
    child.kill('SIGKILL')
    if (await ended !== 'SIGKILL') t.fail(`it was gone before: ${stderr}`)
    serving[index] = start(ports[index]!)
    killed.nodes++
  }

  async function killDatabase (): Promise<void> {
    process.kill(await postmaster(), 'SIGKILL')
    killed.databases++
  }

  posting.stop()
  await written
  await Promise.all(serving)
  // A follower that has received the last post of each author has received all of them.
  const last = await Promise.all(authorIds.map((authorId) => posting.postUntilAcknowledged(authorId)))
  const caughtUp = Promise.all(followers.map((follower) =>
    follower.sees(last.filter((_, index) => [undefined, authorIds[index]].includes(follower.options.authorId)))))
  await Promise.race([caughtUp, delay(TIMEOUT_MS, undefined, { ref: false })])
  for (const follower of followers) follower.stop()
  await followed

  const posts = await readPosts(sql)
  const end = posts.findLastIndex(({ cursor }) => last.includes(cursor)) + 1
  const faults = followers.map((follower) => {
    const expected = posts.slice(0, end)
      .filter(({ authorId }) => [undefined, authorId].includes(follower.options.authorId)).map(({ cursor }) => cursor)
    return {
      ...follower.options, ...compareEvents(follower.seen, expected[0] === after ? expected : [after, ...expected]),
    }
  })
  t.strictSame(faults.filter((result) => !isExact(result)).slice(0, 3), [], 'each has got all, once, in order')

  const byTitle = Map.groupBy(posts, ({ title }) => title)
  t.strictSame(
    [...posting.acknowledged].filter(([title, { id }]) => byTitle.get(title)?.[0]!.id !== id),
    [],
    'what was acknowledged is there'
  )
  t.strictSame([...byTitle].filter(([, posts]) => posts.length > 1), [], 'once')
  t.strictSame(
    [...byTitle.keys()].filter((title) => !posting.acknowledged.has(title) && !posting.undecided.has(title)),
    [],
    'and nothing that nobody wrote'
  )
  t.strictSame(killed, { listeners: 50, nodes: 20, databases: 5 })

  const tally = (counts: Iterable<string>) => JSON.stringify(
    Object.fromEntries([...Map.groupBy(counts, (count) => count)].map(([what, { length }]) => [what, length]))
  )
  const ends = followers.flatMap(({ ends }) => ends)
  t.comment(`${posts.length} posts: ${posting.acknowledged.size} acknowledged, ${posting.refused} times refused, ${tally(posting.undecided.values())} undecided`)
  t.comment(`${ends.length} times cut off: ${tally(ends)}`)
  t.comment(`the longest silence: ${Math.max(...followers.map(({ longestSilence }) => longestSilence)).toFixed(0)} ms; ${failedStarts} times a node could not start`)
})
