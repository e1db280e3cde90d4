import { randomUUID } from 'node:crypto'
import t from 'tap'
import { createUsher } from '../helpers/app.ts'
import { untilBlocked } from '../helpers/sql.ts'
import { newSlug, organizationOptions, withOrganizations } from '../helpers/organizations.ts'

const { options, mails } = organizationOptions({
  organizations: { roles: { billing: ['organizations:update', 'members:invite'] }, maxPerUser: 3, maxMembers: 4 },
})
const usher = await createUsher(t, options)
const { inject, admin } = usher
const { sql, createVerified, found, add, createMember } = withOrganizations(t, usher, mails)

const codeOf = (response: { json (): { code?: string, errors?: string[] } }) =>
  response.json().code ?? response.json().errors

t.test('19.2 whoever founds an organisation is its owner, and members read it', async (t) => {
  const owner = await createVerified()
  const slug = newSlug()
  const created = await inject('POST', '/api/organizations', { headers: owner.headers, payload: { name: ' Engines ', slug } })
  t.equal(created.statusCode, 201)
  const { id, createdAt, updatedAt } = created.json()
  t.strictSame(created.json(), { id, name: 'Engines', slug, createdAt, updatedAt })
  t.equal(created.headers.location, `/api/organizations/${id}`)
  const read = await inject('GET', `/api/organizations/${id}`, { headers: owner.headers })
  t.strictSame(read.json(), created.json())
  t.equal(read.headers.etag, created.headers.etag)
  const again = await inject('GET', `/api/organizations/${id}`, {
    headers: { ...owner.headers, 'if-none-match': read.headers.etag },
  })
  t.equal(again.statusCode, 304)
  const [own] = (await inject('GET', '/api/auth/organizations', { headers: owner.headers })).json()
  t.match(own, { id, role: 'owner', membershipId: /^[\w-]{36}$/ })
  const members = (await inject('GET', `/api/organizations/${id}/members`, { headers: owner.headers })).json()
  t.match(members, [{ userId: owner.id, role: 'owner', email: owner.email, name: 'Somebody' }])
})

t.test('19.2 a request to found one that is repeated has one effect', async (t) => {
  const owner = await createVerified()
  const request = {
    headers: { ...owner.headers, 'idempotency-key': randomUUID() }, payload: { name: 'Engines', slug: newSlug() },
  }
  const first = await inject('POST', '/api/organizations', request)
  const second = await inject('POST', '/api/organizations', request)
  t.equal(first.statusCode, 201)
  t.strictSame(second.json(), first.json())
  t.equal(second.headers['idempotency-replayed'], 'true')
  t.equal((await inject('GET', '/api/auth/organizations', { headers: owner.headers })).json().length, 1)
})

t.test('19.2 to whoever is no member an organisation does not exist', async (t) => {
  const [owner, outsider] = [await createVerified(), await createVerified()]
  const id = await found(owner)
  const requests = [
    ['GET', ''], ['PATCH', ''], ['DELETE', ''], ['GET', '/members'], ['GET', `/members/${owner.id}`],
    ['POST', '/members'], ['PATCH', `/members/${owner.id}`], ['DELETE', `/members/${owner.id}`],
    ['DELETE', `/members/${outsider.id}`], ['GET', '/invitations'], ['POST', '/invitations'],
    ['DELETE', `/invitations/${randomUUID()}`],
  ] as const
  for (const [method, path] of requests) {
    const payload = { role: 'owner', name: 'Mine', email: 'a@example.com', userId: outsider.id }
    const send = (id: string) => inject(method, `/api/organizations/${id}${path}`, {
      headers: outsider.headers, ...method !== 'GET' && method !== 'DELETE' && { payload },
    })
    const [response, unknown] = [await send(id), await send(randomUUID())]
    t.equal(response.statusCode, 404, `${method} ${path}`)
    t.equal(codeOf(response), 'ORGANIZATION_NOT_FOUND')
    t.equal(response.body, unknown.body)
    t.equal((await inject(method, `/api/organizations/${id}${path}`)).statusCode, 401, `${method} ${path} of nobody`)
  }
  t.equal((await inject('GET', `/api/organizations/${id}`, { headers: admin.headers })).statusCode, 200)
  t.strictSame((await inject('GET', '/api/organizations', { headers: outsider.headers })).json(), [])
})

