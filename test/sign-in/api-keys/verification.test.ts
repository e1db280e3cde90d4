import { randomUUID } from 'node:crypto'
import t from 'tap'
import { createApiKeyVerification } from '../../../plugins/sign-in/api-keys/verification.ts'
import { createClaims } from '../../../plugins/access/claims.ts'
import { createWriters } from '../../../plugins/access/writers.ts'
import { slow } from '../../helpers/deadlines.ts'
import { createKey, createService } from '../../helpers/api-keys.ts'
import { createUsher, sharedUsher, type TestUsher } from '../../helpers/app.ts'
import { openCore } from '../../helpers/core.ts'
import { testDatabaseUrl } from '../../helpers/database.ts'
import { nightly } from '../../helpers/nightly.ts'
import { startWithEvents } from '../../helpers/outbox-events.ts'
import { createProxy } from '../../helpers/proxy.ts'
import { openSql } from '../../helpers/sql.ts'
import { createTestClock, openAuth } from '../../helpers/totp.ts'
import { until } from '../../helpers/until.ts'

const statusOf = async ({ inject }: TestUsher, headers: { authorization: string }) =>
  (await inject('GET', '/api/protected', { headers })).statusCode

nightly('17.2 a node that missed the end of a key asks, also if that is longer ago than a token lives', async (t) => {
  const proxy = await createProxy(t, await testDatabaseUrl())
  const one = await createUsher(t)
  const sql = openSql(t, one)
  const changes: string[] = []
  const note = ({ msg }: { msg: string }) => { if (msg.startsWith('The notifications')) changes.push(msg) }
  const logger = { level: 'info', stream: { write: (line: string) => note(JSON.parse(line)) } }
  const deadlines = { ...slow, databaseAnswer: 2000, databaseAnswerMax: 3000, databaseConnect: 2000 }
  const two = await createUsher(t, { ...one.options, notificationsUrl: proxy.url, deadlines }, { logger })
  const user = await one.createUser()
  const [kept, asked, missed] = [await createKey(one, user), await createKey(one, user), await createKey(one, user)]
  for (const { headers } of [kept, asked, missed]) t.equal(await statusOf(two, headers), 200)
  await proxy.refuse()
  await until('it is noticed', () => changes.length === 1)
  await sql`delete from api_keys where id in ${sql([asked.id, missed.id])}`
  await sql`delete from ended_sessions`
  const without = [await statusOf(two, kept.headers), await statusOf(two, asked.headers)]
  t.strictSame(without, [200, 401], 'without notifications')
  await proxy.listen()
  await until('they are back', () => changes.length === 2)
  t.strictSame(await Promise.all([kept, asked, missed].map(({ headers }) => statusOf(two, headers))), [200, 401, 401])
})

t.test('17.1 where a second factor is required, a key needs that one was used to create it', async (t) => {
  const open = await sharedUsher()
  const sql = openSql(t, open)
  const user = await open.createUser()
  const before = await createKey(open, user)
  const service = await createKey(open, open.admin, { userId: await createService(open, { email: `${randomUUID()}@example.com` }) })
  await sql`update sessions set amr = '{pwd,otp,mfa}' where user_id = ${user.id}`
  const refreshed = await open.inject('POST', '/api/auth/refresh', { headers: { cookie: user.cookie } })
  const withFactor = await createKey(open, { headers: { authorization: `Bearer ${refreshed.json().token}` } })
  const strict = await createUsher(t, { ...open.options, secondFactor: 'everyone' })
  const codes = await Promise.all([before, service, withFactor].map(async ({ headers }) => {
    const response = await strict.inject('GET', '/api/protected', { headers })
    return response.statusCode === 200 ? 200 : response.json().code
  }))
  t.strictSame(codes, ['SECOND_FACTOR_MISSING', 200, 200])
})

t.test('12.3 a key has the claims of its user, as new as those of a token', async (t) => {
  let team: string | undefined = 'red'
  const claims = async () => {
    if (team === undefined) throw new Error('gone')
    return { team }
  }
  const usher = await createUsher(t, { claims, accessTokenSeconds: 60 })
  const { headers } = await createKey(usher, usher.admin)
  const clock = createTestClock()
  const scope = await openAuth(t, usher, clock)
  const claimsOf = async () => (await scope.usherAccess.identify(headers.authorization)).claims
  t.strictSame(await claimsOf(), { team: 'red' })
  team = 'blue'
  t.strictSame(await claimsOf(), { team: 'red' }, 'remembered')
  clock.pass(3)
  t.strictSame(await claimsOf(), { team: 'blue' })
  clock.pass(3)
  team = undefined
  await t.rejects(claimsOf(), { code: 'INTERNAL_ERROR' }, 'no actor without them')
})

