import { randomUUID } from 'node:crypto'
import { readFileSync } from 'node:fs'
import type { LightMyRequestResponse } from 'fastify'
import t from 'tap'
import type { Actor } from '../../app.ts'
import { createUsher, type LoggedIn } from '../helpers/app.ts'
import { newSlug, organizationOptions, withOrganizations } from '../helpers/organizations.ts'
import { startProvider } from '../helpers/provider.ts'

// This test checks every cell of the table of organisations in docs/policy.md.
const document = readFileSync(new URL('../../docs/policy.md', import.meta.url), 'utf8')
const [, section = ''] = /^## In organisations$([^]*?)^## /m.exec(document)!
const [header = [], ...table] = section.split('\n').filter((line) => line.startsWith('| '))
  .map((line) => line.split('|').slice(1, -1).map((cell) => cell.trim().replaceAll('`', '')))
const columns = header.slice(1)

const { options, mails } = organizationOptions({
  organizations: { maxPerUser: 1000, maxInvitations: 1000 }, providers: { fake: (await startProvider(t)).options },
})
const usher = await createUsher(t, options)
const { inject, admin } = usher
const { createVerified, found, add, createMember, tokenTo } = withOrganizations(t, usher, mails)

const owner = await createVerified()
const id = await found(owner)
const elsewhere = await found(owner)
const tokenFor = async (organizationId: string): Promise<Headers> => ({
  authorization: `Bearer ${(await inject('POST', '/api/auth/token', {
    headers: owner.headers, payload: { organizationId },
  })).json().token}`,
})
type Headers = Partial<LoggedIn['headers']>
const actors: Headers[] = [
  {}, (await createVerified()).headers, (await createMember(id)).headers, (await createMember(id, 'admin')).headers, owner.headers,
  await tokenFor(elsewhere), admin.headers,
]

const path = `/api/organizations/${id}`
const email = () => `${randomUUID()}@example.com`

/** Returns an organisation in which all of the actors are what they are in the other one, to be deleted. */
async function copy (): Promise<string> {
  const other = await found(owner)
  const members = (await inject('GET', `${path}/members`, { headers: owner.headers })).json() as { userId: string, role: string }[]
  for (const { userId, role } of members) if (userId !== owner.id) await add(other, { id: userId }, role)
  return other
}

async function invitationOf (): Promise<string> {
  await inject('POST', `${path}/invitations`, { headers: owner.headers, payload: { email: email() } })
  return (await inject('GET', `${path}/invitations?limit=1`, { headers: owner.headers })).json()[0].id
}

async function invitedToken (): Promise<string> {
  const address = email()
  await inject('POST', `${path}/invitations`, { headers: owner.headers, payload: { email: address } })
  return tokenTo(address)
}

type Send = (headers: Headers) => Promise<LightMyRequestResponse>
const send = (method: 'GET' | 'POST' | 'PATCH' | 'DELETE', url: string | (() => Promise<string>), payload?: () => object): Send =>
  async (headers) => inject(method, typeof url === 'string' ? url : await url(), { headers, ...payload && { payload: payload() } })
const memberPath = async (role?: string) => `${path}/members/${(await createMember(id, role)).id}`
let another = await createVerified()

const rows: Record<string, Send> = {
  'GET /api/organizations': send('GET', '/api/organizations'),
  'POST /api/organizations': send('POST', '/api/organizations', () => ({ name: 'Engines', slug: newSlug() })),
  'GET /api/auth/organizations': send('GET', '/api/auth/organizations'),
  'GET /api/organizations/{id}': send('GET', path),
  'PATCH /api/organizations/{id}': send('PATCH', path, () => ({ name: 'Engines' })),
  'DELETE /api/organizations/{id}': send('DELETE', async () => `/api/organizations/${await copy()}`),
  'query organization': send('POST', '/graphql', () => ({ query: `{ organization(id: "${id}") { id } }` })),
  'GET /api/organizations/{id}/members': send('GET', `${path}/members`),
  'POST /api/organizations/{id}/members': async (headers) => {
    another = await createVerified()
    return inject('POST', `${path}/members`, { headers, payload: { userId: another.id, role: 'member' } })
  },
  'GET /api/organizations/{id}/members/{userId}': send('GET', memberPath),
  'PATCH /api/organizations/{id}/members/{userId}': send('PATCH', memberPath, () => ({ role: 'admin' })),
  'PATCH /api/organizations/{id}/members/{userId}, to owner': send('PATCH', memberPath, () => ({ role: 'owner' })),
  'DELETE /api/organizations/{id}/members/{userId}': send('DELETE', memberPath),
  'DELETE /api/organizations/{id}/members/{userId}, an owner': send('DELETE', () => memberPath('owner')),
  'GET /api/organizations/{id}/invitations': send('GET', `${path}/invitations`),
  'POST /api/organizations/{id}/invitations': send('POST', `${path}/invitations`, () => ({ email: email() })),
  'POST /api/organizations/{id}/invitations, as an owner':
    send('POST', `${path}/invitations`, () => ({ email: email(), role: 'owner' })),
  'DELETE /api/organizations/{id}/invitations/{invitationId}':
    send('DELETE', async () => `${path}/invitations/${await invitationOf()}`),
  'POST /api/auth/invitations/check': async (headers) =>
    inject('POST', '/api/auth/invitations/check', { headers, payload: { token: await invitedToken() } }),
  'POST /api/auth/invitations/accept': async (headers) => inject('POST', '/api/auth/invitations/accept', {
    headers, payload: { token: await invitedToken(), name: 'Ada', password: `violet ${randomUUID()}` },
  }),
  'POST /api/auth/providers/{id}/join': async (headers) => inject('POST', '/api/auth/providers/fake/join', {
    headers, payload: { token: await invitedToken() },
  }),
}

