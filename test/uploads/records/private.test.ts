import { once } from 'node:events'
import { connect, type Socket } from 'node:net'
import t, { type Test } from 'tap'
import { audiences } from '../../../app.ts'
import { createUsher, sharedUsher, type LoggedIn, type TestUsher } from '../../helpers/app.ts'
import { testDatabaseUrl } from '../../helpers/database.ts'
import { hostOf, post as graphql } from '../../helpers/graphql.ts'
import { nightly } from '../../helpers/nightly.ts'
import { createProxy } from '../../helpers/proxy.ts'
import { openSql } from '../../helpers/sql.ts'
import { until } from '../../helpers/until.ts'
import { fieldPart, filePart, post } from '../../helpers/uploads.ts'

const UNKNOWN = '0190a5b4-7c3e-7d11-8000-000000000000'
const SIZE = 10_000_000
const first = await sharedUsher()
// Another node on the same database.
const second = await createUsher(t, first.options)
const { admin, inject } = first
const sql = openSql(t, first)

async function keep (owner: LoggedIn, content: string | Buffer = 'Secret text', visibility = 'private', usher = first) {
  const parts = [filePart(content), fieldPart('description', 'D'), fieldPart('visibility', visibility)]
  return (await post(usher, parts, owner)).json() as { id: string, fileUrl: string, sha256: string }
}

async function share (by: LoggedIn, id: string, payload: object = { seconds: 3600 }, usher = first) {
  const response = await usher.inject('POST', `/api/uploads/${id}/links`, { headers: by.headers, payload })
  if (response.statusCode !== 201) throw new Error(`share: ${response.statusCode} ${response.body}`)
  return response.json() as { id: string, url: string, name: string, createdAt: string, expiresAt: string }
}

const revoke = (by: LoggedIn, upload: string, link: string, usher = first) =>
  usher.inject('DELETE', `/api/uploads/${upload}/links/${link}`, { headers: by.headers })

t.test('13.2 a link serves the bytes without a token, with ranges, and says that nobody may store them', async (t) => {
  const ada = await first.createUser()
  const { id, sha256 } = await keep(ada, '0123456789')
  const link = await share(ada, id, { seconds: 60, name: '  For Grace ' })
  t.match(link, { name: 'For Grace', url: new RegExp(`^/api/uploads/${id}\\?link=[\\w-]{43}$`), createdBy: ada.id })
  t.equal(Date.parse(link.expiresAt) - Date.parse(link.createdAt), 60_000)
  const response = await inject('GET', link.url)
  t.equal(response.statusCode, 200)
  t.equal(response.body, '0123456789')
  t.match(response.headers, {
    'cache-control': 'private, no-store', 'referrer-policy': 'no-referrer', etag: `"${sha256}"`,
  })
  t.equal((await inject('GET', link.url, { headers: { range: 'bytes=2-3' } })).body, '23')
  t.equal((await inject('GET', link.url, { headers: { 'if-none-match': `"${sha256}"` } })).statusCode, 304)
  t.equal((await inject('HEAD', link.url)).headers['content-length'], '10')
  t.equal((await second.inject('GET', link.url)).body, '0123456789', 'on every node')
  t.equal((await inject('GET', link.url, { headers: { authorization: 'Bearer x' } })).statusCode, 200)
})

t.test('13.2 links are listed without their secrets, which the database does not have either', async (t) => {
  const ada = await first.createUser()
  const { id } = await keep(ada)
  const { url, ...link } = await share(ada, id)
  const listed = await inject('GET', `/api/uploads/${id}/links`, { headers: ada.headers })
  t.same(listed.json(), [link])
  t.equal(listed.headers['cache-control'], 'no-store')
  const secret = url.split('=')[1]!
  t.notMatch(listed.body, secret)
  const [row] = await sql`select upload_links::text as text, encode(secret_hash, 'escape') as hash from upload_links where id = ${link.id}`
  t.notMatch(`${row!.text} ${row!.hash}`, secret)
  t.equal((await revoke(ada, id, link.id)).statusCode, 204)
  t.same((await inject('GET', `/api/uploads/${id}/links`, { headers: ada.headers })).json(), [])
  t.equal((await revoke(ada, id, link.id)).statusCode, 404)
  const log = (await inject('GET', '/api/audit', { headers: ada.headers })).json() as { action: string }[]
  t.same(log.map(({ action }) => action).slice(0, 2), ['upload-link.revoke', 'upload-link.create'])
})

