import { randomUUID } from 'node:crypto'
import t from 'tap'
import { createUsher } from '../helpers/app.ts'
import { withConsole } from '../helpers/console.ts'
import { createMailer } from '../helpers/mail.ts'
import { nightly } from '../helpers/nightly.ts'
import { openSql } from '../helpers/sql.ts'
import { until } from '../helpers/until.ts'

const inbox = createMailer()
const refused = new Set<string>()
const usher = await createUsher(t, {
  console: true,
  mailer (mail) {
    if (refused.has(mail.to)) throw Object.assign(new Error('no such mailbox'), { responseCode: 550 })
    return inbox.mailer(mail)
  },
})
const { inject, admin, createUser } = usher
const sql = openSql(t, usher)
const { open, read, send } = withConsole(usher)

nightly('18.1 a mail that was given up is sent again while its link works, or discarded', async (t) => {
  const cookie = await open(admin)
  // Causes a mail that its server refuses for good.
  const refuse = async () => {
    const { email } = await createUser()
    refused.add(email)
    await inject('POST', '/api/auth/password-reset', { payload: { email } })
    const failed = () => sql<{ id: string }[]>`select id from failed_deliveries where data ->> 'to' = ${email}`
    await until('it is given up', async () => (await failed()).length > 0)
    refused.delete(email)
    return { id: (await failed())[0]!.id, email }
  }
  const post = ({ id }: { id: string }, action: string) => send(`/console/deliveries/${id}/${action}`, {}, { cookie })
  const mail = await refuse()
  const { body } = await read('/console/deliveries?kind=mail', cookie)
  t.match(body, mail.email)
  t.notMatch(body, 'token=', 'what mails contain is not shown')
  t.notMatch((await read('/console/deliveries?kind=event', cookie)).body, mail.email)
  t.strictSame(inbox.mails.filter(({ to }) => to === mail.email), [])
  t.equal((await post(mail, 'retry')).statusCode, 303)
  const token = await inbox.token(mail.email)
  t.equal((await inject('POST', '/api/auth/password-reset/check', { payload: { token } })).statusCode, 200)
  t.equal((await post(mail, 'retry')).statusCode, 404, 'once')

  const other = await refuse()
  t.equal((await post(other, 'discard')).statusCode, 303)
  t.equal((await post(other, 'discard')).statusCode, 404)
  t.notMatch((await read('/console/deliveries', cookie)).body, other.email)
  t.strictSame(inbox.mails.filter(({ to }) => to === other.email), [])
  for (const id of ['unknown', randomUUID(), '%00', `${randomUUID()}'`]) {
    t.equal((await post({ id }, 'retry')).statusCode, 404, id)
    t.equal((await post({ id }, 'discard')).statusCode, 404, id)
  }
  const entries: { action: string }[] = (await inject('GET', '/api/audit', { headers: admin.headers })).json()
  const actions = entries.map(({ action }) => action)
  t.ok(actions.includes('delivery.retry') && actions.includes('delivery.discard'))
})

