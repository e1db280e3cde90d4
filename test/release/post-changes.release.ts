import { setTimeout as delay } from 'node:timers/promises'
import t from 'tap'
import { readEvents, type ServerEvent } from '../../client/event-stream.ts'
import { startDatabase } from '../helpers/database.ts'
import { startNode, stopNode, type ServingNode } from '../helpers/node.ts'
import { findPort } from '../helpers/port.ts'
import { openSql } from '../helpers/sql.ts'
import { until } from '../helpers/until.ts'

const STEPS = 60
const WRITES_PER_STEP = 10
const WRITERS = 8
const FOLLOWERS = 20
const PAUSE_MS = 100
const admin = { email: 'root@example.com', password: 'horse battery staple' }

t.test('22.1 lists that follow changes are those of the database, while nodes, PostgreSQL and connections are killed', async (t) => {
  const { url: databaseUrl, dataDir: cwd, postmaster } = await startDatabase(t)
  const sql = openSql(t, { options: { databaseUrl, schema: 'usher' } })
  const settings = {
    DATABASE_URL: databaseUrl, ADMIN_EMAIL: admin.email, ADMIN_PASSWORD: admin.password, LOG_LEVEL: 'silent',
  }
  const ports = [await findPort(), await findPort()]
  const urls = ports.map((port) => `http://127.0.0.1:${port}`)
  const start = async (port: number): Promise<ServingNode> => {
    for (;;) {
      try {
        return await startNode(t, { cwd, settings: { ...settings, HOST: '127.0.0.1', PORT: String(port) } })
      } catch {
        // The database was unavailable.
      }
    }
  }
  // A node writes its compile cache when it is stopped, but not when it is killed. This node fills the cache.
  await stopNode(await start(ports[0]!))
  const serving = [await start(ports[0]!), await start(ports[1]!)].map((node) => Promise.resolve(node))
  const { headers } = await (await serving[0]!).login(admin)

  const progress = { stopped: false, written: 0 }
  let turn = 0
  // Sends a write until it is acknowledged. The key makes it happen once. One whose post is gone is done.
  async function write (method: string, path: string, body?: object): Promise<{ id: string } | undefined> {
    const key = crypto.randomUUID()
    for (;; await delay(PAUSE_MS)) {
      const response = await fetch(`${urls[turn++ % 2]}/api/posts${path}`, {
        method,
        headers: { ...headers, 'idempotency-key': key, ...body && { 'content-type': 'application/json' } },
        ...body && { body: JSON.stringify(body) },
      }).catch(() => undefined)
      if (!response) continue
      const text = await response.text().catch(() => undefined)
      if (text === undefined || response.status >= 500 || response.status === 409) continue
      progress.written++
      if (response.ok) return text === '' ? undefined : JSON.parse(text)
      if (response.status === 404 && method !== 'POST') return undefined
      throw new Error(`${method} ${path}: ${response.status} ${text}`)
    }
  }
  const writers = Array.from({ length: WRITERS }, async (_, writer) => {
    const own: string[] = []
    for (let step = 0; !progress.stopped; step++, await delay(PAUSE_MS)) {
      const title = `${writer} ${step}`
      const choice = Math.random()
      const some = own[Math.floor(Math.random() * own.length)]
      if (some === undefined || choice < 0.4) own.push((await write('POST', '', { title, content: 'Words' }))!.id)
      else if (choice < 0.8) await write('PATCH', `/${some}`, { title })
      else await write('DELETE', `/${own.splice(own.indexOf(some), 1)[0]}`)
    }
  })

  const followers = Array.from({ length: FOLLOWERS }, (_, index) => new Follower(urls, index))
  const following = followers.map((follower) => follower.run())
  await until('all follow', () => followers.every(({ cursor }) => cursor !== undefined))

  for (let step = 0; step < STEPS; step++) {
    const wanted = progress.written + WRITES_PER_STEP
    while (progress.written < wanted) await delay(20)
    if (step % 5 === 1) await killNode(step % 2)
    if (step % 20 === 10) process.kill(await postmaster(), 'SIGKILL')
    followers[step % FOLLOWERS]!.hangUp()
  }

  async function killNode (index: number): Promise<void> {
    const { child, ended } = await serving[index]!
    child.kill('SIGKILL')
    await ended
    serving[index] = start(ports[index]!)
  }

  progress.stopped = true
  await Promise.all(writers)
  await Promise.all(serving)
  const last = (await write('POST', '', { title: 'The end', content: '' }))!.id
  await until('all have the last post', () => followers.every(({ posts }) => posts.has(last)))
  for (const follower of followers) follower.stop()
  await Promise.all(following)

  const rows = await sql<{ id: string, title: string }[]>`select id, title from posts order by id`
  const expected = rows.map(({ id, title }) => [id, title])
  t.ok(expected.length > 20, `${expected.length} posts after ${progress.written} writes`)
  for (const follower of followers) {
    t.strictSame([...follower.posts].sort(), expected, 'the posts of a follower')
    t.strictSame(follower.wrong, [], 'each once, in order')
  }
})

/** Follows the posts by the event streams of nodes in turn, from the first write on. */
class Follower {
  readonly urls: readonly string[]
  readonly posts = new Map<string, string>()
  readonly wrong: string[] = []
  cursor: string | undefined
  readonly #created = new Set<string>()
  #turn: number
  #stopped = false
  #aborter = new AbortController()

  constructor (urls: readonly string[], turn: number) {
    this.urls = urls
    this.#turn = turn
  }

  async run (): Promise<void> {
    for (; !this.#stopped; await delay(PAUSE_MS)) {
      this.#aborter = new AbortController()
      const { signal } = this.#aborter
      try {
        // From the first position on, so that nothing is missed before the first connection.
        const after = this.cursor ?? Buffer.alloc(12).toString('base64url')
        const response = await fetch(`${this.urls[this.#turn++ % 2]}/api/posts/events?after=${after}`, { signal })
        if (response.status === 200) for await (const event of readEvents(response.body!)) this.#apply(event)
        else if (response.status < 500) this.wrong.push(`${response.status} ${await response.text()}`)
      } catch {
        // The node was killed, or the test hangs up.
      }
    }
  }

  hangUp (): void {
    this.#aborter.abort()
  }

  stop (): void {
    this.#stopped = true
    this.hangUp()
  }

  #apply ({ id, event, data }: ServerEvent): void {
    if (!id) return
    const isLater = this.cursor === undefined || Buffer.compare(bytesOf(id), bytesOf(this.cursor)) > 0
    // The first event of a stream repeats the cursor.
    if (!isLater && data) this.wrong.push(`${event} ${data} again or out of order`)
    this.cursor = id
    if (!data) return
    const post = JSON.parse(data) as { id: string, title: string }
    if (event === 'post.deleted') this.posts.delete(post.id)
    else {
      if (event === 'post.created' && this.#created.has(post.id)) this.wrong.push(`${post.id} was created twice`)
      if (event === 'post.updated' && !this.#created.has(post.id)) this.wrong.push(`${post.id} changed before`)
      this.#created.add(post.id)
      this.posts.set(post.id, post.title)
    }
  }
}

const bytesOf = (cursor: string) => Buffer.from(cursor, 'base64url')
