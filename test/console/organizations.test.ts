import t from 'tap'
import { createUsher } from '../helpers/app.ts'
import { withConsole } from '../helpers/console.ts'
import { newSlug, organizationOptions, withOrganizations } from '../helpers/organizations.ts'

const { options, mails } = organizationOptions({ console: true, roles: { support: ['console:open', 'organizations:read', 'audit:read'] } })
const usher = await createUsher(t, options)
const { inject, admin, createUser } = usher
const { createVerified, found, add, sql } = withOrganizations(t, usher, mails)
const { open, read, send, fill } = withConsole(usher)
const cookie = await open(admin)

const list = '/console/organizations'
const addressOf = (id: string, rest = ''): string => `${list}/${id}${rest}`

/** Returns what the members of an organisation are, by the ids of their users. */
async function rolesOf (id: string): Promise<Record<string, string>> {
  const rows = await sql<{ user_id: string, role: string }[]>`select user_id, role from memberships where organization_id = ${id}`
  return Object.fromEntries(rows.map(({ user_id: userId, role }) => [userId, role]))
}

t.test('18.6 an admin finds an organisation, and renames it', async (t) => {
  const id = await found(await createVerified(), 'Zuse <b>')
  const other = await found(await createVerified(), 'Somebody else')
  t.match((await read('/console/users', cookie)).body, `href="${list}">`)
  const { body } = await read(`${list}?q=zuse`, cookie)
  t.match(body, addressOf(id))
  t.match(body, 'Zuse &lt;b&gt;')
  t.notMatch(body, addressOf(other))
  const slug = newSlug()
  const { statusCode, headers } = await fill(addressOf(id), addressOf(id), { name: 'Zuse', slug }, cookie)
  t.same([statusCode, headers.location], [303, `${addressOf(id)}?done=saved`])
  t.match((await inject('GET', `/api/organizations/${id}`, { headers: admin.headers })).json(), { name: 'Zuse', slug })
  const taken = await fill(addressOf(other), addressOf(other), { slug }, cookie)
  t.equal(taken.statusCode, 409)
  t.match(taken.body, 'Another organisation has this slug.')
  t.match(taken.body, new RegExp(`name="slug"[^>]* value="${slug}"`), 'what was typed is still there')
})

t.test('18.6 an organisation that somebody else has changed meanwhile stays as it is', async (t) => {
  const owner = await createVerified()
  const id = await found(owner, 'Before')
  const { body } = await read(addressOf(id), cookie)
  const [, version = ''] = /name="version" value="([^"]*)"/.exec(body)!
  await inject('PATCH', `/api/organizations/${id}`, { headers: owner.headers, payload: { name: 'Meanwhile' } })
  const given = { name: 'Typed', slug: newSlug(), version: version.replaceAll('&quot;', '"') }
  const refused = await send(addressOf(id), given, { cookie })
  t.equal(refused.statusCode, 412)
  t.match(refused.body, 'value="Typed"')
  t.match(refused.body, 'Now: <bdi>Meanwhile</bdi>')
  const { name } = (await inject('GET', `/api/organizations/${id}`, { headers: admin.headers })).json()
  t.equal(name, 'Meanwhile')
})

t.test('18.6 an admin adds a member by address or id, hands the organisation over, and removes a member', async (t) => {
  const owner = await createVerified('The owner')
  const [byAddress, byId] = [await createVerified('By address'), await createVerified('By id')]
  const id = await found(owner)
  const members = addressOf(id, '/members')
  for (const user of [byAddress.email, byId.id]) {
    const added = await fill(members, members, { user }, cookie)
    t.equal(added.headers.location, `${members}?done=member-added`)
  }
  t.same(await rolesOf(id), { [owner.id]: 'owner', [byAddress.id]: 'member', [byId.id]: 'member' })
  const { body } = await read(members, cookie)
  t.match(body, new RegExp(`href="/console/users/${byId.id}"`))
  t.notMatch((await read(`${members}?q=owner`, cookie)).body, byId.id)
  for (const user of ['nobody@example.com', 'nobody']) {
    t.match((await fill(members, members, { user }, cookie)).body, 'No user is like this', user)
  }
  t.match((await fill(members, members, { user: byId.id }, cookie)).body, 'This user is a member already.')

  const lowered = await send(`${members}/${owner.id}/role`, { role: 'member' }, { cookie })
  t.equal(lowered.statusCode, 409)
  t.match(lowered.body, 'without an owner who can log in: Analytical Engines.')
  const change = `${members}/${byId.id}/role`
  t.match((await read(change, cookie)).body, /Role of By id.*<option value="member" selected>/s)
  await fill(change, change, { role: 'owner' }, cookie)
  t.equal((await send(`${members}/${owner.id}/role`, { role: 'member' }, { cookie })).statusCode, 303)
  t.match(await rolesOf(id), { [owner.id]: 'member', [byId.id]: 'owner' })

  const unchecked = await send(`${members}/${owner.id}/remove`, {}, { cookie })
  t.match(unchecked.body, 'Confirm it first.')
  const removed = await fill(`${members}/${owner.id}/remove`, `${members}/${owner.id}/remove`, {}, cookie)
  t.equal(removed.headers.location, `${members}?done=member-removed`)
  t.same(Object.keys(await rolesOf(id)).sort(), [byAddress.id, byId.id].sort())
})

