import { randomUUID } from 'node:crypto'
import type { JWTPayload } from 'jose'
import type { TransactionSql } from 'postgres'
import t from 'tap'
import { codeOf } from '../../../plugins/sign-in/totp/codes.ts'
import { createMailer, tokenIn } from '../../helpers/mail.ts'
import { startWithEvents } from '../../helpers/outbox-events.ts'
import { withPasskeys } from '../../helpers/passkeys.ts'
import { errorIn, openProviders, startProvider, withProviders } from '../../helpers/provider.ts'
import { createUsher, type LoggedIn } from '../../helpers/app.ts'
import { openScope } from '../../helpers/scope.ts'
import { openSql, untilBlocked } from '../../helpers/sql.ts'
import { until } from '../../helpers/until.ts'

const FORM = 'application/x-www-form-urlencoded'
const LOGOUT = 'http://schemas.openid.net/event/backchannel-logout'
const fake = await startProvider(t)
const inbox = createMailer()
const usher = await openProviders(t, {
  mailer: inbox.mailer, secret: 'a secret of the node', providers: { fake: { ...fake.options, signUp: true, keepTokens: true } },
})
const { app, inject, createUser, begin, beginFor, finish, logIn, sessionOf, admin } = usher
const sql = openSql(t, usher)
const watch = openSql(t, usher)
const person = () => ({ sub: randomUUID(), email: `${randomUUID()}@example.com`, email_verified: true })

/** Links an identity to a user. Returns its id. */
async function link (user: LoggedIn, sub = randomUUID()): Promise<{ id: string, sub: string }> {
  const begun = await beginFor(user, 'link', 'fake', '/account?tab=ways')
  const linked = await finish('fake', fake.authorize(begun.url, { sub }), begun.cookie)
  if (linked.headers.location !== '/account?tab=ways') throw new Error(`link: ${linked.headers.location}`)
  const [{ id }] = (await inject('GET', '/api/auth/identities', { headers: user.headers })).json()
  return { id, sub }
}

/** Creates a user who has only an identity. */
const federated = async (claims: ReturnType<typeof person> = person()) =>
  ({ claims, ...await sessionOf(await logIn('fake', fake, claims)) })

const age = (user: { id: string }) => sql`update sessions set auth_time = now() - interval '1 hour' where user_id = ${user.id}`

t.test('16.5 a user links an identity, logs in with it, sees and unlinks it; the owner gets mails, and the log and the events say it', async (t) => {
  const { usher, events } = await startWithEvents(
    t, { mailer: () => {}, publicUrl: 'https://example.com', providers: { fake: fake.options } }
  )
  const others = withProviders(usher)
  const user = await others.createUser()
  const begun = await others.beginFor(user, 'link', 'fake')
  t.equal((await others.finish('fake', fake.authorize(begun.url, { sub: 'grace' }), begun.cookie)).headers.location, '/account')
  const loggedIn = await others.sessionOf(await others.logIn('fake', fake, { sub: 'grace' }))
  t.equal(loggedIn.id, user.id)
  const list = await others.inject('GET', '/api/auth/identities', { headers: user.headers })
  const [{ id }] = list.json()
  t.match(list.json(), [{ provider: 'fake', email: null, createdAt: String, lastUsedAt: String }])
  t.match(await others.app.usher.credentials.list(user.id), { identities: [{ id, provider: 'fake' }] })
  const { etag } = list.headers
  t.equal((await others.inject(
    'GET', '/api/auth/identities', { headers: { ...user.headers, 'if-none-match': `${etag}` } }
  )).statusCode, 304)
  t.equal((await others.inject('DELETE', `/api/auth/identities/${id}`, { headers: user.headers })).statusCode, 204)
  t.equal((await others.inject('DELETE', `/api/auth/identities/${id}`, { headers: user.headers })).statusCode, 404)
  const log = await others.inject('GET', `/api/audit?user=${user.id}`, { headers: user.headers })
  t.strictSame(log.json().map(({ action }: { action: string }) => action), [
    'identity.remove', 'login', 'identity.add', 'login', 'user.create',
  ])
  const ofCredentials = () => events.filter(({ type }) => type.startsWith('credential.'))
  await until('the events', () => ofCredentials().length === 2)
  const data = { userId: user.id, actorId: user.id, kind: 'identity' }
  t.match(ofCredentials(), [{ type: 'credential.added', data }, { type: 'credential.removed', data }])
})

