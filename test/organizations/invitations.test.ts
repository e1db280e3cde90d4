import { randomUUID } from 'node:crypto'
import t, { type Test } from 'tap'
import { createUsher, type LoggedIn } from '../helpers/app.ts'
import { organizationOptions, withOrganizations } from '../helpers/organizations.ts'

const { options, mails } = organizationOptions({ organizations: { maxInvitations: 5 } })
const usher = await createUsher(t, options)
const { inject, admin } = usher
const { sql, createVerified, found, createMember, tokenTo } = withOrganizations(t, usher, mails)

const newEmail = () => `${randomUUID()}@example.com`
const invite = (by: LoggedIn, id: string, email: string, role = 'member') =>
  inject('POST', `/api/organizations/${id}/invitations`, { headers: by.headers, payload: { email, role } })
const accept = (payload: object, user?: LoggedIn) =>
  inject('POST', '/api/auth/invitations/accept', { payload, ...user && { headers: user.headers } })
const check = (token: string) => inject('POST', '/api/auth/invitations/check', { payload: { token } })
const isVoid = async (t: Test, token: string, user: LoggedIn) => {
  t.equal((await check(token)).statusCode, 400)
  t.match((await accept({ token }, user)).json(), { errors: ['token is invalid or has expired'] })
}

/** Invites somebody, and returns the token of the mail. */
async function invited (by: LoggedIn, id: string, email: string, role?: string): Promise<string> {
  mails.delete(email)
  const response = await invite(by, id, email, role)
  if (response.statusCode !== 202) throw new Error(response.body)
  return tokenTo(email)
}

t.test('19.5 a user accepts an invitation to the verified address', async (t) => {
  const owner = await createVerified('Olga Owner')
  const id = await found(owner, 'Engines.example')
  const user = await createVerified()
  const token = await invited(owner, id, user.email, 'admin')
  t.match(mails.get(user.email), /Engines\. example/, 'its name is no link')
  t.strictSame((await check(token)).json(), {
    organization: { id, name: 'Engines.example' }, email: user.email, role: 'admin', invitedBy: 'Olga Owner', hasAccount: true,
  })
  const accepted = await accept({ token }, user)
  t.equal(accepted.statusCode, 200)
  t.match(accepted.json(), { organizationId: id, userId: user.id, role: 'admin' })
  t.match((await inject('GET', '/api/auth/organizations', { headers: user.headers })).json(), [{ id, role: 'admin' }])
  await isVoid(t, token, user)
})

t.test('19.5 somebody without an account gets one, also where nobody may sign up', async (t) => {
  const owner = await createVerified()
  const id = await found(owner)
  const email = newEmail()
  const token = await invited(owner, id, email)
  t.match((await check(token)).json(), { hasAccount: false })
  t.equal((await accept({ token })).statusCode, 400, 'without a password')
  t.equal((await accept({ token, name: 'Ada', password: email })).statusCode, 400, 'with the address as the password')
  const password = `violet engine ${randomUUID()}`
  const accepted = await accept({ token, name: 'Ada', password })
  t.equal(accepted.statusCode, 200)
  const user = await usher.login({ email, password })
  t.match((await inject('GET', '/api/protected', { headers: user.headers })).json(), {
    user: { id: accepted.json().userId, name: 'Ada', emailVerified: true, role: 'user' },
  })
  t.match((await inject('GET', '/api/auth/organizations', { headers: user.headers })).json(), [{ id, role: 'member' }])
  t.equal((await accept({ token, name: 'Ada', password })).statusCode, 400, 'a second time')
})

t.test('19.5 an invitation is for one address only', async (t) => {
  const owner = await createVerified()
  const id = await found(owner)
  const user = await createVerified()
  const token = await invited(owner, id, user.email)
  const other = await createVerified()
  t.match((await accept({ token }, other)).json(), { code: 'OTHER_ADDRESS' })
  t.match((await accept({ token, name: 'Ada', password: 'violet engine notes' })).json(), { code: 'LOGIN_REQUIRED' })
  await sql`update users set email_verified = false where id = ${user.id}`
  t.match((await accept({ token }, user)).json(), { code: 'OTHER_ADDRESS' }, 'an address that is not verified')
  await sql`update users set email_verified = true where id = ${user.id}`
  t.equal((await accept({ token }, user)).statusCode, 200)
})

t.test('19.5 an invitation that two requests accept at once makes one member', async (t) => {
  const owner = await createVerified()
  const id = await found(owner)
  const email = newEmail()
  const token = await invited(owner, id, email)
  const results = await Promise.all([1, 2, 3].map((n) => accept({ token, name: `Ada ${n}`, password: `violet engine ${n}` })))
  t.strictSame(results.map(({ statusCode }) => statusCode).filter((status) => status === 200), [200])
  const members = (await inject('GET', `/api/organizations/${id}/members`, { headers: owner.headers })).json()
  t.equal(members.length, 2)
})

