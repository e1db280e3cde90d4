import { createHash, randomBytes } from 'node:crypto'
import { decodeJwt } from 'jose'
import type { Sql } from 'postgres'
import t from 'tap'
import type { UsherOptions } from '../../../app.ts'
import { Authenticator, type Behaviour } from '../../helpers/authenticator.ts'
import { createUsher } from '../../helpers/app.ts'
import { sharedInbox as inbox } from '../../helpers/mail.ts'
import { nightly, sample } from '../../helpers/nightly.ts'
import { startWithEvents } from '../../helpers/outbox-events.ts'
import { cookiesOf, openPasskeys, ORIGIN, sharedPasskeys, withPasskeys } from '../../helpers/passkeys.ts'
import { openSql, untilBlocked } from '../../helpers/sql.ts'
import { stopClock } from '../../helpers/stopped-clock.ts'
import { until } from '../../helpers/until.ts'

const REFUSED = { error: 'The passkey was not accepted', code: 'INVALID_CREDENTIALS' }

// Most tests share an app with these options.
const open = () => sharedPasskeys({ origins: ['https://app.example.org'], mailer: inbox.mailer })

t.test('16.3 a user registers a passkey, sees and renames it, logs in with it, and removes it', async (t) => {
  const { inject, createUser, creationOptions, add, begin, finish } = await open()
  const user = await createUser({ name: 'Ada' })
  const options = await creationOptions(user)
  t.match(options, {
    rp: { id: 'example.com', name: 'Usher' },
    user: {
      id: Buffer.from(user.id.replaceAll('-', ''), 'hex').toString('base64url'),
      name: user.email,
      displayName: 'Ada',
    },
    pubKeyCredParams: [
      { type: 'public-key', alg: -8 }, { type: 'public-key', alg: -7 }, { type: 'public-key', alg: -257 },
    ],
    timeout: 300_000,
    excludeCredentials: [],
    authenticatorSelection: { residentKey: 'required', userVerification: 'required' },
    attestation: 'none',
  })
  const authenticator = new Authenticator({ origin: ORIGIN, aaguid: 'd548826e-79b4-db40-a3d8-11116f7e8349' })
  const added = await add(user, authenticator.create(options))
  t.equal(added.statusCode, 201)
  const { id, createdAt, ...passkey } = added.json()
  t.strictSame(passkey, { name: 'Bitwarden', lastUsedAt: null, backedUp: true })
  t.equal(added.headers.location, `/api/auth/passkeys/${id}`)
  t.match(
    (await creationOptions(user)).excludeCredentials,
    [{ type: 'public-key', id: authenticator.passkeys[0]!.id.toString('base64url') }]
  )

  const renamed = await inject(
    'PATCH', `/api/auth/passkeys/${id}`, { headers: user.headers, payload: { name: ' Phone ' } }
  )
  t.strictSame([renamed.statusCode, renamed.json().name], [200, 'Phone'])

  const { options: request, cookie } = await begin()
  t.match(request, { timeout: 300_000, rpId: 'example.com', allowCredentials: [], userVerification: 'required' })
  const loggedIn = await finish(authenticator.get(request), cookie)
  t.equal(loggedIn.statusCode, 200)
  t.match(loggedIn.json(), { tokenType: 'Bearer', user: { id: user.id, email: user.email } })
  t.match(
    loggedIn.cookies, [{ name: 'usher_session', path: '/api/auth', httpOnly: true, sameSite: 'Lax', secure: true }]
  )
  t.strictSame(decodeJwt(loggedIn.json().token).amr, ['pop', 'user', 'mfa'])
  t.equal((await inject('POST', '/api/auth/refresh', { headers: { cookie: cookiesOf(loggedIn) } })).statusCode, 200)

  const list = await inject('GET', '/api/auth/passkeys', { headers: user.headers })
  t.match(list.json(), [{ id, name: 'Phone', createdAt, lastUsedAt: String, backedUp: true }])
  const unchanged = await inject(
    'GET', '/api/auth/passkeys', { headers: { ...user.headers, 'if-none-match': String(list.headers.etag) } }
  )
  t.equal(unchanged.statusCode, 304)
  t.equal((await inject('DELETE', `/api/auth/passkeys/${id}`, { headers: user.headers })).statusCode, 204)
  t.strictSame((await inject('GET', '/api/auth/passkeys', { headers: user.headers })).json(), [])
  const again = await begin()
  t.strictSame((await finish(authenticator.get(again.options), again.cookie)).json(), REFUSED, 'a removed key')
  const log = await inject('GET', `/api/audit?user=${user.id}`, { headers: user.headers })
  t.strictSame(
    log.json().map(({ action }: { action: string }) => action).filter((action: string) => action.includes('passkey')),
    ['passkey.remove', 'passkey.rename', 'passkey.add']
  )
})