t.test('16.5 linking and unlinking need step-up, and a link that was begun ends with its session', async (t) => {
  const user = await createUser()
  const { id } = await link(user)
  const begun = await beginFor(user, 'link', 'fake')
  await age(user)
  const asks = [
    await inject('POST', '/api/auth/providers/fake/link', { headers: user.headers, payload: {} }),
    await inject('DELETE', `/api/auth/identities/${id}`, { headers: user.headers }),
  ]
  for (const { statusCode, headers } of asks) {
    t.equal(statusCode, 403)
    t.match(headers['www-authenticate'], /insufficient_user_authentication/)
  }
  await inject('POST', '/api/auth/logout', { headers: user.headers })
  const response = await finish('fake', fake.authorize(begun.url, { sub: randomUUID() }), begun.cookie)
  t.equal(errorIn(response), 'INVALID_TOKEN')
  t.equal((await sql`select id from identities where user_id = ${user.id}`).length, 1)
})

t.test('16.5 an identity belongs to one user, who has at most 20', async (t) => {
  const [one, two] = [await createUser(), await createUser()]
  const { sub } = await link(one)
  const begun = await beginFor(two, 'link', 'fake')
  t.equal(errorIn(await finish('fake', fake.authorize(begun.url, { sub }), begun.cookie)), 'IDENTITY_TAKEN')
  const again = await beginFor(one, 'link', 'fake')
  t.equal(errorIn(await finish('fake', fake.authorize(again.url, { sub }), again.cookie)), null, 'its own, once more')
  await sql`insert into identities (id, user_id, provider, issuer, subject)
    select gen_random_uuid(), ${two.id}, 'fake', 'https://elsewhere.example', i::text from generate_series(1, 20) i`
  const more = await beginFor(two, 'link', 'fake')
  t.equal(errorIn(await finish('fake', fake.authorize(more.url, { sub: randomUUID() }), more.cookie)), 'TOO_MANY_IDENTITIES')
})

t.test('16.5 the last way to sign in cannot be removed, also by two requests at once, and an identity of a former provider is none', async (t) => {
  const user = await federated()
  const [{ id: first }] = (await inject('GET', '/api/auth/identities', { headers: user.headers })).json()
  const remove = (id: string) => inject('DELETE', `/api/auth/identities/${id}`, { headers: user.headers })
  t.match((await remove(first)).json(), { code: 'LAST_WAY_TO_SIGN_IN' })
  await sql`insert into identities (id, user_id, provider, issuer, subject)
    values (gen_random_uuid(), ${user.id}, 'former', 'https://former.example', ${user.id})`
  t.match((await remove(first)).json(), { code: 'LAST_WAY_TO_SIGN_IN' }, 'nobody can sign in with the other one')
  const { id: second } = await link(user)
  const { both } = await sql.begin(async (trx) => {
    await trx`select id from users where id = ${user.id} for update`
    const both = [first, second].map(remove)
    await untilBlocked(watch, usher)
    return { both }
  })
  t.strictSame((await Promise.all(both)).map(({ statusCode }) => statusCode).sort(), [204, 409])
})

t.test('16.5 the link in the mail removes what was linked, and ends all sessions (11.3)', async (t) => {
  const user = await createUser()
  const { sub } = await link(user)
  const [mail] = await inbox.of(user.email, 1)
  t.equal(mail!.subject, 'A way to log in was added to your account')
  t.match(mail!.text, 'an account at Fake')
  t.equal((await inject('POST', '/api/auth/undo', { payload: { token: tokenIn(mail!) } })).statusCode, 204)
  t.equal((await inject('GET', '/api/protected', { headers: user.headers })).statusCode, 401)
  t.equal(errorIn(await logIn('fake', fake, { sub })), 'PROVIDER_EMAIL_MISSING', 'nobody has it any more')
})

t.test('16.5 an admin sees and removes an identity, which ends the sessions of the user', async (t) => {
  const user = await createUser()
  const { id } = await link(user)
  const list = await inject('GET', `/api/users/${user.id}/identities`, { headers: admin.headers })
  t.match(list.json(), [{ id }])
  t.equal((await inject('DELETE', `/api/users/${user.id}/identities/${id}`, { headers: admin.headers })).statusCode, 204)
  t.equal((await inject('GET', '/api/protected', { headers: user.headers })).statusCode, 401)
})