t.test('18.1 users are filtered, also with a search, both orders by time, and cursors', async (t) => {
  const word = `w${randomUUID().slice(0, 8)}`
  const people = []
  for (let index = 0; index < 6; index++) people.push(await createUser({ name: `${word} ${index}` }))
  const [, second, third] = people
  await inject('PATCH', `/api/users/${second!.id}`, { headers: admin.headers, payload: { disabled: true } })
  await sql`update users set email_verified = true where id in ${sql([third!.id, second!.id])}`
  await sql`insert into totp (user_id, secret, confirmed_at)
    values (${people[3]!.id}, 'A', now()), (${people[4]!.id}, 'A', null)`
  const service = (await inject('POST', '/api/users', {
    headers: admin.headers, payload: { name: `${word} robot`, email: `${word}@example.com`, kind: 'service' },
  })).json()
  const list = async (query: Record<string, string>) => {
    const names: string[] = []
    let path = `/api/users?${new URLSearchParams({ q: word, limit: '2', ...query })}`
    for (let pages = 0; path !== '' && pages < 9; pages++) {
      const response = await inject('GET', path, { headers: admin.headers })
      t.equal(response.statusCode, 200, `${path} ${response.body}`)
      names.push(...response.json().map(({ name }: { name: string }) => name.slice(word.length + 1)))
      path = /<([^>]*)>; rel="next"/.exec(`${response.headers.link ?? ''}`)?.[1] ?? ''
    }
    return names.join(' ')
  }
  t.equal(await list({ kind: 'service' }), 'robot')
  t.equal(await list({ kind: 'person' }), '5 4 3 2 1 0')
  t.equal(await list({ kind: 'person', sort: 'createdAt' }), '0 1 2 3 4 5')
  t.equal(await list({ disabled: 'true' }), '1')
  t.equal(await list({ disabled: 'false', kind: 'person', sort: 'createdAt' }), '0 2 3 4 5')
  t.equal(await list({ emailVerified: 'true' }), '2 1')
  t.equal(await list({ emailVerified: 'true', disabled: 'false' }), '2')
  t.equal(await list({ secondFactor: 'true' }), '3', 'an app that is not confirmed is none')
  t.equal(await list({ secondFactor: 'false', kind: 'person' }), '5 4 2 1 0')
  t.equal(await list({ secondFactor: 'true', disabled: 'true' }), '')
  t.equal(await list({ role: 'admin', kind: 'person' }), '')
  t.equal(await list({ role: 'admin', kind: 'service' }), '')
  t.equal(await list({ role: 'nobody', kind: 'person' }), '')
  t.equal(await list({ q: `${word} 1`, disabled: 'true', sort: 'createdAt' }), '1')

  // The same over GraphQL.
  const graphql = (args: string, headers?: Record<string, string>) => inject('POST', '/graphql', {
    headers: headers ?? admin.headers,
    payload: { query: `{ users(${args}) { nodes { name } pageInfo { hasNextPage endCursor } } }` },
  })
  const walk = async (filters: string) => {
    const names: string[] = []
    let after = ''
    for (let pages = 0; pages < 9; pages++) {
      const response = await graphql(`q: "${word}", first: 2, ${filters}${after}`)
      if (!response.json().data) throw new Error(response.body)
      const { users } = response.json().data
      names.push(...users.nodes.map(({ name }: { name: string }) => name.slice(word.length + 1)))
      if (!users.pageInfo.hasNextPage) break
      after = `, after: "${users.pageInfo.endCursor}"`
    }
    return names.join(' ')
  }
  t.equal(await walk('kind: "person", sort: "createdAt"'), '0 1 2 3 4 5')
  t.equal(await walk('kind: "service", role: null'), 'robot')
  t.equal(await walk('disabled: false, kind: "person"'), '5 4 3 2 0')
  t.equal(await walk('emailVerified: true'), '2 1')
  t.equal(await walk('secondFactor: false, kind: "person"'), '5 4 2 1 0')
  t.equal(await walk('secondFactor: true, disabled: true'), '')
  const codeOf = async (args: string, headers?: Record<string, string>) =>
    (await graphql(args, headers)).json().errors?.[0].extensions.code
  for (const filter of ['disabled: true', 'emailVerified: false', 'secondFactor: true']) {
    t.equal(await codeOf(filter, people[0]!.headers), 'FORBIDDEN', filter)
    t.equal(await codeOf(filter, {}), 'UNAUTHENTICATED', filter)
  }
  t.equal(await codeOf('kind: "robot"'), 'INVALID_INPUT')
  t.equal(await codeOf('disabled: true, sort: "name"'), 'INVALID_INPUT')
  const seenBy = (await graphql(`kind: "service", q: "${word}"`, people[0]!.headers)).json().data.users.nodes
  t.equal(seenBy.length, 1, 'anybody sees who is a service')

  const get = (query: string, headers: Record<string, string> = admin.headers) =>
    inject('GET', `/api/users?${query}`, { headers })
  const { headers } = await get(`q=${word}&limit=1&disabled=false`)
  const [, after] = /after=([\w-]+)/.exec(`${headers.link}`)!
  const other = await get(`q=${word}&limit=1&disabled=true&after=${after}`)
  t.equal(other.statusCode, 400, 'a cursor belongs to its filters')
  for (const query of [
    'kind=robot', 'disabled=maybe', 'emailVerified=', 'secondFactor=2', 'disabled=true&sort=name',
    'kind=service&sort=-email',
  ]) {
    t.equal((await get(query)).statusCode, 400, query)
  }
  for (const query of ['disabled=true', 'emailVerified=false', 'secondFactor=true']) {
    t.equal((await get(query, people[0]!.headers)).statusCode, 403, query)
    t.equal((await get(query, {})).statusCode, 401, query)
  }
  const seen = (await get(`kind=service&q=${word}`, people[0]!.headers)).json()
  t.equal(seen[0].id, service.id, 'anybody sees who is a service')
})

