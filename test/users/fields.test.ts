import { randomUUID } from 'node:crypto'
import t from 'tap'
import type { LoggedIn } from '../helpers/app.ts'
import { createUsher } from '../helpers/app.ts'
import { createPost, openSocket, post } from '../helpers/graphql.ts'
import { openSql } from '../helpers/sql.ts'
import { userFields } from '../helpers/user-fields.ts'

const NAMES = Object.keys(userFields.properties)
// Everything that an admin sets.
const full = {
  bio: 'Wrote "Notes"\n\\ in 1843',
  phone: '+44',
  plan: 'pro',
  score: 7,
  spent: Number.MAX_SAFE_INTEGER,
  ratio: -1.25e-7,
  newsletter: true,
  tags: ['a', '"', '\\', 'null', '{}'],
  settings: { theme: 'dark', deep: { list: [1, null, 'é'] } },
  note: 'careful',
}
const defaults = { plan: 'free', ratio: 0.5, settings: { theme: 'light' } }

type Values = Record<string, unknown>
const only = (user: Values, names: readonly string[] = NAMES): Values =>
  Object.fromEntries(names.filter((name) => name in user).map((name) => [name, user[name]]))
const forAnyone = ['bio', 'score', 'tags']
const forOwner = NAMES.filter((name) => !['spent', 'note'].includes(name))

const usher = await createUsher(t, { userFields })
const { inject, admin, createUser, login } = usher
const sql = openSql(t, usher)
const person = (rest: object = {}) =>
  ({ name: 'Ada', email: `${randomUUID()}@example.com`, password: `pass ${randomUUID()}`, ...rest })

async function create (rest: object = {}): Promise<LoggedIn & { shown: Values }> {
  const payload = person(rest)
  const response = await inject('POST', '/api/users', { headers: admin.headers, payload })
  if (response.statusCode !== 201) throw new Error(response.body)
  return { ...await login(payload), shown: response.json() }
}

const change = (method: 'PUT' | 'PATCH', { id }: { id: string }, by: LoggedIn, payload: object) =>
  inject(method, `/api/users/${id}`, { headers: by.headers, payload })
const read = async (id: string, by?: LoggedIn): Promise<Values> =>
  (await inject('GET', `/api/users/${id}`, { headers: by?.headers })).json()

t.test('12.2 an admin writes every field, and reads what was written', async (t) => {
  const user = await create(full)
  t.same(only(user.shown), full)
  t.same(only(await read(user.id, admin)), full)
  const [row] = await sql`select ${sql(NAMES)} from users where id = ${user.id}`
  t.same(row, { ...full, spent: String(full.spent) }, 'in columns with the names of the fields')
  const none = await create()
  t.same(only(none.shown), defaults, 'fields without a value are absent or have their default')
  const patched = await change('PATCH', none, admin, { plan: 'pro', spent: 3, tags: [] })
  t.same(only(patched.json()), { ...defaults, plan: 'pro', spent: 3, tags: [] })
  t.same(
    only((await change('PATCH', none, admin, { plan: null, spent: null, name: 'B' })).json()),
    { ...defaults, tags: [] },
    'null removes a value'
  )
  const { email } = none
  t.same(
    only((await change('PUT', none, admin, { name: 'C', email, note: 'x' })).json()),
    { ...defaults, note: 'x' },
    'what a replacement leaves out has no value'
  )
})

t.test('12.2 what GET returns can be sent back by PUT and PATCH, by everybody', async (t) => {
  const user = await create(full)
  for (const by of [user, admin]) {
    for (const method of ['PUT', 'PATCH'] as const) {
      const response = await change(method, user, by, await read(user.id, by))
      t.equal(response.statusCode, 200, response.body)
      t.same(only(await read(user.id, admin)), full)
    }
  }
})

t.test('12.2 a field is shown to its audience only, by every path', async (t) => {
  const owner = await create(full)
  const another = await createUser()
  await createPost(usher, owner)
  const seen = { nobody: forAnyone, another: forAnyone, owner: forOwner, admin: NAMES }
  const readers = { nobody: undefined, another, owner, admin }
  const find = (list: Values[]) => list.find(({ id }) => id === owner.id)!
  const selection = `id ${NAMES.join(' ')}`
  const nullToAbsent = (user: Values) => Object.fromEntries(Object.entries(user).filter(([, value]) => value !== null))
  const query = async (reader: LoggedIn | undefined, text: string) => {
    const { data, errors } = await post(usher, { query: text }, reader)
    t.equal(errors, undefined)
    return data
  }
  const paths: Record<string, (reader: LoggedIn | undefined) => Promise<Values>> = {
    'by id': (reader) => read(owner.id, reader),
    'list, version 1': async (reader) => find((await inject('GET', '/api/users', { headers: reader?.headers })).json()),
    'list, version 2': async (reader) => find((await inject(
      'GET', '/api/users', { headers: { ...reader?.headers, accept: 'application/vnd.api.v2+json' } }
    )).json().data),
    'list by role': async (reader) =>
      find((await inject('GET', '/api/users?role=user&limit=50', { headers: reader?.headers })).json()),
    user: async (reader) => nullToAbsent((await query(reader, `{ user(id: "${owner.id}") { ${selection} } }`)).user),
    users: async (reader) =>
      nullToAbsent(find((await query(reader, `{ users(first: 100) { nodes { ${selection} } } }`)).users.nodes)),
    author: async (reader) => nullToAbsent((await query(
      reader, `{ posts(authorId: "${owner.id}") { nodes { author { ${selection} } } } }`
    )).posts.nodes[0].author),
    async socket (reader) {
      const socket = await (await openSocket(t, usher)).init(reader?.headers)
      const { data } = await socket.run(`{ user(id: "${owner.id}") { ${selection} } }`)
      socket.socket.close()
      return nullToAbsent(data.user)
    },
  }
  for (const [path, get] of Object.entries(paths)) {
    // The second time, graphql-jit has compiled the document.
    for (const round of [1, 2]) {
      // All at the same time, so that they share statements and pages.
      const shown = await Promise.all(Object.values(readers).map(get))
      for (const [index, reader] of (Object.keys(readers) as (keyof typeof readers)[]).entries()) {
        t.same(only(shown[index]!), only(full, seen[reader]), `${reader}, ${path}, ${round}`)
      }
    }
  }
  const anonymous = await inject('GET', `/api/users/${owner.id}`)
  t.equal(anonymous.headers['cache-control'], 'private, no-cache')
  t.equal((await inject('GET', `/api/users/${owner.id}`, { headers: { authorization: 'Bearer x' } })).statusCode, 401)
})

