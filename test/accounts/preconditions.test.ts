import t from 'tap'
import { audiences } from '../../app.ts'
import { createUsher, type TestUsher } from '../helpers/app.ts'
import { createMailer } from '../helpers/mail.ts'
import { nightly } from '../helpers/nightly.ts'
import { tagOfRow } from '../helpers/row-tags.ts'
import { openSql } from '../helpers/sql.ts'

const UNKNOWN = '0190a5b4-7c3e-7d11-8abc-0123456789ab'
const STALE = '"1"'

const usher = await createUsher(t)
const other = await createUsher(t, usher.options)
const { admin, createUser } = usher
const sql = openSql(t, usher)

interface Given { on?: TestUsher, tag?: string | undefined, not?: string, payload?: object, headers?: object }
const send = (
  method: 'PUT' | 'PATCH' | 'DELETE', id: string, { on = usher, tag, not, payload, headers = admin.headers }: Given = {}
) =>
  on.inject(method, `/api/users/${id}`, {
    headers: {
      ...headers, ...tag !== undefined && { 'if-match': tag }, ...not !== undefined && { 'if-none-match': not },
    },
    ...payload && { payload },
  })
const read = async (id: string) => (await usher.inject('GET', `/api/users/${id}`)).json()
const tagOf = (id: string) => tagOfRow(sql, 'users', id)
const rowsOf = (id: string) => sql`
  select row_version, name, email, role, disabled, (select count(*)::int from sessions where user_id = ${id}) as sessions,
    (select count(*)::int from audit where user_id = ${id}) as entries from users where id = ${id}`

t.test('10.2 a change takes effect if a tag matches, and gets 412 without any effect if none does', async (t) => {
  const user = await createUser()
  const { id, email } = user
  const changes = (name: string): [method: 'PUT' | 'PATCH', payload: object][] => [
    ['PUT', { name, email }], ['PUT', { name, email: `${name}-${email}` }], ['PUT', { name, email, role: 'admin' }],
    ['PATCH', { name }], ['PATCH', { email: `${name}-${email}` }], ['PATCH', { role: 'admin' }],
    ['PATCH', { role: 'user' }], ['PATCH', { disabled: true }], ['PATCH', { name, disabled: false }], ['PATCH', {}],
    ['PATCH', { unknown: 1 }],
  ]
  const former = await tagOf(id)
  t.equal((await send('PATCH', id, { payload: { name: 'Newer' } })).statusCode, 200)
  const current = await tagOf(id)
  t.not(current, former)
  for (const tag of [
    former, STALE, `W/${current}`, '"no-tag-of-ours"', `"0${current.slice(1)}`, `${STALE}, W/${current}`, '""',
  ]) {
    for (const [method, payload] of changes('Stale')) {
      const before = await rowsOf(id)
      const response = await send(method, id, { tag, payload })
      t.match(
        [response.statusCode, response.json()],
        [412, { error: /state/, code: 'PRECONDITION_FAILED' }],
        `${method} ${JSON.stringify(payload)} ${tag}`
      )
      t.same(await rowsOf(id), before)
    }
    t.equal((await send('DELETE', id, { tag })).statusCode, 412)
  }
  for (const [index, [method, payload]] of changes('Fresh').entries()) {
    const tag =
      ['*', await tagOf(id), `${STALE} , ${await tagOf(id)}`, `${(await tagOf(id)).slice(0, -1)}.variant"`][index % 4]
    t.equal((await send(method, id, { tag, payload })).statusCode, 200, `${method} ${JSON.stringify(payload)} ${tag}`)
  }
  t.equal((await send('DELETE', id, { tag: await tagOf(id) })).statusCode, 204)
  t.equal((await send('DELETE', (await createUser()).id, { tag: '*' })).statusCode, 204)
})

