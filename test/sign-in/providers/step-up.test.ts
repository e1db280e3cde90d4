import { randomUUID } from 'node:crypto'
import t from 'tap'
import type { LoggedIn } from '../../helpers/app.ts'
import { errorIn, openProviders, startProvider } from '../../helpers/provider.ts'
import { openSql } from '../../helpers/sql.ts'

const [google, apple, microsoft, fake] = await Promise.all([
  startProvider(t), startProvider(t), startProvider(t), startProvider(t),
])
const secrets = { clientId: 'usher', clientSecret: 'a secret' }
const usher = await openProviders(t, {
  mailer: () => {},
  loginMail: true,
  providers: {
    github: secrets,
    google: { ...google.options, signUp: true },
    appleish: { ...apple.options, preset: 'google', signUp: true, name: 'Another' },
    microsoft: { ...microsoft.options, trustEmail: undefined, signUp: true },
    fake: { ...fake.options, signUp: true },
  },
})
const { inject, beginFor, finish, logIn, sessionOf, createUser } = usher
const sql = openSql(t, usher)
const fakes = { google, microsoft, fake }
type Id = keyof typeof fakes
const now = () => Math.floor(Date.now() / 1000)

/** Creates a user who has only an identity at a provider, and whose authentication is old. */
async function federated (id: Id, isVerified = false) {
  const claims = { sub: randomUUID(), email: `${randomUUID()}@example.com`, email_verified: true }
  const created = await createUser({ email: claims.email })
  await sql`update users set password_hash = null where id = ${created.id}`
  await sql`insert into identities (id, user_id, provider, issuer, subject)
    values (gen_random_uuid(), ${created.id}, ${id}, ${fakes[id].issuer}, ${claims.sub})`
  const user = { claims, ...await sessionOf(await logIn(id, fakes[id], claims)) }
  await sql`update users set email_verified = ${isVerified} where id = ${user.id}`
  await age(user)
  return user
}

const age = ({ id }: LoggedIn) => sql`update sessions set auth_time = now() - interval '1 hour' where user_id = ${id}`
const begin = ({ headers }: LoggedIn, id: string) =>
  inject('POST', `/api/auth/providers/${id}/step-up`, { headers, payload: {} })
const usable = async ({ headers }: LoggedIn) =>
  (await inject('GET', '/api/auth/second-factor', { headers })).json().providers as string[]
const isRecent = async ({ headers }: LoggedIn) =>
  (await inject('POST', '/api/auth/keys', { headers, payload: { name: 'a key' } })).statusCode === 201

/** What a user may have besides. */
const means: Record<string, (user: LoggedIn) => Promise<unknown>> = {
  'a password': ({ id }) => sql`update users set password_hash = 'x' where id = ${id}`,
  'a passkey': ({ id }) => sql`insert into passkeys (id, user_id, credential_id, public_key, counter, transports, name, backed_up)
    values (gen_random_uuid(), ${id}, ${Buffer.from(id)}, 'x', 0, '{}', 'x', true)`,
  'an authenticator app': ({ id }) =>
    sql`insert into totp (user_id, secret, confirmed_at) values (${id}, 'AAAA', now())`,
  'a mail that logs in': ({ id }) => sql`update users set email_verified = true where id = ${id}`,
  'a provider that logs in once more': ({ id }) => sql`insert into identities (id, user_id, provider, issuer, subject)
    values (gen_random_uuid(), ${id}, 'fake', ${fake.issuer}, ${id})`,
}

t.test('16.2 a provider that cannot log the user in once more does not step up whoever has something else', async (t) => {
  for (const [what, add] of Object.entries(means)) {
    const user = await federated('google')
    t.strictSame(await usable(user), ['google'])
    const begun = await beginFor(user, 'step-up', 'google')
    await add(user)
    t.notOk((await usable(user)).includes('google'), what)
    const response = await begin(user, 'google')
    t.equal(response.statusCode, 403, what)
    t.match(response.json(), { code: 'PROVIDER_TOO_WEAK' })
    const late = await finish('google', google.authorize(begun.url, { ...user.claims, auth_time: now() }), begun.cookie)
    t.equal(errorIn(late), 'PROVIDER_TOO_WEAK', `${what}, which was added meanwhile`)
    t.notOk(await isRecent(user))
  }
  const both = await federated('google')
  await means['a provider that logs in once more']!(both)
  t.strictSame(await usable(both), ['fake'])
})

t.test('16.2 it does for users who have nothing else, who could not step up at all', async (t) => {
  const user = await federated('google')
  const begun = await beginFor(user, 'step-up', 'google')
  const asked = new URL(begun.url).searchParams
  t.strictSame([asked.get('prompt'), asked.get('max_age')], [null, null])
  t.notOk(await isRecent(user))
  t.equal(errorIn(await finish('google', google.authorize(begun.url, user.claims), begun.cookie)), null)
  t.ok(await isRecent(user))
  // Neither proves more than the other.
  await sql`insert into identities (id, user_id, provider, issuer, subject)
    values (gen_random_uuid(), ${user.id}, 'appleish', ${apple.issuer}, ${user.id})`
  t.strictSame(await usable(user), ['google', 'appleish'])
})

t.test('16.2 Microsoft is asked to log the user in once more, and must say that it did', async (t) => {
  const user = await federated('microsoft')
  const finishWith = async (claims: object) => {
    const begun = await beginFor(user, 'step-up', 'microsoft')
    const asked = new URL(begun.url).searchParams
    t.strictSame([asked.get('prompt'), asked.get('max_age')], ['login', '0'])
    return errorIn(await finish('microsoft', microsoft.authorize(begun.url, { ...user.claims, ...claims }), begun.cookie))
  }
  await means['a password']!(user)
  t.strictSame(await usable(user), ['microsoft'])
  t.equal(await finishWith({}), 'PROVIDER_LOGIN_STALE')
  t.equal(await finishWith({ auth_time: now() - 600 }), 'PROVIDER_LOGIN_STALE')
  t.notOk(await isRecent(user))
  t.equal(await finishWith({ auth_time: now() }), null)
  t.ok(await isRecent(user))
})

t.test('16.2 whoever has no identity there learns nothing new', async (t) => {
  const user = await createUser()
  t.strictSame(await usable(user), [])
  t.equal((await begin(user, 'google')).statusCode, 200)
  t.equal((await begin(user, 'none')).statusCode, 404)
})
