import type { FastifyInstance } from 'fastify'
import { decodeJwt } from 'jose'
import t, { type Test } from 'tap'
import type { UsherOptions } from '../../../app.ts'
import { InvalidToken } from '../../../schema/sign-in/login.ts'
import type { SecondFactorCode } from '../../../plugins/sign-in/totp/index.ts'
import type { LoggedIn } from '../../helpers/app.ts'
import { nightly } from '../../helpers/nightly.ts'
import { openSql } from '../../helpers/sql.ts'
import { callerOf, enrol, sharedNodes, sharedTotp } from '../../helpers/totp.ts'

type Scope = FastifyInstance

async function open (t: Test, options: UsherOptions = {}) {
  const usher = await sharedTotp(options)
  const user = await usher.createUser()
  const { one, two, clock } = await sharedNodes(usher)
  const app = await enrol(one, await callerOf(one, user), clock)
  clock.pass(2)
  return { usher, one, two, user, app, clock, sql: openSql(t, usher) }
}

const strangerOf = (scope: Scope) => scope.usherAccess.createCaller({
  via: 'rest', actor: null, address: '203.0.113.9', userAgent: 'test', log: scope.log, client: { destroyed: false },
})

/** Sends the password. Returns the challenge for the second factor. */
async function challengeOf (scope: Scope, { email, password }: LoggedIn): Promise<string> {
  const login = scope.usherSignIn.login.withPassword(strangerOf(scope), { email, password, replaced: undefined })
  return login.then(() => { throw new InvalidToken() }, (error) => error.challenge)
}

/** Completes a login. Returns the session, or the code of the error. */
async function complete (scope: Scope, challenge: string, given: SecondFactorCode) {
  const { login, totp } = scope.usherSignIn
  const caller = strangerOf(scope)
  return login.withSecondFactor(
    caller, { challenge, replaced: undefined }, (userId) => totp.prove(caller, userId, given)
  )
    .then(({ token }) => ({ amr: decodeJwt(token)['amr'] }), (error) => error.code as string)
}

t.test('16.4 a login is completed by a code, or by a recovery code', async (t) => {
  const { one, two, user, app } = await open(t)
  t.strictSame(await complete(two, await challengeOf(one, user), { code: app.code() }), { amr: ['pwd', 'otp', 'mfa'] })
  t.equal(
    await complete(one, await challengeOf(one, user), { code: app.code() }),
    'INVALID_SECOND_FACTOR',
    'a code works once'
  )
  const recoveryCode = app.recoveryCodes[0]!
  t.strictSame(await complete(one, await challengeOf(one, user), { recoveryCode }), { amr: ['pwd', 'otp', 'mfa'] })
  t.equal(await complete(one, await challengeOf(one, user), { recoveryCode }), 'INVALID_SECOND_FACTOR')
})

t.test('16.4 of 100 concurrent logins with one code on two nodes, one succeeds', async (t) => {
  const { one, two, user, app, sql } = await open(t)
  await sql`delete from sessions where user_id = ${user.id}`
  const challenges = await Promise.all(Array.from({ length: 10 }, () => challengeOf(one, user)))
  const logins = Array.from(
    { length: 100 }, (_, index) => complete([one, two][index % 2]!, challenges[index % 10]!, { code: app.code() })
  )
  t.equal((await Promise.all(logins)).filter((result) => typeof result === 'object').length, 1)
  t.equal((await sql`select from sessions where user_id = ${user.id}`).length, 1)
})

t.test('16.4 of 100 concurrent logins with one recovery code on two nodes, one succeeds', async (t) => {
  const { one, two, user, app, sql } = await open(t)
  await sql`delete from sessions where user_id = ${user.id}`
  const challenges = await Promise.all(Array.from({ length: 10 }, () => challengeOf(one, user)))
  const recoveryCode = app.recoveryCodes[0]!
  const logins = Array.from(
    { length: 100 }, (_, index) => complete([one, two][index % 2]!, challenges[index % 10]!, { recoveryCode })
  )
  t.equal((await Promise.all(logins)).filter((result) => typeof result === 'object').length, 1)
  t.equal((await sql`select from sessions where user_id = ${user.id}`).length, 1)
  t.equal((await sql`select from recovery_codes where user_id = ${user.id}`).length, 9)
})

