import t from 'tap'
import { createDatabase } from '../../helpers/database.ts'
import { startNode } from '../../helpers/node.ts'
import { openSql } from '../../helpers/sql.ts'
import { until } from '../../helpers/until.ts'
import { findFaults, noFaults, startWrites, type Write } from '../../helpers/writes.ts'

const admin = { email: 'root@example.com', password: 'horse battery staple' }

t.test('SPEED 3 kill -9 of a node under write load: acknowledged writes are stored once, and the next node returns them', async (t) => {
  const databaseUrl = await createDatabase(t)
  const cwd = t.testdir()
  const settings = {
    DATABASE_URL: databaseUrl, ADMIN_EMAIL: admin.email, ADMIN_PASSWORD: admin.password, LOG_LEVEL: 'silent',
  }
  const sql = openSql(t, { options: { databaseUrl, schema: 'usher' } })
  const sent: Write[] = []

  for (let round = 0; round < 2; round++) {
    const node = await startNode(t, { cwd, settings })
    const { headers } = await node.login(admin)
    const writes = startWrites({ url: node.url, headers })
    await writes.acknowledge(300)
    node.child.kill('SIGKILL')
    t.equal(await node.ended, 'SIGKILL')
    await writes.ended
    sent.push(...writes.sent)
    t.equal(
      writes.sent.filter(({ id, refusal }) => !id && !refusal).length, 32, 'each client was waiting for one response'
    )
    // Writes that were sent may still be committed without a response.
    await until('the connections of the node are closed', async () => (await sql`
      select from pg_stat_activity where application_name = 'usher' and datname = current_database()`).length === 0)
    t.strictSame(await findFaults(sql, sent), noFaults)
  }

  const { url } = await startNode(t, { cwd, settings })
  const served = new Set([...await listUsers(url), ...await listPosts(url)])
  t.strictSame(sent.filter(({ id }) => id && !served.has(id)), [])
})

async function listUsers (url: string): Promise<string[]> {
  const ids: string[] = []
  for (let next: string | undefined = '/api/users?limit=1000'; next;) {
    const { body, headers } = await ask(`${url}${next}`)
    ids.push(...body.map(({ id }: { id: string }) => id))
    next = headers.get('link')?.match(/<(.*)>/)?.[1]
  }
  return ids
}

async function listPosts (url: string): Promise<string[]> {
  const ids: string[] = []
  const query =
    'query ($after: String) { posts(first: 100, after: $after) { nodes { id } pageInfo { hasNextPage endCursor } } }'
  for (let after: string | null = null, more = true; more;) {
    const { body: { data: { posts } } } = await ask(`${url}/graphql`, {
      method: 'POST',
      headers: { 'content-type': 'application/json' },
      body: JSON.stringify({ query, variables: { after } }),
    })
    ids.push(...posts.nodes.map(({ id }: { id: string }) => id))
    ;({ hasNextPage: more, endCursor: after } = posts.pageInfo)
  }
  return ids
}

// Repeats the request until it succeeds, because on a busy machine the database may seem to be unavailable.
async function ask (url: string, init?: RequestInit): Promise<{ body: any, headers: Headers }> {
  let answer = { body: {} as any, headers: new Headers() }
  await until(`${url} responds`, async () => {
    const response = await fetch(url, init)
    answer = { body: await response.json(), headers: response.headers }
    return response.status === 200 && !answer.body.errors
  })
  return answer
}
