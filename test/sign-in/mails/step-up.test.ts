import { decodeJwt } from 'jose'
import t from 'tap'
import { createUsher, sharedUsher, type LoggedIn } from '../../helpers/app.ts'
import { createMailer, sharedInbox, tokenIn } from '../../helpers/mail.ts'
import { nightly } from '../../helpers/nightly.ts'
import { ORIGIN, withPasskeys } from '../../helpers/passkeys.ts'
import { openSql } from '../../helpers/sql.ts'

const inbox = createMailer()
const usher = await createUsher(t, { mailer: inbox.mailer, publicUrl: ORIGIN, loginMail: true })
const { inject, createUser, admin } = usher
const sql = openSql(t, usher)
const bearer = (token: string) => ({ authorization: `Bearer ${token}` })
const WRONG = { error: 'The second factor is wrong', code: 'WRONG_SECOND_FACTOR' }

/** Makes the authentication of a user's sessions older than any limit. */
const age = ({ id }: { id: string }) =>
  sql`update sessions set auth_time = now() - interval '1 hour' where user_id = ${id}`
const stepUp = ({ headers }: Pick<LoggedIn, 'headers'>, payload: object) =>
  inject('POST', '/api/auth/step-up', { headers, payload })
const factorsOf = async ({ headers }: Pick<LoggedIn, 'headers'>) =>
  (await inject('GET', '/api/auth/second-factor', { headers })).json()
const deleteOwn = async ({ id, headers }: Pick<LoggedIn, 'id' | 'headers'>) =>
  (await inject('DELETE', `/api/users/${id}`, { headers })).statusCode

async function createVerified (): Promise<LoggedIn> {
  const user = await createUser()
  await sql`update users set email_verified = true where id = ${user.id}`
  return user
}

/** Logs in a user without a password, by mail. */
async function createWithoutPassword (): Promise<LoggedIn> {
  const user = await createVerified()
  await sql`update users set password_hash = null where id = ${user.id}`
  await inject('POST', '/api/auth/login/mail', { payload: { email: user.email } })
  const token = tokenIn((await inbox.of(user.email, 1))[0]!)
  const response = await inject('POST', '/api/auth/login/mail/confirm', { payload: { token } })
  return { ...user, headers: bearer(response.json().token) }
}

/** Asks for a code. `count` is the number of mails to the user so far, this one included. */
async function ask ({ headers, email }: Pick<LoggedIn, 'headers' | 'email'>, count: number) {
  const response = await inject('POST', '/api/auth/step-up/mail', { headers })
  t.equal(response.statusCode, 202)
  const { text } = (await inbox.of(email, count))[count - 1]!
  return { id: response.json().id as string, code: /^\d{4} \d{4}$/m.exec(text)![0], text }
}

t.test('16.2 a user without a password steps up by the code of a mail, once, in the session that asked for it', async (t) => {
  const user = await createWithoutPassword()
  t.strictSame(await factorsOf(user), {
    password: false, totp: null, recoveryCodesLeft: 0, passkeys: 0, mail: true, providers: [],
  })
  await age(user)
  t.equal(await deleteOwn(user), 403)
  t.equal((await stepUp(user, { password: 'any' })).json().code, 'WRONG_PASSWORD')
  const { id, code, text } = await ask(user, 2)
  t.match(text, /within 10 minutes:\n\n\d{4} \d{4}\n\n/)
  t.notMatch(text, /http/, 'there is no link that somebody could use elsewhere')
  const { token } = await usher.app.usher.sessions.start(user.id, { amr: [] })
  t.strictSame((await stepUp({ headers: bearer(token) }, { mail: { id, code } })).json(), WRONG, 'another session')
  t.strictSame((await stepUp(user, { mail: { id: 'another', code } })).json(), WRONG)
  t.equal((await inject('POST', '/api/auth/login/mail/confirm', { payload: { code, loginId: id } })).statusCode, 401)
  t.equal((await inject('POST', '/api/auth/login/mail/confirm', { payload: { token: id } })).statusCode, 400,
    'it logs nobody in')

  const response = await stepUp(user, { mail: { id, code } })
  t.equal(response.statusCode, 200)
  const claims = decodeJwt(response.json().token)
  t.strictSame([claims.sid, claims.amr], [decodeJwt(user.headers.authorization.slice(7)).sid, ['email']])
  t.strictSame((await stepUp(user, { mail: { id, code } })).json(), WRONG, 'once')
  t.equal(await deleteOwn({ ...user, headers: bearer(response.json().token) }), 204)
  const actions = (await sql`select action from audit where user_id = ${user.id} and action like 'step-up%' order by id`)
    .map(({ action }) => action)
  t.strictSame(actions, [
    'step-up.failed', 'step-up.mail-request', 'step-up.failed', 'step-up.failed', 'step-up', 'step-up.failed',
  ])
})

