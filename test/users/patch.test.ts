import t from 'tap'
import { createUsher } from '../helpers/app.ts'
import { nightly } from '../helpers/nightly.ts'
import { openSql } from '../helpers/sql.ts'

const MERGE_PATCH = 'application/merge-patch+json'
const UNKNOWN = '0190a5b4-7c3e-7d11-8abc-0123456789ab'

const usher = await createUsher(t)
const { inject, admin, createUser, login } = usher
const sql = openSql(t, usher)

const read = async (id: string) => (await inject('GET', `/api/users/${id}`)).json()
const patch = (id: string, payload: object | string, { headers = admin.headers, type = MERGE_PATCH } = {}) =>
  inject('PATCH', `/api/users/${id}`, {
    headers: { ...headers, 'content-type': type },
    payload: typeof payload === 'string' ? payload : JSON.stringify(payload),
  })

t.test('10.3 PATCH changes the members that are present, as a merge patch or as plain JSON', async (t) => {
  const { id, email } = await createUser({ name: 'Before' })
  const before = await read(id)
  for (const type of [
    MERGE_PATCH, 'application/json', `${MERGE_PATCH}; charset=utf-8`, 'Application/Merge-Patch+JSON',
  ]) {
    const response = await patch(id, { name: ` ${type} `, id: UNKNOWN, createdAt: 1 }, { type })
    t.equal(response.statusCode, 200)
    const after = await read(id)
    t.strictSame(response.json(), after)
    t.match(after, { ...before, name: type, updatedAt: String }, 'all else stays as it was')
    t.ok(after.updatedAt > before.updatedAt)
  }
  t.match((await patch(id, { email: `new-${email}` })).json(), { email: `new-${email}`, role: 'user' })
  for (const role of ['admin', 'user']) t.match((await patch(id, { role })).json(), { email: `new-${email}`, role })
})

t.test('10.3 a patch without known members changes nothing, not even the time of the last change', async (t) => {
  const { id } = await createUser()
  const before = await read(id)
  for (const payload of [{}, { unknown: 1 }]) t.strictSame((await patch(id, payload)).json(), before)
  const absent = await inject('PATCH', `/api/users/${id}`, { headers: admin.headers })
  t.strictSame([absent.statusCode, absent.json()], [200, before], 'without a body')
  const url = await usher.app.listen({ port: 0, host: '127.0.0.1' })
  const empty = await fetch(`${url}/api/users/${id}`, { method: 'PATCH', headers: admin.headers })
  t.strictSame([empty.status, await empty.json()], [200, before], 'with `Content-Length: 0`')
  t.strictSame(await read(id), before)
  for (const unknown of [UNKNOWN, 'x']) t.equal((await patch(unknown, {})).statusCode, 404)
})

t.test('10.3 null and other invalid values get 400 with all problems, in the order of the schema', async (t) => {
  const { id } = await createUser()
  const before = await read(id)
  const cases: [object | string, string[]][] = [
    [{ role: null, email: null, name: null }, [
      'name must not be null', 'email must not be null', 'role must not be null',
    ]],
    [{ role: 'owner', name: 1, email: null }, [
      'name must be a string', 'email must not be null', 'role must be one of admin, user',
    ]],
    [{ name: ' ' }, ['name must not be blank']],
    ['null', ['body must be an object']],
    ['[]', ['body must be an object']],
    ['{', ['body is not valid JSON']],
  ]
  for (const [payload, errors] of cases) {
    const response = await patch(id, payload)
    t.strictSame([response.statusCode, response.json()], [400, { errors }])
  }
  t.strictSame(await read(id), before)
  t.equal((await inject(
    'PUT', `/api/users/${id}`, { headers: admin.headers, payload: { name: null, email: null } }
  )).json().errors[0], 'name must be a string', 'as before')
})

t.test('10.3 any other content type gets 415 with Accept-Patch', async (t) => {
  const { id } = await createUser()
  for (const type of [
    'text/plain', 'application/json-patch+json', 'application/x-www-form-urlencoded', 'multipart/form-data; boundary=x',
    '',
  ]) {
    const response = await patch(id, '{"name":"x"}', { type })
    t.equal(response.statusCode, 415, type)
    t.match(response.json(), { error: /application\/merge-patch\+json/, code: 'UNSUPPORTED_MEDIA_TYPE' })
    t.equal(response.headers['accept-patch'], 'application/merge-patch+json, application/json')
  }
  const put = await inject(
    'PUT', `/api/users/${id}`, { headers: { ...admin.headers, 'content-type': MERGE_PATCH }, payload: '{}' }
  )
  t.equal(put.statusCode, 415, 'only PATCH accepts a merge patch')
  t.notOk(put.headers['accept-patch'])
})

t.test('10.3 the policy is that of PUT, and the order of checks that of the contract', async (t) => {
  const [user, other] = [await createUser(), await createUser()]
  const { headers } = user
  t.equal((await inject('PATCH', `/api/users/${user.id}`, { payload: {} })).statusCode, 401)
  t.equal((await inject(
    'PATCH', `/api/users/${user.id}`, { headers: { 'content-type': 'text/plain' }, payload: 'x' }
  )).statusCode, 401, '401 before 415')
  t.equal((await patch(other.id, 'x', { headers, type: 'text/plain' })).statusCode, 403, '403 before 415')
  t.equal((await patch(user.id, { role: 'admin', name: null }, { headers })).statusCode, 403, '403 before 400')
  t.equal((await patch(user.id, { role: 'user', name: 'Own' }, { headers })).statusCode, 200)
  t.equal((await patch(UNKNOWN, { name: null })).statusCode, 400, '400 before 404')
  t.equal((await patch(UNKNOWN, { name: 'x' })).statusCode, 404)
  t.strictSame((await patch(user.id, { email: other.email.toUpperCase() })).json().code, 'EMAIL_TAKEN')
  t.strictSame((await patch(admin.id, { role: 'user' })).json().code, 'LAST_ADMIN')
})

t.test('10.3 a demotion by PATCH ends the sessions of the user, and the account log has what was changed', async (t) => {
  const demoted = await createUser()
  t.equal((await patch(demoted.id, { role: 'admin' })).statusCode, 200)
  const { headers } = await login(demoted)
  t.equal((await inject('GET', '/api/protected', { headers })).statusCode, 200)
  t.equal((await patch(demoted.id, { role: 'user' })).statusCode, 200)
  t.equal((await inject('GET', '/api/protected', { headers })).statusCode, 401)
  t.equal((await patch(demoted.id, { email: `moved-${demoted.email}` })).statusCode, 200)
  t.equal((await patch(demoted.id, { name: 'Nobody' })).statusCode, 200)
  const entries =
    await sql`select action, actor_id from audit where user_id = ${demoted.id} and action like 'user.%-change' order by id`
  t.same(entries, [...Array(2)
    .fill({ action: 'user.role-change', actor_id: admin.id }), { action: 'user.email-change', actor_id: admin.id }])
})

nightly('10.3 concurrent patches of different members of one user are all kept', async (t) => {
  const { id } = await createUser({ name: 'First' })
  for (let round = 0; round < 20; round++) {
    const [name, email] = [`Name ${round}`, `round-${round}@example.com`]
    const answers = await Promise.all([patch(id, { name }), patch(id, { email })])
    t.strictSame(answers.map(({ statusCode }) => statusCode), [200, 200])
    t.match(await read(id), { name, email })
  }
})
