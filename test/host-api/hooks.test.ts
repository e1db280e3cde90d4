import { setImmediate as turn } from 'node:timers/promises'
import Fastify from 'fastify'
import t, { type Test } from 'tap'
import usherPlugin, { type HookContext, type Hooks, type TransactionContext } from '../../app.ts'
import { createUsher, type TestUsher } from '../helpers/app.ts'
import { createPost, post } from '../helpers/graphql.ts'
import { createMailer } from '../helpers/mail.ts'
import { nightly } from '../helpers/nightly.ts'
import { openSql } from '../helpers/sql.ts'
import { until } from '../helpers/until.ts'
import { upload } from '../helpers/uploads.ts'

const reject = (message = 'not here', statusCode = 422) => {
  throw Object.assign(new Error(message), { statusCode, code: 'NOT_HERE' })
}
const ada = { name: 'Ada', email: 'ada@example.com', password: 'violet engine notes' }

// Mounts Usher with hooks that note their calls. The hooks of the test are called only after the first admin has been
// created.
async function mount (t: Test, hooks: Hooks, options: object = {}) {
  const seen: { name: string, input: never, context: TransactionContext }[] = []
  let isReady = false
  const noting =
    Object.fromEntries(Object.entries(hooks).map(([name, hook]) => [name, (input: never, context: never) => {
      if (!isReady) return undefined
      seen.push({ name, input: structuredClone(input), context })
      return (hook as (...parameters: never[]) => unknown)(input, context)
    }]))
  const inbox = createMailer()
  const usher = await createUsher(t, { hooks: noting as Hooks, mailer: inbox.mailer, signUp: true, ...options })
  isReady = true
  return { usher, seen, inbox, sql: openSql(t, usher) }
}

async function hostTable (t: Test, usher: TestUsher): Promise<string> {
  const sql = openSql(t, usher)
  await sql`create table host_rows (id uuid, what text)`
  return `${usher.options.schema}.host_rows`
}

t.test('12.4 hooks run for users who are created by REST, the API, a sign-up and at the first start', async (t) => {
  const names = (seen: { name: string }[]) => seen.map(({ name }) => name)
  const { usher, seen, inbox } = await mount(t, {
    beforeUserCreate: (user) => ({ ...user, name: `${user.name}!` }),
    onUserCreate: async (user, { sql }) => { await sql`select ${user.id}::uuid` },
  })
  const send = (payload: object) => usher.inject('POST', '/api/users', { headers: usher.admin.headers, payload })
  t.equal((await send(ada)).json().name, 'Ada!')
  t.same(names(seen), ['beforeUserCreate', 'onUserCreate'])
  t.match(
    seen[0], { input: ada, context: { via: 'rest', actor: { id: usher.admin.id, role: 'admin' }, signal: AbortSignal } }
  )
  t.match(seen[1], { input: { name: 'Ada!', email: ada.email, role: 'user', createdAt: Date } })
  await usher.login(ada)

  seen.length = 0
  t.equal((await usher.app.usher.users.create({ name: 'Bea', email: 'bea@example.com' })).name, 'Bea!')
  t.match(seen, [{ context: { via: 'api', actor: null } }, { name: 'onUserCreate' }])

  seen.length = 0
  const person = { name: 'Eve', email: 'eve@example.com', password: 'quiet lantern river', role: 'admin' }
  t.equal((await usher.inject('POST', '/api/auth/sign-up', { payload: person })).statusCode, 202)
  t.match(seen, [{ name: 'beforeUserCreate', context: { via: 'sign-up', actor: null } }])
  t.notMatch(seen[0]!.input, { role: 'admin' }, 'what clients may not set is not seen')
  const token = await inbox.token(person.email)
  const confirm = (payload: object) =>
    usher.inject('POST', '/api/auth/sign-up/confirm', { payload: { token, ...payload } })
  t.equal((await confirm({ password: person.email })).statusCode, 400)
  t.equal(seen.length, 1, 'no hook runs for a password that is rejected anyway')
  const personal = await confirm({ name: 'quiet lantern', password: 'quiet lantern!' })
  const errors = ['password must not be the name or the email address']
  t.same(personal.json(), { errors }, 'nor may a hook make it the name')
  seen.splice(1)
  const confirmed = await confirm({ password: 'quiet river lantern' })
  t.match(confirmed.json(), { name: 'Eve!!', role: 'user', emailVerified: true })
  t.notMatch(JSON.stringify(seen.slice(1)), /river|lantern|hash/i, 'no hook gets the password of a confirmation')
  t.match(
    seen.slice(1),
    [{ input: { name: 'Eve!', role: 'user' }, context: { via: 'sign-up-confirmation' } }, { name: 'onUserCreate' }]
  )

  seen.length = 0
  for (const payload of [{ ...ada, name: '' }, { ...ada, email: 'x@example.com', password: 'x@example.com' }]) {
    t.equal((await send(payload)).statusCode, 400)
  }
  const user = await usher.app.usher.users.find('bea@example.com')
  t.equal(
    (await usher.inject('POST', '/api/users', { headers: { authorization: 'Bearer x' }, payload: ada })).statusCode, 401
  )
  t.same([seen, user?.name], [[], 'Bea!'], 'no hook runs for what is rejected anyway')
})

