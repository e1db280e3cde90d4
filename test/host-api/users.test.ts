import t from 'tap'
import { createUsher, type TestUsher } from '../helpers/app.ts'
import { actorOf } from '../helpers/actor.ts'
import { openSql } from '../helpers/sql.ts'
import { until } from '../helpers/until.ts'

const ada = { name: ' Ada ', email: 'Ada@example.com', password: 'violet engine notes' }
const UNKNOWN = '0198c0de-0000-7000-8000-000000000000'

const audited = async (usher: TestUsher, action: string) =>
  (await usher.inject('GET', `/api/audit?action=${action}`, { headers: usher.admin.headers })).json()

t.test('12.1 the host creates, reads, lists, changes and deletes users as the routes do', async (t) => {
  const usher = await createUsher(t)
  const { users } = usher.app.usher
  const created = await users.create({ ...ada, role: 'admin' })
  t.match(created, {
    name: 'Ada',
    email: 'Ada@example.com',
    role: 'admin',
    emailVerified: false,
    disabled: false,
    createdAt: Date,
    updatedAt: Date,
  })
  t.same(
    JSON.parse(JSON.stringify(created)),
    (await usher.inject('GET', `/api/users/${created.id}`)).json(),
    'with the members of a response'
  )
  await usher.login({ email: 'ada@example.com', password: ada.password })
  t.match((await audited(usher, 'user.create'))[0], { actorId: null, userId: created.id, sessionId: null, address: '' })

  t.same(await users.get(created.id.toUpperCase()), created)
  t.same(await users.find('ADA@EXAMPLE.COM '), created)
  t.equal(await users.find('nobody@example.com'), undefined)
  const changed = await users.update(created.id, { name: 'Ada L', disabled: true })
  t.match(changed, { name: 'Ada L', email: created.email, disabled: true })
  t.equal(
    (await usher.inject('POST', '/api/auth/login', { payload: { ...ada, email: created.email } })).statusCode, 401
  )
  t.same(await users.update(created.id, {}), changed, 'nothing changes without a member')

  const { data, page } = await users.list({ limit: 1 })
  t.same([data, page.limit], [[changed], 1])
  const next = await users.list({ limit: 1, after: page.next! })
  t.match(next, { data: [{ id: usher.admin.id }], page: { next: null } })
  t.equal((await users.list({ role: 'user' })).data.length, 0)

  await users.delete(created.id)
  await t.rejects(users.get(created.id), { statusCode: 404, code: 'USER_NOT_FOUND' })
  t.match((await audited(usher, 'user.delete'))[0], { actorId: null, userId: created.id })
})

t.test('12.1 invalid input of the host gets the errors of the routes, and changes nothing', async (t) => {
  const usher = await createUsher(t)
  const { users } = usher.app.usher
  const invalid = { statusCode: 400, code: 'INVALID_INPUT' }
  await t.rejects(users.create({ name: '', email: 'x', password: 'short' }), { ...invalid, errors: { length: 3 } })
  await t.rejects(users.create({ ...ada, password: 'ada@example.com' }), {
    ...invalid, errors: ['password must not be the name or the email address'],
  })
  for (const given of [undefined, null, 'text', [], 5]) {
    await t.rejects(users.create(given as never), invalid, JSON.stringify(given))
  }
  await t.rejects(
    users.create({ ...ada, email: usher.admin.email.toUpperCase() }), { statusCode: 409, code: 'EMAIL_TAKEN' }
  )
  await t.rejects(users.create({ ...ada, role: 'root' as never }), invalid)
  const user = await users.create({
    ...ada, id: UNKNOWN, passwordHash: 'x', disabled: true, emailVerified: true, __proto__: { role: 'admin' },
  } as never)
  t.match(user, { role: 'user', disabled: false, emailVerified: false })
  t.not(user.id, UNKNOWN)

  await t.rejects(users.update(user.id, { name: null } as never), { ...invalid, errors: ['name must not be null'] })
  await t.rejects(users.update(user.id, null as never), invalid)
  await t.rejects(users.update(usher.admin.id, { role: 'user' }), { statusCode: 409, code: 'LAST_ADMIN' })
  await t.rejects(users.delete(usher.admin.id), { statusCode: 409, code: 'LAST_ADMIN' })
  for (const id of [UNKNOWN, '', 'x', '\0', 5, null, undefined, {}, Symbol('id')] as string[]) {
    for (const run of [() => users.get(id), () => users.update(id, { name: 'x' }), () => users.delete(id)]) {
      await t.rejects(run as () => Promise<object>, { statusCode: 404, code: 'USER_NOT_FOUND' })
    }
  }
  for (const query of [{ limit: 0 }, { limit: 1001 }, { limit: '5' }, { after: 'x' }, { role: '\0' }, null]) {
    await t.rejects(users.list(query as never), invalid)
  }
  for (const email of ['\0', 5, undefined, 'x'.repeat(1025)]) await t.rejects(users.find(email as never), invalid)
})

