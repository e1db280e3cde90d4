import Fastify, { type FastifyRequest } from 'fastify'
import t from 'tap'
import usherPlugin, { audiences, type Actor, type Resource, type UsherOptions } from '../../app.ts'
import { actorOf } from '../helpers/actor.ts'
import { createUsher, type LoggedIn } from '../helpers/app.ts'
import { withConsole } from '../helpers/console.ts'
import { createPost, post } from '../helpers/graphql.ts'
import { createMailer } from '../helpers/mail.ts'
import { createEndDuring } from '../helpers/end-during.ts'
import { until } from '../helpers/until.ts'

// What a host adds, which the types of this test do not know.
const roles = {
  moderator: ['users:list', 'users:disable', 'posts:delete', 'console:open'],
  granter: ['users:grant-role', 'users:disable', 'users:list', 'posts:delete'],
  'content-editor': ['posts:update', 'bookmarks:delete', 'users:read-email', 'uploads:list'],
  manager: ['users:replace', 'users:delete', 'api-keys:create', 'users:list'],
  warden: ['sessions:end', 'second-factor:reset', 'passkeys:remove', 'identities:remove', 'api-keys:delete'],
} as UsherOptions['roles']
const policy = {
  'bookmarks:delete': (actor: Actor, { ownerId }: Resource) => actor.id === ownerId,
  'bookmarks:create': () => true,
  'users:read-email': audiences.owners,
} as UsherOptions['policy'] & object

const inbox = createMailer()
const usher = await createUsher(t, { roles, policy, console: true, mailer: inbox.mailer })
const { inject, admin, createUser, login } = usher
const { sql, endDuring } = createEndDuring(t, usher)

const [moderator, granter, editor, manager, warden, user] = await Promise.all(
  ['moderator', 'granter', 'content-editor', 'manager', 'warden', 'user'].map((role) => createUser({ role }))
) as [LoggedIn, LoggedIn, LoggedIn, LoggedIn, LoggedIn, LoggedIn]

const patch = (id: string, payload: object, { headers }: LoggedIn) =>
  inject('PATCH', `/api/users/${id}`, { headers, payload })
const statusOf = async (id: string, payload: object, by: LoggedIn) => (await patch(id, payload, by)).statusCode
const works = async ({ headers }: LoggedIn) => (await inject('GET', '/api/protected', { headers })).statusCode === 200
const roleOf = async (id: string) => (await inject('GET', `/api/users/${id}`)).json().role as string

// Resets the second factor of a user as a host does it on behalf of the warden.
const reset = async (id: string): Promise<{ statusCode: number }> => {
  const actor = await actorOf(usher, warden)
  return usher.app.usher.credentials.resetSecondFactor(id, { actor })
    .then(() => ({ statusCode: 204 }), (error: { statusCode: number }) => ({ statusCode: error.statusCode }))
}

t.test('20.1 a moderator does by REST what the role lists and what everybody may do, and nothing else', async (t) => {
  const other = await createUser()
  t.equal(await statusOf(other.id, { disabled: true }, moderator), 200)
  t.notOk(await works(other), 'the sessions of a disabled user end')
  t.equal(await statusOf(other.id, { disabled: false }, moderator), 200)
  t.equal((await patch(moderator.id, { name: 'Mo' }, moderator)).json().name, 'Mo', 'the own record')
  for (const change of [
    { name: 'X' }, { email: 'x@example.com' }, { disabled: true, name: 'X' }, { role: 'user' }, { role: 'moderator' }, {},
  ]) t.equal(await statusOf(other.id, change, moderator), 403, JSON.stringify(change))
  t.equal(await statusOf(moderator.id, { disabled: true }, moderator), 200, 'the action has no owner')
  await patch(moderator.id, { disabled: false }, admin)
  Object.assign(moderator, await login(moderator))
  const { headers } = moderator
  for (const [method, path, status] of [
    ['GET', '/api/users', 200],
    ['GET', '/api/users?disabled=true', 403],
    ['DELETE', `/api/users/${other.id}`, 403],
    ['GET', `/api/users/${other.id}/export`, 403],
    ['GET', `/api/users/${other.id}/sessions`, 403],
    ['DELETE', `/api/users/${other.id}/sessions`, 403],
    ['GET', `/api/audit?user=${other.id}`, 403],
    ['GET', '/api/audit', 200],
    ['GET', '/api/admin/overview', 403],
    ['GET', '/api/admin/settings', 403],
    ['POST', `/api/users/${other.id}/invitation`, 403],
  ] as const) t.equal((await inject(method, path, { headers })).statusCode, status, `${method} ${path}`)
  const created = await inject('POST', '/api/users', { headers, payload: { name: 'A', email: 'a@example.com' } })
  t.equal(created.statusCode, 403)
  const replaced = await inject('PUT', `/api/users/${other.id}`, { headers, payload: { name: 'A', email: 'a@example.com' } })
  t.equal(replaced.statusCode, 403)
  t.equal((await patch(other.id, { disabled: true }, user)).statusCode, 403, 'a user has no role of the host')
})

