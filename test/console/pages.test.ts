import { randomUUID } from 'node:crypto'
import { Type } from '@sinclair/typebox'
import postgres from 'postgres'
import t from 'tap'
import { languageTags } from '../../schema/translations/languages.ts'
import { createUsher } from '../helpers/app.ts'
import { withConsole } from '../helpers/console.ts'
import { testDatabaseUrl } from '../helpers/database.ts'
import { createMailer } from '../helpers/mail.ts'
import { openSql } from '../helpers/sql.ts'

const inbox = createMailer()
const statements: string[] = []
const client = postgres(await testDatabaseUrl(), {
  max: 4, onnotice: () => {}, debug: (_, text) => { statements.push(text) },
})
t.teardown(() => client.end())
const usher = await createUsher(t, {
  console: true,
  organizations: true,
  mailer: inbox.mailer,
  sql: client,
  databaseUrl: undefined,
  secret: 'a secret that no page shows',
  userFields: Type.Object({
    plan: Type.Optional(Type.String({ title: 'The plan' })),
    officeSeats: Type.Optional(Type.Integer()),
    notes: Type.Optional(Type.String()),
    more: Type.Optional(Type.String()),
  }),
})
const { inject, admin, createUser } = usher
const sql = openSql(t, { options: { databaseUrl: await testDatabaseUrl(), schema: usher.options.schema } } as never)
const { open, read, send, fill } = withConsole(usher)
const cookie = await open(admin)

/** Returns the row of a user in the list. */
const rowOf = (body: string, id: string): string =>
  body.split('<tr>').find((row) => row.includes(`/console/users/${id}"`)) ?? ''

t.test('18.4 the list of users has a total, last logins, fields of the host, and says nothing of what is as usual', async (t) => {
  const word = randomUUID().slice(0, 8)
  const quiet = await createUser({ name: `${word} quiet`, email: `${word}@example.com` })
  await sql`update users set email_verified = true where id = ${quiet.id}`
  const never = (await inject('POST', '/api/users', {
    headers: admin.headers, payload: { name: `${word} never`, email: `${word}-never@example.com`, plan: 'pro <b>', officeSeats: 7, more: 'beyond' },
  })).json()
  const { body } = await read(`/console/users?q=${word}`, cookie)
  t.match(body, /role="status">2 users</)
  t.match(rowOf(body, quiet.id), new RegExp(`<time datetime="${new Date().toISOString().slice(0, 10)}`))
  t.notMatch(rowOf(body, quiet.id), /class="(badge|note)[ "]|confirmed/)
  t.match(rowOf(body, never.id), /class="note">address not confirmed<.*class="muted none">–</s)
  t.match(body, '<th scope="col">The plan</th>')
  t.match(body, /<th scope="col" class="number">Office seats<\/th>/, 'as on the page of the account')
  t.match(rowOf(body, quiet.id), /data-ago>(now|\d+ minutes? ago)<\/time>/)
  t.match(rowOf(body, never.id), '<bdi>pro &lt;b&gt;</bdi>')
  t.notMatch(rowOf(body, never.id), 'beyond', 'the first three')
  const chosen = await read(`/console/users?q=${word}&columns=chosen&column.more=yes`, cookie)
  t.match(rowOf(chosen.body, never.id), 'beyond')
  t.notMatch(rowOf(chosen.body, never.id), 'pro &lt;b&gt;')
  const [{ count }] = await sql<[{ count: number }]>`select count(*)::int from users`
  t.match((await read('/console/users', cookie)).body, `role="status">${count} users<`)
  const [{ admins }] = await sql<[{ admins: number }]>`select count(*)::int as admins from users where role = 'admin'`
  t.match((await read('/console/users?role=admin', cookie)).body, new RegExp(`role="status">${admins} users?<`))
})