t.test('16.3 a passkey of ES256, EdDSA and RS256 logs its user in, and the cookie of a ceremony is only for the auth routes', async (t) => {
  const { createUser, register, logIn, inject } = await open()
  const user = await createUser()
  for (const algorithm of ['ES256', 'EdDSA', 'RS256'] as const) {
    const { authenticator } = await register(user, { algorithm })
    t.match((await logIn(authenticator)).json(), { user: { id: user.id } }, algorithm)
  }
  const { cookies: [cookie] } = await inject('POST', '/api/auth/login/passkey/options')
  t.match(cookie, {
    name: 'usher_passkey', path: '/api/auth', httpOnly: true, sameSite: 'Lax', secure: true, maxAge: /^(299|300)$/,
  })
})

t.test('16.3 every login by passkey that is not right gets the same 401', async (t) => {
  const { createUser, register, begin, finish, creationOptions, inject, admin } = await open()
  const user = await createUser()
  const other = await createUser()
  const { authenticator, id } = await register(user)
  const theirs = await register(other)
  const refuse = async (
    name: string, login: () => Promise<{ credential: ReturnType<Authenticator['get']>, cookie?: string | undefined }>
  ) => {
    const { credential, cookie } = await login()
    const response = await finish(credential, cookie)
    t.strictSame([response.statusCode, response.json(), response.cookies], [401, REFUSED, []], name)
  }
  const behave = (behaviour: Behaviour) => async () => {
    const { options, cookie } = await begin()
    return { credential: authenticator.get(options, behaviour), cookie }
  }
  const { options, cookie } = await begin()
  t.equal(
    (await finish(authenticator.get(options, { origin: 'https://app.example.org' }), cookie)).statusCode,
    200,
    'a related origin'
  )
  await refuse('a replayed response', async () => ({ credential: authenticator.get(options), cookie }))
  const lies: Record<string, Behaviour> = {
    'another origin': { origin: 'https://evil.example' },
    'another domain': { rpId: 'evil.example' },
    'a frame of another origin': { crossOrigin: true },
    'a user who was not verified': { userVerified: false },
    'a user who was not present': { userPresent: false },
    'a registration': { type: 'webauthn.create' },
    'a challenge of nobody': { challenge: randomBytes(134).toString('base64url') },
    'a short challenge': { challenge: 'AAAA' },
    'no challenge': { challenge: '' },
    'the handle of another user': { userHandle: theirs.authenticator.passkeys[0]!.userHandle },
    'no handle': { userHandle: null },
    'an empty handle': { userHandle: 'A' },
  }
  for (const [name, behaviour] of Object.entries(lies)) await refuse(name, behave(behaviour))
  await refuse('the browser of somebody else', async () =>
    ({ credential: authenticator.get((await begin()).options), cookie: (await begin()).cookie }))
  await refuse('no browser', async () => ({ credential: authenticator.get((await begin()).options) }))
  await refuse('a challenge of a registration', async () => {
    const { challenge, rp } = await creationOptions(user)
    return { credential: authenticator.get({ challenge, rpId: rp.id }), cookie: (await begin()).cookie }
  })
  await refuse('an unknown passkey', async () => {
    const { options, cookie } = await begin()
    const passkey = { ...authenticator.passkeys[0]!, id: randomBytes(32) }
    return { credential: authenticator.get(options, {}, passkey), cookie }
  })
  await refuse('the signature of another passkey', async () => {
    const { options, cookie } = await begin()
    const passkey = { ...authenticator.passkeys[0]!, privateKey: theirs.authenticator.passkeys[0]!.privateKey }
    return { credential: authenticator.get(options, {}, passkey), cookie }
  })
  await inject('PATCH', `/api/users/${user.id}`, { headers: admin.headers, payload: { disabled: true } })
  await refuse('a disabled user', behave({}))
  await inject('PATCH', `/api/users/${user.id}`, { headers: admin.headers, payload: { disabled: false } })
  await refuse(
    'a passkey that was used before it was disabled', async () => ({ credential: authenticator.get(options), cookie })
  )
  t.equal((await inject('GET', `/api/users/${user.id}/passkeys`, { headers: admin.headers })).json()[0].id, id)
  await inject('DELETE', `/api/users/${user.id}`, { headers: admin.headers })
  await refuse('a deleted user', behave({}))
  const log = await inject('GET', `/api/audit?user=${user.id}&action=login.failed`, { headers: admin.headers })
  t.ok(log.json().length > 5, 'the account log has them')
})

