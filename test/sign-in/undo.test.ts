import { randomBytes, randomUUID } from 'node:crypto'
import type { FastifyInstance } from 'fastify'
import t, { type Test } from 'tap'
import type { UsherOptions } from '../../app.ts'
import { actorOf } from '../helpers/actor.ts'
import type { LoggedIn, TestUsher } from '../helpers/app.ts'
import { sharedInbox as inbox, tokenIn } from '../helpers/mail.ts'
import { nightly } from '../helpers/nightly.ts'
import { openSql } from '../helpers/sql.ts'
import { callerOf, enrol, sharedNodes, sharedTotp, type TestClock } from '../helpers/totp.ts'
import { until } from '../helpers/until.ts'

// The clock belongs to the test: on a busy machine, one of the file would be too late for tokens of the last test.
async function open (t: Test, options: UsherOptions = {}) {
  const usher = await sharedTotp(options)
  const { one: scope, clock } = await sharedNodes(usher)
  return { usher, scope, clock, sql: openSql(t, usher), credentials: usher.app.usher.credentials }
}

// Adds a passkey, as its route does.
async function addPasskey (
  scope: FastifyInstance, user: Pick<LoggedIn, 'id' | 'token'>, name = 'a key'
): Promise<string> {
  const { usherSignIn: { credentials }, usherDatabase: { db } } = scope
  const caller = await callerOf(scope, user)
  const id = randomUUID()
  await db.transaction().execute(async (trx) => {
    await credentials.recordAdded(trx, caller, 'passkey')
    await trx.insertInto('passkeys').values({
      id,
      user_id: user.id,
      credential_id: randomBytes(16),
      public_key: randomBytes(77),
      counter: '0',
      transports: [],
      name,
      backed_up: true,
    }).execute()
  })
  return id
}

const enrolApp = async (scope: FastifyInstance, user: Pick<LoggedIn, 'token'>, clock: TestClock) =>
  enrol(scope, await callerOf(scope, user), clock)

const undo = async ({ inject }: TestUsher, token: string) =>
  (await inject('POST', '/api/auth/undo', { payload: { token } })).statusCode

const isLive = async ({ inject }: TestUsher, { headers }: Pick<LoggedIn, 'headers'>) =>
  (await inject('GET', '/api/protected', { headers })).statusCode === 200

const actionsOf = async ({ inject, admin }: TestUsher, { id }: Pick<LoggedIn, 'id'>) => {
  const entries =
    (await inject('GET', `/api/audit?user=${id}`, { headers: admin.headers })).json() as { action: string }[]
  return entries.map(({ action }) => action)
}

t.test('11.3, 16.4 the owner is mailed a link that removes an authenticator app', async (t) => {
  const { usher, scope, clock, credentials } = await open(t)
  const user = await usher.createUser()
  const other = await usher.login(user)
  await enrolApp(scope, user, clock)
  await until('sessions that were started without a code have ended', async () => !await isLive(usher, other))
  t.ok(await isLive(usher, user))
  const [mail] = await inbox.of(user.email, 1)
  t.match(mail, {
    subject: 'An authenticator app was added to your account',
    text: /It removes what was added since/,
    html: /Undo the change/,
  })
  t.equal((await credentials.list(user.id)).recoveryCodesLeft, 10)
  t.equal(await undo(usher, tokenIn(mail!)), 204)
  t.same(await credentials.list(user.id), {
    password: true, totp: null, recoveryCodesLeft: 0, passkeys: [], identities: [],
  })
  t.notOk(await isLive(usher, user))
  t.equal(await undo(usher, tokenIn(mail!)), 400, 'once')
  t.same(
    (await inbox.of(user.email, 2)).map(({ subject }) => subject).slice(1),
    ['The authenticator app was removed from your account']
  )
  t.same((await actionsOf(usher, user)).slice(0, 4), ['totp.remove', 'user.undo-change', 'step-up', 'totp.add'])
  await usher.login(user)
})

