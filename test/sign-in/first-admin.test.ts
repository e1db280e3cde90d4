import Fastify from 'fastify'
import { decodeJwt } from 'jose'
import t, { type Test } from 'tap'
import usher, { type UsherOptions } from '../../app.ts'
import { insertFirstAdmin } from '../../db/users/first-admin.ts'
import { createUsher } from '../helpers/app.ts'
import { openConnection } from '../helpers/connection.ts'
import { testDatabaseUrl, uniqueSchema } from '../helpers/database.ts'
import { slow } from '../helpers/deadlines.ts'
import { createMailer } from '../helpers/mail.ts'
import { nightly } from '../helpers/nightly.ts'
import { openSql } from '../helpers/sql.ts'
import { temporaryFolder } from '../helpers/temporary-folder.ts'

async function start (t: Test, options: UsherOptions) {
  const app = Fastify({ pluginTimeout: 0 })
  t.teardown(() => app.close())
  await app.register(usher, {
    databaseUrl: await testDatabaseUrl(), deadlines: slow, uploadsDir: temporaryFolder(), poolSize: 2, ...options,
  })
  await app.ready()
  const admins = async () =>
    (await app.inject('/api/users')).json().map(({ email, role }: { email: string, role: string }) => [email, role])
  const login = async (payload: object) =>
    (await app.inject({ method: 'POST', url: '/api/auth/login', payload })).statusCode
  /** The entries of the account log about this admin that the start has caused. */
  const entries = async (payload: object) => {
    const { token } = (await app.inject({ method: 'POST', url: '/api/auth/login', payload })).json()
    const audit = await app.inject({ url: '/api/audit', headers: { authorization: `Bearer ${token}` } })
    const { sub } = decodeJwt(token)
    return audit.json().filter(({ userAgent, userId }: { userAgent: string, userId: string }) =>
      userAgent === 'usher first admin' && userId === sub)
      .map(({ action, actorId }: { action: string, actorId: string | null }) => [action, actorId]).sort()
  }
  return { admins, login, entries }
}

t.test('4 the first start creates the admin of the options', async (t) => {
  const admin = { email: 'Root@Example.com', password: 'a good long password' }
  const { admins, login, entries } = await start(t, { schema: uniqueSchema(t.name), admin })
  t.same(await admins(), [['Root@Example.com', 'admin']])
  t.equal(await login(admin), 200)
  t.same(await entries(admin), [['user.create', null]])
})

nightly('4 without that option it creates admin@example.com with a random password, printed once, by one of many nodes', async (t) => {
  const schema = uniqueSchema(t.name)
  const told: { email: string, password: string }[] = []
  const onFirstAdmin = (admin: { email: string, password: string }) => { told.push(admin) }
  const nodes = await Promise.all(Array.from({ length: 5 }, () => start(t, { schema, onFirstAdmin })))
  t.equal(told.length, 1)
  t.equal(told[0]!.email, 'admin@example.com')
  t.match(told[0]!.password, /^[\w-]{20}$/)
  for (const { admins, login } of nodes) {
    t.same(await admins(), [['admin@example.com', 'admin']])
    t.equal(await login(told[0]!), 200)
  }
  const later = await start(
    t, { schema, onFirstAdmin, admin: { email: 'second@example.com', password: 'another password' } }
  )
  t.same(await later.admins(), [['admin@example.com', 'admin']], 'there is one')
  t.equal(told.length, 1)
})

nightly('4 without a way to print the password, no admin is created', async (t) => {
  const { admins } = await start(t, { schema: uniqueSchema(t.name) })
  t.same(await admins(), [])
})

nightly('11.4 an admin who is disabled does not count: the next start creates one, or enables the one with that address', async (t) => {
  const handles = await createUsher(t)
  const sql = openSql(t, handles)
  await sql`update users set disabled = true`
  const next = { email: 'next@example.com', password: 'the new password' }
  const { admins, login } = await start(t, { ...handles.options, admin: next })
  t.same((await admins()).sort(), [['admin@example.com', 'admin'], ['next@example.com', 'admin']])
  t.equal(await login(next), 200)

  const former = { ...handles.options.admin!, password: 'another new password' }
  const later = await start(t, { ...handles.options, admin: former })
  t.equal(await later.login(former), 401, 'there is one who is enabled')
  await sql`update users set disabled = true`
  const last = await start(t, { ...handles.options, admin: former })
  t.strictSame([await last.login(former), await last.login(next)], [200, 401])
})

