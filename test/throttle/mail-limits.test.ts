import { randomUUID } from 'node:crypto'
import { sql } from 'kysely'
import t, { type Test } from 'tap'
import { deleteFreeLimits } from '../../db/throttle/throttle.ts'
import { keyOfMailbox } from '../../db/users/user-keys.ts'
import { foldMailbox } from '../../schema/strings/address.ts'
import type { UsherOptions } from '../../app.ts'
import { createKey } from '../helpers/api-keys.ts'
import { createUsher, type TestUsher } from '../helpers/app.ts'
import { openConnection } from '../helpers/connection.ts'
import { createMailer, tokenIn } from '../helpers/mail.ts'
import { nightly } from '../helpers/nightly.ts'
import { openSql } from '../helpers/sql.ts'
import { until } from '../helpers/until.ts'

const plenty = { burst: 10_000, perMinute: 10_000 }
// Nothing becomes available again during a test, however long that takes.
const throttle: UsherOptions['throttle'] = {
  account: plenty,
  address: plenty,
  reset: plenty,
  signUp: plenty,
  mail: { burst: 3, perMinute: 0.01 },
  verifiedMail: { burst: 5, perMinute: 0.01 },
}
// The passwords that `changePasswords` has set, by address.
const passwordOf = new Map<string, string>()
const newEmail = () => `${randomUUID()}@example.com`

/**
 * Starts two nodes on one database, whose mails arrive in one inbox. Returns the first one, and what both have logged.
 */
async function startNodes (t: Test, options: UsherOptions = {}) {
  const inbox = createMailer()
  const lines: string[] = []
  const logger = { level: 'warn', stream: { write: (line: string) => { lines.push(line) } } }
  const one = await createUsher(t, { mailer: inbox.mailer, throttle, signUp: true, ...options }, { logger })
  const two = await createUsher(t, one.options, { logger })
  const sql = openSql(t, one)
  const nodes = [one, two] as const
  let count = 0
  async function settle (): Promise<void> {
    // Sign-ups are stored after the response, in order. Links to set a password are stored in an order of their own, so
    // who expects one waits for it.
    for (const node of nodes) {
      const email = newEmail()
      await node.inject(
        'POST', '/api/auth/sign-up', { payload: { name: 'Last', email, password: `pass ${randomUUID()}` } }
      )
      await inbox.of(email, 1)
    }
    await until('an empty outbox', async () => (await sql`select 1 from outbox
      where lease is not null or attempts > 0 or due_at <= clock_timestamp()`).length === 0)
  }

  return {
    one,
    two,
    inbox,
    sql,
    lines,
    logged: () => lines.map((line) => JSON.parse(line)),
    /** Sends a request without a token to one of the nodes, in turn. */
    post: (path: string, payload: object) => nodes[count++ % 2]!.inject('POST', path, { payload }),
    /** Resolves when all mails that were caused so far have been sent or dropped, or wait for their place. */
    settle,
    /** Sends the notices that wait. */
    async sendWaiting (): Promise<void> {
      await sql`update outbox set due_at = clock_timestamp()`
      await settle()
    },
    received: (email: string) => inbox.mails.filter(({ to }) => to === email),
  }
}

/** Changes the password of a user again and again, on two nodes. */
async function changePasswords (
  { one, two }: { one: TestUsher, two: TestUsher }, user: { email: string, password: string }, times: number
): Promise<void> {
  let { password } = user
  let { headers } = await one.login(user)
  for (let index = 0; index < times; index++) {
    const payload = { currentPassword: password, password: `pass ${randomUUID()}` }
    const response = await [one, two][index % 2]!.inject('PUT', '/api/auth/password', { headers, payload })
    if (response.statusCode !== 204) throw new Error(`${response.statusCode} ${response.body}`)
    password = payload.password
    passwordOf.set(user.email, password)
    headers = (await two.login({ email: user.email, password })).headers
  }
}

