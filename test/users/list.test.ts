import t from 'tap'
import { shownMembers } from '../../schema/users/members.ts'
import { createUsher } from '../helpers/app.ts'
import { nightly } from '../helpers/nightly.ts'
import { openSql } from '../helpers/sql.ts'

const usher = await createUsher(t)
const { inject, createUser, admin } = usher

async function list (query = ''): Promise<string[]> {
  return (await inject('GET', `/api/users${query}`)).json().map(({ id }: { id: string }) => id)
}

t.test('2.1 GET /api/users returns 200 with a JSON array of users, newest first (given)', async (t) => {
  const before = await list()
  t.equal(before.at(-1), admin.id)
  const first = await createUser({ name: 'First' })
  const second = await createUser({ name: 'Second' })
  const response = await inject('GET', '/api/users')
  t.equal(response.statusCode, 200)
  t.equal(response.headers['content-type'], 'application/json; charset=utf-8')
  t.equal(response.headers.link, undefined)
  t.same(response.json().map(({ id }: { id: string }) => id), [second.id, first.id, ...before])
  t.same(Object.keys(response.json()[0]).sort(), [...shownMembers].sort())
})

t.test('2.1 with ?role=, only users with that role are returned (given)', async (t) => {
  const [admins, users] = [await list('?role=admin'), await list('?role=user')]
  const user = await createUser()
  const other = await createUser({ role: 'admin' })

  t.same(admins, [admin.id])
  t.same(await list('?role=admin'), [other.id, admin.id])
  t.same(await list('?role=user'), [user.id, ...users])
  t.notOk([...users, user.id].includes(admin.id))
  for (const role of ['none', '', 'Admin', 'admin%20', "'%20or%201=1--", '%F0%9F%92%A9', '%ED%A0%80', '%zz']) {
    const response = await inject('GET', `/api/users?role=${role}`)
    t.equal(response.statusCode, 200, role)
    t.same(response.json(), [], role)
  }
})

t.test('2.1 an invalid query gets 400 with all its problems', async (t) => {
  const limits = 'limit must be between 1 and 1000'
  const cursor = 'after must be a cursor from a previous page'
  const refused: Record<string, string[]> = {
    'role=admin&role=user': ['role must be a string'],
    'role=a%00b': ['role must not contain control characters'],
    'limit=0': [limits],
    'limit=-1': [limits],
    'limit=1001': [limits],
    'limit=1e9': [limits],
    'limit=Infinity': [limits],
    'limit=-Infinity': [limits],
    'limit=1e999': [limits],
    'limit=NaN': ['limit must be an integer'],
    'limit=': ['limit must be an integer'],
    'limit=ten': ['limit must be an integer'],
    'limit=1.5': ['limit must be an integer'],
    'limit=1&limit=2': ['limit must be an integer'],
    'after=': [cursor],
    'after=0': [cursor],
    'after=0190a5b4-7c3e-7d11-8000-000000000000': [cursor],
    'after=%00': [cursor],
    'after=AAAAAAAAAAAAAAAAAAAAAA%0A': [cursor],
    [`after=${'A'.repeat(10_000)}`]: [cursor],
    'after=AAAAAAAAAAAAAAAAAAAAAA&after=AAAAAAAAAAAAAAAAAAAAAA': ['after must be a string'],
    'after=x&limit=0&role=a&role=b': ['role must be a string', limits, cursor],
  }
  for (const [query, errors] of Object.entries(refused)) {
    const response = await inject('GET', `/api/users?${query}`)
    t.equal(response.statusCode, 400, query)
    t.same(response.json(), { errors }, query)
  }
  // Another user, so that there is a second page.
  await usher.createUser()
  const next = /[?&](after=[\w-]+)/.exec(`${(await inject('GET', '/api/users?limit=1')).headers.link}`)![1]!
  for (const query of [
    'limit=1', 'limit=1000', next, 'unknown=1&unknown=2', '__proto__=1', 'constructor=1', '&&=&',
  ]) {
    t.equal((await inject('GET', `/api/users?${query}`)).statusCode, 200, query)
  }
})

