import { once } from 'node:events'
import { connect } from 'node:net'
import { json } from 'node:stream/consumers'
import t from 'tap'
import { createKey, createService } from '../helpers/api-keys.ts'
import { actorOf } from '../helpers/actor.ts'
import { createUsher, type LoggedIn } from '../helpers/app.ts'
import { slow } from '../helpers/deadlines.ts'
import { createPost, hostOf } from '../helpers/graphql.ts'
import { createMailer } from '../helpers/mail.ts'
import { openDocument } from '../helpers/openapi.ts'
import { openSql } from '../helpers/sql.ts'
import { until } from '../helpers/until.ts'
import { fieldPart, filePart, leftovers, post as postForm, upload } from '../helpers/uploads.ts'

const mailer = createMailer()
const usher = await createUsher(t, { mailer: mailer.mailer, publicUrl: 'https://example.com' })
/** Another node. */
const second = await createUsher(t, usher.options)
const { app, inject, admin, createUser } = usher
const sql = openSql(t, usher)
const check = await openDocument(app, '')

const pathOf = ({ id }: { id: string }) => `/api/users/${id}/export`
const exportAs = (reader: { headers: object }, user: { id: string }) =>
  inject('GET', pathOf(user), { headers: { ...reader.headers } })
const errorOf = async (response: ReturnType<typeof inject>) => {
  const { statusCode, body } = await response
  return [statusCode, body === '' ? '' : JSON.parse(body).code]
}
/** Makes the authentication of a user's sessions older than any limit. */
const age = ({ id }: LoggedIn) => sql`update sessions set auth_time = now() - interval '1 hour' where user_id = ${id}`
/** Creates posts of a user, with contents of so many bytes. */
const write = ({ id }: { id: string }, count: number, bytes: number) => sql`
  insert into posts (id, author_id, title, content)
  select gen_random_uuid(), ${id}, 'Post ' || place, repeat('x', ${bytes}) from generate_series(1, ${count}::int) place`
const entriesOf = async ({ id }: { id: string }, action: string) =>
  [...await sql`select actor_id as "actorId" from audit where user_id = ${id} and action = ${action} order by id`]

t.test('11.7 an export has everything that is stored about the user, and no secret', async (t) => {
  const ada = await createUser({ name: 'Ada "} Lovelace' })
  const other = await createUser()
  await createPost(usher, ada, 'First')
  await createPost(usher, other, 'Unwanted')
  const parts = [filePart('Secret text'), fieldPart('description', 'D'), fieldPart('visibility', 'private')]
  const { id: uploadId } = (await postForm(usher, parts, { headers: ada.headers })).json()
  const link = (await inject('POST', `/api/uploads/${uploadId}/links`, {
    headers: ada.headers, payload: { seconds: 600, name: 'For Grace' },
  })).json()
  const key = await createKey(usher, ada, { name: 'Deployment' })
  const reset = await inject('POST', '/api/auth/password-reset', { payload: { email: ada.email } })
  t.equal(reset.statusCode, 202)
  await until('the link is stored', async () =>
    (await sql`select from password_links where user_id = ${ada.id}`).length === 1)

  const response = await exportAs(ada, ada)
  t.equal(response.statusCode, 200)
  t.match(response.headers, {
    'content-type': 'application/json; charset=utf-8',
    'content-disposition': `attachment; filename=user-${ada.id}.json`,
    'cache-control': 'no-store',
  })
  t.equal(check({
    method: 'GET', url: pathOf(ada), status: 200, headers: response.headers, body: response.rawPayload,
  }), undefined, 'it is as the OpenAPI document says')
  const exported = response.json()
  t.match(exported.user, { id: ada.id, name: 'Ada "} Lovelace', email: ada.email, kind: 'person' })
  t.match(exported.credentials, {
    password: true,
    totp: null,
    recoveryCodesLeft: 0,
    passkeys: [],
    identities: [],
    apiKeys: [{ id: key.id, name: 'Deployment' }],
  })
  t.match(exported.sessions, [{ amr: ['pwd'], address: '127.0.0.1' }])
  t.equal(exported.networks.length, 1)
  t.match(exported.pending.links.map(({ kind }: { kind: string }) => kind).sort(), ['set-password', 'undo-change'])
  t.match(exported.posts, [{ title: 'First', content: 'Words' }])
  t.match(exported.uploads, [{ id: uploadId, visibility: 'private', links: [{ id: link.id, name: 'For Grace' }] }])
  t.match(exported.accountLog.map(({ action }: { action: string }) => action).slice(0, 2), [
    'user.export', 'password.reset-request',
  ])
  t.strictSame(Object.keys(exported), [
    'exportedAt', 'user', 'emailChangedAt', 'credentials', 'sessions', 'networks', 'memberships', 'pending', 'posts',
    'drafts', 'uploads', 'accountLog',
  ])
  const [stored] = await sql`
    select password_hash as password, encode(secret_hash, 'hex') as secret, encode(rotation_key, 'base64') as rotation,
      encode(api_keys.hash, 'hex') as key, encode(password_links.hash, 'hex') as token
    from users join sessions on sessions.user_id = users.id join api_keys on api_keys.user_id = users.id
      join password_links on password_links.user_id = users.id where users.id = ${ada.id}`
  const secrets = [...Object.values(stored!), key.key, new URL(link.url).searchParams.get('link'), 'Unwanted']
  t.equal(secrets.length, 8)
  for (const secret of secrets) t.notMatch(response.body, secret, 'it has no secret')
})