t.test('16.4 a challenge allows five attempts, however many arrive at once', async (t) => {
  const { one, two, user, app } = await open(t)
  const challenge = await challengeOf(one, user)
  const results = await Promise.all(
    Array.from({ length: 40 }, (_, index) => complete([one, two][index % 2]!, challenge, { code: '000000' }))
  )
  t.equal(results.filter((result) => result === 'INVALID_SECOND_FACTOR').length, 5)
  t.equal(results.filter((result) => result === 'INVALID_CHALLENGE').length, 35)
  t.equal(await complete(one, challenge, { code: app.code() }), 'INVALID_CHALLENGE', 'the right code comes too late')
  t.type(await complete(one, await challengeOf(one, user), { code: app.code() }), 'object')
})

t.test('16.4 new challenges do not give an attacker who knows the password more attempts', async (t) => {
  const { one, user, sql } = await open(t, { throttle: { secondFactor: { burst: 5, perMinute: 0.01 } } })
  const results: unknown[] = []
  for (let login = 0; login < 3; login++) {
    const challenge = await challengeOf(one, user)
    for (let attempt = 0; attempt < 4; attempt++) results.push(await complete(one, challenge, { code: '000000' }))
  }
  t.equal(results.filter((result) => result === 'INVALID_SECOND_FACTOR').length, 5)
  t.same(results.slice(5), Array(7).fill('TOO_MANY_REQUESTS'))
  const entries = await sql`select from audit where action = 'login.second-factor-failed' and user_id = ${user.id}`
  t.equal(entries.length, 5)
})

t.test('16.4 the challenge of one user does not take the code of another', async (t) => {
  const { usher, one, user, app, clock } = await open(t)
  const other = await usher.createUser()
  const theirs = await enrol(one, await callerOf(one, other), clock)
  clock.pass(2)
  const challenge = await challengeOf(one, user)
  t.equal(await complete(one, challenge, { code: theirs.code() }), 'INVALID_SECOND_FACTOR')
  t.equal(await complete(one, challenge, { recoveryCode: theirs.recoveryCodes[0]! }), 'INVALID_SECOND_FACTOR')
  t.type(await complete(one, challenge, { code: app.code() }), 'object')
})

t.test('16.4 when the second factor is reset, logins that wait for it are void, and the password is enough', async (t) => {
  const { usher, one, user, app } = await open(t)
  const challenge = await challengeOf(one, user)
  await usher.app.usher.credentials.resetSecondFactor(user.id)
  t.equal(await complete(one, challenge, { code: app.code() }), 'INVALID_CHALLENGE')
  t.equal(await complete(one, challenge, { recoveryCode: app.recoveryCodes[0]! }), 'INVALID_CHALLENGE')
  await usher.login(user)
})

nightly('16.4 logins and resets of the second factor that run at once never lock each other', async (t) => {
  const { usher, one, two, user, app, clock } = await open(t)
  let current = app
  for (let round = 0; round < 10; round++) {
    const challenge = await challengeOf(one, user)
    const [login] = await Promise.all([
      complete(
        two, challenge, round % 2 === 0 ? { code: current.code() } : { recoveryCode: current.recoveryCodes[0]! }
      ),
      usher.app.usher.credentials.resetSecondFactor(user.id),
    ])
    t.ok(typeof login === 'object' || ['INVALID_CHALLENGE', 'INVALID_SECOND_FACTOR', 'INVALID_CREDENTIALS']
      .includes(login), `${JSON.stringify(login)}`)
    const again = await usher.login(user)
    current = await enrol(one, await callerOf(one, again), clock)
    clock.pass()
  }
})