t.test('19.2 slugs are unique, and neither reserved nor of other letters', async (t) => {
  const owner = await createVerified()
  const id = await found(owner)
  const { slug } = (await inject('GET', `/api/organizations/${id}`, { headers: owner.headers })).json()
  const create = (payload: object) => inject('POST', '/api/organizations', { headers: owner.headers, payload })
  t.equal(codeOf(await create({ name: 'Other', slug })), 'SLUG_TAKEN')
  for (const wrong of ['Engines', 'admin', 'ab', 'a'.repeat(41), '-engines', 'engines-', 'éngines', 'en gines', 'еngines']) {
    t.equal((await create({ name: 'Other', slug: wrong })).statusCode, 400, wrong)
  }
  t.equal((await create({ name: 'See https://example.com', slug: newSlug() })).statusCode, 400)
  const unnamed = await create({ name: `Ünique ${slug}` })
  t.match(unnamed.json().slug, /^unique-/)
  const other = await create({ name: '日本' })
  t.match(other.json().slug, /^org-[0-9a-f]{6}$/)
})

t.test('19.1 only a verified address founds organisations, and not more than maxPerUser', async (t) => {
  const unverified = await usher.createUser()
  const payload = () => ({ name: 'Engines', slug: newSlug() })
  const create = (user: typeof unverified) => inject('POST', '/api/organizations', { headers: user.headers, payload: payload() })
  t.equal(codeOf(await create(unverified)), 'EMAIL_NOT_VERIFIED')
  const owner = await createVerified()
  for (let count = 0; count < 3; count++) t.equal((await create(owner)).statusCode, 201)
  t.equal(codeOf(await create(owner)), 'TOO_MANY_ORGANIZATIONS')
})

t.test('19.4 roles have the actions of the options', async (t) => {
  const owner = await createVerified()
  const id = await found(owner)
  const [manager, billing, member] =
    [await createMember(id, 'admin'), await createMember(id, 'billing'), await createMember(id)]
  const path = `/api/organizations/${id}`
  const patch = (user: typeof owner) => inject('PATCH', path, { headers: user.headers, payload: { name: 'New' } })
  const patched = await Promise.all([owner, manager, billing, member].map(patch))
  t.strictSame(patched.map(({ statusCode }) => statusCode), [200, 200, 200, 403])
  const grant = (by: typeof owner, to: typeof owner, role: string) =>
    inject('PATCH', `${path}/members/${to.id}`, { headers: by.headers, payload: { role } })
  t.equal((await grant(billing, member, 'billing')).statusCode, 403, 'without members:update')
  t.equal((await grant(manager, member, 'owner')).statusCode, 403, 'only owners make owners')
  t.equal((await grant(manager, owner, 'member')).statusCode, 403, 'only owners remove owners')
  t.equal((await inject('DELETE', `${path}/members/${owner.id}`, { headers: manager.headers })).statusCode, 403)
  t.equal((await grant(manager, member, 'billing')).statusCode, 200)
  t.equal((await grant(manager, member, 'unknown')).statusCode, 400)
  t.equal((await inject('DELETE', path, { headers: manager.headers })).statusCode, 403)
  const invite = (by: typeof owner, role: string) => inject('POST', `${path}/invitations`, {
    headers: by.headers, payload: { email: `${randomUUID()}@example.com`, role },
  })
  t.equal((await invite(billing, 'admin')).statusCode, 403, 'a role with actions that the inviter lacks')
  t.equal((await invite(billing, 'billing')).statusCode, 202)
  t.equal((await inject('POST', `${path}/members`, {
    headers: owner.headers, payload: { userId: admin.id, role: 'member' },
  })).statusCode, 403, 'only admins of the service add without an invitation')
})

t.test('19.4 a change that comes in a later version is rejected', async (t) => {
  const owner = await createVerified()
  const id = await found(owner)
  const path = `/api/organizations/${id}`
  const { etag } = (await inject('GET', path, { headers: owner.headers })).headers
  const change = (tag: unknown) => inject('PATCH', path, {
    headers: { ...owner.headers, 'if-match': String(tag) }, payload: { name: 'Other' },
  })
  const changed = await change(etag)
  t.equal(changed.statusCode, 200)
  t.not(changed.headers.etag, etag)
  t.equal((await change(etag)).statusCode, 412)
})