t.test('19.4 the table of docs/policy.md has every route of organisations', async (t) => {
  const { paths } = (await inject('GET', '/docs/json')).json() as { paths: Record<string, object> }
  const routes = Object.entries(paths)
    .filter(([path]) => /\/(organizations|invitations|join)\b/.test(path))
    .flatMap(([path, methods]) => Object.keys(methods).map((method) => `${method.toUpperCase()} ${path}`))
    .filter((route) => !route.startsWith('HEAD'))
  const named = table.map(([what = '']) => what)
  t.same([...routes, 'query organization'].filter((route) => !named.some((name) => name === route || name.startsWith(`${route},`))), [])
  t.same(named, Object.keys(rows), 'and the test knows each of its rows')
})

t.test('19.4 requests to organisations are permitted as docs/policy.md says', async (t) => {
  const wrong: string[] = []
  for (const [what = '', ...cells] of table) {
    for (const [index, headers] of actors.entries()) {
      const response = await rows[what]!(headers)
      const { errors } = response.body === '' ? {} : response.json()
      const verdict = errors?.[0]?.extensions?.code ?? (response.statusCode < 400 ? 'yes' : `${response.statusCode}`)
      if (verdict !== cells[index]) wrong.push(`${what}, ${columns[index]}: ${verdict} instead of ${cells[index]}`)
    }
  }
  t.same(wrong, [])
})

t.test('19.4 an API key acts in organisations with its actions only', async (t) => {
  const keyWith = async (actions: string[]): Promise<Headers> => ({
    authorization: `Bearer ${(await inject('POST', '/api/auth/keys', {
      headers: owner.headers, payload: { name: 'A key', actions },
    })).json().key}`,
  })
  const [reads, lists] = [await keyWith(['organizations:read']), await keyWith(['members:list'])]
  t.equal((await inject('GET', path, { headers: reads })).statusCode, 200)
  t.equal((await inject('GET', path, { headers: lists })).json().code, 'ACTION_NOT_GRANTED')
  t.equal((await inject('GET', `${path}/members`, { headers: lists })).statusCode, 200)
  const unknown = await inject('GET', `/api/organizations/${randomUUID()}/members`, { headers: reads })
  const known = await inject('GET', `${path}/members`, { headers: reads })
  t.equal(known.json().code, 'ACTION_NOT_GRANTED')
  t.equal(known.body, unknown.body)
  const left = await inject('DELETE', `${path}/members/${owner.id}`, { headers: reads })
  t.equal(left.json().code, 'ACTION_NOT_GRANTED', 'a key that may only read does not leave')
  const all = await inject('POST', '/api/auth/keys', { headers: owner.headers, payload: { name: 'A key' } })
  const removal = await inject('DELETE', path, { headers: { authorization: `Bearer ${all.json().key}` } })
  t.equal(removal.json().code, 'SESSION_REQUIRED')
})

t.test('19.4 the rule of a host gets the organisation, and decides about it', async (t) => {
  const seen: unknown[] = []
  const given = organizationOptions({
    policy: {
      'members:list': ({ organization }, { organizationId }) => {
        seen.push(organization, organizationId)
        return organization?.role === 'owner'
      },
    },
  })
  const usher = await createUsher(t, given.options)
  const { createVerified, found, createMember } = withOrganizations(t, usher, given.mails)
  const owner = await createVerified()
  const id = await found(owner)
  const member = await createMember(id)
  const list = ({ headers }: LoggedIn) => usher.inject('GET', `/api/organizations/${id}/members`, { headers })
  t.equal((await list(owner)).statusCode, 200)
  t.match(seen.slice(0, 2), [{ id, role: 'owner' }, id])
  t.equal((await list(member)).statusCode, 403)
})

