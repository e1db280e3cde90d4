import { randomUUID } from 'node:crypto'
import t from 'tap'
import { createUsher } from '../helpers/app.ts'
import { nightly } from '../helpers/nightly.ts'
import { openSql } from '../helpers/sql.ts'

const UNKNOWN = '0190a5b4-7c3e-7d11-8000-000000000000'
const UUID_V7 = /^[0-9a-f]{8}-[0-9a-f]{4}-7[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}$/
const UTC = /^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z$/

const usher = await createUsher(t)
const { inject, createUser, admin } = usher

// Posts a user with a raw or an encoded body.
async function post (body: unknown) {
  const payload = typeof body === 'string' ? body : JSON.stringify(body)
  const response = await inject(
    'POST', '/api/users', { headers: { ...admin.headers, 'content-type': 'application/json' }, payload }
  )
  return { status: response.statusCode, ...response.json() }
}

t.test('2.2 GET /api/users/{id} returns 200 with id, name and email, and 404 for an unknown id (given)', async (t) => {
  const response = await inject('GET', `/api/users/${admin.id}`)
  t.equal(response.statusCode, 200)
  const { createdAt, updatedAt, ...user } = response.json()
  t.same(user, {
    id: admin.id,
    name: 'Admin',
    email: 'admin@example.com',
    emailVerified: false,
    role: 'admin',
    kind: 'person',
    disabled: false,
  })
  t.match(createdAt, UTC)
  t.match(updatedAt, UTC)

  const unknown = await inject('GET', `/api/users/${UNKNOWN}`)
  t.equal(unknown.statusCode, 404)
  t.same(unknown.json(), { error: 'User not found', code: 'USER_NOT_FOUND' })
})

t.test('2.2 an unknown id gets 404 whatever it looks like, also for PUT and DELETE', async (t) => {
  const ids = [
    UNKNOWN, UNKNOWN.toUpperCase(), '00000000-0000-0000-0000-000000000000', 'ffffffff-ffff-ffff-ffff-ffffffffffff', '1',
    'null', 'undefined', 'NaN', '-1', '__proto__', 'constructor', '%00', '%0d%0aX-Evil:1', '%F0%9F%92%A9',
    '..%2F..%2Fetc', '%27%20or%20true--', '{id}', ' %20', `%7B${UNKNOWN}%7D`, `${UNKNOWN}0`,
    UNKNOWN.replaceAll('-', ''), `${UNKNOWN}%0A`, 'x'.repeat(100),
  ]
  for (const id of ids) {
    const responses = [
      await inject('GET', `/api/users/${id}`),
      await inject(
        'PUT', `/api/users/${id}`, { headers: admin.headers, payload: { name: 'A', email: 'a@example.com' } }
      ),
      await inject('PUT', `/api/users/${id}`, {
        headers: admin.headers, payload: { name: 'A', email: 'a@example.com', role: 'user' },
      }),
      await inject('DELETE', `/api/users/${id}`, { headers: admin.headers }),
    ]
    t.same(responses.map(({ statusCode }) => statusCode), [404, 404, 404, 404], id)
    for (const response of responses) t.same(response.json(), { error: 'User not found', code: 'USER_NOT_FOUND' }, id)
  }
  // This is longer than the router accepts as a parameter.
  const long = await inject('GET', `/api/users/${'x'.repeat(5000)}`)
  t.equal(long.statusCode, 404)
  t.same(long.json(), { error: 'Not found', code: 'NOT_FOUND' })
  // Ids are not case-sensitive.
  t.equal((await inject('GET', `/api/users/${admin.id.toUpperCase()}`)).json().id, admin.id)
})

t.test('2.3 POST /api/users returns 201 with the user and Location (given)', async (t) => {
  const payload = { name: ' Ada Lovelace ', email: ' Ada@Example.com ' }
  const response = await inject('POST', '/api/users', { headers: admin.headers, payload })
  t.equal(response.statusCode, 201)
  t.equal(response.headers['content-type'], 'application/json; charset=utf-8')
  const { id, createdAt, updatedAt, ...user } = response.json()
  t.match(id, UUID_V7)
  t.match(createdAt, UTC)
  t.equal(updatedAt, createdAt)
  t.same(user, {
    name: 'Ada Lovelace', email: 'Ada@Example.com', emailVerified: false, role: 'user', kind: 'person', disabled: false,
  })
  t.equal(response.headers.location, `/api/users/${id}`)
  t.same((await inject('GET', response.headers.location as string)).json(), response.json())
})