t.test('12.2 responses about the own account show what the owner may see', async (t) => {
  const owner = await create(full)
  const expected = only(full, forOwner)
  const response = await inject('POST', '/api/auth/login', { payload: owner })
  t.same(only(response.json().user), expected)
  t.notMatch(response.body, 'careful')
  t.same(
    only((await inject('POST', '/api/auth/refresh', { headers: { cookie: (await login(owner)).cookie } })).json().user),
    expected
  )
  t.same(only((await inject('GET', '/api/protected', { headers: owner.headers })).json().user), expected)
  t.same((await post(usher, { query: '{ me { plan phone note } }' }, owner)).data.me, {
    plan: 'pro', phone: '+44', note: null,
  })
  t.same(only((await change('PATCH', owner, owner, {})).json()), expected)
})

t.test('12.2 subscribers get events with what they may see', async (t) => {
  const owner = await create(full)
  const another = await createUser()
  const sockets = await Promise.all([undefined, another, owner, admin].map(async (reader) => {
    const socket = await (await openSocket(t, usher)).init(reader?.headers)
    socket.start('posts', 'subscription { postCreated { author { bio phone spent settings } } }')
    await socket.settle()
    return socket
  }))
  await createPost(usher, owner)
  const authors = await Promise.all(
    sockets.map(async (socket) => (await socket.next()).payload!.data.postCreated.author)
  )
  const { bio, phone, spent, settings } = full
  const open = { bio, phone: null, spent: null, settings: null }
  t.same(authors, [open, open, { bio, phone, spent: null, settings }, { bio, phone, spent, settings }])
})

t.test('12.2 fields that the actor may not write are ignored, whatever their values are', async (t) => {
  const owner = await create({ plan: 'pro', spent: 5, note: 'x' })
  const kept = { plan: 'pro', spent: 5, note: 'x' }
  const tries = [
    { plan: 'free', spent: 0, note: null }, { plan: 7, spent: 'many', note: { a: 1 }, score: [], ratio: 'x' },
  ]
  for (const payload of tries) {
    const patched = await change('PATCH', owner, owner, { ...payload, bio: 'mine', newsletter: false })
    t.equal(patched.statusCode, 200, patched.body)
    t.match(patched.json(), { bio: 'mine', newsletter: false, plan: 'pro', ratio: 0.5 })
    const put = await change('PUT', owner, owner, { name: 'Ada', email: owner.email, ...payload, phone: '1' })
    t.equal(put.statusCode, 200, put.body)
    t.same(
      only(await read(owner.id, admin)),
      { ...defaults, ...kept, phone: '1' },
      'a protected field keeps its value, and an own one that is left out is removed'
    )
  }
  const { updatedAt } = await read(owner.id)
  t.equal((await change('PATCH', owner, owner, { plan: 'free' })).json().updatedAt, updatedAt, 'nothing has changed')
  const another = await createUser()
  t.equal((await change('PATCH', owner, another, { bio: 'theirs' })).statusCode, 403)
  t.equal((await read(owner.id)).bio, undefined)
})

t.test('12.2 who may change the records of others by a policy does not write their fields', async (t) => {
  const open = await createUsher(t, { userFields, policy: { 'users:replace': () => true, 'users:create': () => true } })
  const [owner, another] = [await open.createUser(), await open.createUser()]
  const { headers } = another
  const patched = await open.inject(
    'PATCH', `/api/users/${owner.id}`, { headers, payload: { name: 'New', bio: 'x', plan: 'pro' } }
  )
  t.match(patched.json(), { name: 'New', bio: undefined })
  const created = await open.inject(
    'POST', '/api/users', { headers, payload: { ...person(), bio: 'x', plan: 'pro', note: 'x' } }
  )
  t.equal(created.statusCode, 201)
  const shown = await open.inject('GET', `/api/users/${created.json().id}`, { headers: open.admin.headers })
  t.same(only(shown.json()), defaults)
})
