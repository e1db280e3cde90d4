import t from 'tap'
import { createUsher } from '../helpers/app.ts'
import { createMailer } from '../helpers/mail.ts'
import { openSql, untilBlocked } from '../helpers/sql.ts'
import { until } from '../helpers/until.ts'

const { mails, mailer, token } = createMailer()
const errors: string[] = []
const logger = { level: 'error', stream: { write: (line: string) => { errors.push(line) } } }
const usher = await createUsher(t, { mailer, passwordUrl: 'https://app.example.com/password' }, { logger })
const { inject, admin } = usher

t.test('1.11 if the account log cannot be written, the operation fails with 500 and changes nothing', async (t) => {
  const sql = openSql(t, usher)
  const user = await usher.createUser({ email: 'ada@example.com', role: 'admin' })
  const second = await usher.login(user)
  const reused = await usher.login(user)
  await inject('POST', '/api/auth/refresh', { headers: { cookie: reused.cookie } })
  await sql`update sessions set rotated_at = array[now() - interval '11 seconds'] where rotations = 1`
  const invited = (await inject(
    'POST', '/api/users', { headers: admin.headers, payload: { name: 'New', email: 'new@example.com' } }
  )).json()
  await inject('POST', '/api/auth/password-reset', { payload: { email: user.email } })
  const resetToken = await token(user.email)
  const [{ sid }] = await sql<[{ sid: string }]>`select max(id::text) as sid from sessions where user_id = ${user.id}`

  const put = (payload: object) => inject('PUT', `/api/users/${user.id}`, {
    headers: admin.headers, payload: { name: 'Renamed', email: user.email, ...payload },
  })
  const { password } = user
  const operations: Record<string, () => ReturnType<typeof inject>> = {
    login: () => inject('POST', '/api/auth/login', { payload: user, headers: { cookie: second.cookie } }),
    logout: () => inject('POST', '/api/auth/logout', { headers: user.headers }),
    'logout by cookie': () => inject('POST', '/api/auth/logout', { headers: { cookie: user.cookie } }),
    'reuse of an old cookie': () => inject('POST', '/api/auth/refresh', { headers: { cookie: reused.cookie } }),
    'end of a session': () => inject('DELETE', `/api/auth/sessions/${sid}`, { headers: admin.headers }),
    'end of a session of a user': () =>
      inject('DELETE', `/api/users/${user.id}/sessions/${sid}`, { headers: admin.headers }),
    'end of all sessions of a user': () =>
      inject('DELETE', `/api/users/${user.id}/sessions`, { headers: admin.headers }),
    'end of the other sessions': () => inject('DELETE', '/api/auth/sessions', { headers: user.headers }),
    'change of a password': () => inject('PUT', '/api/auth/password', {
      headers: user.headers, payload: { currentPassword: password, password: `${password}!` },
    }),
    'reset of a password': () =>
      inject('POST', '/api/auth/password-reset/confirm', { payload: { token: resetToken, password: `${password}!` } }),
    'creation of a user': () =>
      inject('POST', '/api/users', { headers: admin.headers, payload: { name: 'N', email: 'n@example.com' } }),
    'change of an address': () => put({ email: 'eve@example.com' }),
    'change of a role': () => inject('PUT', `/api/users/${invited.id}`, {
      headers: admin.headers, payload: { name: 'New', email: invited.email, role: 'admin' },
    }),
    demotion: () => put({ role: 'user' }),
    disabling: () => inject('PATCH', `/api/users/${user.id}`, { headers: admin.headers, payload: { disabled: true } }),
    'disabling a user who is no admin': () =>
      inject('PATCH', `/api/users/${invited.id}`, { headers: admin.headers, payload: { disabled: true } }),
    invitation: () => inject('POST', `/api/users/${invited.id}/invitation`, { headers: admin.headers }),
    deletion: () => inject('DELETE', `/api/users/${user.id}`, { headers: admin.headers }),
  }
  const state = async () => JSON.stringify(await Promise.all([
    sql`select * from users order by id`, sql`select * from sessions order by id`, sql`select * from ended_sessions`,
    sql`select * from password_links order by hash`, sql`select * from audit order by id`,
  ]))

  await sql`create function refuse() returns trigger language plpgsql as $$ begin raise exception 'the log is full'; end $$`
  await sql`create trigger refuse before insert on audit execute function refuse()`
  const before = await state()
  for (const [what, run] of Object.entries(operations)) {
    const { statusCode, body } = await run()
    t.same([statusCode, JSON.parse(body)], [500, { error: 'The server failed', code: 'INTERNAL_ERROR' }], what)
    t.equal(await state(), before, what)
  }
  errors.length = 0
  await inject('POST', '/api/auth/password-reset', { payload: { email: user.email } })
  await until('the link could not be made', () => errors.length > 0)
  t.equal(await state(), before)
  t.equal(mails.length, 1, 'no link was sent but the first')
  for (const { headers } of [user, second, admin]) {
    t.equal((await inject('GET', '/api/protected', { headers })).statusCode, 200, 'no session is refused')
  }

  await sql`drop trigger refuse on audit`
  t.equal((await put({})).statusCode, 200)
})

t.test('1.11 the account log records only real changes, also if two requests write at once', async (t) => {
  const sql = openSql(t, usher)
  const user = await usher.createUser({ email: 'grace@example.com' })
  const put = (email: string) =>
    inject('PUT', `/api/users/${user.id}`, { headers: admin.headers, payload: { name: 'Grace', email } })
  const changes = () => sql`select 1 from audit where action = 'user.email-change' and user_id = ${user.id}`
  const { same } = await sql.begin(async (trx) => {
    await trx`update users set email = 'eve@example.com' where id = ${user.id}`
    const same = put('eve@example.com')
    await untilBlocked(sql, usher)
    // The promise is wrapped in an object, so that the transaction does not wait for it.
    return { same }
  })
  t.equal((await same).statusCode, 200)
  t.equal((await changes()).length, 0, 'the address was that already')
  t.equal((await put('grace@example.com')).statusCode, 200)
  t.equal((await changes()).length, 1)
})