t.test('17.1 a key expires by the clock of the database, and has no claims without the option', async (t) => {
  const usher = await sharedUsher()
  const clock = createTestClock()
  const scope = await openAuth(t, usher, clock)
  const { headers } = await createKey(
    usher, await usher.createUser({ role: 'admin' }), { expiresAt: new Date(clock.now + 3_600_000).toISOString() }
  )
  const { claims, sessionId, role } = await scope.usherAccess.identify(headers.authorization)
  t.strictSame({ claims, sessionId, role }, { claims: {}, sessionId: null, role: 'admin' })
  clock.now += 3_599_999
  await scope.usherAccess.identify(headers.authorization)
  clock.now++
  await t.rejects(scope.usherAccess.identify(headers.authorization), { code: 'INVALID_TOKEN' })
})

t.test('12.1 the host creates keys for everybody, lists and deletes them, by itself or for an actor', async (t) => {
  const usher = await sharedUsher()
  const { apiKeys } = usher.app.usher
  const user = await usher.createUser()
  const expiresAt = new Date('2999-01-01T00:00:00Z')
  const created = await apiKeys.create(user.id, { name: 'Import', actions: ['posts:create'], expiresAt })
  const { key, ...shown } = created
  t.match(shown, { name: 'Import', actions: ['posts:create'], lastUsedAt: null, expiresAt })
  t.strictSame(await apiKeys.list(user.id), [shown])
  t.equal(await statusOf(usher, { authorization: `Bearer ${key}` }), 200)
  const invalid: object[] = [
    {}, { name: 'A', actions: ['x:y'] }, { name: 'A', expiresAt: 1 }, { name: 'A', expiresAt: new Date(NaN) },
  ]
  for (const given of invalid) await t.rejects(apiKeys.create(user.id, given as never), { code: 'INVALID_INPUT' })
  await t.rejects(apiKeys.create(randomUUID(), { name: 'A' }), { statusCode: 404, code: 'USER_NOT_FOUND' })
  await t.rejects(apiKeys.list(randomUUID()), { code: 'USER_NOT_FOUND' })
  await t.rejects(apiKeys.delete(user.id, 'x'), { code: 'API_KEY_NOT_FOUND' })

  const request = { headers: { authorization: `Bearer ${key}` } } as { headers: object, actor?: never }
  const ofKey = usher.app.usher.allow('posts:create')
  await ofKey({ ...request, socket: {}, log: usher.app.log } as never, {} as never)
  await apiKeys.delete(user.id, created.id)
  t.equal(await statusOf(usher, { authorization: `Bearer ${key}` }), 401)
})

t.test('12.5 events say that a key was created and deleted, also by what voids it', async (t) => {
  const { usher, events } = await startWithEvents(t)
  const user = await usher.createUser()
  const first = await createKey(usher, user)
  await usher.inject('DELETE', `/api/auth/keys/${first.id}`, { headers: user.headers })
  await createKey(usher, user)
  await usher.inject('PATCH', `/api/users/${user.id}`, { headers: usher.admin.headers, payload: { disabled: true } })
  const ofKeys = () => events.filter(({ type }) => type.startsWith('credential.')).map(({ type, data }) => [type, data])
  await until('four events', () => ofKeys().length === 4)
  const data = { userId: user.id, actorId: user.id, kind: 'api-key' }
  t.strictSame(ofKeys(), [
    ['credential.added', data], ['credential.removed', data], ['credential.added', data],
    ['credential.removed', { ...data, actorId: usher.admin.id }],
  ])
})

t.test('17.2 a key is forgotten when its end is announced, and not remembered if it ended while it was read', async (t) => {
  const usher = await sharedUsher()
  const user = await usher.createUser()
  const { core } = await openCore(t, { schema: usher.options.schema! })
  const sql = openSql(t, usher)
  const ends = new Map<string, () => void>()
  const ended = new Set<string>()
  const sessions = {
    generation: 0,
    hasEnded: (id: string) => ended.has(id),
    isLive: () => true,
    watch (id: string, onEnd: () => void) {
      ends.set(id, onEnd)
      return () => { ends.delete(id) }
    },
  }
  const writers = createWriters({ ...core, signingKeys: { find: () => undefined } })
  const keys = createApiKeyVerification({ ...core, claims: createClaims(core), sessions, writers })
  const { id, key } = await createKey(usher, user)
  const actor = await keys.verify(key)
  t.equal(keys.verify(key), actor, 'it is remembered')
  await sql`delete from api_keys where id = ${id}`
  t.equal(keys.verify(key), actor)
  ends.get(id)!()
  await t.rejects(Promise.resolve(keys.verify(key)), { code: 'INVALID_TOKEN' }, 'it was read again')
  t.equal(ends.size, 0)

  const late = await createKey(usher, user)
  ended.add(late.id)
  await t.rejects(Promise.resolve(keys.verify(late.key)), { code: 'INVALID_TOKEN' })
  ended.clear()
  t.equal(ends.size, 0, 'nothing is remembered')
})