t.test('19.2 members are paged, filtered and searched', async (t) => {
  const owner = await createVerified('Olga Owner')
  const id = await found(owner)
  const ada = await createVerified('Ada Lovelace')
  const charles = await createVerified('Charles Babbage')
  await add(id, ada)
  await add(id, charles, 'admin')
  const list = (query: string) => inject('GET', `/api/organizations/${id}/members${query}`, { headers: owner.headers })
  t.strictSame((await list('')).json().map(({ userId }: { userId: string }) => userId), [owner.id, ada.id, charles.id])
  t.strictSame((await list('?q=lovel')).json().map(({ userId }: { userId: string }) => userId), [ada.id])
  t.strictSame((await list('?role=admin')).json().map(({ userId }: { userId: string }) => userId), [charles.id])
  const first = await list('?limit=2')
  t.equal(first.json().length, 2)
  const [, next] = /<([^>]+)>; rel="next"/.exec(String(first.headers.link))!
  const second = await inject('GET', next!, { headers: owner.headers })
  t.strictSame(second.json().map(({ userId }: { userId: string }) => userId), [charles.id])
  t.equal(second.headers.link, undefined)
})

t.test('19.2 a search finds all members of a name among many, whether few or many users have it', async (t) => {
  const owner = await createVerified('Olga Owner')
  const id = await found(owner)
  // Members come first, and each of a name that many others have is beyond what a page looks through.
  await sql`insert into users (id, name, email, role)
    select gen_random_uuid(), case when n in (1, 2900) then 'Zenobia ' when n > 2990 then 'Smith ' else 'User ' end || n,
      gen_random_uuid() || '@example.com', 'user' from generate_series(1, 4200) n`
  await sql`insert into memberships (id, organization_id, user_id, role)
    select gen_random_uuid(), ${id}, users.id, case when name like 'Smith%' then 'admin' else 'member' end from users
    where name like 'User %' or name like 'Zenobia %' or name in ('Smith 3000', 'Smith 3001')`
  async function namesOf (q: string): Promise<{ names: string[], pages: number }> {
    const names: string[] = []
    let pages = 0
    for (let path: string | undefined = `/api/organizations/${id}/members?limit=50&q=${q}`; path; pages++) {
      const response = await inject('GET', path, { headers: owner.headers })
      names.push(...response.json().map(({ name }: { name: string }) => name))
      path = /<([^>]+)>; rel="next"/.exec(String(response.headers.link))?.[1]
    }
    return { names: names.sort(), pages }
  }
  t.strictSame(await namesOf('zeno'), { names: ['Zenobia 1', 'Zenobia 2900'], pages: 1 })
  t.strictSame((await namesOf('smith')).names, ['Smith 3000', 'Smith 3001'])
  t.strictSame(await namesOf('smith%203001'), { names: ['Smith 3001'], pages: 1 })
  t.strictSame(await namesOf('nobody'), { names: [], pages: 1 })
  t.equal(new Set((await namesOf('user')).names).size, 2988)
  t.strictSame((await namesOf('smith&role=admin')).names, ['Smith 3000', 'Smith 3001'])
  t.strictSame((await namesOf('zeno&role=admin')).names, [])
})

t.test('19.6 an organisation always has an owner who can log in', async (t) => {
  const owner = await createVerified()
  const id = await found(owner)
  const second = await createMember(id, 'owner')
  const path = `/api/organizations/${id}`
  const disable = (user: typeof owner, disabled: boolean) =>
    inject('PATCH', `/api/users/${user.id}`, { headers: admin.headers, payload: { disabled } })
  t.equal((await disable(second, true)).statusCode, 200)
  const attempts: [string, () => ReturnType<typeof inject>][] = [
    ['leaving', () => inject('DELETE', `${path}/members/${owner.id}`, { headers: owner.headers })],
    ['demotion', () => inject('PATCH', `${path}/members/${owner.id}`, { headers: owner.headers, payload: { role: 'member' } })],
    ['removal by an admin', () => inject('DELETE', `${path}/members/${owner.id}`, { headers: admin.headers })],
    ['disabling', () => disable(owner, true)],
    ['deletion by an admin', () => inject('DELETE', `/api/users/${owner.id}`, { headers: admin.headers })],
    ['deletion of the own account', () => inject('DELETE', `/api/users/${owner.id}`, { headers: owner.headers })],
  ]
  for (const [name, attempt] of attempts) {
    const response = await attempt()
    t.equal(response.statusCode, 409, name)
    t.equal(codeOf(response), 'LAST_OWNER')
    t.match(response.json().error, /Analytical Engines/)
  }
  t.equal((await disable(second, false)).statusCode, 200)
  t.equal((await inject('DELETE', `/api/users/${owner.id}`, { headers: owner.headers })).statusCode, 204)
  const members = (await inject('GET', `${path}/members`, { headers: admin.headers })).json()
  t.match(members, [{ userId: second.id, role: 'owner' }])
  const successor = await createMember(id)
  t.equal((await inject('PATCH', `${path}/members/${successor.id}`, {
    headers: admin.headers, payload: { role: 'owner' },
  })).statusCode, 200, 'an admin of the service makes an owner')
})