t.test('18.2 a page sends as many statements for many rows as for few', async (t) => {
  const count = async (path: string) => {
    await read(path, cookie)
    statements.length = 0
    const { statusCode } = await read(path, cookie)
    t.equal(statusCode, 200, path)
    // Nodes look for planned drafts and posts that are not indexed in the background.
    return statements.filter((text) => /\b(users|audit|posts|uploads|api_keys|organizations)\b/.test(text) &&
      !/\b(post_drafts|indexed_posts)\b/.test(text)).length
  }
  const paths = ['/console/users', '/console/organizations', '/console/log', '/console/posts', '/console/uploads', '/console/keys', `/console/users/${admin.id}/log`]
  const before = new Map<string, number>()
  for (const path of paths) before.set(path, await count(path))
  for (let index = 0; index < 12; index++) {
    const { id } = await createUser()
    await sql`insert into posts (id, author_id, title, content) values (gen_random_uuid(), ${id}, 'Title', 'Words')`
    await sql`insert into uploads (id, user_id, filename, media_type, size, sha256, description)
      values (gen_random_uuid(), ${id}, 'a.txt', 'text/plain', 1, ${'0'.repeat(64)}, '')`
    await inject('POST', '/api/organizations', { headers: admin.headers, payload: { name: 'Somewhere' } })
  }
  for (const path of paths) t.ok(await count(path) <= before.get(path)! + 2, path)
})

t.test('18.4 each part of a user is a page of its own, to which its forms lead back', async (t) => {
  const { id } = await createUser({ name: 'Somebody' })
  const parts = { '': 'Profile', '/sign-in': 'Ways to log in', '/sessions': 'Sessions', '/keys': 'API keys', '/files': 'Files', '/posts': 'Posts', '/log': 'Account log' }
  for (const [address, title] of Object.entries(parts)) {
    const { statusCode, body } = await read(`/console/users/${id}${address}`, cookie)
    t.equal(statusCode, 200, address)
    t.match(body, `<a href="/console/users/${id}${address}" aria-current="page">${title}</a>`)
  }
  const profile = (await read(`/console/users/${id}`, cookie)).body
  t.match(profile, '<span class="avatar large" aria-hidden="true">S</span>')
  t.match(profile, /Disable this user<.*It ends every session.*<a [^>]*data-asks>Disable …<.*Delete this user<.*This cannot be undone.*<a [^>]*data-asks>Delete …</s)
  const { body } = await read(`/console/users/${id}/sessions`, cookie)
  t.match(body, /last used <time[^>]*>now<\/time>[^a-z]*<span[^>]*>·<\/span> password</)
  t.match(body, /<p>Ending all sessions also deletes the API keys.*<a [^>]*data-asks>End all sessions</s)
  const [, action] = new RegExp(`action="(/console/users/${id}/sessions/[\\w-]+/end)"`).exec(body)!
  t.equal((await send(action!, {}, { cookie })).headers.location, `/console/users/${id}/sessions?done=session-ended`)
  t.equal((await send(`/console/users/${id}/reset`, {}, { cookie })).headers.location, `/console/users/${id}/sign-in?done=reset-sent`)
  const robot = (await inject('POST', '/api/users', {
    headers: admin.headers, payload: { name: 'Robot', email: `${randomUUID()}@example.com`, kind: 'service' },
  })).json()
  const page = `/console/users/${robot.id}/keys`
  const wrong = await fill(page, page, { keyName: 'Key', permits: 'some', 'action.nothing:at-all': 'yes' }, cookie)
  t.equal(wrong.statusCode, 400)
  t.match(wrong.body, /nothing:at-all.*value="Key"/s, 'what was typed remains')
  const chosen = ['posts:create', 'users:list', 'users:read', 'posts:read'].map((action) => [`action.${action}`, action])
  const some = { keyName: 'Key <b>', permits: 'some', expires: '', ...Object.fromEntries(chosen) }
  const created = await fill(page, page, some, cookie)
  t.match(created.body, /Store it now.*<code>usher_\w+.*Key &lt;b&gt;.*posts:create.*posts:read/s)
  t.notMatch(created.body, /<p(?: [^>]*)?>(?:(?!<\/p>).)*<(details|div|ul|form)/s, 'a paragraph ends where it should')
  const keys = (await read('/console/keys', cookie)).body
  t.match(keys, '<summary>+1</summary>', 'a list has room for some')
  t.match(keys, '<span class="badge warning">never</span>')
  t.match((await read(page, cookie)).body, '<span class="badge warning">Expires: never</span>')
  const free = await fill(page, page, { keyName: 'Free', permits: 'all' }, cookie)
  t.match(free.body, '<span class="badge warning">everything</span>')
  t.equal((await read(`/console/users/${robot.id}/sessions`, cookie)).statusCode, 200)
  t.notMatch((await read(page, cookie)).body, '/sessions"', 'a service has none')
  t.equal((await read('/console/users/unknown/log', cookie)).statusCode, 404)
})

