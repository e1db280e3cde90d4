import t, { type Test } from 'tap'
import { decrypt, encrypt } from '../../../db/sign-in/encryption.ts'
import { listSigningKeys, reencryptSigningKeys, rotateSigningKey } from '../../../db/access/signing-keys.ts'
import { reencryptTotp, sealTotp } from '../../../db/sign-in/totp/totp.ts'
import { createUsher, type TestUsher } from '../../helpers/app.ts'
import { openSql } from '../../helpers/sql.ts'
import { callerOf, createTestClock, enrol, openAuth, type Authenticator } from '../../helpers/totp.ts'
import { until } from '../../helpers/until.ts'

const FORMER = 'the former secret of the nodes'
const SECRET = 'the new secret of the nodes'
const clock = createTestClock()

// A user with an authenticator app, whose secret is encrypted with the former secret.
async function open (t: Test) {
  // Tests of other files may have run since this one was loaded.
  Object.assign(clock, { now: createTestClock().now })
  const usher = await createUsher(t, { secret: FORMER })
  const user = await usher.createUser()
  const scope = await openAuth(t, usher, clock)
  const app = await enrol(scope, await callerOf(scope, user), clock)
  return { usher, user, app, scope, db: scope.usherDatabase.db, sql: openSql(t, usher) }
}

// Uses a new code on a node with other secrets.
async function use (t: Test, { options }: TestUsher, secrets: object, userId: string, app: Authenticator) {
  clock.pass(2)
  const { usherDatabase: { db }, usherSignIn: { totp } } = await openAuth(
    t, { options: { ...options, secret: undefined, ...secrets } } as TestUsher, clock
  )
  return totp.useCode(db, userId, app.code())
}

t.test('4, 16.4 a text that is encrypted for one purpose cannot be decrypted for another', async (t) => {
  const text = encrypt(SECRET, 'a name', 'the text', 'totp')
  t.equal(decrypt(SECRET, 'a name', text, 'totp'), 'the text')
  t.throws(() => decrypt(SECRET, 'a name', text))
  // A text that was written once, because its form must not change.
  const former = 'sealed1.j9XYeWwZv78Z3y-LhPyxm29GAyksqRKl-eQUdN6ACZDtTHVMqdQysxn2IlD4d3MJZYe3wQ'
  t.equal(decrypt(SECRET, 'a name', former), 'the text')
  t.throws(() => decrypt(SECRET, 'a name', former, 'totp'))
})

t.test('16.4 SECRET is changed without locking anybody out', async (t) => {
  const { usher, user, app, db, sql } = await open(t)
  const secrets = { secret: SECRET, formerSecret: FORMER }
  t.ok(await use(t, usher, secrets, user.id, app), 'a node with both secrets')
  t.ok(await use(t, usher, { secret: FORMER, formerSecret: SECRET }, user.id, app), 'and one that only prepares for it')

  await rotateSigningKey(db, { secret: SECRET, tokenSeconds: 900 })
  await reencryptSigningKeys(db, secrets)
  t.strictSame(await reencryptTotp(db, secrets), { encrypted: 1, unreadable: 0 })
  t.strictSame(await reencryptTotp(db, secrets), { encrypted: 0, unreadable: 0 }, 'once')
  t.equal((await listSigningKeys(db)).length, 2)
  t.ok(await use(t, usher, { secret: SECRET }, user.id, app), 'the former one is not needed any more')
  await sql`update totp set secret = ${app.secret}`
  t.strictSame(
    await reencryptTotp(db, { secret: SECRET }), { encrypted: 1, unreadable: 0 }, 'one that was stored without a secret'
  )
  t.ok(await use(t, usher, { secret: SECRET }, user.id, app))
})

t.test('16.4 if the former secret is lost, recovery codes work, and the log says what is wrong', async (t) => {
  const { usher, user, app, db } = await open(t)
  await rotateSigningKey(db, { secret: SECRET, tokenSeconds: 900, leadSeconds: 0, revoke: true })
  t.strictSame(await reencryptTotp(db, { secret: SECRET }), { encrypted: 0, unreadable: 1 })
  await t.rejects(use(t, usher, { secret: SECRET }, user.id, app), {
    code: 'INTERNAL_ERROR',
    cause: { message: 'usher: secret must be the one that the secrets of authenticator apps are encrypted with' },
  })
  const { usherSignIn: { totp } } = await openAuth(
    t, { options: { ...usher.options, secret: SECRET } } as TestUsher, clock
  )
  t.ok(await totp.useRecoveryCode(db, user.id, app.recoveryCodes[0]!))
})

t.test('16.4 a code is accepted while its secret is encrypted anew', async (t) => {
  const { user, app, scope, db, sql } = await open(t)
  clock.pass(2)
  let using: Promise<boolean> | undefined
  await sql.begin(async (trx) => {
    await trx`update totp set secret = ${sealTotp({ secret: FORMER }, user.id, app.secret)}`
    using = scope.usherSignIn.totp.useCode(db, user.id, app.code())
    await until('the code waits', async () => (await sql`
      select from pg_stat_activity where wait_event_type = 'Lock' and query like '%last_step%' and datname = current_database()`).length > 0)
  })
  t.ok(await using)
})

t.test('16.4 more secrets than one statement changes are encrypted anew', async (t) => {
  const { usher, user, app, db, sql } = await open(t)
  await sql`insert into users (id, name, email, role) select gen_random_uuid(), 'n', 'n' || number || '@example.com', 'user' from generate_series(1, 2100) as number`
  await sql`insert into totp (user_id, secret, confirmed_at) select id, ${app.secret}, now() from users where name = 'n'`
  const secrets = { secret: SECRET, formerSecret: FORMER }
  t.strictSame(await reencryptTotp(db, secrets), { encrypted: 2101, unreadable: 0 })
  t.same(await sql`select count(*)::int as plain from totp where secret not like 'sealed1.%'`, [{ plain: 0 }])
  t.strictSame(await reencryptTotp(db, { secret: SECRET }), { encrypted: 0, unreadable: 0 })
  t.ok(await use(t, usher, secrets, user.id, app))
})