t.test('10.2 with If-None-Match, a change gets 412 without any effect if a tag matches, also weakly, and takes effect if none does', async (t) => {
  const { id, email } = await createUser()
  const former = await tagOf(id)
  t.equal((await send('PATCH', id, { not: STALE, payload: { name: 'Newer' } })).statusCode, 200)
  const current = await tagOf(id)
  const changes: ['PUT' | 'PATCH' | 'DELETE', object?][] = [
    ['PUT', { name: 'Changed', email }], ['PATCH', { name: 'Changed' }], ['PATCH', { role: 'admin' }], ['PATCH', {}],
    ['DELETE'],
  ]
  for (const [method, payload] of changes) {
    const before = await rowsOf(id)
    for (const not of ['*', current, `W/${current}`, `${former}, ${current}`, `${current.slice(0, -1)}.variant"`]) {
      const response = await send(method, id, { not, ...payload && { payload } })
      t.match([response.statusCode, response.json()], [412, { code: 'PRECONDITION_FAILED' }], `${method} ${not}`)
    }
    t.equal(
      (await send(method, id, { tag: former, not: STALE, ...payload && { payload } })).statusCode,
      412,
      'If-Match counts as well'
    )
    t.same(await rowsOf(id), before)
  }
  for (const [method, payload] of changes) {
    const response = await send(method, id, { tag: '*', not: `${former}, W/${STALE}`, ...payload && { payload } })
    t.equal(response.statusCode, method === 'DELETE' ? 204 : 200, method)
  }
})

t.test('10.2 a malformed If-None-Match of a change gets 400, an unknown user 404, and 409 comes before 412', async (t) => {
  const [user, taken] = [await createUser(), await createUser()]
  const malformed = await send('PATCH', user.id, { not: 'x', payload: { name: 'Bad' } })
  t.same(
    [malformed.statusCode, malformed.json()], [400, { errors: ['If-None-Match must be * or a list of entity tags'] }]
  )
  for (const unknown of [UNKNOWN, 'x']) {
    for (const not of ['*', STALE]) {
      t.equal((await send('PATCH', unknown, { not, payload: { name: 'x' } })).statusCode, 404)
    }
  }
  t.equal((await send('PATCH', user.id, { not: '*', payload: { email: taken.email } })).json().code, 'EMAIL_TAKEN')
  t.equal((await send('PATCH', taken.id, { not: '*', payload: {}, headers: user.headers })).statusCode, 403)
})

t.test('10.2 a malformed tag gets 400, after 401 and 403 and before 404, and 409 comes before 412', async (t) => {
  const [user, taken] = [await createUser(), await createUser()]
  const { id, email, headers } = user
  const errors = ['If-Match must be * or a list of entity tags']
  for (const tag of ['', 'x', '"', '"a', 'a"', '*, "a"', '"a" "b', 'w/"a"', '"a b"']) {
    for (const method of ['PUT', 'PATCH', 'DELETE'] as const) {
      const response = await send(method, id, { tag, ...method !== 'DELETE' && { payload: { name: 'Bad', email } } })
      t.strictSame([response.statusCode, response.json()], [400, { errors }], `${method} ${tag}`)
    }
  }
  t.equal((await send('PATCH', id, { tag: 'x', payload: {}, headers: {} })).statusCode, 401)
  t.equal((await send('PATCH', taken.id, { tag: 'x', payload: {}, headers })).statusCode, 403)
  t.equal((await send('PATCH', UNKNOWN, { tag: 'x', payload: {} })).statusCode, 400)
  for (const unknown of [UNKNOWN, 'x']) {
    for (const tag of ['*', STALE]) {
      for (const payload of [{}, { name: 'x' }, { role: 'user' }]) {
        t.equal((await send('PATCH', unknown, { tag, payload })).statusCode, 404)
      }
      t.equal((await send('DELETE', unknown, { tag })).statusCode, 404)
    }
  }
  for (const payload of [{ name: 'x', email: taken.email.toUpperCase() }, { email: taken.email }]) {
    t.equal((await send('PATCH', id, { tag: STALE, payload })).json().code, 'EMAIL_TAKEN')
  }
  t.equal(
    (await send('PATCH', admin.id, { tag: STALE, payload: { name: 'x', role: 'user' } })).json().code, 'LAST_ADMIN'
  )
  t.equal((await send('DELETE', admin.id, { tag: STALE })).json().code, 'LAST_ADMIN')
})