t.test('11.3, 16.3 and one that removes a passkey', async (t) => {
  const { usher, scope, credentials } = await open(t)
  const user = await usher.createUser()
  await addPasskey(scope, user, 'first')
  const [first] = await inbox.of(user.email, 1)
  t.match(first, { subject: 'A passkey was added to your account', text: /can log in without a password/ })
  await addPasskey(scope, user, 'second')
  const second = (await inbox.of(user.email, 2))[1]!
  t.same((await credentials.list(user.id)).passkeys.map(({ name }) => name), ['second', 'first'])
  t.equal(await undo(usher, tokenIn(second)), 204)
  t.match(
    (await credentials.list(user.id)).passkeys,
    [{ name: 'first', lastUsedAt: null, backedUp: true }],
    'what was added before stays'
  )
  t.equal(await undo(usher, tokenIn(first!)), 204)
  t.same((await credentials.list(user.id)).passkeys, [])
})

t.test('11.3 the link of an earlier change removes what a thief has added since, and nothing that was there before', async (t) => {
  const { usher, scope, clock, credentials } = await open(t)
  const user = await usher.createUser()
  await enrolApp(scope, user, clock)
  await addPasskey(scope, user, 'of the owner')
  await inbox.of(user.email, 2)
  const payload = { currentPassword: user.password, password: `new ${randomUUID()}` }
  t.equal((await usher.inject('PUT', '/api/auth/password', { headers: user.headers, payload })).statusCode, 204)
  const mails = await inbox.of(user.email, 3)
  await addPasskey(scope, user, 'of the thief')
  const caller = await callerOf(scope, user)
  const stolen = await scope.usherSignIn.totp.createRecoveryCodes(caller)
  t.equal(await undo(usher, tokenIn(mails[2]!)), 204)
  const left = await credentials.list(user.id)
  t.ok(left.totp)
  t.same(left.passkeys.map(({ name }) => name), ['of the owner'])
  t.equal(left.recoveryCodesLeft, 10, 'those of the owner work again')
  const { usherSignIn: { totp }, usherDatabase: { db } } = scope
  for (const code of stolen) t.notOk(await totp.useRecoveryCode(db, user.id, code), 'the thief has read the new codes')
})

t.test('11.3 an app that a thief has prepared before the change and confirmed after it is removed as well', async (t) => {
  const { usher, scope, clock, credentials, sql } = await open(t)
  const user = await usher.createUser()
  const caller = await callerOf(scope, user)
  const { secret } = await scope.usherSignIn.totp.start(caller)
  await sql`update totp set created_at = now() - interval '1 minute' where user_id = ${user.id}`
  await addPasskey(scope, user)
  const [mail] = await inbox.of(user.email, 1)
  const { codeOf } = await import('../../plugins/sign-in/totp/codes.ts')
  await scope.usherSignIn.totp.confirm(caller, codeOf(secret, Math.floor(clock.now / 30_000)))
  t.equal(await undo(usher, tokenIn(mail!)), 204)
  t.same(await credentials.list(user.id), {
    password: true, totp: null, recoveryCodesLeft: 0, passkeys: [], identities: [],
  })
})

t.test('16.4 users without a password may have an app, and undo it', async (t) => {
  const { usher, scope, clock, credentials } = await open(t)
  const { id, email } = await usher.app.usher.users.create({ name: 'Invited', email: `${randomUUID()}@example.com` })
  const { token } = await usher.app.usher.sessions.start(id)
  await enrolApp(scope, { token }, clock)
  t.ok((await credentials.list(id)).totp)
  const [mail] = await inbox.of(email!, 1)
  t.equal(await undo(usher, tokenIn(mail!)), 204)
  t.equal((await credentials.list(id)).totp, null)
  t.same(
    (await usher.inject('POST', `/api/users/${id}/invitation`, { headers: usher.admin.headers })).statusCode,
    202,
    'there is still no password'
  )
})

