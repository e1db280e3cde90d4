import { randomUUID } from 'node:crypto'
import { decodeJwt } from 'jose'
import t from 'tap'
import { createUsherClient, unwrap, UsherError, type SessionState, type UsherClientOptions } from '../../client/index.ts'
import { graphql } from '../../client/graphql.ts'
import { createUsher } from '../helpers/app.ts'
import { openSql } from '../helpers/sql.ts'
import { until } from '../helpers/until.ts'

const usher = await createUsher(t, { organizations: { roles: { editor: [] } } })
const baseUrl = await usher.app.listen({ port: 0, host: '127.0.0.1' })
const sql = openSql(t, usher)

/** Creates a user, who is a member of organisations, and a client with the session of the user. */
async function createMember (options: UsherClientOptions = {}) {
  const user = await usher.createUser()
  const join = async (role = 'member') => {
    const [id, membershipId] = [randomUUID(), randomUUID()]
    await sql`insert into organizations (id, name, slug) values (${id}, 'Acme', ${id.slice(0, 8)})`
    await sql`insert into memberships (id, organization_id, user_id, role) values (${membershipId}, ${id}, ${user.id}, ${role})`
    return id
  }
  const requests: string[] = []
  const client = createUsherClient({
    baseUrl,
    retry: { baseMs: 1 },
    fetch: async (request) => {
      requests.push(`${request.method} ${new URL(request.url).pathname}`)
      return fetch(request)
    },
    ...options,
  })
  const states: SessionState[] = []
  client.session.subscribe((state) => states.push(state))
  return { user, client, requests, states, join }
}

const claimsOf = async ({ session }: ReturnType<typeof createUsherClient>) => decodeJwt((await session.token())!)
const rejects = async (token: string) => until('the token is rejected', async () =>
  (await usher.inject('GET', '/api/protected', { headers: { authorization: `Bearer ${token}` } })).statusCode === 401)

t.test('19.3 a client acts for an organisation, for another one and for none', async (t) => {
  const { user, client, states, join } = await createMember()
  const [first, second] = [await join(), await join('editor')]
  await client.login(user)
  await client.setOrganization(first)
  t.match(await claimsOf(client), { org: first, org_role: 'member' })
  await client.setOrganization(second)
  t.match(await claimsOf(client), { org: second, org_role: 'editor' })
  await client.setOrganization(null)
  t.notOk((await claimsOf(client)).org)
  t.strictSame(states.map(({ organization }) => organization?.role), [undefined, 'member', 'editor', undefined])
})

t.test('19.3 each token is kept, so that going back sends nothing', async (t) => {
  const { user, client, requests, join } = await createMember()
  const id = await join()
  await client.login(user)
  await client.setOrganization(id)
  const { length } = requests
  await client.setOrganization(null)
  await client.setOrganization(id)
  t.match(await claimsOf(client), { org: id })
  t.equal(requests.length, length)
})

t.test('19.3 a user who is no member gets an error, and nothing changes', async (t) => {
  const { user, client, states } = await createMember()
  await client.login(user)
  await t.rejects(client.setOrganization(randomUUID()), { status: 404, code: 'ORGANIZATION_NOT_FOUND' })
  t.equal((await unwrap(client.get('/api/protected'))).user.id, user.id)
  t.equal(client.session.current.organization, undefined)
  t.equal(states.length, 1)
})

t.test('19.3 with another role, a call is repeated with it, once for all calls', async (t) => {
  const { user, client, requests, states, join } = await createMember()
  const id = await join()
  await client.login(user)
  await client.setOrganization(id)
  const token = (await client.session.token())!
  await sql`update memberships set id = ${randomUUID()}, role = 'editor' where organization_id = ${id}`
  await rejects(token)
  requests.length = 0
  const calls = await Promise.all([1, 2, 3].map(() => client.get('/api/protected')))
  t.strictSame(calls.map(({ response }) => response.status), [200, 200, 200])
  t.equal(requests.filter((request) => request === 'POST /api/auth/refresh').length, 1)
  t.match(await claimsOf(client), { org: id, org_role: 'editor' })
  t.equal(states.at(-1)!.organization!.role, 'editor')

  await sql`update memberships set id = ${randomUUID()}, role = 'member' where organization_id = ${id}`
  await rejects((await client.session.token())!)
  t.match(await graphql(client, '{ me { id } }'), { me: { id: user.id } }, 'also over GraphQL')
})

t.test('19.3 without the membership, a call is not repeated outside of the organisation, and the session goes on', async (t) => {
  const { user, client, states, join } = await createMember()
  const id = await join()
  await client.login(user)
  await client.setOrganization(id)
  const token = (await client.session.token())!
  await sql`delete from memberships where organization_id = ${id}`
  await rejects(token)
  const error = await client.patch('/api/users/{id}', { params: { path: { id: user.id } }, body: { name: 'Nobody' } })
    .catch((error: unknown) => error)
  t.ok(error instanceof UsherError)
  t.match(error, { status: 401, code: 'ORGANIZATION_CHANGED' })
  t.match(await sql`select name from users where id = ${user.id}`, [{ name: /^(?!Nobody)/ }])
  t.match(states.at(-1), { state: 'active', user: { id: user.id } })
  t.equal(states.at(-1)!.organization, undefined)
  t.equal((await unwrap(client.get('/api/protected'))).user.id, user.id)
  t.notOk((await claimsOf(client)).org)
})

t.test('19.3 a client begins with the organisation of its option', async (t) => {
  const { user, client: first, join } = await createMember()
  const id = await join()
  first.close()
  const client = createUsherClient({ baseUrl, organizationId: id })
  await client.login(user)
  t.match(await claimsOf(client), { org: id })
  await client.logout()
  t.equal(await client.session.token(), undefined)
})

t.test('19.3 a client with an API key has the organisation of the key', async (t) => {
  const { join } = await createMember({})
  const client = createUsherClient({ baseUrl, apiKey: 'usher_x' })
  await t.rejects(client.setOrganization(await join()), TypeError)
})