t.test('18.5 the account log says in sentences who did what to whom, with names that are never markup', async (t) => {
  const user = await createUser({ name: '{actor} <b>Bob</b> \u202e' })
  await inject('PATCH', `/api/users/${admin.id}`, { headers: admin.headers, payload: { name: 'Ada Lovelace' } })
  await inject('PATCH', `/api/users/${user.id}`, { headers: admin.headers, payload: { disabled: true } })
  await inject('POST', '/api/auth/login', { payload: { email: user.email, password: 'not the password' } })
  await inject('POST', '/api/auth/login', { payload: { email: 'nobody@example.com', password: 'not the password' } })
  const ada = `<a href="/console/users/${admin.id}"><bdi>Ada Lovelace</bdi></a>`
  const bob = `<a href="/console/users/${user.id}"><bdi>{actor} &lt;b&gt;Bob&lt;/b&gt; \u202e</bdi></a>`
  for (const path of [`/console/log?user=${user.id}`, `/console/log?user=${encodeURIComponent(user.email.toUpperCase())}`, `/console/users/${user.id}/log`]) {
    const { body } = await read(path, cookie)
    t.ok(body.includes(`${ada} disabled ${bob}`), path)
    t.ok(body.includes(`${ada} created ${bob}`), path)
    t.ok(body.includes(`A login as ${bob} failed`), path)
    t.ok(body.includes(`${bob} logged in`), path)
  }
  t.match((await read('/console/log?action=login.failed', cookie)).body, 'A login as an unknown account failed')
  const overview = (await read('/console', cookie)).body
  t.ok(overview.includes(`A login as ${bob} failed`), 'the overview has the newest')
  t.match(overview, /<time datetime="[\d:.TZ-]+" title="[^"]+UTC" data-ago>now<\/time>/)
  await inject('DELETE', `/api/users/${user.id}`, { headers: admin.headers })
  t.match((await read(`/console/log?user=${user.id}`, cookie)).body, `<code>${user.id.slice(0, 8)}…</code>`, 'one who is gone has an id')
})

