import { decodeJwt } from 'jose'
import t from 'tap'
import { codeOf } from '../../../plugins/sign-in/totp/codes.ts'
import type { LoggedIn } from '../../helpers/app.ts'
import { openSql } from '../../helpers/sql.ts'
import { sharedTotp } from '../../helpers/totp.ts'

const usher = await sharedTotp()
const { inject, createUser, register, begin } = usher
const sql = openSql(t, usher)
const bearer = (token: string) => ({ authorization: `Bearer ${token}` })
const step = () => Math.floor(Date.now() / 30_000)

/** Creates a user with an authenticator app. `next` is a code that was not used yet. */
async function createProtected () {
  const user = await createUser()
  const { secret } = (await inject('POST', '/api/auth/totp', { headers: user.headers })).json()
  const used = step()
  const confirmed = await inject(
    'POST', '/api/auth/totp/confirm', { headers: user.headers, payload: { code: codeOf(secret, used) } }
  )
  const { recoveryCodes, token } = confirmed.json() as { recoveryCodes: string[], token: string }
  return { ...user, headers: bearer(token), recoveryCodes, next: () => codeOf(secret, used + 1) }
}

const challengeOf = async ({ email, password }: Pick<LoggedIn, 'email' | 'password'>): Promise<string> =>
  (await inject('POST', '/api/auth/login', { payload: { email, password } })).json().challenge
const complete = (payload: object, cookie?: string) =>
  inject('POST', '/api/auth/login/second-factor', { payload, headers: cookie === undefined ? {} : { cookie } })
const stepUp = (user: Pick<LoggedIn, 'headers'>, payload: object) =>
  inject('POST', '/api/auth/step-up', { headers: user.headers, payload })
const age = ({ id }: Pick<LoggedIn, 'id'>) =>
  sql`update sessions set auth_time = now() - interval '1 hour' where user_id = ${id}`

t.test('16.4 the code of the app completes a login, once, with the response of any login', async (t) => {
  const user = await createProtected()
  const challenge = await challengeOf(user)
  const wrong = await complete({ challenge, code: '000000' })
  t.strictSame([wrong.statusCode, wrong.json().code], [401, 'INVALID_SECOND_FACTOR'])
  const response = await complete({ challenge, code: user.next() })
  t.equal(response.statusCode, 200)
  t.match(response.json(), { token: String, tokenType: 'Bearer', expiresIn: 900, user: { id: user.id } })
  t.match(response.headers['set-cookie'], /^usher_session=/)
  t.strictSame(decodeJwt(response.json().token).amr, ['pwd', 'otp', 'mfa'])
  const again = await complete({ challenge, code: user.next() })
  t.strictSame([again.statusCode, again.json().code], [401, 'INVALID_CHALLENGE'])
  const other = await complete({ challenge: await challengeOf(user), code: user.next() })
  t.equal(other.json().code, 'INVALID_SECOND_FACTOR', 'the code was used')
})

t.test('16.4 a recovery code completes a login, also if ten clients send it at once: one gets a session', async (t) => {
  const user = await createProtected()
  const challenges = []
  for (let count = 0; count < 10; count++) challenges.push(await challengeOf(user))
  const [recoveryCode] = user.recoveryCodes
  const responses = await Promise.all(challenges.map((challenge) => complete({ challenge, recoveryCode })))
  t.equal(responses.filter(({ statusCode }) => statusCode === 200).length, 1)
  t.strictSame((await inject('GET', '/api/auth/second-factor', { headers: user.headers })).json().recoveryCodesLeft, 9)
})

t.test('16.4 a recovery code may be typed in the digits of another script and in full width, with spaces', async (t) => {
  const user = await createProtected()
  const withDigits = user.recoveryCodes.filter((code) => /\d/.test(code))
  const writeFrom = (zero: number) => (code: string) =>
    code.replaceAll(/\d/g, (digit) => String.fromCodePoint(zero + Number(digit))).replaceAll('-', ' ')
  const toFullWidth = (code: string) =>
    code.replaceAll(/[a-z\d]/g, (character) => String.fromCodePoint(character.codePointAt(0)! + 0xfee0))
      .replaceAll('-', '\u3000')
  for (const [index, write] of [writeFrom(0x660), writeFrom(0x6f0), toFullWidth].entries()) {
    const recoveryCode = ` ${write(withDigits[index]!)} `
    const { statusCode } = await complete({ challenge: await challengeOf(user), recoveryCode })
    t.equal(statusCode, 200, recoveryCode)
  }
})

t.test('16.4 a challenge has five attempts', async (t) => {
  const user = await createProtected()
  const challenge = await challengeOf(user)
  for (let count = 0; count < 5; count++) {
    t.equal((await complete({ challenge, code: '000000' })).json().code, 'INVALID_SECOND_FACTOR')
  }
  t.equal((await complete({ challenge, code: user.next() })).json().code, 'INVALID_CHALLENGE')
})

