import t from 'tap'
import { auditActions } from '../../schema/audit/audit.ts'
import { createUsher, type LoggedIn, type TestUsher } from '../helpers/app.ts'
import { createPost, post } from '../helpers/graphql.ts'
import { nightly } from '../helpers/nightly.ts'
import { openSql } from '../helpers/sql.ts'
import { stopClock } from '../helpers/stopped-clock.ts'
import { until } from '../helpers/until.ts'

const HERE = '203.0.113.1'
const ELSEWHERE = '198.51.100.7'
const UUID7 = /^[0-9a-f]{8}-[0-9a-f]{4}-7[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}$/

interface Entry {
  id: string
  action: string
  at: string
  actorId: string | null
  userId: string | null
  sessionId: string | null
  keyId: string | null
  organizationId: string | null
  address: string
  userAgent: string
}

// Returns the entries of the log, oldest first, as a reader gets them.
async function read ({ inject }: TestUsher, headers: Record<string, string>, query = ''): Promise<Entry[]> {
  const response = await inject('GET', `/api/audit${query}`, { headers })
  if (response.statusCode !== 200) throw new Error(`audit: ${response.statusCode} ${response.body}`)
  return response.json().reverse()
}

const usher = await createUsher(t)

t.test('8 the account log', async (t) => {
  const sql = openSql(t, usher)
  const { inject, admin, createUser } = usher
  const sessionOf = ({ headers: { authorization } }: { headers: { authorization: string } }): string =>
    JSON.parse(Buffer.from(authorization.split('.')[1]!, 'base64url').toString()).sid
  const user = await createUser({ email: 'ada@example.com' })
  const put = (payload: object, headers = admin.headers) =>
    inject('PUT', `/api/users/${user.id}`, { headers, payload: { name: 'Ada', email: user.email, ...payload } })
  // Returns the entries that `act` leaves in the log.
  const leaves = async (act: () => Promise<unknown>) => {
    const before = (await sql`select 1 from audit`).length
    await act()
    return (await read(usher, admin.headers, '?limit=1000')).slice(before)
      .map(({ id, at, address, userAgent, keyId, organizationId, ...entry }) => entry)
  }

  t.test('8 every action is recorded with its actor and its user', async (t) => {
    const session = sessionOf(user)
    const byAdmin = { actorId: admin.id, userId: user.id, sessionId: sessionOf(admin) }
    t.same((await read(usher, admin.headers)).map(({ action, actorId, userId, sessionId }) =>
      ({ action, actorId, userId, sessionId })), [
      { action: 'user.create', actorId: null, userId: admin.id, sessionId: null },
      { action: 'login', actorId: admin.id, userId: admin.id, sessionId: sessionOf(admin) },
      { action: 'user.create', ...byAdmin },
      { action: 'login', actorId: user.id, userId: user.id, sessionId: session },
    ])
    const login = (email: string) => inject('POST', '/api/auth/login', { payload: { email, password: 'a wrong one' } })
    t.same(
      await leaves(() => login(user.email)),
      [{ action: 'login.failed', actorId: null, userId: user.id, sessionId: null }]
    )
    t.same(
      await leaves(() => login('nobody@example.com')),
      [{ action: 'login.failed', actorId: null, userId: null, sessionId: null }]
    )
    t.same(await leaves(() => put({})), [], 'a name is nothing to remember')
    t.same(
      await leaves(() => put({ email: 'ada@example.org' }, user.headers)),
      [{ action: 'user.email-change', actorId: user.id, userId: user.id, sessionId: session }]
    )
    t.same(
      await leaves(() => put({ email: 'ada@example.com', role: 'admin' })),
      [{ action: 'user.email-change', ...byAdmin }, { action: 'user.role-change', ...byAdmin }]
    )
    t.same(await leaves(() => put({ role: 'user' })), [{ action: 'user.role-change', ...byAdmin }])
    t.same(await leaves(() => put({ role: 'user' })), [], 'the same role')
    // The role change has ended the session, so the former admin logs in again.
    Object.assign(user, await usher.login(user))
    t.same(
      await leaves(() => inject('PUT', `/api/users/${user.id}`, { headers: admin.headers, payload: { name: '' } })),
      [],
      'what was refused'
    )

    const again = await usher.login(user)
    t.same(
      await leaves(() => inject('POST', '/api/auth/logout', { headers: again.headers })),
      [{ action: 'logout', actorId: user.id, userId: user.id, sessionId: sessionOf(again) }]
    )
    const browser = await usher.login(user)
    t.same(
      await leaves(() => inject('POST', '/api/auth/logout', { headers: { cookie: browser.cookie } })),
      [{ action: 'logout', actorId: user.id, userId: user.id, sessionId: sessionOf(browser) }]
    )
    const stolen = await usher.login(user)
    await inject('POST', '/api/auth/refresh', { headers: { cookie: stolen.cookie } })
    await sql`update sessions set rotated_at = array[now() - interval '11 seconds'] where id = ${sessionOf(stolen)}`
    t.same(await leaves(() => inject('POST', '/api/auth/refresh', { headers: { cookie: stolen.cookie } })),
      [{ action: 'session.refresh-reuse', actorId: null, userId: user.id, sessionId: sessionOf(stolen) }])
    t.same(await leaves(() =>
      inject('PUT', '/api/auth/password', {
        headers: user.headers, payload: { currentPassword: 'a wrong one', password: 'another long one' },
      })),
    [{ action: 'password.change-failed', actorId: user.id, userId: user.id, sessionId: sessionOf(user) }])
    const phone = await usher.login(user)
    const tablet = await usher.login(user)
    t.same(await leaves(() => inject('DELETE', `/api/auth/sessions/${sessionOf(phone)}`, { headers: tablet.headers })),
      [{ action: 'session.end', actorId: user.id, userId: user.id, sessionId: sessionOf(phone) }])
  })

  t.test('8 the members of an entry', async (t) => {
    await inject('POST', '/api/auth/login', {
      payload: { email: user.email, password: user.password },
      remoteAddress: HERE,
      headers: { 'user-agent': 'Tester/1' },
    })
    const entry = (await read(usher, user.headers)).at(-1)!
    t.same(Object.keys(entry), [
      'id', 'action', 'at', 'actorId', 'userId', 'sessionId', 'keyId', 'organizationId', 'address', 'userAgent',
    ])
    t.match(entry.id, UUID7)
    t.ok(Math.abs(Date.parse(entry.at) - Date.now()) < 60_000)
    t.same([entry.address, entry.userAgent], [HERE, 'Tester/1'])
    await inject('POST', '/api/auth/login', {
      payload: { email: user.email, password: user.password }, headers: { 'user-agent': 'x'.repeat(10_000) },
    })
    t.equal((await read(usher, user.headers)).at(-1)!.userAgent.length, 512)
  })

  t.test('8 the log contains no secrets, names or email addresses', async (t) => {
    const rows = JSON.stringify(await sql`select audit::text from audit`)
    for (const secret of [
      user.password, admin.password, user.token, user.cookie.split('=')[1]!, 'a wrong one', user.email,
      'nobody@example.com',
    ]) {
      t.notOk(rows.includes(secret), secret)
    }
  })

  t.test('8 users see their own entries; an admin\'s address is hidden, a stranger\'s is not', async (t) => {
    await inject('POST', '/api/auth/login', {
      payload: { email: user.email, password: 'a wrong one' },
      remoteAddress: ELSEWHERE,
      headers: { 'user-agent': 'Thief/1' },
    })
    const own = await read(usher, user.headers, '?limit=1000')
    t.same(own, await read(usher, user.headers, `?limit=1000&user=${user.id.toUpperCase()}`))
    t.ok(own.every(({ userId }) => userId === user.id))
    t.same(
      own.map(({ id }) => id),
      (await read(usher, admin.headers, `?limit=1000&user=${user.id}`)).map(({ id }) => id),
      'all of them'
    )
    t.same(
      own.filter(({ actorId }) => actorId === admin.id).map(({ address, userAgent }) => address + userAgent),
      ['', '', '', '']
    )
    t.same([own.at(-1)!.address, own.at(-1)!.userAgent], [ELSEWHERE, 'Thief/1'])
    const seen = await read(usher, admin.headers, `?user=${user.id}&action=user.role-change`)
    t.same(seen.map(({ address }) => address), ['127.0.0.1', '127.0.0.1'], 'an admin sees it')
  })

  t.test('8 reading without a token gets 401, reading the entries of others 403', async (t) => {
    const response = await inject('GET', '/api/audit')
    t.same([response.statusCode, response.json(), response.headers['www-authenticate']], [
      401, { error: 'A bearer token is required', code: 'UNAUTHENTICATED' }, 'Bearer',
    ])
    t.equal((await inject('GET', '/api/audit', { headers: { cookie: admin.cookie } })).statusCode, 401)
    for (const query of [`user=${admin.id}`, 'user=nobody', 'user=', `user=${admin.id}&limit=0`]) {
      const response = await inject('GET', `/api/audit?${query}`, { headers: user.headers })
      t.same([response.statusCode, response.json()], [403, { error: 'You may not do this', code: 'FORBIDDEN' }], query)
    }
  })

  t.test('8 an invalid query gets 400 with all its problems', async (t) => {
    const action = `action must be one of ${auditActions.join(', ')}`
    const [limit, after] = ['limit must be between 1 and 1000', 'after must be a cursor from a previous page']
    const refused: Record<string, string[]> = {
      'limit=0': [limit],
      'limit=1001': [limit],
      'limit=ten': ['limit must be an integer'],
      'after=x': [after],
      'action=log': [action],
      'action=%00': [action],
      'action=login&action=logout': ['action must be a string'],
      'user=a&user=b': ['user must be a string'],
      'action=log&limit=0&after=x': [action, limit, after],
    }
    for (const headers of [admin.headers, user.headers]) {
      for (const [query, errors] of Object.entries(refused)) {
        const response = await inject('GET', `/api/audit?${query}`, { headers })
        t.same([response.statusCode, response.json()], [400, { errors }], query)
      }
    }
    for (const user of ['nobody', '', '%00', '0190a5b4-7c3e-7d11-8000-000000000000']) {
      t.same(await read(usher, admin.headers, `?user=${user}`), [], user)
    }
  })

  t.test('8 pages by keyset, with each filter, have no duplicates and no gaps', async (t) => {
    const isOwn = ({ userId }: Entry) => userId === user.id
    const isLogin = ({ action }: Entry) => action === 'login'
    const lists: [query: string, headers: Record<string, string>, isListed: (entry: Entry) => boolean][] = [
      ['', admin.headers, () => true],
      ['&action=login', admin.headers, isLogin],
      [`&user=${user.id}&action=login`, admin.headers, (entry) => isOwn(entry) && isLogin(entry)],
      ['', user.headers, isOwn],
      ['&action=login', user.headers, (entry) => isOwn(entry) && isLogin(entry)],
    ]
    for (const [query, headers, isListed] of lists) {
      const entries = (await read(usher, admin.headers, '?limit=1000')).filter(isListed)
      const found: Entry[] = []
      let path: string | undefined = `/api/audit?limit=3${query}`
      while (path) {
        const response = await inject('GET', path, { headers })
        found.push(...response.json())
        path = /^<(\/api\/audit\?[^>]+)>; rel="next"$/.exec(String(response.headers.link))?.[1]
        // A new entry belongs on an earlier page, so it does not appear.
        if (found.length === 3) await usher.login(user)
      }
      const ids = found.map(({ id }) => id).reverse()
      t.equal(new Set(ids).size, ids.length, 'nothing twice')
      // A rejection is recorded after its response, so entries of earlier rejections may appear only now.
      const known = new Set(entries.map(({ id }) => id))
      t.same(ids.filter((id) => known.has(id)), [...known], query)
    }
  })

  t.test('8 deleting a user keeps the entries with their ids, and blanks the addresses in those of the user, the deletion included', async (t) => {
    const leaving = await createUser()
    await inject('PUT', `/api/users/${leaving.id}`, {
      headers: admin.headers, payload: { name: 'N', email: leaving.email, role: 'admin' },
    })
    // The role change has ended the session.
    Object.assign(leaving, await usher.login(leaving))
    await inject('POST', '/api/auth/login', {
      payload: { email: leaving.email, password: 'a wrong one' }, remoteAddress: ELSEWHERE,
    })
    t.equal((await inject(
      'DELETE', `/api/users/${leaving.id}`, { headers: leaving.headers, remoteAddress: HERE }
    )).statusCode, 204)
    const entries = await read(usher, admin.headers, `?user=${leaving.id}`)
    t.same(entries.map(({ action, actorId, address, userAgent }) => [action, actorId, address, userAgent]), [
      ['user.create', admin.id, '127.0.0.1', 'lightMyRequest'],
      ['login', leaving.id, '', ''],
      ['user.role-change', admin.id, '127.0.0.1', 'lightMyRequest'],
      ['login', leaving.id, '', ''],
      ['login.failed', null, '', ''],
      ['user.delete', leaving.id, '', ''],
    ])
    t.equal((await inject('DELETE', `/api/users/${admin.id}`, { headers: admin.headers })).statusCode, 409)
    t.same(
      (await read(usher, admin.headers, '?action=user.delete')).map(({ userId }) => userId),
      [leaving.id],
      'a deletion that was refused is none'
    )

    const removed = await createUser()
    await inject('DELETE', `/api/users/${removed.id}`, { headers: admin.headers, remoteAddress: HERE })
    const [entry] = await read(usher, admin.headers, `?user=${removed.id}&action=user.delete`)
    t.match(
      entry,
      { actorId: admin.id, address: HERE, userAgent: 'lightMyRequest' },
      'who deletes somebody else remains known'
    )
  })
})

