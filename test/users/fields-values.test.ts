import { randomUUID } from 'node:crypto'
import { Type } from '@sinclair/typebox'
import t from 'tap'
import { createUsher } from '../helpers/app.ts'
import { post } from '../helpers/graphql.ts'
import { createMailer } from '../helpers/mail.ts'
import { nightly } from '../helpers/nightly.ts'
import { openSql } from '../helpers/sql.ts'
import { userFields } from '../helpers/user-fields.ts'

const inbox = createMailer()
const usher = await createUsher(
  t, { userFields, mailer: inbox.mailer, signUp: true, publicUrl: 'https://api.example.com' }
)
const { inject, admin, createUser } = usher
const sql = openSql(t, usher)
const person = (rest: object = {}) => ({ name: 'Ada', email: `${randomUUID()}@example.com`, ...rest })
const create = (payload: object | string) =>
  inject('POST', '/api/users', { headers: { ...admin.headers, 'content-type': 'application/json' }, payload })
const nested = (levels: number) => `${'['.repeat(levels)}1${']'.repeat(levels)}`

t.test('12.2 invalid values get 400 with one sentence for each field', async (t) => {
  const wrong: [values: object, errors: string[]][] = [
    [{ bio: 1 }, ['bio must be a string or null']],
    [{ bio: 'x'.repeat(201) }, ['bio must be at most 200 characters']],
    [{ bio: 'a\0b' }, ['bio must not contain control characters']],
    [{ bio: '\ud800' }, ['bio must not contain control characters']],
    [{ phone: 'é'.repeat(32_769) }, ['phone must be at most 65536 bytes']],
    [{ plan: 'gold' }, ['plan must be one of free, pro']],
    [{ score: 1.5 }, ['score must be an integer or null']],
    [{ score: 101 }, ['score must be between 0 and 100']],
    [{ score: '1' }, ['score must be an integer or null']],
    [{ spent: 2 ** 53 }, [`spent must be between ${Number.MIN_SAFE_INTEGER} and ${Number.MAX_SAFE_INTEGER}`]],
    [{ ratio: 'NaN' }, ['ratio must be a number or null']],
    [{ newsletter: 'true' }, ['newsletter must be a boolean or null']],
    [{ tags: 'a' }, ['tags must be an array or null']],
    [{ tags: ['a', 1, 2] }, ['tags.1 must be a string']],
    [{ tags: ['a\0'] }, ['tags must not contain control characters']],
    [{ tags: Array(1001).fill('a') }, ['tags must have at most 1000 items']],
    [{ tags: Array(100_000).fill(1) }, ['tags must be at most 65536 bytes of JSON']],
    [{ settings: [] }, ['settings must be an object or null']],
    [{ settings: { theme: 1 } }, ['settings.theme must be a string']],
    [{ settings: { 'a\0': 1 } }, ['settings must not contain control characters']],
    [{ settings: { a: ['\udfff'] } }, ['settings must not contain control characters']],
    [{ settings: { a: 'x'.repeat(65_536) } }, ['settings must be at most 65536 bytes of JSON']],
    [{ bio: 1, plan: 2, tags: 3 }, [
      'bio must be a string or null', 'plan must be a string or null', 'tags must be an array or null',
    ]],
  ]
  const { id } = await createUser()
  for (const [values, errors] of wrong) {
    for (const response of [await create(person(values)), await inject(
      'PATCH', `/api/users/${id}`, { headers: admin.headers, payload: values }
    )]) {
      t.same([response.statusCode, response.json()], [400, { errors }], JSON.stringify(values).slice(0, 60))
    }
  }
  const head = JSON.stringify(person()).slice(0, -1)
  const deep = await create(`${head},"settings":{"a":${nested(100_000)}}}`)
  t.same([deep.statusCode, deep.json()], [400, { errors: ['settings must have at most 32 levels'] }])
  t.same((await create(`${head},"ratio":1e400}`)).json(), { errors: ['ratio must be a number or null'] })
  t.same((await create(`${head},"settings":{"a":1e400}}`)).json(), {
    errors: ['settings must not contain a number that is not finite'],
  })
  t.equal((await create(`${head},"settings":{"a":${nested(30)}}}`)).statusCode, 201)
})