t.test('16.5 the identity is removed, or the user disabled, while somebody logs in: no session', async (t) => {
  const changes = [
    (trx: TransactionSql, id: string) => trx`delete from identities where user_id = ${id}`,
    (trx: TransactionSql, id: string) => trx`update users set disabled = true where id = ${id}`,
  ]
  for (const change of changes) {
    const user = await federated()
    await sql`delete from sessions where user_id = ${user.id}`
    const begun = await begin('fake')
    const { response } = await sql.begin(async (trx) => {
      await trx`select id from users where id = ${user.id} for update`
      const response = finish('fake', fake.authorize(begun.url, user.claims), begun.cookie)
      await untilBlocked(watch, usher)
      await change(trx, user.id)
      return { response }
    })
    t.ok(errorIn(await response))
    t.equal((await sql`select id from sessions where user_id = ${user.id}`).length, 0)
  }
})

t.test('16.5 two tabs that log a user in by a new identity at once both succeed', async (t) => {
  const user = await createUser()
  await sql`update users set email_verified = true where id = ${user.id}`
  const claims = { ...person(), email: user.email }
  const tabs = [await begin('fake'), await begin('fake')]
  // As an object, because the transaction would wait for an array of promises.
  const { locations } = await sql.begin(async (trx) => {
    await trx`select from users where id = ${user.id} for update`
    const finished = tabs.map(({ url, cookie }) => finish('fake', fake.authorize(url, claims), cookie))
    await until('both wait for the user', async () => {
      const [{ count }] = await watch<[{ count: number }]>`select count(*)::int from pg_stat_activity
        where wait_event_type = 'Lock' and pg_blocking_pids(pid) <> '{}' and query like ${`%${usher.options.schema}%`}`
      return count >= 2
    })
    return { locations: finished }
  })
  t.strictSame((await Promise.all(locations)).map(({ headers }) => headers.location), ['/account', '/account'])
})

t.test('16.5 a callback that links, opened twice, leads to where the first one did, if it has linked', async (t) => {
  const [user, other] = await Promise.all([createUser(), createUser()])
  const begun = await beginFor(user, 'link', 'fake', '/account?tab=ways')
  const response = fake.authorize(begun.url, { sub: randomUUID() })
  const open = ({ cookie }: LoggedIn) => finish('fake', response, `${begun.cookie}; ${cookie}`)
  const first = await open(user)
  t.equal(first.headers.location, '/account?tab=ways')
  t.equal((await open(user)).headers.location, '/account?tab=ways')
  t.equal(errorIn(await open(other)), 'INVALID_STATE', 'the session of somebody else')
  await sql`update identities set created_at = now() - interval '1 hour' where user_id = ${user.id}`
  t.equal(errorIn(await open(user)), 'INVALID_STATE', 'another identity, from before')
})

t.test('16.5 a second factor is asked for, and the session is one of both', async (t) => {
  const user = await federated()
  const { secret } = (await inject('POST', '/api/auth/totp', { headers: user.headers })).json()
  const step = Math.floor(Date.now() / 30_000)
  await inject('POST', '/api/auth/totp/confirm', { headers: user.headers, payload: { code: codeOf(secret, step) } })
  const begun = await begin('fake')
  const response = fake.authorize(begun.url, user.claims)
  const waiting = await finish('fake', response, begun.cookie)
  t.equal(waiting.headers.location, '/login/second-factor')
  const [{ name, value, path }] = waiting.cookies as unknown as [{ name: string, value: string, path: string }]
  t.strictSame([waiting.cookies.length, name, path], [1, 'usher_challenge', '/login'])
  const page = await inject('GET', '/login/second-factor', { headers: { cookie: `${name}=${value}` } })
  const [challenge, ...methods] = value.split('.')
  t.match(page.body, `name="challenge" value="${challenge}"`)
  // The path of the cookie keeps it from the callback.
  const again = await finish('fake', response, begun.cookie)
  t.equal(again.headers.location, '/login?error=INVALID_STATE', 'the callback is opened twice')
  const sameStep = await inject('GET', again.headers.location!, { headers: { cookie: `${name}=${value}` } })
  t.match(sameStep.body, `name="challenge" value="${challenge}"`, 'and the browser is still asked for the second factor')
  t.equal(sameStep.headers['cache-control'], 'no-store')
  t.match((await inject('GET', again.headers.location!)).body, 'took too long', 'a browser without it learns why')
  t.strictSame(methods, ['totp', 'recovery-code'])
  const completed = await inject(
    'POST', '/api/auth/login/second-factor', { payload: { challenge, code: codeOf(secret, step + 1) } }
  )
  t.equal(completed.statusCode, 200)
  const [session] = await sql`select to_json(amr) as amr, identity_id from sessions where user_id = ${user.id}
    order by created_at desc limit 1`
  t.strictSame(session!.amr, ['fed', 'otp', 'mfa'])
  t.ok(session!.identity_id)
  const removed = await logIn('fake', fake, user.claims)
  const [next] = removed.cookies[0]!.value.split('.')
  await sql`delete from identities where user_id = ${user.id}`
  const late = await inject('POST', '/api/auth/login/second-factor', { payload: { challenge: next, code: codeOf(secret, step + 1) } })
  t.match(late.json(), { code: 'INVALID_CHALLENGE' }, 'the identity was removed meanwhile')
})

