import { Type, type TObject, type TSchema } from '@sinclair/typebox'
import Fastify from 'fastify'
import t, { type Test } from 'tap'
import usher, { type UsherOptions } from '../../app.ts'
import { members } from '../../schema/users/members.ts'
import { createUsher, withUsers } from '../helpers/app.ts'
import { openHost, mountOptions } from '../helpers/host.ts'
import { openSql } from '../helpers/sql.ts'

const text = Type.Optional(Type.String({ 'x-write': 'owner', 'x-read': 'anyone' }))
const number = Type.Optional(Type.Number({ 'x-read': 'anyone' }))

const requiredOf = (properties: object): string[] => Type.Object(properties as Record<string, TSchema>).required ?? []

/** Returns the message with which a start fails. */
async function failure (t: Test, options: UsherOptions): Promise<string> {
  const app = Fastify({ pluginTimeout: 0 })
  t.teardown(() => app.close())
  return app.register(usher, { databaseUrl: 'postgres://nobody@127.0.0.1:1/none', ...options })
    .then(() => 'started', (error: Error) => error.message)
}

t.test('12.2 the start fails with a sentence that names the option and the field', async (t) => {
  const wrong: [fields: object, message: RegExp][] = [
    [
      { plan: Type.String() },
      /^usher: userFields\.plan must be optional or have a default, because existing users have no value$/,
    ],
    [{ plan: Type.Optional(Type.Null()) }, /userFields\.plan must be a string, an integer/],
    [{ plan: Type.Optional(Type.Date()) }, /userFields\.plan must be a string, an integer/],
    [
      { plan: Type.Optional(Type.Union([Type.String(), Type.Number()])) },
      /userFields\.plan must be a string, an integer/,
    ],
    [{ plan: null }, /userFields\.plan must be a schema/],
    [
      { plan: Type.Optional(Type.String({ 'x-read': 'everybody' })) },
      /userFields\.plan has an x-read that is not anyone, owner or admin/,
    ],
    [
      { plan: Type.Optional(Type.String({ 'x-write': 'anyone' })) },
      /userFields\.plan has an x-write that is not owner or admin/,
    ],
    [
      { plan: Type.Optional(Type.String({ maxlength: 3 })) },
      /userFields\.plan is not a valid field: .*unknown keyword: "maxlength"/,
    ],
    [
      { plan: Type.Optional(Type.String({ format: 'iban' })) },
      /userFields\.plan is not a valid field: .*unknown format "iban"/,
    ],
    [
      { plan: Type.Optional(Type.String({ pattern: '(' })) },
      /userFields\.plan is not a valid field: Invalid regular expression/,
    ],
    [
      { plan: Type.Optional(Type.Array(Type.Object({ a: Type.Number({ max: 3 }) }))) },
      /userFields\.plan is not a valid field: .*unknown keyword: "max"/,
    ],
    [
      { plan: Type.Optional(Type.Object({ a: Type.String({ $id: 'A' }) })) },
      /userFields\.plan is not a valid field: the keyword \$id is not supported/,
    ],
    [
      { plan: Type.String({ default: 3 }) },
      /userFields\.plan is not a valid field: its default: plan must be a string/,
    ],
    [{ plan: Type.String({ default: 'abcd', maxLength: 3 }) }, /its default: plan must be at most 3 characters/],
    [{ plan: Type.Array(Type.String(), { default: [1] }) }, /its default: plan\.0 must be a string/],
    [
      Object.fromEntries(Array.from({ length: 33 }, (_, index) => [`f${index}`, text])),
      /userFields may have at most 32 fields/,
    ],
  ]
  const names = [
    ...Object.keys(members), 'passwordHash', 'token', 'cookie', 'signUpId', 'posts', 'ctid', 'xmin', 'constructor', 'toString', 'valueOf',
  ]
  for (const name of names) {
    wrong.push([{ [name]: text }, new RegExp(`^usher: userFields\\.${name} is reserved by Usher`)])
  }
  for (const name of ['Plan', '_plan', 'a_b', 'a b', '1a', 'é', '', 'a'.repeat(41), 'a"; drop table users; --']) {
    wrong.push([{ [name]: text }, /is not a name of a field/])
  }
  wrong.push([JSON.parse('{ "__proto__": { "type": "string" } }'), /userFields\.__proto__ is not a name of a field/])
  for (const [properties, message] of wrong) {
    t.match(await failure(
      t, { userFields: { type: 'object', properties, required: requiredOf(properties) } as unknown as TObject }
    ), message)
  }
  for (const given of [Type.String(), 3, [], null, { type: 'object' }]) {
    t.match(await failure(t, { userFields: given as never }), /userFields must be an object of TypeBox/)
  }
  t.match(
    await failure(t, { userFields: Type.Object({}, { minProperties: 1 }) }),
    /userFields has the unknown keyword minProperties/
  )
})

