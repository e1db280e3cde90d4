import { createHash, randomUUID } from 'node:crypto'
import t from 'tap'
import { createUsher, type LoggedIn } from '../helpers/app.ts'
import { testDatabaseUrl } from '../helpers/database.ts'
import { createMailer, tokenIn } from '../helpers/mail.ts'
import { nightly } from '../helpers/nightly.ts'
import { createProxy } from '../helpers/proxy.ts'
import { openSql, untilBlocked } from '../helpers/sql.ts'
import { until } from '../helpers/until.ts'

const invalid = { errors: ['token is invalid or has expired'] }
const CHANGED = 'The e-mail address of your account was changed'
const SET = 'Your password was set'
const NEXT = 'a password of tomorrow'
const THEFT = 'a password of a thief'

const inbox = createMailer()
const service = await createUsher(t, { mailer: inbox.mailer, publicUrl: 'https://api.example.com/base' })
const other = await createUsher(t, service.options)
const { inject, admin, createUser, login } = service
const sql = openSql(t, service)

const works = async ({ headers }: LoggedIn, node = service) =>
  (await node.inject('GET', '/api/protected', { headers })).statusCode
const tries = async (email: string, password: string) =>
  (await inject('POST', '/api/auth/login', { payload: { email, password } })).statusCode
const patch = (id: string, payload: object, { headers } = admin) =>
  inject('PATCH', `/api/users/${id}`, { headers, payload })
const undo = (token: string) => inject('POST', '/api/auth/undo', { payload: { token } })
const check = (token: string) => inject('POST', '/api/auth/undo/check', { payload: { token } })
const changePassword = (user: LoggedIn, password = NEXT) =>
  inject('PUT', '/api/auth/password', { headers: user.headers, payload: { currentPassword: user.password, password } })
const requestReset = (email: string) => inject('POST', '/api/auth/password-reset', { payload: { email } })
const confirmReset = (token: string, password = NEXT) =>
  inject('POST', '/api/auth/password-reset/confirm', { payload: { token, password } })
const verifyEmail = (token: string, { headers }: Pick<LoggedIn, 'headers'>) =>
  inject('POST', '/api/auth/email-verification/confirm', { payload: { token }, headers })
const refresh = (user: LoggedIn) => inject('POST', '/api/auth/refresh', { headers: { cookie: user.cookie } })
const stateOf = async (id: string) =>
  (await sql`select email, email_verified, email_changed_at, password_hash from users where id = ${id}`)[0]!
const subjectsOf = (email: string) => inbox.mails.filter(({ to }) => to === email).map(({ subject }) => subject)
const newEmail = () => `${randomUUID()}@example.com`

/**
 * Resolves with the subjects of the mails to an address that have no link to undo a change, when there are at least
 * `count` mails.
 */
async function noticesTo (email: string, count: number): Promise<string[]> {
  return (await inbox.of(email, count)).filter(({ subject, text }) => [CHANGED, SET].includes(subject) &&
    !text.includes('/undo#')).map(({ subject }) => subject)
}

interface Links { email: string, undo: string, reset: string, verification: string }

/** Moves a user to another address, and resolves with that and with a link of each kind. */
async function issueLinks (user: LoggedIn, { headers }: LoggedIn): Promise<Links> {
  const email = newEmail()
  t.equal((await patch(user.id, { email }, { ...user, headers })).statusCode, 200)
  const undo = await inbox.token(user.email)
  await sql`update users set email_verified = true where id = ${user.id}`
  await requestReset(email)
  const reset = await inbox.token(email)
  await sql`update users set email_verified = false where id = ${user.id}`
  t.equal((await inject('POST', `/api/users/${user.id}/email-verification`, { headers })).statusCode, 202)
  return { email, undo, reset, verification: await inbox.token(email, 2) }
}

/** Uses or checks the links, and resolves with the statuses. */
async function statusesOf ({ undo, reset, verification }: Links, end: '' | '/check' = ''): Promise<number[]> {
  const use = async (path: string, token: string) =>
    (await inject('POST', `/api/auth/${path}${end}`, { payload: { token, password: THEFT } })).statusCode
  const confirm = end === '' ? '/confirm' : ''
  return [
    await use('undo', undo),
    await use(`password-reset${confirm}`, reset),
    await use(`email-verification${confirm}`, verification),
  ]
}