t.test('16.3 a registration belongs to the session that has asked for it, and is accepted once', async (t) => {
  const { createUser, login, creationOptions, add, begin, inject } = await open()
  const [user, other] = [await createUser(), await createUser()]
  const authenticator = new Authenticator({ origin: ORIGIN })
  const created = authenticator.create(await creationOptions(user))
  const refused = async (name: string, by: typeof user, credential: object) => {
    const response = await add(by, credential)
    t.equal(response.statusCode, 400, name)
    t.match(response.json().errors, [/^credential /], name)
  }
  await refused('another user', other, created)
  await refused('another session of the user', await login(user), created)
  await refused(
    'the challenge of a login',
    user,
    authenticator.create({ ...await creationOptions(user), challenge: (await begin()).options.challenge })
  )
  await refused('no challenge', user, authenticator.create({ ...await creationOptions(user), challenge: '' }))
  await refused(
    'another origin', user, authenticator.create(await creationOptions(user), { origin: 'https://evil.example' })
  )
  await refused(
    'a user who was not verified', user, authenticator.create(await creationOptions(user), { userVerified: false })
  )
  t.equal((await add(user, created)).statusCode, 201)
  await refused('a replay', user, created)
  const again = authenticator.attest(authenticator.passkeys[0]!, (await creationOptions(other)).challenge,
    Buffer.from(created.response.attestationObject, 'base64url').subarray(-77))
  const taken = await add(other, again)
  t.strictSame([taken.statusCode, taken.json().code], [409, 'PASSKEY_EXISTS'], 'the same passkey for another user')
  t.strictSame((await inject('GET', '/api/auth/passkeys', { headers: other.headers })).json(), [])
})