t.test('12.2 extreme values are returned as they were sent', async (t) => {
  const values = {
    bio: '\u{1f600}"\\{},null\n\t',
    phone: 'x'.repeat(65_536),
    score: 100,
    spent: Number.MIN_SAFE_INTEGER,
    ratio: Number.MIN_VALUE,
    newsletter: false,
    tags: ['', ' '],
    settings: { '': 0, theme: '"', nested: [[], {}, null, -0.1, 1e300], then: true },
    note: '',
  }
  const created = await create(person(values))
  t.equal(created.statusCode, 201)
  t.match(created.json(), values)
  const { id } = created.json()
  const other = { ...values, ratio: -Number.MAX_VALUE, spent: 0, tags: [], settings: {} }
  const patched = (await inject('PATCH', `/api/users/${id}`, { headers: admin.headers, payload: other })).json()
  t.match(patched, other)
  t.same([patched.tags, patched.settings], [[], {}])
  t.equal((await inject(
    'PATCH', `/api/users/${id}`, { headers: admin.headers, payload: '{"settings":{"__proto__":{"admin":true},"a":1}}' }
  )).statusCode, 415)
  const polluted = await inject('PATCH', `/api/users/${id}`, {
    headers: { ...admin.headers, 'content-type': 'application/json' },
    payload: '{"settings":{"__proto__":{"admin":true},"a":1}}',
  })
  t.same(polluted.json().settings, { a: 1 })
  t.equal(({} as { admin?: boolean }).admin, undefined)
})

t.test('12.2 fields give no way to write what is not a field', async (t) => {
  const user = await createUser()
  const [before] = await sql`select * from users where id = ${user.id}`
  const payload = {
    bio: 'x',
    id: randomUUID(),
    passwordHash: 'x',
    password_hash: 'x',
    email_verified: true,
    emailVerified: true,
    createdAt: '2000-01-01',
    fields: { plan: 'pro' },
    plan: 'pro',
    constructor: { prototype: {} },
    context: {},
    toString: 'x',
  }
  t.equal((await inject('PATCH', `/api/users/${user.id}`, { headers: user.headers, payload })).statusCode, 200)
  const [after] = await sql`select * from users where id = ${user.id}`
  t.same(after, { ...before, bio: 'x', updated_at: after!['updated_at'], row_version: after!['row_version'] })
  for (const forbidden of [{ role: 'admin', bio: 'y' }, { disabled: true, bio: 'y' }]) {
    t.equal(
      (await inject('PATCH', `/api/users/${user.id}`, { headers: user.headers, payload: forbidden })).statusCode, 403
    )
  }
  for (const body of ['[]', 'null', '"x"', '1']) t.equal((await create(body)).statusCode, 400, body)
})

t.test('12.2 200 users with fields are created at once, and those with a taken address or an invalid value fail alone', async (t) => {
  const taken = (await createUser()).email
  const people = Array.from({ length: 200 }, (_, index) => person({
    bio: `bio ${index}`,
    score: index % 10 === 1 ? -1 : index % 101,
    tags: [`${index}`],
    settings: { index },
    newsletter: index % 2 === 0,
    ...index % 10 === 2 && { email: taken },
  }))
  const responses = await Promise.all(people.map(create))
  for (const [index, response] of responses.entries()) {
    const { bio, score, tags, settings, newsletter } = people[index] as never
    const expected = index % 10 === 1 ? 400 : index % 10 === 2 ? 409 : 201
    t.equal(response.statusCode, expected)
    if (expected === 201) t.match(response.json(), { bio, score, tags, settings, newsletter, plan: 'free' })
  }
  t.equal((await sql`select 1 from users where bio like 'bio %'`).length, 160)
})