t.test('8 throttled failed logins are not recorded, so a flood does not fill the log', async (t) => {
  const usher = await createUsher(t, { throttle: { account: { burst: 2, perMinute: 0.01 } } })
  const sql = openSql(t, usher)
  const payload = { email: 'nobody@example.com', password: 'a wrong one' }
  const answers = await Promise.all(
    Array.from({ length: 20 }, () => usher.inject('POST', '/api/auth/login', { payload }))
  )
  t.equal(answers.filter(({ statusCode }) => statusCode === 429).length, 18)
  t.same(await sql`select count(*)::int as entries from audit where action = 'login.failed'`, [{ entries: 2 }])
})

t.test('8 entries are kept for auditSeconds', async (t) => {
  const sql = openSql(t, usher)
  const idOf = (secondsAgo: number) =>
    `${(Date.now() - secondsAgo * 1000).toString(16).padStart(12, '0').replace(/^.{8}/, '$&-')}-7000-8000-000000000000`
  const ids = [86_300, 86_500, 400 * 86_400].map(idOf)
  for (const id of ids) await sql`insert into audit (id, action, address, user_agent) values (${id}, 'logout', '', '')`
  const { inject, admin } = await createUsher(t, { ...usher.options, auditSeconds: 86_400, prefix: '/accounts' })
  await until(
    'what is old is gone', async () => (await sql`select 1 from audit where id = any(${ids})`).length === 1, 20
  )
  t.same(await sql`select id from audit order by id limit 1`, [{ id: ids[0] }])
  t.equal((await read(usher, usher.admin.headers, '?action=logout&limit=1000'))[0]!.id, ids[0])

  t.test('9 the Link header contains the prefix', async (t) => {
    const { headers } = await inject('GET', '/api/audit?limit=1', { headers: admin.headers })
    t.match(headers.link, /^<\/accounts\/api\/audit\?limit=1&after=[\w-]{22}>; rel="next"$/)
  })
})

