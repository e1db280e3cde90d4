import { randomUUID } from 'node:crypto'
import { Type } from '@sinclair/typebox'
import t from 'tap'
import { createUsher } from '../helpers/app.ts'
import { nightly } from '../helpers/nightly.ts'
import { tagOfRow } from '../helpers/row-tags.ts'
import { openSql, untilBlocked } from '../helpers/sql.ts'
import { until } from '../helpers/until.ts'

const UNKNOWN = '0190a5b4-7c3e-7d11-8abc-0123456789ab'

const userFields = Type.Object({
  plan: Type.Union([Type.Literal('free'), Type.Literal('pro')], { default: 'free' }),
  tags: Type.Optional(Type.Array(Type.String({ maxLength: 20 }), { maxItems: 5, 'x-read': 'anyone' })),
  score: Type.Optional(Type.Integer({ 'x-read': 'anyone' })),
})
const usher = await createUsher(t, { userFields })
const { admin, inject } = usher
const sql = openSql(t, usher)

const { headers } = admin
const create = async (payload: object = {}) =>
  (await inject(
    'POST', '/api/users', { headers, payload: { name: 'Somebody', email: `${randomUUID()}@example.com`, ...payload } }
  )).json() as { id: string, email: string }
const change = (method: 'PUT' | 'PATCH', id: string, payload: object, tag?: string) =>
  inject(method, `/api/users/${id}`, { headers: { ...headers, ...tag !== undefined && { 'if-match': tag } }, payload })
const read = async (id: string) => (await inject('GET', `/api/users/${id}`, { headers })).json()

t.test('SPEED 3 changes of different users share a statement, and each has its own result', async (t) => {
  const users = await Promise.all(Array.from({ length: 30 }, () => create({ tags: ['old'], score: 1 })))
  const [taken, admins] = await Promise.all([create(), create({ role: 'admin' })])
  const tag = await tagOfRow(sql, 'users', users[4]!.id)
  const before = await sql`select count(*)::int from audit where action <> 'user.create'`
  const cases: [response: ReturnType<typeof change>, status: number, body: object][] = users.map((
    { id, email }, index
  ) => {
    switch (index) {
      case 0: return [change('PATCH', UNKNOWN, { name: 'x' }), 404, { code: 'USER_NOT_FOUND' }]
      case 1: return [change('PUT', 'x', { name: 'x', email }), 404, { code: 'USER_NOT_FOUND' }]
      case 2: return [change('PUT', id, { name: 'x', email: taken.email }), 409, { code: 'EMAIL_TAKEN' }]
      case 3: return [change('PATCH', id, { name: 'x' }, '"1"'), 412, { code: 'PRECONDITION_FAILED' }]
      case 4: return [change('PATCH', id, { name: 'Matched' }, tag), 200, { name: 'Matched', email, score: 1 }]
      case 5: return [
        change('PUT', id, { name: 'Moved', email: `moved-${email}` }), 200, { name: 'Moved', email: `moved-${email}` },
      ]
      case 6: return [change('PUT', id, { name: 'Case', email: email.toUpperCase() }), 200, {
        name: 'Case', email: email.toUpperCase(),
      }]
      case 7: return [change('PUT', id, { name: 'Promoted', email, role: 'admin' }), 200, { role: 'admin' }]
      case 8: return [change('PATCH', id, { name: 'Disabled', disabled: true }), 200, { disabled: true }]
      case 9: return [change('PUT', admins.id, { name: 'Demoted', email: admins.email, role: 'user' }), 200, {
        name: 'Demoted', role: 'user',
      }]
      case 10: return [change('PATCH', id, { score: 7, plan: 'pro' }), 200, {
        name: 'Somebody', email, score: 7, plan: 'pro', tags: ['old'],
      }]
      case 11: return [change('PATCH', id.toUpperCase(), { tags: null }), 200, { id, name: 'Somebody', score: 1 }]
      default: return index % 2
        ? [change('PATCH', id, { name: `Patched ${index}`, tags: [`t${index}`, '"],'] }), 200, {
            name: `Patched ${index}`, email, role: 'user', tags: [`t${index}`, '"],'], score: 1,
          }]
        : [change('PUT', id, { name: `Put ${index}`, email, role: 'user', score: index }), 200, {
            name: `Put ${index}`, email, score: index,
          }]
    }
  })
  for (const [index, [response, status, body]] of cases.entries()) {
    const { statusCode, json } = await response
    t.match([statusCode, json()], [status, body], `case ${index}`)
    const { id } = json()
    if (statusCode === 200) t.same(json(), await read(id), `case ${index} is stored`)
  }
  t.notOk((await read(users[11]!.id)).tags)
  t.notOk((await read(users[12]!.id)).tags, 'a member that a replacement does not name has no value')
  const statements =
    await sql`select count(*)::int from users where id = any(${users.map(({ id }) => id)}) group by xmin order by 1 desc`
  t.ok(statements[0]!['count'] >= 10, `one statement changed ${statements[0]!['count']} users`)
  const entries =
    await sql`select action from audit where action <> 'user.create' order by id offset ${before[0]!['count']}`
  t.same(
    entries.map(({ action }) => action).sort(),
    ['user.disable', 'user.email-change', 'user.email-change', 'user.role-change', 'user.role-change']
  )
})

