import t from 'tap'
import { createUsher, unchecked } from '../helpers/app.ts'
import { slow } from '../helpers/deadlines.ts'
import { create, createTwo, outcomeOf, shareOne, shareTwo, somebody } from '../helpers/idempotency.ts'
import { createMailer } from '../helpers/mail.ts'
import { nightly } from '../helpers/nightly.ts'
import { startWithEvents } from '../helpers/outbox-events.ts'
import { openSql } from '../helpers/sql.ts'
import { fieldPart, filePart, post } from '../helpers/uploads.ts'
import { until } from '../helpers/until.ts'

t.test('10.4 repeating a request returns the same status, body and Location, also after the user was changed', async (t) => {
  const [one, other] = await shareTwo()
  const given = somebody()
  const first = await create(one, 'a-key', given)
  t.match(outcomeOf(first), { status: 201, location: `/api/users/${first.json().id}`, replayed: undefined })

  await one.inject('PUT', `/api/users/${first.json().id}`, {
    headers: one.admin.headers, payload: { name: 'Changed', email: `new-${given.email}` },
  })
  for (const usher of [one, other]) {
    t.same(
      outcomeOf(await create(usher, '"a-key"', { email: given.email, ignored: 1, name: given.name })),
      { ...outcomeOf(first), replayed: 'true' },
      'quoted or bare, whatever the order of the members'
    )
  }
  t.equal((await create(one, 'another', given)).statusCode, 201, 'another key is another request')
})

t.test('10.4 a result of an earlier release, without a member that this one requires, is repeated as it was sent', async (t) => {
  const usher = await shareOne()
  const sql = openSql(t, usher)
  // As if the release that stored the result had not known the member, and so had not sent it.
  const forget = (id: string, column: string) => sql`
    update idempotency_keys set result = (result::jsonb - ${column})::text where result::jsonb ->> 'id' = ${id}`
  const without = (body: object, member: string) =>
    JSON.stringify(Object.fromEntries(Object.entries(body).filter(([name]) => name !== member)))

  for (const [index, member] of (['kind', 'role', 'emailVerified', 'disabled', 'name'] as const).entries()) {
    const [key, given] = [`earlier-${index}`, somebody()]
    const first = await create(usher, key, given)
    const { count } = await forget(first.json().id, member)
    t.equal(count, 1)
    const again = await create(usher, key, given, { ...usher.admin.headers, ...unchecked })
    t.same([again.statusCode, again.body], [201, without(first.json(), member)], member)
  }

  const upload = (key: string, headers = {}) => post(
    usher, [filePart('Hello', 'a.txt'), fieldPart('description', 'A greeting')],
    { headers: { ...usher.admin.headers, 'idempotency-key': key, ...headers } }
  )
  for (const member of ['description', 'mediaType', 'filename']) {
    const first = await upload(`earlier-${member}`)
    await forget(first.json().id, member)
    const again = await upload(`earlier-${member}`, unchecked)
    t.same([again.statusCode, again.body], [first.statusCode, without(first.json(), member)], member)
  }
})

t.test('10.4 the key of a different request returns 422, and every actor has keys of their own', async (t) => {
  const usher = await shareOne()
  const { inject, admin } = usher
  const given = somebody()
  await create(usher, 'key', given)
  for (const payload of [
    { ...given, name: 'Eve' }, { ...given, role: 'admin' }, { ...given, password: 'a long secret' },
  ]) {
    const response = await create(usher, 'key', payload)
    t.match([response.statusCode, response.json()], [422, { code: 'IDEMPOTENCY_KEY_REUSED' }])
  }
  const { id } = (await inject('POST', '/api/users', { headers: admin.headers, payload: somebody() })).json()
  const elsewhere = await inject(
    'POST', `/api/users/${id}/invitation`, { headers: { ...admin.headers, 'idempotency-key': 'key' } }
  )
  t.equal(elsewhere.statusCode, 422, 'on another route as well')
  const colleague = await usher.createUser({ role: 'admin' })
  t.equal((await create(usher, 'key', somebody(), colleague.headers)).statusCode, 201)
})

t.test('10.4 a malformed key returns 400, and 401 and 403 come first', async (t) => {
  const usher = await shareOne()
  for (const key of [
    '', '""', 'a b', '"a', 'a"', '"a"b"', '"a\\b"', 'é', 'k'.repeat(256), `"${'k'.repeat(256)}"`, '"a";b=1', '"a", "b"',
  ]) {
    const response = await create(usher, key, somebody())
    t.same(
      [response.statusCode, response.json()],
      [400, { errors: ['Idempotency-Key must be 1 to 255 visible ASCII characters'] }],
      key
    )
  }
  const longest = 'k'.repeat(254)
  const given = somebody()
  t.equal((await create(usher, `"${longest}\\""`, given)).statusCode, 201, 'the escape of a character does not count')
  t.equal((await create(usher, `"${longest}\\\\"`, somebody())).statusCode, 201)
  t.equal((await create(usher, `"${longest}\\""`, given)).headers['idempotency-replayed'], 'true')
  t.equal(
    (await usher.inject('POST', '/api/users', { headers: { 'idempotency-key': '' }, payload: given })).statusCode, 401
  )
  t.equal((await create(usher, '', given, (await usher.createUser()).headers)).statusCode, 403)
  t.equal(
    (await usher.inject('GET', '/api/users', { headers: { 'idempotency-key': '' } })).statusCode,
    200,
    'other routes ignore it'
  )
})