t.test('20.1 a moderator deletes posts of others by GraphQL and changes none; roles are an enum there', async (t) => {
  const ofUser = await createPost(usher, user)
  const change = 'mutation ($id: ID!) { updatePost(id: $id, input: { title: "x" }) { id } }'
  const send = (query: string, by: LoggedIn, id = ofUser) => post(usher, { query, variables: { id } }, by)
  t.match(await send(change, moderator), { errors: [{ extensions: { code: 'FORBIDDEN' } }] })
  t.match(await send(change, editor), { data: { updatePost: { id: ofUser } } })
  t.match(await send('mutation ($id: ID!) { deletePost(id: $id) }', editor), { errors: [{ extensions: { code: 'FORBIDDEN' } }] })
  t.equal((await send('mutation ($id: ID!) { deletePost(id: $id) }', moderator)).errors, undefined)
  t.match(await send('query ($id: ID!) { user(id: $id) { role } }', user, moderator.id), { data: { user: { role: 'moderator' } } })
  t.match(await send('query ($id: ID!) { user(id: $id) { role } }', user, editor.id), { data: { user: { role: 'content_editor' } } })
  for (const role of ['content-editor', 'content_editor']) {
    t.match(await send(`{ users(role: "${role}") { nodes { id role } } }`, user), {
      data: { users: { nodes: [{ id: editor.id, role: 'content_editor' }] } },
    })
  }
  const { data } = await send('{ __type(name: "Role") { enumValues { name } } }', user)
  t.same(data.__type.enumValues.map(({ name }: { name: string }) => name), [
    'admin', 'user', 'moderator', 'granter', 'content_editor', 'manager', 'warden',
  ])
})

t.test('20.1 a role reads what it lists, beside who reads it by one of the audiences', async (t) => {
  const emailFor = async ({ headers }: LoggedIn) =>
    (await inject('GET', `/api/users/${user.id}`, { headers })).json().email as string | undefined
  t.same(await Promise.all([emailFor(user), emailFor(moderator), emailFor(editor), emailFor(admin)]), [
    user.email, undefined, user.email, user.email,
  ])
  const uploadsFor = async ({ headers }: LoggedIn) =>
    (await inject('GET', `/api/uploads?user=${user.id}`, { headers })).statusCode
  t.same(await Promise.all([uploadsFor(user), uploadsFor(moderator), uploadsFor(editor)]), [200, 403, 200])
})

t.test('20.1 a rule of the option policy decides instead, and the rule of an action of the host beside the role', async (t) => {
  const strict = await createUsher(t, {
    ...usher.options,
    policy: { ...policy, 'posts:delete': () => false, 'users:disable': (actor, { ownerId }) => actor.id === ownerId },
  })
  const by = (one: LoggedIn) => strict.login(one)
  const ofUser = await createPost(strict, await by(user))
  const deletion = { query: 'mutation ($id: ID!) { deletePost(id: $id) }', variables: { id: ofUser } }
  const session = await by(moderator)
  const { headers } = session
  t.match(await post(strict, deletion, session), { errors: [{ extensions: { code: 'FORBIDDEN' } }] })
  const disabling = await strict.inject('PATCH', `/api/users/${user.id}`, { headers, payload: { disabled: true } })
  t.equal(disabling.statusCode, 403)
})