t.test('12.2 adding a field takes effect at the next start, and removing it leaves its column in place', async (t) => {
  const first = await createUsher(t)
  const { options, inject } = first
  const sql = openSql(t, first)
  const columns = async () => (
    await sql`select attname from pg_attribute where attrelid = 'users'::regclass and attnum > 0 and attname in ('bio', 'age')`
  ).map(({ attname }) => attname).sort()
  const user = await first.createUser()
  t.same(await columns(), [])

  // Several nodes at once, with different fields, and with the former node still running.
  const fields: Record<string, TSchema>[] = [{ bio: text }, { bio: text }, { bio: text, age: number }, { age: number }]
  const nodes = fields.map((fields) => ({ app: openHost(t), given: { ...options, userFields: Type.Object(fields) } }))
  await Promise.all(nodes.map(async ({ app, given }) => { await app.register(usher, given) }))
  const [one, , both, other] = await Promise.all(nodes.map(({ app, given }) => withUsers(app, given)))
  t.same(await columns(), ['age', 'bio'])
  const path = `/api/users/${user.id}`
  const patch = (by: typeof first, payload: object) =>
    by.inject('PATCH', path, { headers: first.admin.headers, payload })
  t.match((await patch(one!, { bio: 'x', age: 3 })).json(), { bio: 'x', age: undefined })
  t.match((await patch(other!, { age: 4, bio: 'y' })).json(), { bio: undefined, age: 4 })
  t.match((await patch(first, { name: 'B', bio: 'z' })).json(), { name: 'B', bio: undefined })
  t.match((await both!.inject('GET', path)).json(), { name: 'B', bio: 'x', age: 4 })
  t.equal((await first.inject('PUT', path, {
    headers: first.admin.headers, payload: { name: 'C', email: user.email },
  })).statusCode, 200)
  t.match(
    (await both!.inject('GET', path)).json(),
    { name: 'C', bio: 'x', age: 4 },
    'a node without the fields does not change them'
  )
  for (const node of [first, one!, both!, other!]) {
    await node.login(user)
    t.match((await node.createUser()).id, /^[0-9a-f-]{36}$/)
  }

  const without = await createUsher(t, options)
  t.equal('bio' in (await without.inject('GET', path)).json(), false)
  t.same(await columns(), ['age', 'bio'])
  const again = await createUsher(t, { ...options, userFields: Type.Object({ bio: text }) })
  t.match((await again.inject('GET', path)).json(), { bio: 'x' }, 'the values are back')
  t.equal((await inject('GET', path)).statusCode, 200)
})

t.test('12.2 the start fails if a column has another type than its field', async (t) => {
  const node = await createUsher(t, { userFields: Type.Object({ age: number }) })
  const sql = openSql(t, node)
  const changed = { ...node.options, userFields: Type.Object({ age: text }) }
  t.match(
    await failure(t, changed),
    /userFields\.age needs a column of the type text, but ".+"\.users has a column "age" of the type double precision: give the field another name, or change the column/
  )
  await sql`alter table users alter column age type text`
  t.equal(await failure(t, changed), 'started')
  await sql`update users set age = ''`
  await sql`alter table users alter column age set not null`
  t.match(await failure(t, changed), /userFields\.age needs a column that may be null/)
  await sql`alter table users drop column age`
  t.equal(await failure(t, changed), 'started')
})