t.test('10.4 a rejected request is not stored', async (t) => {
  const usher = await shareOne()
  const taken = somebody()
  const { id } = (await create(usher, 'first', taken)).json()
  t.equal((await create(usher, 'key', { ...taken, name: '' })).statusCode, 400)
  t.match((await create(usher, 'key', taken)).json(), { code: 'EMAIL_TAKEN' })
  await usher.inject('DELETE', `/api/users/${id}`, { headers: usher.admin.headers })
  t.match(outcomeOf(await create(usher, 'key', taken)), { status: 201, replayed: undefined })
})

t.test('10.4 if the created user was deleted since, the response is 410, and the result is erased', async (t) => {
  const usher = await shareOne()
  const sql = openSql(t, usher)
  const given = somebody()
  const { id } = (await create(usher, 'key', given)).json()
  t.match((await sql`select result from idempotency_keys where record_id = ${id}`)[0]!['result'], given.email)
  await usher.inject('DELETE', `/api/users/${id}`, { headers: usher.admin.headers })
  const response = await create(usher, 'key', given)
  t.match([response.statusCode, response.json()], [410, { code: 'GONE' }])
  t.same(await sql`select result from idempotency_keys where record_id = ${id}`, [{ result: null }])
  t.equal((await create(usher, 'key', { ...given, name: 'Eve' })).statusCode, 422, 'the key remains used')
})

t.test('10.4 a repeated request is authorized like any other', async (t) => {
  const usher = await shareOne()
  const colleague = await usher.createUser({ role: 'admin' })
  const given = somebody()
  t.equal((await create(usher, 'key', given, colleague.headers)).statusCode, 201)
  await usher.inject('PATCH', `/api/users/${colleague.id}`, { headers: usher.admin.headers, payload: { role: 'user' } })
  t.equal((await create(usher, 'key', given, colleague.headers)).statusCode, 401, 'the session has ended')
  const again = await usher.login(colleague)
  t.equal((await create(usher, 'key', given, again.headers)).statusCode, 403)
})

t.test('10.4 forty concurrent requests with one key on two nodes create one user', async (t) => {
  const [one, other] = await shareTwo()
  const sql = openSql(t, one)
  const given = somebody()
  const responses = await Promise.all(
    Array.from({ length: 40 }, (_, index) => create(index % 2 ? one : other, 'key', given))
  )
  t.same([...new Set(responses.map(({ statusCode }) => statusCode))], [201])
  t.equal(new Set(responses.map(({ body }) => body)).size, 1)
  t.equal(responses.filter(({ headers }) => headers['idempotency-replayed'] === undefined).length, 1)
  t.equal((await sql`select from users where email = ${given.email}`).length, 1)
  t.equal(
    (await sql`select from audit where action = 'user.create' and user_id = ${responses[0]!.json().id}`).length, 1
  )
})

t.test('10.4 requests with and without keys share a statement, each with its own result', async (t) => {
  const usher = await shareOne()
  const { inject, admin } = usher
  const known = somebody()
  const first = await create(usher, 'known', known)
  const requests = Array.from({ length: 30 }, (_, index) => {
    if (index % 10 === 0) return create(usher, 'known', known)
    if (index % 10 === 1) return create(usher, `taken-${index}`, known)
    const payload = somebody()
    return index % 2
      ? create(usher, `key-${index}`, payload)
      : inject('POST', '/api/users', { headers: admin.headers, payload })
  })
  for (const [index, response] of (await Promise.all(requests)).entries()) {
    if (index % 10 === 0) t.equal(response.body, first.body)
    else t.equal(response.statusCode, index % 10 === 1 ? 409 : 201)
  }
})

t.test('10.4 a write that another node is making is refused, and the repeat returns 409 with Retry-After', async (t) => {
  const [one, other] = await createTwo(t, {
    deadlines: { ...slow, idempotency: 200 },
    hooks: { onUserCreate: async ({ name }) => { if (name === 'Slow') await held.promise } },
  })
  const held = Promise.withResolvers<void>()
  const given = { ...somebody(), name: 'Slow' }
  const first = create(one, 'key', given)
  const sql = openSql(t, one)
  await until('the first request has the lock', async () => (await sql`select from pg_locks where locktype = 'advisory' and granted and database =
    (select oid from pg_database where datname = current_database()) and pid in (select pid from pg_stat_activity where state like 'idle in transaction%')`).length > 0)
  for (const repeat of await Promise.all([one, other].map((usher) => create(usher, 'key', given)))) {
    t.match(
      [repeat.statusCode, repeat.headers['retry-after'], repeat.json()], [409, '1', { code: 'IDEMPOTENCY_KEY_IN_USE' }]
    )
  }
  held.resolve()
  t.equal((await first).statusCode, 201)
  t.same(outcomeOf(await create(other, 'key', given)), { ...outcomeOf(await first), replayed: 'true' })
})