nightly('11.5 whoever sets the own address to that of a stranger does not flood the stranger: on all nodes together, and after a restart', async (t) => {
  const nodes = await startNodes(t)
  const { one, two, sql, settle, received, logged, lines } = nodes
  const user = await one.createUser()
  const victim = newEmail()
  t.equal((await one.inject(
    'PATCH', `/api/users/${user.id}`, { headers: user.headers, payload: { email: victim } }
  )).statusCode, 200)
  await changePasswords(nodes, { ...user, email: victim }, 6)
  const { headers: own } = await one.login({ ...user, email: victim, password: passwordOf.get(victim)! })
  for (let index = 0; index < 4; index++) {
    await one.inject('POST', `/api/users/${user.id}/email-verification`, { headers: own })
  }
  await settle()
  const subjects = () => received(victim).map(({ subject }) => subject).sort()
  const sent = [...Array(3).fill('Confirm your e-mail address'), ...Array(3).fill('Your password was set')]
  t.same(subjects(), sent)
  const entries = logged()
    .filter(({ msg }) => msg === 'A mail is not sent, because its recipient has got too many of its kind')
  t.ok(entries.length >= 1, 'what is not sent is logged')
  t.match(entries[0], { level: 40, kind: 'request', userId: user.id })
  t.notMatch(lines.join(''), victim, 'without the address')
  t.notMatch(JSON.stringify(await sql`select * from mail_limits`), victim)

  await one.app.close()
  const again = await createUsher(t, { ...one.options })
  const { headers } = await again.login(one.admin)
  t.equal(
    (await again.inject('PATCH', `/api/users/${user.id}`, { headers, payload: { email: newEmail() } })).statusCode, 200
  )
  t.same(subjects(), sent, 'nor a mail of the same kind after a restart')
  await sql`update outbox set due_at = clock_timestamp()`
  await until('an empty outbox', async () => (await sql`select 1 from outbox`).length === 0)
  t.same(subjects(), [...sent, 'Several changes of your account'].sort(), 'but one mail of all, when there is room')
  const { text } = received(victim).find(({ subject }) => subject.startsWith('Several'))!
  t.equal(text.split('UTC: Your password was set').length - 1, 3)
  t.equal(text.split('UTC: The e-mail address of your account was changed').length - 1, 1)
  await two.app.close()
})