t.test('2.1 the Link header leads through all pages, without gaps or duplicates', async (t) => {
  const usher = await createUsher(t, { prefix: '/accounts' })
  const { app, admin } = usher
  const create = async (email: string): Promise<string> =>
    (await usher.inject('POST', '/api/users', { headers: admin.headers, payload: { name: 'N', email } })).json().id
  const made: string[] = []
  for (let number = 0; number < 23; number++) made.unshift(await create(`n${number}@example.com`))

  async function walk (query: string) {
    const pages: string[][] = []
    let url: string | undefined = `/accounts/api/users?${query}`
    while (url) {
      const response = await app.inject({ url })
      pages.push(response.json().map(({ id }: { id: string }) => id))
      const link = response.headers.link as string | undefined
      url = link && /^<(\/accounts\/api\/users\?[\w=&-]+)>; rel="next"$/.exec(link)![1]
    }
    return { sizes: pages.map(({ length }) => length), ids: pages.flat() }
  }

  t.same(await walk('limit=10'), { sizes: [10, 10, 4], ids: [...made, admin.id] })
  t.same(await walk('limit=12'), { sizes: [12, 12], ids: [...made, admin.id] })
  t.same(await walk('limit=24'), { sizes: [24], ids: [...made, admin.id] })
  t.same(await walk('limit=10&role=user'), { sizes: [10, 10, 3], ids: made })
  t.same(await walk('role=admin&limit=1'), { sizes: [1], ids: [admin.id] })
  t.same(await walk('role=none&limit=1'), { sizes: [0], ids: [] })

  t.test('2.1 creating or deleting users meanwhile does not shift the pages', async (t) => {
    const first = await app.inject('/accounts/api/users?limit=2')
    await app.inject({ method: 'DELETE', url: `/accounts/api/users/${made[1]}`, headers: admin.headers })
    await create('new@example.com')
    const link = (first.headers.link as string).slice(1, -'>; rel="next"'.length)
    t.equal((await app.inject(link)).json()[0].id, made[2])
  })

  t.test('2.1 a page has 100 users unless limit is set', async (t) => {
    const sql = openSql(t, usher)
    await sql`insert into users (id, name, email, role) select gen_random_uuid(), 'n', n || '@x.example.com', 'user' from generate_series(1, 1100) n`
    t.equal((await app.inject('/accounts/api/users')).json().length, 100)
    t.match((await app.inject('/accounts/api/users')).headers.link, /limit=100&after=/)
    t.equal((await app.inject('/accounts/api/users?limit=1000')).json().length, 1000)
  })
})

t.test('2.1 a page of many users, which concurrent requests share, reaches each of them whole', async (t) => {
  const sql = openSql(t, usher)
  await sql`insert into users (id, name, email, role) select gen_random_uuid(), 'Zoë ישראל ' || n, n || '@large.example', 'user' from generate_series(1, 400) n`
  const responses = await Promise.all(Array.from({ length: 5 }, () => inject('GET', '/api/users?role=user&limit=1000')))
  for (const { headers, body, rawPayload } of responses) {
    t.equal(headers['content-type'], 'application/json; charset=utf-8')
    t.equal(headers['content-length'], `${rawPayload.length}`)
    t.same(JSON.parse(body).map(({ name }: { name: string }) => name).filter((name: string) => name.startsWith('Zoë'))
      .sort(), Array.from({ length: 400 }, (_, index) => `Zoë ישראל ${index + 1}`).sort())
  }
  const head = await inject('HEAD', '/api/users?role=user&limit=1000')
  t.equal(head.headers['content-length'], responses[0]!.headers['content-length'])
  t.equal(head.headers.etag, responses[0]!.headers.etag)
})

nightly('1.13 a page of 100 users does not wait for larger ones', async (t) => {
  const usher = await createUsher(t)
  const sql = openSql(t, usher)
  await sql`insert into users (id, name, email, role) select gen_random_uuid(), 'n', n || '@x.example.com', 'user' from generate_series(1, 300) n`
  let answered = 0
  const large = Array.from(
    { length: 50 }, (_, index) => usher.inject('GET', `/api/users?limit=${200 + index}`).finally(() => { answered++ })
  )
  t.equal((await usher.inject('GET', '/api/users')).json().length, 100)
  t.ok(answered < 25, `${answered} were answered before`)
  for (const [index, response] of (await Promise.all(large)).entries()) {
    // Those that have waited for a second are refused.
    if (response.statusCode === 200) t.equal(response.json().length, 200 + index)
    else t.match([response.statusCode, response.json()], [503, { code: 'OVERLOADED' }])
  }
})
