import { decodeJwt } from 'jose'
import t from 'tap'
import { codeOf } from '../../../plugins/sign-in/totp/codes.ts'
import { createUsher, type LoggedIn, type TestUsher } from '../../helpers/app.ts'
import { sharedInbox as inbox, tokenIn } from '../../helpers/mail.ts'
import { openSql } from '../../helpers/sql.ts'
import { sharedTotp } from '../../helpers/totp.ts'
import { until } from '../../helpers/until.ts'

const usher = await sharedTotp()
const sql = openSql(t, usher, 4)
const { inject, createUser, login } = usher

const bearer = (token: string) => ({ authorization: `Bearer ${token}` })
const now = (secret: string, steps = 0) => codeOf(secret, Math.floor(Date.now() / 30_000) + steps)
type User = Pick<LoggedIn, 'headers'>
const start = (user: User, { inject }: TestUsher = usher) => inject('POST', '/api/auth/totp', { headers: user.headers })
const confirm = (user: User, payload: object, { inject }: TestUsher = usher) =>
  inject('POST', '/api/auth/totp/confirm', { headers: user.headers, payload })
const remove = ({ headers }: User) => inject('DELETE', '/api/auth/totp', { headers })
const createCodes = ({ headers }: User) => inject('POST', '/api/auth/recovery-codes', { headers })
const read = async ({ headers }: User) => (await inject('GET', '/api/auth/second-factor', { headers })).json()
const NONE = { password: true, totp: null, recoveryCodesLeft: 0, passkeys: 0, mail: false, providers: [] }
const age = ({ id }: LoggedIn) => sql`update sessions set auth_time = now() - interval '1 hour' where user_id = ${id}`

/** Sets up an app. Returns the user with the new token. */
async function enrol (user: LoggedIn, on: TestUsher = usher) {
  const { secret } = (await start(user, on)).json()
  const response = await confirm(user, { code: now(secret) }, on)
  const { recoveryCodes, token } = response.json()
  return { ...user, secret, recoveryCodes, token, headers: bearer(token) }
}

t.test('16.4 an app is set up with a secret, an address and a QR code, and is active once a code confirms it', async (t) => {
  const user = await createUser()
  const other = await login(user)
  t.strictSame(await read(user), NONE)
  const started = await start(user)
  t.equal(started.statusCode, 200)
  t.equal(started.headers['cache-control'], 'no-store')
  const { secret, uri, qrCode } = started.json()
  t.match(secret, /^[A-Z2-7]{32}$/)
  const label = `Vault%20%26%20Co:${encodeURIComponent(user.email)}`
  t.equal(uri, `otpauth://totp/${label}?secret=${secret}&issuer=Vault%20%26%20Co&algorithm=SHA1&digits=6&period=30`)
  t.match(qrCode, /^<svg [^>]*>.*<\/svg>$/)
  t.notMatch(qrCode, /script|href|<style/i)
  t.strictSame(await read(user), NONE, 'not yet')
  await login(user)

  const wrong = await confirm(user, { code: '000000' })
  t.strictSame([wrong.statusCode, wrong.json().code], [403, 'WRONG_SECOND_FACTOR'])
  const confirmed = await confirm(user, { code: now(secret) })
  t.equal(confirmed.statusCode, 200)
  const { recoveryCodes, token } = confirmed.json()
  t.equal(recoveryCodes.length, 10)
  t.strictSame([decodeJwt(token).sid, decodeJwt(token).amr], [decodeJwt(user.token).sid, ['mfa', 'otp', 'pwd']])
  const headers = bearer(token)
  t.match(await read({ headers }), { totp: { confirmedAt: /^20.*Z$/ }, recoveryCodesLeft: 10, passkeys: 0 })
  t.equal(
    (await inject('GET', '/api/protected', { headers: other.headers })).statusCode, 401, 'other sessions have ended'
  )
  const login2 = await inject('POST', '/api/auth/login', { payload: { email: user.email, password: user.password } })
  t.match(login2.json(), { code: 'SECOND_FACTOR_REQUIRED', methods: ['totp', 'recovery-code'] })
})

t.test('16.4 a secret that was not confirmed is replaced, and the former one is void', async (t) => {
  const user = await createUser()
  const { secret: former } = (await start(user)).json()
  const { secret } = (await start(user)).json()
  t.equal((await confirm(user, { code: now(former) })).statusCode, 403)
  t.equal((await confirm(user, { code: now(secret) })).statusCode, 200)
})

