import { randomUUID } from 'node:crypto'
import t from 'tap'
import { createUsher } from '../helpers/app.ts'
import { withConsole } from '../helpers/console.ts'
import { createPost } from '../helpers/graphql.ts'
import { openSql } from '../helpers/sql.ts'
import { fieldPart, filePart, post } from '../helpers/uploads.ts'

/** Whom nobody may disable. */
const protectedIds = new Set<string>()
const usher = await createUsher(t, {
  console: true,
  policy: {
    'users:disable': ({ role }, { ownerId }) => role === 'admin' && !protectedIds.has(ownerId!),
    'users:export': ({ role }, { ownerId }) => role === 'admin' && !protectedIds.has(ownerId!),
    'posts:delete': ({ role }, { ownerId }) => role === 'admin' && !protectedIds.has(ownerId!),
  },
})
const { inject, admin, createUser } = usher
const sql = openSql(t, usher)
const { open, read, send } = withConsole(usher)
const cookie = await open(admin)

/** Returns the fields with which rows of a list are selected, by their ids. */
async function picksOf (path: string): Promise<Record<string, string>> {
  const { body } = await read(path, cookie)
  return Object.fromEntries([...body.matchAll(/ name="pick\.([^"]+)" value="([^"]*)"/g)]
    .map(([, id, version]) => [id, version!.replaceAll('&quot;', '"')]))
}

/** Returns the fields of a form that selects these rows. */
const pick = (picks: Record<string, string>, ids: readonly string[]) =>
  Object.fromEntries(ids.map((id) => [`pick.${id}`, Object.hasOwn(picks, id) ? picks[id] : '']))

const isDisabled = async ({ id }: { id: string }) =>
  (await inject('GET', `/api/users/${id}`, { headers: admin.headers })).json().disabled

t.test('18.4 several users are disabled and enabled, after a question that names them', async (t) => {
  const [one, two, other] = [await createUser({ name: 'Picked One' }), await createUser({ name: 'Picked Two' }), await createUser()]
  const form = { ...pick(await picksOf('/console/users'), [one.id, two.id]), action: 'disable', back: '/users?q=picked' }
  const asked = await send('/console/users/bulk', form, { cookie })
  t.equal(asked.statusCode, 200)
  t.match(asked.body, /<h1 tabindex="-1">Disable 2 users\?<\/h1>.*Picked One.*Picked Two/s)
  t.match(asked.body, 'href="/console/users?q=picked"')
  t.equal(await isDisabled(one), false, 'a question does nothing')
  const done = await send('/console/users/bulk', { ...form, confirmed: 'yes' }, { cookie })
  t.equal(done.statusCode, 200)
  t.match(done.body, '2 of 2 done')
  t.strictSame([await isDisabled(one), await isDisabled(two), await isDisabled(other)], [true, true, false])
  const again = { ...pick(await picksOf('/console/users'), [one.id]), action: 'enable', confirmed: 'yes' }
  await send('/console/users/bulk', again, { cookie })
  t.equal(await isDisabled(one), false)
  const entries = (await inject('GET', `/api/audit?user=${one.id}`, { headers: admin.headers })).json()
  const actions = entries.map(({ action }: { action: string }) => action)
  t.ok(actions.includes('user.disable') && actions.includes('user.enable'), 'each is in the log')
})

t.test('18.4 each of them has a result: what another admin has changed, what the policy denies, and oneself stay as they are', async (t) => {
  const [plain, changed, denied] = [await createUser(), await createUser(), await createUser({ name: 'Denied' })]
  protectedIds.add(denied.id)
  const picks = await picksOf('/console/users')
  await inject('PATCH', `/api/users/${changed.id}`, { headers: admin.headers, payload: { name: 'Changed meanwhile' } })
  const unknown = randomUUID()
  const { statusCode, body } = await send('/console/users/bulk', {
    ...pick(picks, [plain.id, changed.id, denied.id, admin.id, unknown]), action: 'disable', confirmed: 'yes',
  }, { cookie })
  t.equal(statusCode, 200)
  t.match(body, '1 of 5 done')
  const resultOf = (text: string) => new RegExp(`<tr><th[^>]*>[^\\n]*${text}.*?</tr>`).exec(body)?.[0] ?? ''
  t.match(resultOf('Changed meanwhile'), 'Somebody else has changed this')
  t.match(resultOf('Denied'), 'You may not do this')
  t.match(resultOf(unknown), 'There is nothing here')
  t.match(body, 'This is your own account.')
  t.strictSame(await Promise.all([plain, changed, denied, admin].map(isDisabled)), [true, false, false, false])
  const [{ count }] = await sql<[{ count: number }]>`select count(*)::int from audit where action = 'access.denied'`
  t.ok(count > 0, 'the denial is in the log')
})