t.test('19.5 one that is replaced, withdrawn or too old is void, as is one whose organisation is gone', async (t) => {
  const owner = await createVerified()
  const id = await found(owner)
  const user = await createVerified()
  const first = await invited(owner, id, user.email)
  const second = await invited(owner, id, user.email, 'admin')
  await isVoid(t, first, user)
  t.match((await check(second)).json(), { role: 'admin' })
  const list = () => inject('GET', `/api/organizations/${id}/invitations`, { headers: owner.headers })
  const [invitation] = (await list()).json()
  t.match(invitation, { email: user.email, role: 'admin', invitedBy: owner.id })
  t.equal((await inject('DELETE', `/api/organizations/${id}/invitations/${invitation.id}`, { headers: owner.headers })).statusCode, 204)
  await isVoid(t, second, user)
  t.strictSame((await list()).json(), [])
  const third = await invited(owner, id, user.email)
  await sql`update organization_invitations set expires_at = now() where organization_id = ${id}`
  await isVoid(t, third, user)
  const fourth = await invited(owner, id, user.email)
  const { slug, name } = (await inject('GET', `/api/organizations/${id}`, { headers: owner.headers })).json()
  t.equal((await inject('DELETE', `/api/organizations/${id}`, { headers: owner.headers })).statusCode, 204)
  const again = await inject('POST', '/api/organizations', { headers: owner.headers, payload: { name, slug } })
  t.equal(again.statusCode, 201)
  await isVoid(t, fourth, user)
})

t.test('19.5 an invitation is void when its inviter has lost the membership or the right', async (t) => {
  const owner = await createVerified()
  const id = await found(owner)
  const ended: [string, (inviter: LoggedIn) => Promise<{ statusCode: number }>][] = [
    ['demoted', ({ id: userId }) => inject('PATCH', `/api/organizations/${id}/members/${userId}`, {
      headers: owner.headers, payload: { role: 'member' },
    })],
    ['removed', ({ id: userId }) => inject('DELETE', `/api/organizations/${id}/members/${userId}`, { headers: owner.headers })],
    ['left', (user) => inject('DELETE', `/api/organizations/${id}/members/${user.id}`, { headers: user.headers })],
    ['deleted', (user) => inject('DELETE', `/api/users/${user.id}`, { headers: admin.headers })],
    ['without sessions, because others may have had one', (user) =>
      inject('DELETE', `/api/users/${user.id}/sessions`, { headers: admin.headers })],
    ['disabled', (user) => inject('PATCH', `/api/users/${user.id}`, { headers: admin.headers, payload: { disabled: true } })],
  ]
  for (const [name, end] of ended) {
    const [inviter, user] = [await createMember(id, 'admin'), await createVerified()]
    const token = await invited(inviter, id, user.email)
    t.ok((await end(inviter)).statusCode < 300, name)
    await isVoid(t, token, user)
  }
  const [former, guest] = [await createMember(id, 'admin'), await createVerified()]
  const ofFormer = await invited(former, id, guest.email)
  await sql`update memberships set role = 'editor' where user_id = ${former.id}`
  await isVoid(t, ofFormer, guest)
  const [inviter, user] = [await createMember(id, 'admin'), await createVerified()]
  const token = await invited(inviter, id, user.email)
  const promoted = await inject('PATCH', `/api/organizations/${id}/members/${inviter.id}`, {
    headers: owner.headers, payload: { role: 'owner' },
  })
  t.equal(promoted.statusCode, 200)
  t.equal((await accept({ token }, user)).statusCode, 200, 'whoever may invite still, with another membership')
})

t.test('19.5 nobody learns by an invitation whether an address has an account', async (t) => {
  const owner = await createVerified()
  const id = await found(owner)
  const known = await invite(owner, id, (await createVerified()).email)
  const unknown = await invite(owner, id, newEmail())
  t.equal(known.statusCode, 202)
  t.equal(known.body, unknown.body)
  t.match((await invite(owner, id, owner.email)).json(), { code: 'ALREADY_MEMBER' })
})

t.test('19.5 invitations that are pending are limited', async (t) => {
  const owner = await createVerified()
  const id = await found(owner)
  const emails = Array.from({ length: 5 }, newEmail)
  for (const email of emails) t.equal((await invite(owner, id, email)).statusCode, 202)
  t.match((await invite(owner, id, newEmail())).json(), { code: 'TOO_MANY_INVITATIONS' })
  t.equal((await invite(owner, id, emails[0]!)).statusCode, 202, 'one that replaces another')
})

t.test('19.5 an API key accepts no invitation', async (t) => {
  const owner = await createVerified()
  const id = await found(owner)
  const user = await createVerified()
  const token = await invited(owner, id, user.email)
  const { key } = (await inject('POST', '/api/auth/keys', { headers: user.headers, payload: { name: 'A key' } })).json()
  const withKey = { ...user, headers: { authorization: `Bearer ${key}` } }
  t.match((await accept({ token }, withKey)).json(), { code: 'SESSION_REQUIRED' })
})