t.test('11.7 only the user and admins export, after a recent authentication, and not with a key', async (t) => {
  const [ada, other] = [await createUser(), await createUser()]
  const key = await createKey(usher, ada)
  t.strictSame(await errorOf(inject('GET', pathOf(ada))), [401, 'UNAUTHENTICATED'])
  t.strictSame(await errorOf(exportAs(other, ada)), [403, 'FORBIDDEN'])
  t.strictSame(await errorOf(exportAs(key, ada)), [403, 'SESSION_REQUIRED'])
  t.strictSame(await errorOf(exportAs(admin, { id: '0190a5b4-7c3e-7d11-8000-000000000000' })), [404, 'USER_NOT_FOUND'])
  t.strictSame(await errorOf(exportAs(admin, { id: 'x' })), [404, 'USER_NOT_FOUND'])

  await inject('PATCH', `/api/users/${ada.id}`, {
    headers: { ...admin.headers, 'user-agent': 'of the admin', 'content-type': 'application/merge-patch+json' },
    payload: JSON.stringify({ email: `new-${ada.email}` }),
  })
  const agentsIn = async (reader: LoggedIn) => (await exportAs(reader, ada)).json().accountLog
    .find(({ action }: { action: string }) => action === 'user.email-change').userAgent
  t.equal(await agentsIn(ada), '', 'the user does not see from where an admin has acted')
  t.equal(await agentsIn(admin), 'of the admin')
  t.strictSame(await entriesOf(ada, 'user.export'), [{ actorId: ada.id }, { actorId: admin.id }])

  await age(ada)
  const stale = await exportAs(ada, ada)
  t.equal(stale.statusCode, 403)
  t.equal(stale.json().code, 'STEP_UP_REQUIRED')
  t.match(stale.headers['www-authenticate'], /insufficient_user_authentication/)
  const weary = await createUser({ role: 'admin' })
  await age(weary)
  t.strictSame(await errorOf(exportAs(weary, other)), [403, 'STEP_UP_REQUIRED'], 'admins, too')
  await inject('DELETE', `/api/users/${weary.id}`, { headers: admin.headers })

  const robot = await createService(usher, { email: 'robot@example.com' })
  t.match((await exportAs(admin, { id: robot })).json(), { user: { kind: 'service' }, credentials: { password: false } })
  const disable = { headers: { ...admin.headers, 'content-type': 'application/merge-patch+json' }, payload: '{"disabled":true}' }
  await inject('PATCH', `/api/users/${other.id}`, disable)
  t.equal((await exportAs(other, other)).statusCode, 401, 'a disabled user does not')
  t.equal((await exportAs(admin, other)).json().user.disabled, true)
})