nightly('10.2 a hundred writers with the same tag on two nodes: exactly one succeeds', async (t) => {
  const { id, email } = await createUser()
  const kinds: ((name: string) => Given & { method: 'PUT' | 'PATCH' })[] = [
    (name) => ({ method: 'PUT', payload: { name, email } }),
    (name) => ({ method: 'PATCH', payload: { name } }),
    (name) => ({ method: 'PATCH', payload: { name, role: 'user' } }),
    (name) => ({ method: 'PATCH', payload: { name, email: `${name.replace(' ', '-')}-${email}` } }),
  ]
  for (const mix of [[0], [1], [0, 1, 2, 3]]) {
    const tag = await tagOf(id)
    const answers = await Promise.all(Array.from({ length: 100 }, async (_, index) => {
      const { method, payload } = kinds[mix[index % mix.length]!]!(`Writer ${index}`)
      return {
        index,
        status: (await send(method, id, { on: index % 3 === 0 ? other : usher, tag, payload: payload! })).statusCode,
      }
    }))
    const winners = answers.filter(({ status }) => status === 200)
    t.strictSame([winners.length, answers.filter(({ status }) => status === 412).length], [1, 99])
    t.equal((await read(id)).name, `Writer ${winners[0]!.index}`)
    t.equal((await send('PUT', id, { payload: { name: 'Between', email } })).statusCode, 200)
  }
  const tag = await tagOf(id)
  const answers = await Promise.all(Array.from({ length: 20 }, (_, index) =>
    send(index % 2 ? 'PATCH' : 'DELETE', id, {
      on: index % 3 ? usher : other, tag, ...index % 2 && { payload: { name: 'x' } },
    })))
  t.equal(answers.filter(({ statusCode }) => statusCode < 300).length, 1, 'a deletion races with changes')
})

t.test('10.2 other changes of the row count: by SQL, by a link of a mail, and by another node', async (t) => {
  const { id } = await createUser()
  for (const change of [
    () => sql`update users set name = name where id = ${id}`,
    () => send('PATCH', id, { on: other, payload: { name: 'Somebody' } }),
  ]) {
    const tag = await tagOf(id)
    await change()
    t.equal((await send('PATCH', id, { tag, payload: { name: 'Late' } })).statusCode, 412)
  }
})

t.test('10.2 hooks of the host: a change with a stale tag is rolled back, and neither hook sees it take effect', async (t) => {
  const seen: string[] = []
  const hooked = await createUsher(t, {
    ...usher.options,
    hooks: {
      beforeUserUpdate: (changes) => ({ ...changes, name: 'By the hook' }),
      onUserUpdate: (user) => { seen.push(user.name) },
      onUserDelete: (user) => { seen.push(`deleted ${user.name}`) },
    },
  })
  const { id, email } = await createUser()
  const payload = { name: 'Given', email }
  t.equal((await send('PUT', id, { on: hooked, tag: STALE, payload })).statusCode, 412)
  t.equal((await send('PATCH', id, { on: hooked, tag: STALE, payload: {} })).statusCode, 412)
  t.equal((await send('DELETE', id, { on: hooked, tag: STALE })).statusCode, 412)
  t.strictSame(seen, [])
  t.equal((await send('PUT', id, { on: hooked, tag: await tagOf(id), payload })).json().name, 'By the hook')
  t.equal((await send('DELETE', id, { on: hooked, tag: await tagOf(id) })).statusCode, 204)
  t.strictSame(seen, ['By the hook', 'deleted By the hook'])
})

t.test('10.2 a deferred change of the address with a stale tag sends no mail', async (t) => {
  const inbox = createMailer()
  const hidden = await createUsher(t, { mailer: inbox.mailer, policy: { 'users:read-email': audiences.owners } })
  const sql = openSql(t, hidden)
  const { id, headers, email } = await hidden.createUser()
  const change = async (tag: string, payload: object) =>
    (await send('PATCH', id, { on: hidden, tag, payload, headers })).statusCode
  t.equal(await change(STALE, { name: 'Stale', email: `stale-${email}` }), 412)
  t.equal(await change(STALE, { email: `stale-${email}` }), 412)
  t.equal(await change(await tagOfRow(sql, 'users', id), { name: 'Fresh', email: `fresh-${email}` }), 200)
  // Mails are sent in order.
  t.equal((await inbox.of(`fresh-${email}`, 1)).length, 1)
  t.strictSame(inbox.mails.map(({ to }) => to), [`fresh-${email}`])
})

t.test('10.3 an empty patch changes nothing, including the version', async (t) => {
  const { id } = await createUser()
  const before = await tagOf(id)
  for (const tag of [undefined, '*', before]) t.equal((await send('PATCH', id, { tag, payload: {} })).statusCode, 200)
  t.equal(await tagOf(id), before)
})
