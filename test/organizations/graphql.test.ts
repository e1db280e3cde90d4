import postgres from 'postgres'
import t from 'tap'
import { createUsher, sharedUsher, type LoggedIn } from '../helpers/app.ts'
import { testDatabaseUrl } from '../helpers/database.ts'
import { createPost, openSocket, post } from '../helpers/graphql.ts'
import { organizationOptions, withOrganizations } from '../helpers/organizations.ts'

const { options, mails } = organizationOptions()
const usher = await createUsher(t, options)
const { admin, inject } = usher
const { createVerified, found, add, createMember } = withOrganizations(t, usher, mails)
const ask = (query: string, by?: LoggedIn, variables = {}) => post(usher, { query, variables }, by)

t.test('19.2 me has the organisations of the user with the role, as REST has', async (t) => {
  const owner = await createVerified()
  const [first, second] = [await found(owner, 'One'), await found(await createVerified(), 'Two')]
  await add(second, owner)
  const { data } = await ask('{ me { organizations { id name slug createdAt role } } }', owner)
  const listed = (await inject('GET', '/api/auth/organizations', { headers: owner.headers })).json()
  t.strictSame(data.me.organizations, listed.map(({ membershipId, updatedAt, ...one }: Record<string, unknown>) => one))
  t.match(data.me.organizations, [{ id: second, role: 'member' }, { id: first, role: 'owner' }])
  const limited = await ask('{ me { organizations(first: 1) { id } } }', owner)
  t.strictSame(limited.data.me.organizations, [{ id: second }])
  t.match((await ask('{ me { organizations(first: 101) { id } } }', owner)).errors, [{ extensions: { code: 'INVALID_INPUT' } }])

  const others = 'query ($id: ID!) { user(id: $id) { organizations { id role } } }'
  t.match((await ask(others, admin, { id: owner.id })).data.user.organizations, [{ id: second }, { id: first }])
  t.match((await ask(others, await createVerified(), { id: owner.id })).errors, [{ extensions: { code: 'FORBIDDEN' } }])
  t.match((await ask(others, undefined, { id: owner.id })).errors, [{ extensions: { code: 'UNAUTHENTICATED' } }])
})

t.test('19.2 a subscriber gets the organisations of an author only where a query would show them', async (t) => {
  const author = await createVerified()
  const id = await found(author)
  const text = 'subscription { postCreated { author { organizations { id role } } } }'
  // The admin is the first, so that events for everybody would be those of the admin.
  const sockets = []
  for (const reader of [admin, await createVerified(), author]) {
    const socket = await (await openSocket(t, usher)).init(reader.headers)
    socket.start('posts', text)
    await socket.settle()
    sockets.push(socket)
  }
  await createPost(usher, author)
  const [ofAdmin, ofAnother, ofAuthor] =
    await Promise.all(sockets.map(async (socket) => (await socket.next()).payload!))
  t.match(ofAdmin!.data, { postCreated: { author: { organizations: [{ id, role: 'owner' }] } } })
  t.match(ofAuthor!.data, { postCreated: { author: { organizations: [{ id, role: 'owner' }] } } })
  t.notMatch(JSON.stringify(ofAnother), id)
  t.match(ofAnother!.errors, [{ extensions: { code: 'FORBIDDEN' } }])
})

t.test('19.2 organization is an error to whoever is no member', async (t) => {
  const owner = await createVerified()
  const id = await found(owner)
  const member = await createMember(id)
  const read = (by?: LoggedIn, of = id) => ask('query ($id: ID!) { organization(id: $id) { id name role } }', by, { id: of })
  t.strictSame((await read(member)).data.organization, { id, name: 'Analytical Engines', role: 'member' })
  t.strictSame((await read(admin)).data.organization, { id, name: 'Analytical Engines', role: null })
  const outsider = await createVerified()
  for (const unknown of [id, owner.id, 'no-id']) {
    t.match(await read(outsider, unknown), {
      data: { organization: null }, errors: [{ extensions: { code: 'ORGANIZATION_NOT_FOUND' } }],
    })
  }
  t.match((await read()).errors, [{ extensions: { code: 'UNAUTHENTICATED' } }])
})

