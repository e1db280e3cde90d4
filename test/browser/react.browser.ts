/// <reference lib="dom" />
import type { Page } from 'playwright-core'
import t from 'tap'
import { codeOf } from '../../plugins/sign-in/totp/codes.ts'
import { violationsIn, withoutOffers } from '../helpers/browser.ts'
import { logIn, openReactApp } from '../helpers/react-app.ts'

const button = (page: Page, name: string) => page.getByRole('button', { name, exact: true })
const section = (page: Page, name: string) => page.getByRole('region', { name, exact: true })
const step = () => Math.floor(Date.now() / 30_000)

t.test('15.6 the components sign up, log in with a second factor, and end another session', async (t) => {
  const app = await openReactApp(t)
  const email = 'ada@example.com'
  const password = 'quiet lantern river'
  const { page, problems } = await app.open('/app/sign-up', withoutOffers)

  await t.test('15.6 a failure stands at its field, which gets the focus', async (t) => {
    await page.getByLabel('Name').fill('Ada')
    await page.getByLabel('E-mail address').fill(email)
    await page.getByLabel('Password').fill('password')
    await page.getByLabel('About you').fill('A countess')
    await page.getByLabel('Newsletter').check()
    t.equal(await page.getByLabel('plan').count(), 0, 'only admins may write it')
    await button(page, 'Create account').click()
    await page.getByRole('alert').filter({ hasText: 'password' }).waitFor()
    t.equal(await page.evaluate(() => (document.activeElement as HTMLInputElement).name), 'password')
    t.equal(await page.getByLabel('Password').getAttribute('aria-invalid'), 'true')
    t.strictSame(await violationsIn(page), [])
  })

  await t.test('15.6 a sign-up sends a mail, with the fields of the host', async (t) => {
    await page.getByLabel('Password').fill(password)
    await page.getByLabel('Password').press('Enter')
    await page.getByText(`An e-mail is on its way to ${email}`).waitFor()
    const token = await app.inbox.token(email)
    const confirmed = await page.evaluate(async (token) => (await fetch('/accounts/api/auth/sign-up/confirm', {
      method: 'POST', headers: { 'Content-Type': 'application/json' }, body: JSON.stringify({ token }),
    })).json(), token)
    t.match(confirmed, { name: 'Ada', bio: 'A countess', newsletter: true })
  })

  let secret = ''
  let used = 0
  await t.test('15.6 a login, and an authenticator app on the page of the account', async (t) => {
    await page.getByRole('link', { name: 'I have an account' }).click()
    await logIn(page, { email, password: 'wrong lantern river' })
    await page.getByRole('alert').waitFor()
    t.strictSame(await violationsIn(page), [])
    await logIn(page, { email, password })
    await page.getByText('You are logged in as Ada').waitFor()
    await button(page, 'Account of Ada').click()
    await page.getByRole('link', { name: 'Your account' }).click()
    await button(page, 'Set up an authenticator app').click()
    const totp = section(page, 'Authenticator app')
    await totp.getByRole('img', { name: 'QR code for the authenticator app' }).waitFor()
    secret = (await totp.locator('[data-usher=secret]').textContent())!.replaceAll(' ', '')
    await totp.getByRole('textbox', { name: 'Code' }).fill('000 000')
    await button(page, 'Activate').click()
    await totp.getByRole('alert').waitFor()
    used = step()
    await totp.getByRole('textbox', { name: 'Code' }).fill(codeOf(secret, used))
    await button(page, 'Activate').click()
    await totp.getByRole('heading', { name: 'Your recovery codes' }).waitFor()
    t.equal(await totp.getByRole('listitem').count(), 10)
    t.strictSame(await violationsIn(page), [])
    await button(page, 'I have stored them').click()
    await totp.getByText('Recovery codes left: 10').waitFor()
  })

  const other = await app.open('/app/sign-in', withoutOffers)
  await t.test('15.6 the second factor is asked for', async (t) => {
    await logIn(other.page, { email, password })
    await other.page.getByRole('heading', { name: 'Confirm that it is you' }).waitFor()
    t.equal(await other.page.evaluate(() => (document.activeElement as HTMLInputElement).name), 'code')
    t.strictSame(await violationsIn(other.page), [])
    await other.page.getByLabel('Code').fill('000 000')
    await button(other.page, 'Log in').click()
    await other.page.getByRole('alert').waitFor()
    await other.page.getByLabel('Code').fill(codeOf(secret, used + 1))
    await button(other.page, 'Log in').click()
    await other.page.getByText('You are logged in as Ada').waitFor()
  })

  await t.test('15.6 a session is ended elsewhere, and its page says so', async (t) => {
    await page.reload()
    const sessions = section(page, 'Sessions')
    t.match(await sessions.getByRole('listitem').first().textContent(), 'this device')
    await sessions.getByRole('button', { name: /^End session/ }).click()
    await sessions.getByText('The session has ended.').waitFor()
    t.equal(await sessions.getByRole('listitem').count(), 1)
    t.equal(await page.evaluate(() => document.activeElement?.textContent), 'Sessions', 'the button is gone')
    // Its next request is rejected, and so is the refresh.
    await other.page.evaluate(() => (globalThis as never as { client: { get (path: string): unknown } })
      .client.get('/api/auth/sessions'))
    await button(other.page, 'Log in').waitFor()
  })

  await t.test('15.6 React reports no mistake in Strict Mode', async (t) => {
    const failed = /^Failed to load resource: the server responded with a status of 4/
    t.strictSame([...problems, ...other.problems].filter((problem) => !failed.test(problem)), [])
  })
})

