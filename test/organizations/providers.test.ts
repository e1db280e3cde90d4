import { randomUUID } from 'node:crypto'
import type { JWTPayload } from 'jose'
import t, { type Test } from 'tap'
import { createUsher, type LoggedIn } from '../helpers/app.ts'
import { organizationOptions, withOrganizations } from '../helpers/organizations.ts'
import { cookiesOf } from '../helpers/passkeys.ts'
import { errorIn, ORIGIN, startProvider, withProviders } from '../helpers/provider.ts'

const fake = await startProvider(t)
// Nobody may sign up, also not by the provider.
const { options, mails } = organizationOptions({
  publicUrl: ORIGIN, loginMail: true, providers: { fake: { ...fake.options, signUp: false } },
})
const usher = withProviders(await createUsher(t, options))
const { inject, admin, finish, sessionOf } = usher
const { sql, createVerified, found, tokenTo } = withOrganizations(t, usher, mails)
const owner = await createVerified('Olga Owner')
const id = await found(owner)

async function invited (email: string, by: LoggedIn = owner): Promise<string> {
  mails.delete(email)
  const payload = { email, role: 'admin' }
  const response = await inject('POST', `/api/organizations/${id}/invitations`, { headers: by.headers, payload })
  if (response.statusCode !== 202) throw new Error(response.body)
  return tokenTo(email)
}

const begin = (token: string) => inject('POST', '/api/auth/providers/fake/join', { payload: { token } })

/** Begins to accept an invitation, does something, and comes back from the provider. */
async function join (token: string, claims: JWTPayload, meanwhile = async () => {}) {
  const begun = await begin(token)
  if (begun.statusCode !== 200) throw new Error(begun.body)
  await meanwhile()
  return finish('fake', fake.authorize(begun.json().url, { sub: randomUUID(), ...claims }), cookiesOf(begun))
}

const newEmail = () => `${randomUUID()}@example.com`
const proven = (email: string): JWTPayload => ({ email, email_verified: true, name: 'Ada' })
const rolesOf = async ({ headers }: Pick<LoggedIn, 'headers'>) =>
  (await inject('GET', '/api/auth/organizations', { headers })).json()
const isUnknown = async (t: Test, email: string) =>
  t.equal((await sql`select from users where lower(email) = ${email.toLowerCase()}`).length, 0, 'nobody was created')

t.test('19.5 a newcomer joins by a provider, also where nobody may sign up, and is logged in', async (t) => {
  const email = newEmail()
  const token = await invited(email)
  const begun = await begin(token)
  const { url } = begun.json()
  t.notOk(url.includes(token), 'the provider does not learn the token')
  const response = await finish('fake', fake.authorize(url, { sub: randomUUID(), ...proven(email.toUpperCase()) }), cookiesOf(begun))
  t.same([response.statusCode, response.headers.location], [303, '/account'])
  const session = await sessionOf(response)
  t.match(session.user, { name: 'Ada', emailVerified: true, role: 'user' })
  t.match(await rolesOf(session), [{ id, role: 'admin' }])
  t.match((await inject('GET', '/api/auth/identities', { headers: session.headers })).json(), [{ provider: 'fake' }])
  const actions = (await inject('GET', `/api/audit?user=${session.id}`, { headers: admin.headers })).json()
    .map(({ action }: { action: string }) => action).sort()
  t.same(actions, ['identity.add', 'login', 'membership.add', 'user.create'])
  t.equal((await begin(token)).statusCode, 400, 'the invitation is used up')
})

t.test('19.5 the address that the provider proves must be the invited one', async (t) => {
  const email = newEmail()
  const token = await invited(email)
  for (const claims of [proven(newEmail()), { email, email_verified: false }]) {
    const response = await join(token, claims)
    t.same([response.statusCode, response.headers.location], [303, '/join?error=OTHER_ADDRESS'])
  }
  t.equal(errorIn(await join(token, {})), 'PROVIDER_EMAIL_MISSING')
  await isUnknown(t, email)
  t.equal((await join(token, proven(email))).headers.location, '/account', 'the invitation is still valid')
})

t.test('19.5 an invitation that was withdrawn, replaced or used at the provider is void', async (t) => {
  const withdraw = async () => {
    const [{ id: invitation }] = (await inject('GET', `/api/organizations/${id}/invitations`, { headers: owner.headers })).json()
    await inject('DELETE', `/api/organizations/${id}/invitations/${invitation}`, { headers: owner.headers })
  }
  const email = newEmail()
  t.equal(errorIn(await join(await invited(email), proven(email), withdraw)), 'INVALID_INPUT')
  t.equal(errorIn(await join(await invited(email), proven(email), async () => { await invited(email) })), 'INVALID_INPUT')
  await isUnknown(t, email)
  const token = await invited(email)
  const responses = await Promise.all([join(token, proven(email)), join(token, proven(email))])
  t.equal(responses.filter((response) => errorIn(response) === null).length, 1, 'one of two at once joins')
  t.equal((await sql`select from users where email = ${email}`).length, 1)
  t.equal((await begin(token)).statusCode, 400)
})

t.test('19.5 whoever has an account logs in to it first', async (t) => {
  const user = await createVerified()
  t.match((await begin(await invited(user.email))).json(), { code: 'LOGIN_REQUIRED' })
  const email = newEmail()
  const token = await invited(email)
  const response = await join(token, proven(email), async () => { await usher.createUser({ email }) })
  t.equal(errorIn(response), 'LOGIN_REQUIRED', 'also one who got it meanwhile')
  t.match((await begin('x'.repeat(43))).json(), { errors: ['token is invalid or has expired'] })
})

t.test('19.5 the answer of the provider to another browser joins nothing', async (t) => {
  const email = newEmail()
  const [begun, other] = [await begin(await invited(email)), await begin(await invited(newEmail()))]
  const response = await finish('fake', fake.authorize(begun.json().url, proven(email)), cookiesOf(other))
  t.equal(errorIn(response), 'INVALID_STATE')
  await isUnknown(t, email)
})

t.test('19.5 where logins by mail are offered, a newcomer needs no password', async (t) => {
  const email = newEmail()
  const accept = (payload: object) => inject('POST', '/api/auth/invitations/accept', { payload })
  const token = await invited(email)
  t.match((await accept({ token })).json(), { code: 'PASSWORD_REQUIRED' }, 'a name')
  t.match((await accept({ token, name: 'Ada' })).json(), { organizationId: id, role: 'admin' })
  mails.delete(email)
  await inject('POST', '/api/auth/login/mail', { payload: { email } })
  const response = await inject('POST', '/api/auth/login/mail/confirm', { payload: { token: await tokenTo(email) } })
  t.match(response.json(), { user: { name: 'Ada', email } })
})