t.test('20.1 granting a role takes users:grant-role and every action of the role', async (t) => {
  const other = await createUser()
  t.equal(await statusOf(other.id, { role: 'granter' }, granter), 200)
  t.equal(await roleOf(other.id), 'granter')
  for (const role of ['admin', 'moderator', 'content-editor', 'manager', 'unknown']) {
    t.equal(await statusOf(user.id, { role }, granter), role === 'unknown' ? 400 : 403, role)
    const named = await inject('POST', '/api/users', {
      headers: granter.headers, payload: { name: 'A', email: 'new@example.com', role },
    })
    t.equal(named.statusCode, 403, `a new user, ${role}`)
  }
  t.equal(await roleOf(user.id), 'user')
  t.equal(await statusOf(other.id, { role: 'user' }, granter), 200)
  t.equal(await statusOf(other.id, { role: 'granter', name: 'X' }, granter), 403, 'with another member')
  t.equal(await statusOf(granter.id, { role: 'admin' }, granter), 403, 'to oneself')
  for (const role of ['moderator', 'content-editor', 'admin', 'manager']) t.equal(await statusOf(other.id, { role }, admin), 200, role)
})

t.test('20.1 a role of the host has no power over users who may do more', async (t) => {
  const second = await createUser({ role: 'admin' })
  const service = await inject('POST', '/api/users', {
    headers: admin.headers, payload: { name: 'Robot', email: 'robot@example.com', kind: 'service', role: 'admin' },
  })
  t.equal(await statusOf(second.id, { disabled: true }, moderator), 403)
  t.equal(await statusOf(second.id, { role: 'user' }, granter), 403)
  t.equal(await statusOf(second.id, { email: 'mine@example.com' }, manager), 403)
  t.equal((await inject('DELETE', `/api/users/${second.id}`, { headers: manager.headers })).statusCode, 403)
  const created = (id: string) =>
    inject('POST', `/api/users/${id}/keys`, { headers: manager.headers, payload: { name: 'Mine' } })
  t.equal((await created(service.json().id)).statusCode, 403)
  t.equal(await statusOf(moderator.id, { disabled: true }, granter), 403, 'a moderator may open the console')
  await patch(service.json().id, { role: 'user' }, admin)
  t.equal((await created(service.json().id)).statusCode, 201)
  const other = await createUser()
  t.equal(await statusOf(other.id, { name: 'Renamed' }, manager), 200)
  t.equal((await inject('DELETE', `/api/users/${other.id}`, { headers: manager.headers })).statusCode, 204)
})

t.test('20.1 a role ends no sessions and removes no ways to sign in of users who may do more', async (t) => {
  const [second, other] = [await createUser({ role: 'admin' }), await createUser()]
  const sessionOf = async ({ id }: LoggedIn) =>
    (await inject('GET', `/api/users/${id}/sessions`, { headers: admin.headers })).json()[0].id as string
  const keyOf = async ({ headers }: LoggedIn) =>
    (await inject('POST', '/api/auth/keys', { headers, payload: { name: 'K' } })).json().id as string
  const passkeyOf = async ({ id }: LoggedIn) => {
    const [row] = await sql`insert into passkeys (id, user_id, credential_id, public_key, counter, transports, name, backed_up)
      values (gen_random_uuid(), ${id}, ${Buffer.from(id)}, '', 0, '{}', 'P', false) returning id`
    return row!.id as string
  }
  const identityOf = async ({ id }: LoggedIn) => {
    const [row] = await sql`insert into identities (id, user_id, provider, issuer, subject)
      values (gen_random_uuid(), ${id}, 'corp', 'https://corp.example.com', ${id}) returning id`
    return row!.id as string
  }
  const statuses = async (one: LoggedIn) => {
    const all: number[] = []
    for (const pathOf of [
      async () => `keys/${await keyOf(one)}`, async () => `identities/${await identityOf(one)}`,
      async () => `passkeys/${await passkeyOf(one)}`, async () => `sessions/${await sessionOf(one)}`, async () => 'sessions',
    ]) {
      const path = `/api/users/${one.id}/${await pathOf()}`
      all.push((await inject('DELETE', path, { headers: warden.headers })).statusCode)
      // Some of them end the sessions.
      Object.assign(one, await login(one))
    }
    return [...all, (await reset(one.id)).statusCode]
  }
  t.same(await statuses(second), [403, 403, 403, 403, 403, 403])
  t.same(await statuses(other), [204, 204, 204, 204, 204, 204])
  const named = await inject('DELETE', `/api/auth/sessions/${await sessionOf(second)}`, { headers: warden.headers })
  t.match([named.statusCode, named.json()], [404, { code: 'SESSION_NOT_FOUND' }])
  t.ok(await works(second))
})