t.test('13.2 what is wrong with a new link is said, and their number is limited', async (t) => {
  const ada = await first.createUser()
  const { id } = await keep(ada)
  const create = (payload: object, by = ada) =>
    inject('POST', `/api/uploads/${id}/links`, { headers: by.headers, payload })
  t.same((await create({})).json(), { errors: ['seconds is required'] })
  for (const seconds of [0, -1, 604_801, 1.5, '60', null]) {
    t.match((await create({ seconds })).json(), { errors: [/^seconds must/] }, `${seconds}`)
  }
  t.equal((await create({ seconds: 604_800 })).statusCode, 201)
  t.match((await create({ seconds: 1, name: 'a\nb' })).json(), { errors: [/^name must not/] })
  t.match((await create({ seconds: 1, name: 'x'.repeat(101) })).json(), { errors: [/^name must/] })
  const all = await Promise.all(Array.from({ length: 25 }, () => create({ seconds: 60 })))
  t.equal(all.filter(({ statusCode }) => statusCode === 201).length, 19, 'twenty at a time')
  t.match(all.find(({ statusCode }) => statusCode !== 201)!.json(), { code: 'TOO_MANY_LINKS' })
})

t.test('13.2 to everybody else a private upload does not exist, whatever the request', async (t) => {
  const [ada, bob] = [await first.createUser(), await first.createUser()]
  const [mine, other] = [await keep(ada), await keep(ada, 'Another secret')]
  const states: Record<string, { id: string, sha256: string, query: string, headers: object }> = {}
  const add = (name: string, { id, sha256 } = mine, query = '', headers: object = {}) => {
    states[name] = { id, sha256, query, headers }
  }
  add('nobody')
  add('another user', mine, '', bob.headers)
  add('an invalid token', mine, '', { authorization: 'Bearer x' })
  add('the link of another upload', mine, `?${(await share(ada, other.id)).url.split('?')[1]!}`)
  const expired = await share(ada, mine.id)
  await sql`update upload_links set expires_at = now() - interval '1 second' where id = ${expired.id}`
  add('an expired link', mine, `?${expired.url.split('?')[1]!}`)
  const revoked = await share(ada, mine.id)
  await revoke(ada, mine.id, revoked.id)
  add('a revoked link', mine, `?${revoked.url.split('?')[1]!}`, bob.headers)
  for (const secret of ['', 'x', 'A'.repeat(43), '%00', 'é']) add(`the secret "${secret}"`, mine, `?link=${secret}`)

  const deleted = await keep(ada)
  const toDeleted = await share(ada, deleted.id)
  await inject('DELETE', `/api/uploads/${deleted.id}`, { headers: ada.headers })
  add('a deleted upload', deleted, '', admin.headers)
  add('the link of a deleted upload', deleted, `?${toDeleted.url.split('?')[1]!}`)
  for (const [name, method, payload] of [['deleted', 'DELETE'], ['disabled', 'PATCH', { disabled: true }]] as const) {
    const owner = await first.createUser()
    const kept = await keep(owner)
    const { url } = await share(owner, kept.id)
    const { statusCode } = await inject(method, `/api/users/${owner.id}`, { headers: admin.headers, ...payload && { payload } })
    t.equal(Math.floor(statusCode / 100), 2)
    add(`the link of a ${name} owner`, kept, `?${url.split('?')[1]!}`)
    add(`the token of a ${name} owner`, kept, '', owner.headers)
  }

  type Answer = { statusCode: number, headers: object, body: string }
  const visible = ({ statusCode, headers, body }: Answer, id: string) => {
    const { date, 'x-request-id': requestId, ...rest } = headers as Record<string, string>
    // The order of the members of an answer changes when GraphQL compiles the document.
    const { data, ...other } = body === '' ? {} as { data?: unknown } : JSON.parse(body)
    return JSON.stringify([statusCode, rest, data, other]).replaceAll(id, 'ID')
  }
  const download = (method: 'GET' | 'HEAD', more: object | ((sha256: string) => object) = {}) =>
    (id: string, { sha256, query, headers }: { sha256: string, query: string, headers: object }) =>
      inject(method, `/api/uploads/${id}${query}`, {
        headers: { ...headers, ...typeof more === 'function' ? more(sha256) : more },
      })
  const rest = (method: 'GET' | 'PATCH' | 'DELETE' | 'POST', path: string, payload?: object) =>
    (id: string, { query, headers }: { query: string, headers: object }) =>
      inject(method, `/api/uploads/${id}${path}${query}`, { headers: { ...headers }, ...payload && { payload } })
  const ask = (query: string) => (id: string, { headers }: { headers: object }) =>
    inject('POST', '/graphql', { headers: { ...headers }, payload: { query, variables: { id } } })
  const paths: Record<string, (id: string, state: typeof states[string]) => Promise<Answer>> = {
    GET: download('GET'),
    HEAD: download('HEAD'),
    'GET of a range': download('GET', { range: 'bytes=0-3' }),
    'GET of an unsatisfiable range': download('GET', { range: 'bytes=999-' }),
    'GET with the current tag': download('GET', (sha256) => ({ 'if-none-match': `"${sha256}"` })),
    'GET with any tag': download('GET', { 'if-none-match': '*' }),
    'GET with another If-Match': download('GET', { 'if-match': '"x"' }),
    'GET if modified since': download('GET', { 'if-modified-since': new Date(Date.now() + 60_000).toUTCString() }),
    record: rest('GET', '/record'),
    PATCH: rest('PATCH', '', { description: 'Mine' }),
    'an invalid PATCH': rest('PATCH', '', { description: null }),
    DELETE: rest('DELETE', ''),
    'links: create': rest('POST', '/links', { seconds: 60 }),
    'links: list': rest('GET', '/links'),
    'links: revoke': rest('DELETE', `/links/${UNKNOWN}`),
    'query upload': ask('query ($id: ID!) { upload(id: $id) { id } }'),
    'mutation updateUpload': ask('mutation ($id: ID!) { updateUpload(id: $id, input: {}) { id } }'),
    'mutation deleteUpload': ask('mutation ($id: ID!) { deleteUpload(id: $id) }'),
  }
  for (const [state, given] of Object.entries(states)) {
    for (const [path, send] of Object.entries(paths)) {
      const [found, unknown] = [await send(given.id, given), await send(UNKNOWN, given)]
      t.equal(visible(found, given.id), visible(unknown, UNKNOWN), `${state}: ${path}`)
      t.notMatch(found.body, /Secret|notes\.txt/, `${state}: ${path}`)
    }
  }
  // The same requests of those who may.
  t.equal((await inject('GET', `/api/uploads/${mine.id}`, { headers: ada.headers })).statusCode, 200)
  t.equal((await inject('GET', `/api/uploads/${mine.id}`, { headers: admin.headers })).statusCode, 200)
  t.equal((await inject('GET', (await share(ada, mine.id)).url)).statusCode, 200)
  const { uploads } = first.app.usher
  await t.rejects(uploads.get(mine.id, { actor: null }), { code: 'UPLOAD_NOT_FOUND' })
  t.match(await uploads.get(mine.id), { visibility: 'private' })
})