nightly('2.3 the Location contains the prefix', async (t) => {
  const { app, admin } = await createUsher(t, { prefix: '/accounts' })
  const payload = { name: 'Ada', email: 'ada@example.com', role: 'admin' }
  const response = await app.inject({ method: 'POST', url: '/accounts/api/users', headers: admin.headers, payload })
  t.equal(response.json().role, 'admin')
  t.equal(response.headers.location, `/accounts/api/users/${response.json().id}`)
})

t.test('2.3 an invalid user gets 400 with one sentence per field, in the order of the schema', async (t) => {
  const required = ['name is required', 'email is required']
  const good = { name: 'Ada', email: 'ada@example.com' }
  const refused: [unknown, string[]][] = [
    [{}, required],
    ['', required],
    [[], ['body must be an object']],
    ['null', ['body must be an object']],
    ['"text"', ['body must be an object']],
    ['1', ['body must be an object']],
    [{ email: 'ada@example.com' }, ['name is required']],
    [{ name: 'Ada' }, ['email is required']],
    [{ password: 'short', role: 'king', email: 'nowhere', name: '' }, [
      'name must not be blank', 'email must be an email address', 'role must be one of admin, user',
      'password must be at least 8 characters',
    ]],
    [{ name: 1, email: 2, role: 3, password: 4 }, [
      'name must be a string', 'email must be a string', 'role must be a string', 'password must be a string',
    ]],
    [{ name: null, email: null, role: null, password: null }, [
      'name must be a string', 'email must be a string', 'role must be a string', 'password must be a string',
    ]],
    [{ name: ['Ada'], email: { toString: 'x' } }, ['name must be a string', 'email must be a string']],
    [{ ...good, name: ' \t\n\u00a0 ' }, ['name must not be blank']],
    [{ ...good, name: 'n'.repeat(201) }, ['name must be at most 200 characters']],
    [{ ...good, name: 'A\u0000a' }, ['name must not contain control characters']],
    [{ ...good, name: 'A\na' }, ['name must not contain control characters']],
    [{ ...good, name: 'A\u007fa' }, ['name must not contain control characters']],
    [{ ...good, name: 'A\u0085a' }, ['name must not contain control characters']],
    [{ ...good, name: '\u0000'.repeat(300) }, ['name must not contain control characters']],
    ['{"name":"A\\ud800a","email":"ada@example.com"}', ['name must not contain control characters']],
    ['{"name":"\\udc00\\ud800","email":"ada@example.com"}', ['name must not contain control characters']],
    ['{"name":"Ada","email":"a\\ud800@example.com"}', ['email must not contain control characters']],
    ['{"name":"Ada","email":"a\\u0000@example.com"}', ['email must not contain control characters']],
    [
      '{"name":"Ada","email":"ada@example.com","password":"pass\\udfffword"}',
      ['password must not contain control characters'],
    ],
    [{ ...good, password: 'pass\u0000word 1' }, ['password must not contain control characters']],
    [{ ...good, email: `${'a'.repeat(243)}@example.com` }, ['email must be at most 254 bytes']],
    ...[
      '', ' ', '@', 'a@', '@b', 'a b@c.de', 'a@b c', 'a@b@c', 'a@-b', 'a,b@c.de', '<a@b.de>', 'a@b\r\nBcc:c@d',
    ].map((email): [unknown, string[]] =>
      [{ ...good, email }, [
        /[\r\n]/.test(email) ? 'email must not contain control characters' : 'email must be an email address',
      ]]),
    [{ ...good, role: 'Admin' }, ['role must be one of admin, user']],
    [{ ...good, role: '' }, ['role must be one of admin, user']],
    [{ ...good, role: ['admin'] }, ['role must be a string']],
    [{ ...good, password: '1234567' }, ['password must be at least 8 characters']],
    [{ ...good, password: '😀'.repeat(7) }, ['password must be at least 8 characters']],
    [{ ...good, password: 'p'.repeat(257) }, ['password must be at most 256 characters']],
    [{ ...good, password: '😀'.repeat(257) }, ['password must be at most 256 characters']],
    [{ ...good, password: 'password' }, ['password is too common']],
    [{ password: 'PassWord123' }, [...required, 'password is too common']],
    ['{"__proto__":{"name":"Ada","email":"ada@example.com"}}', required],
    ['{"constructor":{"prototype":{"name":"Ada","email":"ada@example.com"}}}', required],
  ]
  const before = (await inject('GET', '/api/users?limit=1000')).json()
  for (const [body, errors] of refused) {
    t.same(await post(body), { status: 400, errors }, JSON.stringify(body).slice(0, 100))
  }
  t.equal(({} as { name?: string }).name, undefined)
  t.same((await inject('GET', '/api/users?limit=1000')).json(), before, 'nobody was created')
})