t.test('20.1 a role has no power over a user who gets more rights at that moment', async (t) => {
  const attempts: Record<string, [by: LoggedIn, (id: string) => Promise<{ statusCode: number }>]> = {
    change: [manager, (id) => patch(id, { name: 'Late' }, manager)],
    disabling: [moderator, (id) => patch(id, { disabled: true }, moderator)],
    demotion: [granter, (id) => patch(id, { role: 'user' }, granter)],
    deletion: [manager, (id) => inject('DELETE', `/api/users/${id}`, { headers: manager.headers })],
    'end of sessions': [warden, (id) => inject('DELETE', `/api/users/${id}/sessions`, { headers: warden.headers })],
    reset: [warden, reset],
  }
  for (const [what, [by, attempt]] of Object.entries(attempts)) {
    const other = await createUser({ name: 'Other' })
    const { statusCode } = await endDuring(by, (trx) => trx`update users set role = 'admin' where id = ${other.id}`,
      () => attempt(other.id), async () => {})
    t.equal(statusCode, 403, what)
    const rows = await sql`select name, role, disabled from users where id = ${other.id}`
    t.same(rows, [{ name: 'Other', role: 'admin', disabled: false }], what)
  }
})

t.test('20.1 a role has an action of the host by app.usher.allow, whoever owns what it is about', async (t) => {
  const host = Fastify({ pluginTimeout: 0 })
  t.teardown(() => host.close())
  await host.register(usherPlugin, usher.options)
  const ownerOf = ({ params }: FastifyRequest) => ({ ownerId: (params as { owner: string }).owner })
  host.delete('/bookmarks/:owner', {
    onRequest: host.usher.allow('bookmarks:delete' as never, ownerOf),
  }, async ({ actor }) => actor!.role)
  const statusFor = async ({ headers }: LoggedIn, owner: LoggedIn) =>
    (await host.inject({ method: 'DELETE', url: `/bookmarks/${owner.id}`, headers })).statusCode
  t.same(await Promise.all([
    statusFor(editor, user), statusFor(user, user), statusFor(moderator, user), statusFor(user, editor),
  ]), [200, 200, 403, 403])
})

t.test('20.1 another role ends sessions, API keys and links, and more rights than before are told by mail', async (t) => {
  const keyOf = async ({ headers }: LoggedIn) =>
    (await inject('POST', '/api/auth/keys', { headers, payload: { name: 'K' } })).json().key as string
  const acts = async (key: string) =>
    (await inject('GET', '/api/protected', { headers: { authorization: `Bearer ${key}` } })).statusCode === 200
  const other = await createUser()
  for (const [role, mail] of [
    ['moderator', 'Your account has another role now'], ['granter', 'Your account has another role now'], ['user', undefined],
  ] as const) {
    const [session, key] = [await login(other), await keyOf(await login(other))]
    t.ok(await acts(key))
    t.equal(await statusOf(other.id, { role }, admin), 200)
    t.notOk(await works(session), `${role}: the session`)
    t.notOk(await acts(key), `${role}: the key`)
    if (mail !== undefined) {
      const isSent = () => inbox.mails.some(({ to, subject, text }) =>
        to === other.email && subject === mail && text.includes(`got the role ${role} just now`))
      await until(`the mail about ${role}`, isSent)
    }
  }
  const session = await login(moderator)
  t.equal(await statusOf(moderator.id, { role: 'moderator' }, admin), 200, 'the same role')
  t.ok(await works(session))
  const own = await inject('GET', `/api/users/${moderator.id}`, { headers: moderator.headers })
  const { name, role } = own.json()
  const put = await inject('PUT', `/api/users/${moderator.id}`, {
    headers: moderator.headers, payload: { name, email: moderator.email, role },
  })
  t.match([put.statusCode, put.json().role], [200, 'moderator'], 'the own record can be sent back')
  t.ok(await works(session))
})

