import { randomUUID } from 'node:crypto'
import type { Page } from 'playwright-core'
import t, { type Test } from 'tap'
import { audiences } from '../../app.ts'
import { createUsher } from '../helpers/app.ts'
import { checkLooks, openPage } from '../helpers/browser.ts'
import { createMailer } from '../helpers/mail.ts'
import { openSql } from '../helpers/sql.ts'

const PASSWORD = 'quiet lantern river'

async function serve (t: Test, options: Parameters<typeof createUsher>[1] = {}) {
  const inbox = createMailer()
  const usher = await createUsher(t, { mailer: inbox.mailer, ...options })
  const url = await usher.app.listen({ port: 0, host: '127.0.0.1' })
  const link = async (email: string, count = 1) =>
    /^http:\S+#token=\S+$/m.exec((await inbox.of(email, count)).at(-1)!.text)![0]
  return { ...usher, url, sql: openSql(t, usher), link }
}

const button = (page: Page, name: string) => page.getByRole('button', { name, exact: true })

/** Gives a user a passkey and an identity that were added some days ago. */
async function addWays (sql: ReturnType<typeof openSql>, userId: string, days: number): Promise<void> {
  const added = sql`now() - make_interval(days => ${days})`
  await sql`insert into passkeys (id, user_id, credential_id, public_key, counter, transports, name, backed_up, created_at)
    values (${randomUUID()}, ${userId}, ${Buffer.from(randomUUID())}, ${Buffer.from([1])}, 0, '{}', 'My <phone>', true, ${added})`
  await sql`insert into identities (id, user_id, provider, issuer, subject, created_at)
    values (${randomUUID()}, ${userId}, 'example', 'https://issuer.example', ${randomUUID()}, ${added})`
}

t.test('11.3 the page of a reset shows what was added lately, and removes what is not ticked', async (t) => {
  const { url, sql, link, createUser, inject } = await serve(t)
  const user = await createUser()
  await sql`update users set email_verified = true where id = ${user.id}`
  await addWays(sql, user.id, 3)
  await inject('POST', '/api/auth/password-reset', { payload: { email: user.email } })
  const { page } = await openPage(t, (await link(user.email)).replace(/^http:\/\/[^/]+/, url))
  await page.getByText('Keep only what is yours').waitFor()
  await checkLooks(t, page, 'reset-removes')
  t.equal(await page.getByRole('checkbox', { name: 'Passkeys: My <phone>' }).isChecked(), false)
  await page.getByRole('checkbox', { name: 'Passkeys: My <phone>' }).check()
  await page.getByLabel('New password').fill(PASSWORD)
  await button(page, 'Set password').click()
  // The reset logs its user in.
  await page.waitForURL(`${url}/account`)
  t.equal((await sql`select from passkeys where user_id = ${user.id}`).length, 1)
  t.equal((await sql`select from identities where user_id = ${user.id}`).length, 0)
})

t.test('11.3 the page of a reset says what is removed if nobody has confirmed the address', async (t) => {
  const { url, sql, link, createUser, inject } = await serve(t)
  const user = await createUser()
  await addWays(sql, user.id, 300)
  await inject('POST', '/api/auth/password-reset', { payload: { email: user.email } })
  const { page } = await openPage(t, (await link(user.email)).replace(/^http:\/\/[^/]+/, url))
  await page.getByText('This is removed:').waitFor()
  t.equal(await page.locator('[data-list] input').count(), 0, 'nothing of it can be kept')
  t.equal(await page.locator('[data-list] li').count(), 2)
})

t.test('11.3 a link that confirms an address asks for a password where its user is not logged in', async (t) => {
  const { url, link, createUser, inject, sql } = await serve(t)
  const user = await createUser()
  await inject('POST', `/api/users/${user.id}/email-verification`, { headers: user.headers })
  const { page } = await openPage(t, (await link(user.email)).replace(/^http:\/\/[^/]+/, url))
  await page.getByText('You are not logged in to this account here.').waitFor()
  await checkLooks(t, page, 'verify-elsewhere')
  await page.getByLabel('New password').fill(PASSWORD)
  await button(page, 'Confirm address').click()
  await page.getByText('Your e-mail address is confirmed.').waitFor()
  t.equal((await sql`select email_verified as verified from users where id = ${user.id}`)[0]!['verified'], true)
  t.equal((await inject('POST', '/api/auth/login', { payload: { email: user.email, password: PASSWORD } })).statusCode, 200)
})

t.test('11.3 a link that changes an address asks its user to log in first, and works afterwards', async (t) => {
  const { url, link, createUser, inject, sql } = await serve(t, { policy: { 'users:read-email': audiences.owners } })
  const user = await createUser()
  await sql`update users set email_verified = true where id = ${user.id}`
  const email = `${randomUUID()}@example.com`
  await inject('PATCH', `/api/users/${user.id}`, { headers: user.headers, payload: { email } })
  const address = (await link(email)).replace(/^http:\/\/[^/]+/, url)
  const { page } = await openPage(t, address)
  await page.getByText('Log in to your account in this browser').waitFor()
  await checkLooks(t, page, 'verify-log-in')
  t.equal(await button(page, 'Confirm address').isVisible(), false)
  await page.getByRole('link', { name: 'Log in' }).click()
  await page.getByLabel('E-mail address').fill(user.email)
  await page.getByLabel('Password', { exact: true }).fill(user.password)
  await button(page, 'Log in').click()
  await page.waitForURL(`${url}/account`)
  await page.goto(address)
  await button(page, 'Confirm address').click()
  await page.getByText('Your e-mail address is confirmed.').waitFor()
})