nightly('11.5 nothing that changes who has the account happens in silence: notices beyond the limit arrive in one mail, with their links', async (t) => {
  const nodes = await startNodes(t, { secret: 'a secret of the test' })
  const { one, two, sql, settle, sendWaiting, received, logged } = nodes
  const user = await one.createUser()
  await sql`update users set email_verified = true where id = ${user.id}`
  const { headers } = user
  // A thief uses the limit up with what seems harmless.
  for (let index = 0; index < 5; index++) {
    const { id } = await createKey([one, two][index % 2]!, user)
    t.equal((await one.inject('DELETE', `/api/auth/keys/${id}`, { headers })).statusCode, 204)
  }
  await settle()
  t.equal(received(user.email).length, 5, 'the limit')
  await createKey(one, user)
  const payload = { currentPassword: user.password, password: `pass ${randomUUID()}` }
  t.equal((await two.inject('PUT', '/api/auth/password', { headers, payload })).statusCode, 204)
  const thief = await one.login({ email: user.email, password: payload.password })
  const moved = newEmail()
  const change = { headers: thief.headers, payload: { email: moved } }
  t.equal((await two.inject('PATCH', `/api/users/${user.id}`, change)).statusCode, 200)
  await settle()
  t.equal(received(user.email).length, 5)
  const [waiting, ...others] = await sql`select data, due_at < now() + interval '100 minutes' as soon from outbox`
  t.same(others, [], 'they wait together')
  t.ok(waiting!['soon'], 'until the next place')
  t.notMatch(JSON.stringify(waiting), /undo#|of your account/, 'encrypted, as other mails')

  await sendWaiting()
  t.equal(received(user.email).length, 6, 'in one mail')
  const { subject, text, html } = received(user.email).at(-1)!
  t.equal(subject, 'Several changes of your account')
  t.equal(html, undefined)
  const headings = [...text.matchAll(/^\d{4}-\d\d-\d\d \d\d:\d\d UTC: (.*)$/mg)].map(([, heading]) => heading)
  t.strictSame([...new Set(headings)], [
    'An API key of your account was deleted', 'An API key was created for your account', 'Your password was set',
    'The e-mail address of your account was changed',
  ], 'all of them, in order')
  t.same(logged().filter(({ kind }) => kind === 'account'), [])
  const links = [...text.matchAll(/\/undo#token=([\w-]{43})$/mg)].map(([, token]) => token!)
  const [, ofPassword] = links.slice(-3)
  t.equal((await one.inject('POST', '/api/auth/undo', { payload: { token: ofPassword } })).statusCode, 204)
  t.equal((await one.login(user)).id, user.id, 'the owner has the account again')
})

nightly('11.5 a mail of several notices is bounded: of one kind it has six, and says that there were more', async (t) => {
  const nodes = await startNodes(t, { throttle: { ...throttle, verifiedMail: { burst: 1, perMinute: 0.01 } } })
  const { one, sql, sendWaiting, settle, received } = nodes
  const user = await one.createUser()
  await sql`update users set email_verified = true where id = ${user.id}`
  for (let index = 0; index < 9; index++) await createKey(one, user)
  await changePasswords(nodes, user, 1)
  await settle()
  await sendWaiting()
  t.equal(received(user.email).length, 2)
  const { text } = received(user.email)[1]!
  const count = (part: string) => text.split(part).length - 1
  t.same(
    ['UTC: An API key was created', 'There were more changes like this one', 'UTC: Your password was set'].map(count),
    [6, 1, 1]
  )
})

nightly('11.5 notices that wait are sent without the link if it is void by then, and not at all about a deleted user', async (t) => {
  const nodes = await startNodes(t, { throttle: { ...throttle, mail: { burst: 1, perMinute: 0.01 } } })
  const { one, sendWaiting, settle, received } = nodes
  const [user, gone] = [await one.createUser(), await one.createUser()]
  for (const owner of [user, gone]) for (let index = 0; index < 3; index++) await createKey(one, owner)
  await settle()
  const { headers } = one.admin
  await one.inject('PATCH', `/api/users/${user.id}`, { headers, payload: { disabled: true } })
  t.equal((await one.inject('DELETE', `/api/users/${gone.id}`, { headers })).statusCode, 204)
  await sendWaiting()
  t.equal(received(user.email).length, 2)
  t.match(received(user.email)[1], { subject: 'Several changes of your account' })
  t.notMatch(received(user.email)[1]!.text, '/undo#')
  t.equal(received(gone.email).length, 1)
})

nightly('11.5 who has one address of a mailbox after the other lets no notice of others wait, and not endless ones', async (t) => {
  const { one, sql, settle } = await startNodes(t, { throttle: { ...throttle, mail: { burst: 1, perMinute: 0.05 } } })
  const name = randomUUID()
  const mallory = await one.createUser()
  for (let index = 0; index < 16; index++) {
    const payload = { email: `${name}+${index}@example.com` }
    const { headers } = mallory
    t.equal((await one.inject('PATCH', `/api/users/${mallory.id}`, { headers, payload })).statusCode, 200)
  }
  await settle()
  const waiting = (userId: string) => sql`select due_at < now() + interval '20 minutes' as soon from outbox
    where data ->> 'userId' = ${userId}`
  t.equal((await waiting(mallory.id)).length, 10)
  const owner = await one.createUser({ email: `${name}+owner@example.com` })
  for (let index = 0; index < 3; index++) await createKey(one, owner)
  await settle()
  t.strictSame((await waiting(owner.id)).map(({ soon }) => soon), [true])
})

nightly('11.5 of 40 requests at the same time on two nodes, the owner gets as many mails as the limit allows', async (t) => {
  const { one, post, settle, received, sql } = await startNodes(t)
  const user = await one.createUser()
  const responses = await Promise.all(
    Array.from({ length: 40 }, () => post('/api/auth/password-reset', { email: user.email }))
  )
  t.same(new Set(responses.map(({ statusCode }) => statusCode)), new Set([202]), 'the responses do not say so')
  // A request that the database could not serve at once is repeated behind others.
  const requested = () => sql`select from audit where action = 'password.reset-request' and user_id = ${user.id}`
  await until('all links are stored', async () => (await requested()).length === 40)
  await settle()
  t.equal(received(user.email).length, 3)
})

t.test('11.5 whatever strangers cause, the owner of an account gets links that work, and is told what happens to the account', async (t) => {
  const nodes = await startNodes(t)
  const { one, post, sql, settle, received } = nodes
  for (const [what, isVerified, limit] of [['an unverified', false, 3], ['a verified', true, 5]] as const) {
    const user = await one.createUser()
    await sql`update users set email_verified = ${isVerified} where id = ${user.id}`
    for (let index = 0; index < 8; index++) {
      await post('/api/auth/sign-up', { name: 'Stranger', email: user.email, password: `pass ${randomUUID()}` })
      await post('/api/auth/password-reset', { email: user.email })
    }
    await settle()
    const flood = received(user.email)
    const resets = flood.filter(({ text }) => text.includes('/set-password#'))
    t.strictSame([flood.length, resets.length], [2 * limit, limit], `${what} address gets ${limit} of each kind`)
    const works = async (mail: typeof resets[0]) =>
      (await one.inject('POST', '/api/auth/password-reset/check', { payload: { token: tokenIn(mail) } })).statusCode ===
      200
    t.strictSame(
      await Promise.all(resets.slice(-3).map(works)),
      [true, true, true],
      'requests without a mail void no link that was sent'
    )

    await changePasswords(nodes, user, 1)
    await one.inject('PATCH', `/api/users/${user.id}`, { headers: one.admin.headers, payload: { email: newEmail() } })
    await settle()
    const notices = received(user.email).slice(flood.length).map(({ subject }) => subject)
    t.same(notices, ['Your password was set', 'The e-mail address of your account was changed'], 'the owner is told')
  }
})

nightly('11.5 links to verify an address that are not sent void none that was sent', async (t) => {
  const { one, settle, received } = await startNodes(t)
  const user = await one.createUser()
  for (let index = 0; index < 10; index++) {
    t.equal(
      (await one.inject('POST', `/api/users/${user.id}/email-verification`, { headers: user.headers })).statusCode, 202
    )
  }
  await settle()
  const mails = received(user.email)
  t.equal(mails.length, 3)
  t.equal((await one.inject(
    'POST', '/api/auth/email-verification/confirm', { headers: user.headers, payload: { token: tokenIn(mails[0]!) } }
  )).statusCode, 204)
})

nightly('11.5 addresses that differ in what follows a plus sign are one recipient, and the one without it is another', async (t) => {
  const { post, settle, inbox } = await startNodes(t)
  const name = randomUUID()
  const [plain, tagged] = [
    [name, name.toUpperCase(), name, name], ['+a', '+b+c', '+', '+D', '+a', '+e'].map((tag) => `${name}${tag}`),
  ]
  for (const local of [...tagged, ...plain]) {
    await post('/api/auth/sign-up', { name: 'Stranger', email: `${local}@Example.com` })
  }
  await settle()
  const received = (isTagged: boolean) =>
    inbox.mails.filter(({ to }) => to.toLowerCase().startsWith(name) && to.includes('+') === isTagged).length
  t.strictSame([received(true), received(false)], [3, 3])
})

nightly('11.5 sign-ups of strangers, for whatever addresses of a mailbox, take no mail from who signs up or verifies an address', async (t) => {
  const { one, post, settle, received } = await startNodes(t)
  const name = randomUUID()
  const [victim, user, tagged] = [`${name}@example.com`, await one.createUser(), await one.createUser({ email: `${name}+shop@example.com` })]
  for (let index = 0; index < 5; index++) {
    await post('/api/auth/sign-up', { name: 'Stranger', email: `${name}+${index}@example.com` })
    await post('/api/auth/sign-up', { name: 'Stranger', email: user.email })
    await post('/api/auth/sign-up', { name: 'Stranger', email: user.email.replace('@', `+${index}@`) })
  }
  await settle()
  await post('/api/auth/sign-up', { name: 'Victim', email: victim })
  for (const { id, headers } of [user, tagged]) {
    t.equal((await one.inject('POST', `/api/users/${id}/email-verification`, { headers })).statusCode, 202)
  }
  await settle()
  t.same(received(victim).map(({ subject }) => subject), ['Confirm your account'])
  for (const { email } of [user, tagged]) {
    t.equal(received(email).at(-1)!.subject, 'Confirm your e-mail address', email)
  }
})

nightly('11.5 a user who has an address of somebody else\'s mailbox takes at most a quarter of its mails, and all together four times those of one', async (t) => {
  const { one, sql, settle, received, inbox } = await startNodes(t)
  const name = randomUUID()
  const strangers = [await one.createUser(), await one.createUser(), await one.createUser(), await one.createUser()]
  const verify = async ({ id, headers }: typeof strangers[0]) =>
    one.inject('POST', `/api/users/${id}/email-verification`, { headers })
  const flood = async (stranger: typeof strangers[0], index: number) => {
    for (const tag of ['a', 'b']) {
      const payload = { email: `${name}+${index}${tag}@example.com` }
      await one.inject('PATCH', `/api/users/${stranger.id}`, { headers: stranger.headers, payload })
      for (let count = 0; count < 3; count++) await verify(stranger)
      // The next address makes links void that are not sent yet.
      await settle()
    }
  }
  const verifications = () => inbox.mails.filter(({ to, subject }) =>
    to.startsWith(name) && subject === 'Confirm your e-mail address').length
  await flood(strangers[0]!, 0)
  t.equal(verifications(), 3, 'a user, with whatever addresses of the mailbox')
  const owner = await one.createUser({ email: `${name}+own@example.com` })
  await verify(owner)
  await settle()
  t.equal(received(owner.email).length, 1, 'the owner gets the own ones')
  for (const [index, stranger] of strangers.entries()) await flood(stranger, index + 1)
  t.equal(verifications(), 12, 'however many users')
  const plain = await one.createUser({ email: `${name}@example.com` })
  await verify(plain)
  await sql`update users set email_verified = true where id = ${owner.id}`
  await one.inject('POST', '/api/auth/password-reset', { payload: { email: owner.email } })
  await inbox.of(owner.email, 2)
  await settle()
  t.equal(received(plain.email).length, 1, 'nothing of it counts for the address itself')
  t.equal(received(owner.email).length, 2, 'nor for an address that the owner has verified')
})

t.test('11.5 the limits of sign-ups and those of mails count an address by the same text', async (t) => {
  const { db } = await openConnection(t)
  for (const email of [
    'ada@example.com', 'Ada+x@Example.com', 'ada+@example.com', 'ada+x+y@example.com', '+ada@example.com', '+@example.com',
    'a.d.a+x@xn--bcher-kva.example', "o'hara+1@example.com",
  ]) {
    const { key } = await db.selectNoFrom(keyOfMailbox(sql`${email}::text`).as('key')).executeTakeFirstOrThrow()
    t.equal(key, foldMailbox(email), email)
  }
  t.equal(foldMailbox('Ada+x@Example.com'), 'ada+@example.com')
})

t.test('11.2 sign-ups whose mail is not sent take no place among those that may be pending', async (t) => {
  const { post, settle, received, sql } = await startNodes(t)
  const name = randomUUID()
  for (const email of ['+a', '+b', '+c', '+d', '+e'].map((tag) => `${name}${tag}@example.com`)) {
    await post('/api/auth/sign-up', { name: 'Stranger', email })
  }
  await settle()
  const pending = await sql`select email from sign_ups where email ilike ${`${name}%`} and expires_at > now()`
  t.equal(pending.length, 3)
  for (const { email } of pending) {
    const { statusCode } = await post('/api/auth/sign-up/check', { token: tokenIn(received(email)[0]!) })
    t.equal(statusCode, 200, 'and those whose mail is sent can be confirmed')
  }
})

t.test('11.5 organisations together send a recipient a few invitations, which take no place from other mails', async (t) => {
  const { one, two, sql, settle, received } = await startNodes(t, {
    organizations: true, throttle: { ...throttle, invitation: plenty },
  })
  const [guest, stranger] = [await one.createUser(), newEmail()]
  await sql`update users set email_verified = true where id = ${guest.id}`
  for (let count = 0; count < 6; count++) {
    const founder = await one.createUser()
    await sql`update users set email_verified = true where id = ${founder.id}`
    const node = count % 2 === 0 ? one : two
    const founded = await node.inject('POST', '/api/organizations', {
      headers: founder.headers, payload: { name: 'Analytical Engines', slug: `org-${randomUUID().slice(0, 12)}` },
    })
    for (const email of [guest.email, stranger, stranger.toUpperCase()]) {
      const { statusCode } = await node.inject('POST', `/api/organizations/${founded.json().id}/invitations`, {
        headers: founder.headers, payload: { email },
      })
      t.equal(statusCode, 202, 'the response does not tell')
    }
  }
  await settle()
  t.equal(received(guest.email).length, 5, 'to a verified address')
  t.equal(received(stranger).length + received(stranger.toUpperCase()).length, 3, 'to one that nobody has verified')
  await one.inject('POST', '/api/auth/password-reset', { payload: { email: guest.email } })
  await settle()
  t.equal(received(guest.email).length, 6)
})

nightly('11.5 after a while a recipient gets mails again', async (t) => {
  const { one, post, sql, settle, received } = await startNodes(
    t, { throttle: { ...throttle, mail: { burst: 3, perMinute: 0.05 } } }
  )
  const user = await one.createUser()
  const flood = async () => {
    for (let index = 0; index < 6; index++) await post('/api/auth/password-reset', { email: user.email })
    await settle()
    return received(user.email).length
  }
  t.equal(await flood(), 3)
  await sql`update mail_limits set free_at = free_at - interval '40 minutes'`
  t.equal(await flood(), 5, 'one in 20 minutes')
})

nightly('11.5 what is remembered of recipients is bounded', async (t) => {
  const { one, post, sql, settle } = await startNodes(t)
  const user = await one.createUser()
  for (const email of [newEmail(), newEmail(), user.email]) await post('/api/auth/password-reset', { email })
  await settle()
  const { db } = await openConnection(t)
  const schema = db.withSchema(one.options.schema!)
  const keys = async () => (await sql`select key from mail_limits order by free_at desc`).map(({ key }) => key)
  await sql`update mail_limits set free_at = now() - interval '1 second' where free_at < now() + interval '1 hour'`
  const remaining =
    (await sql`select key from mail_limits where free_at > now() order by free_at desc`).map(({ key }) => key)
  await deleteFreeLimits(schema, { table: 'mail_limits', keep: 10, limit: 1000 })
  t.same(await keys(), remaining, 'limits that are available again are forgotten')
  t.equal(remaining.length, 3, 'the user, and the two last sign-ups')
  await deleteFreeLimits(schema, { table: 'mail_limits', keep: 2, limit: 1000 })
  t.same(await keys(), remaining.slice(0, 2), 'and so are those that will be soonest, if there are too many')
})