t.test('20.1 a node rejects the token of a role that it does not know, and goes on', async (t) => {
  const plain = await createUsher(t, { ...usher.options, roles: {}, onRoleInUse: () => {} })
  const { statusCode } = await plain.inject('GET', '/api/protected', { headers: moderator.headers })
  t.equal(statusCode, 401)
  t.equal((await plain.inject('GET', '/api/protected', { headers: user.headers })).statusCode, 200)
  t.match(await post(plain, { query: `{ user(id: "${moderator.id}") { name } }` }), { data: { user: { name: 'Mo' } } })
})

t.test('20.1 the console shows a moderator what the role permits, and does nothing else', async (t) => {
  const { open, read, send, fill } = withConsole(usher)
  const cookie = await open(moderator)
  const start = await read('/console', cookie)
  t.match([start.statusCode, start.headers.location], [303, '/console/users'])
  const users = (await read('/console/users', cookie)).body
  for (const link of ['/console/posts']) t.match(users, `href="${link}"`)
  for (const absent of [
    'href="/console/settings"', 'href="/console/log"', 'href="/console/keys"', 'href="/console/deliveries"',
    'href="/console/uploads"', 'value="end-sessions"', 'value="export"', '/console/users/new', 'name="status"',
  ]) t.notMatch(users, absent)
  t.match(users, 'value="disable"')
  t.match(users, 'value="content-editor"', 'the filter knows the roles')
  t.match((await read('/console/users?role=content-editor', cookie)).body, editor.id)
  for (const [path, status] of [
    ['/console/settings', 403], ['/console/deliveries', 403], ['/console/keys', 403], ['/console/uploads', 403],
    ['/console/users/new', 403], [`/console/users/${user.id}/sessions`, 403], [`/console/users/${user.id}/sign-in`, 403],
    [`/console/users/${user.id}/keys`, 403],
  ] as const) t.equal((await read(path, cookie)).statusCode, status, path)
  t.match((await read('/console/settings', cookie)).body,
    /Your role is <strong>moderator<\/strong>, .*<code>service:read<\/code>\. Roles that have it: admin\./)
  const page = (await read(`/console/users/${user.id}`, cookie)).body
  t.notMatch(page, `action="/console/users/${user.id}"`)
  t.notMatch(page, `/console/users/${user.id}/delete`)
  const other = await createUser()
  const base = `/console/users/${other.id}`
  const disabled = await fill(`${base}/disable`, `${base}/disable`, {}, cookie)
  t.equal(disabled.headers.location, `${base}?done=disabled`)
  t.match((await read(base, cookie)).body, `action="${base}/enable"`)
  const enabled = await send('/console/users/bulk', {
    action: 'enable', confirmed: 'yes', [`pick.${other.id}`]: `${(await inject('GET', `/api/users/${other.id}`, { headers: moderator.headers })).headers.etag}`,
  }, { cookie })
  t.match(enabled.body, '1')
  t.equal((await inject('GET', `/api/users/${other.id}`, { headers: admin.headers })).json().disabled, false)
  for (const [action, fields] of [
    [`${base}/delete`, { confirmed: 'yes' }], [`${base}/sessions/end`, {}], [base, { name: 'X', 'was.name': 'Y', version: '""' }],
    [`${base}/keys`, { keyName: 'K' }], [`${base}/second-factor/reset`, { confirmed: 'yes' }],
  ] as const) t.equal((await send(action, fields, { cookie })).statusCode, 403, action)
  const ended = await send('/console/users/bulk', {
    action: 'end-sessions', confirmed: 'yes', [`pick.${other.id}`]: '"x"',
  }, { cookie })
  t.match(ended.body, 'You may not do this')
  t.ok(await works(await login(other)))
  const foreign = await open(admin)
  t.match((await read(`/console/users/${user.id}`, foreign)).body, '<option value="content-editor">content-editor</option>')
  t.match((await read(`/console/users/${moderator.id}`, foreign)).body, '>moderator</span>')
  t.equal((await withConsole(usher).exchange(granter.cookie)).statusCode, 403, 'a role without console:open')
})