nightly('12.4 hooks run when the first admin is created', async (t) => {
  const calls: unknown[] = []
  const options = { ...await createUsher(t).then(({ options }) => options), schema: 'usher_first_admin_hooks' }
  const app = Fastify({ pluginTimeout: 0 })
  t.teardown(() => app.close())
  const note = (name: string) => (input: object, { via, actor }: HookContext) => {
    calls.push([name, via, actor, (input as { email: string }).email])
  }
  const sql = openSql(t, { options: { ...options, schema: 'public' } })
  await sql`drop schema if exists usher_first_admin_hooks cascade`
  await app.register(usherPlugin, {
    ...options, hooks: { beforeUserCreate: note('before'), onUserCreate: note('on'), beforeUserUpdate: note('update') },
  })
  await app.ready()
  t.same(
    calls, [['before', 'first-admin', null, 'admin@example.com'], ['on', 'first-admin', null, 'admin@example.com']]
  )

  await sql`update usher_first_admin_hooks.users set role = 'user'`
  const second = Fastify({ pluginTimeout: 0 })
  t.teardown(() => second.close())
  await second.register(usherPlugin, { ...options, hooks: { beforeUserUpdate: () => reject() } })
  await t.rejects(async () => second.ready(), {
    message: 'usher: a hook rejects admin@example.com as the first admin: not here. Choose another address (option admin, setting ADMIN_EMAIL), or permit it in the hook',
  })
  t.match(await sql`select role from usher_first_admin_hooks.users`, [{ role: 'user' }])
  await sql`drop schema usher_first_admin_hooks cascade`
})

