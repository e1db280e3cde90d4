/// <reference lib="dom" />
import type { Page } from 'playwright-core'
import t from 'tap'
import { codeOf } from '../../plugins/sign-in/totp/codes.ts'
import { addAuthenticator, violationsIn, withoutOffers } from '../helpers/browser.ts'
import { openReactApp } from '../helpers/react-app.ts'

const button = (page: Page, name: string) => page.getByRole('button', { name, exact: true })
const section = (page: Page, name: string) => page.getByRole('region', { name, exact: true })

t.test('15.6 a passkey is added, renamed, used for a login, offered in the field, and removed', async (t) => {
  const app = await openReactApp(t)
  const user = await app.createUser({ name: 'Ada' })
  const { page } = await app.openAs(user, '/app/account')
  await addAuthenticator(page)
  const passkeys = section(page, 'Passkeys')
  await button(page, 'Add a passkey').click()
  await passkeys.getByText('The passkey is added.').waitFor()
  await passkeys.getByRole('button', { name: /^Rename/ }).click()
  await passkeys.getByRole('textbox', { name: 'Name of the passkey' }).fill('My laptop')
  t.strictSame(await violationsIn(page), [])
  await page.keyboard.press('Enter')
  await passkeys.getByText('The passkey is renamed.').waitFor()
  await button(page, 'Account of Ada').click()
  await page.locator('[data-usher=menu]').getByRole('button', { name: 'Log out' }).click()
  await page.getByRole('link', { name: 'Log in' }).waitFor()

  // The authenticator approves of what the field offers.
  await page.goto(`${app.url}/app/sign-in`)
  await page.getByText('You are logged in as Ada').waitFor()
  await button(page, 'Log out').click()
  await withoutOffers(page)
  await page.goto(`${app.url}/app/sign-in`)
  await button(page, 'Log in with a passkey').click()
  await page.getByText('You are logged in as Ada').waitFor()

  // It also confirms who the user is.
  await page.goto(`${app.url}/app/account`)
  await app.sql`update sessions set auth_time = now() - interval '1 day' where user_id = ${user.id}`
  await button(page, 'Remove: My laptop').click()
  await page.getByRole('dialog').getByRole('button', { name: 'Remove' }).click()
  await page.getByRole('dialog', { name: 'Confirm that it is you' }).getByRole('button', { name: 'Use a passkey' }).click()
  await passkeys.getByText('The passkey is removed.').waitFor()
  await passkeys.getByText('You have no passkey yet.').waitFor()
  t.equal(await page.evaluate(() => document.activeElement?.textContent), 'Passkeys')
})

t.test('15.6 a login by mail, and a link to set a password', async (t) => {
  const app = await openReactApp(t)
  const user = await app.createUser({ name: 'Ada' })
  const { page } = await app.open('/app/sign-in', withoutOffers)
  await button(page, 'Forgot your password?').click()
  await page.getByLabel('E-mail address').fill(user.email)
  await button(page, 'Send link').click()
  await page.getByText('a link to set a password is on its way').waitFor()
  t.match((await app.inbox.of(user.email, 1))[0], { text: /set-password#token=/ })
  await button(page, 'Log in').click()
  await button(page, 'Log in by e-mail, without a password').click()
  t.equal(await page.evaluate(() => (document.activeElement as HTMLInputElement).name), 'email')
  await page.getByLabel('E-mail address').fill(user.email)
  await button(page, 'Send e-mail').click()
  await page.getByText(`If there is an account for ${user.email}`).waitFor()
  t.strictSame(await violationsIn(page), [])
  await page.getByRole('textbox', { name: 'Code from the e-mail' }).fill('0000 0000')
  await button(page, 'Log in').click()
  await page.getByRole('alert').waitFor()
  const { text } = (await app.inbox.of(user.email, 2)).at(-1)!
  await page.getByRole('textbox', { name: 'Code from the e-mail' }).fill(/^\d{4} \d{4}$/m.exec(text)![0])
  await button(page, 'Log in').click()
  await page.getByText('You are logged in as Ada').waitFor()
})

t.test('15.6 whoever must have a second factor sees how to get one, and then the rest', async (t) => {
  const app = await openReactApp(t, { secondFactor: 'everyone' })
  // The admin of the tests has no second factor either.
  const user = { name: 'Ada', email: 'ada@example.com', password: 'quiet lantern river' }
  await app.app.usher.users.create(user)
  const { page } = await app.openAs(user, '/app/account')
  await page.getByText('Your account needs a second proof of who you are.').waitFor()
  t.equal(await section(page, 'Profile').count(), 0)
  await button(page, 'Set up an authenticator app').click()
  const totp = section(page, 'Authenticator app')
  const secret = (await totp.locator('[data-usher=secret]').textContent())!.replaceAll(' ', '')
  await totp.getByRole('textbox', { name: 'Code' }).fill(codeOf(secret, Math.floor(Date.now() / 30_000)))
  await button(page, 'Activate').click()
  await button(page, 'I have stored them').click()
  await section(page, 'Profile').waitFor()
  await section(page, 'Files').waitFor()
})

t.test('15.6 the password is changed, the data are downloaded, and the account is deleted', async (t) => {
  const app = await openReactApp(t)
  const user = await app.createUser({ name: 'Ada' })
  const { page } = await app.openAs(user, '/app/account')
  const password = section(page, 'Password')
  await password.getByLabel('Current password').fill('not the password')
  await password.getByLabel('New password').fill('quiet lantern river')
  await button(page, 'Change password').click()
  await password.getByRole('alert').waitFor()
  t.equal(await page.evaluate(() => (document.activeElement as HTMLInputElement).name), 'currentPassword')
  await password.getByLabel('Current password').fill(user.password)
  await button(page, 'Change password').click()
  await password.getByText('Your password is changed.').waitFor()
  t.equal(await password.getByLabel('Current password').inputValue(), '')

  const [download] = await Promise.all([page.waitForEvent('download'), button(page, 'Download my data').click()])
  t.match(download.suggestedFilename(), /^localhost-\d{4}-\d\d-\d\d\.json$/)
  await button(page, 'Delete my account').click()
  await page.getByRole('dialog').getByRole('button', { name: 'Delete my account' }).click()
  await page.getByRole('link', { name: 'Log in' }).waitFor()
  t.equal(await section(page, 'Your data').count(), 0)
  t.equal((await app.inject('GET', `/api/users/${user.id}`, { headers: app.admin.headers })).statusCode, 404)
})