t.test('20.1 lists by role, with filters and any order', async (t) => {
  const ids = Array.from({ length: 5 }, (_, index) => `00000000-0000-7000-8000-00000000000${index}`)
  await sql`insert into users ${sql(ids.map((id, index) => ({
    id, name: `M ${index}`, email: `m${index}@example.com`, role: 'manager', disabled: index % 2 === 0,
  })))}`
  const list = async (query: string) => {
    const response = await inject('GET', `/api/users?${query}`, { headers: admin.headers })
    return (response.json() as { id: string }[]).map(({ id }) => id)
  }
  t.same(await list('role=manager&disabled=true&sort=createdAt'), [ids[0], ids[2], ids[4]])
  t.same(await list('role=manager&disabled=true&limit=2'), [ids[4], ids[2]])
  t.same(await list('role=manager&q=m%203'), [ids[3]])
  t.same(await list('role=manager&sort=name&limit=3'), [ids[0], ids[1], ids[2]])
  t.ok((await list('disabled=true')).includes(ids[0]!), 'without a role')
  t.same(await list('role=nobody&disabled=true'), [])
})

t.test('20.1 a role that users still have cannot be removed from the options', async (t) => {
  const few = await createUsher(t, { roles: { moderator: [], helper: ['posts:delete'] } })
  for (let count = 0; count < 2; count++) await few.createUser({ role: 'moderator' })
  await few.createUser({ role: 'helper' })
  await few.app.close()
  await t.rejects(createUsher(t, { ...few.options, roles: { helper: [] } }), {
    message: 'usher: 2 users have the role moderator, which the option roles (setting ROLES) does not have: ' +
      'add it again, or move them with "npm start -- users set-role --from moderator --to user"',
  })
  await t.rejects(createUsher(t, { ...few.options, roles: undefined }), {
    message: /^usher: 1 user has the role helper and 2 users have the role moderator, which .*--from helper --to user" and ".*--from moderator/,
  })
  const found: [string, number][] = []
  await createUsher(t, {
    ...few.options, roles: undefined, onRoleInUse: (role, users) => { found.push([role, users]) },
  })
  t.same(found, [['helper', 1], ['moderator', 2]])
})

t.test('20.1 a wrong option stops the start in a sentence with the role and the action', async (t) => {
  for (const [wrong, message] of [
    [{ moderator: ['posts:delte'] }, /^usher: roles gives moderator the action "posts:delte", which the policy does not have$/],
    [{ moderator: ['bookmarks:delete'] }, /moderator the action "bookmarks:delete"/],
    [{ moderator: 'posts:delete' }, /^usher: roles must have a list of actions for moderator$/],
    [{ moderator: [1] }, /moderator the action 1/],
    ...['admin', 'user', 'Moderator', '1st', 'content_editor', '', 'null', 'a'.repeat(41)].map((name) =>
      [{ [name]: [] }, new RegExp(`^usher: roles cannot have a role "${name}": `)] as const),
    [[], /^usher: roles must be an object/],
    [Object.fromEntries(Array.from({ length: 21 }, (_, index) => [`r${index}`, []])), /roles may have at most 20 roles$/],
    [{ ['a'.repeat(40)]: [], b: ['users:read', 'console:open'] }, undefined],
  ] as const) {
    const opening = createUsher(t, { roles: wrong as UsherOptions['roles'] })
    await (message ? t.rejects(opening, { message }) : t.resolves(opening))
  }
})

t.test('20.1 the description of the API has the roles', async (t) => {
  const { components: { schemas } } = (await inject('GET', '/docs/json')).json()
  for (const name of ['User', 'CreateUser', 'ReplaceUser', 'PatchUser']) {
    t.same(schemas[name].properties.role.enum, [
      'admin', 'user', 'moderator', 'granter', 'content-editor', 'manager', 'warden',
    ], name)
  }
})

t.test('16.4 secondFactor admins asks for one from every role but user', async (t) => {
  const strict = await createUsher(t, { ...usher.options, secondFactor: 'admins' })
  const codeOf = async (one: LoggedIn) => {
    const { headers } = await strict.login(one)
    return (await strict.inject('POST', '/api/uploads', { headers })).json().code as string
  }
  t.equal(await codeOf(moderator), 'SECOND_FACTOR_MISSING')
  t.not(await codeOf(user), 'SECOND_FACTOR_MISSING')
})
