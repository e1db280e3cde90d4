import { randomUUID } from 'node:crypto'
import t from 'tap'
import type { HookContext, Hooks } from '../../app.ts'
import { actorOf } from '../helpers/actor.ts'
import { createUsher, sharedUsher, type LoggedIn } from '../helpers/app.ts'
import { newSlug, organizationOptions, withOrganizations } from '../helpers/organizations.ts'

let hooks: Hooks = {}
// Hooks of an app are given once, so these call those of the test.
const { options, mails } = organizationOptions({
  organizations: { roles: { writer: ['organizations:update'] } },
  hooks: {
    beforeOrganizationCreate: (organization, context) => hooks.beforeOrganizationCreate?.(organization, context),
    beforeOrganizationDelete: (organization, context) => hooks.beforeOrganizationDelete?.(organization, context),
    beforeMemberAdd: (member, context) => hooks.beforeMemberAdd?.(member, context),
  },
  hookSeconds: 2,
})
const usher = await createUsher(t, options)
const { app, inject, admin } = usher
const { organizations } = app.usher
const { createVerified, found, createMember, tokenTo } = withOrganizations(t, usher, mails)

const refuse = () => { throw Object.assign(new Error('not here'), { statusCode: 422, code: 'NOT_HERE' }) }
const asActor = async (user: LoggedIn) => ({ actor: await actorOf(usher, user) })

t.beforeEach(() => { hooks = {} })

t.test('19.7 the host founds, reads, changes, lists and deletes organisations', async (t) => {
  const owner = await createVerified()
  const slug = newSlug()
  const created = await organizations.create({ name: ' Engines ', slug, ownerId: owner.id.toUpperCase() })
  const { id } = created
  t.strictSame(created, { id, name: 'Engines', slug, createdAt: created.createdAt, updatedAt: created.updatedAt })
  t.type(created.createdAt, Date)
  t.strictSame(await organizations.get(id.toUpperCase()), created)
  t.match(await organizations.listOf(owner.id), [{ id, role: 'owner', membershipId: /^[\w-]{36}$/ }])
  const other = await organizations.create({ name: 'Other', slug: `${slug}-2`, ownerId: owner.id })
  const first = await organizations.list({ q: slug, limit: 1 })
  t.strictSame(first, { data: [other], page: { next: first.page.next, limit: 1 } })
  t.strictSame((await organizations.list({ q: slug, limit: 1, after: first.page.next! })), {
    data: [created], page: { next: null, limit: 1 },
  })
  t.match(await organizations.update(id, { name: 'Analytical Engines' }), { id, name: 'Analytical Engines', slug })
  await organizations.delete(id)
  await t.rejects(organizations.get(id), { statusCode: 404, code: 'ORGANIZATION_NOT_FOUND' })
  t.match(await organizations.listOf(owner.id), [{ id: other.id }])
  t.strictSame(await organizations.listOf('nobody'), [])

  await t.rejects(organizations.create({ name: 'Engines' }), { statusCode: 400, message: /ownerId/ })
  await t.rejects(organizations.create({ name: '', ownerId: owner.id }), { statusCode: 400, message: /name/ })
  await t.rejects(organizations.create({ name: 'Engines', slug: `${slug}-2`, ownerId: owner.id }), { code: 'SLUG_TAKEN' })
  await t.rejects(organizations.create({ name: 'Engines', ownerId: randomUUID() }), { code: 'USER_NOT_FOUND' })
})

