import { randomUUID } from 'node:crypto'
import { Type } from '@sinclair/typebox'
import t from 'tap'
import { createUsher } from '../helpers/app.ts'
import { cookieOf, fieldsOf, OPENING, withConsole } from '../helpers/console.ts'
import { createPost } from '../helpers/graphql.ts'
import { createMailer } from '../helpers/mail.ts'
import { nightly } from '../helpers/nightly.ts'
import { openSql } from '../helpers/sql.ts'

const inbox = createMailer()
const usher = await createUsher(t, {
  prefix: '/base',
  console: true,
  mailer: inbox.mailer,
  shownSettings: () => [{ name: 'PORT', value: '3000', source: 'default' }],
  userFields: Type.Object({
    plan: Type.Optional(Type.String({ enum: ['free', 'pro'] })),
    age: Type.Optional(Type.Integer()),
    bio: Type.Optional(Type.String({ title: 'About the user' })),
    code: Type.Optional(Type.String({ maxLength: 10 })),
  }),
})
const { inject, admin, createUser } = usher
const sql = openSql(t, usher)
const { exchange, open, read, send, fill } = withConsole(usher)

const pages = ['', '/users', '/users/new', '/posts', '/uploads', '/log', '/deliveries', '/keys', '/providers', '/settings']
const actions = [
  '/users', '/users/1', '/users/1/disable', '/users/1/delete', '/users/1/sessions/end', '/users/1/keys', '/deliveries/1/retry',
  '/deliveries/1/discard', '/posts/1/delete', '/uploads/1/delete', '/logout',
]