t.test('12.4 hooks run for changes and deletions of users, by every way', async (t) => {
  const { usher, seen } = await mount(t, {
    beforeUserUpdate: (changes, { user }) =>
      changes.name === undefined ? changes : { ...changes, name: `${changes.name} (was ${user.name})` },
    onUserUpdate: () => {},
    beforeUserDelete: ({ name }) => { if (name.startsWith('Kept')) reject() },
    onUserDelete: async ({ id }, { sql }) => { await sql`delete from ${'x'}`.catch(() => {}); void id },
  })
  const user = await usher.createUser({ name: 'Ada' })
  const path = `/api/users/${user.id}`
  const patched = await usher.inject('PATCH', path, { headers: user.headers, payload: { name: 'Bea' } })
  t.equal(patched.json().name, 'Bea (was Ada)')
  t.match(seen, [{
    name: 'beforeUserUpdate',
    input: { name: 'Bea' },
    context: { actor: { id: user.id }, user: { id: user.id, name: 'Ada' } },
  }, { name: 'onUserUpdate', input: { name: 'Bea (was Ada)' } }])
  seen.length = 0
  t.equal((await usher.inject(
    'PUT', path, { headers: usher.admin.headers, payload: { name: 'Cid', email: user.email } }
  )).json().name, 'Cid (was Bea (was Ada))')
  t.match(seen[0]!.input, { name: 'Cid', email: user.email })
  seen.length = 0
  t.match(await usher.app.usher.users.update(user.id, { disabled: true }), { disabled: true })
  t.match(seen, [{ input: { disabled: true } }, { name: 'onUserUpdate', input: { disabled: true } }])
  t.equal((await usher.inject('GET', '/api/protected', { headers: user.headers })).statusCode, 401)
  seen.length = 0
  t.equal((await usher.inject('PATCH', path, { headers: usher.admin.headers, payload: {} })).statusCode, 200)
  await t.rejects(usher.app.usher.users.update('x', { name: 'x' }), { statusCode: 404, code: 'USER_NOT_FOUND' })
  t.same(seen, [], 'nothing to change, nobody to change')

  await usher.app.usher.users.update(user.id, { name: 'Kept' })
  t.match((await usher.inject('DELETE', path, { headers: usher.admin.headers })), {
    statusCode: 422, body: '{"error":"not here","code":"NOT_HERE"}',
  })
  const other = await usher.app.usher.users.create({ name: 'Other', email: 'o@example.com' })
  const failed = await usher.inject('DELETE', `/api/users/${other.id}`, { headers: usher.admin.headers })
  t.equal(failed.statusCode, 500, 'a statement that failed makes the transaction fail')
  t.equal((await usher.app.usher.users.get(other.id)).name, 'Other')
})