t.test('16.4 a passkey of the user is a second factor, in the browser that has got its options, and that of another user is not', async (t) => {
  const [user, other] = [await createProtected(), await createProtected()]
  const { authenticator, id } = await register(user as never)
  const { authenticator: foreign } = await register(other as never)
  t.match(
    (await inject('POST', '/api/auth/login', { payload: user })).json().methods, ['totp', 'recovery-code', 'passkey']
  )

  const challenge = await challengeOf(user)
  const mine = await begin()
  const theirs = await begin()
  t.equal(
    (await complete({ challenge, passkey: foreign.get(theirs.options) }, theirs.cookie)).json().code,
    'INVALID_SECOND_FACTOR'
  )
  t.equal(
    (await complete({ challenge, passkey: authenticator.get(mine.options) }, theirs.cookie)).json().code,
    'INVALID_SECOND_FACTOR'
  )
  const response = await complete({ challenge, passkey: authenticator.get(mine.options) }, mine.cookie)
  t.equal(response.statusCode, 200)
  t.strictSame(decodeJwt(response.json().token).amr, ['pwd', 'pop', 'user', 'mfa'])
  const replayed = await complete(
    { challenge: await challengeOf(user), passkey: authenticator.get(mine.options) }, mine.cookie
  )
  t.equal(replayed.json().code, 'INVALID_SECOND_FACTOR')

  await sql`delete from passkeys where id = ${id}`
  const fresh = await begin()
  const removed = await complete(
    { challenge: await challengeOf(user), passkey: authenticator.get(fresh.options) }, fresh.cookie
  )
  t.equal(removed.json().code, 'INVALID_SECOND_FACTOR')
})

t.test('16.3 whoever has an app and a passkey logs in by the passkey alone, which counts as both factors', async (t) => {
  const user = await createProtected()
  const { authenticator } = await register(user as never)
  const { options, cookie } = await begin()
  const response = await usher.finish(authenticator.get(options), cookie)
  t.equal(response.statusCode, 200)
  t.strictSame(decodeJwt(response.json().token).amr, ['pop', 'user', 'mfa'])
})

t.test('16.2 a code, a recovery code and a passkey authenticate the user of a session once more', async (t) => {
  const user = await createProtected()
  const { authenticator } = await register(user as never)
  const options = await inject('POST', '/api/auth/step-up/options', { headers: user.headers })
  const credential = authenticator.get(options.json())
  for (const payload of [{ code: user.next() }, { recoveryCode: user.recoveryCodes[0] }, { credential }]) {
    await age(user)
    t.equal(
      (await inject('POST', '/api/auth/recovery-codes', { headers: user.headers })).json().code, 'STEP_UP_REQUIRED'
    )
    const response = await stepUp(user, payload)
    t.equal(response.statusCode, 200, Object.keys(payload)[0]!)
    t.ok((decodeJwt(response.json().token)['amr'] as string[]).includes('mfa'))
    const [{ count } = { count: 0 }] = await sql<{ count: number }[]>`
      select count(*)::int from sessions where user_id = ${user.id} and auth_time > now() - interval '1 minute'`
    t.equal(count, 1)
    const again = await stepUp(user, payload)
    t.strictSame([again.statusCode, again.json().code], [403, 'WRONG_SECOND_FACTOR'], 'once')
  }
  const log = await sql`select action from audit where user_id = ${user.id} and action like 'step-up%'`
  t.strictSame(
    log.map(({ action }) => action).sort(),
    [...Array(4).fill('step-up'), ...Array(3).fill('step-up.failed')],
    'adding the app is one, too'
  )
})

t.test('16.2 a passkey of another session or of another user does not step up', async (t) => {
  const [user, other] = [await createProtected(), await createProtected()]
  const { authenticator } = await register(user as never)
  const foreign = await inject('POST', '/api/auth/step-up/options', { headers: other.headers })
  t.equal((await stepUp(user, { credential: authenticator.get(foreign.json()) })).json().code, 'WRONG_SECOND_FACTOR')
  const own = await inject('POST', '/api/auth/step-up/options', { headers: other.headers })
  t.equal((await stepUp(other, { credential: authenticator.get(own.json()) })).json().code, 'WRONG_SECOND_FACTOR')
})

t.test('16.1 16.4 hostile bodies get 400 or 401, and a disabled or deleted user no session', async (t) => {
  const user = await createProtected()
  const challenge = await challengeOf(user)
  const bodies = [
    {}, [], { challenge }, { code: '123456' }, { challenge, code: '123456', recoveryCode: 'x' },
    { challenge: 5, code: '123456' }, { challenge, code: 123456 }, { challenge, code: 'x'.repeat(1000) },
    { challenge, passkey: {} }, { challenge, passkey: { id: 'x' } },
  ]
  for (const body of bodies) t.equal((await complete(body)).statusCode, 400, JSON.stringify(body).slice(0, 60))
  t.equal((await complete({ challenge: 'x'.repeat(43), code: '123456' })).json().code, 'INVALID_CHALLENGE')
  for (const body of [{ password: 'x', code: '1' }, { code: null }, { credential: 'x' }]) {
    t.equal((await stepUp(user, body)).statusCode, 400, JSON.stringify(body))
  }
  await sql`update users set disabled = true where id = ${user.id}`
  t.equal((await complete({ challenge, code: user.next() })).json().code, 'INVALID_CHALLENGE')
  await sql`update users set disabled = false where id = ${user.id}`
  const late = await challengeOf(user)
  await sql`delete from users where id = ${user.id}`
  t.equal((await complete({ challenge: late, code: user.next() })).json().code, 'INVALID_CHALLENGE')
})

t.test('16.1 a challenge is void after the password was changed', async (t) => {
  const user = await createProtected()
  const challenge = await challengeOf(user)
  const changed = await inject('PUT', '/api/auth/password', {
    headers: user.headers, payload: { currentPassword: user.password, password: 'quiet lantern river' },
  })
  t.equal(changed.statusCode, 204)
  const response = await complete({ challenge, code: user.next() })
  t.strictSame([response.statusCode, response.json().code], [401, 'INVALID_CHALLENGE'])
})
