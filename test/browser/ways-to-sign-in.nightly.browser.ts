import type { Page } from 'playwright-core'
import t, { type Test } from 'tap'
import { codeOf } from '../../plugins/sign-in/totp/codes.ts'
import { createUsher } from '../helpers/app.ts'
import { addAuthenticator, checkLooks, openPage, openRow, type Watched, withoutOffers } from '../helpers/browser.ts'
import { openSql } from '../helpers/sql.ts'

const button = (page: Page, name: string) => page.getByRole('button', { name, exact: true })

// Browsers have passkeys on this host without https.
async function serve (t: Test, options: Parameters<typeof createUsher>[1] = {}) {
  const usher = await createUsher(t, { prefix: '/accounts', ...options })
  const { port } = new URL(await usher.app.listen({ port: 0, host: '127.0.0.1' }))
  return { ...usher, sql: openSql(t, usher), url: `http://localhost:${port}${usher.prefix}` }
}

async function logIn (page: Page, { email, password }: { email: string, password: string }): Promise<void> {
  await page.getByLabel('E-mail address').fill(email)
  await page.getByLabel('Password', { exact: true }).fill(password)
  await button(page, 'Log in').first().click()
}

/** Opens another page of the account. */
async function open (page: Page, title: string): Promise<void> {
  await page.getByRole('navigation').getByRole('link', { name: title, exact: true }).click()
  await page.getByRole('heading', { name: title, exact: true, level: 1 }).waitFor()
}

const step = () => Math.floor(Date.now() / 30_000)

/** Sets up an authenticator app on the account page. Returns its secret and the recovery codes. */
async function enrol (t: Test, page: Page) {
  await page.waitForURL('**/account**')
  await open(page, 'Security')
  await openRow(page, 'totp')
  await button(page, 'Set up an authenticator app').click()
  await page.getByRole('img', { name: 'QR code for the authenticator app' }).waitFor()
  const secret = (await page.locator('#totp-secret').textContent())!.replaceAll(' ', '')
  await page.getByLabel('Code', { exact: true }).and(page.locator('#totp-code')).fill('000 000')
  await button(page, 'Activate').click()
  await page.getByText('This code is wrong or was used already.').waitFor()
  t.equal(await page.evaluate(() => document.activeElement?.id), 'totp-code')
  const used = step()
  await page.locator('#totp-code').fill(codeOf(secret, used))
  await button(page, 'Activate').click()
  await page.getByRole('heading', { name: 'Your recovery codes' }).waitFor()
  const recoveryCodes = await page.locator('#recovery-list li').allTextContents()
  t.equal(recoveryCodes.length, 10)
  await button(page, 'I have stored them').click()
  await page.getByText('10 recovery codes left').waitFor()
  t.equal(await page.locator('#recovery-list li').count(), 0, 'the page forgets them')
  // Each code is accepted once, and that of the next step already.
  return { next: codeOf(secret, used + 1), recoveryCodes }
}

/** Checks that a page did nothing that it must not do, apart from requests that fail with these statuses. */
function watch (t: Test, { foreign, problems }: Watched, statuses: readonly number[] = []): void {
  t.strictSame(foreign, [])
  const failed = /^Failed to load resource: the server responded with a status of (\d+)/
  t.strictSame(problems.map((problem) => Number(failed.exec(problem)?.[1] ?? NaN) || problem), statuses)
}

