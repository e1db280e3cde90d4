import t from 'tap'
import { SECOND_FACTOR_OF_ACCOUNT, limitKey } from '../../../db/throttle/throttle.ts'
import type { UsherOptions } from '../../../app.ts'
import { sharedInbox as inbox } from '../../helpers/mail.ts'
import { openSql } from '../../helpers/sql.ts'
import { callerOf, enrol, sharedNodes, sharedTotp } from '../../helpers/totp.ts'

const strict: UsherOptions = { throttle: { secondFactor: { burst: 5, perMinute: 0.01 } } }

// Two nodes with the same clock, and a user with an authenticator app.
async function open (options: UsherOptions = {}) {
  const usher = await sharedTotp(options)
  const user = await usher.createUser()
  const { one, two, clock } = await sharedNodes(usher)
  const caller = await callerOf(one, user)
  const app = await enrol(one, caller, clock)
  const { db } = one.usherDatabase
  // The code of the enrolment was used.
  clock.pass(2)
  return { usher, one, two, user, caller, app, db, clock, totp: one.usherSignIn.totp }
}

t.test('16.4 a code works once, on any node, and not after a later one', async (t) => {
  const { one, two, user, app, db, clock } = await open()
  const use = (scope: typeof one, code: string) => scope.usherSignIn.totp.useCode(db, user.id, code)
  const code = app.code()
  t.same([await use(one, code), await use(one, code), await use(two, code)], [true, false, false])
  clock.pass()
  t.notOk(await use(two, code), 'in the step after its own, in which it would be accepted for the first time')
  t.ok(await use(two, app.code(1)), 'the clock of the device is ahead by a step')
  t.notOk(await use(one, app.code(0)), 'a code that was skipped')
  clock.pass(3)
  t.ok(await use(one, app.code(-1)), 'behind by a step')
  clock.pass(4)
  t.same([await use(one, app.code(2)), await use(one, app.code(-2))], [false, false], 'two steps are too many')
})

t.test('16.4 of 100 concurrent uses of one code on two nodes, one succeeds', async (t) => {
  const { one, two, user, app, db } = await open()
  const uses =
    Array.from({ length: 100 }, (_, index) => [one, two][index % 2]!.usherSignIn.totp.useCode(db, user.id, app.code()))
  t.equal((await Promise.all(uses)).filter(Boolean).length, 1)
})

t.test('16.4 of 100 concurrent uses of one recovery code on two nodes, one succeeds', async (t) => {
  const { one, two, user, app, db } = await open()
  const [code] = app.recoveryCodes as [string]
  const uses =
    Array.from({ length: 100 }, (_, index) =>
      [one, two][index % 2]!.usherSignIn.totp.useRecoveryCode(db, user.id, code))
  t.equal((await Promise.all(uses)).filter(Boolean).length, 1)
})

t.test('16.4 there are ten recovery codes of 80 bits, each of which works once, however it is spelled', async (t) => {
  const { user, app, db, totp } = await open()
  const { recoveryCodes: codes } = app
  t.equal(codes.length, 10)
  for (const code of codes) t.match(code, /^[a-z2-7]{4}(-[a-z2-7]{4}){3}$/)
  const spell = [
    (code: string) => code, (code: string) => code.toUpperCase(), (code: string) => code.replaceAll('-', ''),
    (code: string) => code.replaceAll('-', ' '), (code: string) => ` ${code.replaceAll('-', '–')}\t`,
  ]
  for (const [index, as] of spell.entries()) {
    t.ok(await totp.useRecoveryCode(db, user.id, as(codes[index]!)), as('code-code'))
    t.notOk(await totp.useRecoveryCode(db, user.id, codes[index]!), 'once')
  }
  for (const wrong of ['', 'aaaa-aaaa-aaaa-aaaa', codes[9]!.slice(1), `${codes[9]}a`]) {
    t.notOk(await totp.useRecoveryCode(db, user.id, wrong), wrong)
  }
})

t.test('16.4 codes are those of their own user only', async (t) => {
  const { usher, one, user, app, db, totp, clock } = await open()
  const other = await usher.createUser()
  const { recoveryCodes } = await enrol(one, await callerOf(one, other), clock)
  clock.pass(2)
  t.notOk(await totp.useCode(db, other.id, app.code()))
  t.notOk(await totp.useRecoveryCode(db, user.id, recoveryCodes[0]!))
  t.notOk(await totp.useCode(db, (await usher.createUser()).id, app.code()), 'somebody without an app')
})