t.test('12.2 two mounts with different fields in one app', async (t) => {
  const app = openHost(t)
  const ours = { ...await mountOptions(t, '/ours'), decoratorName: 'ours', userFields: Type.Object({ bio: text }) }
  const theirs = {
    ...await mountOptions(t, '/theirs'),
    decoratorName: 'theirs',
    userFields: Type.Object({ bio: number, tags: Type.Optional(Type.Array(Type.String(), { 'x-read': 'anyone' })) }),
  }
  await app.register(usher, ours)
  await app.register(usher, theirs)
  await app.ready()
  const [one, two] = [await withUsers(app, ours), await withUsers(app, theirs)]
  for (const [mount, given, shown] of [
    [one, { bio: 'x', tags: ['a'] }, { bio: 'x' }], [two, { bio: 1, tags: ['a'] }, { bio: 1, tags: ['a'] }],
  ] as const) {
    const { headers } = mount.admin
    const created = await mount.inject(
      'POST', '/api/users', { headers, payload: { name: 'A', email: 'a@example.com', ...given } }
    )
    const user = created.json()
    t.same(Object.fromEntries(Object.entries(user).filter(([name]) => !(name in members))), shown)
    const { id } = user
    const patched = await mount.inject('PATCH', `/api/users/${id}`, { headers, payload: { bio: given.bio } })
    t.match(patched.json(), shown)
    const { data } = (await mount.inject(
      'POST', '/graphql', { payload: { query: `{ user(id: "${id}") { ${Object.keys(shown).join(' ')} } }` } }
    )).json()
    t.same(data.user, shown)
  }
  t.equal((await one.inject(
    'POST', '/api/users', { headers: one.admin.headers, payload: { name: 'A', email: 'b@example.com', bio: 1 } }
  )).statusCode, 400)
  t.match((await one.inject(
    'POST', '/graphql', { payload: { query: '{ users { nodes { tags } } }' } }
  )).json().errors[0].message, 'tags')
})

t.test('12.2 names that statements or SQL use elsewhere are names of fields, too', async (t) => {
  const names = [
    'address', 'session', 'actor', 'entry', 'agent', 'action', 'given', 'kept', 'values', 'undo', 'rotations', 'hash',
    'network', 'position', 'title', 'content', 'select', 'order', 'user', 'fields', 'former', 'count', 'users',
    'expires', 'secret', 'key', 'then', 'headers', 'length', 'type', 'properties', 'json',
  ]
  const node = await createUsher(t, { userFields: Type.Object(Object.fromEntries(names.map((name) => [name, text]))) })
  const values = Object.fromEntries(names.map((name) => [name, `of ${name}`]))
  const { inject, admin } = node
  const user = { name: 'A', email: 'a@example.com', password: 'horse battery staple 1' }
  const created = await inject('POST', '/api/users', { headers: admin.headers, payload: { ...user, ...values } })
  t.match(created.json(), values)
  const { headers, cookie, id } = await node.login(user)
  const patched = await inject(
    'PATCH', `/api/users/${id}`, { headers, payload: { email: 'b@example.com', address: 'x' } }
  )
  t.match(patched.json(), { ...values, address: 'x', email: 'b@example.com' })
  t.match(
    (await inject('POST', '/api/auth/refresh', { headers: { cookie } })).json().user, { rotations: 'of rotations' }
  )
  t.match((await inject('GET', '/api/users')).json()[0], { hash: 'of hash' })
  const query = `{ users { nodes { ${names.join(' ')} } } }`
  t.match(
    (await inject('POST', '/graphql', { payload: { query } })).json().data.users.nodes[0], { ...values, address: 'x' }
  )
  const { paths, components } = (await inject('GET', '/docs/json')).json()
  t.ok(paths['/api/users'])
  t.match(components.schemas.User.properties.properties, { type: 'string' })
})