t.test('12.2 a sign-up sets the fields that the user may write, when it is confirmed', async (t) => {
  const ada = { ...person(), password: `pass ${randomUUID()}` }
  const values = { bio: 'I\'m "Ada"\\', newsletter: true, tags: ['x'], settings: { theme: 'dark' }, phone: null }
  const invalid = await inject('POST', '/api/auth/sign-up', { payload: { ...ada, bio: 3, plan: 3 } })
  t.same([invalid.statusCode, invalid.json()], [400, { errors: ['bio must be a string or null'] }])
  const response = await inject('POST', '/api/auth/sign-up', {
    payload: { ...ada, ...values, plan: 'pro', score: 'x', note: 'x', fields: { plan: 'pro' } },
  })
  t.equal(response.statusCode, 202, response.body)
  const token = await inbox.token(ada.email)
  const { phone: _, ...stored } = values
  t.same((await sql`select fields from sign_ups where email = ${ada.email}`)[0]!.fields, stored)
  const cookie = `${response.headers['set-cookie']}`.split(';')[0]!
  const confirmed = await inject('POST', '/api/auth/sign-up/confirm', { payload: { token }, headers: { cookie } })
  t.equal(confirmed.statusCode, 201)
  const shown = confirmed.json()
  t.match(shown, { ...stored, plan: 'free', role: 'user', emailVerified: true })
  for (const name of ['score', 'note', 'phone']) t.notOk(name in shown)
  t.match((await inject('GET', `/api/users/${shown.id}`, { headers: admin.headers })).json(), {
    ...stored, plan: 'free', note: undefined, score: undefined,
  })
})

t.test('12.2 a confirmation forgets fields that somebody else has sent, and sets its own', async (t) => {
  const fields = { bio: 'I read your mail', newsletter: true, tags: ['x'], phone: '+1 555 0100' }
  const signUp = async () => {
    const { email } = person()
    const payload = { ...person(), email, password: `pass ${randomUUID()}`, ...fields }
    const { headers } = await inject('POST', '/api/auth/sign-up', { payload })
    return { token: await inbox.token(email), headers: { cookie: `${headers['set-cookie']}`.split(';')[0] } }
  }
  const password = `pass ${randomUUID()}`
  const elsewhere = await signUp()
  const given = { bio: 'I am Ada', newsletter: null, plan: 'pro', score: 3 }
  const confirm = (payload: object, headers = {}) =>
    inject('POST', '/api/auth/sign-up/confirm', { payload: { ...payload, ...given }, headers })
  const wrong = { token: elsewhere.token, password, tags: 1 }
  const invalid = await inject('POST', '/api/auth/sign-up/confirm', { payload: wrong })
  t.same([invalid.statusCode, invalid.json()], [400, { errors: ['tags must be an array or null'] }])
  const stranger = (await confirm({ token: elsewhere.token, password })).json()
  t.match(stranger, { bio: 'I am Ada', plan: 'free' })
  for (const name of ['newsletter', 'tags', 'phone', 'score']) t.notOk(name in stranger, name)
  const { token, headers } = await signUp()
  const own = (await confirm({ token }, headers)).json()
  t.match(own, { bio: 'I am Ada', tags: ['x'], phone: fields.phone, plan: 'free' }, 'those of the same browser remain')
  for (const name of ['newsletter', 'score']) t.notOk(name in own, name)
})

nightly('12.2 responses with large fields are limited in GraphQL, and only by what the reader sees', async (t) => {
  const small = await createUsher(t, { userFields, graphql: { maxResponseBytes: 100_000 } })
  const settings = { text: 'x'.repeat(60_000) }
  const { id, headers } = await small.createUser()
  t.equal((await small.inject(
    'PATCH', `/api/users/${id}`, { headers, payload: { settings, phone: 'x'.repeat(60_000) } }
  )).statusCode, 200)
  const ask = (selection: string, reader = small.admin) =>
    post(small, { query: `{ a: user(id: "${id}") { ${selection} } }` }, reader)
  t.same((await ask('settings')).data.a, { settings })
  for (const selection of ['settings again: settings', 'phone again: phone', 'settings phone']) {
    t.match(
      await ask(selection), { data: { a: null }, errors: [{ extensions: { code: 'OPERATION_TOO_COSTLY' } }] }, selection
    )
    t.match(
      await ask(selection, await small.createUser()),
      { data: { a: {} }, errors: undefined },
      'hidden values do not count'
    )
  }
})