t.test('13.2 lists have private uploads for those only who may read them', async (t) => {
  const usher = await createUsher(t, { policy: { 'uploads:list': audiences.anyone } })
  const ada = await usher.createUser()
  const [open, hidden] = [await keep(ada, 'Open', 'public', usher), await keep(ada, 'Hidden', 'private', usher)]
  const idsFor = async (headers: object, user = ada.id) =>
    (await usher.inject('GET', `/api/uploads?user=${user}`, { headers: { ...headers } })).json()
      .map(({ id }: { id: string }) => id)
  for (const user of [ada.id, 'all']) {
    t.same(await idsFor({}, user), [open.id])
    t.same(await idsFor((await usher.createUser()).headers, user), [open.id])
    t.same(await idsFor(usher.admin.headers, user), [hidden.id, open.id])
  }
  t.same(await idsFor(ada.headers), [hidden.id, open.id])
  const query = `{ user(id: "${ada.id}") { uploads { nodes { id } } } }`
  t.same((await graphql(usher, { query })).data.user.uploads.nodes, [{ id: open.id }])
  t.same((await graphql(usher, { query }, ada)).data.user.uploads.nodes, [{ id: hidden.id }, { id: open.id }])
})

t.test('13.2 reads of private uploads by admins are in the account log of the owner', async (t) => {
  const ada = await first.createUser()
  const { id } = await keep(ada)
  for (const by of [ada, admin, admin]) await inject('GET', `/api/uploads/${id}`, { headers: by.headers })
  await until('the entry', async () => (await sql`select from audit where user_id = ${ada.id} and action = 'upload.read'`).length > 0)
  const entries = await sql`select actor_id from audit where user_id = ${ada.id} and action = 'upload.read'`
  t.same(entries.map(({ actor_id: actor }) => actor), [admin.id])
})

