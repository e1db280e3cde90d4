import t from 'tap'
import { audiences } from '../../app.ts'
import { createUsher } from '../helpers/app.ts'
import { post } from '../helpers/graphql.ts'
import { nightly } from '../helpers/nightly.ts'
import { openSql } from '../helpers/sql.ts'

const V2 = { accept: 'application/vnd.api.v2+json' }
const usher = await createUsher(t)
const { inject, app } = usher
const sql = openSql(t, usher)
// Names that differ in case only, names of several words, and ties.
const names = [
  'ada Lovelace', 'Ada lovelace', 'ADA KING', 'Zoë Ada', 'Émile Zola', 'émile zola', 'Bob_100%', 'bob\\x', '\ufffd',
  '😀 Smile', 'Łukasz', 'x'.repeat(200),
]
await sql`insert into users (id, name, email, role)
  select gen_random_uuid(), (${names}::text[])[n % 12 + 1], 'U' || n || '.mail@' || case when n % 2 = 0 then 'Even' else 'odd' end || '.example.com',
  case when n % 5 = 0 then 'admin' else 'user' end from generate_series(1, 66) n`

interface Person { id: string, name: string, email: string, role: string }
const ask = (query: Record<string, string | number>, headers = {}) =>
  inject('GET', `/api/users?${new URLSearchParams(query as Record<string, string>)}`, { headers })

async function pages (query: Record<string, string | number>, limit: number): Promise<Person[]> {
  const found: Person[] = []
  for (let after = ''; ;) {
    const { data, page } = (await ask({ ...query, limit, ...after && { after } }, V2)).json()
    found.push(...data)
    if (page.next === null) return found
    after = page.next
  }
}

const words = (text: string, q: string) =>
  new RegExp(`(^|[^\\p{L}\\p{N}])${q.replace(/[.*+?^${}()|[\]\\]/g, '\\$&')}`, 'u').test(text)
const bytes = (one: string, other: string) => Buffer.compare(Buffer.from(one), Buffer.from(other))

nightly('10.5 every combination of filters and orders has the users of a model, on pages of any size, by REST and GraphQL', async (t) => {
  const all: Person[] = (await ask({ limit: 1000 })).json()
  for (const q of [
    undefined, 'ADA', 'ada lo', 'zo', 'émile', 'bob_1', '100%', 'bob\\', 'even', 'u1', 'u12.mail@e', 'example',
    'nobody', '%%', '__', '.*',
  ]) {
    for (const role of [undefined, 'admin', 'none']) {
      for (const sort of ['createdAt', '-createdAt', 'name', '-name', 'email', '-email']) {
        const key = ({ id, name, email }: Person) =>
          sort.endsWith('name') ? name.toLowerCase() : sort.endsWith('email') ? email.toLowerCase() : id
        const expected = all.filter((user) => (role === undefined || user.role === role) &&
          (q === undefined || [user.name, user.email].some((text) => words(text.toLowerCase(), q.toLowerCase()))))
          .sort((one, other) => (bytes(key(one), key(other)) ||
            bytes(one.id, other.id)) * (sort.startsWith('-') ? -1 : 1)).map(({ id }) => id)
        const query = { ...q !== undefined && { q }, ...role !== undefined && { role }, sort }
        t.same((await pages(query, 25)).map(({ id }) => id), expected, JSON.stringify(query))
        if (role !== undefined) continue
        const { data } = await post(usher, {
          query: 'query ($q: String, $role: String, $sort: String) { users(q: $q, role: $role, sort: $sort, first: 100) { nodes { id } } }',
          variables: query,
        })
        t.same(data.users.nodes.map(({ id }: Person) => id), expected)
      }
    }
  }
  t.same(
    (await app.usher.users.list({ q: 'zo', sort: 'name', limit: 3 })).data.map(({ id }) => id),
    (await ask({ q: 'zo', sort: 'name', limit: 3 })).json().map(({ id }: Person) => id)
  )
})

nightly('10.5 a search without a letter or digit finds nobody, whatever the size of the page', async (t) => {
  const own = await createUsher(t)
  for (const name of ['One --x', 'Two --x']) await own.createUser({ name })
  for (const limit of [1, 100]) t.same((await own.inject('GET', `/api/users?q=--&limit=${limit}`)).json(), [])
  t.equal((await own.inject('GET', '/api/users?q=--x&limit=1')).json().length, 1)
})

t.test('10.5 email finds a user regardless of case', async (t) => {
  t.same(
    (await ask({ email: 'u7.MAIL@odd.example.com', sort: 'name' })).json().map(({ email }: Person) => email),
    ['U7.mail@odd.example.com']
  )
  for (const email of ['u7.mail@odd.example.co', 'u_.mail@odd.example.com', '%']) {
    t.same((await ask({ email })).json(), [])
  }
})

