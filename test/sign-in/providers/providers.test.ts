import { randomUUID } from 'node:crypto'
import { decodeJwt } from 'jose'
import t from 'tap'
import { errorIn, openProviders, startProvider } from '../../helpers/provider.ts'

const [fake, other] = [await startProvider(t), await startProvider(t)]
const { inject, begin, finish, logIn, sessionOf } = await openProviders(t, {
  providers: { fake: { ...fake.options, signUp: true }, other: { ...other.options, signUp: true, name: 'Other' } },
})
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