t.test('10.4 a request whose session ends while it waits for the first one gets 401', async (t) => {
  const [begun, slow] = [Promise.withResolvers<void>(), Promise.withResolvers<void>()]
  const usher = await createUsher(t, {
    hooks: {
      async onUserCreate ({ name }) {
        if (name !== 'Slow') return
        begun.resolve()
        await slow.promise
      },
    },
  })
  const given = { ...somebody(), name: 'Slow' }
  const first = create(usher, 'key', given)
  await begun.promise
  const { headers } = await usher.login(usher.admin)
  const repeat = create(usher, 'key', given, headers)
  t.equal((await usher.inject('POST', '/api/auth/logout', { headers })).statusCode, 204)
  slow.resolve()
  t.equal((await first).statusCode, 201)
  t.equal((await repeat).statusCode, 401)
})

t.test('10.4 the password is neither stored nor guessable, and without a secret it does not distinguish requests', async (t) => {
  const secret = 'a secret of the mount'
  const usher = await createUsher(t, { secret })
  const sql = openSql(t, usher)
  const given = { ...somebody(), password: 'correct horse battery' }
  t.equal((await create(usher, 'a-key-to-find', given)).statusCode, 201)
  const stored = JSON.stringify(await sql`select * from idempotency_keys`)
  for (const text of ['correct horse', 'argon2', 'a-key-to-find', usher.admin.token]) t.notMatch(stored, text)
  t.equal((await create(usher, 'a-key-to-find', given)).headers['idempotency-replayed'], 'true')
  t.equal((await create(usher, 'a-key-to-find', { ...given, password: 'another long one' })).statusCode, 422)
  const plain = await shareOne()
  t.equal((await create(plain, 'key', given)).statusCode, 201)
  t.equal(
    (await create(plain, 'key', { ...given, password: 'another long one' })).headers['idempotency-replayed'], 'true'
  )
  t.equal((await create(plain, 'key', { name: given.name, email: given.email })).statusCode, 422)
})

nightly('10.4 after 24 hours a key can be used again, and its result is deleted', async (t) => {
  const usher = await createUsher(t)
  const sql = openSql(t, usher)
  const given = somebody()
  const { id } = (await create(usher, 'key', given)).json()
  await create(usher, 'other', somebody())
  const [{ hours }] =
    await sql`select extract(epoch from expires_at - now()) / 3600 as hours from idempotency_keys limit 1` as unknown as [{ hours: number }]
  t.ok(hours > 23.9 && hours <= 24)
  await sql`update idempotency_keys set expires_at = now()`
  await usher.inject('DELETE', `/api/users/${id}`, { headers: usher.admin.headers })
  t.match(outcomeOf(await create(usher, 'key', given)), { status: 201, replayed: undefined })
  await createUsher(t, { schema: usher.options.schema! })
  await until('expired results are deleted', async () => (await sql`select from idempotency_keys`).length === 1)
})

t.test('10.4 an invitation is mailed once', async (t) => {
  const { mailer, mails, of } = createMailer()
  const usher = await createUsher(t, { mailer })
  const { inject, admin } = usher
  const given = somebody()
  const { id } = (await inject('POST', '/api/users', { headers: admin.headers, payload: given })).json()
  const invite = (key: string) =>
    inject('POST', `/api/users/${id}/invitation`, { headers: { ...admin.headers, 'idempotency-key': key } })
  const responses = await Promise.all(Array.from({ length: 10 }, () => invite('key')))
  t.same(new Set(responses.map(({ statusCode, body }) => `${statusCode} ${body}`)).size, 1)
  t.equal(responses[0]!.statusCode, 202)
  t.equal(responses.filter(({ headers }) => headers['idempotency-replayed'] === 'true').length, 9)
  await invite('another')
  t.equal((await of(given.email, 2)).length, 2)
  t.equal(mails.length, 2)
  await inject('DELETE', `/api/users/${id}`, { headers: admin.headers })
  t.equal((await invite('key')).statusCode, 410)
})

t.test('10.4 the event of a creation is stored once', async (t) => {
  const { usher, events } = await startWithEvents(t)
  const given = somebody()
  await Promise.all(Array.from({ length: 5 }, () => create(usher, 'key', given)))
  await create(usher, 'last', somebody())
  const created = () => events.filter(({ type }) => type === 'user.created')
  await until('the last event', () => created()
    .some(({ data }) => (data as { email: string }).email !== given.email && (data as { name: string }).name === 'Ada'))
  t.equal(created().filter(({ data }) => (data as { email: string }).email === given.email).length, 1)
})