t.test('16.3 what is malformed or too large is rejected before anything is verified', async (t) => {
  const { createUser, creationOptions, add, begin, finish, register, inject } = await open()
  const user = await createUser()
  const { authenticator } = await register(user)
  const created = new Authenticator({ origin: ORIGIN }).create(await creationOptions(user))
  const { options, cookie } = await begin()
  const signed = authenticator.get(options)
  const long = (characters: number) => 'A'.repeat(characters)
  const within = (changes: object) => ({ ...created, response: { ...created.response, ...changes } })
  const registrations: Record<string, unknown> = {
    nothing: null,
    'a list': [],
    'no response': { ...created, response: undefined },
    'a long id': { ...created, id: long(1365), rawId: long(1365) },
    'an id that is not base64url': { ...created, id: 'a+b/', rawId: 'a+b/' },
    'a number as id': { ...created, id: 1 },
    'a long attestation object': within({ attestationObject: long(10_924) }),
    'long client data': within({ clientDataJSON: long(5463) }),
    'many transports': within({ transports: Array(11).fill('usb') }),
    'a transport with control characters': within({ transports: ['usb\n'] }),
    'a long type': { ...created, type: long(33) },
  }
  for (const [name, credential] of Object.entries(registrations)) {
    t.equal((await add(user, credential as object)).statusCode, 400, name)
  }
  for (const name of ['', ' ', 'a\u0000b', long(101), 1, null]) {
    t.equal((await add(user, created, { name })).statusCode, 400, JSON.stringify(name))
  }
  const answer = (changes: object) => ({ ...signed, response: { ...signed.response, ...changes } })
  const logins: Record<string, unknown> = {
    nothing: null,
    'long authenticator data': answer({ authenticatorData: long(2732) }),
    'a long signature': answer({ signature: long(1367) }),
    'a long handle': answer({ userHandle: long(87) }),
    'a handle that is no text': answer({ userHandle: {} }),
    'client data that are no text': answer({ clientDataJSON: 1 }),
  }
  for (const [name, credential] of Object.entries(logins)) {
    t.equal((await finish(credential as typeof signed, cookie)).statusCode, 400, name)
  }
  const large = await inject(
    'POST', '/api/auth/login/passkey', { payload: { credential: { ...signed, more: long(70_000) } } }
  )
  t.equal(large.statusCode, 413)
  t.equal(
    (await finish({ ...signed, clientExtensionResults: { credProps: { rk: true } } }, cookie)).statusCode,
    200,
    'what is not used is ignored'
  )
  for (const id of ['nobody', '0190a5b4-7c3e-7d11-8000-000000000000']) {
    t.equal(
      (await inject('DELETE', `/api/auth/passkeys/${id}`, { headers: user.headers })).json().code, 'PASSKEY_NOT_FOUND'
    )
    t.equal((await inject(
      'PATCH', `/api/auth/passkeys/${id}`, { headers: user.headers, payload: { name: 'x' } }
    )).json().code, 'PASSKEY_NOT_FOUND')
  }
})

t.test('16.3 members that older browsers send empty, null or not at all are accepted', async (t) => {
  const { createUser, creationOptions, add, begin, finish } = await open()
  const shapes: Record<string, { rest: object, transports?: null | string[] }> = {
    'no members that follow from others': {
      rest: {
        rawId: undefined, type: undefined, clientExtensionResults: undefined, authenticatorAttachment: undefined,
      },
    },
    null: {
      rest: { rawId: null, type: null, clientExtensionResults: null, authenticatorAttachment: null }, transports: null,
    },
    'empty texts and lists': { rest: { rawId: '', type: '', authenticatorAttachment: '' }, transports: [] },
  }
  for (const [name, { rest, transports }] of Object.entries(shapes)) {
    const user = await createUser()
    const authenticator = new Authenticator({ origin: ORIGIN })
    const created = authenticator.create(await creationOptions(user))
    const added = await add(user, { ...created, ...rest, response: { ...created.response, transports } })
    t.equal(added.statusCode, 201, `${name}: ${added.body}`)
    const { options, cookie } = await begin()
    const loggedIn = await finish({ ...authenticator.get(options), ...rest }, cookie)
    t.equal(loggedIn.json().user?.id, user.id, `${name}: ${loggedIn.body}`)
  }
})

t.test('16.3 a handle that is empty names nobody: it confirms a session, and logs nobody in', async (t) => {
  const { createUser, register, begin, finish, inject } = await open()
  const user = await createUser()
  const { authenticator } = await register(user)
  const { options, cookie } = await begin()
  const nobody = await finish(authenticator.get(options, { userHandle: '' }), cookie)
  t.strictSame([nobody.statusCode, nobody.json()], [401, REFUSED])
  const { headers } = user
  const stepUp = (await inject('POST', '/api/auth/step-up/options', { headers })).json()
  const credential = authenticator.get(stepUp, { userHandle: '' })
  const confirmed = await inject('POST', '/api/auth/step-up', { headers, payload: { credential } })
  t.equal(confirmed.statusCode, 200, confirmed.body)
})

