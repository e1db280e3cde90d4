import { randomUUID } from 'node:crypto'
import postgres from 'postgres'
import t from 'tap'
import { createUsher, type LoggedIn, type TestUsher } from '../helpers/app.ts'
import { testDatabaseUrl } from '../helpers/database.ts'
import { organizationOptions, withOrganizations } from '../helpers/organizations.ts'

const limits = { maxMembers: 4, maxPerUser: 3 }
const { options, mails } = organizationOptions({ organizations: limits })
const one = await createUsher(t, options)
const two = await createUsher(t, one.options)
const { admin } = one
const { sql, createVerified, found, createMember, tokenTo } = withOrganizations(t, one, mails)

const newEmail = () => `${randomUUID()}@example.com`

async function invited (by: LoggedIn, id: string, email: string, role = 'member', node = one): Promise<string> {
  mails.delete(email)
  const { statusCode, body } = await node.inject('POST', `/api/organizations/${id}/invitations`, {
    headers: by.headers, payload: { email, role },
  })
  if (statusCode !== 202) throw new Error(body)
  return tokenTo(email)
}

const accept = (node: TestUsher, payload: object, user?: LoggedIn) =>
  node.inject('POST', '/api/auth/invitations/accept', { payload, ...user && { headers: user.headers } })

const membersOf = async (id: string) => sql<{ userId: string, role: string }[]>`
  select user_id as "userId", role from memberships where organization_id = ${id} order by id`

/** Sends requests at the same time, to both nodes in turn. Returns the statuses and codes, those that succeed first. */
async function race (requests: ((node: TestUsher) => ReturnType<TestUsher['inject']>)[]) {
  const responses = await Promise.all(requests.map((send, place) => send(place % 2 === 0 ? one : two)))
  return responses.map((response) => response.statusCode === 200 ? 200 : response.json().code ?? response.statusCode)
    .sort((a, b) => String(a) < String(b) ? -1 : 1)
}

t.test('19.5 an invitation that is accepted on two nodes at once makes one member', async (t) => {
  for (let round = 0; round < 5; round++) {
    const owner = await createVerified()
    const id = await found(owner)
    const user = await createVerified()
    const [ofUser, ofNewcomer] = [await invited(owner, id, user.email), await invited(owner, id, newEmail())]
    const asUser = (node: TestUsher) => accept(node, { token: ofUser }, user)
    const twice = await race([asUser, asUser])
    t.equal(twice[0], 200)
    t.not(twice[1], 200)
    const newcomers = ['Ada', 'Grace'].map((name) => (node: TestUsher) =>
      accept(node, { token: ofNewcomer, name, password: 'violet engine notes' }))
    const [joined, other] = await race(newcomers)
    t.equal(joined, 200)
    t.not(other, 200)
    t.equal((await membersOf(id)).length, 3)
  }
})

t.test('19.1 several who join an organisation at once, on two nodes, do not exceed maxMembers', async (t) => {
  const owner = await createVerified()
  const id = await found(owner)
  const users = await Promise.all(Array.from({ length: 6 }, () => createVerified()))
  const tokens: string[] = []
  for (const { email } of users) tokens.push(await invited(owner, id, email))
  const results = await race(users.map((user, place) => (node) => accept(node, { token: tokens[place]! }, user)))
  t.strictSame(results, [200, 200, 200, 'TOO_MANY_MEMBERS', 'TOO_MANY_MEMBERS', 'TOO_MANY_MEMBERS'])
  t.equal((await membersOf(id)).length, limits.maxMembers)
  // Whoever was turned away joins once there is room, by the same invitation.
  const members = await membersOf(id)
  const late = users.findIndex((user) => !members.some(({ userId }) => userId === user.id))
  const [leaving] = members.filter(({ role }) => role === 'member')
  await one.inject('DELETE', `/api/organizations/${id}/members/${leaving!.userId}`, { headers: owner.headers })
  t.equal((await accept(two, { token: tokens[late]! }, users[late])).statusCode, 200)
})

t.test('19.1 a user who joins several organisations at once, on two nodes, does not exceed maxPerUser', async (t) => {
  const user = await createVerified()
  const tokens: string[] = []
  for (let count = 0; count < 5; count++) {
    const owner = await createVerified()
    tokens.push(await invited(owner, await found(owner), user.email))
  }
  const results = await race(tokens.map((token) => (node) => accept(node, { token }, user)))
  t.strictSame(results, [200, 200, 200, 'TOO_MANY_ORGANIZATIONS', 'TOO_MANY_ORGANIZATIONS'])
})