t.test('2.3 unusual but valid users are created', async (t) => {
  const accepted: [unknown, object][] = [
    [{ name: 'n'.repeat(200), email: `${'a'.repeat(242)}@example.com` }, {
      name: 'n'.repeat(200), email: `${'a'.repeat(242)}@example.com`,
    }],
    [{ name: ` ${'😀'.repeat(200)} `, email: 'emoji@example.com' }, { name: '😀'.repeat(200) }],
    [{ name: '</script><b>"\'\\ %00 ${x}', email: "o'brien+tag@example.com" }, { name: '</script><b>"\'\\ %00 ${x}', email: "o'brien+tag@example.com" }], // eslint-disable-line no-template-curly-in-string
    [{ name: 'Zoë 山田 שלום ‏', email: 'A.B@EXAMPLE.com' }, { name: 'Zoë 山田 שלום ‏', email: 'A.B@EXAMPLE.com' }],
    ['\ufeff{"name":"BOM","email":"bom@example.com"}', { name: 'BOM' }],
    ['{"name":"\\ud83d\\ude00","email":"pair@example.com"}', { name: '😀' }],
    ['{"name":"One","name":"Two","email":"twice@example.com"}', { name: 'Two' }],
    [
      '{"name":"P","email":"p@example.com","__proto__":{"role":"admin"},"constructor":{"prototype":{"role":"admin"}}}',
      { role: 'user' },
    ],
    [{
      name: 'Unknown',
      email: 'unknown@example.com',
      id: UNKNOWN,
      createdAt: '1970-01-01T00:00:00.000Z',
      passwordHash: 'x',
      password_hash: 'x',
      isAdmin: true,
    }, { name: 'Unknown', role: 'user' }],
    [{ name: 'Emoji', email: 'e8@example.com', password: '😀'.repeat(8) }, {}],
    [{ name: 'Emoji', email: 'e256@example.com', password: '😀'.repeat(256) }, {}],
  ]
  for (const [body, expected] of accepted) {
    const created = await post(body)
    t.match(created, { status: 201, ...expected }, JSON.stringify(body).slice(0, 100))
    t.notOk('password' in created || 'passwordHash' in created)
    t.not(created.id, UNKNOWN)
    t.not(created.createdAt, '1970-01-01T00:00:00.000Z')
    const { status, ...user } = created
    t.same((await inject('GET', `/api/users/${created.id}`)).json(), user)
  }
  for (const count of [8, 256]) {
    const login = await inject(
      'POST', '/api/auth/login', { payload: { email: `e${count}@example.com`, password: '😀'.repeat(count) } }
    )
    t.equal(login.statusCode, 200)
  }
})

t.test('2.3 an email address is unique regardless of case, also for PUT', async (t) => {
  const taken = { status: 409, error: 'This email address is already taken', code: 'EMAIL_TAKEN' }
  const ada = await post({ name: 'Ada', email: 'Ada.Unique@Example.com' })
  t.equal(ada.email, 'Ada.Unique@Example.com')
  t.same(await post({ name: 'Ada', email: 'aDA.uNIQUE@eXAMPLE.COM' }), taken)
  const bob = await post({ name: 'Bob', email: 'bob@example.com' })
  for (const role of [undefined, 'user', 'admin']) {
    const response = await inject('PUT', `/api/users/${bob.id}`, {
      headers: admin.headers, payload: { name: 'Bob', email: 'ADA.unique@example.com', role },
    })
    t.same({ status: response.statusCode, ...response.json() }, taken)
  }
  t.same((await inject('GET', `/api/users/${bob.id}`)).json().email, 'bob@example.com')
  const own = await inject(
    'PUT', `/api/users/${ada.id}`, { headers: admin.headers, payload: { name: 'Ada', email: 'ada.unique@example.com' } }
  )
  t.equal(own.json().email, 'ada.unique@example.com')
})

nightly('2.3 of two hundred concurrent creations with one address, one succeeds and the others get 409', async (t) => {
  const responses = await Promise.all(Array.from({ length: 200 }, (_, number) => inject('POST', '/api/users', {
    headers: admin.headers,
    payload: { name: `Racer ${number}`, email: number % 2 ? 'race@example.com' : 'RACE@example.com' },
  })))
  const statuses = responses.map(({ statusCode }) => statusCode)
  t.equal(statuses.filter((status) => status === 201).length, 1)
  t.equal(statuses.filter((status) => status === 409).length, 199)
  const users = (await inject('GET', '/api/users?limit=1000')).json() as { name: string }[]
  t.equal(users.filter(({ name }) => name.startsWith('Racer')).length, 1)
})

