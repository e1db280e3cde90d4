import { randomUUID } from 'node:crypto'
import t from 'tap'
import { createUsher } from '../../helpers/app.ts'
import { withConsole } from '../../helpers/console.ts'
import { createMailer } from '../../helpers/mail.ts'
import { openSql } from '../../helpers/sql.ts'
import { until } from '../../helpers/until.ts'

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

t.test('18.1 a mail that was given up is sent again while its link works, or discarded', async (t) => {
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
  t.equal((await inject('POST', '/api/auth/password-reset/check', { payload: { token } })).statusCode, 204)
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

t.test('18.2 whatever the address of a page says, it is answered by a page and never by a 500', async (t) => {
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