t.test('19.4 a rule of a host that goes by the organisation of the token makes nobody an admin of the service', async (t) => {
  const inOwn = ({ role, organization }: Actor) => role === 'admin' || organization?.role === 'admin'
  const given = organizationOptions({
    policy: { 'organizations:read': inOwn, 'members:list': inOwn, 'members:update': inOwn, 'members:invite': inOwn },
  })
  const usher = await createUsher(t, given.options)
  const { createVerified, found, createMember } = withOrganizations(t, usher, given.mails)
  const owner = await createVerified()
  const [id, other] = [await found(owner), await found(await createVerified())]
  const manager = await createMember(id, 'admin')
  const { token } = (await usher.inject('POST', '/api/auth/token', {
    headers: manager.headers, payload: { organizationId: id },
  })).json()
  const send = (method: 'GET' | 'PATCH' | 'POST', path: string, payload?: object) => usher.inject(
    method, `/api/organizations${path}`, { headers: { authorization: `Bearer ${token}` }, ...payload && { payload } }
  )
  t.equal((await send('GET', `/${id}/members`)).statusCode, 200)
  t.equal((await send('PATCH', `/${id}/members/${manager.id}`, { role: 'owner' })).statusCode, 403)
  t.equal((await send('PATCH', `/${id}/members/${owner.id}`, { role: 'member' })).statusCode, 403)
  t.equal((await send('POST', `/${id}/members`, { userId: usher.admin.id, role: 'member' })).statusCode, 403)
  t.match((await send('GET', '')).json(), [{ id }])
  t.equal((await send('GET', '')).json().length, 1)
  t.equal((await send('GET', `/${other}`)).statusCode, 404)
})

t.test('19.5 an invitation that a rule of a host permits is accepted, and void once the rule does not permit it', async (t) => {
  const inviting = new Set<string>()
  const isManager = ({ id, claims }: Actor) => inviting.has(id) && claims.team === 'people'
  const given = organizationOptions({
    claims: ({ name }) => ({ team: name === 'Manager' ? 'people' : 'none' }),
    policy: {
      'organizations:read': (actor, { organizationId }) => isManager(actor) || actor.organization?.id === organizationId,
      'members:invite': (actor, { organizationId }) =>
        isManager(actor) || (actor.organization?.id === organizationId && actor.organization?.role !== 'owner'),
      'members:update': isManager,
    },
  })
  const usher = await createUsher(t, given.options)
  const { createVerified, found, tokenTo } = withOrganizations(t, usher, given.mails)
  const founder = await createVerified()
  const id = await found(founder)
  const manager = await createVerified('Manager')
  inviting.add(manager.id)
  const member = await createVerified()
  const added = await usher.inject('POST', `/api/organizations/${id}/members`, {
    headers: manager.headers, payload: { userId: member.id, role: 'member' },
  })
  t.equal(added.statusCode, 201)
  const invited = async (by: LoggedIn): Promise<[string, LoggedIn]> => {
    const guest = await createVerified()
    const { statusCode } = await usher.inject('POST', `/api/organizations/${id}/invitations`, {
      headers: by.headers, payload: { email: guest.email },
    })
    t.equal(statusCode, 202)
    return [await tokenTo(guest.email), guest]
  }
  const accept = async ([token, { headers }]: [string, LoggedIn]) =>
    (await usher.inject('POST', '/api/auth/invitations/accept', { headers, payload: { token } })).statusCode
  t.equal(await accept(await invited(member)), 200, 'of a member, by the membership')
  t.equal(await accept(await invited(manager)), 200, 'of somebody who is no member, by claims')
  const [kept, ended] = [await invited(member), await invited(member)]
  const setRole = async (role: string) => t.equal((await usher.inject('PATCH', `/api/organizations/${id}/members/${member.id}`, {
    headers: manager.headers, payload: { role },
  })).statusCode, 200)
  await setRole('admin')
  await setRole('member')
  t.equal(await accept(kept), 200, 'of a member whose roles since may all invite, by the rule')
  await setRole('owner')
  await setRole('member')
  t.equal(await accept(ended), 400, 'of a member with a role meanwhile that may not invite')
  const last = await invited(manager)
  inviting.delete(manager.id)
  t.equal(await accept(last), 400, 'of somebody who may not invite any more')
})
