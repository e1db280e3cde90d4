import type { Page } from 'playwright-core'
import t, { type Test } from 'tap'
import { codeOf } from '../../plugins/sign-in/totp/codes.ts'
import type { Mail } from '../../schema/options/options.ts'
import { createUsher, type LoggedIn } from '../helpers/app.ts'
import { checkLooks, openPage, openRow, type Watched } from '../helpers/browser.ts'
import { createMailer } from '../helpers/mail.ts'
import { openSql } from '../helpers/sql.ts'
import { until } from '../helpers/until.ts'

const button = (page: Page, name: string) => page.getByRole('button', { name, exact: true })
const email = (page: Page) => page.getByRole('textbox', { name: 'E-mail address' })
const focused = (page: Page) => page.evaluate(() => document.activeElement?.id)

async function serve (t: Test) {
  const inbox = createMailer()
  const usher = await createUsher(t, { prefix: '/accounts', mailer: inbox.mailer, loginMail: true })
  const { port } = new URL(await usher.app.listen({ port: 0, host: '127.0.0.1' }))
  const sql = openSql(t, usher)

  async function mailTo (email: string, subject: string, count = 1): Promise<Mail> {
    const found = () => inbox.mails.filter((mail) => mail.to === email && mail.subject.startsWith(subject))
    await until(`${count} mails`, () => found().length >= count)
    return found().at(-1)!
  }
  return {
    ...usher,
    sql,
    url: `http://localhost:${port}${usher.prefix}`,
    inbox,
    /** Resolves with the code and the link of the latest of at least `count` mails. */
    async received (email: string, count = 1): Promise<{ code: string, link: string }> {
      const { text } = await mailTo(email, 'Log in', count)
      const path = /\/accounts(\/login\/mail\/confirm#token=[\w-]+)$/m.exec(text)![1]!
      return { code: codeIn(text), link: `http://localhost:${port}${usher.prefix}${path}` }
    },
    stepUpCode: async (email: string) => codeIn((await mailTo(email, 'Your code')).text),
    async createVerified (): Promise<LoggedIn> {
      const user = await usher.createUser()
      await sql`update users set email_verified = true where id = ${user.id}`
      return user
    },
  }
}

const codeIn = (text: string): string => /^\d{4} \d{4}$/m.exec(text)![0]

/** Asks for a mail on the page for that. */
async function ask (page: Page, address: string): Promise<void> {
  await email(page).fill(address)
  await button(page, 'Send e-mail').click()
  await page.getByText('an e-mail is on its way').waitFor()
}

/** Checks that a page did nothing that it must not do, apart from requests that fail with these statuses. */
function watch (t: Test, { foreign, problems }: Watched, statuses: readonly number[] = []): void {
  t.strictSame(foreign, [])
  const failed = /^Failed to load resource: the server responded with a status of (\d+)/
  t.strictSame(problems.map((problem) => Number(failed.exec(problem)?.[1] ?? NaN) || problem), statuses)
}

t.test('16.6 by the code: ask, come back to a page that was loaded anew, enter a wrong code and the right one', async (t) => {
  const { url, createVerified, received } = await serve(t)
  const user = await createVerified()
  const watched = await openPage(t, `${url}/login?returnTo=/accounts/forgot-password`)
  const { page } = watched
  await email(page).fill(user.email)
  await page.getByRole('link', { name: 'Log in by e-mail, without a password' }).click()
  await button(page, 'Send e-mail').waitFor()
  t.equal(await email(page).inputValue(), user.email, 'what was typed is there')
  t.equal(await focused(page), 'mail-email')
  await button(page, 'Send e-mail').click()
  await page.getByText('an e-mail is on its way').waitFor()
  t.equal(await focused(page), 'mail-code')
  await page.reload()
  const code = page.getByLabel('Code from the e-mail')
  await code.waitFor()
  await code.fill('0000 0000')
  await page.keyboard.press('Enter')
  await page.getByText('This code is wrong, was used or has expired.').waitFor()
  t.equal(await focused(page), 'mail-code')
  await code.fill((await received(user.email)).code)
  await page.keyboard.press('Enter')
  await page.waitForURL(`${url}/forgot-password`)
  watch(t, watched, [401])
})

t.test('16.6 by the link: another browser says which account it is, and opening it uses nothing up', async (t) => {
  const { url, createVerified, received, sql, inject } = await serve(t)
  const user = await createVerified()
  const asking = await openPage(t, `${url}/login/mail`)
  await ask(asking.page, user.email)
  const { link } = await received(user.email)
  const before = (await sql`select 1 from sessions`).length

  // As a program that scans mails does, with scripts.
  for (let visit = 0; visit < 2; visit++) {
    const scanner = await openPage(t, link)
    await scanner.page.getByText(user.email).waitFor()
    t.notOk(scanner.page.url().includes('token'), 'the address bar forgets the token')
  }
  t.equal((await sql`select 1 from sessions`).length, before)

  const other = await openPage(t, link)
  await other.page.getByText('This browser has not asked for it. Go on only if the address is yours.').waitFor()
  await other.page.getByText(user.email, { exact: true }).waitFor()
  t.notOk(await other.page.getByText('Nobody has confirmed this address before.').isVisible())
  await other.page.reload()
  await other.page.getByText(user.email, { exact: true }).waitFor()
  await button(other.page, 'Log in').click()
  await other.page.waitForURL(`${url}/account`)
  await button(other.page, 'Log out').waitFor()
  watch(t, other)

  // The browser that has asked gets nothing by that, neither at once nor when it is loaded anew.
  await asking.page.reload()
  await asking.page.getByLabel('Code from the e-mail').waitFor()
  await asking.page.goto(`${url}/account`)
  await asking.page.waitForURL(/\/login/)

  const again = await openPage(t, link)
  await again.page.getByText('This link has expired or was used already.').waitFor()
  await again.page.getByRole('link', { name: 'Request another e-mail' }).click()
  await again.page.waitForURL(`${url}/login/mail`)
  const empty = await openPage(t, `${url}/login/mail/confirm`)
  await empty.page.getByText('Open this page with the link from your e-mail.').waitFor()
  t.equal((await inject('GET', '/api/protected')).statusCode, 401)
})

t.test('16.6 an account that nobody has verified: the page says what is removed', async (t) => {
  const { url, createUser, received, inject } = await serve(t)
  const user = await createUser()
  const watched = await openPage(t, `${url}/login/mail`)
  await ask(watched.page, user.email)
  await watched.page.goto((await received(user.email)).link)
  await watched.page.getByText('Nobody has confirmed this address before.').waitFor()
  t.notOk(await watched.page.getByText('This browser has not asked for it.').isVisible())
  await button(watched.page, 'Log in').click()
  await watched.page.waitForURL(`${url}/account`)
  await watched.page.goto(`${url}/account/security`)
  await openRow(watched.page, 'password')
  await watched.page.getByText('You have no password.').waitFor()
  t.notOk(await watched.page.getByLabel('Current password').isVisible())
  await checkLooks(t, watched.page, 'account-without-password')
  t.equal((await inject('POST', '/api/auth/login', { payload: user })).statusCode, 401)
  watch(t, watched)
})

t.test('16.2 a user without a password confirms by a code of a mail; who has one may choose', async (t) => {
  const { url, createVerified, received, stepUpCode, sql } = await serve(t)
  const user = await createVerified()
  const watched = await openPage(t, `${url}/login/mail`)
  await ask(watched.page, user.email)
  await watched.page.getByLabel('Code from the e-mail').fill((await received(user.email)).code)
  await watched.page.keyboard.press('Enter')
  await watched.page.waitForURL(`${url}/account`)
  await watched.page.goto(`${url}/account/security`)
  await openRow(watched.page, 'totp')
  const setUp = button(watched.page, 'Set up an authenticator app')
  await setUp.waitFor()
  await sql`update sessions set auth_time = now() - interval '1 day'`
  await setUp.click()
  const dialog = watched.page.getByRole('dialog', { name: 'Confirm that it is you' })
  await dialog.getByLabel('Password', { exact: true }).waitFor()
  await button(watched.page, 'Send me a code by e-mail').waitFor()
  await checkLooks(t, watched.page, 'step-up-choice')
  await watched.page.keyboard.press('Escape')

  await sql`update users set password_hash = null where id = ${user.id}`
  await setUp.click()
  await button(watched.page, 'Send me a code by e-mail').waitFor()
  t.notOk(await dialog.getByLabel('Password', { exact: true }).isVisible(), 'there is none to ask for')
  await button(watched.page, 'Send me a code by e-mail').click()
  const code = dialog.getByLabel('Code from the e-mail')
  await code.waitFor()
  t.equal(await focused(watched.page), 'step-up-mail-code')
  await checkLooks(t, watched.page, 'step-up-mail-code')
  await code.fill('0000 0000')
  await watched.page.keyboard.press('Enter')
  await dialog.getByText('This code is wrong or was used already.').waitFor()
  await code.fill(await stepUpCode(user.email))
  await watched.page.keyboard.press('Enter')
  await watched.page.getByRole('img', { name: 'QR code for the authenticator app' }).waitFor()
  watch(t, watched, [403, 403, 403])
})

t.test('16.2 a user who has nothing to confirm with is led to the login', async (t) => {
  const { url, createUser, sql } = await serve(t)
  const user = await createUser()
  const { page } = await openPage(t, `${url}/login`)
  await email(page).fill(user.email)
  await page.getByLabel('Password', { exact: true }).fill(user.password)
  await button(page, 'Log in').click()
  await page.waitForURL(`${url}/account`)
  await page.goto(`${url}/account/security`)
  await openRow(page, 'totp')
  await button(page, 'Set up an authenticator app').waitFor()
  await sql`update users set password_hash = null where id = ${user.id}`
  await sql`update sessions set auth_time = now() - interval '1 day'`
  await button(page, 'Set up an authenticator app').click()
  await page.getByText('For this, log in once more.').waitFor()
  await checkLooks(t, page, 'step-up-none')
  await page.getByRole('dialog').getByRole('link', { name: 'Log in' }).click()
  await page.waitForURL(`${url}/login`)
})

t.test('16.6 the link of a user with a second factor asks for it on the same page', async (t) => {
  const { url, createVerified, received, inject } = await serve(t)
  const user = await createVerified()
  const { secret } = (await inject('POST', '/api/auth/totp', { headers: user.headers })).json()
  const step = Math.floor(Date.now() / 30_000)
  await inject('POST', '/api/auth/totp/confirm', { headers: user.headers, payload: { code: codeOf(secret, step) } })
  await inject('POST', '/api/auth/login/mail', { payload: { email: user.email } })
  const { page } = await openPage(t, (await received(user.email)).link)
  await page.getByText(user.email, { exact: true }).waitFor()
  await button(page, 'Log in').click()
  await page.getByText('The six digits that your authenticator app shows.').waitFor()
  t.equal(await focused(page), 'code')
  await page.locator('#code').fill(codeOf(secret, step + 1))
  await page.keyboard.press('Enter')
  await page.waitForURL(`${url}/account`)
})

t.test('16.6 without JavaScript: ask, and enter the code; the link says what to do', async (t) => {
  const { url, createVerified, received } = await serve(t)
  const user = await createVerified()
  const { page } = await openPage(t, `${url}/login?returnTo=/accounts/forgot-password`, { javaScriptEnabled: false })
  await page.getByRole('link', { name: 'Log in by e-mail, without a password' }).click()
  await email(page).fill(user.email)
  await button(page, 'Send e-mail').click()
  await page.getByText('an e-mail is on its way').waitFor()
  const { code, link } = await received(user.email)
  const field = page.getByLabel('Code from the e-mail')
  await field.fill('0000 0000')
  await button(page, 'Log in').click()
  await page.getByText('This code is wrong, was used or has expired.').waitFor()
  await field.fill(code)
  await button(page, 'Log in').click()
  await page.waitForURL(`${url}/forgot-password`)
  await page.goto(link)
  // Chromium shows what is in <noscript> only if scripts are off in its settings.
  t.match(await page.content(), /<noscript>.*The link needs JavaScript\./)
})