t.test('12.1 with an actor, the policy decides, and rejections are in the account log', async (t) => {
  const usher = await createUsher(t)
  const { users } = usher.app.usher
  const user = await usher.createUser()
  const [actor, admin] = [await actorOf(usher, user), await actorOf(usher, usher.admin)]
  const forbidden = { statusCode: 403, code: 'FORBIDDEN' }

  t.equal((await users.update(user.id, { name: 'Own' }, { actor })).name, 'Own')
  await t.rejects(users.create(ada, { actor }), forbidden)
  await t.rejects(users.create({ name: 5 } as never, { actor }), forbidden, '403 comes before 400')
  await t.rejects(users.update(user.id, { role: 'admin' }, { actor }), forbidden)
  await t.rejects(users.update(user.id, { disabled: true }, { actor }), forbidden)
  await t.rejects(users.update(usher.admin.id, { name: 'x' }, { actor }), forbidden)
  await t.rejects(users.delete(usher.admin.id, { actor }), forbidden)
  const created = await users.create({ ...ada, role: 'admin' }, { actor: admin })
  t.match((await audited(usher, 'user.create'))[0], {
    actorId: usher.admin.id, userId: created.id, sessionId: admin.sessionId,
  })
  // These entries are written in the background.
  await until('the rejections are in the account log', async () => (await audited(usher, 'access.denied')).length > 0)
  t.match((await audited(usher, 'access.denied'))[0], { actorId: user.id })

  for (const nobody of [null, undefined]) {
    t.equal((await users.get(user.id, { actor: nobody })).id, user.id, 'anyone may read')
    await t.rejects(users.create(ada, { actor: nobody }), { statusCode: 401, code: 'UNAUTHENTICATED' })
    await t.rejects(users.delete(user.id, { actor: nobody }), { statusCode: 401, code: 'UNAUTHENTICATED' })
  }
  for (const options of [{ actors: actor }, 'actor', null]) {
    await t.rejects(users.get(user.id, options as never), TypeError)
  }
  await t.rejects(
    users.get(user.id, { actor: { ...admin } }), { statusCode: 401, code: 'INVALID_TOKEN' }, 'a copy is no actor'
  )

  await usher.app.usher.sessions.end(actor.sessionId!)
  await t.rejects(users.update(user.id, { name: 'Late' }, { actor }), { statusCode: 401, code: 'INVALID_TOKEN' })
  await t.rejects(users.get(user.id, { actor }), { statusCode: 401, code: 'INVALID_TOKEN' })
  t.equal((await users.get(user.id)).name, 'Own')
})

t.test('12.1 an actor sees what the policy lets the actor see', async (t) => {
  const { audiences } = await import('../../app.ts')
  const usher = await createUsher(
    t, { policy: { 'users:read-email': audiences.owners, 'users:list': audiences.members } }
  )
  const { users } = usher.app.usher
  const [one, other] = [await usher.createUser(), await usher.createUser()]
  const actor = await actorOf(usher, one)
  t.equal((await users.get(other.id)).email, other.email)
  t.equal((await users.get(one.id, { actor })).email, one.email)
  t.notMatch(await users.get(other.id, { actor }), { email: String })
  t.equal(await users.find(other.email, { actor }), undefined)
  t.equal((await users.find(one.email, { actor }))?.id, one.id)
  t.equal((await users.list({}, { actor })).data.filter(({ email }) => email !== undefined).length, 1)
  await t.rejects(users.list({}, { actor: null }), { statusCode: 401, code: 'UNAUTHENTICATED' })
  await t.rejects(users.update(one.id, { email: 'new@example.com' }, { actor }), { statusCode: 409, code: 'NO_MAILER' })
  t.equal(
    (await users.update(one.id, { email: 'new@example.com' })).email, 'new@example.com', 'the host changes it at once'
  )
})

t.test('12.1 what the host gets is a copy, and operations share statements', async (t) => {
  const usher = await createUsher(t)
  const { users } = usher.app.usher
  const { id } = await users.create(ada)
  const [one, other] = await Promise.all([users.get(id), users.get(id)])
  one.createdAt.setFullYear(1900)
  one.name = 'changed'
  t.match(other, { name: 'Ada' })
  t.not(other.createdAt.getFullYear(), 1900)

  const sql = openSql(t, usher)
  const [{ before }] = await sql`select count(*)::int as before from users` as unknown as [{ before: number }]
  const results = await Promise.allSettled(
    Array.from({ length: 200 }, (_, index) => users.create({ name: 'x', email: `${index % 150}@example.com` }))
  )
  t.equal(results.filter(({ status }) => status === 'fulfilled').length, 150)
  t.equal((await sql`select xmin from users group by xmin`).length < 50, true, 'created by few statements')
  t.match(await sql`select count(*)::int from users`, [{ count: before + 150 }])
})