t.test('16.5 a user without a password steps up by the provider, which must have logged the user in once more', async (t) => {
  const user = await federated()
  const other = person()
  const stepUp = async (claims: JWTPayload) => {
    await age(user)
    const begun = await beginFor(user, 'step-up', 'fake', '/account')
    const asked = new URL(begun.url).searchParams
    t.strictSame([asked.get('prompt'), asked.get('max_age')], ['login', '0'])
    return errorIn(await finish('fake', fake.authorize(begun.url, claims), begun.cookie))
  }
  const now = () => Math.floor(Date.now() / 1000)
  const mayLink = async () =>
    (await inject('POST', '/api/auth/providers/fake/link', { headers: user.headers, payload: {} })).statusCode
  t.equal(await stepUp(user.claims), 'PROVIDER_LOGIN_STALE', 'it does not say when')
  t.equal(await stepUp({ ...user.claims, auth_time: now() - 3600 }), 'PROVIDER_LOGIN_STALE', 'an hour ago')
  t.equal(await stepUp({ ...other, auth_time: now() }), 'OTHER_IDENTITY', 'somebody else')
  t.equal(await mayLink(), 403)
  t.equal(await stepUp({ ...user.claims, auth_time: now() }), null)
  t.equal(await mayLink(), 200)
})

t.test('16.2, 16.4 where a second factor is required, a passkey is one for a step-up by the provider, and a session without it links nothing', async (t) => {
  const required = withPasskeys(await createUsher(t, { ...usher.options, secondFactor: 'everyone' }))
  const { beginFor, finish } = withProviders(required)
  // The admin of this app has no second factor either.
  const user = await createUser()
  const path = '/api/auth/providers/fake/link'
  const first = await required.inject('POST', path, { headers: user.headers, payload: {} })
  t.match([first.statusCode, first.json()], [403, { code: 'SECOND_FACTOR_MISSING' }])

  const { authenticator } = await required.register(user)
  const { token } = (await required.logIn(authenticator)).json()
  const passed = { ...user, token, headers: { authorization: `Bearer ${token}` } }
  const claims = person()
  const linking = await beginFor(passed, 'link', 'fake')
  t.equal(errorIn(await finish('fake', fake.authorize(linking.url, claims), linking.cookie)), null)
  await age(user)
  const begun = await beginFor(passed, 'step-up', 'fake', '/account')
  const answer = fake.authorize(begun.url, { ...claims, auth_time: Math.floor(Date.now() / 1000) })
  t.equal(errorIn(await finish('fake', answer, begun.cookie)), 'SECOND_FACTOR_MISSING')
  const late = await required.inject('POST', '/api/auth/keys', { headers: passed.headers, payload: { name: 'a key' } })
  t.match([late.statusCode, late.json()], [403, { code: 'STEP_UP_REQUIRED' }])
})