t.test('18.4 whatever is selected is text, and a page at most', async (t) => {
  const evil = '"><script>alert(1)</script>'
  const ids = [evil, '../../api', "'", '%00', 'x'.repeat(2000), '\u202eevil', '__proto__']
  for (const confirmed of ['', 'yes']) {
    const { statusCode, body } = await send('/console/users/bulk', { ...pick({}, ids), action: 'disable', confirmed }, { cookie })
    t.equal(statusCode, 200, body.slice(0, 300))
    t.notMatch(body, /<script>alert/)
    t.ok(body.length < 60_000)
  }
  const { body } = await send('/console/users/bulk', { ...pick({}, ids), action: 'disable', confirmed: 'yes' }, { cookie })
  t.match(body, `0 of ${ids.length} done`)
  const many = pick({}, Array.from({ length: 51 }, () => randomUUID()))
  const refused = await send('/console/users/bulk', { ...many, action: 'disable', confirmed: 'yes' }, { cookie })
  t.equal(refused.statusCode, 400)
  t.match(refused.body, 'Choose at most 50 rows at a time.')
  t.match((await send('/console/users/bulk', { action: 'disable' }, { cookie })).body, 'Choose at least one row first.')
  for (const action of ['', 'delete', 'constructor', 'toString']) {
    const { statusCode } = await send('/console/users/bulk', { ...pick({}, [admin.id]), action, confirmed: 'yes' }, { cookie })
    t.equal(statusCode, 400, action)
  }
  for (const back of ['//evil.example', '/users?"><script>', 'https://evil.example', '/users?a=b\r\nx: y', '/../x', '@evil', '.evil']) {
    const { body } = await send('/console/users/bulk', { ...pick({}, [admin.id]), action: 'enable', back }, { cookie })
    t.match(body, ' href="/console/users">Cancel</a>', back)
  }
})

t.test('18.4 a selection needs the session of the console, and a form of its own pages', async (t) => {
  const user = await createUser()
  const form = { ...pick({}, [user.id]), action: 'disable', confirmed: 'yes' }
  for (const path of ['/console/users/bulk', '/console/posts/bulk', '/console/uploads/bulk']) {
    t.equal((await send(path, form)).statusCode, 401, path)
    t.equal((await send(path, form, { cookie, 'sec-fetch-site': 'same-site' })).statusCode, 403, path)
    t.equal((await send(path, form, user.headers)).statusCode, 404, path)
  }
  t.equal(await isDisabled(user), false)
})

t.test('18.4 sessions of several users are ended, and their records exported as the admin may see them', async (t) => {
  const [one, denied] = [await createUser({ name: 'Exported <b>' }), await createUser()]
  protectedIds.add(denied.id)
  const form = pick({}, [one.id, denied.id, 'unknown'])
  const file = await send('/console/users/bulk', { ...form, action: 'export' }, { cookie })
  t.equal(file.statusCode, 200)
  t.equal(file.headers['content-disposition'], 'attachment; filename="users.json"')
  t.equal(file.headers['content-type'], 'application/json; charset=utf-8')
  const records = JSON.parse(file.body)
  t.match(records, [
    { id: one.id, name: 'Exported <b>', email: one.email }, { id: denied.id, error: 'FORBIDDEN' }, { id: 'unknown' },
  ])
  t.notMatch(file.body, /password|hash|rowVersion/i)
  t.equal((await inject('GET', '/api/auth/sessions', { headers: one.headers })).statusCode, 200)
  const ended = await send('/console/users/bulk', { ...pick({}, [one.id]), action: 'end-sessions', confirmed: 'yes' }, { cookie })
  t.match(ended.body, '1 of 1 done')
  t.equal((await inject('GET', '/api/auth/sessions', { headers: one.headers })).statusCode, 401)
})