t.test('16.4 an authenticator app: set up, log in with it, confirm with it, remove it', async (t) => {
  const { url, createUser, sql } = await serve(t)
  const user = await createUser()
  const watched = await openPage(t, `${url}/login`)
  const { page } = watched
  await logIn(page, user)
  const { next, recoveryCodes } = await enrol(t, page)
  await checkLooks(t, page, 'totp-active')
  await button(page, 'Log out').click()

  await page.getByText('You are logged out.').waitFor()
  await logIn(page, user)
  const code = page.locator('#code')
  await code.waitFor()
  t.equal(await page.evaluate(() => document.activeElement?.id), 'code')
  await code.fill('123456')
  await page.keyboard.press('Enter')
  await page.getByText('This code is wrong or was used already.').waitFor()
  t.equal(await page.evaluate(() => document.activeElement?.id), 'code')
  await code.fill(next)
  await page.keyboard.press('Enter')
  await page.waitForURL(`${url}/account`)

  await open(page, 'Security')
  await openRow(page, 'totp')
  await button(page, 'Remove the app').waitFor()
  await sql`update sessions set auth_time = now() - interval '1 day' where user_id = ${user.id}`
  await button(page, 'Remove the app').click()
  await page.getByRole('dialog').getByRole('button', { name: 'Remove the app' }).click()
  const dialog = page.getByRole('dialog', { name: 'Confirm that it is you' })
  await dialog.waitFor()
  t.equal(await page.evaluate(() => document.activeElement?.id), 'step-up-code')
  await page.keyboard.press('Escape')
  await dialog.waitFor({ state: 'hidden' })
  t.equal(await page.evaluate(() => document.activeElement?.id), 'totp-remove', 'the focus is where it was')
  await button(page, 'Remove the app').click()
  await page.getByRole('dialog').getByRole('button', { name: 'Remove the app' }).click()
  await dialog.getByText('Use a recovery code instead').click()
  await dialog.getByLabel('Recovery code', { exact: true }).fill('wrong')
  await page.keyboard.press('Enter')
  await dialog.getByText('This code is wrong or was used already.').waitFor()
  await dialog.getByLabel('Recovery code', { exact: true }).fill(recoveryCodes[0]!)
  await page.keyboard.press('Enter')
  await page.getByText('The authenticator app and the recovery codes are removed.').waitFor()
  await button(page, 'Set up an authenticator app').waitFor()
  watch(t, watched, [403, 401, 401, 403, 403, 403])
})

t.test('16.4 a login starts again after five wrong codes, and what was typed before is gone', async (t) => {
  const { url, createUser } = await serve(t)
  const user = await createUser()
  const { page } = await openPage(t, `${url}/login`)
  await logIn(page, user)
  const { recoveryCodes } = await enrol(t, page)
  await button(page, 'Log out').click()
  await page.getByText('You are logged out.').waitFor()
  await logIn(page, user)
  for (let attempt = 0; attempt < 6; attempt++) {
    await page.locator('#code').fill(`00000${attempt}`)
    const answered = page.waitForResponse(/second-factor/)
    await page.locator('#code-form button').click()
    await answered
  }
  await page.getByText('That took too long, or there were too many attempts. Log in again.').waitFor()
  t.equal(await page.getByLabel('Password', { exact: true }).inputValue(), '')
  await logIn(page, user)
  await page.getByText('Use a recovery code instead').click()
  await page.getByLabel('Recovery code', { exact: true }).fill(recoveryCodes[1]!)
  await page.keyboard.press('Enter')
  await page.waitForURL(`${url}/account`)
  await open(page, 'Security')
  await openRow(page, 'totp')
  await page.getByText('9 recovery codes left').waitFor()
})