t.test('13.2 links are void after whatever ends the control of a thief', async (t) => {
  const owner = async () => {
    const user = await first.createUser()
    const { id } = await keep(user)
    return { user, uploadId: id, url: (await share(user, id)).url }
  }
  type Owner = Awaited<ReturnType<typeof owner>>
  const voiding: Record<string, (owner: Owner) => Promise<unknown>> = {
    'a new password': ({ user }) => inject('PUT', '/api/auth/password', {
      headers: user.headers, payload: { currentPassword: user.password, password: 'a quite new passphrase' },
    }),
    'ending all sessions by an admin': ({ user }) =>
      inject('DELETE', `/api/users/${user.id}/sessions`, { headers: admin.headers }),
    disabling: ({ user }) =>
      inject('PATCH', `/api/users/${user.id}`, { headers: admin.headers, payload: { disabled: true } }),
    'the role admin': ({ user }) =>
      inject('PATCH', `/api/users/${user.id}`, { headers: admin.headers, payload: { role: 'admin' } }),
    'ending all sessions by the host': ({ user }) => first.app.usher.sessions.endAll(user.id),
    'a password that psql has set': ({ user }) =>
      sql`update users set password_hash = 'x' where id = ${user.id}`,
  }
  for (const [name, act] of Object.entries(voiding)) {
    const given = await owner()
    t.equal((await inject('GET', given.url)).statusCode, 200)
    await act(given)
    t.equal((await inject('GET', given.url)).statusCode, 404, name)
    t.same(await sql`select from upload_links where upload_id = ${given.uploadId}`, [], name)
  }
  // What changes nothing about who has control does not void them.
  const kept = await owner()
  await inject('POST', '/api/auth/logout', { headers: kept.user.headers })
  await inject('PATCH', `/api/users/${kept.user.id}`, { headers: admin.headers, payload: { name: 'Renamed' } })
  t.equal((await inject('GET', kept.url)).statusCode, 200)
  // Those of an admin to the uploads of others.
  const demoted = await first.createUser({ role: 'admin' })
  const byAdmin = await share(demoted, kept.uploadId)
  t.equal((await inject('GET', byAdmin.url)).statusCode, 200)
  await inject('PATCH', `/api/users/${demoted.id}`, { headers: admin.headers, payload: { role: 'user' } })
  t.equal((await inject('GET', byAdmin.url)).statusCode, 404)
  t.equal((await inject('GET', kept.url)).statusCode, 200)
})

t.test('13.2 a better hash of the same password voids no link', async (t) => {
  const ada = await first.createUser()
  const { id } = await keep(ada)
  const { url } = await share(ada, id)
  const stronger = await createUsher(t, { ...first.options, passwordHash: { memoryKiB: 16, passes: 1 } })
  const hash = async () => (await sql`select password_hash as hash from users where id = ${ada.id}`)[0]!.hash
  const before = await hash()
  await stronger.login(ada)
  t.not(await hash(), before)
  t.equal((await inject('GET', url)).statusCode, 200)
})