t.test('18.2 a list by second factor follows an app that is confirmed, replaced or removed, also by SQL', async (t) => {
  const { id } = await createUser()
  const hasApp = async () => {
    const { headers } = await inject('GET', `/api/users/${id}`, { headers: admin.headers })
    const found = async (secondFactor: boolean) => {
      const response = await inject('GET', `/api/users?secondFactor=${secondFactor}&limit=100`, { headers: admin.headers })
      return response.json().some((user: { id: string }) => user.id === id)
    }
    const [has, hasNone] = [await found(true), await found(false)]
    t.not(has, hasNone, 'either')
    return { has, etag: headers.etag }
  }
  const { has, etag } = await hasApp()
  t.notOk(has)
  // As any release and psql write it.
  await sql`insert into totp (user_id, secret) values (${id}, 'A')`
  t.same(await hasApp(), { has: false, etag })
  await sql`update totp set confirmed_at = now() where user_id = ${id}`
  t.same(await hasApp(), { has: true, etag }, 'the record has the same version')
  await sql`update totp set confirmed_at = null where user_id = ${id}`
  t.same(await hasApp(), { has: false, etag })
  await sql`insert into totp (user_id, secret, confirmed_at) values (${id}, 'B', now())
    on conflict (user_id) do update set confirmed_at = excluded.confirmed_at`
  t.same(await hasApp(), { has: true, etag })
  await sql`delete from totp where user_id = ${id}`
  t.same(await hasApp(), { has: false, etag })
  await inject('PATCH', `/api/users/${id}`, { headers: admin.headers, payload: { name: 'Other' } })
  t.not((await hasApp()).etag, etag, 'a change of the record has another one')
})

nightly('18.2 whatever the address of a page says, it is answered by a page and never by a 500', async (t) => {
  const cookie = await open(admin)
  const parameters = {
    '': ['done', '__proto__'],
    '/users': ['q', 'role', 'kind', 'status', 'sort', 'after'],
    '/posts': ['author', 'after'],
    '/uploads': ['user', 'after'],
    '/log': ['user', 'action', 'after'],
    '/deliveries': ['kind', 'after'],
    '/keys': ['after'],
    '/login': ['next', 'done'],
  }
  const values = [
    '', '%00', 'a%00b', '%ED%A0%80', '%FF', "'", '%27%20or%201=1--', '%22%3E%3Cscript%3Ealert(1)%3C/script%3E',
    'x'.repeat(3000), '-1', '1e9', 'toString', '%F0%9F%98%80%F0%9F%98%80', '%E2%80%AE%E2%80%AE', '9'.repeat(22),
    'A'.repeat(22), 'A'.repeat(16), '1.00000000-0000-0000-0000-000000000000',
    `${'9'.repeat(18)}.00000000-0000-0000-0000-000000000000`,
  ]
  for (const [page, names] of Object.entries(parameters)) {
    for (const name of names) {
      for (const value of values) {
        const { statusCode, headers, body } = await read(`/console${page}?${name}=${value}`, cookie)
        const what = `${page}?${name}=${value.slice(0, 60)}: ${statusCode}`
        if (![200, 400].includes(statusCode)) t.fail(what)
        if (headers['content-type'] !== 'text/html; charset=utf-8') t.fail(`${what} ${headers['content-type']}`)
        if (/<script>alert/.test(body)) t.fail(`${what}: markup`)
      }
      const twice = await read(`/console${page}?${name}=a&${name}=b`, cookie)
      if (![200, 400].includes(twice.statusCode)) t.fail(`${page}?${name} twice: ${twice.statusCode}`)
    }
  }
  for (const path of ['/users/%00', '/users/%FF', '/posts/%00', '/users/..%2f..%2fapi', `/posts/${'x'.repeat(50)}`]) {
    const { statusCode } = await read(`/console${path}`, cookie)
    t.ok([400, 404].includes(statusCode), `${path}: ${statusCode}`)
  }
  t.pass('each is answered')
})