t.test('11.7 each row is in the document once, whatever its size, and what is new since the start is not', async (t) => {
  const ada = await createUser()
  await write(ada, 450, 10)
  await write(ada, 3, 300_000)
  await write(ada, 20, 20_000)
  await sql`insert into audit (id, action, actor_id, user_id, address, user_agent)
    select gen_random_uuid(), 'logout', ${ada.id}, ${ada.id}, '', '' from generate_series(1, 450)`
  const stream = await app.usher.users.export(ada.id)
  const pieces = stream[Symbol.asyncIterator]() as AsyncIterator<Buffer>
  const read: Buffer[] = []
  const next = async () => {
    const { value, done } = await pieces.next()
    if (!done) read.push(value)
    return !done
  }
  while (!read.join('').includes('"posts":[{')) t.ok(await next())
  await write(ada, 5, 10)
  while (await next());
  const exported = JSON.parse(Buffer.concat(read).toString())
  const [{ ids }] = await sql<[{ ids: string[] }]>`
    select to_json(array_agg(id order by position desc) filter (where not is_new)) as ids from (
      select id, position, row_number() over (order by position desc) <= 5 as is_new from posts where author_id = ${ada.id}
    ) as post`
  t.strictSame(exported.posts.map(({ id }: { id: string }) => id), ids)
  t.equal(exported.posts.length, 473)
  t.equal(new Set(exported.accountLog.map(({ id }: { id: string }) => id)).size, exported.accountLog.length)
  t.ok(exported.accountLog.length >= 450)
})

t.test('11.7 one export at a time by or about a user; a deletion stops it, and nobody holds a place for ever', async (t) => {
  const [ada, grace] = [await createUser(), await createUser()]
  await write(ada, 5, 100_000)
  const actor = await actorOf(usher, ada)
  const stream = await app.usher.users.export(ada.id, { actor })
  const limited = await exportAs(ada, ada)
  t.equal(limited.statusCode, 429)
  t.equal(limited.headers['retry-after'], '5')
  t.equal((await exportAs(admin, ada)).statusCode, 429)
  t.equal((await exportAs(grace, grace)).statusCode, 200, 'others do not wait')
  stream.destroy()
  await once(stream, 'close')
  t.equal((await exportAs(ada, ada)).statusCode, 200, 'whoever goes away gives the place back')

  const doomed = await app.usher.users.export(ada.id)
  doomed.on('error', () => {})
  await once(doomed, 'readable')
  t.equal((await inject('DELETE', `/api/users/${ada.id}`, { headers: ada.headers })).statusCode, 204)
  await t.rejects(json(doomed), { code: 'USER_NOT_FOUND' }, 'it does not end as if it were complete')
  t.equal((await exportAs(admin, ada)).statusCode, 404)

  const impatient = await createUsher(t, { ...usher.options, deadlines: { ...slow, exportStall: 20 } })
  await write(grace, 5, 100_000)
  const stalled = await impatient.app.usher.users.export(grace.id)
  const failed = once(stalled, 'error')
  stalled.read(0)
  await failed
  t.match(stalled.errored?.message, 'Nobody has read the export for too long')
  t.equal((await impatient.inject('GET', pathOf(grace), { headers: grace.headers })).statusCode, 200)
})

