import { readFile } from 'node:fs/promises'
import { createClient } from '../db/driver/client.ts'
import { sendAll, type Asked } from './connection.ts'
import { median, round, verdict, type Report } from './report.ts'
import { cpuOf, login, tellCpu, type Server } from './servers.ts'
import type { Stage } from './stage.ts'

const SCHEMA = 'usher_organizations'
const ORGANIZATIONS = 100
const MEMBERSHIPS_PER_USER = 10
// What an organisation may have by default.
const MEMBERS = 10_000
const REVOKED = 1000
const AT_MOST_OF_CPU = 1 / 0.97
const AT_MOST_MS = 50
const AT_MOST_REVOCATION_MS = 100
const SAMPLES = 200

const query = 'query($id: ID!) { user(id: $id) { id name posts(first: 10) { id title } } }'
const reads: Record<string, (some: string, token: string) => Asked> = {
  user: (some, token) => ({ method: 'GET', path: `/api/users/${some}`, token }),
  protected: (_, token) => ({ method: 'GET', path: '/api/protected', token }),
  graphql: (some, token) => ({ method: 'POST', path: '/graphql', token, body: { query, variables: { id: some } } }),
}

/**
 * Measures what a token for an organisation costs beside one of the same session for none, lists and searches among a
 * million memberships, and how soon another node rejects the tokens of a thousand memberships that end at once.
 */
export async function organizations (stage: Stage): Promise<Report> {
  const keysFile = await stage.fill(SCHEMA, {
    users: ORGANIZATIONS * MEMBERS / MEMBERSHIPS_PER_USER, posts: stage.options.posts,
  })
  const env = { READ_BY_MEMBERS: 'yes', ORGANIZATIONS: 'yes' }
  const servers: Server[] = []
  try {
    for (let count = 0; count < 2; count++) {
      servers.push(await stage.start('usher', { schema: SCHEMA, env, nodeOptions: tellCpu }))
    }
    const [one, two] = servers as [Server, Server]
    const [first, ...others] = await found(stage.databaseUrl)
    const token = await login(one.url)
    const inOrganization = await tokenFor(one.url, token, first!)
    const ids = (await readFile(keysFile, 'utf8')).split('\n')

    const rows: (string | number)[][] = []
    const figures: Record<string, number> = {}
    for (const [work, ask] of Object.entries(reads)) {
      const ratio = await compare(stage, one, [token, inOrganization], (token) =>
        ask(ids[Math.floor(Math.random() * ids.length)]!, token))
      figures[`${work} with the token, CPU`] = ratio
      rows.push([
        `${work} with a token for an organisation`, `${round(ratio, 3)} of the CPU without`,
        verdict(`≤ ${round(AT_MOST_OF_CPU, 3)}`, ratio <= AT_MOST_OF_CPU),
      ])
    }

    const lists = {
      'members of an organisation': `/api/organizations/${first}/members?limit=50`,
      'members by a name that all have': `/api/organizations/${first}/members?limit=50&q=user`,
      'members by a name that one has': `/api/organizations/${first}/members?limit=50&q=user%2099990`,
      'members by a name that none has': `/api/organizations/${first}/members?limit=50&q=nobody`,
      'members by role': `/api/organizations/${first}/members?limit=50&role=admin`,
      'organisations by name': '/api/organizations?limit=50&q=company%209',
      'own organisations': '/api/auth/organizations',
    }
    for (const [name, path] of Object.entries(lists)) {
      const { p50, p99 } = await timesOf(one.url, path, token)
      figures[`${name}, p99 ms`] = p99
      const isMet = p99 <= AT_MOST_MS
      rows.push([name, `p50 ${round(p50, 1)} ms, p99 ${round(p99, 1)} ms`, verdict(`p99 ≤ ${AT_MOST_MS} ms`, isMet)])
    }

    const revocation = await revoke(stage.databaseUrl, one.url, two.url, others)
    figures['revocation, ms'] = revocation
    rows.push([
      `${REVOKED} memberships end: the other node accepts a token for the last time`, `${round(revocation, 1)} ms`,
      verdict(`≤ ${AT_MOST_REVOCATION_MS} ms`, revocation <= AT_MOST_REVOCATION_MS),
    ])
    const { rounds, requests, connections } = stage.options
    return {
      title: `Organisations, ${ORGANIZATIONS * MEMBERS} memberships`,
      how: `CPU: ${connections} connections, ${rounds} rounds of ${requests} requests in turn; times: 1 connection, ${SAMPLES} requests`,
      columns: ['work', 'measured', 'target'],
      rows,
      figures,
    }
  } finally {
    for (const server of servers) await server.stop()
  }
}