t.test('2.4 PUT /api/users/{id} returns 200 with the updated user (given)', async (t) => {
  const { id } = await createUser({ name: 'Before', email: 'before@example.com' })
  const before = (await inject('GET', `/api/users/${id}`)).json()
  const response = await inject(
    'PUT', `/api/users/${id}`, { headers: admin.headers, payload: { name: 'After', email: 'After@example.com' } }
  )
  t.equal(response.statusCode, 200)
  const { updatedAt, ...user } = response.json()
  t.same({ ...user, updatedAt }, { ...before, name: 'After', email: 'After@example.com', updatedAt })
  t.ok(updatedAt > before.updatedAt)
  t.same((await inject('GET', `/api/users/${id}`)).json(), response.json())
})

t.test('2.4 the result of GET can be sent back; id and createdAt cannot be written', async (t) => {
  const user = await createUser()
  const { updatedAt, ...got } = (await inject('GET', `/api/users/${user.id}`)).json()
  for (const { headers } of [admin, user]) {
    const response = await inject('PUT', `/api/users/${user.id}`, { headers, payload: { ...got, updatedAt } })
    t.equal(response.statusCode, 200)
    const { updatedAt: _, ...put } = response.json()
    t.same(put, got)
  }
  const payload = {
    ...got, id: randomUUID(), createdAt: '2001-01-01T00:00:00Z', password: 'an ignored password', passwordHash: 'x',
  }
  const { updatedAt: _, ...put } =
    (await inject('PUT', `/api/users/${user.id}`, { headers: admin.headers, payload })).json()
  t.same(put, got)
  t.equal((await inject('POST', '/api/auth/login', { payload: user })).statusCode, 200, 'the password is the same')
})

t.test('2.4 a PUT without a required field gets 400', async (t) => {
  const put = async (payload: object) =>
    (await inject('PUT', `/api/users/${admin.id}`, { headers: admin.headers, payload })).json()
  t.same(await put({}), { errors: ['name is required', 'email is required'] })
  t.same(await put({ name: ' ', email: 'x', role: 'x' }), {
    errors: ['name must not be blank', 'email must be an email address', 'role must be one of admin, user'],
  })
  t.same(await put({ name: 1, email: 'a@example.com', role: null }), {
    errors: ['name must be a string', 'role must be a string'],
  })
})

t.test('2.5 DELETE /api/users/{id} returns 204 without a body; a later GET gets 404 (given)', async (t) => {
  const { id } = await createUser()
  const response = await inject('DELETE', `/api/users/${id}`, { headers: admin.headers })
  t.equal(response.statusCode, 204)
  t.equal(response.body, '')
  t.equal(response.headers['content-type'], undefined)
  t.equal((await inject('GET', `/api/users/${id}`)).statusCode, 404)
  const again = await inject('DELETE', `/api/users/${id}`, { headers: admin.headers })
  t.same([again.statusCode, again.json()], [404, { error: 'User not found', code: 'USER_NOT_FOUND' }])
})

t.test('2.5 a JSON content type with an empty body is accepted', async (t) => {
  const { id } = await createUser()
  const headers = { ...admin.headers, 'content-type': 'application/json' }
  t.equal((await inject('DELETE', `/api/users/${id}`, { headers })).statusCode, 204)
})

t.test('2.5 deleting a user also deletes sessions and posts, and its token stops working at once', async (t) => {
  const user = await createUser()
  const sql = openSql(t, usher)
  const postId = randomUUID()
  await sql`insert into posts (id, author_id, title, content) values (${postId}, ${user.id}, 'T', 'C')`
  await inject('DELETE', `/api/users/${user.id}`, { headers: admin.headers })
  const response = await inject('GET', '/api/protected', { headers: user.headers })
  t.equal(response.statusCode, 401)
  t.same(response.json(), { error: 'The bearer token is invalid, expired or revoked', code: 'INVALID_TOKEN' })
  t.same(await sql`select 1 from posts where id = ${postId}`, [])
  t.same(await sql`select 1 from sessions where user_id = ${user.id}`, [])
  t.equal((await inject('POST', '/api/auth/login', { payload: user })).statusCode, 401)
})