t.test('19.6 two owners who demote or disable each other at the same time leave one', async (t) => {
  for (let round = 0; round < 5; round++) {
    const one = await createVerified()
    const id = await found(one)
    const other = await createMember(id, 'owner')
    const demote = (by: typeof one, user: typeof one) => inject('PATCH', `/api/organizations/${id}/members/${user.id}`, {
      headers: by.headers, payload: { role: 'member' },
    })
    const results = await Promise.all([
      demote(one, other), demote(other, one),
      inject('PATCH', `/api/users/${one.id}`, { headers: admin.headers, payload: { disabled: true } }),
    ])
    const [{ count }] = await sql<[{ count: string }]>`select count(*) from memberships join users on users.id = user_id
      where organization_id = ${id} and memberships.role = 'owner' and not disabled`
    t.equal(count, '1', results.map(({ statusCode }) => statusCode).join())
    t.ok(results.every(({ statusCode }) => [200, 401, 403, 409].includes(statusCode)))
  }
})

t.test('19.6 a member who is being disabled does not become the only owner', async (t) => {
  const owner = await createVerified()
  const id = await found(owner)
  const member = await createMember(id)
  let isDone = false
  const { promotion } = await sql.begin(async (trx) => {
    await trx`update users set disabled = true where id = ${member.id}`
    const promotion = inject('PATCH', `/api/organizations/${id}/members/${member.id}`, {
      headers: owner.headers, payload: { role: 'owner' },
    }).finally(() => { isDone = true })
    await Promise.race([untilBlocked(sql, usher), promotion])
    t.notOk(isDone, 'it waits, so that what is decided next about owners knows it')
    return { promotion }
  })
  t.equal((await promotion).statusCode, 200)
  const left = await inject('DELETE', `/api/organizations/${id}/members/${owner.id}`, { headers: owner.headers })
  t.equal(codeOf(left), 'LAST_OWNER')
})

t.test('19.6 the deletion of an account waits for a change of an organisation of the user', async (t) => {
  const owner = await createVerified()
  const id = await found(owner)
  const member = await createMember(id)
  let isDone = false
  const { deletion } = await sql.begin(async (trx) => {
    await trx`select from organizations where id = ${id} for no key update`
    const deletion = inject('DELETE', `/api/users/${member.id}`, { headers: admin.headers }).finally(() => { isDone = true })
    await Promise.race([untilBlocked(sql, usher), deletion])
    t.notOk(isDone, 'so that events are stored in the order in which memberships change')
    return { deletion }
  })
  t.equal((await deletion).statusCode, 204)
})

t.test('19.2 the deletion of an organisation ends its memberships, and host tables may forbid it', async (t) => {
  const owner = await createVerified()
  const id = await found(owner)
  await createMember(id)
  await sql`create table notes (organization_id uuid references organizations (id))`
  await sql`insert into notes values (${id})`
  const remove = () => inject('DELETE', `/api/organizations/${id}`, { headers: owner.headers })
  t.equal(codeOf(await remove()), 'ORGANIZATION_IN_USE')
  await sql`drop table notes`
  t.equal((await remove()).statusCode, 204)
  t.equal((await inject('GET', `/api/organizations/${id}`, { headers: owner.headers })).statusCode, 404)
  t.equal((await sql`select from memberships where organization_id = ${id}`).length, 0)
})

t.test('19.1 an organisation has no more members than maxMembers', async (t) => {
  const id = await found(await createVerified())
  for (let count = 0; count < 3; count++) await createMember(id)
  const user = await createVerified()
  const response = await inject('POST', `/api/organizations/${id}/members`, {
    headers: admin.headers, payload: { userId: user.id, role: 'member' },
  })
  t.equal(codeOf(response), 'TOO_MANY_MEMBERS')
})

t.test('19.1 wrong options stop the start', async (t) => {
  const wrong: [object, RegExp][] = [
    [{ roles: { editor: ['posts:delete', 'invoices:send'] } }, /editor.*invoices:send/],
    [{ roles: { owner: [] } }, /owner/],
    [{ roles: { 'An Editor': [] } }, /An Editor/],
    [{ create: 'nobody' }, /create/],
    [{ maxPerUsers: 1 }, /maxPerUsers/],
  ]
  for (const [organizations, message] of wrong) {
    await t.rejects(createUsher(t, { organizations } as never), message)
  }
})

t.test('19.1 without the option there are no organisations', async (t) => {
  const other = await createUsher(t)
  t.equal((await other.inject('GET', '/api/organizations', { headers: other.admin.headers })).statusCode, 404)
})