t.test('10.5 a cursor of a different query, a hostile cursor and an invalid parameter get 400', async (t) => {
  const { next } = (await ask({ sort: 'name', q: 'ada', limit: 1 }, V2)).json().page
  t.equal(
    (await ask({ sort: 'name', q: 'ada', limit: 7, fields: 'id', after: next })).statusCode,
    200,
    'limit and fields may change'
  )
  for (const other of [
    { sort: '-name', q: 'ada' }, { sort: 'name', q: 'ad' }, { sort: 'name' }, { sort: 'name', q: 'ada', role: 'user' },
  ]) {
    t.same(
      (await ask({ ...other as object, after: next })).json(), { errors: ['after must be a cursor of the same query'] }
    )
  }
  for (const after of ['', '!', `${next}=`, `${next}A`.slice(0, 12), 'A'.repeat(5000), 'é', 'null']) {
    t.equal((await ask({ sort: 'name', q: 'ada', after })).statusCode, 400, after)
  }
  const bad = [
    'q=a', 'q=', `q=${'a'.repeat(101)}`, 'q=a%00b', 'q=aa&q=bb', 'sort=id', 'sort=', 'sort=name&sort=name', 'fields=',
    'fields=password_hash', 'fields=id,,name', 'fields=rowVersion', 'email=a%00',
  ]
  for (const query of bad) t.equal((await inject('GET', `/api/users?${query}`)).statusCode, 400, query)
  for (const q of ['x'.repeat(100), "';--", '\\', '😀😀', '***', '(?i)', "a'b & !c:*", '((((']) {
    t.equal((await ask({ q: q.padEnd(2, 'é') })).statusCode, 200, q)
  }
})

t.test('10.5 fields selects members, and id is always among them', async (t) => {
  const [user] = (await ask({ fields: 'name,createdAt,name', limit: 1 })).json()
  t.same(Object.keys(user), ['id', 'name', 'createdAt'])
  t.match(user.createdAt, /^\d{4}-.*Z$/)
  const page = (await ask({ fields: 'role', sort: 'email', limit: 1 }, V2)).json()
  t.same(Object.keys(page.data[0]), ['id', 'role'])
  t.equal((await ask({ fields: 'role', sort: 'email', after: page.page.next })).statusCode, 200)
  t.match((await ask({ fields: 'role', sort: 'email', limit: 1 })).headers.link, /fields=role/)
})

t.test('10.5 unknown parameters are ignored, and errors with strict handling', async (t) => {
  t.equal((await ask({ nope: 1 })).statusCode, 200)
  const rejected = await ask({ nope: 1, q: 'ada' }, { prefer: 'respond-async, handling=strict' })
  t.same([rejected.statusCode, rejected.json()], [400, { errors: ['nope is not a parameter'] }])
  t.equal(rejected.headers['preference-applied'], 'handling=strict')
  const several = await ask({ nope: 1, q: 'a', limit: 0 }, { prefer: 'handling=strict' })
  t.equal(several.json().errors.length, 3)
  t.equal(several.json().errors.at(-1), 'nope is not a parameter')
  t.equal((await ask({ q: 'ada' }, { prefer: 'handling=strict' })).headers['preference-applied'], 'handling=strict')
  t.equal((await ask({ q: 'ada', nope: 1 }, { prefer: 'handling=lenient' })).statusCode, 200)
})

t.test('10.1 a page has a tag of its state, query and media type, and is 304 until one of its users changes', async (t) => {
  const query = { sort: 'name', limit: 2 }
  const { headers: { etag, link } } = await ask(query)
  t.match(etag, /^"[\w-]+"$/)
  for (const other of [ask(query, V2), ask({ ...query, fields: 'id' }), ask({ ...query, limit: 3 })]) {
    t.not((await other).headers.etag, etag)
  }
  const cached = await ask(query, { 'if-none-match': `"x", W/${etag}` })
  t.same([cached.statusCode, cached.body, cached.headers.etag, cached.headers.link, cached.headers['cache-control']], [
    304, '', etag, link, 'private, no-cache',
  ])
  t.match(cached.headers.vary, /Accept/)
  const head = await inject('HEAD', '/api/users?sort=name&limit=2')
  t.same([head.statusCode, head.body, head.headers.etag], [200, '', etag])
  const [{ id }] = (await ask(query)).json()
  await sql`update users set updated_at = now() where id = ${id}`
  t.equal((await ask(query, { 'if-none-match': etag })).statusCode, 200)
})

t.test('10.1 pages that are revalidated at the same time have tags of their own', async (t) => {
  const queries: Record<string, string>[] = [{ fields: 'name' }, { fields: 'email' }, {}]
  const tags = await Promise.all(queries.map(async (query) => (await ask(query)).headers.etag as string))
  const current = await Promise.all(queries.map((query, index) => ask(query, { 'if-none-match': tags[index]! })))
  t.same(current.map(({ statusCode, headers: { etag } }) => [statusCode, etag]), tags.map((tag) => [304, tag]))
  const others = await Promise.all(queries.map((query) => ask(query, { 'if-none-match': tags[0]! })))
  t.same(others.map(({ statusCode }) => statusCode), [304, 200, 200])
})

t.test('11.1 hidden addresses are neither found nor sorted by', async (t) => {
  const usher = await createUsher(t, { policy: { 'users:read-email': audiences.owners } })
  const owner = await usher.createUser({ name: 'Hidden', email: 'secret@example.com' })
  const another = await usher.createUser({ name: 'Another' })
  for (const [reader, finds, sorts] of [
    [undefined, 0, 401], [another, 0, 403], [owner, 1, 403], [usher.admin, 1, 200],
  ] as const) {
    const get = (query: string) => usher.inject('GET', `/api/users?${query}`, { headers: reader?.headers })
    for (const query of ['email=secret@example.com', 'q=secret', 'q=secret@ex']) {
      t.equal((await get(query)).json().length, finds, query)
    }
    t.equal((await get('q=hidd')).json().length, 1)
    t.equal((await get('sort=email')).statusCode, sorts)
    const { data } = await post(usher, { query: '{ users(q: "secret") { nodes { id } } }' }, reader)
    t.equal(data.users.nodes.length, finds)
  }
})