nightly('12.4 links of mails run the hooks of changes', async (t) => {
  const { audiences } = await import('../../app.ts')
  const { usher, seen, inbox } = await mount(t, {
    beforeUserUpdate: ({ email }, { via }) => { if (email === 'no@example.com' && via === 'mail-link') reject() },
    onUserUpdate: () => {},
  }, { policy: { 'users:read-email': audiences.owners } })
  const user = await usher.createUser()
  for (const [email, status] of [['no@example.com', 422], ['yes@example.com', 204]] as const) {
    seen.length = 0
    await usher.inject('PATCH', `/api/users/${user.id}`, { headers: user.headers, payload: { email } })
    const token = await inbox.token(email)
    seen.length = 0
    t.equal(
      (await usher.inject(
        'POST', '/api/auth/email-verification/confirm', { headers: user.headers, payload: { token } }
      )).statusCode, status
    )
    t.match(seen[0], { input: { email }, context: { via: 'mail-link' } })
  }
  t.match(seen[1], { name: 'onUserUpdate', input: { email: 'yes@example.com', emailVerified: true } })
  seen.length = 0
  const [{ text }] = await inbox.of(user.email, 1) as unknown as [{ text: string }]
  await usher.inject('POST', '/api/auth/undo', { payload: { token: /#token=([\w-]{43})/.exec(text)![1] } })
  t.match(seen, [{ name: 'onUserUpdate', input: { email: user.email } }])
})

t.test('12.4 hooks run before logins, posts and uploads', async (t) => {
  const { usher, seen, sql } = await mount(t, {
    beforeLogin: ({ name }) => { if (name === 'Barred') reject('barred', 403) },
    beforePostCreate: (post) => post.title === 'spam' ? reject() : { ...post, title: post.title.toUpperCase() },
    beforeUploadKeep: (file) =>
      file.filename === 'bad.txt' ? reject() : { ...file, filename: '../safe.txt', description: 'Checked' },
  })
  const barred = await usher.app.usher.users.create({ ...ada, name: 'Barred' })
  t.match(await usher.inject('POST', '/api/auth/login', { payload: ada }), {
    statusCode: 403, body: '{"error":"barred","code":"NOT_HERE"}',
  })
  t.match(seen, [{ input: { id: barred.id, email: ada.email }, context: { actor: null } }])
  t.notOk('passwordHash' in seen[0]!.input)
  await t.rejects(usher.app.usher.sessions.start(barred.id), { statusCode: 403, code: 'NOT_HERE' })
  await usher.inject('POST', '/api/auth/login', { payload: { ...ada, password: 'wrong password' } })
  t.equal(seen.length, 2, 'not with a wrong password')
  t.match(await sql`select 1 from sessions where user_id = ${barred.id}`, { length: 0 })

  const spam = await post(
    usher, { query: 'mutation { createPost(input: { title: "spam", content: "" }) { id } }' }, usher.admin
  )
  t.match(spam.errors, [{ message: 'not here', extensions: { code: 'NOT_HERE' } }])
  const id = await createPost(usher, usher.admin, 'news')
  t.match(await sql`select title from posts where id = ${id}`, [{ title: 'NEWS' }])

  const kept = await upload(usher, 'Text', 'good.txt')
  t.match(kept, { filename: 'safe.txt', description: 'Checked', mediaType: 'text/plain' })
  t.match(seen.at(-1)!.input, {
    filename: 'good.txt', size: 4, mediaType: 'text/plain', userId: usher.admin.id, sha256: kept.sha256,
  })
  await t.rejects(upload(usher, 'Text', 'bad.txt'), /422/)
  t.match(await sql`select count(*)::int from uploads`, [{ count: 1 }])
})

t.test('12.4 hooks inside the transaction write with it, and their failure rolls it back', async (t) => {
  let table = ''
  let fails: unknown
  const write = async ({ id }: { id: string }, { sql }: TransactionContext) => {
    const rows =
      await sql<{ found: string }>`insert into host_rows values (${id}, ${`it's ${table}`}) returning what as found`
    t.equal(rows[0]!.found, `it's ${table}`)
    if (fails !== undefined) throw fails
  }
  const setPath = (context: TransactionContext) =>
    context.sql`select set_config('search_path', ${table.split('.')[0]!}, true)`
  const hook = async (value: { id: string }, context: TransactionContext) => {
    await setPath(context)
    await write(value, context)
  }
  const { usher, sql } = await mount(
    t, { onUserCreate: hook, onUserUpdate: hook, onUserDelete: hook, onPostCreate: hook }
  )
  table = await hostTable(t, usher)
  const count = async () => (await sql`select * from host_rows`).length
  const operations = {
    create: () => usher.inject('POST', '/api/users', { headers: usher.admin.headers, payload: ada }),
    update: async () => usher.inject(
      'PATCH',
      `/api/users/${(await usher.app.usher.users.find(ada.email) ?? usher.admin).id}`,
      { headers: usher.admin.headers, payload: { name: 'Ada L' } }
    ),
    delete: async () => usher.inject(
      'DELETE',
      `/api/users/${(await usher.app.usher.users.find(ada.email) ?? usher.admin).id}`,
      { headers: usher.admin.headers }
    ),
  }
  let expected = 0
  for (const [name, operate] of Object.entries(operations)) {
    for (const [thrown, status] of [
      [Object.assign(new Error('no'), { statusCode: 409, code: 'NO' }), 409],
      [new Error('bug'), 500],
      ['text', 500],
      [null, 500],
    ] as const) {
      fails = thrown
      t.equal((await operate()).statusCode, status, `${name}: ${thrown}`)
    }
    fails = undefined
    t.match((await operate()).statusCode, /20[014]/, name)
    t.equal(await count(), ++expected, name)
  }
  fails = Object.assign(new Error('no'), { statusCode: 409, code: 'NO' })
  t.match((await post(
    usher, { query: 'mutation { createPost(input: { title: "a", content: "" }) { id } }' }, usher.admin
  )).errors, [{ message: 'no', extensions: { code: 'NO' } }])
  fails = undefined
  await createPost(usher, usher.admin, 'news')
  t.match(await sql`select posts.title from posts join host_rows using (id)`, [{ title: 'news' }])
})

nightly('12.4 a hook that hangs yields 503, aborts its signal, and leaks no connection', async (t) => {
  const signals: AbortSignal[] = []
  const hang = (_: unknown, { signal }: HookContext) => {
    signals.push(signal)
    return new Promise<undefined>(() => {})
  }
  const { usher, sql } = await mount(t, {
    beforeUserCreate: (user, context) => user.name === 'before' ? hang(user, context) : undefined,
    onUserCreate: async (user, context) => {
      if (user.name === 'on') await hang(user, context)
      if (user.name === 'sleep') await context.sql`select pg_sleep(600)`
    },
  }, { hookSeconds: 0.5, poolSize: 2 })
  for (const name of ['before', 'on', 'sleep', 'on', 'sleep']) {
    const response = await usher.inject(
      'POST', '/api/users', { headers: usher.admin.headers, payload: { ...ada, name } }
    )
    t.match(response, { statusCode: 503, headers: { 'retry-after': String } }, name)
    t.equal(response.json().code, 'HOOK_TIMEOUT')
  }
  t.ok(signals.every(({ aborted }) => aborted))
  t.equal((await usher.inject('POST', '/api/users', { headers: usher.admin.headers, payload: ada })).statusCode, 201)
  t.match(await sql`select name from users where email = ${ada.email}`, [{ name: 'Ada' }])
  await until('no transaction is open', async () =>
    (await sql`select 1 from pg_stat_activity where state like 'idle in transaction%' and query like ${`%${usher.options.schema}%`}`).length === 0)
})

nightly('12.4 a hook that returns garbage is an error of the host, and nothing is written', async (t) => {
  const returns: unknown[] = [
    null, 5, 'text', [], {}, { ...ada, role: 'root' }, { ...ada, email: 'x' }, { ...ada, name: '\0' },
    { ...ada, password: ada.email }, new Map(),
  ]
  let next: unknown
  const { usher, sql } = await mount(
    t, { beforeUserCreate: () => next as never, beforeUserDelete: () => next as never }
  )
  const lines = (await sql`select 1 from users`).length
  for (next of returns) {
    const response = await usher.inject('POST', '/api/users', { headers: usher.admin.headers, payload: ada })
    t.match(
      response, { statusCode: 500, body: '{"error":"The server failed","code":"INTERNAL_ERROR"}' }, JSON.stringify(next)
    )
  }
  next = ada
  t.equal(
    (await usher.inject('DELETE', `/api/users/${usher.admin.id}`, { headers: usher.admin.headers })).statusCode,
    500,
    'a hook that can change nothing'
  )
  t.equal((await sql`select 1 from users`).length, lines)
  let thrown: unknown
  const { usher: failing } = await mount(t, { beforeUserCreate: () => { throw thrown } })
  const fail = (value: unknown) => {
    thrown = value
    return failing.inject('POST', '/api/users', { headers: failing.admin.headers, payload: ada })
  }
  for (const [value, status] of [
    [Object.assign(new Error('x'), { statusCode: 302 }), 500],
    [{ statusCode: 418, message: 'tea' }, 418],
    [undefined, 500],
    [Symbol('x'), 500],
  ] as const) {
    t.equal((await fail(value)).statusCode, status)
  }
  const odd = Object.assign(new Error('x'), { statusCode: 400, errors: ['name is odd'] })
  t.same((await fail(odd)).json(), { errors: ['name is odd'] })
})

nightly('12.4 nothing is written if the session of the actor ends, or the client leaves, while a hook runs', async (t) => {
  let release: (() => void) | undefined
  let waiting = 0
  // The first call waits until it is released. Those after it do not wait.
  const wait = () => {
    if (release) return
    waiting++
    return new Promise<void>((resolve) => { release = resolve })
  }
  for (const name of ['beforeUserCreate', 'onUserCreate'] as const) {
    const { usher, sql } = await mount(t, { [name]: async () => { await wait() } })
    const { app, login, admin } = usher
    const { headers } = await login(admin)
    const before = waiting
    release = undefined
    const creating = usher.inject('POST', '/api/users', { headers, payload: ada })
    await until('the hook waits', () => waiting > before)
    await usher.inject('POST', '/api/auth/logout', { headers })
    release!()
    t.match(await creating, { statusCode: 401, headers: { 'www-authenticate': 'Bearer error="invalid_token"' } }, name)
    t.equal((await sql`select 1 from users where email = ${ada.email}`).length, 0)

    if (name === 'onUserCreate') continue
    const url = await app.listen({ port: 0, host: '127.0.0.1' })
    const leaving = new AbortController()
    release = undefined
    const left = fetch(`${url}/api/users`, {
      method: 'POST',
      headers: { ...admin.headers, 'content-type': 'application/json' },
      body: JSON.stringify(ada),
      signal: leaving.signal,
    })
    await until('the hook waits', () => waiting > before + 1)
    const gone = new Promise<void>((resolve) => app.server.getConnections(() => resolve()))
    leaving.abort()
    await Promise.allSettled([left, gone])
    await until('the connection is closed', () =>
      new Promise((resolve) => app.server.getConnections((_, count) => resolve(count === 0))))
    release!()
    await turn()
    const next = { ...ada, email: 'next@example.com' }
    t.equal((await usher.app.usher.users.create(next)).email, next.email, 'a later write')
    t.equal((await sql`select 1 from users where email = ${ada.email}`).length, 0)
  }
})

t.test('12.4 a hook may modify its argument, and must not control or outlive the transaction', async (t) => {
  let late: TransactionContext['sql'] | undefined
  const { usher, sql } = await mount(t, {
    beforeUserUpdate: (changes, { user }) => {
      changes.name = 'modified'
      user.email = 'x'
      user.createdAt.setFullYear(1900)
    },
    onUserUpdate: (user, context) => {
      user.name = 'modified'
      late = context.sql
      void context.sql`select 1`
      if (user.email.startsWith('fail')) void context.sql`select * from no_such_table`
    },
    onUserCreate: async (_, context) => { await context.sql`commit` },
  })
  const created = await usher.inject('POST', '/api/users', { headers: usher.admin.headers, payload: ada })
  t.equal(created.statusCode, 500)
  t.equal((await sql`select 1 from users where email = ${ada.email}`).length, 0)
  t.equal((await usher.app.usher.users.update(usher.admin.id, { name: 'given' })).name, 'given')
  t.throws(() => late!`select 1`, /after the hook had ended/)
  const failed = await usher.inject(
    'PATCH', `/api/users/${usher.admin.id}`, { headers: usher.admin.headers, payload: { email: 'fail@example.com' } }
  )
  t.equal(failed.statusCode, 500, 'a statement that nobody awaits fails the hook as well')
  t.equal((await usher.app.usher.users.get(usher.admin.id)).email, usher.admin.email)
})

nightly('12.4 a statement of a hook that fails is a failure of the hook, whatever its error, and is not tried again', async (t) => {
  let statement: (context: TransactionContext) => Promise<unknown> = async () => {}
  let calls = 0
  const fail = async (_: object, context: TransactionContext) => {
    calls++
    await statement(context).catch(() => {})
  }
  const { usher, sql } = await mount(t, { onUserUpdate: fail, onUserDelete: fail, onPostCreate: fail })
  const host = `${usher.options.schema!.slice(0, 40)}_host`
  await sql.unsafe(`create schema ${host}; create table ${host}.users (email text); create unique index users_email on ${host}.users (email);
    insert into ${host}.users values ('taken'); create table ${host}.idempotency_keys (id int constraint idempotency_keys_pkey primary key);
    insert into ${host}.idempotency_keys values (1); create table ${host}.owned (user_id uuid references ${usher.options.schema!}.users (id))`)
  t.teardown(() => sql.unsafe(`drop schema ${host} cascade`))
  const user = await usher.createUser({ name: 'Before' })
  const inPath = (text: TemplateStringsArray) => async ({ sql }: TransactionContext) => {
    await sql`select set_config('search_path', ${host}, true)`
    await sql(text)
  }
  const failures = {
    'a division by zero': inPath`select 1 / 0`,
    'a text that is no boolean': inPath`select 'x'::boolean`,
    'an address that is taken in a table of the host': inPath`insert into users values ('taken')`,
    'a key that is taken in a table of the host': inPath`insert into idempotency_keys values (1)`,
    'a row of a user who does not exist': inPath`insert into owned values ('00000000-0000-7000-8000-000000000000')`,
    'an ended session': inPath`do $$ begin raise 'no' using errcode = 'UE401'; end $$`,
    'a lost connection': inPath`do $$ begin raise 'no' using errcode = '57P01'; end $$`,
  }
  for (const [what, failing] of Object.entries(failures)) {
    statement = failing
    for (const [method, payload] of [
      ['PATCH', { name: 'After' }], ['PATCH', { email: 'after@example.com' }], ['DELETE', undefined],
    ] as const) {
      calls = 0
      const response = await usher.inject(
        method, `/api/users/${user.id}`, { headers: usher.admin.headers, ...payload && { payload } }
      )
      t.match([response.statusCode, response.json().code, calls], [500, 'INTERNAL_ERROR', 1], `${method}: ${what}`)
    }
    const { errors } = await post(
      usher, { query: 'mutation { createPost(input: { title: "a", content: "" }) { id } }' }, usher.admin
    )
    t.match(errors, [{ extensions: { code: 'INTERNAL_ERROR' } }], `createPost: ${what}`)
  }
  t.match(await usher.app.usher.users.get(user.id), { name: 'Before', email: user.email })
})

nightly('12.4 an error of a trigger of the host is not taken for one of Usher, and is not tried again', async (t) => {
  const usher = await createUsher(t)
  const sql = openSql(t, usher)
  const host = `${usher.options.schema!.slice(0, 40)}_host`
  await sql.unsafe(
    `create schema ${host}; create table ${host}.users (email text); create unique index users_email on ${host}.users (email);
    insert into ${host}.users values ('taken'); create sequence ${host}.calls`
  )
  t.teardown(() => sql.unsafe(`drop schema ${host} cascade`))
  const user = await usher.createUser({ name: 'Before' })
  const path = `/api/users/${user.id}`
  const failures = [
    'perform 1 / 0', 'perform new.name::boolean', `insert into ${host}.users values ('taken')`,
    ...['57P01', '57P03', '28000', '3D000', 'P0001'].map((code) => `raise 'no' using errcode = '${code}'`),
  ]
  for (const failing of failures) {
    await sql.unsafe(`create or replace function ${host}.refuse() returns trigger language plpgsql as
      $$ begin perform nextval('${host}.calls'); ${failing}; return new; end $$;
      create or replace trigger refuse before update on users for each row execute function ${host}.refuse()`)
    for (const payload of [{ name: 'usher: too late' }, { email: 'after@example.com' }]) {
      await sql.unsafe(`alter sequence ${host}.calls restart`)
      const response = await usher.inject('PATCH', path, { headers: usher.admin.headers, payload })
      const [{ next }] = await sql.unsafe(`select nextval('${host}.calls')::int as next`) as [{ next: number }]
      // A change of the name is sent with those of others first, and then alone.
      t.match(
        [response.statusCode, response.json().code, next <= 3], [500, 'INTERNAL_ERROR', true], `${failing} ${next - 1}`
      )
    }
  }
  await sql`drop trigger refuse on users`
  t.match((await usher.inject('PATCH', path, { headers: usher.admin.headers, payload: { name: 'After' } })).json(), {
    name: 'After', email: user.email,
  })
})

t.test('12.4 invalid hooks stop the start', async (t) => {
  const app = Fastify({ pluginTimeout: 0 })
  for (const [hooks, message] of [
    [{ beforeUserCreat: () => {} }, /hooks has no hook beforeUserCreat/],
    [{ beforeLogin: 5 }, /must have a function for beforeLogin/],
    [5, /hooks must be an object/],
    [null, /must be an object/],
  ] as const) {
    await t.rejects(async () => usherPlugin(app, { databaseUrl: 'postgres://localhost', hooks } as never), message)
  }
})