t.test('13.2 a link that is created while its account is repaired does not outlive the repair', async (t) => {
  const ada = await first.createUser()
  const { id } = await keep(ada)
  const locked = Promise.withResolvers<void>()
  const release = Promise.withResolvers<void>()
  const repair = sql.begin(async (sql) => {
    await sql`select from users where id = ${ada.id} for no key update`
    locked.resolve()
    await release.promise
    await sql`delete from sessions where user_id = ${ada.id}`
    await sql`update users set password_hash = 'y' where id = ${ada.id}`
  })
  await locked.promise
  const creation = inject('POST', `/api/uploads/${id}/links`, { headers: ada.headers, payload: { seconds: 60 } })
  await until('the creation waits', async () =>
    (await sql`select from pg_stat_activity where wait_event_type = 'Lock' and query like '%users%'`).length > 0)
  release.resolve()
  await repair
  t.equal((await creation).statusCode, 401)
  t.same(await sql`select from upload_links where upload_id = ${id}`, [])
})

/**
 * A download that the client has begun to read, and whose rest the node cannot send yet. Begin one after the other on
 * the same node.
 */
async function begin (t: Test, usher: TestUsher, url: string, headers: Record<string, string> = {}) {
  const port = Number((await hostOf(usher)).split(':')[1])
  const [socket, [connection]] = await Promise.all([
    connect(port, '127.0.0.1').on('error', () => {}), once(usher.app.server, 'connection') as Promise<[Socket]>,
  ])
  t.teardown(() => socket.destroy())
  const lines = Object.entries(headers).map(([name, value]) => `${name}: ${value}\r\n`).join('')
  socket.write(`GET ${url} HTTP/1.1\r\nhost: x\r\n${lines}connection: close\r\n\r\n`)
  const [head] = await once(socket, 'data') as [Buffer]
  socket.pause()
  let closedAt: number | undefined
  connection.once('close', () => { closedAt = performance.now() })
  return {
    status: head.toString('latin1', 9, 12),
    isOpen: () => closedAt === undefined,
    closed: () => until('the download is stopped', () => closedAt !== undefined).then(() => closedAt!),
  }
}

t.test('13.2 what ends the permission for a running download stops it on every node', async (t) => {
  const ada = await first.createUser()
  const bytes = Buffer.alloc(SIZE)
  const kept = async (visibility = 'private') => keep(ada, bytes, visibility)
  const cases: Record<string, () => Promise<{ url: string, headers?: LoggedIn['headers'], end: () => Promise<unknown> }>> = {
    'a revoked link': async () => {
      const { id } = await kept()
      const link = await share(ada, id)
      return { url: link.url, end: () => revoke(ada, id, link.id) }
    },
    'a deleted upload, by its link': async () => {
      const { id } = await kept()
      return {
        url: (await share(ada, id)).url,
        end: () => inject('DELETE', `/api/uploads/${id}`, { headers: ada.headers }),
      }
    },
    'a deleted upload, of its owner': async () => {
      const { id, fileUrl } = await kept()
      return {
        url: fileUrl, headers: ada.headers, end: () => inject('DELETE', `/api/uploads/${id}`, { headers: ada.headers }),
      }
    },
    'a deleted public upload': async () => {
      const { id, fileUrl } = await kept('public')
      return { url: fileUrl, end: () => inject('DELETE', `/api/uploads/${id}`, { headers: ada.headers }) }
    },
    'an upload that was made private': async () => {
      const { id, fileUrl } = await kept('public')
      const payload = { visibility: 'private' }
      return { url: fileUrl, end: () => inject('PATCH', `/api/uploads/${id}`, { headers: ada.headers, payload }) }
    },
    'an ended session': async () => {
      const reader = await first.createUser({ role: 'admin' })
      return {
        url: (await kept()).fileUrl,
        headers: reader.headers,
        end: () => inject('POST', '/api/auth/logout', { headers: reader.headers }),
      }
    },
    'a repair of the owner': async () => {
      const owner = await first.createUser()
      const { id } = await keep(owner, bytes)
      return {
        url: (await share(owner, id)).url,
        end: () => inject('DELETE', `/api/users/${owner.id}/sessions`, { headers: admin.headers }),
      }
    },
    'a deleted owner': async () => {
      const owner = await first.createUser()
      const { fileUrl } = await keep(owner, bytes, 'public')
      return { url: fileUrl, end: () => inject('DELETE', `/api/users/${owner.id}`, { headers: admin.headers }) }
    },
  }
  let max = 0
  for (const [name, prepare] of Object.entries(cases)) {
    const { url, headers, end } = await prepare()
    const downloads = await Promise.all([begin(t, first, url, headers), begin(t, second, url, headers)])
    t.same(downloads.map(({ status }) => status), ['200', '200'], name)
    t.ok(downloads.every(({ isOpen }) => isOpen()), name)
    await end()
    const ended = performance.now()
    for (const { closed } of downloads) max = Math.max(max, await closed() - ended)
    t.pass(`${name} stops it`)
  }
  t.comment(`at most ${max.toFixed(1)} ms after the response`)
})