t.test('19.7 the host adds, lists, changes and removes members', async (t) => {
  const owner = await createVerified()
  const user = await createVerified('Ada Lovelace')
  const { id } = await organizations.create({ name: 'Engines', ownerId: owner.id })
  const { members } = organizations
  const added = await members.add(id, { userId: user.id, role: 'writer' })
  t.match(added, { userId: user.id, name: 'Ada Lovelace', email: user.email, role: 'writer', disabled: false, createdAt: Date })
  t.strictSame(await members.get(id, user.id), added)
  const page = await members.list(id, { limit: 1 })
  t.match(page, { data: [{ userId: owner.id }], page: { limit: 1, next: String } })
  t.strictSame((await members.list(id, { limit: 1, after: page.page.next! })).data, [added])
  t.strictSame((await members.list(id, { role: 'writer' })).data, [added])
  const changed = await members.update(id, user.id, { role: 'admin' })
  t.match(changed, { userId: user.id, role: 'admin' })
  t.not(changed.id, added.id)
  await t.rejects(members.update(id, user.id, { role: 'unknown' }), { statusCode: 400, message: /role must be/ })
  await t.rejects(members.remove(id, owner.id), { code: 'LAST_OWNER' })
  await members.remove(id, user.id)
  await t.rejects(members.get(id, user.id), { code: 'MEMBERSHIP_NOT_FOUND' })
  await t.rejects(members.add(id, { userId: owner.id, role: 'member' }), { code: 'ALREADY_MEMBER' })
  await t.rejects(members.add(id, { role: 'member' } as never), { statusCode: 400, message: /userId/ })
})

t.test('19.7 the host sends, lists and withdraws invitations', async (t) => {
  const { id } = await organizations.create({ name: 'Engines', ownerId: (await createVerified()).id })
  const { invitations } = organizations
  const email = `${randomUUID()}@example.com`
  const sent = await invitations.create(id, { email, role: 'writer' })
  t.match(sent, { email, role: 'writer', invitedBy: null, createdAt: Date, expiresAt: Date })
  t.notOk('hash' in sent)
  const token = await tokenTo(email)
  t.equal((await inject('POST', '/api/auth/invitations/check', { payload: { token } })).statusCode, 200)
  t.strictSame(await invitations.list(id), { data: [sent], page: { next: null, limit: 100 } })
  await invitations.withdraw(id, sent.id)
  t.equal((await inject('POST', '/api/auth/invitations/check', { payload: { token } })).statusCode, 400)
  await t.rejects(invitations.withdraw(id, sent.id), { code: 'INVITATION_NOT_FOUND' })
})

t.test('19.7 on behalf of an actor the role in the organisation decides', async (t) => {
  const [owner, outsider] = [await createVerified(), await createVerified()]
  const by = await asActor(owner)
  const { id } = await organizations.create({ name: 'Engines' }, by)
  t.match(await organizations.listOf(owner.id, by), [{ id, role: 'owner' }])
  const member = await createMember(id)
  const asMember = await asActor(member)
  t.match(await organizations.get(id, asMember), { id })
  const forbidden = { statusCode: 403, code: 'FORBIDDEN' }
  await t.rejects(organizations.update(id, { name: '' }, asMember), forbidden, 'before the body is validated')
  t.match(await organizations.list({}, asMember), { data: [{ id }] }, 'the own ones, as by REST')
  await t.rejects(organizations.list({}, { actor: null }), { statusCode: 401, code: 'UNAUTHENTICATED' })
  await t.rejects(organizations.listOf(owner.id, asMember), forbidden)
  await t.rejects(organizations.create({ name: 'Engines', ownerId: owner.id }, asMember), forbidden)
  await t.rejects(organizations.members.update(id, owner.id, { role: 'member' }, asMember), forbidden)
  await t.rejects(organizations.invitations.list(id, {}, asMember), forbidden)
  await t.rejects(organizations.members.add(id, { userId: outsider.id, role: 'member' }, by), forbidden)
  const asOutsider = await asActor(outsider)
  for (const attempt of [
    () => organizations.get(id, asOutsider), () => organizations.members.list(id, {}, asOutsider),
    () => organizations.update(id, { name: '' }, asOutsider), () => organizations.delete(id, asOutsider),
    () => organizations.invitations.create(id, { email: 'x' }, asOutsider),
  ]) await t.rejects(async () => { await attempt() }, { statusCode: 404, code: 'ORGANIZATION_NOT_FOUND' })
  await t.rejects(organizations.get(id, { actor: null }), { statusCode: 401, code: 'UNAUTHENTICATED' })
  await inject('POST', '/api/auth/logout', { headers: { ...member.headers, cookie: member.cookie } })
  await t.rejects(organizations.get(id, asMember), { statusCode: 401, code: 'INVALID_TOKEN' })
})