t.test('15.6 the components upload a file, with step-up where the server wants it', async (t) => {
  const app = await openReactApp(t)
  const user = await app.createUser({ name: 'Grace' })
  const { page, problems } = await app.openAs(user, '/app/account')
  const files = section(page, 'Files')

  await t.test('15.6 a file is uploaded as a private one, shown to everybody, and deleted', async (t) => {
    await files.getByText('You have no files.').waitFor()
    await files.getByLabel('Upload a file').setInputFiles({
      name: 'notes.txt', mimeType: 'text/plain', buffer: Buffer.from('Hello'),
    })
    await files.getByText('The file is uploaded.').waitFor()
    const [stored] = (await app.inject('GET', '/api/uploads', { headers: user.headers })).json()
    t.match(stored, { filename: 'notes.txt', size: 5, visibility: 'private' })
    await button(page, 'Make public: notes.txt').click()
    const link = files.getByRole('link', { name: 'notes.txt' })
    await link.waitFor()
    t.equal(await page.evaluate(async (url) => (await fetch(url!)).text(), await link.getAttribute('href')), 'Hello')
    await button(page, 'Make private: notes.txt').click()
    await button(page, 'Links: notes.txt').click()
    await files.getByText('There is no link to this file.').waitFor()
    await files.getByLabel('For whom is the link?').fill('Ada')
    await files.getByLabel('It works for').selectOption({ label: 'an hour' })
    await button(page, 'Create a link').click()
    await files.getByText('Copy this link now').waitFor()
    const address = (await files.locator('[data-usher=secret]').textContent())!
    t.equal(await page.evaluate(async (url) => (await fetch(url)).text(), address), 'Hello')
    t.strictSame(await violationsIn(page), [])
    await button(page, 'Revoke: Ada').click()
    await files.getByText('There is no link to this file.').waitFor()
    t.equal(await page.evaluate(async (url) => (await fetch(url)).status, address), 404)
    await button(page, 'Done').click()
    await button(page, 'Delete: notes.txt').click()
    const dialog = page.getByRole('dialog')
    t.equal(await page.evaluate(() => document.activeElement?.textContent), 'Cancel')
    await page.keyboard.press('Escape')
    await dialog.waitFor({ state: 'detached' })
    t.equal(await page.evaluate(() => document.activeElement?.getAttribute('aria-label')), 'Delete: notes.txt')
    await page.keyboard.press('Enter')
    await dialog.getByRole('button', { name: 'Delete' }).click()
    await files.getByText('You have no files.').waitFor()
  })

  await t.test('15.6 an action is repeated after step-up, and left out if the user cancels', async (t) => {
    await app.sql`update sessions set auth_time = now() - interval '1 day' where user_id = ${user.id}`
    const keys = section(page, 'API keys')
    await button(page, 'Create an API key').click()
    await keys.getByLabel('What it is for').fill('Backups')
    await keys.getByLabel('users:list').check()
    await button(page, 'Create').click()
    const dialog = page.getByRole('dialog', { name: 'Confirm that it is you' })
    await dialog.getByLabel('Password').waitFor()
    t.strictSame(await violationsIn(page), [])
    await dialog.getByRole('button', { name: 'Cancel' }).click()
    await dialog.waitFor({ state: 'detached' })
    t.equal(await keys.getByRole('alert').count(), 0)
    await button(page, 'Create').click()
    await dialog.getByLabel('Password').fill('a wrong password')
    await dialog.getByRole('button', { name: 'Confirm', exact: true }).click()
    await dialog.getByRole('alert').waitFor()
    await dialog.getByLabel('Password').fill(user.password)
    await dialog.getByRole('button', { name: 'Confirm', exact: true }).click()
    await keys.getByText('Your new API key').waitFor()
    const [key] = (await app.inject('GET', '/api/auth/keys', { headers: user.headers })).json()
    t.match(key, { name: 'Backups', actions: ['users:list'] })
    t.strictSame(await violationsIn(page), [])
  })

  await t.test('15.6 the profile has the fields of the host, and sends what has changed', async (t) => {
    const profile = section(page, 'Profile')
    await profile.getByLabel('Name').fill('Grace Hopper')
    await profile.getByLabel('About you').fill('An admiral')
    const [request] = await Promise.all([
      page.waitForRequest((request) => request.method() === 'PATCH'), button(page, 'Save').click(),
    ])
    t.strictSame(request.postDataJSON(), { bio: 'An admiral', name: 'Grace Hopper' })
    await profile.getByText('Your profile is saved.').waitFor()
    await button(page, 'Account of Grace Hopper').waitFor()
    await profile.getByLabel('E-mail address').fill('hopper@example.com')
    await button(page, 'Save').click()
    await profile.getByText('open the link that was sent to hopper@example.com').waitFor()
    t.equal((await app.inbox.of('hopper@example.com', 1)).length, 1)
  })

  await t.test('15.6 the menu works with the keyboard, and logs out', async (t) => {
    const menu = button(page, 'Account of Grace Hopper')
    await menu.focus()
    await page.keyboard.press('Enter')
    t.equal(await menu.getAttribute('aria-expanded'), 'true')
    await page.keyboard.press('Tab')
    t.equal(await page.evaluate(() => document.activeElement?.textContent), 'Your account')
    await page.keyboard.press('Escape')
    t.equal(await menu.getAttribute('aria-expanded'), 'false')
    t.equal(await page.evaluate(() => document.activeElement?.textContent), 'GH')
    await page.keyboard.press('Enter')
    await page.locator('[data-usher=menu]').getByRole('button', { name: 'Log out' }).click()
    await page.getByRole('link', { name: 'Log in' }).waitFor()
  })

  const failed = /^Failed to load resource: the server responded with a status of 4/
  t.strictSame(problems.filter((problem) => !failed.test(problem)), [])
})