nightly('4 the log and sessions have the address of a client without its port, and not what is no address', async (t) => {
  const usher = await createUsher(t, {}, { trustProxy: true })
  const { inject, admin } = usher
  const sent = {
    '203.0.113.9': [
      '203.0.113.9', '203.0.113.9:4711', '::ffff:203.0.113.9', '::FFFF:CB00:7109', '[::ffff:203.0.113.9]:80',
    ],
    '2001:db8::1': [
      '2001:db8::1', '2001:DB8:0:0::0001', '[2001:db8::1]', '[2001:db8::1]:443', '2001:db8::1%eth0',
      '[2001:db8::1%25eth0]:443',
    ],
    unknown: [
      'unknown', '_hidden', '_hidden:80', '<script>', '1.2.3.4.5', '999.1.1.1', '203.0.113.9:x', '203.0.113.9:80:80',
      '[203.0.113.9', '2001:db8::1]:443', '[2001:db8::1]x', '2001:db8::1::2', '203.0.113.9/24', '0x7f.1', '[]', '[]:1',
      ':80', `2001:db8::1%${'x'.repeat(5000)}`, `_${'x'.repeat(5000)}`,
    ],
  }
  for (const [address, headers] of Object.entries(sent)) {
    for (const header of headers) {
      const login = await inject('POST', '/api/auth/login', { payload: admin, headers: { 'x-forwarded-for': header } })
      t.equal(login.statusCode, 200)
      const { token } = login.json()
      const get = async (path: string) =>
        (await inject('GET', path, { headers: { authorization: `Bearer ${token}` } })).json()
      t.match(await get('/api/audit?limit=1'), [{ action: 'login', address }], header.slice(0, 40))
      t.match(
        (await get('/api/auth/sessions')).find(({ current }: { current: boolean }) => current),
        { address },
        header.slice(0, 40)
      )
      await inject('POST', '/api/auth/logout', { headers: { authorization: `Bearer ${token}` } })
    }
  }
})