nightly('SPEED 3 a user whom another transaction has locked delays no change of another user', async (t) => {
  // All writes share one connection.
  const usher = await createUsher(t, { poolSize: 2 })
  const sql = openSql(t, usher)
  const { headers } = usher.admin
  const change = (method: 'PUT' | 'PATCH', id: string, payload: object) =>
    usher.inject(method, `/api/users/${id}`, { headers, payload })
  const users = await Promise.all(Array.from({ length: 10 }, () => usher.createUser()))
  const [locked, ...others] = users
  const nameOf = async (id: string) => (await usher.inject('GET', `/api/users/${id}`, { headers })).json().name
  const before = await nameOf(locked!.id)
  let late: ReturnType<typeof change>[] = []
  await sql.begin(async (trx) => {
    await trx`select from users where id = ${locked!.id} for update`
    const answers = users.map(({ id, email }, index) => change('PUT', id, { name: `First ${index}`, email }))
    late = [answers.shift()!, change('PATCH', locked!.id, { name: 'Second' })]
    for (const response of await Promise.all(answers)) t.equal(response.statusCode, 200)
    await untilBlocked(sql, usher)
    t.equal((await change('PATCH', others[0]!.id, { name: 'Again' })).statusCode, 200)
    t.equal(await nameOf(locked!.id), before)
  })
  t.strictSame(
    (await Promise.all(late)).map((response) => [response.statusCode, response.json().name]),
    [[200, 'First 0'], [200, 'Second']]
  )
  t.equal(await nameOf(locked!.id), 'Second')
})

t.test('SPEED 3 changes of the same user take effect in the order of their arrival, among those of others', async (t) => {
  const users = await Promise.all(Array.from({ length: 5 }, () => create()))
  // The host's changes arrive as they are called. Requests arrive after the check of their session, which takes longer
  // while a heartbeat is late.
  const changes = Array.from({ length: 20 }, (_, round) => users.map(({ id, email }) => {
    const name = `Round ${round}`
    const values = { name, ...round % 3 === 0 && { email: round % 2 ? email : email.toUpperCase() } }
    return usher.app.usher.users.update(id, values)
  })).flat()
  const times = await Promise.all(changes)
  for (const { id } of users) {
    const own = times.filter((user) => user.id === id)
    t.strictSame(own.map(({ name }) => name), Array.from({ length: 20 }, (_, round) => `Round ${round}`))
    t.strictSame(own.map(({ updatedAt }) => updatedAt), own.map(({ updatedAt }) => updatedAt).toSorted())
    t.equal((await read(id)).name, 'Round 19')
  }
})

t.test('2.4 replacing a user with another role does not wait for what the user keeps sending', async (t) => {
  const { id, email, headers } = await usher.createUser({ role: 'admin' })
  let answered = 0
  let demotion: ReturnType<typeof change> | undefined
  const changes: Promise<unknown>[] = []
  await sql.begin(async (trx) => {
    await trx`select from users where id = ${id} for update`
    for (let index = 0; index < 100; index++) {
      changes.push(usher.inject('PATCH', `/api/users/${id}`, { headers, payload: { name: `Name ${index}` } })
        .then(() => answered++))
    }
    await untilBlocked(sql, usher)
    demotion = change('PUT', id, { name: 'Demoted', email, role: 'user' })
  })
  t.equal((await demotion!).json().role, 'user')
  t.ok(answered < 50, `${answered} changes of the user were answered before`)
  await Promise.all(changes)
  t.equal((await read(id)).role, 'user')
})

t.test('SPEED 3 a value that the database rejects fails only its own request', async (t) => {
  await sql`alter table users add constraint no_name_of_the_test check (name <> 'Rejected')`
  const users = await Promise.all(Array.from({ length: 5 }, () => create()))
  const answers = await Promise.all(
    users.map(({ id }, index) => change('PATCH', id, { name: index === 2 ? 'Rejected' : 'Accepted' }))
  )
  await sql`alter table users drop constraint no_name_of_the_test`
  t.strictSame(answers.map(({ statusCode }) => statusCode), [200, 200, 500, 200, 200])
})

t.test('12.5 each change that shares a statement is one event, in the order of the changes of its user', async (t) => {
  const events: { subject: string, name: string, actor: unknown }[] = []
  const node = await createUsher(t)
  node.app.usher.on(
    'user.updated', ({ data }) => { events.push({ subject: data.userId, name: data.name, actor: data.actorId }) }
  )
  const users = await Promise.all(Array.from({ length: 5 }, () => node.createUser()))
  await Promise.all([1, 2, 3].flatMap((round) => users.map(({ id }) =>
    node.inject('PATCH', `/api/users/${id}`, { headers: node.admin.headers, payload: { name: `Name ${round}` } }))))
  await until('every event has arrived', () => events.length >= 15)
  for (const { id } of users) {
    t.strictSame(
      events.filter(({ subject }) => subject === id),
      [1, 2, 3].map((round) => ({ subject: id, name: `Name ${round}`, actor: node.admin.id }))
    )
  }
})