t.test('16.3 a passkey: add, rename, log in by button, by the list of the field, and remove it', async (t) => {
  const { url, createUser, sql } = await serve(t)
  const user = await createUser()
  const watched = await openPage(t, `${url}/login`)
  const { page } = watched
  const authenticator = await addAuthenticator(page)
  await logIn(page, user)
  await page.waitForURL(`${url}/account`)
  await open(page, 'Security')
  await openRow(page, 'passkeys')
  await page.getByText('You have no passkey yet.').waitFor()
  await authenticator.verify(false)
  await button(page, 'Add a passkey').click()
  await page.getByText('No passkey was added.').waitFor()
  await authenticator.verify(true)
  await button(page, 'Add a passkey').click()
  await page.getByText('The passkey is added.').waitFor()
  t.equal(await authenticator.count(), 1)
  await button(page, 'Add a passkey').click()
  await page.getByText('This device has a passkey for your account already.').waitFor()
  await page.locator('#passkeys [data-menu]').click()
  await page.getByRole('button', { name: /^Rename / }).click()
  const name = page.getByLabel('Name of the passkey')
  await checkLooks(t, page, 'passkey-rename')
  await name.fill('<b>Key</b>')
  await page.keyboard.press('Enter')
  await page.getByText('The passkey is renamed.').waitFor()
  await page.getByText('<b>Key</b>', { exact: true }).waitFor()
  await page.getByText('Last used: never').waitFor()
  await checkLooks(t, page, 'passkey')

  // The browser offers it in the field for the address, and the authenticator approves of that.
  const loggedIn = page.waitForResponse(`${url}/api/auth/login/passkey`)
  await button(page, 'Log out').click()
  t.equal((await loggedIn).status(), 200)
  await page.waitForURL(`${url}/account`)
  await open(page, 'Security')
  await openRow(page, 'passkeys')
  await page.getByText('<b>Key</b>', { exact: true }).waitFor()
  t.notOk(await page.getByText('Last used: never').isVisible())

  await withoutOffers(page)
  await button(page, 'Log out').click()
  await page.getByText('You are logged out.').waitFor()
  await authenticator.verify(false)
  await button(page, 'Log in with a passkey').click()
  await page.getByText('No passkey was used. You can try again, or log in with your password.').waitFor()
  await authenticator.verify(true)
  await button(page, 'Log in with a passkey').click()
  await page.waitForURL(`${url}/account`)
  await open(page, 'Security')
  await openRow(page, 'passkeys')
  await page.getByText('<b>Key</b>', { exact: true }).waitFor()

  await sql`update sessions set auth_time = now() - interval '1 day' where user_id = ${user.id}`
  await page.locator('#passkeys [data-menu]').click()
  await button(page, 'Remove <b>Key</b>').click()
  await page.getByRole('dialog').getByRole('button', { name: 'Remove' }).click()
  const dialog = page.getByRole('dialog', { name: 'Confirm that it is you' })
  await dialog.waitFor()
  await dialog.getByLabel('Password', { exact: true }).fill('wrong')
  await page.keyboard.press('Enter')
  await dialog.getByText('The current password is wrong.').waitFor()
  await dialog.getByRole('button', { name: 'Use a passkey' }).click()
  await page.getByText('The passkey is removed.').waitFor()
  await page.getByText('You have no passkey yet.').waitFor()

  await button(page, 'Log out').click()
  await page.getByText('You are logged out.').waitFor()
  await button(page, 'Log in with a passkey').click()
  await page.getByText('This passkey was not accepted. Try another one, or log in with your password.').waitFor()
  await logIn(page, user)
  await page.waitForURL(`${url}/account`)
  await button(page, 'Log out').waitFor()
  watch(t, watched, [403, 403, 401])
})

t.test('16.4 a passkey completes a login with a password, and who abandons it can enter a code', async (t) => {
  const { url, createUser } = await serve(t)
  const user = await createUser()
  const { page } = await openPage(t, `${url}/login`)
  const authenticator = await addAuthenticator(page)
  await withoutOffers(page)
  await logIn(page, user)
  const { next } = await enrol(t, page)
  await openRow(page, 'passkeys')
  await button(page, 'Add a passkey').click()
  await page.getByText('The passkey is added.').waitFor()
  for (const isVerified of [false, true]) {
    await button(page, 'Log out').click()
    await page.getByText('You are logged out.').waitFor()
    await logIn(page, user)
    await authenticator.verify(isVerified)
    await button(page, 'Use a passkey').click()
    if (isVerified) continue
    await page.getByText('No passkey was used. You can try again, or enter a code.').waitFor()
    await page.locator('#code').fill(next)
    await page.keyboard.press('Enter')
    await button(page, 'Log out').waitFor()
  }
  await page.waitForURL(`${url}/account`)
  await button(page, 'Log out').waitFor()
})