nightly('4 the log records 403 and 429 responses, but only one entry a minute during a flood', async (t) => {
  const warnings: string[] = []
  const logger = { level: 'warn', stream: { write: (line: string) => { warnings.push(line) } } }
  const throttle = { account: { burst: 1, perMinute: 0.01 } }
  const usher = await createUsher(t, { throttle }, { logger, trustProxy: true })
  const sql = openSql(t, usher)
  // All of it happens within the minute.
  stopClock(t)
  const { inject, admin } = usher
  const entries = async () =>
    (await sql`select action, actor_id, user_id, address from audit where action like 'access.%' order by id`).map(
      (row) => ({ ...row })
    )
  const create = (user: LoggedIn) =>
    inject('POST', '/api/users', { headers: user.headers, payload: { name: 'N', email: 'n@example.com' } })
  const login = (address: string, headers = {}) => inject('POST', '/api/auth/login', {
    remoteAddress: address, headers, payload: { email: 'nobody@example.com', password: 'wrong' },
  })

  const [rest, graphql] = [await usher.createUser(), await usher.createUser()]
  for (let round = 0; round < 20; round++) t.equal((await create(rest)).statusCode, 403)
  const postId = await createPost(usher, admin)
  for (let round = 0; round < 3; round++) {
    t.match(await post(usher, { query: `mutation { deletePost(id: "${postId}") }` }, graphql), {
      errors: [{ extensions: { code: 'FORBIDDEN' } }],
    })
  }
  t.equal((await login(HERE)).statusCode, 401)
  for (let round = 0; round < 10; round++) t.equal((await login('2001:db8::1')).statusCode, 429)
  t.equal((await login('2001:db8::2')).statusCode, 429, 'of the same network')
  t.equal((await inject('POST', '/api/auth/logout', {
    remoteAddress: ELSEWHERE, headers: { cookie: rest.cookie, origin: 'https://evil.example.com' },
  })).statusCode, 403)
  const own = ({ id }: LoggedIn) => ({ action: 'access.denied', actor_id: id, user_id: id, address: '127.0.0.1' })
  const nobodys = (action: string, address: string) => ({ action, actor_id: null, user_id: null, address })
  const expected = [
    own(rest), own(graphql), nobodys('access.throttled', '2001:db8::1'), nobodys('access.denied', ELSEWHERE),
  ]
  await until('all are written', async () => (await entries()).length >= expected.length, 20)
  t.same(await entries(), expected)

  await Promise.all(Array.from({ length: 150 }, (_, index) => login(`198.51.${index}.1`)))
  t.equal((await create(await usher.createUser())).statusCode, 403)
  await until(
    'what comes last is written',
    async () => (await entries()).filter(({ action }) => action === 'access.denied').length === 4,
    20
  )
  t.equal(
    (await entries()).filter(({ action }) => action === 'access.throttled').length,
    100,
    'as many sources as there are: 100 a minute; they hide nothing of users'
  )

  await sql`create function refuse() returns trigger language plpgsql as $$ begin raise exception 'the log is full'; end $$`
  const last = await usher.createUser()
  await sql`create trigger refuse before insert on audit execute function refuse()`
  t.equal((await create(last)).statusCode, 403)
  await until(
    'it is logged', () => warnings.some((line) => line.includes('An entry of the account log could not be written'))
  )
})
