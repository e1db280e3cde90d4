import t from 'tap'
import { createUsherClient, unwrap } from '../../client/index.ts'
import { createUsher } from '../helpers/app.ts'
import { withConsole } from '../helpers/console.ts'
import { post } from '../helpers/graphql.ts'
import { organizationOptions, withOrganizations } from '../helpers/organizations.ts'

// A page of REST and GraphQL has 100 at most by default, and one of the console 50.
const COUNT = 101

const { options, mails } = organizationOptions({ console: true })
const usher = await createUsher(t, options)
const { inject, admin } = usher
const { createVerified, found, sql } = withOrganizations(t, usher, mails)
const owner = await createVerified('Olga Owner')
const id = await found(owner)
await sql`with added as (
    insert into users (id, name, email, role)
      select gen_random_uuid(), 'Member ' || n, 'member-' || n || '@example.com', 'user' from generate_series(2, ${COUNT}::integer) n
      returning id
  ) insert into memberships (id, organization_id, user_id, role) select gen_random_uuid(), ${id}, id, 'member' from added`
const all = (await sql`select user_id from memberships where organization_id = ${id} order by user_id`).map((row) => row['user_id'] as string)

const nextIn = (link: unknown): string | undefined => /<([^>]+)>; rel="next"/.exec(String(link))?.[1]

t.test('19.2 more than 100 members are listed by REST, each once, by the links from page to page', async (t) => {
  for (const [query, sizes] of [['', [100, 1]], ['?limit=50', [50, 50, 1]], ['?limit=1000', [101]], ['?role=member', [100]]] as const) {
    const pages: string[][] = []
    for (let path: string | undefined = `/api/organizations/${id}/members${query}`; path;) {
      const response = await inject('GET', path, { headers: owner.headers })
      pages.push(response.json().map(({ userId }: { userId: string }) => userId))
      path = nextIn(response.headers.link)
    }
    t.strictSame(pages.map((page) => page.length), sizes, query)
    t.strictSame(pages.flat(), query === '?role=member' ? all.filter((userId) => userId !== owner.id) : all)
  }
})

t.test('19.2 more than 100 members are listed by GraphQL, each once, by the cursors', async (t) => {
  const query = `query ($id: ID!, $after: String) { organization(id: $id) { members(first: 100, after: $after) {
    nodes { user { id } } pageInfo { hasNextPage endCursor } } } }`
  const pageAfter = async (after?: string) =>
    (await post(usher, { query, variables: { id, after } }, owner)).data.organization.members
  const first = await pageAfter()
  t.equal(first.pageInfo.hasNextPage, true)
  const second = await pageAfter(first.pageInfo.endCursor)
  t.equal(second.pageInfo.hasNextPage, false)
  t.strictSame([...first.nodes, ...second.nodes].map(({ user }: { user: { id: string } }) => user.id), all)
})

t.test('15.4 the client tells where the list of more than 100 members goes on', async (t) => {
  const baseUrl = await usher.app.listen({ port: 0, host: '127.0.0.1' })
  const client = createUsherClient({ baseUrl })
  await client.login({ email: owner.email, password: owner.password })
  const ids: string[] = []
  for (let after: string | undefined, isLast = false; !isLast;) {
    const query = { ...after !== undefined && { after } }
    const result = await client.get('/api/organizations/{id}/members', { params: { path: { id }, query } })
    ids.push(...(await unwrap(result)).map(({ userId }) => userId))
    after = /[?&]after=([\w-]+)/.exec(nextIn(result.response.headers.get('Link')) ?? '')?.[1]
    isLast = after === undefined
  }
  t.strictSame(ids, all)
})

t.test('18.6 the console lists more than 100 members on pages that follow each other', async (t) => {
  const { open, read } = withConsole(usher)
  const cookie = await open(admin)
  const shown: string[] = []
  for (let path: string | undefined = `/console/organizations/${id}/members`; path;) {
    const { body } = await read(path, cookie)
    shown.push(...[...body.matchAll(/members\/([0-9a-f-]{36})\/remove"/g)].map(([, userId]) => userId!))
    const [, next] = /href="([^"]*)"[^>]* rel="next"/.exec(body) ?? /rel="next"[^>]* href="([^"]*)"/.exec(body) ?? []
    path = next?.replaceAll('&amp;', '&')
  }
  t.strictSame(shown, all)
})