t.test('16.4 where a second factor is required, the pages of the account lead to one, and then show the rest', async (t) => {
  const { url, app } = await serve(t, { secondFactor: 'everyone' })
  const password = 'quiet lantern river'
  const byApp = { email: 'ada@example.com', password }
  const byPasskey = { email: 'grace@example.com', password }
  for (const { email } of [byApp, byPasskey]) await app.usher.users.create({ name: 'Somebody', email, password })
  const { page } = await openPage(t, `${url}/login`)
  await addAuthenticator(page)
  await withoutOffers(page)
  await logIn(page, byApp)
  await page.waitForURL(`${url}/account/security`)
  await page.getByText('Set up an app or a passkey to go on.').waitFor()
  t.notOk(await page.getByLabel('Current password').isVisible())
  await checkLooks(t, page, 'required')
  await enrol(t, page)
  await page.getByLabel('Current password').waitFor()
  t.notOk(await page.getByText('A second factor is needed').isVisible())

  await button(page, 'Log out').click()
  await page.getByText('You are logged out.').waitFor()
  await logIn(page, byPasskey)
  await page.getByText('Set up an app or a passkey to go on.').waitFor()
  await button(page, 'Add a passkey').click()
  const dialog = page.getByRole('dialog', { name: 'Confirm that it is you' })
  await dialog.waitFor()
  t.notOk(await dialog.getByLabel('Password', { exact: true }).isVisible(), 'a password is no second factor')
  await page.keyboard.press('Escape')
  await page.getByText('this session started without it').waitFor()
  await page.getByRole('main').getByRole('button', { name: 'Confirm that it is you' }).click()
  await dialog.getByRole('button', { name: 'Use a passkey' }).click()
  await page.getByLabel('Current password').waitFor()
  await button(page, 'Log out').waitFor()
})

t.test('17.1 an API key on the account page: create it with step-up, see it once, delete it', async (t) => {
  const { url, createUser, sql, inject } = await serve(t, { policy: { 'bookmarks:create': () => true } as never })
  const user = await createUser()
  const watched = await openPage(t, `${url}/login`)
  const { page } = watched
  await logIn(page, user)
  await page.waitForURL(`${url}/account`)
  await open(page, 'API keys')
  await page.getByText('You have no API key.').waitFor()
  await sql`update sessions set auth_time = now() - interval '1 day' where user_id = ${user.id}`
  await button(page, 'Create an API key').click()
  t.equal(await page.evaluate(() => document.activeElement?.id), 'key-name')
  await page.getByLabel('What it is for').fill('Deployment <b>')
  await page.getByText('Limit what it may do').click()
  await page.getByLabel('bookmarks:create').check()
  t.equal(await page.getByLabel('passwords:change').count(), 0, 'no key can have it')
  await button(page, 'Create').click()
  const dialog = page.getByRole('dialog', { name: 'Confirm that it is you' })
  await dialog.getByLabel('Password', { exact: true }).fill(user.password)
  await page.keyboard.press('Enter')
  await page.getByRole('heading', { name: 'Your new API key' }).waitFor()
  t.equal(await page.evaluate(() => document.activeElement?.id), 'key-title')
  const key = (await page.locator('#key-text').textContent())!
  const own = await inject('GET', '/api/protected', { headers: { authorization: `Bearer ${key}` } })
  t.equal(own.json().user.id, user.id)
  await button(page, 'I have stored it').click()
  t.equal(await page.locator('#key-text').textContent(), '', 'the page forgets it')
  const [listed] = (await inject('GET', '/api/auth/keys', { headers: user.headers })).json()
  t.strictSame([listed.name, listed.actions], ['Deployment <b>', ['bookmarks:create']])
  t.ok(Math.abs(Date.parse(listed.expiresAt) - Date.now() - 90 * 86_400_000) < 3_600_000, 'in 90 days')

  const item = page.getByRole('listitem').filter({ hasText: 'Deployment <b>' })
  t.match(await item.textContent(), /Last used: never.*bookmarks:create/s)
  await item.locator('[data-menu]').click()
  await item.getByRole('button').click()
  await page.getByRole('dialog').getByRole('button', { name: 'Delete' }).click()
  await page.getByText('The API key is deleted.').waitFor()
  await page.getByText('You have no API key.').waitFor()
  t.equal((await inject('GET', '/api/protected', { headers: { authorization: `Bearer ${key}` } })).statusCode, 401)
  watch(t, watched, [403])
})