t.test('16.2 codes of a mail to step up: five attempts, the last three mails, a hundred uses at once', async (t) => {
  const user = await createWithoutPassword()
  const first = await ask(user, 2)
  for (let attempt = 0; attempt < 5; attempt++) {
    t.equal((await stepUp(user, { mail: { id: first.id, code: '1' } })).statusCode, 403)
  }
  t.strictSame((await stepUp(user, { mail: first })).json(), WRONG)
  const mails: { id: string, code: string }[] = []
  for (let count = 3; count < 7; count++) mails.push(await ask(user, count))
  t.strictSame((await stepUp(user, { mail: { id: mails[0]!.id, code: mails[0]!.code } })).json(), WRONG)
  const uses = await Promise.all(Array.from({ length: 100 }, () =>
    stepUp(user, { mail: { id: mails[1]!.id, code: mails[1]!.code } })))
  t.equal(uses.filter(({ statusCode }) => statusCode === 200).length, 1)
  t.equal((await stepUp(user, { mail: { id: mails[3]!.id, code: mails[3]!.code } })).statusCode, 200)
})

t.test('16.2 a mail does not replace the second factor, and goes to verified addresses only', async (t) => {
  const user = await createVerified()
  const waiting = await ask(user, 1)
  await sql`insert into totp (user_id, secret, confirmed_at) values (${user.id}, 'x', now())`
  t.equal((await factorsOf(user)).mail, false)
  const refused = await inject('POST', '/api/auth/step-up/mail', { headers: user.headers })
  t.strictSame([refused.statusCode, refused.json().code], [403, 'SECOND_FACTOR_MISSING'])
  t.equal((await stepUp(user, { mail: waiting })).json().code, 'SECOND_FACTOR_MISSING')

  const unverified = await createUser()
  t.equal((await factorsOf(unverified)).mail, false)
  const response = await inject('POST', '/api/auth/step-up/mail', { headers: unverified.headers })
  t.strictSame([response.statusCode, response.json().code], [409, 'EMAIL_NOT_VERIFIED'])
  t.equal((await inject('POST', '/api/auth/step-up/mail')).statusCode, 401)
})

t.test('16.2 a code to step up is void after another address, a repair, and the end of its session', async (t) => {
  const changes: ((user: LoggedIn) => Promise<unknown>)[] = [
    ({ id }) => sql`update users set email = 'x' || email where id = ${id}`,
    ({ id }) => inject('DELETE', `/api/users/${id}/sessions`, { headers: admin.headers }),
    ({ headers }) => inject('POST', '/api/auth/logout', { headers }),
  ]
  for (const change of changes) {
    const user = await createVerified()
    const { id, code } = await ask(user, 1)
    await change(user)
    t.ok([401, 403].includes((await stepUp(user, { mail: { id, code } })).statusCode))
  }
})

t.test('16.2 where a mail logs in, the address is a way to sign in: another one needs step-up, the same does not', async (t) => {
  const user = await createVerified()
  await age(user)
  const change = (payload: object) =>
    inject('PATCH', `/api/users/${user.id}`, { headers: user.headers, payload })
  const refused = await change({ email: 'thief@example.com' })
  t.strictSame([refused.statusCode, refused.json().code], [403, 'STEP_UP_REQUIRED'])
  t.equal((await change({ name: 'Ada', email: user.email.toUpperCase() })).statusCode, 200)
  t.equal((await inject('PATCH', `/api/users/${user.id}`, {
    headers: admin.headers, payload: { email: `admin-${user.email}` },
  })).statusCode, 200, 'admins need none for others')

  const own = await sharedUsher({ mailer: sharedInbox.mailer })
  const other = await own.createUser()
  await openSql(t, own)`update sessions set auth_time = now() - interval '1 hour' where user_id = ${other.id}`
  t.equal((await own.inject('PATCH', `/api/users/${other.id}`, {
    headers: other.headers, payload: { email: `new-${other.email}` },
  })).statusCode, 200, 'without login by mail, as ever')
})

nightly('16.3 where a mail logs in, a verified address is a way to sign in, so that the last passkey can be removed', async (t) => {
  const passkeys = withPasskeys(usher)
  const remove = async (user: LoggedIn, { id }: { id: string }) =>
    (await inject('DELETE', `/api/auth/passkeys/${id}`, { headers: user.headers })).statusCode
  const [verified, unverified] = [await createVerified(), await createUser()]
  for (const user of [verified, unverified]) await sql`update users set password_hash = null where id = ${user.id}`
  t.equal(await remove(verified, await passkeys.register(verified)), 204)
  t.equal(await remove(unverified, await passkeys.register(unverified)), 409)
  // If the operator switches it off later, such a user gets in by a link that sets a password.
  const off = await createUsher(t, { ...usher.options, loginMail: false })
  await off.inject('POST', '/api/auth/password-reset', { payload: { email: verified.email } })
  const mails = await inbox.of(verified.email, 3)
  const payload = { token: tokenIn(mails.at(-1)!), password: 'quiet lantern river' }
  t.equal((await off.inject('POST', '/api/auth/password-reset/confirm', { payload })).statusCode, 204)
})