t.test('18.6 members are paged', async (t) => {
  const id = await found(await createVerified())
  await sql`with added as (
      insert into users (id, name, email, role)
        select gen_random_uuid(), 'Member', 'paged-' || n || '@example.com', 'user' from generate_series(1, 60) n returning id
    ) insert into memberships (id, organization_id, user_id, role) select gen_random_uuid(), ${id}, id, 'member' from added`
  const first = (await read(addressOf(id, '/members'), cookie)).body
  t.equal(first.split('/remove"').length - 1, 50)
  t.match(first, '>1–50</span>')
  const [, next = ''] = /href="([^"]*)"[^>]* rel="next"/.exec(first) ?? /rel="next"[^>]* href="([^"]*)"/.exec(first) ?? []
  const second = (await read(next.replaceAll('&amp;', '&'), cookie)).body
  t.equal(second.split('/remove"').length - 1, 11)
  t.match(second, '>51–61</span>')
})

t.test('18.6 an admin sends an invitation, and withdraws it', async (t) => {
  const id = await found(await createVerified())
  const [invitations, email] = [addressOf(id, '/invitations'), `invited-${newSlug()}@example.com`]
  const sent = await fill(invitations, invitations, { email, role: 'admin' }, cookie)
  t.equal(sent.headers.location, `${invitations}?done=invited`)
  const { body } = await read(invitations, cookie)
  t.match(body, email)
  const [, action = ''] = /action="([^"]*\/withdraw)"/.exec(body)!
  const withdrawn = await send(action, {}, { cookie })
  t.equal(withdrawn.headers.location, `${invitations}?done=invitation-withdrawn`)
  t.notMatch((await read(invitations, cookie)).body, email)
})

t.test('18.6 an organisation is deleted after a question with its name, unless data of the host refers to it', async (t) => {
  const id = await found(await createVerified(), 'Short-lived')
  const question = addressOf(id, '/delete')
  t.match((await read(question, cookie)).body, 'Delete Short-lived for good')
  const { slug } = (await inject('GET', `/api/organizations/${id}`, { headers: admin.headers })).json()
  t.match((await fill(question, question, { confirmation: 'Short-lived' }, cookie)).body, 'What you typed is something else')
  await sql`create table invoices (organization_id uuid references organizations (id))`
  await sql`insert into invoices values (${id})`
  const used = await fill(question, question, { confirmation: slug }, cookie)
  t.equal(used.statusCode, 409)
  t.match(used.body, 'Other data refers to this organisation')
  await sql`drop table invoices`
  const deleted = await fill(question, question, { confirmation: slug }, cookie)
  t.equal(deleted.headers.location, `${list}?done=organization-deleted`)
  t.equal((await read(addressOf(id), cookie)).statusCode, 404)
})

t.test('18.6 a user has a page of organisations, and whoever is the last owner of some is neither disabled nor deleted', async (t) => {
  const owner = await createVerified()
  const [first, second] = [await found(owner, 'First one'), await found(owner, 'Second one')]
  const { body } = await read(`/console/users/${owner.id}/organizations`, cookie)
  t.match(body, new RegExp(`href="${addressOf(first)}">.*owner`, 's'))
  const user = `/console/users/${owner.id}`
  for (const what of ['disable', 'delete']) {
    const { statusCode, body } = await fill(`${user}/${what}`, `${user}/${what}`, { confirmation: owner.email }, cookie)
    t.equal(statusCode, 409, what)
    t.match(body, 'without an owner who can log in: First one, Second one.')
  }
  await add(first, await createVerified(), 'owner')
  const disable = `${user}/disable`
  t.match((await fill(disable, disable, {}, cookie)).body, 'log in: Second one.')
  await add(second, await createVerified(), 'owner')
  t.equal((await fill(disable, disable, {}, cookie)).statusCode, 303)
})

t.test('18.6 API keys and the account log name the organisation', async (t) => {
  const owner = await createVerified()
  const id = await found(owner, 'Named in lists')
  const created = await inject('POST', '/api/auth/keys', { headers: owner.headers, payload: { name: 'A key', organizationId: id } })
  t.equal(created.statusCode, 201)
  const link = `<a href="${addressOf(id)}"><bdi>Named in lists</bdi></a>`
  t.match((await read(`/console/users/${owner.id}/keys`, cookie)).body, link)
  t.match((await read('/console/keys', cookie)).body, link)
  t.match((await read('/console/log?action=organization.create', cookie)).body, link)
  await inject('DELETE', `/api/organizations/${id}`, { headers: admin.headers })
  const { statusCode, body } = await read('/console/log?action=organization.create', cookie)
  t.equal(statusCode, 200)
  t.match(body, `<code>${id.slice(0, 8)}…</code>`, 'the id of one that is deleted')
})

t.test('18.6 who may only read organisations sees no form, and who may not sees no organisation', async (t) => {
  const id = await found(await createVerified())
  const support = await createUser()
  await inject('PATCH', `/api/users/${support.id}`, { headers: admin.headers, payload: { role: 'support' } })
  const other = await open(support)
  const { body } = await read(addressOf(id), other)
  t.match(body, 'Analytical Engines')
  t.notMatch(body, /action="[^"]*organizations/)
  t.equal((await read(addressOf(id, '/members'), other)).statusCode, 403)
  for (const question of ['/delete', `/members/${support.id}/remove`, `/members/${support.id}/role`]) {
    t.equal((await read(addressOf(id, question), other)).statusCode, 403, question)
  }
  const refused = await send(addressOf(id), { name: 'Theirs', slug: newSlug(), version: '"1"' }, { cookie: other })
  t.equal(refused.statusCode, 403)
})

t.test('18.6 without the option there is nothing about organisations', async (t) => {
  const { organizations: _, ...without } = options
  const plain = await createUsher(t, { ...without, roles: {} })
  const its = withConsole(plain)
  const opened = await its.open(plain.admin)
  t.equal((await its.read(list, opened)).statusCode, 404)
  const { body } = await its.read('/console/users', opened)
  t.notMatch(body, list)
  t.notMatch((await its.read(`/console/users/${plain.admin.id}`, opened)).body, '/organizations"')
})