t.test('13.2 a deleted owner stops downloads at once, and not when the files are removed', async (t) => {
  const owner = await first.createUser()
  const { id, fileUrl } = await keep(owner, Buffer.alloc(SIZE), 'public')
  const download = await begin(t, second, fileUrl)
  t.equal(download.status, '200')
  let deletion: ReturnType<typeof inject> | undefined
  await sql.begin(async (trx) => {
    await trx`select from uploads where id = ${id} for update`
    deletion = inject('DELETE', `/api/users/${owner.id}`, { headers: admin.headers })
    await download.closed()
  })
  t.equal((await deletion)?.statusCode, 204)
})

t.test('13.2 a link stops its download when it expires', async (t) => {
  const ada = await first.createUser()
  const { id } = await keep(ada, Buffer.alloc(SIZE))
  const download = await begin(t, second, (await share(ada, id, { seconds: 1 })).url)
  t.equal(download.status, '200')
  await download.closed()
})

t.test('13.2 a download goes on if its reader may still read the upload', async (t) => {
  const [ada, bob] = [await first.createUser(), await first.createUser()]
  const { id, fileUrl } = await keep(ada, Buffer.alloc(SIZE), 'public')
  const { url } = await share(ada, id)
  const another = await share(ada, id)
  const going = [
    await begin(t, second, fileUrl, ada.headers), await begin(t, second, url),
    await begin(t, second, fileUrl, admin.headers),
  ]
  const stopped = [await begin(t, second, fileUrl), await begin(t, second, fileUrl, bob.headers)]
  await inject('PATCH', `/api/uploads/${id}`, { headers: ada.headers, payload: { visibility: 'private' } })
  await revoke(ada, id, another.id)
  for (const { closed } of stopped) await closed()
  // Messages arrive in order, so these have been asked as well.
  t.ok(going.every(({ isOpen }) => isOpen()))
  // Those that go on need the session, or the link, from now on.
  await inject('POST', '/api/auth/logout', { headers: ada.headers })
  await revoke(await first.login(ada), id, (await sql`select id from upload_links where upload_id = ${id}`)[0]!.id)
  await going[0]!.closed()
  await going[1]!.closed()
  t.ok(going[2]!.isOpen())
})

nightly('13.2 without notifications, the database is asked, and downloads are stopped as well', async (t) => {
  const proxy = await createProxy(t, await testDatabaseUrl())
  const deaf = await createUsher(t, { ...first.options, notificationsUrl: proxy.url })
  const ada = await first.createUser()
  const [one, two, three] = [
    await keep(ada, Buffer.alloc(SIZE)), await keep(ada, Buffer.alloc(SIZE)), await keep(ada, Buffer.alloc(SIZE), 'public'),
  ]
  const link = await share(ada, one.id)
  const downloads = [
    await begin(t, deaf, link.url), await begin(t, deaf, two.fileUrl, ada.headers), await begin(t, deaf, three.fileUrl),
  ]
  proxy.refuse()
  await revoke(ada, one.id, link.id)
  await inject('DELETE', `/api/uploads/${two.id}`, { headers: ada.headers })
  await inject('PATCH', `/api/uploads/${three.id}`, { headers: ada.headers, payload: { visibility: 'private' } })
  for (const { closed } of downloads) await closed()
  t.equal((await deaf.inject('GET', link.url)).statusCode, 404)
})