t.test('18.5 posts are searched by their titles, begin with what they say, and several are deleted', async (t) => {
  const word = randomUUID().slice(0, 8)
  const [author, denied] = [await createUser({ name: 'An <i>author' }), await createUser()]
  protectedIds.add(denied.id)
  const [first, second, kept, other] = [
    await createPost(usher, author, `About ${word} 100%`), await createPost(usher, author, `${word.toUpperCase()} again`),
    await createPost(usher, denied, `${word} kept`), await createPost(usher, author, 'Something else'),
  ]
  const found = await read(`/console/posts?q=${word}`, cookie)
  for (const id of [first, second, kept]) t.match(found.body, id)
  t.notMatch(found.body, other)
  t.match(found.body, /class="muted excerpt" dir="auto">Words</)
  t.match(found.body, 'An &lt;i&gt;author')
  t.match((await read(`/console/posts?q=${word}%20100%25`, cookie)).body, first, 'a percent sign is one')
  t.match((await read('/console/posts?q=%25_', cookie)).body, 'No post')
  t.notMatch((await read(`/console/posts?q=${word}&author=${denied.id}`, cookie)).body, first)
  const picks = await picksOf(`/console/posts?q=${word}`)
  const form = { ...pick(picks, [first, second, kept]), action: 'delete' }
  const asked = await send('/console/posts/bulk', form, { cookie })
  t.match(asked.body, /Delete 3 posts\?.*100%/s)
  const done = await send('/console/posts/bulk', { ...form, confirmed: 'yes' }, { cookie })
  t.match(done.body, '2 of 3 done')
  t.strictSame(Object.keys(await picksOf(`/console/posts?q=${word}`)), [kept])
})

t.test('18.5 files are searched by their names, public images have a picture, and several are deleted', async (t) => {
  const word = randomUUID().slice(0, 8)
  const owner = await createUser()
  const png = Buffer.from('iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg==', 'base64')
  const upload = async (content: Buffer | string, name: string, ...more: Buffer[]): Promise<string> => {
    const response = await post(usher, [...more, fieldPart('description', 'Some words'), filePart(content, name)], owner)
    if (response.statusCode !== 200) throw new Error(response.body)
    return response.json().id
  }
  const image = await upload(png, `${word}.png`)
  const secret = await upload(png, `${word} secret.png`, fieldPart('visibility', 'private'))
  const text = await upload('Text', `notes ${word.toUpperCase()} <script>.txt`)
  const other = await upload('Text', 'something else.txt')
  const { body } = await read(`/console/uploads?q=${word}`, cookie)
  for (const id of [image, secret, text]) t.match(body, id)
  t.notMatch(body, other)
  t.notMatch(body, '<script>.txt')
  t.match(body, `<img src="/api/uploads/${image}" alt=""`)
  t.notMatch(body, `<img src="/api/uploads/${secret}"`, 'the console has no token for a private one')
  t.notMatch(body, `<img src="/api/uploads/${text}"`)
  t.match((await read(`/console/uploads?q=${word}&user=${admin.id}`, cookie)).body, 'No file')
  const form = { ...pick(await picksOf(`/console/uploads?q=${word}`), [image, secret]), action: 'delete', confirmed: 'yes' }
  t.match((await send('/console/uploads/bulk', form, { cookie })).body, '2 of 2 done')
  t.strictSame(Object.keys(await picksOf(`/console/uploads?q=${word}`)), [text])
})

t.test('18.5 posts are found by words of their titles and contents', async (t) => {
  const author = await createUser()
  const word = `x${randomUUID().slice(0, 8)}`
  const post = await createPost(usher, author, `About ${word}s`)
  for (const q of [word, `words ${word}`, `${word}s words`]) {
    t.match((await read(`/console/posts?q=${encodeURIComponent(q)}&author=${author.id}`, cookie)).body, post, q)
  }
  t.match((await read(`/console/posts?q=${word.slice(1)}&author=${author.id}`, cookie)).body, 'No post')
  t.equal((await read(`/console/posts?q=${'x'.repeat(101)}`, cookie)).statusCode, 400)
})

t.test('18.5 a search for files looks through a part of the list, and the next page goes on there', async (t) => {
  const owner = await createUser()
  const word = randomUUID().slice(0, 8)
  const add = (filename: string, count: number) => sql`
    insert into uploads (id, user_id, filename, media_type, size, sha256, description)
    select uuidv7(), ${owner.id}, ${filename}, 'text/plain', 1, ${'0'.repeat(64)}, '' from generate_series(1, ${count}::integer)`
  const old = `${word} old`
  await add(old, 1)
  await add('Filler', 5000)
  const next = async (path: string) => {
    const { body } = await read(path, cookie)
    const [, href] = / href="([^"]+)" rel="next"/.exec(body) ?? []
    return { body, href: href?.replaceAll('&amp;', '&') }
  }
  const first = await next(`/console/uploads?q=${word}&user=${owner.id}`)
  t.match(first.body, /No file.*looked through 5,000/s)
  t.match((await next(first.href!)).body, old)
})
