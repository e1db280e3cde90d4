import { readFileSync } from 'node:fs'
import { readdir } from 'node:fs/promises'
import { basename, join } from 'node:path'
import t, { type Test } from 'tap'
import { startDatabase } from '../../helpers/database.ts'
import { startFakeClamd } from '../../helpers/fake-clamd.ts'
import { startNode, stopNode, type ServingNode } from '../../helpers/node.ts'
import { openSql } from '../../helpers/sql.ts'
import { until } from '../../helpers/until.ts'

const admin = { email: 'root@example.com', password: 'horse battery staple' }

const TEXT = 'what nobody has looked at'

/** Starts a database, and returns what starts nodes on it. */
async function open (t: Test, more: Record<string, string> = {}) {
  const database = await startDatabase(t)
  const { url: databaseUrl, dataDir: cwd } = database
  const settings = {
    DATABASE_URL: databaseUrl, ADMIN_EMAIL: admin.email, ADMIN_PASSWORD: admin.password, LOG_LEVEL: 'silent', ...more,
  }
  return {
    database,
    dataDir: `${cwd}/data`,
    sql: openSql(t, { options: { databaseUrl, schema: 'usher' } }),
    start: () => startNode(t, { cwd, settings }),
  }
}

t.test('23.3 a node that is killed during a scan leaves nothing that anybody can read, and the upload can be sent again', async (t) => {
  const clamd = await startFakeClamd(t)
  const received: string[] = []
  clamd.behave({
    answer: (bytes) => {
      received.push(bytes.toString())
      return undefined
    },
  })
  const { start, sql, dataDir } = await open(t, { CLAMD: clamd.place, SCAN_SECONDS: '600' })
  const killed = await start()
  const send = async (node: ServingNode) => {
    const { token } = await node.login(admin)
    const body = new FormData()
    body.set('description', 'Something')
    body.set('file', new Blob([TEXT]), 'a.txt')
    return node.fetch('/api/uploads', { method: 'POST', headers: { authorization: `Bearer ${token}` }, body })
  }
  const interrupted = send(killed).then(async (response) => `${response.status} ${await response.text()}`, () => 'cut off')
  const early = await Promise.race([interrupted, until('clamd has the bytes', async () => received.length > 0)])
  t.equal(early, undefined)
  await stopNode(killed, 'SIGKILL')
  t.equal(await interrupted, 'cut off')

  clamd.behave({ answer: () => 'stream: OK\0' })
  const node = await start()
  t.equal((await sql`select from uploads`).length, 0)
  const files = (await readdir(dataDir, { recursive: true, withFileTypes: true })).filter((file) => file.isFile())
  const withText = files.filter(({ parentPath, name }) => readFileSync(join(parentPath, name)).includes(TEXT))
  t.strictSame(withText.map(({ parentPath }) => basename(parentPath)), ['parts'], 'where nothing is served from')
  const response = await send(node)
  t.equal(response.status, 200)
  const { fileUrl } = await response.json() as { fileUrl: string }
  t.equal(await (await node.fetch(fileUrl)).text(), TEXT)
})

t.test('22.4 drafts that are planned are published once, in order, although the node and the database are killed', async (t) => {
  const { start, sql, database } = await open(t)
  const killed = await start()
  const { headers } = await killed.login(admin)
  const count = 20
  const ids: string[] = []
  for (let number = 0; number < count; number++) {
    const publishedAt = new Date(Date.now() + 600_000 + number * 1000).toISOString()
    const response = await killed.fetch('/api/posts', {
      method: 'POST', headers, body: JSON.stringify({ title: `${number}`, content: '', publishedAt }),
    })
    t.equal(response.status, 201)
    ids.push((await response.json() as { id: string }).id)
  }
  // Their times come while no node runs, or while one is killed, and PostgreSQL with it.
  await sql`update post_drafts set publish_at = publish_at - interval '20 minutes'`
  const [again] = await Promise.all([start(), stopNode(killed, 'SIGKILL'), database.killPostmaster()])
  await until('all are published', async () => {
    const [row] = await sql`select count(*)::integer as count from posts`.catch(() => [])
    return row?.['count'] === count
  })
  t.strictSame((await sql`select id from posts order by position`).map((row) => row['id'] as string), ids)
  t.equal((await sql`select from post_drafts`).length, 0)
  t.equal((await again.fetch(`/api/posts/${ids[0]}`)).status, 200)
})