t.test('19.7 hooks change, reject and see who acts', async (t) => {
  const owner = await createVerified()
  const create = (name = 'Engines') =>
    inject('POST', '/api/organizations', { headers: owner.headers, payload: { name, slug: newSlug() } })
  const seen: unknown[] = []
  hooks = {
    beforeOrganizationCreate: (organization, { actor, via }) => {
      seen.push([organization.name, actor?.id, via])
      return { ...organization, name: `${organization.name}!` }
    },
    beforeMemberAdd: ({ userId, role }) => { seen.push([userId, role]) },
  }
  const created = (await create()).json()
  t.equal(created.name, 'Engines!')
  t.strictSame(seen, [['Engines', owner.id, 'rest'], [owner.id, 'owner']])

  hooks = { beforeOrganizationCreate: (organization) => ({ ...organization, slug: 'No slug' }) }
  t.equal((await create()).statusCode, 500, 'what a hook returns is validated')
  hooks = { beforeOrganizationCreate: refuse }
  t.match((await create()).json(), { code: 'NOT_HERE' })
  hooks = { beforeMemberAdd: refuse }
  t.match((await create()).json(), { code: 'NOT_HERE' })
  const user = await createVerified()
  await t.rejects(organizations.members.add(created.id, { userId: user.id, role: 'member' }), { code: 'NOT_HERE' })
  await organizations.invitations.create(created.id, { email: user.email })
  const accept = async () => inject('POST', '/api/auth/invitations/accept', {
    headers: user.headers, payload: { token: await tokenTo(user.email) },
  })
  t.match((await accept()).json(), { code: 'NOT_HERE' })
  t.equal((await organizations.members.list(created.id)).data.length, 1)
  hooks = { beforeMemberAdd: (member) => { seen.push(member) } }
  t.equal((await accept()).statusCode, 200)
  t.strictSame(seen.at(-1), { organizationId: created.id, userId: user.id, role: 'member' })

  hooks = { beforeOrganizationDelete: refuse }
  const remove = () => inject('DELETE', `/api/organizations/${created.id}`, { headers: owner.headers })
  t.match((await remove()).json(), { code: 'NOT_HERE' })
  hooks = { beforeOrganizationDelete: (organization) => { seen.push(organization) } }
  t.equal((await remove()).statusCode, 204)
  t.match(seen.at(-1), { id: created.id, name: 'Engines!', slug: created.slug, createdAt: Date })
  t.equal((await organizations.listOf(owner.id)).length, 0, 'rejections have left nothing')
})

t.test('19.7 a hook that hangs yields 503, and nothing is written', async (t) => {
  const owner = await createVerified()
  const id = await found(owner)
  const signals: AbortSignal[] = []
  const hang = (_: unknown, { signal }: HookContext) => {
    signals.push(signal)
    return new Promise<undefined>(() => {})
  }
  hooks = { beforeOrganizationCreate: hang, beforeOrganizationDelete: hang, beforeMemberAdd: hang }
  const attempts = [
    organizations.create({ name: 'Engines', ownerId: owner.id }), organizations.delete(id),
    organizations.members.add(id, { userId: admin.id, role: 'member' }),
  ]
  const timeout = { statusCode: 503, code: 'HOOK_TIMEOUT' }
  await Promise.all(attempts.map((attempt) => t.rejects(async () => { await attempt }, timeout)))
  t.equal(signals.length, 3)
  t.ok(signals.every(({ aborted }) => aborted))
  t.match(await organizations.listOf(owner.id), [{ id }])
  t.equal((await organizations.members.list(id)).data.length, 1)
})

t.test('19.7 without the option the operations and the guard say what is missing', async (t) => {
  const { app } = await sharedUsher()
  await t.rejects(app.usher.organizations.list(), /set the option organizations/)
  t.throws(() => app.usher.requireOrganization(), /set the option organizations/)
})