t.test('11.7 the end of a session, on any node, stops an export that runs, as a client that disconnects does', async (t) => {
  const ada = await createUser()
  await write(ada, 100, 100_000)
  const open = async () => {
    const { port } = new URL(`http://${await hostOf(usher)}`)
    const socket = connect(Number(port), '127.0.0.1').on('error', () => {})
    t.teardown(() => socket.destroy())
    socket.write(`GET ${pathOf(ada)} HTTP/1.1\r\nhost: x\r\nauthorization: ${ada.headers.authorization}\r\n\r\n`)
    const [head] = await once(socket, 'data') as [Buffer]
    t.match(head.toString(), /^HTTP\/1.1 200/)
    socket.pause()
    return socket
  }
  const gone = await open()
  t.equal((await exportAs(ada, ada)).statusCode, 429)
  gone.destroy()
  await until('its place is free', async () => (await exportAs(ada, ada)).statusCode === 200)

  const socket = await open()
  const started = performance.now()
  await second.inject('POST', '/api/auth/logout', { headers: ada.headers })
  const chunks: Buffer[] = []
  socket.on('data', (chunk) => chunks.push(chunk)).resume()
  await once(socket, 'close')
  t.comment(`stopped after ${Math.round(performance.now() - started)} ms`)
  t.notMatch(Buffer.concat(chunks).toString('latin1').slice(-5), '0\r\n\r\n', 'it is not complete')
})

t.test('11.7 users delete themselves after a recent authentication, with everything that acts for them', async (t) => {
  const ada = await createUser({ name: 'Not in mails' })
  const key = await createKey(usher, ada)
  await upload(usher, 'bytes', 'mine.txt', ada.headers)
  await age(ada)
  const remove = (headers: object, id = ada.id) => errorOf(inject('DELETE', `/api/users/${id}`, { headers: { ...headers } }))
  t.strictSame(await remove(ada.headers), [403, 'STEP_UP_REQUIRED'], 'a thief of the session cannot')
  t.strictSame(await remove(key.headers), [403, 'SESSION_REQUIRED'], 'nor does a key')
  const fresh = await inject('POST', '/api/auth/step-up', { headers: ada.headers, payload: { password: ada.password } })
  const headers = { authorization: `Bearer ${fresh.json().token}` }
  const payload = { query: 'mutation { createPost(input: { title: "Once", content: "" }) { id } }' }
  const write = (headers: object) => inject('POST', '/graphql', { headers: { ...headers }, payload })
  const keyed = { ...headers, 'idempotency-key': '"0d7b6f4e-6a51-4f5e-9a53-2f4d6a5c7e11"' }
  const created = (await write(keyed)).json()
  t.match(created, { data: { createPost: { id: String } } })
  t.strictSame((await write(keyed)).json(), created, 'a repetition gets the same')
  t.strictSame(await remove(headers), [204, ''])
  for (const each of [headers, key.headers, keyed]) {
    t.match((await write(each)).json(), { errors: [{ extensions: { code: 'INVALID_TOKEN' } }] })
    t.equal((await second.inject('GET', pathOf(ada), { headers: { ...each } })).statusCode, 401)
  }
  t.strictSame(await remove(headers), [401, 'INVALID_TOKEN'])
  t.strictSame(await sql`select from users where id = ${ada.id}`.then((rows) => rows.length), 0)
  await until('its files are removed', async () => (await leftovers(usher, sql)).files === 1)
  const sent = await mailer.of(ada.email, 2)
  const notice = sent.find(({ subject }) => subject === 'Your account was deleted')!
  t.ok(notice, 'a mail says so, although nobody has the account')
  t.notMatch(JSON.stringify(notice), 'Not in mails')

  const other = await createUser()
  t.strictSame(await remove(admin.headers, other.id), [204, ''])
  t.strictSame(await remove(admin.headers, admin.id), [409, 'LAST_ADMIN'])
  const mailsTo = await sql`select from outbox where consumer = 'mail' and data ->> 'to' in (${other.email}, ${admin.email})`
  t.equal(mailsTo.length + mailer.mails.filter(({ to }) => to === other.email || to === admin.email).length, 0,
    'whom an admin deletes gets none, and a deletion that fails causes none')
})