t.test('19.5 an invitation that is accepted while it is withdrawn, or its inviter removed, is one or the other', async (t) => {
  for (let round = 0; round < 6; round++) {
    const id = await found(await createVerified())
    const inviter = await createMember(id, 'admin')
    const user = await createVerified()
    const token = await invited(inviter, id, user.email)
    const [invitation] = await sql<{ id: string }[]>`
      select id from organization_invitations where organization_id = ${id}`
    const end = round % 2 === 0
      ? () => two.inject('DELETE', `/api/organizations/${id}/invitations/${invitation!.id}`, { headers: admin.headers })
      : () => two.inject('DELETE', `/api/organizations/${id}/members/${inviter.id}`, { headers: admin.headers })
    const [accepted, ended] = await Promise.all([accept(one, { token }, user), end()])
    const isMember = (await membersOf(id)).some(({ userId }) => userId === user.id)
    t.equal(accepted.statusCode, isMember ? 200 : 400)
    // An invitation that is used cannot be withdrawn, and an inviter can be removed in any case.
    t.equal(ended.statusCode, round % 2 === 0 && isMember ? 404 : 204)
    t.equal((await accept(two, { token }, user)).statusCode, 400, 'afterwards')
  }
})

t.test('19.1 a role that the options do not have any more gives nothing, and can be replaced', async (t) => {
  const { options, mails } = organizationOptions({ organizations: { roles: { editor: ['members:invite'] } } })
  const before = await createUsher(t, options)
  const tools = withOrganizations(t, before, mails)
  const owner = await tools.createVerified()
  const id = await tools.found(owner)
  const editor = await tools.createMember(id, 'editor')
  const [first, second] = [await tools.createVerified(), await tools.createVerified()]
  const invite = async (by: LoggedIn, { email }: LoggedIn, role: string) => {
    await before.inject('POST', `/api/organizations/${id}/invitations`, { headers: by.headers, payload: { email, role } })
    return tools.tokenTo(email)
  }
  const ofEditor = await invite(editor, first, 'member')
  const toEditor = await invite(owner, second, 'editor')
  const claimed = await before.inject('POST', '/api/auth/token', { headers: editor.headers, payload: { organizationId: id } })
  await before.app.close()

  const { inject } = await createUsher(t, { ...before.options, organizations: true })
  const statusOf = async (token: string, { headers }: LoggedIn) =>
    (await inject('POST', '/api/auth/invitations/accept', { headers, payload: { token } })).statusCode
  t.equal(await statusOf(ofEditor, first), 400, 'an invitation of a member with the role')
  t.equal(await statusOf(toEditor, second), 400, 'an invitation to the role')
  t.equal(claimed.statusCode, 200)
  for (const [method, path, payload] of [
    ['PATCH', '', { name: 'Mine' }], ['DELETE', '', undefined], ['GET', '/members', undefined],
    ['POST', '/invitations', { email: newEmail() }], ['PATCH', `/members/${editor.id}`, { role: 'owner' }],
    ['DELETE', `/members/${owner.id}`, undefined],
  ] as const) {
    const { statusCode } = await inject(method, `/api/organizations/${id}${path}`, {
      headers: editor.headers, ...payload && { payload },
    })
    t.equal(statusCode, 403, `${method} ${path}`)
  }
  const former = { authorization: `Bearer ${claimed.json().token}` }
  t.match((await inject('GET', '/api/protected', { headers: former })).json(), { code: 'INVALID_TOKEN' })
  const another = await inject('POST', '/api/auth/token', { headers: editor.headers, payload: { organizationId: id } })
  t.match([another.statusCode, another.json()], [404, { code: 'ORGANIZATION_NOT_FOUND' }])
  t.match((await inject('GET', '/api/auth/organizations', { headers: editor.headers })).json(), [{ id, role: 'editor' }])
  const members = `/api/organizations/${id}/members`
  t.match((await inject('GET', `${members}?role=editor`, { headers: owner.headers })).json(), [{ role: 'editor' }])
  const given = await inject('PATCH', `${members}/${editor.id}`, { headers: owner.headers, payload: { role: 'member' } })
  t.match([given.statusCode, given.json()], [200, { role: 'member' }])
  t.equal((await inject('GET', members, { headers: editor.headers })).statusCode, 200)
})

t.test('19.5 an invitation asks the database the same for an address with an account as for one without', async (t) => {
  const statements: string[] = []
  const client = postgres(await testDatabaseUrl(), {
    max: 4, onnotice: () => {}, debug: (_, text) => { statements.push(text) },
  })
  t.teardown(() => client.end())
  const other = await createUsher(t, { ...one.options, sql: client, databaseUrl: undefined })
  const owner = await createVerified()
  const id = await found(owner)
  const session = await other.login(owner)
  const asked = async (email: string) => {
    await invited(session, id, newEmail(), 'member', other)
    statements.length = 0
    await invited(session, id, email, 'member', other)
    // The mail is sent later.
    return statements.filter((text) => /"memberships"|"organization_invitations"/.test(text) && !text.includes('"isValid"'))
  }
  const ofKnown = await asked((await createVerified()).email)
  t.ok(ofKnown.length > 2)
  t.strictSame(await asked(newEmail()), ofKnown)
})