t.test('16.4 a second app is set up only when the first one was removed', async (t) => {
  const user = await enrol(await createUser())
  for (const response of [await start(user), await confirm(user, { code: now(user.secret, 1) })]) {
    t.strictSame([response.statusCode, response.json().code], [409, 'TOTP_ACTIVE'])
  }
  t.equal((await remove(user)).statusCode, 204)
  t.strictSame(await read(user), NONE)
  const again = await remove(user)
  t.strictSame([again.statusCode, again.json().code], [404, 'TOTP_NOT_FOUND'])
  t.equal((await createCodes(user)).json().code, 'TOTP_NOT_FOUND')
  t.equal((await confirm(user, { code: now(user.secret, 1) })).json().code, 'TOTP_NOT_FOUND')
  await login(user)
  t.same((await inbox.of(user.email, 2)).map(({ subject }) => subject).sort(), [
    'An authenticator app was added to your account', 'The authenticator app was removed from your account',
  ])
})

t.test('16.4 removing an app that was not confirmed tells nobody', async (t) => {
  const user = await createUser()
  await start(user)
  t.equal((await remove(user)).statusCode, 204)
  t.equal((await sql`select from audit where user_id = ${user.id} and action like 'totp%'`).length, 0)
})

t.test('16.4 new recovery codes make the earlier ones void', async (t) => {
  const user = await enrol(await createUser())
  const { recoveryCodes } = (await createCodes(user)).json()
  t.equal(new Set([...recoveryCodes, ...user.recoveryCodes]).size, 20)
  t.equal((await read(user)).recoveryCodesLeft, 10)
  t.equal(await loginWith(user, user.recoveryCodes[0]), 401, 'an earlier one')
  t.equal(await loginWith(user, recoveryCodes[0]), 200)
})

/** Logs in with the password and a recovery code. Returns the status. */
async function loginWith ({ email, password }: LoggedIn, recoveryCode: string): Promise<number> {
  const { challenge } = (await inject('POST', '/api/auth/login', { payload: { email, password } })).json()
  return (await inject('POST', '/api/auth/login/second-factor', { payload: { challenge, recoveryCode } })).statusCode
}

const undo = (token: string) => inject('POST', '/api/auth/undo', { payload: { token } })

t.test('16.4 the owner gets a mail about new recovery codes, whose link removes them and restores the unused former ones', async (t) => {
  const user = await enrol(await createUser())
  const [used, kept, another] = user.recoveryCodes
  t.equal(await loginWith(user, used), 200)
  const { recoveryCodes: stolen } = (await createCodes(user)).json()
  const mails = await inbox.of(user.email, 3)
  t.match(mails.at(-1), { subject: 'New recovery codes were created for your account', text: /The former recovery codes .* work again/ })
  const first = tokenIn(mails.at(-1)!)
  t.equal(await loginWith(user, stolen[0]), 200, 'by a thief of the session')
  const { recoveryCodes: again } = (await createCodes(user)).json()
  t.equal((await read(user)).recoveryCodesLeft, 10)
  t.equal((await undo(first)).statusCode, 204)
  for (const code of [...stolen, ...again]) t.equal(await loginWith(user, code), 401, 'what was created since')
  t.equal(await loginWith(user, used), 401, 'one that was used before')
  t.equal(await loginWith(user, kept), 200)
  t.equal(await loginWith(user, kept), 401, 'once')
  t.equal((await sql`select from recovery_codes where user_id = ${user.id}`).length, 8)
  t.ok(another)
})

t.test('16.4 an undo of another change restores recovery codes, too, and one of a later change keeps the new ones', async (t) => {
  const user = await enrol(await createUser())
  const changed = await inject('PUT', '/api/auth/password', {
    headers: user.headers, payload: { currentPassword: user.password, password: 'another long password' },
  })
  t.equal(changed.statusCode, 204)
  const before = await inbox.token(user.email, 2)
  await createCodes(user)
  t.equal((await undo(before)).statusCode, 204)
  t.equal(await loginWith(user, user.recoveryCodes[0]), 200)

  const other = await enrol(await createUser())
  const { recoveryCodes } = (await createCodes(other)).json()
  await inbox.of(other.email, 2)
  const password = 'another long password'
  await inject('PUT', '/api/auth/password', { headers: other.headers, payload: { currentPassword: other.password, password } })
  t.equal((await undo(await inbox.token(other.email, 3))).statusCode, 204)
  t.equal(await loginWith(other, other.recoveryCodes[0]), 401)
  t.equal(await loginWith(other, recoveryCodes[0]), 200)
})

t.test('16.4 replaced recovery codes are kept only as long as a link can restore them', async (t) => {
  const user = await enrol(await createUser())
  for (let round = 0; round < 14; round++) await createCodes(user)
  const rows = async () => (await sql`select from recovery_codes where user_id = ${user.id}`).length
  // At most ten links undo changes, and the first one is that of the app.
  t.equal(await rows(), 100)
  await sql`update recovery_codes set replaced_at = now() - interval '8 days' where user_id = ${user.id} and replaced_at is not null`
  await createUsher(t, usher.options)
  await until('they are deleted', async () => await rows() === 10)
})