t.test('18.1 every page answers, and is not stored', async (t) => {
  const cookie = await open(admin)
  const user = await createUser()
  for (const page of [...pages, `/users/${user.id}`, `/users/${admin.id}`]) {
    const { statusCode, headers, body } = await read(`/console${page}`, cookie)
    t.equal(statusCode, 200, page)
    t.equal(headers['content-type'], 'text/html; charset=utf-8')
    t.equal(headers['cache-control'], 'no-store')
    t.match(headers['content-security-policy'], /default-src 'none'.*frame-ancestors 'none'/)
    t.notMatch(body, /https?:|<script>|<style| style=| on\w+="/, page)
  }
  t.equal((await read('/console/users/unknown', cookie)).statusCode, 404)
  for (const page of ['/users/unknown', '/nothing', `/posts/${randomUUID()}`]) {
    const { statusCode, body } = await read(`/console${page}`, cookie)
    t.equal(statusCode, 404, page)
    t.match(body, /<title>Not found .*<h1 tabindex="-1">Not found<\/h1>/s)
  }
})

/** Follows redirects to pages, as a browser does. Returns the last page with its path. */
async function follow (path: string, cookie?: string) {
  for (;;) {
    const response = await read(path, cookie)
    if (response.statusCode !== 303) return { ...response, path, body: response.body, statusCode: response.statusCode }
    path = `${response.headers.location}`.slice('/base'.length)
  }
}

t.test('18.3 a visitor without a session is led to the login of all pages, and comes back', async (t) => {
  for (const page of pages) {
    const { path } = await follow(`/console${page}`)
    t.match(path, /^\/login\?returnTo=%2Fbase%2Fconsole%2Flogin/, page)
  }
  const login = await follow('/console/users?q=ada')
  t.equal(login.path, `/login?${new URLSearchParams({ returnTo: '/base/console/login?next=%2Fusers%3Fq%3Dada' })}`)
  const back = await send(login.path, admin)
  t.equal(back.headers.location, '/base/console/login?next=%2Fusers%3Fq%3Dada')
  const cookie = cookieOf(back)
  t.equal((await follow('/console/users?q=ada', cookie)).path, '/console/login?next=%2Fusers%3Fq%3Dada', 'a session suffices')
  const page = await read('/console/login?next=%2Fusers%3Fq%3Dada', cookie)
  t.match(page.body, '<form method="post" action="/base/console/login?next=%2Fusers%3Fq%3Dada" id="open">')
  const sent = await send('/console/login?next=%2Fusers%3Fq%3Dada', {})
  t.equal(sent.statusCode, 307)
  const opened = await send(`${sent.headers.location}`.slice('/base'.length), {}, { cookie })
  t.equal(opened.headers.location, '/base/console/users?q=ada')
  const again = await send('/console/login?next=%2Fusers', {}, { cookie: cookieOf(opened) })
  t.equal(again.headers.location, '/base/console/users', 'whoever has opened it needs no other session')
  const left = await read('/console/login?done=out')
  t.match(left.body, 'You are logged out of the console.')
  t.notMatch(left.body, 'id="open"', 'and is not back at once')
})

t.test('18.3 the console leads to its own pages only', async (t) => {
  const { cookie } = await usher.login(admin)
  for (const next of ['//evil.example', 'https://evil.example', '/../../x', '/\\evil', '.evil.example', '@evil.example']) {
    const { headers } = await exchange(cookie, { next })
    t.equal(headers.location, '/base/console', next)
    t.equal((await follow(`${OPENING}?${new URLSearchParams({ next })}`)).path, '/login?returnTo=%2Fbase%2Fconsole%2Flogin')
    t.match((await read(`/console/login?${new URLSearchParams({ next })}`)).body, 'action="/base/console/login"')
  }
})

t.test('18.3 a user who may not open the console reads who may, and how to become one', async (t) => {
  const user = await createUser({ name: '<b>A user' })
  const { cookie } = await usher.login(user)
  const { statusCode, headers, body } = await exchange(cookie, { next: '/users' })
  t.equal(statusCode, 403)
  t.equal(headers['set-cookie'], undefined)
  t.equal(headers['cache-control'], 'no-store')
  t.match(headers['content-security-policy'], /default-src 'none'.*frame-ancestors 'none'/)
  t.match(body, /You may not open the console.*Your role is <strong>user<\/strong>.*<code>console:open<\/code>.*Roles that have it: admin\./s)
  t.match(body, `npx fastify-usher users promote ${user.id}`)
  t.match(body, '&lt;b&gt;A user')
  t.match(body, 'href="/base/login?returnTo=%2Fbase%2Fconsole%2Flogin%3Fnext%3D%252Fusers"')
})

t.test('18.1 for everybody else, there is nothing: 404 for every path and method', async (t) => {
  const user = await createUser()
  for (const page of [...pages, '/login', '/x/y']) {
    for (const method of ['GET', 'POST', 'PUT', 'PATCH', 'DELETE'] as const) {
      const { statusCode } = await inject(method, `/console${page}`, {
        headers: { ...user.headers, 'sec-fetch-site': 'same-origin' },
      })
      t.equal(statusCode, 404, `${method} ${page}`)
    }
  }
  for (const action of actions) {
    t.equal((await send(`/console${action}`, {}, user.headers)).statusCode, 404, action)
  }
  for (const method of ['GET', 'POST'] as const) {
    const { statusCode } = await inject(method, OPENING, { headers: { ...user.headers, 'sec-fetch-site': 'same-origin' } })
    t.equal(statusCode, 404, method)
  }
})

t.test('18.3 a session of the console is one of its own: it ends after an hour, cannot be refreshed, and is listed', async (t) => {
  const cookie = await open(admin)
  const [, value = ''] = cookie.split('=')
  const { body } = await inject('GET', '/api/auth/sessions', { headers: admin.headers })
  const [id, secret] = value.split('.')
  const sessions = JSON.parse(body) as Record<string, string>[]
  const listed = sessions.find((session) => session.id === id)!
  t.match(listed, { console: true, current: false })
  t.match(sessions.find(({ current }) => current), { console: false })
  t.ok(Date.parse(listed.expiresAt!) - Date.parse(listed.createdAt!) <= 3_600_000)
  for (const name of [value, `${value}.0.${'A'.repeat(43)}`, `${id}.${secret}.0.${'A'.repeat(43)}`]) {
    const { statusCode } = await inject('POST', '/api/auth/refresh', { headers: { cookie: `usher_session=${name}` } })
    t.equal(statusCode, 401, 'its cookie does not refresh a session')
  }
  const { cookie: ordinary } = await usher.login(admin)
  const parts = ordinary.split('=')[1]!.split('.')
  const moved = await read('/console', `usher_console=${parts[0]}.${parts[1]}`)
  t.equal(moved.statusCode, 303, 'the cookie of another session does not open the console')
  await sql`update sessions set expires_at = now() where id = ${id!}`
  t.equal((await read('/console', cookie)).statusCode, 303, 'after its expiry')
})

t.test('18.3 the cookie is for the console only, and for no request of another site', async (t) => {
  const { headers } = await exchange((await usher.login(admin)).cookie)
  t.match(headers['set-cookie'], /^usher_console=[\w.-]+; Max-Age=(3600|3599|3598); Path=\/base\/console; Expires=.*HttpOnly; SameSite=Strict$/)
})

t.test('18.3 logout, the end of all sessions, disabling and another role end it at once', async (t) => {
  const colleague = () => createUser({ role: 'admin' })
  const enders = {
    async logout (cookie: string) { await send('/console/logout', {}, { cookie }) },
    async endAll (_: string, id: string) {
      await inject('DELETE', `/api/users/${id}/sessions`, { headers: admin.headers })
    },
    async disable (_: string, id: string) {
      await inject('PATCH', `/api/users/${id}`, { headers: admin.headers, payload: { disabled: true } })
    },
    async demote (_: string, id: string) {
      await inject('PATCH', `/api/users/${id}`, { headers: admin.headers, payload: { role: 'user' } })
    },
    async remove (_: string, id: string) {
      await inject('DELETE', `/api/users/${id}`, { headers: admin.headers })
    },
  }
  for (const [name, end] of Object.entries(enders)) {
    const user = await colleague()
    const cookie = await open(user)
    t.equal((await read('/console', cookie)).statusCode, 200)
    await end(cookie, user.id)
    t.equal((await read('/console', cookie)).statusCode, 303, name)
    const late = await send('/console/users', { name: 'Late', email: 'late@example.com' }, { cookie })
    t.equal(late.statusCode, 401, `${name}: a form`)
    t.match(late.body, 'what you typed is still there')
  }
})

t.test('18.3 a session opens the console only if its user was authenticated recently, and otherwise by another login', async (t) => {
  const colleague = await createUser({ role: 'admin' })
  const response = await exchange(colleague.cookie)
  t.equal(response.statusCode, 303)
  const cookie = cookieOf(response)
  t.equal((await read('/console', cookie)).statusCode, 200)
  await sql`update sessions set auth_time = now() - interval '11 minutes' where user_id = ${colleague.id}`
  const late = await exchange(colleague.cookie, { next: '/users' })
  t.equal(late.statusCode, 303)
  t.equal(late.headers['set-cookie'], undefined)
  const returnTo = '/base/console/login?next=%2Fusers'
  t.equal(late.headers.location, `/base/login?confirm&${new URLSearchParams({ returnTo })}`)
  const login = `${late.headers.location}`.slice('/base'.length)
  t.match((await read(login)).body, 'For this, log in once more.')
  // The cookie of the session that it replaces comes with the request, as with those of all pages.
  const back = await inject('POST', '/api/auth/login', { headers: { cookie: colleague.cookie }, payload: colleague })
  t.equal((await read('/console', cookie)).statusCode, 303, 'it ends with the session that has opened it')
  t.equal((await read('/console', cookieOf(await exchange(cookieOf(back))))).statusCode, 200)
})

t.test('18.3 no other site opens the console, whatever session the browser has', async (t) => {
  const { cookie } = await usher.login(admin)
  const origins = [{ 'sec-fetch-site': 'cross-site' }, { 'sec-fetch-site': 'same-site' }, { 'sec-fetch-site': 'none' }]
  for (const headers of origins) {
    for (const path of [OPENING, '/console/login']) {
      const { statusCode, headers: sent } = await send(path, {}, { cookie, ...headers })
      t.equal(statusCode, 403, path)
      t.equal(sent['set-cookie'], undefined)
    }
  }
  const { statusCode, headers } = await read(OPENING, cookie)
  t.equal(statusCode, 303)
  t.equal(headers['set-cookie'], undefined, 'a link opens nothing')
})

t.test('18.3 who needs a second factor and has none is told to add one', async (t) => {
  const strict = await createUsher(t, { console: true, secondFactor: 'admins', mailer: inbox.mailer })
  const { exchange } = withConsole(strict)
  const { statusCode, headers, body } = await exchange((await strict.login(strict.admin)).cookie)
  t.equal(statusCode, 403)
  t.equal(headers['set-cookie'], undefined)
  t.match(body, /Your account needs a second factor.*<a href="\/account">/s)
})

t.test('18.3 without the pages of accounts, the console says that it needs a login', async (t) => {
  const bare = await createUsher(t, { console: true, pages: { enabled: false, appUrl: 'https://example.com/app' } })
  const { exchange, read } = withConsole(bare)
  const first = await read(`${(await read('/console/users')).headers.location}`)
  t.equal(first.statusCode, 401)
  t.match(first.body, /Log in first.*<a href="https:\/\/example.com\/app">.*href="\/console\/login\?next=%2Fusers"/s)
  const { cookie } = await bare.login(bare.admin)
  const opened = await exchange(cookie, { next: '/users' })
  t.equal(opened.headers.location, '/console/users')
  t.equal((await read('/console/users', cookieOf(opened))).statusCode, 200)
  await openSql(t, bare)`update sessions set auth_time = now() - interval '11 minutes'`
  const late = await exchange(cookie)
  t.equal(late.statusCode, 401)
  t.match(late.body, 'Log in once more')
})

t.test('18.3 the cookie of the console is worth nothing to the API, and a token without it opens no page', async (t) => {
  const cookie = await open(admin)
  const [, value] = cookie.split('=')
  for (const path of ['/api/admin/overview', '/api/auth/sessions', '/api/audit', '/api/users?disabled=true']) {
    const headers = [{ cookie }, { cookie: `usher_session=${value}` }, { authorization: `Bearer ${value}` }]
    for (const given of headers) t.equal((await inject('GET', path, { headers: given })).statusCode, 401, path)
  }
  t.equal((await inject('GET', '/console/users', { headers: admin.headers })).statusCode, 303)
  const twice = await read('/console', `${cookie}; usher_console=${randomUUID()}.x`)
  t.equal(twice.statusCode, 303, 'of two cookies of this name, nobody knows which one is genuine')
  for (const page of ['/login', '/nothing', '']) {
    const { headers } = await read(`/console${page}`)
    t.equal(headers['cache-control'], 'no-store', page)
    t.match(headers['content-security-policy'], "frame-ancestors 'none'")
  }
})

t.test('18.3 a form of another site is refused, whatever it is', async (t) => {
  const cookie = await open(admin)
  const origins = [
    { 'sec-fetch-site': 'cross-site' }, { 'sec-fetch-site': 'same-site' }, { 'sec-fetch-site': 'none' },
  ]
  for (const action of actions) {
    for (const headers of origins) {
      t.equal((await send(`/console${action}`, {}, { cookie, ...headers })).statusCode, 403, action)
    }
  }
  for (const origin of [undefined, 'null', 'https://evil.example', 'http://localhost:81']) {
    const response = await inject('POST', '/console/users', {
      headers: { cookie, 'content-type': 'application/x-www-form-urlencoded', ...origin !== undefined && { origin } }, payload: 'name=A',
    })
    t.equal(response.statusCode, 403, origin ?? 'without Origin')
  }
  const own = await inject('POST', '/console/logout', { headers: { cookie, origin: 'http://localhost:80' } })
  t.equal(own.statusCode, 303)
})

t.test('18.1 a user is created, invited, edited with the fields of the host, disabled, enabled and deleted', async (t) => {
  const cookie = await open(admin)
  const email = `${randomUUID()}@example.com`
  const created = await fill('/console/users/new', '/base/console/users', { name: 'New', email, plan: 'pro', age: '7', invite: 'yes' }, cookie)
  t.equal(created.statusCode, 303, created.body)
  const [, id] = /users\/([\w-]+)\?done=invited$/.exec(`${created.headers.location}`)!
  await inbox.of(email, 1)
  const page = `/console/users/${id}`
  const form = `/base${page}`
  const stored = async () => (await inject('GET', `/api/users/${id}`, { headers: admin.headers })).json()
  t.match(await stored(), { name: 'New', plan: 'pro', age: 7 })
  t.equal((await fill(page, form, { name: 'Newer', age: '' }, cookie)).statusCode, 303)
  t.match(await stored(), { name: 'Newer', plan: 'pro' })
  t.notOk('age' in await stored())
  const wrong = await fill(page, form, { name: 'Other', email: 'no address', age: 'old' }, cookie)
  t.equal(wrong.statusCode, 400)
  t.match(wrong.body, 'value="Other"', 'what was typed remains')
  t.match(wrong.body, /id="email-error">This is not an e-mail address/)
  t.match(wrong.body, /id="age-error">age must be an integer/)
  t.equal((await send(`${page}/disable`, {}, { cookie })).statusCode, 400, 'without a confirmation')
  t.match((await read(`${page}/disable`, cookie)).body, '<h1 tabindex="-1">Disable Newer</h1>')
  t.equal((await fill(`${page}/disable`, `${form}/disable`, {}, cookie)).statusCode, 303)
  t.match(await stored(), { disabled: true })
  t.equal((await fill(page, `${form}/enable`, {}, cookie)).statusCode, 303)
  const other = await fill(`${page}/delete`, `${form}/delete`, { confirmation: 'somebody@example.com' }, cookie)
  t.equal(other.statusCode, 400, 'whoever deletes a user types the address')
  t.match(other.body, /What you typed is something else.*<h1 tabindex="-1">|<h1 tabindex="-1">Delete Newer for good.*What you typed is something else/s)
  const deleted = await fill(`${page}/delete`, `${form}/delete`, { confirmation: ` ${email.toUpperCase()}` }, cookie)
  t.equal(deleted.headers.location, '/base/console/users?done=deleted')
  t.equal((await read(page, cookie)).statusCode, 404)
  const log = await read(`/console/log?user=${admin.id}`, cookie)
  t.equal(log.statusCode, 200)
  const entries = (await inject('GET', '/api/audit', { headers: admin.headers })).json()
    .filter(({ actorId }: { actorId: string }) => actorId === admin.id).map(({ action }: { action: string }) => action)
  for (const action of ['user.delete', 'user.enable', 'user.disable', 'user.invite', 'user.create']) {
    t.ok(entries.includes(action), action)
  }
})

t.test('18.1 a text keeps its lines, and fields of the host have the titles that it gives them', async (t) => {
  const cookie = await open(admin)
  const { id } = await createUser()
  const [page, form] = [`/console/users/${id}`, `/base/console/users/${id}`]
  const bio = '\n first\nsecond\n'
  const stored = async () => (await inject('GET', `/api/users/${id}`, { headers: admin.headers })).json()
  await inject('PATCH', `/api/users/${id}`, { headers: admin.headers, payload: { bio, code: 'short' } })
  const { body } = await read(page, cookie)
  t.match(body, '<label for="bio">About the user</label>')
  // A browser removes line breaks from a field of one line, and the first one of a field of several.
  t.match(body, new RegExp(`<textarea id="bio"[^>]*>\n${bio}</textarea>`))
  t.match(body, /<input id="code"[^>]* value="short"/)
  t.equal((await fill(page, form, { name: 'New' }, cookie)).statusCode, 303)
  t.match(await stored(), { name: 'New', bio })
  t.equal((await fill(page, form, { bio: bio.replaceAll('\n', '\r\n'), code: 'a\r\nb' }, cookie)).statusCode, 303)
  t.match(await stored(), { bio, code: 'a\nb' })
  t.match((await read(page, cookie)).body, /<textarea id="code"[^>]*>\na\nb<\/textarea>/)
})

t.test('18.3 two admins edit one user: the second learns what has changed, and nothing is lost', async (t) => {
  const [first, second] = [await open(admin), await open(await createUser({ role: 'admin' }))]
  const user = await createUser({ name: 'Before' })
  const page = `/console/users/${user.id}`
  const opened = await read(page, second)
  t.equal((await fill(page, `/base${page}`, { name: 'By the first', plan: 'free' }, first)).statusCode, 303)
  const typed: Record<string, string> =
    { ...fieldsOf(opened.body, `/base${page}`), name: 'By the second', age: '30' }
  const conflict = await send(page, typed, { cookie: second })
  t.equal(conflict.statusCode, 412)
  t.match(conflict.body, 'Somebody else has changed this user')
  t.match(conflict.body, /Before.*By the first.*By the second/s)
  const stored = async () => (await inject('GET', `/api/users/${user.id}`, { headers: admin.headers })).json()
  t.match(await stored(), { name: 'By the first', plan: 'free' })
  const merged = fieldsOf(conflict.body, `/base${page}`)
  t.match(merged, { name: 'By the second', age: '30', plan: 'free' }, 'the form has both changes')
  t.equal((await send(page, merged, { cookie: second })).statusCode, 303)
  t.match(await stored(), { name: 'By the second', plan: 'free', age: 30 })
  const confirmed = { confirmed: 'yes', confirmation: user.email }
  const stale = await send(`${page}/delete`, { ...confirmed, version: typed.version! }, { cookie: second })
  t.equal(stale.statusCode, 412)
  t.match(stale.body, 'Somebody else has changed this')
  t.equal((await send(`${page}/delete`, confirmed, { cookie: second })).statusCode, 412, 'without a version')
})

t.test('18.2 names, addresses and user agents are never markup', async (t) => {
  const evil = '<script>alert(1)</script>"\'><img src=x>\u202egnp.exe'
  const user = await createUser({ name: evil, role: 'admin' })
  const agent = `<b>${'A'.repeat(10_000)}`
  await inject('POST', '/api/auth/login', { headers: { 'user-agent': agent }, payload: user })
  await createPost(usher, user, evil)
  const cookie = await open(admin)
  for (const page of [`/users/${user.id}`, '/users', '/posts', '/log', `/log?user=${user.id}`, `/users?q=${encodeURIComponent(evil)}`]) {
    const { statusCode, body } = await read(`/console${page}`, cookie)
    t.equal(statusCode, 200, page)
    t.notMatch(body, /<script>|<img src=x>|<b>A/, page)
    t.ok(body.length < 200_000)
    // A name cannot change the direction of what follows.
    const outside = body.replace(/<bdi>.*?<\/bdi>/gs, '').replace(/(value|aria-label)="[^"]*"/g, '').replace(/<h1.*?<\/title>|<title>.*?<\/title>|<h1.*?<\/h1>/gs, '')
      .replace(/<label class="check">.*?<\/label>/gs, '')
    t.notOk(outside.includes('\u202e'), `${page}: ${outside.slice(Math.max(0, outside.indexOf('\u202e') - 100), outside.indexOf('\u202e') + 20)}`)
  }
})

t.test('18.1 lists are searched, filtered and paged', async (t) => {
  const cookie = await open(admin)
  const disabled = await createUser({ name: 'Searched Person' })
  await inject('PATCH', `/api/users/${disabled.id}`, { headers: admin.headers, payload: { disabled: true } })
  t.match((await read('/console/users?q=searched', cookie)).body, disabled.id)
  t.match((await read('/console/users?status=disabled', cookie)).body, disabled.id)
  t.notMatch((await read('/console/users?status=disabled&kind=service', cookie)).body, disabled.id)
  const short = await read('/console/users?q=a', cookie)
  t.equal(short.statusCode, 400)
  t.match(short.body, /Q must /)
  for (const page of ['users', 'posts', 'uploads', 'log', 'keys', 'deliveries']) {
    const wrong = await read(`/console/${page}?after=wrong`, cookie)
    t.equal(wrong.statusCode, 400, page)
    t.match(wrong.body, 'must ')
  }
  t.match((await read('/console/settings', cookie)).body, 'PORT')
})

nightly('18.3 the policy of the host decides, as in the API', async (t) => {
  const strict = await createUsher(t, {
    console: true, policy: { 'users:disable': () => false, 'audit:read': () => false, 'users:create': () => false },
  })
  const { open, read, send, fill } = withConsole(strict)
  const cookie = await open(strict.admin)
  const { id } = strict.admin
  const denied = await read('/console/log', cookie)
  t.equal(denied.statusCode, 403)
  t.match(denied.body, '<h1 tabindex="-1">Not permitted</h1>')
  t.match(denied.body, /Your role is <strong>admin<\/strong>.*<code>audit:read<\/code>.*No role has it\./)
  t.equal((await read('/console/users/new', cookie)).statusCode, 403)
  t.equal((await send('/console/users', { name: 'A', email: 'a@example.com' }, { cookie })).statusCode, 403)
  t.notMatch((await read(`/console/users/${id}`, cookie)).body, 'Account log</h2>')
  const { version } = fieldsOf((await read(`/console/users/${id}`, cookie)).body, `/console/users/${id}`)
  t.ok(version)
  t.equal((await fill(`/console/users/${id}`, `/console/users/${id}/enable`, { version: version! }, cookie)).statusCode, 303, 'the own record is enabled')
  const other = await strict.inject('GET', '/api/users', { headers: strict.admin.headers })
  t.equal(other.statusCode, 200)
  const none = await createUsher(t, { console: true, policy: { 'console:open': () => false } })
  const response = await withConsole(none).exchange((await none.login(none.admin)).cookie)
  t.equal(response.statusCode, 403)
})

t.test('18.1 in a host, there is no console unless the option says so', async (t) => {
  const plain = await createUsher(t)
  t.equal((await plain.inject('GET', '/console')).statusCode, 404)
  t.equal((await plain.inject('GET', '/console/login')).statusCode, 404)
  t.equal((await plain.inject('GET', OPENING)).statusCode, 404)
})