nightly('16.3 a flood of options stores nothing, and failed logins of a network are limited', async (t) => {
  const limit = { burst: 10_000, perMinute: 10_000 }
  const usher = await openPasskeys(t, { throttle: { address: { burst: 5, perMinute: 0.01 }, account: limit } })
  const { createUser, register, begin, finish, inject, logIn } = usher
  const user = await createUser()
  const { authenticator } = await register(user)
  const sql = openSql(t, usher)
  const count = async () =>
    (await sql`select (select count(*) from used_ceremonies) + (select count(*) from throttle) as rows`)[0]!.rows
  const before = await count()
  for (let index = 0; index < 50; index++) await begin()
  t.equal(await count(), before)
  for (let index = 0; index < 20; index++) {
    t.equal((await logIn(authenticator)).statusCode, 200, 'a login does not count')
  }
  const statuses = []
  for (let index = 0; index < 6; index++) {
    const { options, cookie } = await begin()
    statuses.push((await finish(authenticator.get(options, { userVerified: false }), cookie)).statusCode)
  }
  t.strictSame(statuses, [401, 401, 401, 401, 401, 429])
  // A node rejects options from memory, for a few seconds after a flood.
  stopClock(t)
  const flood = await Promise.all(
    Array.from({ length: 25 }, () => finish(authenticator.get({ challenge: 'AAAA', rpId: 'example.com' })))
  )
  t.strictSame(flood.map(({ statusCode }) => statusCode), Array(25).fill(429))
  t.equal((await inject('POST', '/api/auth/login/passkey/options')).statusCode, 429, 'a flood gets no options')
})

t.test('16.3 a challenge logs in once, however many use it at the same time', async (t) => {
  const { createUser, register, begin, finish } = await open()
  const user = await createUser()
  const { authenticator } = await register(user)
  const { options, cookie } = await begin()
  const credential = authenticator.get(options)
  const statuses = (await Promise.all(Array.from({ length: 10 }, () => finish(credential, cookie)))).map(
    ({ statusCode }) => statusCode
  )
  t.strictSame(statuses.toSorted(), [200, ...Array(9).fill(401)])
  const tabs = [await begin(cookie), await begin(cookie)]
  t.strictSame(new Set(tabs.map(({ cookie }) => cookie)), new Set([cookie]), 'tabs share the cookie')
  for (const tab of tabs) t.equal((await finish(authenticator.get(tab.options), cookie)).statusCode, 200, 'two tabs')
})

t.test('16.3 a user has at most 20 passkeys, also if more are added at the same time', async (t) => {
  const { createUser, creationOptions, add, inject } = await open()
  const user = await createUser()
  const authenticator = new Authenticator({ origin: ORIGIN })
  const credentials = []
  for (let index = 0; index < 22; index++) credentials.push(authenticator.create(await creationOptions(user)))
  const results = await Promise.all(credentials.map((credential) => add(user, credential)))
  t.strictSame(results.map(({ statusCode }) => statusCode).toSorted(), [...Array(20).fill(201), 409, 409])
  t.equal(results.find(({ statusCode }) => statusCode === 409)!.json().code, 'TOO_MANY_PASSKEYS')
  t.equal(
    (await inject('POST', '/api/auth/passkeys/options', { headers: user.headers })).json().code, 'TOO_MANY_PASSKEYS'
  )
})

t.test('16.3 the last way to sign in cannot be removed, also by two requests at the same time', async (t) => {
  const usher = await open()
  const { createUser, register, inject, admin } = usher
  const user = await createUser()
  const ids = [(await register(user)).id, (await register(user)).id]
  await openSql(t, usher)`update users set password_hash = null where id = ${user.id}`
  const results = await Promise.all(
    ids.map((id) => inject('DELETE', `/api/auth/passkeys/${id}`, { headers: user.headers }))
  )
  t.strictSame(results.map(({ statusCode }) => statusCode).toSorted(), [204, 409])
  t.equal(results.find(({ statusCode }) => statusCode === 409)!.json().code, 'LAST_WAY_TO_SIGN_IN')
  const [{ id }] = (await inject('GET', '/api/auth/passkeys', { headers: user.headers })).json()
  t.equal(
    (await inject('DELETE', `/api/users/${user.id}/passkeys/${id}`, { headers: admin.headers })).json().code,
    'LAST_WAY_TO_SIGN_IN'
  )
})