t.test('16.4 secrets are encrypted with the secret of the node, for their user, and recovery codes hashed', async (t) => {
  const { usher, user, app, db, one, totp, clock } = await open()
  const sql = openSql(t, usher)
  const [{ secret }] = await sql<[{ secret: string }]>`select secret from totp where user_id = ${user.id}`
  t.match(secret, /^sealed1\./)
  t.notMatch(
    JSON.stringify(await sql`select * from totp join recovery_codes using (user_id) where user_id = ${user.id}`), new RegExp(`${app.secret}|${app.recoveryCodes[0]}`)
  )
  const other = await usher.createUser()
  await enrol(one, await callerOf(one, other), clock)
  await sql`update totp set secret = ${secret} where user_id = ${other.id}`
  clock.pass(2)
  await t.rejects(totp.useCode(db, other.id, app.code()), { code: 'INTERNAL_ERROR' }, 'not that of another user')
})

t.test('16.4 wrong codes are limited for each user, on all nodes, and right ones are not counted', async (t) => {
  const { usher, one, two, user, caller, app, db, clock } = await open(strict)
  const attempt = (code: string, scope = one) => scope.usherSignIn.totp.prove(caller, user.id, { code })
    .then((proof) => proof.consume(db)).then(() => 'right', (error) => error.code)
  for (let count = 0; count < 8; count++) {
    t.equal(await attempt(app.code()), 'right')
    clock.pass()
  }
  const attempts = Array.from({ length: 100 }, (_, index) => attempt('000000', [one, two][index % 2]))
  const results = Map.groupBy(await Promise.all(attempts), (result) => result)
  t.same([results.get('INVALID_SECOND_FACTOR')?.length, results.get('TOO_MANY_REQUESTS')?.length], [5, 95])
  t.same(
    [await attempt(app.code()), await attempt(app.code(), two)],
    ['TOO_MANY_REQUESTS', 'TOO_MANY_REQUESTS'],
    'the right one, too'
  )
  const recovery = one.usherSignIn.totp.prove(caller, user.id, { recoveryCode: app.recoveryCodes[0]! })
  await t.rejects(recovery, { code: 'TOO_MANY_REQUESTS' }, 'recovery codes count with them')
  const sql = openSql(t, usher)
  t.equal((await sql`select from throttle where key = ${limitKey(SECOND_FACTOR_OF_ACCOUNT, [user.id])}`).length, 1)
})

t.test('11.6 when the password is reset, wrong codes are forgiven', async (t) => {
  const { usher, one, user, caller, app } = await open(strict)
  const { inject } = usher
  const sql = openSql(t, usher)
  // A reset removes an app of which the owner of the mailbox may not know.
  await sql`update users set email_verified = true where id = ${user.id}`
  await sql`update totp set confirmed_at = confirmed_at - interval '8 days' where user_id = ${user.id}`
  const prove = () =>
    one.usherSignIn.totp.prove(caller, user.id, { code: app.code() }).then(() => 'right', (error) => error.code)
  for (let count = 0; count < 5; count++) {
    await one.usherSignIn.totp.prove(caller, user.id, { code: '000000' }).catch(() => {})
  }
  t.equal(await prove(), 'TOO_MANY_REQUESTS')
  await inject('POST', '/api/auth/password-reset', { payload: { email: user.email } })
  const mail = (await inbox.of(user.email, 2)).find(({ subject }) => /password/i.test(subject))!
  const token = /#token=([\w-]{43})$/m.exec(mail.text)![1]
  const { statusCode } = await inject(
    'POST', '/api/auth/password-reset/confirm', { payload: { token, password: 'quiet lantern river' } }
  )
  t.equal(statusCode, 204)
  t.equal(await prove(), 'right')
})

t.test('16.4 a recovery code that is used is in the account log, and its user gets a mail', async (t) => {
  const { usher, one, user, caller, app, db } = await open()
  const { consume, amr } = await one.usherSignIn.totp.prove(caller, user.id, { recoveryCode: app.recoveryCodes[3]! })
  t.strictSame(amr, ['otp', 'mfa'])
  const twice = await one.usherSignIn.totp.prove(caller, user.id, { recoveryCode: app.recoveryCodes[3]! })
  await db.transaction().execute((trx) => consume(trx))
  await t.rejects(
    db.transaction().execute((trx) => twice.consume(trx)),
    { code: 'INVALID_SECOND_FACTOR' },
    'it was right when it was checked'
  )
  const mail =
    (await inbox.of(user.email, 2)).find(({ subject }) => subject === 'A recovery code of your account was used')
  t.match(mail, { text: /request a link to set a new password/ })
  const entries = (await usher.inject(
    'GET', `/api/audit?user=${user.id}&action=recovery-code.use`, { headers: usher.admin.headers }
  )).json()
  t.match(entries, [{ userId: user.id, address: '203.0.113.1' }])
  t.equal(entries.length, 1)
})