// Creates the organisations with their members, and those whose only member is the admin, who is an owner of the first
// one as well. Returns the ids of these and of the first one, which is the first.
async function found (url: string): Promise<string[]> {
  const sql = createClient(url, { max: 1, onnotice: () => {}, connection: { search_path: SCHEMA } })
  try {
    await sql.unsafe(`
      insert into organizations (id, name, slug)
      select bench_id(n), 'Company ' || n, 'company-' || n from generate_series(1, ${ORGANIZATIONS + REVOKED}) n;
      insert into memberships (id, organization_id, user_id, role)
      select gen_random_uuid(), organizations.id, member.id, 'member'
      from (select id, row_number() over (order by id) - 1 as place from users where role = 'user') member
      cross join generate_series(0, ${MEMBERSHIPS_PER_USER - 1}) n
      join organizations
      on slug = 'company-' || 1 + (member.place * ${MEMBERSHIPS_PER_USER} + n) % ${ORGANIZATIONS};
      insert into memberships (id, organization_id, user_id, role)
      select gen_random_uuid(), organizations.id, users.id, 'owner' from organizations, users
      where users.role = 'admin' and (slug = 'company-1' or substring(slug from 9)::integer > ${ORGANIZATIONS})`)
    await sql.unsafe('vacuum analyze organizations')
    await sql.unsafe('vacuum analyze memberships')
    const rows = await sql<{ id: string }[]>`
      select organization_id as id from memberships where role = 'owner' order by organization_id`
    return rows.map(({ id }) => id)
  } finally {
    await sql.end()
  }
}

// Returns the CPU time of the second token divided by that of the first.
async function compare (
  stage: Stage, server: Server, tokens: readonly [string, string], ask: (token: string) => Asked
): Promise<number> {
  const ratios: number[] = []
  for (let run = 0; run <= stage.options.rounds; run++) {
    const costs: number[] = []
    for (const token of tokens) {
      const before = await cpuOf(server)
      await sendAll(server.url, stage.options, () => ask(token))
      costs.push(await cpuOf(server) - before)
    }
    // The first run is the warm-up.
    if (run > 0) ratios.push(costs[1]! / costs[0]!)
  }
  return median(ratios)
}

async function timesOf (url: string, path: string, token: string): Promise<{ p50: number, p99: number }> {
  const times: number[] = []
  for (let sample = 0; sample < SAMPLES; sample++) {
    const since = performance.now()
    await sendAll(url, { requests: 1, connections: 1 }, () => ({ method: 'GET', path, token }))
    times.push(performance.now() - since)
  }
  times.sort((a, b) => a - b)
  return { p50: times[SAMPLES / 2]!, p99: times[Math.floor(SAMPLES * 0.99)]! }
}

async function tokenFor (url: string, session: string, organizationId: string): Promise<string> {
  const response = await fetch(`${url}/api/auth/token`, {
    method: 'POST',
    headers: { 'content-type': 'application/json', authorization: `Bearer ${session}` },
    body: JSON.stringify({ organizationId }),
  })
  if (!response.ok) throw new Error(`token: ${await response.text()}`)
  return (await response.json() as { token: string }).token
}

// Returns the milliseconds from the commit that ends the memberships until the other node accepts none of their tokens.
async function revoke (databaseUrl: string, one: string, two: string, organizations: string[]): Promise<number> {
  const session = await login(one)
  const tokens = await Promise.all(organizations.slice(0, REVOKED).map((id) => tokenFor(one, session, id)))
  const isAccepted = async (token: string) => {
    const response = await fetch(`${two}/api/protected`, { headers: { authorization: `Bearer ${token}` } })
    await response.arrayBuffer()
    return response.ok
  }
  if (!(await Promise.all(tokens.map(isAccepted))).every(Boolean)) throw new Error('The other node rejects a token')
  const sql = createClient(databaseUrl, { max: 1, connection: { search_path: SCHEMA } })
  try {
    await sql`delete from memberships where organization_id = any(${organizations}::uuid[])`
  } finally {
    await sql.end()
  }
  const since = performance.now()
  let delay = 0
  // A request takes longer than a rejection is late, so all are asked once, and those that are accepted again.
  for (const token of tokens) {
    while (await isAccepted(token)) delay = performance.now() - since
  }
  return delay
}
