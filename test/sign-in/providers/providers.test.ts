import { randomUUID } from 'node:crypto'
import { decodeJwt } from 'jose'
import t from 'tap'
import { cookiesOf } from '../../helpers/passkeys.ts'
import { errorIn, openProviders, startProvider } from '../../helpers/provider.ts'
import { openSql } from '../../helpers/sql.ts'

const [fake, other] = [await startProvider(t), await startProvider(t)]
const usher = await openProviders(t, {
  providers: { fake: { ...fake.options, signUp: true }, other: { ...other.options, signUp: true, name: 'Other' } },
})
const { inject, begin, finish, logIn, sessionOf } = usher
const sql = openSql(t, usher)
const person = () => ({ sub: randomUUID(), email: `${randomUUID()}@example.com`, email_verified: true })

t.test('16.5 somebody without an account logs in by a provider, gets one, and logs in again', async (t) => {
  t.strictSame(
    (await inject('GET', '/api/auth/providers')).json(), [{ id: 'fake', name: 'Fake' }, { id: 'other', name: 'Other' }]
  )
  const begun = await begin('fake', { returnTo: '/notes?page=2' })
  const asked = new URL(begun.url)
  t.match(Object.fromEntries(asked.searchParams), {
    client_id: 'usher',
    response_type: 'code',
    redirect_uri: 'https://example.com/api/auth/providers/fake/callback',
    scope: 'openid email profile',
    code_challenge_method: 'S256',
    code_challenge: /^[\w-]{43}$/,
    nonce: /^[\w-]{43}$/,
    state: /^[\w-]+$/,
  })
  const claims = { ...person(), name: 'Ada' }
  const loggedIn = await finish('fake', fake.authorize(begun.url, claims), begun.cookie)
  t.strictSame([loggedIn.statusCode, loggedIn.headers.location], [303, '/notes?page=2'])
  const { user, id, token, headers } = await sessionOf(loggedIn)
  t.match(user, { name: 'Ada', email: claims.email, emailVerified: true, role: 'user' })
  t.strictSame(decodeJwt(token).amr, ['fed'])
  const { email } = person()
  const again = await logIn('fake', fake, { ...claims, email })
  t.equal(again.headers.location, '/account')
  t.equal((await sessionOf(again)).id, id, 'the subject decides, not the address')
  const list = await inject('GET', '/api/auth/identities', { headers })
  t.match(list.json(), [{ provider: 'fake', email, lastUsedAt: String }])
  const log = await inject('GET', `/api/audit?user=${id}`, { headers })
  t.strictSame(log.json().map(({ action }: { action: string }) => action), ['login', 'login', 'identity.add', 'user.create'])
})

t.test('16.5 ten tabs of a browser begin at once, and all succeed', async (t) => {
  const claims = person()
  const { cookie } = await begin('fake')
  const tabs = await Promise.all(Array.from({ length: 10 }, () => begin('fake', { cookie })))
  const finished = await Promise.all(tabs.map(({ url }) => finish('fake', fake.authorize(url, claims), cookie)))
  t.strictSame(finished.map(({ headers }) => headers.location), tabs.map(() => '/account'))
})

t.test('16.5 a callback that is opened twice leads the browser that is logged in to where the first one did', async (t) => {
  const claims = person()
  const { url, cookie } = await begin('fake', { returnTo: '/notes' })
  const response = fake.authorize(url, claims)
  const first = await finish('fake', response, cookie)
  t.equal(first.headers.location, '/notes')
  const session = `${cookie}; ${cookiesOf(first)}`
  const second = await finish('fake', response, session)
  t.strictSame([second.statusCode, second.headers.location], [303, '/notes'])
  t.notOk(second.cookies.some(({ name }) => name === 'usher_session'), 'the session remains')
  t.equal(errorIn(await finish('fake', response, cookie)), 'INVALID_STATE', 'a browser that is not logged in')
  t.equal(errorIn(await finish('fake', { ...response, state: 'AA' }, session)), 'INVALID_STATE', 'another state')
  await inject('POST', '/api/auth/logout', { headers: { cookie: session } })
  t.equal(errorIn(await finish('fake', response, session)), 'INVALID_STATE', 'the session has ended')
})

t.test('16.5 a session from before does not make a login succeed that has failed', async (t) => {
  const former = await logIn('fake', fake, person())
  await sql`update sessions set auth_time = now() - interval '1 hour' where user_id = ${(await sessionOf(former)).id}`
  const { url, cookie } = await begin('fake')
  const session = `${cookie}; ${cookiesOf(former)}`
  const response = fake.authorize(url, { ...person(), email: undefined })
  t.equal(errorIn(await finish('fake', response, session)), 'PROVIDER_EMAIL_MISSING')
  t.equal(errorIn(await finish('fake', response, session)), 'INVALID_STATE')
})

t.test('16.5 returnTo may be as long as the schema says, and a longer one is an error, without which a login goes on', async (t) => {
  const longest = `/${'n'.repeat(2047)}`
  const { url, cookie } = await begin('fake', { returnTo: longest })
  const loggedIn = await finish('fake', fake.authorize(url, person()), cookie)
  t.equal(loggedIn.headers.location, longest)
  const { headers } = await sessionOf(loggedIn)
  const link = (returnTo: string) => inject('POST', '/api/auth/providers/fake/link', { headers, payload: { returnTo } })
  t.equal((await link(longest)).statusCode, 200)
  for (const returnTo of [`${longest}n`, `/${'é'.repeat(400)}`]) {
    const response = await link(returnTo)
    t.strictSame([response.statusCode, response.json()], [400, { errors: ['returnTo must be at most 2048 characters'] }])
    const started = await inject('GET', `/api/auth/providers/fake/start?${new URLSearchParams({ returnTo })}`)
    t.equal(new URL(started.headers.location!).origin, fake.issuer)
  }
})

t.test('16.5 a login that was started in another browser, was completed, or is of another provider is refused', async (t) => {
  const claims = person()
  const mine = await begin('fake')
  const theirs = await begin('fake')
  const response = fake.authorize(theirs.url, claims)
  t.equal(errorIn(await finish('fake', response, mine.cookie)), 'INVALID_STATE', 'another browser')
  t.equal(errorIn(await finish('fake', response, '')), 'INVALID_STATE', 'no browser')
  t.equal(errorIn(await finish('other', response, theirs.cookie)), 'INVALID_STATE', 'another provider')
  t.equal((await finish('fake', response, theirs.cookie)).headers.location, '/account')
  t.equal(errorIn(await finish('fake', response, theirs.cookie)), 'INVALID_STATE', 'completed')
  t.equal(errorIn(await finish('fake', { ...response, state: 'AA' }, theirs.cookie)), 'INVALID_STATE')
})
