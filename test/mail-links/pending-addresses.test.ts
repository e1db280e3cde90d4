import { randomUUID } from 'node:crypto'
import t from 'tap'
import { audiences } from '../../app.ts'
import { createUsher } from '../helpers/app.ts'
import { createMailer, tokenIn } from '../helpers/mail.ts'
import { nightly } from '../helpers/nightly.ts'

// Where addresses are hidden, a user who changes the own address must not learn whether another user has it.
const inbox = createMailer()
const policy = { 'users:read-email': audiences.owners }
const usher = await createUsher(t, { mailer: inbox.mailer, policy })
const { inject, admin, createUser } = usher

const confirm = (token: string, { headers }: { headers: Record<string, string> }) =>
  inject('POST', '/api/auth/email-verification/confirm', { payload: { token }, headers })
const newEmail = () => `${randomUUID()}@example.com`

t.test('11.1 a change to an address gets the same response whether it is free or taken, and takes effect by a link to it', async (t) => {
  const [user, other] = [await createUser(), await createUser()]
  const change = (email: string) =>
    inject('PATCH', `/api/users/${user.id}`, { headers: user.headers, payload: { email } })
  const email = newEmail()
  const [free, taken] = [await change(email), await change(other.email.toUpperCase())]
  t.same([free.statusCode, taken.statusCode], [200, 200])
  t.same({ ...free.json(), updatedAt: '' }, { ...taken.json(), updatedAt: '' })
  t.equal(free.json().email, user.email, 'the address is the former one for now')

  const replaced = await inject(
    'PUT', `/api/users/${user.id}`, { headers: user.headers, payload: { name: 'Renamed', email } }
  )
  t.match(replaced.json(), { name: 'Renamed', email: user.email }, 'other members change at once')

  const conflict = await confirm(await inbox.token(other.email.toUpperCase()), user)
  t.same([conflict.statusCode, conflict.json().code], [409, 'EMAIL_TAKEN'], 'the owner of the mailbox may know')
  t.equal((await confirm(await inbox.token(email, 2), user)).statusCode, 204)
  t.match(
    (await inject('GET', `/api/users/${user.id}`, { headers: user.headers })).json(), { email, emailVerified: true }
  )
  t.equal((await confirm(await inbox.token(email, 2), user)).statusCode, 400, 'once')

  const undo = tokenIn((await inbox.of(user.email, 1)).at(-1)!)
  t.equal((await inject('POST', '/api/auth/undo', { payload: { token: undo } })).statusCode, 204)
  t.match((await inject('GET', `/api/users/${user.id}`, { headers: admin.headers })).json(), { email: user.email })
  const entries =
    (await inject('GET', `/api/audit?user=${user.id}`, { headers: admin.headers })).json() as { action: string }[]
  t.same(entries.map(({ action }) => action).filter((action) => action.startsWith('user.')).sort(),
    ['user.create', 'user.email-change', 'user.email-verify', 'user.undo-change'])
})

t.test('11.3 an address that is set back by a link gives no link to whoever had changed it', async (t) => {
  const user = await createUser()
  const thief = newEmail()
  for (const [email, count] of [[thief, 1], [user.email, 2]] as const) {
    await inject('PATCH', `/api/users/${user.id}`, { headers: user.headers, payload: { email } })
    t.equal((await confirm(await inbox.token(email, count), user)).statusCode, 204)
  }
  // The mails are sent in order, so nothing else is on its way to the thief when this one arrives. The one before is
  // the notice.
  await inject('PATCH', `/api/users/${user.id}`, { headers: user.headers, payload: { email: thief } })
  t.same((await inbox.of(thief, 3)).map(({ subject, text }) => [subject, text.includes('/undo#')]).sort(), [
    ['Confirm your e-mail address', false], ['Confirm your e-mail address', false], [
      'The e-mail address of your account was changed', false,
    ],
  ])
})

t.test('11.3 a pending address that somebody else has requested: a notice without a link, and no earlier link works', async (t) => {
  const helper = await createUser()
  const { inject } = await createUsher(t, {
    ...usher.options, policy: { ...policy, 'users:replace': (actor, { ownerId }) => actor.id === ownerId || actor.id === helper.id },
  })
  const user = await createUser()
  const [own, given] = [newEmail(), newEmail()]
  await inject('PATCH', `/api/users/${user.id}`, { headers: user.headers, payload: { email: own } })
  t.equal((await confirm(await inbox.token(own), user)).statusCode, 204)
  const undo = await inbox.token(user.email)
  t.equal(
    (await inject('PATCH', `/api/users/${user.id}`, { headers: helper.headers, payload: { email: given } })).statusCode,
    200
  )
  t.equal((await confirm(await inbox.token(given), user)).statusCode, 204)
  const notice = (await inbox.of(own, 2))[1]!
  t.same([notice.subject, notice.text.includes('/undo#')], ['The e-mail address of your account was changed', false])
  t.equal((await inject('POST', '/api/auth/undo', { payload: { token: undo } })).statusCode, 400)
})