t.test('16.2 a stolen session neither adds nor removes a second factor, nor creates recovery codes', async (t) => {
  const [victim, protectedUser] = [await createUser(), await enrol(await createUser())]
  await Promise.all([age(victim), age(protectedUser)])
  const responses = [
    await start(victim), await confirm(victim, { code: '000000' }), await confirm(victim, {}),
    await remove(protectedUser), await createCodes(protectedUser), await start(protectedUser),
  ]
  for (const response of responses) {
    t.strictSame([response.statusCode, response.json().code], [403, 'STEP_UP_REQUIRED'])
    t.match(response.headers['www-authenticate'], /insufficient_user_authentication/)
  }
  t.ok((await read(protectedUser)).totp)
})

t.test('16.2 nor does a session with the first factor only, however recent it is', async (t) => {
  const user = await enrol(await createUser())
  await sql`update sessions set amr = '{pwd}' where user_id = ${user.id}`
  for (const response of [await remove(user), await createCodes(user)]) {
    t.equal(response.json().code, 'STEP_UP_REQUIRED')
  }
})

t.test('1.2, 1.5 hostile input gets 400 and 401', async (t) => {
  const user = await createUser()
  await start(user)
  const wrong = [
    {}, { code: 123456 }, { code: null }, { code: ['1'] }, { code: '1\u0000' }, { code: 'x'.repeat(65) }, [],
  ]
  for (const payload of wrong) {
    t.equal((await confirm(user, payload)).statusCode, 400, JSON.stringify(payload).slice(0, 30))
  }
  for (const code of ['', '-', '１２３４５６', "' or 1=1", '1e5', '-00001']) {
    t.equal((await confirm(user, { code })).statusCode, 403, code)
  }
  t.equal((await confirm(user, { code: '1', padding: 'x'.repeat(2_000_000) })).statusCode, 413)
  const routes = [
    ['GET', '/api/auth/second-factor'], ['POST', '/api/auth/totp'], ['DELETE', '/api/auth/totp'],
    ['POST', '/api/auth/recovery-codes'],
  ] as const
  for (const [method, path] of routes) {
    t.equal((await inject(method, path)).statusCode, 401)
    t.equal(
      (await inject(method, path, { headers: { cookie: user.cookie } })).statusCode, 401, 'a cookie is not enough'
    )
  }
})

t.test('1.6 a host decides who may change the second factor', async (t) => {
  const { inject: ask, createUser } = await createUsher(
    t, { policy: { 'second-factor:change': ({ role }) => role === 'admin' } }
  )
  const { headers } = await createUser()
  t.equal((await ask('POST', '/api/auth/totp', { headers })).json().code, 'FORBIDDEN')
  t.equal((await ask('GET', '/api/auth/second-factor', { headers })).statusCode, 200)
})

t.test('10.4 nothing is stored for an Idempotency-Key, because the responses contain secrets', async (t) => {
  const user = await createUser()
  const headers = { ...user.headers, 'idempotency-key': 'one' }
  const [first, second] = [
    await inject('POST', '/api/auth/totp', { headers }), await inject('POST', '/api/auth/totp', { headers }),
  ]
  t.not(first.json().secret, second.json().secret)
  t.notOk(second.headers['idempotency-replayed'])
  const { token } =
    (await inject('POST', '/api/auth/totp/confirm', { headers, payload: { code: now(second.json().secret) } })).json()
  t.equal((await inject(
    'POST', '/api/auth/recovery-codes', { headers: { ...bearer(token), 'idempotency-key': 'one' } }
  )).statusCode, 200)
  t.equal((await sql`select from idempotency_keys`).length, 0)
})

t.test('16.4 of 100 concurrent confirmations with the same code, one succeeds', async (t) => {
  const user = await createUser()
  const { secret } = (await start(user)).json()
  const code = now(secret)
  const responses = await Promise.all(Array.from({ length: 100 }, () => confirm(user, { code })))
  const codes = responses.map((response) => response.statusCode)
  t.equal(codes.filter((status) => status === 200).length, 1)
  t.same([...new Set(codes)].sort(), [200, 409])
  t.equal((await sql`select from recovery_codes where user_id = ${user.id}`).length, 10)
  t.equal((await inbox.of(user.email, 1)).length, 1)
})

t.test('16.4 while an app is confirmed, the session ends: no second factor remains', async (t) => {
  const user = await createUser()
  const { secret } = (await start(user)).json()
  await inject('POST', '/api/auth/logout', { headers: user.headers })
  t.equal((await confirm(user, { code: now(secret) })).statusCode, 401)
  await login(user)
})

t.test('11.3 the owner undoes an app that a thief has added, and logs in with the password', async (t) => {
  const user = await createUser()
  const thief = await enrol(user)
  const token = tokenIn((await inbox.of(user.email, 1))[0]!)
  t.equal((await inject('POST', '/api/auth/undo/check', { payload: { token } })).statusCode, 204)
  t.equal((await inject('POST', '/api/auth/undo', { payload: { token } })).statusCode, 204)
  t.equal((await inject('GET', '/api/protected', { headers: thief.headers })).statusCode, 401)
  await login(user)
})