t.test('16.5 a back-channel logout ends the sessions of its subject and session on two nodes within 100 ms, once', async (t) => {
  const second = await createUsher(t, usher.options)
  const claims = person()
  const one = await sessionOf(await logIn('fake', fake, { ...claims, sid: 'one' }))
  const two = await sessionOf(await logIn('fake', fake, { ...claims, sid: 'two' }))
  const status = async (node: Pick<typeof usher, 'inject'>, { headers }: LoggedIn) =>
    (await node.inject('GET', '/api/protected', { headers })).statusCode
  const token = (given: object, header: object = {}) => fake.sign({
    iss: fake.issuer, aud: 'usher', iat: Math.floor(Date.now() / 1000), jti: randomUUID(), events: { [LOGOUT]: {} }, ...given,
  }, { typ: 'logout+jwt', ...header })
  const send = async (logoutToken: string) => (await inject('POST', '/api/auth/providers/fake/logout', {
    headers: { 'content-type': FORM }, payload: new URLSearchParams({ logout_token: logoutToken }).toString(),
  })).statusCode

  const wrong: Record<string, Promise<string>> = {
    'an ID token': token({ sub: claims.sub, events: undefined, nonce: 'a nonce' }),
    'a nonce': token({ sub: claims.sub, nonce: 'a nonce' }),
    'another event': token({ sub: claims.sub, events: { other: {} } }),
    'an event that is no object': token({ sub: claims.sub, events: { [LOGOUT]: true } }),
    nobody: token({}),
    'another audience': token({ sub: claims.sub, aud: 'another' }),
    'another issuer': token({ sub: claims.sub, iss: 'https://other.example' }),
    'an old one': token({ sub: claims.sub, iat: Math.floor(Date.now() / 1000) - 3600 }),
    'of the future': token({ sub: claims.sub, iat: Math.floor(Date.now() / 1000) + 3600 }),
    'no id': token({ sub: claims.sub, jti: undefined }),
    'another type': token({ sub: claims.sub }, { typ: 'at+jwt' }),
    NUL: token({ sub: `${claims.sub}\0` }),
    'no token': Promise.resolve('x'),
  }
  for (const [name, made] of Object.entries(wrong)) t.equal(await send(await made), 400, name)
  t.strictSame([await status(usher, one), await status(second, one)], [200, 200])

  const ofOne = await token({ sid: 'one' })
  t.equal(await send(ofOne), 200)
  const ended = performance.now()
  t.equal(await status(usher, one), 401)
  await until('the other node', async () => await status(second, one) === 401)
  const elapsed = performance.now() - ended
  t.comment(`the other node rejects it after ${Math.round(elapsed)} ms`)
  t.strictSame([await status(usher, two), await status(second, two)], [200, 200], 'another session of the provider')
  t.equal(await send(ofOne), 400, 'a token works once')
  t.equal(await send(await token({ sub: claims.sub, sid: 'elsewhere' })), 200)
  t.equal(await status(usher, two), 200, 'of a session that is not here')
  t.equal(await send(await token({ sub: claims.sub })), 200)
  t.equal(await status(usher, two), 401)
  await until('the other node', async () => await status(second, two) === 401)
  const log = await inject('GET', `/api/audit?user=${one.id}&action=session.end`, { headers: admin.headers })
  t.equal(log.json().length, 2)
})

t.test('16.5 tokens of a provider are stored encrypted, only the host reads them, and they survive a change of the secret', async (t) => {
  const user = await federated()
  const [{ id }] = (await inject('GET', '/api/auth/identities', { headers: user.headers })).json()
  const [{ tokens: stored }] = await sql`select tokens from identities where id = ${id}` as unknown as [{ tokens: string }]
  t.match(stored, /^sealed1\./)
  const expected = { accessToken: /^access-/, refreshToken: /^refresh-/, expiresAt: Number }
  t.match(await app.usher.credentials.tokensOf(user.id, id), expected)
  await t.rejects(app.usher.credentials.tokensOf(admin.id, id), { code: 'IDENTITY_NOT_FOUND' })
  const options = { ...usher.options, secret: 'another secret of the node', formerSecret: 'a secret of the node' }
  const scope = await openScope(t, options)
  const { reencryptTokens } = await import('../../../db/sign-in/providers/tokens.ts')
  const secrets = { secret: options.secret, formerSecret: options.formerSecret }
  const { encrypted, unreadable } = await reencryptTokens(scope.usherDatabase.db, secrets)
  t.ok(encrypted > 0)
  t.equal(unreadable, 0)
  const caller = scope.usherAccess.createHostCaller({ via: 'api' })
  t.match(await scope.usherSignIn.providers.tokensOf(caller, user.id, id), expected)
  await t.rejects(app.usher.credentials.tokensOf(user.id, id), { code: 'INTERNAL_ERROR' })
  t.equal((await reencryptTokens(scope.usherDatabase.db, secrets)).encrypted, 0)
})