nightly('16.3 a counter that goes back is logged and rejects nobody', async (t) => {
  const lines: string[] = []
  const logger = { level: 'warn', stream: { write: (line: string) => { lines.push(line) } } }
  const usher = await openPasskeys(t, {}, { logger })
  const { createUser, register, logIn } = usher
  const user = await createUser()
  const sql = openSql(t, usher)
  const stored = async () => (await sql`select counter::int, backed_up from passkeys where user_id = ${user.id}`)[0]
  const { authenticator } = await register(user, { backupEligible: false, counter: 5 })
  const login = async (behaviour: Behaviour) => t.equal((await logIn(authenticator, behaviour)).statusCode, 200)
  const warnings = () => lines.filter((line) => line.includes('A passkey has counted backwards')).length
  await login({ backupEligible: false, counter: 9 })
  t.match(await stored(), { counter: 9, backed_up: false })
  t.equal(warnings(), 0)
  await login({ backupEligible: false, counter: 3 })
  t.match(await stored(), { counter: 9, backed_up: false }, 'the highest one is kept')
  t.equal(warnings(), 1)
  await login({ counter: 0 })
  await login({ counter: 1, backedUp: false })
  await login({ counter: 1 })
  t.equal(warnings(), 1, 'a synced passkey has no counter')
  t.match(await stored(), { counter: 9, backed_up: true })
})

t.test('16.2 passkeys are added and removed after a recent authentication only', async (t) => {
  const usher = await open()
  const { createUser, register, creationOptions, add, inject } = usher
  const [user, admin] = [await createUser(), await createUser({ role: 'admin' })]
  const { id } = await register(user)
  const created = new Authenticator({ origin: ORIGIN }).create(await creationOptions(user))
  await openSql(t, usher)`update sessions set auth_time = now() - interval '1 hour' where user_id in (${user.id}, ${admin.id})`
  const requests = {
    options: await inject('POST', '/api/auth/passkeys/options', { headers: user.headers }),
    add: await add(user, created),
    remove: await inject('DELETE', `/api/auth/passkeys/${id}`, { headers: user.headers }),
    'remove by the other path': await inject(
      'DELETE', `/api/users/${user.id}/passkeys/${id}`, { headers: user.headers }
    ),
  }
  for (const [name, response] of Object.entries(requests)) {
    t.strictSame([response.statusCode, response.json().code], [403, 'STEP_UP_REQUIRED'], name)
  }
  t.equal((await inject('GET', '/api/auth/passkeys', { headers: user.headers })).json().length, 1)
  const removal = await inject('DELETE', `/api/users/${user.id}/passkeys/${id}`, { headers: admin.headers })
  t.equal(removal.statusCode, 204, 'an admin who acts upon others needs none')
})

t.test('16.3 an admin sees and removes the passkeys of others, which ends their sessions, and nobody else does', async (t) => {
  const { createUser, register, inject, admin } = await open()
  const [user, other] = [await createUser(), await createUser()]
  const { id } = await register(user)
  const path = `/api/users/${user.id}/passkeys`
  for (const [method, url] of [['GET', path], ['DELETE', `${path}/${id}`]] as const) {
    t.equal((await inject(method, url)).statusCode, 401)
    t.equal((await inject(method, url, { headers: other.headers })).statusCode, 403)
  }
  t.equal((await inject('GET', path, { headers: user.headers })).json()[0].id, id, 'the user')
  t.equal(
    (await inject('DELETE', `/api/auth/passkeys/${id}`, { headers: other.headers })).json().code, 'PASSKEY_NOT_FOUND'
  )
  t.equal(
    (await inject('PATCH', `/api/auth/passkeys/${id}`, { headers: other.headers, payload: { name: 'x' } })).json().code,
    'PASSKEY_NOT_FOUND'
  )
  t.equal(
    (await inject('DELETE', `/api/users/${other.id}/passkeys/${id}`, { headers: admin.headers })).json().code,
    'PASSKEY_NOT_FOUND'
  )
  t.equal((await inject('GET', path, { headers: admin.headers })).json()[0].id, id)
  t.equal((await inject('DELETE', `${path}/${id}`, { headers: admin.headers })).statusCode, 204)
  t.equal((await inject('GET', '/api/protected', { headers: user.headers })).statusCode, 401)
  t.equal((await inject(
    'GET', '/api/users/0190a5b4-7c3e-7d11-8000-000000000000/passkeys', { headers: admin.headers }
  )).json().code, 'USER_NOT_FOUND')
})