nightly('16.4 whoever has lost the device is helped by the host', async (t) => {
  const { usher, scope, clock, credentials, sql } = await open(
    t, { throttle: { secondFactor: { burst: 1, perMinute: 0.01 } } }
  )
  const user = await usher.createUser()
  await enrolApp(scope, user, clock)
  const key = await addPasskey(scope, user)
  const links = (await inbox.of(user.email, 2)).map(tokenIn)
  const { totp } = scope.usherSignIn
  const caller = await callerOf(scope, user)
  await totp.prove(caller, user.id, { code: '000000' }).catch(() => {})
  await credentials.resetSecondFactor(user.id)
  t.match(
    await credentials.list(user.id), { password: true, totp: null, recoveryCodesLeft: 0, passkeys: [{ id: key }] }, 'passkeys stay'
  )
  t.notOk(await isLive(usher, user))
  t.same([await undo(usher, links[0]!), await undo(usher, links[1]!)], [400, 400], 'links in mails are void')
  t.equal((await inbox.of(user.email, 3)).at(-1)!.subject, 'The authenticator app was removed from your account')
  t.notMatch((await inbox.of(user.email, 3)).at(-1)!.text, /undo/i, 'without a link')
  t.equal((await sql`select from throttle where key like 'second-factor%'`).length, 0, 'wrong codes are forgiven')
  t.same((await actionsOf(usher, user))[0], 'totp.remove')

  const again = await usher.login(user)
  await credentials.resetSecondFactor(user.id)
  t.ok(await isLive(usher, again), 'there is nothing to remove')
  await t.rejects(credentials.resetSecondFactor(randomUUID()), { code: 'USER_NOT_FOUND' })
  await t.rejects(credentials.list('nobody'), { code: 'USER_NOT_FOUND' })
})

t.test('16.3 a host sees and removes passkeys', async (t) => {
  const { usher, scope, credentials } = await open(t)
  const [user, other] = [await usher.createUser(), await usher.createUser()]
  const id = await addPasskey(scope, user)
  for (const wrong of ['', 'nothing', '%', randomUUID()]) {
    await t.rejects(credentials.removePasskey(user.id, wrong), { code: 'PASSKEY_NOT_FOUND' })
  }
  await t.rejects(credentials.removePasskey(other.id, id), { code: 'PASSKEY_NOT_FOUND' }, 'that of somebody else')
  await credentials.removePasskey(user.id, id)
  t.same((await credentials.list(user.id)).passkeys, [])
  t.match((await inbox.of(user.email, 2)).at(-1), { subject: 'A passkey was removed from your account' })
})

t.test('16.4 on behalf of an actor, admins see and reset everybody, and others see only their own', async (t) => {
  const { usher, scope, clock, credentials } = await open(t)
  const [user, other] = [await usher.createUser(), await usher.createUser()]
  await enrolApp(scope, user, clock)
  const [own, stranger, admin] = await Promise.all([user, other, usher.admin].map((each) => actorOf(usher, each)))
  t.ok((await credentials.list(user.id, { actor: own! })).totp)
  t.ok((await credentials.list(user.id, { actor: admin! })).totp)
  await t.rejects(credentials.list(user.id, { actor: stranger! }), { code: 'FORBIDDEN' })
  await t.rejects(credentials.list(user.id, { actor: null }), { code: 'UNAUTHENTICATED' })
  await t.rejects(
    credentials.resetSecondFactor(user.id, { actor: own! }), { code: 'FORBIDDEN' }, 'a thief of the session must not'
  )
  await t.rejects(credentials.removePasskey(user.id, randomUUID(), { actor: stranger! }), { code: 'FORBIDDEN' })
  await credentials.resetSecondFactor(user.id, { actor: admin! })
  t.equal((await credentials.list(user.id)).totp, null)
})

t.test('12.5 events say what was added and removed, and by whom', async (t) => {
  const { usher, scope, clock, credentials } = await open(t)
  const user = await usher.createUser()
  const seen: object[] = []
  for (const name of ['credential.added', 'credential.removed'] as const) {
    usher.app.usher.on(name, ({ type, subject, data }) => { if (subject === user.id) seen.push({ type, ...data }) })
  }
  await enrolApp(scope, user, clock)
  await addPasskey(scope, user)
  await credentials.resetSecondFactor(user.id)
  await until('three events', () => seen.length === 3)
  const of = { userId: user.id }
  t.strictSame(seen, [
    { type: 'credential.added', ...of, kind: 'totp', actorId: user.id },
    { type: 'credential.added', ...of, kind: 'passkey', actorId: user.id },
    { type: 'credential.removed', ...of, kind: 'totp', actorId: null },
  ])
})