t.test('11.1 letter case changes at once, and admins, who see all addresses, get a conflict', async (t) => {
  const [user, other] = [await createUser(), await createUser()]
  const email = user.email.toUpperCase()
  t.equal(
    (await inject('PATCH', `/api/users/${user.id}`, { headers: user.headers, payload: { email } })).json().email, email
  )
  const payload = { email: other.email }
  t.equal((await inject('PATCH', `/api/users/${user.id}`, { headers: admin.headers, payload })).statusCode, 409)
})

t.test('11.1 two users who confirm the same address at the same time: one has it', async (t) => {
  const users = [await createUser(), await createUser()]
  const email = newEmail()
  for (const { id, headers } of users) await inject('PATCH', `/api/users/${id}`, { headers, payload: { email } })
  const tokens = (await inbox.of(email, 2)).map(tokenIn)
  // It is not known which of them is whose.
  const statuses = await Promise.all(tokens.flatMap((token) =>
    users.map(async (user) => (await confirm(token, user)).statusCode)))
  t.same(statuses.filter((status) => status === 204 || status === 409).sort(), [204, 409])
})

t.test('11.1 a pending address is void after another change, a new password or the end of the user', async (t) => {
  const user = await createUser()
  const [first, second] = [newEmail(), newEmail()]
  for (const email of [first, second]) {
    await inject('PATCH', `/api/users/${user.id}`, { headers: user.headers, payload: { email } })
  }
  const token = await inbox.token(first)
  t.equal((await confirm(await inbox.token(second), user)).statusCode, 204)
  t.equal((await confirm(token, user)).statusCode, 400)

  const third = newEmail()
  await inject('PATCH', `/api/users/${user.id}`, { headers: user.headers, payload: { email: third } })
  const payload = { currentPassword: user.password, password: 'another password' }
  t.equal((await inject('PUT', '/api/auth/password', { headers: user.headers, payload })).statusCode, 204)
  t.equal((await confirm(await inbox.token(third), user)).statusCode, 400, 'who changes the password may suspect a thief')

  const robbed = await createUser()
  const fifth = newEmail()
  await inject('PATCH', `/api/users/${robbed.id}`, { headers: robbed.headers, payload: { email: fifth } })
  const stolen = await inbox.token(fifth)
  t.equal((await inject('DELETE', `/api/users/${robbed.id}/sessions`, { headers: admin.headers })).statusCode, 204)
  t.equal((await confirm(stolen, robbed)).statusCode, 400, 'who ends the session may suspect a thief, too')

  const gone = await createUser()
  const fourth = newEmail()
  await inject('PATCH', `/api/users/${gone.id}`, { headers: gone.headers, payload: { email: fourth } })
  const last = await inbox.token(fourth)
  await inject('DELETE', `/api/users/${gone.id}`, { headers: gone.headers })
  t.equal((await confirm(last, gone)).statusCode, 400)
})

nightly('11.1 without a mailer, or beyond the limit, the address stays', async (t) => {
  const { inject, createUser } = await createUsher(t, { policy })
  const user = await createUser()
  const change = (email: string) =>
    inject('PATCH', `/api/users/${user.id}`, { headers: user.headers, payload: { email, name: 'New' } })
  const refused = await change(newEmail())
  t.same([refused.statusCode, refused.json().code], [409, 'NO_MAILER'])
  t.equal((await change(user.email)).statusCode, 200)

  const limited = await createUsher(
    t, { policy, mailer: inbox.mailer, throttle: { reset: { burst: 2, perMinute: 0.01 } } }
  )
  const somebody = await limited.createUser()
  const statuses: number[] = []
  for (let index = 0; index < 3; index++) {
    const payload = { email: newEmail() }
    statuses.push(
      (await limited.inject('PATCH', `/api/users/${somebody.id}`, { headers: somebody.headers, payload })).statusCode
    )
  }
  t.same(statuses, [200, 200, 429])
})