t.test('18.2 the console is in the language of its reader, from right to left in Arabic', async (t) => {
  const get = (path: string, language: string) => inject('GET', path, { headers: { cookie, 'accept-language': language } })
  const titles = new Set<string>()
  await sql`update audit set created_at = now() - interval '190 minutes'`
  for (const language of languageTags) {
    for (const path of ['/console', '/console/users', `/console/users/${admin.id}`, '/console/log', '/console/settings']) {
      const { statusCode, headers, body } = await get(path, language)
      t.equal(statusCode, 200, `${language} ${path}`)
      t.equal(headers['content-language'], language)
      t.match(body, `<html lang="${language}" dir="${language === 'ar' ? 'rtl' : 'ltr'}">`)
      t.notMatch(body.replaceAll(/<bdi>.*?<\/bdi>|value="[^"]*"/gs, ''), /\{\w+[,}]|undefined/, `${language} ${path}: a placeholder`)
      if (path !== '/console') continue
      titles.add(/<h1[^>]*>([^<]*)/.exec(body)![1]!)
      const relative = new Intl.RelativeTimeFormat(language, { numeric: 'auto' })
      t.ok(body.includes(`data-ago>${relative.format(-3, 'hour')}</time>`), `${language}: three hours ago`)
    }
  }
  t.equal(titles.size, languageTags.length, `${[...titles]}`)
  t.match((await get('/console/nothing', 'de')).body, 'Nicht gefunden')
  t.match((await get('/console/users?q=a', 'tlh, de-AT;q=0.5')).body, '<html lang="de"')
  t.match((await inject('GET', '/console/login?done=out', { headers: { 'accept-language': 'fr' } })).body, '<html lang="fr"')
})

t.test('18.2 a host with one language has the console in it', async (t) => {
  const german = await createUsher(t, { console: true, pages: { language: 'de-CH' } })
  const { body } = await german.inject('GET', '/console/login?done=out', { headers: { 'accept-language': 'fr' } })
  t.match(body, '<html lang="de"')
})

t.test('18.1 in a host, the settings are its options, without what may be secret', async (t) => {
  const { body } = await read('/console/settings', cookie)
  t.match(body, /<h2[^>]*>Files and posts<\/h2>.*uploadMaxBytes.*<h2[^>]*>Limits of attempts and connections<\/h2>.*throttle\.account\.burst/s)
  t.notMatch(body, /a secret that no page shows|postgres:\/\/|formerSecret|databaseUrl/)
  const found = (await read('/console/settings?q=STEPUP', cookie)).body
  t.match(found, 'stepUpSeconds')
  t.notMatch(found, 'uploadMaxBytes')
  t.match((await read('/console/settings?q=nothing-like-it', cookie)).body, 'No setting has this name')
  t.notMatch((await read('/console/settings?changed=yes', cookie)).body, 'uploadMaxBytes')
  t.match(body, /accessTokenSeconds<.*?>How long an access token is valid\.<.*?<span title="900">15 minutes<.*?uploadMaxBytes<.*?<span title="10485760">10 MiB</s)
  t.match(body, /<summary>Set by the host \(\d+\)<.*?deadlines\.statement<.*?PostgreSQL cancels a statement\.<.*?<span title="\d+000">\d+ (seconds?|minutes?)</s)
  t.match((await read('/console/settings?q=cancels+a+statement', cookie)).body, /<details class="fixed" open>.*deadlines\.statement</s)
})

t.test('18.1 in a node, settings are in groups, with what sets each', async (t) => {
  const node = await createUsher(t, {
    console: true,
    shownSettings: () => [
      { name: 'PORT', value: '3000', source: 'environment', group: 'node' },
      { name: 'SMTP_URL', value: null, source: 'default', group: 'mail' },
      { name: 'OTHER', value: '<b>', source: 'usher.config.ts' },
    ],
  })
  const { open, read } = withConsole(node)
  const cookie = await open(node.admin)
  const { body } = await read('/console/settings', cookie)
  t.match(body, /Node and network.*PORT.*environment.*Mails and webhooks.*SMTP_URL.*not set.*default.*Others.*OTHER.*&lt;b&gt;.*usher\.config\.ts/s)
  t.notMatch((await read('/console/settings?changed=yes', cookie)).body, 'SMTP_URL')
  t.notMatch(body, 'uploadMaxBytes')
})

t.test('18.1 lists say how much there is, and what to do where there is nothing', async (t) => {
  t.match((await read('/console/uploads', cookie)).body, /class="total muted">[\d,]+ files? · [\d.,]+ \w+</)
  t.match((await read('/console/providers', cookie)).body, /No provider<.*<a class="button plain small" href="\/docs\/guide\/providers">How to add a provider</s)
  t.match((await read('/console/nothing', cookie)).body, '<a href="/console">Go to overview</a>')
  const log = (await read('/console/log', cookie)).body
  t.match(log, /<label for="user">User<.*placeholder="E-mail address or id".*<button[^>]*>Apply</s)
})

t.test('18.1 the overview says what needs a look before everything that is well', async (t) => {
  const { body } = await read('/console', cookie)
  t.match(body, /things? needs? a look.*Last backup.*none is known.*Database.*PostgreSQL/s)
  t.ok(body.indexOf('id="health"') < body.indexOf('id="activity"'), 'health comes before charts')
  t.ok(body.indexOf('id="recent"') < body.indexOf('id="activity"'))
})