/** Resolves when a request for a reset link for this address, which gets no mail, has been handled. */
async function untilHandled (id: string, count = 1): Promise<void> {
  await until('the request is handled', async () =>
    (await sql`select 1 from audit where user_id = ${id} and action = 'password.reset-request'`).length === count)
}

t.test('11.3 an address that is set back by hand gives no link to whoever had changed it, but a notice', async (t) => {
  const user = await createUser()
  const thief = `thief-${user.email}`
  await patch(user.id, { email: thief }, user)
  await inbox.of(user.email, 1)
  await patch(user.id, { email: user.email }, user)
  await patch(user.id, { email: `other-${user.email}` }, user)
  await inbox.of(user.email, 2)
  t.same(await noticesTo(thief, 1), [CHANGED])
})

t.test('11.3 takeover: an owner whose address a thief sets back to a former one gets a mail, so no takeover is silent', async (t) => {
  const [former, current, thief] = [newEmail(), newEmail(), newEmail()]
  const owner = await createUser({ email: former })
  await patch(owner.id, { email: current }, owner)
  await inject('POST', `/api/users/${owner.id}/email-verification`, { headers: owner.headers })
  t.equal((await verifyEmail(await inbox.token(current), owner)).statusCode, 204)
  const stolen = await login({ ...owner, email: current })
  for (const email of [former, thief]) t.equal((await patch(owner.id, { email }, stolen)).statusCode, 200)
  t.same((await inbox.of(current, 2)).map(({ subject }) => subject), ['Confirm your e-mail address', CHANGED])
  t.match((await inbox.of(current, 2))[1]!.text, /contact the people who run/)
  t.equal((await undo(await inbox.token(former, 2))).statusCode, 204)
  t.same([await works(stolen), (await stateOf(owner.id))['email']], [401, former])
})