nightly('12.2 a page with large fields has fewer rows, and no user is missing', async (t) => {
  const large = await createUsher(t, { userFields })
  const settings = { text: 'x'.repeat(65_000) }
  const create = () =>
    large.inject('POST', '/api/users', { headers: large.admin.headers, payload: { ...person(), settings } })
  const ids = [large.admin.id]
  // All at once, they would take more than a second on a busy machine, and get 503.
  while (ids.length <= 100) {
    ids.push(...(await Promise.all(Array.from({ length: 10 }, create))).map((response) => response.json().id))
  }
  ids.sort().reverse()
  const seen: string[] = []
  for (let after = ''; ;) {
    const response = await large.inject('GET', `/api/users?limit=1000${after}`, {
      headers: { ...large.admin.headers, accept: 'application/vnd.api.v2+json' },
    })
    t.ok(response.body.length < 5 * 1024 * 1024)
    const { data, page } = response.json()
    for (const user of data) seen.push(user.id)
    if (page.next === null) break
    t.match(response.headers.link, 'rel="next"')
    after = `&after=${page.next}`
  }
  t.same(seen, ids)
})

t.test('12.2 the API reference and the SDL describe the fields', async (t) => {
  const { components: { schemas } } = (await inject('GET', '/docs/json')).json()
  t.same(schemas.User.properties.bio, {
    type: 'string', description: 'A text about the user. Absent if it has no value', maxLength: 200,
  })
  t.same(schemas.User.properties.tags.items, { type: 'string', maxLength: 20 })
  t.match(schemas.User.properties.note.description, /^Absent if it has no value, and for readers other than admins$/)
  t.match(schemas.CreateUser.properties.plan, {
    type: ['string', 'null'],
    enum: ['free', 'pro', null],
    description: /^Only admins may set it, for others it is ignored/,
  })
  t.match(schemas.PatchUser.properties.tags, { type: ['array', 'null'], items: { type: 'string' }, maxItems: 1000 })
  for (const { properties } of [schemas.SignUp, schemas.ConfirmSignUp]) {
    t.match(properties, { bio: {}, newsletter: {} })
    t.notOk('plan' in properties)
  }
  t.notMatch(JSON.stringify(schemas), /"(x-read|x-write|hostField|storedJson|text|maxBytes)":(?!{)/)
  const sdl = (await inject('GET', '/docs/schema.graphql')).body
  for (const line of [
    'scalar JSON', '  bio: String', '  score: Int', '  spent: Float', '  ratio: Float', '  newsletter: Boolean',
    '  tags: JSON',
  ]) {
    t.match(sdl, `${line}\n`)
  }
  const { data } = await post(
    usher, { query: '{ __type(name: "User") { fields { name description type { name kind } } } }' }
  )
  t.match(data.__type.fields.find(({ name }: { name: string }) => name === 'bio'), {
    description: 'A text about the user. Null if it has no value', type: { name: 'String', kind: 'SCALAR' },
  })
  const plain = await createUsher(t, { userFields: Type.Object({ bio: Type.Optional(Type.String()) }) })
  t.notMatch((await plain.inject('GET', '/docs/schema.graphql')).body, 'JSON')
})

t.test('12.2 a field with one bound is told that one', async (t) => {
  const fields = Type.Object({
    age: Type.Optional(Type.Integer({ minimum: 18 })),
    shoeSize: Type.Optional(Type.Integer({ maximum: 60 })),
    weight: Type.Optional(Type.Number({ minimum: 0 })),
    depth: Type.Optional(Type.Number({ maximum: 0.5 })),
  })
  const { inject, admin } = await createUsher(t, { userFields: fields })
  const payload = person({ age: 17, shoeSize: 61, weight: -1, depth: 1 })
  t.strictSame((await inject('POST', '/api/users', { headers: admin.headers, payload })).json(), {
    errors: [
      'age must be at least 18', 'shoeSize must be at most 60', 'weight must be at least 0', 'depth must be at most 0.5',
    ],
  })
})