t.test('16.3 the owner gets a mail about a new passkey, with a link that removes it, and one about a removed passkey', async (t) => {
  const { createUser, register, logIn, inject, login } = await open()
  const user = await createUser()
  const kept = await register(user)
  const { authenticator } = await register(user)
  const [, mail] = await inbox.of(user.email, 2)
  t.equal(mail!.subject, 'A passkey was added to your account')
  const token = /#token=([\w-]{43})$/m.exec(mail!.text)![1]
  t.equal((await inject('POST', '/api/auth/undo', { payload: { token } })).statusCode, 204)
  t.equal((await inject('GET', '/api/protected', { headers: user.headers })).statusCode, 401, 'sessions have ended')
  t.equal((await logIn(authenticator)).statusCode, 401)
  t.equal((await logIn(kept.authenticator)).statusCode, 200, 'an earlier passkey remains')
  const again = await login(user)
  t.equal((await inject('DELETE', `/api/auth/passkeys/${kept.id}`, { headers: again.headers })).statusCode, 204)
  const mails = await inbox.of(user.email, 4)
  t.strictSame(
    [mails.at(-1)!.subject, mails.at(-1)!.text.includes('token')], ['A passkey was removed from your account', false]
  )
})

nightly('16.3 events say that a passkey was added and removed', async (t) => {
  const { usher, events } = await startWithEvents(t, { publicUrl: ORIGIN })
  const { createUser, register, inject } = withPasskeys(usher)
  const user = await createUser()
  const { id } = await register(user)
  await inject('DELETE', `/api/auth/passkeys/${id}`, { headers: user.headers })
  const about = () => events.filter(({ type }) => type.startsWith('credential.'))
  await until('two events', () => about().length === 2)
  const data = { userId: user.id, kind: 'passkey', actorId: user.id }
  t.match(
    about(),
    [{ type: 'credential.added', subject: user.id, data }, { type: 'credential.removed', subject: user.id, data }]
  )
})

// What happens between the verification of a passkey and its session, and whether there is a session then.
const races: Record<string, (sql: Sql, userId: string) => Promise<unknown>> = {
  'the passkey is removed': (sql, userId) => sql`delete from passkeys where user_id = ${userId}`,
  'the user is disabled': (sql, userId) => sql`update users set disabled = true where id = ${userId}`,
  'the user is deleted': (sql, userId) => sql`delete from users where id = ${userId}`,
  'the challenge is used': (sql) =>
    sql`insert into used_ceremonies select hash, now() + interval '1 hour' from (select ${usedHash}::bytea as hash) as used`,
}
let usedHash = Buffer.alloc(0)

// What waits for a login, and what it waits for then.
let race: { reached: () => void, released: Promise<void> } | undefined
const hooks: UsherOptions['hooks'] = {
  async beforeLogin () {
    race?.reached()
    await race?.released
  },
}

for (const [name, change] of Object.entries(races)) {
  t.test(`16.3 there is no session if ${name} during the login`, async (t) => {
    const usher = await sharedPasskeys({ hooks })
    const { createUser, register, begin, finish } = usher
    const user = await createUser()
    const { authenticator } = await register(user)
    const sql = openSql(t, usher)
    const sessions = async () =>
      (await sql`select count(*)::int as count from sessions where user_id = ${user.id} and 'pop' = any(amr)`)[0]!.count
    const { options, cookie } = await begin()
    usedHash = createHash('sha256').update(Buffer.from(options.challenge, 'base64url').subarray(0, 70)).digest()
    const reached = Promise.withResolvers<void>()
    const released = Promise.withResolvers<void>()
    race = { reached: reached.resolve, released: released.promise }
    const finishing = finish(authenticator.get(options), cookie)
    await reached.promise
    await change(sql, user.id)
    race = undefined
    released.resolve()
    const response = await finishing
    t.strictSame([response.statusCode, response.json()], [401, REFUSED])
    t.equal(await sessions(), 0)
  })
}