t.test('11.3 a change by an admin or the host: a notice without a link, and no earlier link works', async (t) => {
  const changes: Record<string, (id: string, email: string) => Promise<{ statusCode?: number }>> = {
    'PATCH by an admin': (id, email) => patch(id, { email }),
    'PUT with a demotion': (id, email) =>
      inject('PUT', `/api/users/${id}`, { headers: admin.headers, payload: { name: 'Ada', email, role: 'user' } }),
    'by the host': async (id, email) => ({ ...await service.app.usher.users.update(id, { email }), statusCode: 200 }),
  }
  for (const [what, change] of Object.entries(changes)) {
    const leaver = await createUser({ role: what.includes('demotion') ? 'admin' : 'user' })
    const own = newEmail()
    await patch(leaver.id, { email: own }, leaver)
    await changePassword(leaver)
    const links = [await inbox.token(leaver.email), /#token=([\w-]{43})$/m.exec((await inbox.of(own, 1))[0]!.text)![1]!]
    for (const link of links) t.equal((await check(link)).statusCode, 204)
    const successor = newEmail()
    t.equal((await change(leaver.id, successor)).statusCode, 200, what)
    t.same(await noticesTo(own, 2), [CHANGED])
    for (const link of links) t.same([(await check(link)).json(), (await undo(link)).json()], [invalid, invalid])
    t.equal((await stateOf(leaver.id))['email'], successor)
    t.equal((await sql`select 1 from undo_links where user_id = ${leaver.id}`).length, 0)
    await patch(leaver.id, { name: 'Another', email: successor.toUpperCase() })
    t.same(subjectsOf(successor), [], 'what changes no mailbox sends nothing')
  }
})

t.test('11.3 a changed address: the former one gets a link that restores it and ends every session', async (t) => {
  const changes: Record<string, (user: LoggedIn, email: string) => Promise<{ statusCode: number }>> = {
    'PATCH by the user': (user, email) => patch(user.id, { email }, user),
    'PUT by the user': (user, email) =>
      inject('PUT', `/api/users/${user.id}`, { headers: user.headers, payload: { name: 'Ada', email } }),
  }
  for (const [what, change] of Object.entries(changes)) {
    const user = await createUser()
    const before = await stateOf(user.id)
    const email = newEmail()
    t.equal((await change(user, email)).statusCode, 200, what)
    const token = await inbox.token(user.email)
    const [mail] = await inbox.of(user.email, 1)
    t.equal(mail!.subject, CHANGED)
    t.match(mail!.text, /\n\nhttps:\/\/api\.example\.com\/base\/undo#token=[\w-]{43}\n\n/)
    t.notMatch(mail!.text, email, 'nothing that somebody has chosen is mailed')
    t.match((await sql`select encode(hash, 'hex') as hash, expires_at - created_at between interval '6 days 23 hours' and interval '7 days' as week from undo_links where user_id = ${user.id}`)[0],
      { hash: createHash('sha256').update(token).digest('hex'), week: true }, 'stored hashed')
    const thief = await login({ email, password: user.password })

    const response = await undo(token)
    t.same([response.statusCode, response.body], [204, ''])
    t.same(await stateOf(user.id), before)
    t.same([await works(user), await works(thief), (await refresh(thief)).statusCode], [401, 401, 401])
    await until('the other node rejects it', async () => await works(thief, other) === 401)
    t.same([await tries(user.email, user.password), await tries(email, user.password)], [200, 401])
    t.same((await undo(token)).json(), invalid, 'once')
    t.match(
      (await sql`select action, actor_id from audit where user_id = ${user.id} and action = 'user.undo-change'`)[0],
      { actor_id: user.id }
    )
    t.same(await noticesTo(email, 1), [CHANGED], 'who loses the address learns of it, without a link')
  }
})

t.test('11.3 a changed password: the address gets a link that restores the former one', async (t) => {
  const changes: Record<string, (user: LoggedIn) => Promise<{ statusCode: number }>> = {
    change: (user) => changePassword(user),
    reset: async (user) => {
      await requestReset(user.email)
      return confirmReset(await inbox.token(user.email))
    },
  }
  for (const [what, change] of Object.entries(changes)) {
    const user = await createUser()
    t.equal((await change(user)).statusCode, 204, what)
    const mails = what === 'reset' ? 2 : 1
    t.equal((await inbox.of(user.email, mails)).at(-1)!.subject, SET)
    const token = await inbox.token(user.email, mails)
    const session = await login({ email: user.email, password: NEXT })
    t.equal((await undo(token)).statusCode, 204)
    t.same(await noticesTo(user.email, mails + 1), [SET])
    t.same(
      [await works(session), await tries(user.email, NEXT), await tries(user.email, user.password)], [401, 401, 200]
    )
  }
  const created =
    (await inject('POST', '/api/users', { headers: admin.headers, payload: { name: 'Ada', email: newEmail() } })).json()
  await inject('POST', `/api/users/${created.id}/invitation`, { headers: admin.headers })
  t.equal((await confirmReset(await inbox.token(created.email))).statusCode, 204)
  t.notMatch((await inbox.of(created.email, 2))[1]!.text, '/undo', 'a first password replaces nothing')
  t.equal((await sql`select 1 from undo_links where user_id = ${created.id}`).length, 0)
})

t.test('11.3 what changes no mailbox and no password sends nothing', async (t) => {
  const user = await createUser()
  for (const payload of [
    { name: 'Another' }, { email: user.email }, { email: user.email.toUpperCase() }, { role: 'user' },
  ]) {
    t.equal((await patch(user.id, payload)).statusCode, 200)
  }
  t.equal((await patch(user.id, { email: admin.email })).statusCode, 409)
  t.equal((await changePassword({ ...user, password: 'wrong' })).statusCode, 403)
  t.equal((await sql`select 1 from undo_links where user_id = ${user.id}`).length, 0)
  t.same(subjectsOf(user.email), [])
  const { mailer, ...rest } = service.options
  const mute = await createUsher(t, rest)
  const silent = await mute.createUser()
  t.equal((await mute.inject(
    'PATCH', `/api/users/${silent.id}`, { headers: silent.headers, payload: { email: newEmail() } }
  )).statusCode, 200)
  t.equal((await mute.inject('PUT', '/api/auth/password', {
    headers: silent.headers, payload: { currentPassword: silent.password, password: NEXT },
  })).statusCode, 204)
  t.equal(
    (await sql`select 1 from undo_links where user_id = ${silent.id}`).length, 0, 'nothing is stored without a mailer'
  )
})

t.test('11.3 takeover: with a stolen token a thief gets no reset link for another address, and the owner restores the account', async (t) => {
  const owner = await createUser()
  const thief = await login(owner)
  const email = newEmail()
  t.equal((await patch(owner.id, { email }, thief)).statusCode, 200)
  const [known, unknown] = [await requestReset(email), await requestReset(newEmail())]
  t.same([known.statusCode, known.body, { ...known.headers, date: '' }], [
    unknown.statusCode, unknown.body, { ...unknown.headers, date: '' },
  ])
  await untilHandled(owner.id)
  t.same(subjectsOf(email), [])
  t.equal((await sql`select 1 from password_links where user_id = ${owner.id}`).length, 0)
  t.equal((await undo(await inbox.token(owner.email))).statusCode, 204)
  t.equal(await works(thief), 401)
  t.equal(await tries(owner.email, owner.password), 200)
})

t.test('11.3 takeover: a thief who verifies the new address and resets the password loses all of it', async (t) => {
  const owner = await createUser()
  const thief = await login(owner)
  const email = newEmail()
  await patch(owner.id, { email }, thief)
  await inject('POST', `/api/users/${owner.id}/email-verification`, { headers: thief.headers })
  t.equal((await verifyEmail(await inbox.token(email), thief)).statusCode, 204)
  await requestReset(email)
  t.equal((await confirmReset(await inbox.token(email, 2), THEFT)).statusCode, 204)
  const links = [await inbox.token(email, 3)]
  t.equal((await inbox.of(email, 3))[2]!.subject, SET)
  const again = await login({ email, password: THEFT })
  const third = newEmail()
  await patch(owner.id, { email: third }, again)
  links.push(await inbox.token(email, 4))
  await inject('POST', `/api/users/${owner.id}/email-verification`, { headers: again.headers })
  const verification = await inbox.token(third)
  await sql`update users set email_verified = true where id = ${owner.id}`
  await requestReset(third)
  const reset = await inbox.token(third, 2)

  t.equal((await undo(await inbox.token(owner.email))).statusCode, 204)
  t.same(
    [await tries(owner.email, owner.password), await tries(third, THEFT), await tries(email, THEFT)], [200, 401, 401]
  )
  t.same([await works(again), (await refresh(again)).statusCode], [401, 401])
  for (const link of links) t.same((await undo(link)).json(), invalid, 'the undo links of the thief are void')
  t.same((await verifyEmail(verification, again)).json(), invalid)
  t.same((await confirmReset(reset)).json(), invalid)
  t.equal((await stateOf(owner.id))['email'], owner.email)
})

t.test('11.3 reset links go to a new address once it is verified, or after seven days', async (t) => {
  const [verified, old, fresh] = [await createUser(), await createUser(), await createUser()]
  const users = [verified, old, fresh].map((user) => ({ ...user, next: newEmail() }))
  for (const user of users) await patch(user.id, { email: user.next }, user)
  await inject('POST', `/api/users/${verified.id}/email-verification`, { headers: admin.headers })
  t.equal((await verifyEmail(await inbox.token(users[0]!.next), verified)).statusCode, 204)
  await sql`update users set email_changed_at = now() - interval '7 days' where id = ${old.id}`
  await sql`update users set email_changed_at = now() - interval '7 days' + interval '1 minute' where id = ${fresh.id}`
  for (const { next } of users) await requestReset(next)
  await inbox.of(users[0]!.next, 2)
  await inbox.of(users[1]!.next, 1)
  await untilHandled(fresh.id)
  t.same(subjectsOf(users[2]!.next), [])
  t.equal((await undo(await inbox.token(fresh.email))).statusCode, 204)
  await inbox.of(users[2]!.next, 1)
  await requestReset(fresh.email)
  t.ok(await inbox.token(fresh.email, 2), 'the restored address gets links as before')
})

t.test('11.3 an earlier link undoes all later changes, a later one only its own', async (t) => {
  const user = await createUser()
  const [second, third] = [newEmail(), newEmail()]
  await patch(user.id, { email: second }, user)
  await changePassword(user)
  await patch(user.id, { email: third }, user)
  // Mails to one address may arrive in any order.
  const toSecond = await inbox.of(second, 2)
  const first = await inbox.token(user.email)
  const ofPassword = tokenIn(toSecond.find(({ subject }) => subject === SET)!)
  const ofSecond = tokenIn(toSecond.find(({ subject }) => subject !== SET)!)
  t.equal((await undo(ofSecond)).statusCode, 204)
  t.same([await tries(second, NEXT), await tries(second, user.password)], [200, 401])
  t.equal((await undo(ofPassword)).statusCode, 204)
  t.same([await tries(second, NEXT), await tries(second, user.password)], [401, 200])
  t.equal((await undo(first)).statusCode, 204)
  t.equal(await tries(user.email, user.password), 200)
})

t.test('11.3 a link that is wrong, expired or of a deleted user is rejected', async (t) => {
  const [late, gone] = [await createUser(), await createUser()]
  for (const user of [late, gone]) await patch(user.id, { email: newEmail() }, user)
  const tokens = [await inbox.token(late.email), await inbox.token(gone.email)]
  await sql`update undo_links set expires_at = now() where user_id = ${late.id}`
  await inject('DELETE', `/api/users/${gone.id}`, { headers: admin.headers })
  for (const token of [...tokens, '', 'x', 'x'.repeat(43), `${tokens[0]}x`]) {
    const response = await undo(token)
    t.same([response.statusCode, response.json()], [400, invalid])
  }
  t.same((await inject('POST', '/api/auth/undo')).json(), { errors: ['token is required'] })
  t.same((await inject('POST', '/api/auth/undo', { payload: { token: null } })).json(), {
    errors: ['token must be a string'],
  })
  t.equal(await works(late), 200)
})

nightly('11.3 if another user has the former address by now, the thief loses access nevertheless, and the link works later', async (t) => {
  for (const taken of [(email: string) => email, (email: string) => email.toUpperCase()]) {
    const owner = await createUser()
    const email = newEmail()
    await patch(owner.id, { email }, owner)
    await changePassword(owner, THEFT)
    const token = await inbox.token(owner.email)
    const thief = await login({ email, password: THEFT })
    await sql`update users set email_verified = true where id = ${owner.id}`
    const later = await inbox.token(email)
    const rival = await createUser({ email: taken(owner.email) })
    const response = await undo(token)
    t.same([response.statusCode, response.json()], [
      409, { error: 'This email address is already taken', code: 'EMAIL_TAKEN' },
    ])
    t.same([await works(thief), await tries(email, THEFT), await works(rival)], [401, 401, 200])
    t.same((await undo(later)).json(), invalid)
    await requestReset(email)
    await untilHandled(owner.id)
    t.notOk(subjectsOf(email).includes('Set a new password'), 'nor does the address get reset links')
    await patch(rival.id, { email: newEmail() })
    t.equal((await undo(token)).statusCode, 204)
    t.equal(await tries(owner.email, owner.password), 200)
  }
  for (let round = 0; round < 5; round++) {
    const owner = await createUser()
    await patch(owner.id, { email: newEmail() }, owner)
    const token = await inbox.token(owner.email)
    const create = () =>
      inject('POST', '/api/users', { headers: admin.headers, payload: { name: 'Rival', email: owner.email } })
    const statuses = (await Promise.all([undo(token), create()])).map(({ statusCode }) => statusCode)
    t.ok(
      [[204, 409], [409, 201]].some(([undone, created]) => statuses[0] === undone && statuses[1] === created),
      `${statuses}`
    )
    t.equal(await works(owner), 401)
  }
})

t.test('11.3 a user gets at most ten such links, and the first ones are kept; a notice is sent nevertheless', async (t) => {
  const user = await createUser()
  const emails = [user.email, ...Array.from({ length: 12 }, newEmail)]
  for (const email of emails.slice(1)) t.equal((await patch(user.id, { email }, user)).statusCode, 200)
  const mails = await Promise.all(
    emails.slice(0, -1).map(async (email) => (await inbox.of(email, 1)).map(({ text }) => text.includes('/undo#')))
  )
  t.same(mails, Array.from({ length: 12 }, (_, index) => [index < 10]))
  t.equal((await undo(await inbox.token(user.email))).statusCode, 204)
  t.equal((await stateOf(user.id))['email'], user.email)
})

nightly('11.3 after somebody else has disabled the user, ended all sessions or made an admin, nothing from before works', async (t) => {
  const repairs: Record<string, (id: string) => Promise<unknown>> = {
    'disabled and enabled': async (id) => {
      await patch(id, { disabled: true })
      return patch(id, { disabled: false })
    },
    'sessions ended by an admin': (id) => inject('DELETE', `/api/users/${id}/sessions`, { headers: admin.headers }),
    'sessions ended by the host': (id) => service.app.usher.sessions.endAll(id),
    'promoted by an admin': (id) => patch(id, { role: 'admin' }),
    'promoted with a new name': (id) => patch(id, { name: 'Another', role: 'admin' }),
    'promoted by the host': (id) => service.app.usher.users.update(id, { role: 'admin' }),
  }
  for (const [what, repair] of Object.entries(repairs)) {
    const user = await createUser()
    const thief = await login(user)
    const links = await issueLinks(user, thief)
    t.same(await statusesOf(links, '/check'), [204, 200, 204], what)
    await repair(user.id)
    t.same(await statusesOf(links, '/check'), [400, 400, 400], what)
    t.same(
      [await statusesOf(links), await works(user), (await refresh(thief)).statusCode], [[400, 400, 400], 401, 401], what
    )
    t.equal(await tries(links.email, user.password), 200, 'the password is the same')
  }
})

t.test('11.3 a disabled user has no link to undo a change, also of another release that left one', async (t) => {
  const user = await createUser()
  await patch(user.id, { email: newEmail() }, user)
  const token = await inbox.token(user.email)
  await sql`update users set disabled = true where id = ${user.id}`
  t.same([(await check(token)).json(), (await undo(token)).json()], [invalid, invalid])
})

t.test('11.3 ending the own sessions voids no link: a thief cannot take from the owner what undoes a change', async (t) => {
  const user = await createUser()
  const thief = await login(user)
  const links = await issueLinks(user, thief)
  t.equal((await inject('DELETE', '/api/auth/sessions', { headers: thief.headers })).statusCode, 204)
  t.equal((await inject('DELETE', `/api/users/${user.id}/sessions`, { headers: thief.headers })).statusCode, 204)
  t.same(await statusesOf(links, '/check'), [204, 200, 204])
})

t.test('11.3 a reset by mail leaves a thief no link, even one for a mailbox to which the address was moved and back', async (t) => {
  const owner = await createUser()
  const thief = await login(owner)
  const [first, second] = [newEmail(), newEmail()]
  for (const email of [first, second, owner.email]) t.equal((await patch(owner.id, { email }, thief)).statusCode, 200)
  const [toOwner, toThief] = [await inbox.token(owner.email), await inbox.token(first)]
  await inject('POST', `/api/users/${owner.id}/email-verification`, { headers: owner.headers })
  t.equal((await verifyEmail(await inbox.token(owner.email, 2), owner)).statusCode, 204)
  await requestReset(owner.email)
  t.same([(await check(toOwner)).statusCode, (await check(toThief)).statusCode], [204, 204])
  t.equal((await confirmReset(await inbox.token(owner.email, 3))).statusCode, 204)
  for (const link of [toOwner, toThief]) {
    t.same([(await check(link)).json(), (await undo(link)).json()], [invalid, invalid])
  }
  t.equal(await tries(owner.email, NEXT), 200)
})

t.test('11.3 a later link of the same mailbox undoes its change, and voids the links of others that came between', async (t) => {
  const owner = await createUser()
  const [first, second, third] = [newEmail(), newEmail(), newEmail()]
  const change = async (email: string) => t.equal((await patch(owner.id, { email }, owner)).statusCode, 200)
  await change(first)
  // Before another mail to the same address is sent.
  const early = await inbox.token(owner.email)
  for (const email of [second, owner.email, third]) await change(email)
  const [late, between] = [await inbox.token(owner.email, 2), await inbox.token(first)]
  t.equal((await undo(late)).statusCode, 204)
  t.same([(await check(between)).statusCode, (await check(early)).statusCode], [400, 204], 'the own earlier one stays')
  t.equal((await stateOf(owner.id))['email'], owner.email)
})

t.test('11.6 an undo whose address another user has by now does not lift the limits of that user', async (t) => {
  const owner = await createUser()
  await patch(owner.id, { email: newEmail() }, owner)
  const token = await inbox.token(owner.email)
  const rival = await createUser({ email: owner.email })
  t.equal(await tries(rival.email, 'a wrong one'), 401)
  t.equal((await undo(token)).statusCode, 409)
  t.same([...await sql`select count from login_failures where key = sha256(${rival.email}::bytea)`], [{ count: 1 }])
})

t.test('11.3 whatever a foreign key deletes with a user is void after a repair', async (t) => {
  const rows = await sql`
    select distinct conrelid::regclass::text as name from pg_constraint where contype = 'f' and confrelid = 'users'::regclass order by name`
  const issued = [
    'api_keys', 'verification_links', 'login_challenges', 'login_links', 'organization_invitations', 'password_links', 'sessions',
    'undo_links',
  ]
  // What the owner has set up. It is removed by whoever undoes that, and by `users reset-second-factor`. Others decide
  // about memberships.
  const own = ['identities', 'memberships', 'passkeys', 'recovery_codes', 'totp']
  // Drafts stay, without the times at which they would be published (22.4).
  const kept = ['post_drafts']
  t.same(rows.map(({ name }) => name), [...issued, ...own, ...kept].sort(), 'a table that is new here belongs to repairAccount')
})

t.test('11.3 expired links are deleted', async (t) => {
  const user = await createUser()
  await patch(user.id, { email: newEmail() }, user)
  await inject('POST', `/api/users/${user.id}/email-verification`, { headers: admin.headers })
  for (const table of ['undo_links', 'verification_links']) {
    await sql`update ${sql(table)} set expires_at = now() where user_id = ${user.id}`
  }
  await createUsher(t, service.options)
  for (const table of ['undo_links', 'verification_links']) {
    await until(`${table} are deleted`, async () =>
      (await sql`select 1 from ${sql(table)} where user_id = ${user.id}`).length === 0)
  }
})

t.test('11.3 an undo that races with a change, a login or another undo: no earlier session survives', async (t) => {
  for (let round = 0; round < 5; round++) {
    const owner = await createUser()
    const thief = await login(owner)
    await patch(owner.id, { email: newEmail() }, thief)
    const token = await inbox.token(owner.email)
    const [undone, changed] = await Promise.all([undo(token), patch(owner.id, { email: newEmail() }, thief)])
    t.equal(undone.statusCode, 204)
    t.ok([200, 401].includes(changed.statusCode), `${changed.statusCode}`)
    t.same(
      [(await stateOf(owner.id))['email'], await works(thief)], [owner.email, 401], 'a change by a session that ends'
    )
    const both = await Promise.all([changePassword(owner), undo(token)])
    t.same(both.map(({ statusCode }) => statusCode), [401, 400])
  }
  const owner = await createUser()
  const thief = await login(owner)
  await patch(owner.id, { email: newEmail() }, thief)
  const token = await inbox.token(owner.email)
  t.same(
    (await Promise.all(Array.from({ length: 10 }, () => undo(token)))).map(({ statusCode }) => statusCode).sort(),
    [204, ...Array.from({ length: 9 }, () => 400)]
  )
})

t.test('11.3 a change that waits for an undo to finish is rejected, because its session has ended', async (t) => {
  const changes: Record<string, (user: LoggedIn) => Promise<{ statusCode: number }>> = {
    address: (user) => patch(user.id, { email: newEmail() }, user),
    'address and role': (user) => inject('PUT', `/api/users/${user.id}`, {
      headers: user.headers, payload: { name: 'Ada', email: newEmail(), role: 'user' },
    }),
    password: (user) => changePassword(user),
  }
  for (const [what, change] of Object.entries(changes)) {
    const user = await createUser()
    const { changing } = await sql.begin(async (trx) => {
      await trx`select 1 from users where id = ${user.id} for no key update`
      const changing = change(user)
      await untilBlocked(sql, service)
      // What an undo does on another node, whose notification has not arrived.
      await trx`alter table sessions disable trigger session_ended`
      await trx`delete from sessions where user_id = ${user.id}`
      await trx`alter table sessions enable trigger session_ended`
      return { changing }
    })
    t.equal((await changing).statusCode, 401, what)
    t.equal(await tries(user.email, user.password), 200)
  }
})

nightly('11.3 an undo removes what a slow node was adding when the change was made', async (t) => {
  const proxy = await createProxy(t, await testDatabaseUrl())
  const slow = await createUsher(t, { ...service.options, databaseUrl: proxy.url, poolSize: 2 })
  const owner = await createUser()
  const thief = await login(owner)
  proxy.delayRequests(400)
  const added = slow.inject('POST', '/api/auth/keys', { headers: thief.headers, payload: { name: 'A key' } })
  const begun = () => sql`select from pg_stat_activity where state = 'idle in transaction' and query = 'begin'`
  await until('the slow node has begun', async () => (await begun()).length > 0)
  t.equal((await changePassword({ ...owner, headers: thief.headers }, THEFT)).statusCode, 204)
  const { statusCode, ...response } = await added
  t.equal(statusCode, 201, 'the key was added after the change')
  const { key } = response.json()
  const use = () => inject('GET', '/api/protected', { headers: { authorization: `Bearer ${key}` } })
  t.equal((await use()).statusCode, 200)
  t.equal((await undo(await inbox.token(owner.email))).statusCode, 204)
  t.equal((await use()).statusCode, 401, 'although its transaction began before the change')
})
