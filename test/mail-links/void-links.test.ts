import { randomUUID } from 'node:crypto'
import t, { type Test } from 'tap'
import { createUsher } from '../helpers/app.ts'
import { createMailer } from '../helpers/mail.ts'
import { nightly } from '../helpers/nightly.ts'
import { openSql } from '../helpers/sql.ts'
import { until } from '../helpers/until.ts'

const newEmail = () => `${randomUUID()}@example.com`

/** Starts a node whose mail server is unavailable at first. */
async function startWithoutMailServer (t: Test) {
  const inbox = createMailer()
  let isAvailable = false
  const usher = await createUsher(t, {
    loginMail: true,
    async mailer (mail) {
      if (!isAvailable) throw new Error('unavailable')
      await inbox.mailer(mail)
    },
  })
  const sql = openSql(t, usher)
  const waiting = () => sql`select data from outbox where attempts > 0 and lease is null`
  const countWaiting = async (isNotice: boolean) =>
    (await waiting()).filter(({ data }) => (data.budget === 'account') === isNotice).length

  return {
    ...usher,
    sql,
    inbox,
    requestReset: (email: string) => usher.inject('POST', '/api/auth/password-reset', { payload: { email } }),
    waiting,
    /** Resolves when this many mails with a link that somebody has requested wait for another attempt. */
    waitForLinks: (count: number) => until(`${count} waiting links`, async () => await countWaiting(false) === count),
    /**
     * Resolves when this many notices of a change wait. Links that a change makes void may have been dropped by then,
     * by another attempt.
     */
    waitForNotices: (count: number) =>
      until(`${count} waiting notices`, async () => await countWaiting(true) === count),
    /** Makes the mail server available, and resolves when no mail waits. */
    async recover (): Promise<void> {
      isAvailable = true
      const hurry = () => sql`update outbox set due_at = now() where lease is null`
      await hurry()
      // It also wakes the node.
      const somebody = await usher.createUser()
      await usher.inject('POST', '/api/auth/password-reset', { payload: { email: somebody.email } })
      await inbox.of(somebody.email, 1)
      // An attempt may have been under way, and has failed since.
      await until('an empty outbox', async () => {
        await hurry()
        return (await sql`select 1 from outbox`).length === 0
      })
    },
  }
}

nightly('12.5 links that wait when their user is disabled or deleted are not sent afterwards; notices about a disabled one are, without the link', async (t) => {
  const { inject, admin, createUser, requestReset, waitForLinks, waitForNotices, recover, inbox, sql, waiting } =
    await startWithoutMailServer(t)
  const users = [await createUser(), await createUser(), await createUser()] as const
  const former = users.map(({ email }) => email)
  for (const { id, headers, email } of users) {
    await requestReset(email)
    await inject('POST', `/api/users/${id}/email-verification`, { headers })
  }
  await waitForLinks(6)
  // A mail with a link that undoes the change.
  for (const { id, headers } of users.slice(0, 2)) {
    await inject('PATCH', `/api/users/${id}`, { headers, payload: { email: newEmail() } })
  }
  await waitForNotices(2)
  const [deleted, disabled] = users
  t.equal((await inject('DELETE', `/api/users/${deleted.id}`, { headers: deleted.headers })).statusCode, 204)
  t.equal((await inject(
    'PATCH', `/api/users/${disabled.id}`, { headers: admin.headers, payload: { disabled: true } }
  )).statusCode, 200)
  await until('the end of the deletion', async () => (await sql`select 1 from deleted_users`).length === 0)
  t.notMatch(JSON.stringify(await waiting()), deleted.email, 'the address of a deleted user is nowhere in the outbox')

  await recover()
  const received = former.map((email) => inbox.mails.filter(({ to }) => to === email))
  t.strictSame(received.map((mails) => mails.length), [0, 1, 2])
  t.strictSame(received[1]!.map(({ subject }) => subject), ['The e-mail address of your account was changed'])
  t.notMatch(JSON.stringify(received[1]), 'token=')
})

nightly('11.3 notices of changes that a thief made void the undo link of are sent all the same, without the link', async (t) => {
  const { inject, createUser, admin, waitForNotices, recover, inbox } = await startWithoutMailServer(t)
  const user = await createUser()
  const thief = newEmail()
  const change = { currentPassword: user.password, password: 'a password of a thief' }
  t.equal((await inject('PUT', '/api/auth/password', { headers: user.headers, payload: change })).statusCode, 204)
  t.equal(
    (await inject('PATCH', `/api/users/${user.id}`, { headers: user.headers, payload: { email: thief } })).statusCode,
    200
  )
  await waitForNotices(2)
  // It voids every link, and its own notice has none.
  t.equal((await inject(
    'PATCH', `/api/users/${user.id}`, { headers: admin.headers, payload: { email: user.email } }
  )).statusCode, 200)
  await waitForNotices(3)
  await recover()
  const received = inbox.mails.filter(({ to }) => to === user.email)
  t.strictSame(
    received.map(({ subject }) => subject).toSorted(),
    ['The e-mail address of your account was changed', 'Your password was set']
  )
  for (const { subject, text, html } of received) {
    t.notMatch(text, '/undo', subject)
    t.notMatch(html, '/undo', subject)
  }
  t.equal(inbox.mails.filter(({ to }) => to === thief).length, 1)
})

t.test('16.6 a mail to log in that waits when the address or the password changes is not sent afterwards', async (t) => {
  const { inject, createUser, admin, waitForLinks, recover, inbox } = await startWithoutMailServer(t)
  const users = [await createUser(), await createUser(), await createUser()] as const
  for (const { email } of users) await inject('POST', '/api/auth/login/mail', { payload: { email } })
  await waitForLinks(3)
  const [moved, renewed, left] = users
  await inject('PATCH', `/api/users/${moved.id}`, { headers: admin.headers, payload: { email: newEmail() } })
  const payload = { currentPassword: renewed.password, password: 'another long password' }
  t.equal((await inject('PUT', '/api/auth/password', { headers: renewed.headers, payload })).statusCode, 204)
  await recover()
  const received = (email: string) =>
    inbox.mails.filter(({ to, subject }) => to === email && subject.startsWith('Log in')).length
  t.strictSame([received(moved.email), received(renewed.email), received(left.email)], [0, 0, 1])
})

t.test('12.5 a mail whose link was made void while it waited is not sent, and the notice about the reason is', async (t) => {
  const { inject, createUser, requestReset, waitForLinks, waitForNotices, recover, inbox } =
    await startWithoutMailServer(t)
  const user = await createUser()
  await requestReset(user.email)
  await waitForLinks(1)
  const payload = { currentPassword: user.password, password: 'another long password' }
  t.equal((await inject('PUT', '/api/auth/password', { headers: user.headers, payload })).statusCode, 204)
  await waitForNotices(1)
  await recover()
  t.strictSame(
    inbox.mails.filter(({ to }) => to === user.email).map(({ subject }) => subject), ['Your password was set']
  )
})