t.test('16.3 there is no passkey if the session ends during the registration', async (t) => {
  const usher = await open()
  const { createUser, creationOptions, add, inject } = usher
  const user = await createUser()
  const created = new Authenticator({ origin: ORIGIN }).create(await creationOptions(user))
  const sql = openSql(t, usher)
  let adding: ReturnType<typeof add> | undefined
  await sql.begin(async (locking) => {
    await locking`select from users where id = ${user.id} for no key update`
    adding = add(user, created)
    await untilBlocked(sql, usher)
    t.equal((await inject('POST', '/api/auth/logout', { headers: user.headers })).statusCode, 204)
  })
  t.equal((await adding!).statusCode, 401)
  t.strictSame([...await sql`select from passkeys where user_id = ${user.id}`], [])
})

t.test('10.4 a registration with an idempotency key is repeated with the same result', async (t) => {
  const { createUser, creationOptions, add, inject } = await open()
  const user = await createUser()
  const created = new Authenticator({ origin: ORIGIN }).create(await creationOptions(user))
  const key = { 'idempotency-key': 'once' }
  const first = await add(user, created, { name: 'Key' }, key)
  const second = await add(user, created, { name: 'Key' }, key)
  t.strictSame([second.statusCode, second.json(), second.headers['idempotency-replayed']], [201, first.json(), 'true'])
  t.equal((await add(user, created, { name: 'Other' }, key)).json().code, 'IDEMPOTENCY_KEY_REUSED')
  await inject('DELETE', `/api/auth/passkeys/${first.json().id}`, { headers: user.headers })
  t.equal((await add(user, created, { name: 'Key' }, key)).statusCode, 410)
})

for (const publicUrl of sample([undefined, 'http://example.com', 'https://192.0.2.1', 'https://[2001:db8::1]'], 1)) {
  t.test(`16.3 with ${publicUrl ?? 'no public URL'} there are passkeys on this machine only`, async (t) => {
    const { createUser, inject } = await createUsher(t, { publicUrl })
    const { headers } = await createUser()
    const ask = async (host: string) => {
      const { statusCode, body } = await inject('POST', '/api/auth/passkeys/options', { headers: { ...headers, host } })
      return statusCode === 200 ? JSON.parse(body).rp.id : JSON.parse(body).code
    }
    t.equal(await ask('example.com'), 'PASSKEYS_UNAVAILABLE')
    t.equal(await ask('localhost.example.com'), 'PASSKEYS_UNAVAILABLE')
    t.equal(await ask('localhost:3000'), publicUrl === undefined ? 'localhost' : 'PASSKEYS_UNAVAILABLE')
    t.equal(
      (await inject('POST', '/api/auth/login/passkey/options', { headers: { host: 'example.com' } })).statusCode, 409
    )
    t.strictSame((await inject('GET', '/.well-known/webauthn')).json(), { origins: [] })
  })
}

t.test('16.3 related origins are published for browsers', async (t) => {
  const origins = ['https://app.example.org', 'HTTPS://Other.example:443', 'capacitor://localhost', '*']
  const { inject } = await openPasskeys(t, { publicUrl: 'https://example.com/base', origins })
  const response = await inject('GET', '/.well-known/webauthn')
  t.strictSame(
    response.json(), { origins: ['https://example.com', 'https://app.example.org', 'https://other.example'] }
  )
  t.match(response.headers['content-type'], /^application\/json/)
  t.equal((await inject(
    'GET', '/.well-known/webauthn', { headers: { 'if-none-match': String(response.headers.etag) } }
  )).statusCode, 304)
})