t.test('19.2 members are a connection, with the users as the reader may see them', async (t) => {
  const owner = await createVerified('Olga Owner')
  const id = await found(owner)
  const [ada, charles] = [await createVerified('Ada Lovelace'), await createVerified('Charles Babbage')]
  await add(id, ada)
  await add(id, charles, 'admin')
  const query = `query ($id: ID!, $first: Int, $after: String, $role: String, $q: String) { organization(id: $id) {
    members(first: $first, after: $after, role: $role, q: $q) {
      nodes { id role createdAt user { id name email } } edges { cursor node { id } }
      pageInfo { hasNextPage hasPreviousPage endCursor } } } }`
  const list = async (variables: object, by = ada) => ask(query, by, { id, ...variables })
  const page = (await list({ first: 2 })).data.organization.members
  t.match(page, {
    nodes: [{ role: 'owner', user: { id: owner.id, name: 'Olga Owner' } }, { role: 'member', user: { id: ada.id } }],
    pageInfo: { hasNextPage: true, hasPreviousPage: false, endCursor: page.edges[1].cursor },
  })
  const rested = (await inject('GET', `/api/organizations/${id}/members`, { headers: ada.headers })).json()
  t.equal(page.nodes[0].id, rested[0].id)
  const next = (await list({ first: 2, after: page.pageInfo.endCursor })).data.organization.members
  t.match(next, { nodes: [{ user: { id: charles.id } }], pageInfo: { hasNextPage: false, hasPreviousPage: true } })
  t.match((await list({ role: 'admin' })).data.organization.members.nodes, [{ user: { id: charles.id } }])
  t.match((await list({ q: 'lovel', role: null })).data.organization.members.nodes, [{ user: { id: ada.id } }])
  for (const wrong of [{ first: 0 }, { first: 101 }, { after: 'x' }, { q: 'a' }]) {
    t.match((await list(wrong)).errors, [{ extensions: { code: 'INVALID_INPUT' } }], JSON.stringify(wrong))
  }
})

t.test('7.8 the members of all organisations of a user are one statement', async (t) => {
  const statements: string[] = []
  const client = postgres(await testDatabaseUrl(), {
    max: 4, onnotice: () => {}, debug: (_, text) => { statements.push(text) },
  })
  t.teardown(() => client.end())
  const other = await createUsher(t, { ...usher.options, sql: client, databaseUrl: undefined })
  const owner = await createVerified()
  const ids = [await found(owner), await found(owner), await found(owner)]
  const colleague = await createMember(ids[0]!, 'admin')
  const { headers } = await other.login(owner)
  async function membersOf (filter: string) {
    statements.length = 0
    const query = `{ me { organizations { id members(${filter}) { nodes { user { id } } pageInfo { hasNextPage } } } } }`
    const { data } = await post(other, { query }, { headers } as LoggedIn)
    return {
      lists: ids.map((id) => data.me.organizations.find((one: { id: string }) => one.id === id).members),
      sent: statements.filter((text) => text.includes('lateral') && text.includes('"memberships"')).length,
    }
  }
  const nodesOf = (...users: { id: string }[]) => users.map(({ id }) => ({ user: { id } }))
  const all = await membersOf('first: 1')
  t.same(all.lists, [true, false, false].map((hasNextPage) => ({ nodes: nodesOf(owner), pageInfo: { hasNextPage } })))
  t.equal(all.sent, 1)
  const admins = await membersOf('first: 5, role: "admin"')
  t.same(admins.lists.map(({ nodes }) => nodes as unknown), [nodesOf(colleague), [], []])
  t.equal(admins.sent, 1)
})

t.test('7.8 pages of members cost as much as pages of users', async (t) => {
  const deep = '{ me { organizations(first: 100) { members(first: 100) { nodes { user { id name } } } } } }'
  t.match((await ask(deep, await createVerified())).errors, [{ message: /costs more/ }])
})

t.test('19.1 without the option the schema has no organisations', async (t) => {
  const other = await sharedUsher()
  const { data } = await post(other, { query: '{ __schema { types { name } } }' })
  const names = data.__schema.types.map(({ name }: { name: string }) => name)
  t.ok(names.includes('Upload'))
  t.strictSame(names.filter((name: string) => /^(Organization|Membership)/.test(name)), [])
  t.ok((await post(other, { query: '{ me { organizations { id } } }' }).catch(() => ({ errors: [1] }))).errors)
})