nightly('4 if there is no admin, an existing user with that address, verified, becomes the admin; nothing from before gets anybody in', async (t) => {
  const inbox = createMailer()
  const handles = await createUsher(t, { mailer: inbox.mailer })
  const { inject } = handles
  const sql = openSql(t, handles)
  const user = await handles.createUser()
  const change = (payload: object) => inject('PATCH', `/api/users/${user.id}`, { headers: user.headers, payload })
  await change({ email: 'Next@example.com' })
  await inject('POST', '/api/auth/password-reset', { payload: { email: user.email } })
  const undo = await inbox.token(user.email)
  await sql`update users set email_verified = true where id = ${user.id}`
  await inject('POST', '/api/auth/password-reset', { payload: { email: 'next@example.com' } })
  const reset = await inbox.token('Next@example.com')
  await sql`delete from users where id = ${handles.admin.id}`
  const next = { email: 'next@example.com', password: 'the new password' }
  const { admins, login, entries } = await start(t, { ...handles.options, admin: next })
  t.same(await admins(), [['Next@example.com', 'admin']])
  const cookie = await inject('POST', '/api/auth/refresh', { headers: { cookie: user.cookie } })
  t.same([await login(next), await login({ ...user, email: next.email }), cookie.statusCode], [200, 401, 401])
  for (const path of ['undo/check', 'undo']) {
    t.equal((await inject('POST', `/api/auth/${path}`, { payload: { token: undo } })).statusCode, 400)
  }
  const payload = { token: reset, password: 'a password of a thief' }
  t.equal((await inject('POST', '/api/auth/password-reset/confirm', { payload })).statusCode, 400)
  t.notMatch(
    (await inbox.of('Next@example.com', 2)).find(({ subject }) => subject === 'Your password was set')!.text,
    '/undo#',
    'the owner learns of it'
  )
  t.same(await entries(next), [['password.change', null], ['user.role-change', null]])
})

t.test('4 the first admin is no user who only claims the address: the start stops, and says what to do', async (t) => {
  const handles = await createUsher(t)
  const squatter = await handles.createUser()
  const admin = { email: 'boss@company.test', password: 'the new password' }
  await handles.inject(
    'PATCH', `/api/users/${squatter.id}`, { headers: squatter.headers, payload: { email: 'Boss@company.test' } }
  )
  await openSql(t, handles)`delete from users where id = ${handles.admin.id}`
  const options = { ...handles.options, admin }
  await t.rejects(start(t, options), {
    message: new RegExp(`^usher: there is no admin, and the address of the first one, ${admin.email}, is that of a user who has not verified it, .*run ` +
      `"npm start -- users promote ${admin.email}", and "npm start -- users reset-password ${admin.email}" .*` +
      `run "npm start -- users delete ${admin.email}", or choose another address for the first admin \\(ADMIN_EMAIL, or the option admin\\)`),
  })
  t.match((await handles.inject('GET', `/api/users/${squatter.id}`)).json(), { role: 'user' })
  t.equal((await handles.inject(
    'POST', '/api/auth/login', { payload: { email: admin.email, password: squatter.password } }
  )).statusCode, 200)

  // What the command does.
  await handles.app.usher.users.update(squatter.id, { role: 'admin' })
  const { admins } = await start(t, options)
  t.same(await admins(), [['Boss@company.test', 'admin']])
  t.equal(
    (await handles.inject('GET', '/api/protected', { headers: squatter.headers })).statusCode,
    401,
    'with no session from before'
  )
})

t.test('4 an invalid first admin stops the start with one sentence', async (t) => {
  const admin = { email: 'root@example.com', password: 'a good long password' }
  const wrong: [object, string][] = [
    [{ ...admin, password: 'password' }, 'usher: admin.password is too common'],
    [{ ...admin, password: 'short' }, 'usher: admin.password must be at least 8 characters'],
    [{ ...admin, password: 'a\u0000 control character' }, 'usher: admin.password must not contain control characters'],
    [{ ...admin, email: 'root' }, 'usher: admin.email must be an email address'],
    [{ email: 'root@example.com' }, 'usher: admin.password is required'],
  ]
  for (const [given, message] of wrong) {
    await t.rejects(start(t, { schema: uniqueSchema(t.name), admin: given as UsherOptions['admin'] }), { message })
  }
})

t.test('4 if another node has created an admin meanwhile, none is created', async (t) => {
  const { options, inject } = await createUsher(t)
  const { db } = await openConnection(t, { schema: options.schema! })
  t.equal(await insertFirstAdmin(db, { email: 'second@example.com', passwordHash: 'none' }), undefined)
  t.equal((await inject('GET', '/api/users')).json().length, 1)
})
