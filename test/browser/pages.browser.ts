import { readFile } from 'node:fs/promises'
import type { Page } from 'playwright-core'
import t, { type Test } from 'tap'
import { audiences } from '../../app.ts'
import { codeOf } from '../../plugins/sign-in/totp/codes.ts'
import { createUsher, type TestUsher } from '../helpers/app.ts'
import { openPage, openRow, type Watched } from '../helpers/browser.ts'
import { createMailer, type Inbox } from '../helpers/mail.ts'
import { nightly } from '../helpers/nightly.ts'
import { openSql } from '../helpers/sql.ts'

const NEXT = 'a password of tomorrow'

interface Service extends TestUsher { url: string, inbox: Inbox }

async function serve (t: Test, options: Parameters<typeof createUsher>[1] = {}): Promise<Service> {
  const inbox = createMailer()
  const usher = await createUsher(t, { prefix: '/accounts', mailer: inbox.mailer, signUp: true, ...options })
  const origin = await usher.app.listen({ port: 0, host: '127.0.0.1' })
  return { ...usher, inbox, url: `${origin}${usher.prefix}` }
}

/** Returns the link in the latest of `count` mails to an address. */
async function linkTo (inbox: Inbox, email: string, count = 1): Promise<string> {
  return /^http:\S+#token=\S+$/m.exec((await inbox.of(email, count)).at(-1)!.text)![0]
}

const button = (page: Page, name: string) => page.getByRole('button', { name, exact: true })

async function logIn (page: Page, { email, password }: { email: string, password: string }): Promise<void> {
  await page.getByLabel('E-mail address').fill(email)
  await page.getByLabel('Password', { exact: true }).fill(password)
  await button(page, 'Log in').click()
}

/** Checks that a page did nothing that it must not do, apart from requests that fail with these statuses. */
function watch (t: Test, { foreign, problems }: Watched, statuses: readonly number[] = []): void {
  t.strictSame(foreign, [])
  t.strictSame(problems.map((problem) =>
    Number(/^Failed to load resource: the server responded with a status of (\d+)/.exec(problem)?.[1] ?? NaN) ||
    problem), statuses)
}

nightly('15.2 a forgotten password: link by mail, another password, login, account', async (t) => {
  const { url, inbox, createUser } = await serve(t)
  const user = await createUser({ name: 'Ada' })
  const watched = await openPage(t, `${url}/login`)
  const { page } = watched
  await page.getByRole('link', { name: 'Forgot your password?' }).click()
  await page.getByLabel('E-mail address').fill(user.email)
  await button(page, 'Send link').click()
  await page.getByRole('status').getByText('a link to set a password is on its way').waitFor()

  const link = await linkTo(inbox, user.email)
  await page.goto(link)
  await page.getByText('8 to 256 characters. Common passwords are rejected.').waitFor()
  t.notMatch(page.url(), 'token', 'the address bar does not keep the token')
  t.equal(
    await page.locator('[data-username]').inputValue(), user.email, 'a password manager learns whose password it is'
  )
  await page.locator('[data-account]').getByText(user.email).waitFor()
  await page.reload()
  await page.getByLabel('New password').fill('password1')
  await button(page, 'Set password').click()
  await page.getByRole('alert').getByText('This password is too common.').waitFor()
  await button(page, 'Show password').click()
  t.equal(await page.getByLabel('New password').getAttribute('type'), 'text')
  await page.getByLabel('New password').fill(NEXT)
  await button(page, 'Set password').click()
  await page.waitForURL(`${url}/account`)
  t.equal(await page.evaluate(() => Object.keys(sessionStorage).filter((key) => key.includes('token')).length), 0)
  await button(page, 'Log out').click()
  await logIn(page, { email: user.email, password: 'wrong' })
  await page.getByRole('alert').getByText('The e-mail address or the password is wrong.').waitFor()
  await logIn(page, { email: user.email, password: NEXT })
  await page.getByRole('heading', { name: 'Profile' }).waitFor()
  await page.waitForFunction(() => document.querySelector<HTMLInputElement>('#name')!.value === 'Ada')
  t.equal(await page.evaluate(() => localStorage.length), 0)
  watch(t, watched, [400, 401])

  await t.test('15.2 a link that was used, or is none, is reported when the page opens', async (t) => {
    const used = await openPage(t, link)
    await used.page.getByRole('alert').getByText('This link has expired or was used already.').waitFor()
    t.equal(await used.page.getByLabel('New password').isVisible(), false)
    await used.page.getByRole('link', { name: 'Request a new link' }).click()
    await used.page.waitForURL(`${url}/forgot-password`)
    watch(t, used, [400])
    const bare = await openPage(t, `${url}/set-password`)
    await bare.page.getByRole('alert').getByText('Open this page with the link from your e-mail.').waitFor()
    watch(t, bare)
  })
})

t.test('15.2 sign-up: link by mail, login, account, another address, and undoing it', async (t) => {
  const { url, inbox } = await serve(t)
  const [email, next, password] = ['ada@example.com', 'lovelace@example.com', 'horse battery staple']
  const watched = await openPage(t, `${url}/login`)
  const { page } = watched
  await page.getByRole('link', { name: 'Create an account' }).click()
  await page.getByLabel('Name', { exact: true }).fill('Ada')
  await page.getByLabel('E-mail address').fill(email)
  await page.getByLabel('Password', { exact: true }).fill(password)
  await button(page, 'Create account').click()
  await page.getByText(`An e-mail is on its way to ${email}.`).waitFor()
  await button(page, 'Send again').click()
  await page.getByText('It is sent again.').waitFor()
  await button(page, 'Wrong address?').click()
  t.equal(await page.getByLabel('E-mail address').inputValue(), email, 'what was typed is there')

  const link = await linkTo(inbox, email, 2)
  await page.goto(link)
  await page.getByText('what this browser has sent when you signed up').waitFor()
  t.equal(await page.locator('input:visible').count(), 0, 'nothing is asked again')
  await page.locator('[data-account]').getByText(email).waitFor()
  await button(page, 'Create account').click()
  await page.waitForURL(`${url}/account`)
  await page.locator('#who-name').getByText('Ada').waitFor()
  await page.getByLabel('E-mail address').fill(next)
  await button(page, 'Save').click()
  await page.getByText(`open the link that was sent to ${next}. Until then, nothing changes.`).waitFor()
  t.equal(await page.getByLabel('E-mail address').inputValue(), email, 'the present address stays until then')
  await page.goto(await linkTo(inbox, next))
  await button(page, 'Confirm address').click()
  await page.getByText('Your e-mail address is confirmed.').waitFor()

  await page.goto(await linkTo(inbox, email, 3))
  await button(page, 'Undo the change').click()
  await page.getByText('The change is undone. You are logged out everywhere.').waitFor()
  await page.goto(`${url}/account`)
  await page.waitForURL(`${url}/login`)
  await logIn(page, { email, password })
  await page.waitForURL(`${url}/account`)
  watch(t, watched, [401])

  const used = await openPage(t, link)
  await used.page.getByRole('alert').getByText('This link has expired or was used already.').waitFor()
  await used.page.getByRole('link', { name: 'Log in', exact: true }).click()
  await used.page.waitForURL(`${url}/login`)
  watch(t, used, [400])
})

nightly('11.2 a link of a sign-up asks for a name and a password in a browser that has not signed up', async (t) => {
  const { url, inbox, inject } = await serve(t)
  const mallory = { name: 'Mallory', email: 'ada@example.com', password: 'horse battery staple' }
  t.equal((await inject('POST', '/api/auth/sign-up', { payload: mallory })).statusCode, 202)
  const watched = await openPage(t, await linkTo(inbox, mallory.email))
  const { page } = watched
  await page.getByText('This browser has not sent the sign-up.').waitFor()
  t.equal(await page.evaluate(() => document.activeElement?.id), 'name')
  await button(page, 'Create account').click()
  t.ok(await page.locator('#name:invalid').count(), 'the browser wants a name')
  await page.getByLabel('Name', { exact: true }).fill('Ada')
  await page.getByLabel('Password', { exact: true }).fill('password1')
  await button(page, 'Create account').click()
  await page.getByRole('alert').getByText('This password is too common.').waitFor()
  const password = 'quiet lantern river'
  await page.getByLabel('Password', { exact: true }).fill(password)
  await button(page, 'Create account').click()
  await page.waitForURL(`${url}/account`)
  await button(page, 'Log out').click()
  await logIn(page, mallory)
  await page.getByRole('alert').getByText('The e-mail address or the password is wrong.').waitFor()
  await logIn(page, { email: mallory.email, password })
  await page.waitForURL(`${url}/account`)
  await page.waitForFunction(() => document.querySelector<HTMLInputElement>('#name')!.value === 'Ada')
  watch(t, watched, [400, 401])
})

nightly('11.2 a browser that loses its cookie while the page is open is asked for a password then', async (t) => {
  const { url, inbox } = await serve(t)
  const [email, password] = ['ada@example.com', 'quiet lantern river']
  const watched = await openPage(t, `${url}/sign-up`)
  const { page } = watched
  await page.getByLabel('Name', { exact: true }).fill('Ada')
  await page.getByLabel('E-mail address').fill(email)
  await page.getByLabel('Password', { exact: true }).fill('horse battery staple')
  await button(page, 'Create account').click()
  await page.goto(await linkTo(inbox, email))
  await page.getByText('what this browser has sent when you signed up').waitFor()
  await page.context().clearCookies()
  await button(page, 'Create account').click()
  await page.getByRole('alert').getByText('Choose a password for your account.').waitFor()
  await page.getByLabel('Name', { exact: true }).fill('Ada')
  await page.getByLabel('Password', { exact: true }).fill(password)
  await button(page, 'Create account').click()
  await page.waitForURL(`${url}/account`)
  watch(t, watched, [400])
})

nightly('15.2 where addresses are hidden, a new address takes effect by the link that is sent to it', async (t) => {
  const { url, inbox, createUser } = await serve(t, { policy: { 'users:read-email': audiences.owners } })
  const user = await createUser({ name: 'Ada' })
  const watched = await openPage(t, `${url}/login`)
  const { page } = watched
  await logIn(page, user)
  await page.waitForURL(`${url}/account`)
  await page.getByLabel('E-mail address').fill('lovelace@example.com')
  await button(page, 'Save').click()
  await page.getByText('To confirm the new address, open the link that was sent to lovelace@example.com.').waitFor()
  await page.goto(await linkTo(inbox, 'lovelace@example.com'))
  await button(page, 'Confirm address').click()
  await page.getByText('Your e-mail address is confirmed.').waitFor()
  await page.goto(`${url}/account`)
  await page.waitForFunction(() => document.querySelector<HTMLInputElement>('#email')!.value === 'lovelace@example.com')
  watch(t, watched)
})

t.test('15.2 the account page: name, address, password, sessions', async (t) => {
  const { url, createUser, login, inject, inbox } = await serve(t)
  const evil = '<img src=x onerror="document.title=1"><script>document.title=2</script>'
  const user = await createUser({ name: evil })
  const watched = await openPage(t, `${url}/account`)
  const { page } = watched
  await page.waitForURL(`${url}/login`)
  await logIn(page, user)
  await page.waitForURL(`${url}/account`)
  const name = page.getByLabel('Name', { exact: true })
  await name.waitFor()
  t.equal(await name.inputValue(), evil)
  await button(page, 'Send a link to confirm it').click()
  await page.getByText('A link is on its way to your e-mail address.').waitFor()
  const other = await page.context().newPage()
  await other.goto(await linkTo(inbox, user.email))
  await button(other, 'Confirm address').click()
  await other.getByText('Your e-mail address is confirmed.').waitFor()
  await page.reload()
  await name.waitFor()
  t.notOk(await button(page, 'Send a link to confirm it').isVisible())

  const { email } = user
  await name.fill(`${evil} Lovelace`)
  await button(page, 'Save').click()
  await page.getByText('Your name and address are saved.').waitFor()
  t.match((await inject('GET', `/api/users/${user.id}`)).json(), { name: `${evil} Lovelace` })
  t.equal(await page.title(), 'Profile · Usher')
  t.equal(await page.locator('img, main script').count(), 0, 'markup in a name is text')

  const another = await login({ email, password: user.password })
  const open = (part: string) => page.getByRole('navigation').getByRole('link', { name: part, exact: true }).click()
  await open('Sessions')
  await page.waitForURL(`${url}/account/sessions`)
  t.equal(await page.locator('[aria-current=page]').textContent(), 'Sessions')
  await page.getByText('lightMyRequest').first().waitFor()
  const sessions = page.locator('#sessions > li')
  const before = await sessions.count()
  t.match(await sessions.first().textContent(), /Chrom(e|ium) on Linux\s+this device/, 'this device comes first, in words')
  await sessions.filter({ hasText: 'lightMyRequest' }).first()
    .getByRole('button', { name: /^End session lightMyRequest/ }).click()
  await page.getByText('The session has ended.').waitFor()
  t.equal(await sessions.count(), before - 1)
  t.equal(await sessions.filter({ hasText: 'this device' }).count(), 1)
  t.equal((await inject('GET', '/api/protected', { headers: another.headers })).statusCode, 401)
  await button(page, 'End all others').click()
  await page.getByRole('dialog').getByRole('button', { name: 'End all others' }).click()
  await page.getByText('All other sessions have ended.').waitFor()
  t.equal(await sessions.count(), 1)
  t.notOk(await button(page, 'End all others').isVisible())
  await login({ email, password: user.password })

  await open('Security')
  await page.locator('#totp-state').getByText('Off').waitFor()
  t.equal(await page.getByLabel('Current password').isVisible(), false, 'a form is there when it is asked for')
  await openRow(page, 'password')
  await page.getByLabel('Current password').fill('wrong')
  await page.getByLabel('New password').fill(NEXT)
  await button(page, 'Change password').click()
  await page.locator('#current-password-error').getByText('The current password is wrong.').waitFor()
  t.equal(await page.evaluate(() => document.activeElement!.id), 'current-password', 'the field has the focus')
  await page.getByLabel('Current password').fill(user.password)
  await button(page, 'Change password').click()
  await page.getByText('Your password is changed. All your other sessions have ended.').waitFor()
  await open('Sessions')
  await sessions.first().waitFor()
  t.equal(await sessions.count(), 1)

  // Another tab finds out who is here.
  const tab = await page.context().newPage()
  await tab.goto(`${url}/login`)
  await tab.getByText(`You are logged in as ${evil} Lovelace (${email}).`).waitFor()
  await tab.getByRole('link', { name: 'Continue' }).click()
  await tab.waitForURL(`${url}/account`)
  await tab.close()

  // The session ends while the user types.
  const { headers } = await login({ email, password: NEXT })
  await open('Profile')
  await name.waitFor()
  await name.fill('Typed before the end')
  await inject('DELETE', '/api/auth/sessions', { headers })
  await button(page, 'Save').click()
  await page.getByText('Your session has ended. Log in to go on where you were.').waitFor()
  await logIn(page, { email, password: NEXT })
  await page.waitForURL(`${url}/account`)
  await page.getByText('What you had typed is here again. It is not saved yet.').waitFor()
  t.equal(await name.inputValue(), 'Typed before the end')

  const elsewhere = await login({ email, password: NEXT })
  await open('Sessions')
  await button(page, 'Log out everywhere').click()
  await page.getByRole('dialog').getByRole('button', { name: 'Log out everywhere' }).click()
  await page.getByRole('status').getByText('You are logged out.').waitFor()
  t.equal((await inject('GET', '/api/protected', { headers: elsewhere.headers })).statusCode, 401)
  watch(t, watched, [401, 403, 401, 401])
})

nightly('15.2 login by keyboard only, and to where the user wanted to go', async (t) => {
  const { url, admin } = await serve(t, { origins: ['https://app.example.com'] })
  const watched = await openPage(
    t, `${url}/login?returnTo=${encodeURIComponent('/accounts/forgot-password?from=login')}`
  )
  const { page } = watched
  // The browser focuses the field when it has drawn the page, and until then it drops what is typed.
  await page.waitForFunction(() => document.activeElement?.getAttribute('name') === 'email')
  await page.keyboard.type(admin.email)
  await page.keyboard.press('Tab')
  await page.keyboard.type(admin.password)
  const outline = await page.evaluate(() => getComputedStyle(document.activeElement!).outlineStyle)
  t.equal(outline, 'solid', 'the focus is visible')
  await page.keyboard.press('Enter')
  await page.waitForURL(`${new URL(url).origin}/accounts/forgot-password?from=login`)
  watch(t, watched)

  const foreign = await openPage(t, `${url}/login?returnTo=${encodeURIComponent('https://evil.example')}`)
  await logIn(foreign.page, admin)
  await foreign.page.waitForURL(`${url}/account`)
  watch(t, foreign)
})

nightly('15.2 without JavaScript, login works, and the account page says what it needs', async (t) => {
  const { url, admin, inbox } = await serve(t)
  const watched = await openPage(t, `${url}/login?returnTo=/accounts/forgot-password`, { javaScriptEnabled: false })
  const { page } = watched
  t.equal(await page.getByText('Show password').isVisible(), false)
  await logIn(page, { email: admin.email, password: 'wrong' })
  await page.getByRole('alert').getByText('The e-mail address or the password is wrong.').waitFor()
  t.equal(await page.getByLabel('E-mail address').inputValue(), admin.email)
  await logIn(page, admin)
  await page.waitForURL(/\/accounts\/forgot-password$/)
  t.equal((await page.context().cookies(`${url}/api/auth/refresh`)).length, 1)
  await page.goto(`${url}/account`)
  t.equal(await page.locator('noscript').textContent(), 'This page needs JavaScript.')
  t.equal(await page.getByLabel('Name', { exact: true }).isVisible(), false)

  await page.goto(`${url}/forgot-password`)
  await page.getByLabel('E-mail address').fill(admin.email)
  await button(page, 'Send link').click()
  await page.getByText('a link to set a password is on its way').waitFor()
  t.match(page.url(), /\/forgot-password\?sent$/)
  await page.goto(await linkTo(inbox, admin.email))
  t.equal(await page.locator('noscript').textContent(), 'This page needs JavaScript.')
  watch(t, watched, [401])
})

nightly('15.2 after too many attempts, the login says how many minutes to wait', async (t) => {
  const { url } = await serve(t, { throttle: { account: { burst: 1, perMinute: 0.5 } } })
  const nobody = { email: 'nobody@example.com', password: 'wrong' }
  for (const javaScriptEnabled of [true, false]) {
    const { page } = await openPage(t, `${url}/login`, { javaScriptEnabled, locale: 'de' })
    const submit = async () => {
      await page.locator('#email').fill(nobody.email)
      await page.locator('#password').fill(nobody.password)
      await button(page, 'Anmelden').click()
    }
    await submit()
    if (javaScriptEnabled) {
      await page.getByText('Die E-Mail-Adresse oder das Passwort ist falsch.').waitFor()
      await submit()
    }
    await page.getByRole('alert').getByText(/Versuchen Sie es in [12] Minuten? noch einmal/).waitFor()
  }
})

nightly('15.2 a button that waits for the service is busy, works once, and can be used again after a failure', async (t) => {
  const { url } = await serve(t)
  const { page } = await openPage(t, `${url}/login`)
  const [arrived, released] = [Promise.withResolvers<void>(), Promise.withResolvers<void>()]
  let requests = 0
  await page.route('**/api/auth/login', async (route) => {
    requests++
    arrived.resolve()
    await released.promise
    await route.continue()
  })
  await logIn(page, { email: 'nobody@example.com', password: 'wrong' })
  await arrived.promise
  const submit = button(page, 'Log in')
  t.equal(await submit.getAttribute('aria-busy'), 'true')
  const spinner = await submit.evaluate((element) => getComputedStyle(element, '::before').animationName)
  t.equal(spinner, 'spin', 'it can be seen')
  // What is disabled in name only can still be pressed.
  await submit.click({ force: true })
  await page.keyboard.press('Enter')
  released.resolve()
  await page.getByRole('alert').getByText('The e-mail address or the password is wrong.').waitFor()
  t.equal(await submit.getAttribute('aria-busy'), null)
  t.equal(requests, 1)
  const again = page.waitForResponse('**/api/auth/login')
  await submit.click()
  await again
  t.equal(requests, 2)
})

nightly('15.2 your data: the download and the deletion of the account, each after a confirmation that it is you', async (t) => {
  const usher = await serve(t)
  const { url, createUser, inject } = usher
  const sql = openSql(t, usher)
  const user = await createUser({ name: 'Ada' })
  const watched = await openPage(t, `${url}/login`)
  const { page } = watched
  await logIn(page, user)
  const age = () => sql`update sessions set auth_time = now() - interval '1 day' where user_id = ${user.id}`
  const dialog = page.getByRole('dialog', { name: 'Confirm that it is you' })
  const confirm = async () => {
    await dialog.getByLabel('Password', { exact: true }).fill(user.password)
    await page.keyboard.press('Enter')
  }
  await page.waitForURL(`${url}/account`)
  await page.goto(`${url}/account/data`)
  const download = button(page, 'Download my data')
  await download.waitFor()
  await age()
  await download.click()
  await dialog.waitFor()
  const downloaded = page.waitForEvent('download')
  await confirm()
  const file = await downloaded
  t.match(file.suggestedFilename(), /^[\w.-]+-\d{4}-\d\d-\d\d\.json$/)
  const text = await readFile(await file.path(), 'utf8')
  t.equal(JSON.parse(text).user.email, user.email)
  t.notMatch(text, user.password)
  await page.getByText('Your data are in the downloaded file.').waitFor()

  await button(page, 'Delete my account').click()
  const question = page.getByRole('dialog', { name: 'Delete your account' })
  const type = (text: string) => question.getByLabel('To confirm, type the address of your account').fill(text)
  await question.getByText(user.email).waitFor()
  const remove = question.getByRole('button', { name: 'Delete my account' })
  for (const typed of ['', 'somebody@example.com', user.email, 'somebody@example.com']) {
    await type(typed)
    t.equal(await remove.isDisabled(), typed !== user.email, `with ${typed}`)
  }
  await page.keyboard.press('Enter')
  await question.getByRole('button', { name: 'Cancel' }).click()
  t.equal((await inject('POST', '/api/auth/login', { payload: user })).statusCode, 200, 'nothing is deleted')
  await age()
  await button(page, 'Delete my account').click()
  await type(` ${user.email.toUpperCase()}`)
  await question.getByRole('button', { name: 'Delete my account' }).click()
  await dialog.waitFor()
  await page.keyboard.press('Escape')
  await dialog.waitFor({ state: 'hidden' })
  t.equal((await inject('POST', '/api/auth/login', { payload: user })).statusCode, 200, 'nor without a confirmation')
  await question.getByRole('button', { name: 'Delete my account' }).click()
  await confirm()
  await page.getByText('Your account is deleted.').waitFor()
  t.equal((await inject('POST', '/api/auth/login', { payload: user })).statusCode, 401)
  // The cookie of the session is still there, and its session is not.
  watch(t, watched, [403, 403, 403, 401])
})

t.test('12.2 fields of the host have labels and the fitting controls on /sign-up and /account', async (t) => {
  const field = (schema: object, read: string, write: string) => ({ ...schema, 'x-read': read, 'x-write': write })
  const userFields = {
    type: 'object' as const,
    properties: {
      favoriteColor: field({ type: 'string', description: 'For your desk' }, 'anyone', 'owner'),
      look: field({ type: 'string', enum: ['light', 'follow-system'], title: 'Look of the app' }, 'owner', 'owner'),
      newsletter: field({ type: 'boolean', title: 'Send me news' }, 'owner', 'owner'),
      rows: field({ type: 'integer', minimum: 5, maximum: 50, title: 'Rows' }, 'owner', 'owner'),
      plan: field({ type: 'string', enum: ['free', 'pro'], title: 'Plan', default: 'free' }, 'owner', 'admin'),
      tier: field({ type: 'string', enum: ['gold', 'silver'], title: 'Tier' }, 'owner', 'admin'),
      note: field({ type: 'string', title: 'Note' }, 'admin', 'admin'),
    },
  }
  const { url, inbox, inject, admin } = await serve(t, { userFields })
  const [email, password] = ['ada@example.com', 'quiet lantern river']
  const watched = await openPage(t, `${url}/sign-up`)
  const { page } = watched
  for (const hidden of ['Plan', 'Note']) t.equal(await page.getByLabel(hidden).count(), 0, 'only what owners write')
  await page.getByLabel('Name', { exact: true }).fill('Ada')
  await page.getByLabel('E-mail address').fill(email)
  await page.getByLabel('Password', { exact: true }).fill(password)
  t.equal(await page.getByLabel('Rows', { exact: true }).isVisible(), false, 'they are folded')
  await page.getByText('More (optional)').click()
  await page.getByLabel('Favorite color').fill('green')
  await page.getByText('For your desk').waitFor()
  await page.getByLabel('Look of the app').selectOption({ label: 'Follow system' })
  await page.getByLabel('Send me news').check()
  await page.getByLabel('Rows', { exact: true }).fill('2')
  await page.getByText('More (optional)').click()
  await button(page, 'Create account').click()
  await page.waitForFunction(() => document.activeElement?.id === 'rows', undefined)
  await page.getByLabel('Rows', { exact: true }).fill('20')
  await button(page, 'Create account').click()
  await page.goto(await linkTo(inbox, email))
  await button(page, 'Create account').click()
  await page.waitForURL(`${url}/account`)
  const read = async () => {
    const [user] = (await inject('GET', `/api/users?email=${email}`, { headers: admin.headers })).json()
    return user
  }
  t.match(await read(), { favoriteColor: 'green', look: 'follow-system', newsletter: true, rows: 20, plan: 'free' })
  await page.getByLabel('Rows', { exact: true }).waitFor()
  t.equal(await page.getByLabel('Rows', { exact: true }).inputValue(), '20')
  t.equal(await page.locator('[data-fact=plan]').innerText(), 'Free', 'what others write is shown')
  t.equal(await page.locator('[data-fact=tier]').isVisible(), false, 'what has no value is not')
  t.equal(await page.getByText('Note').count(), 0)
  await page.getByLabel('Favorite color').fill('')
  await page.getByLabel('Send me news').uncheck()
  await page.getByLabel('Rows', { exact: true }).fill('')
  await button(page, 'Save').click()
  await page.getByText('Your name and address are saved.').waitFor()
  t.match(await read(), { favoriteColor: undefined, look: 'follow-system', newsletter: false, rows: undefined })
  watch(t, watched)
})

t.test('15.2 a new password shows how strong it is while it is typed', async (t) => {
  const { url } = await serve(t)
  const { page } = await openPage(t, `${url}/sign-up`)
  await page.getByLabel('Name', { exact: true }).fill('Ada Lovelace')
  const strength = page.locator('#strength-text')
  for (const [password, said] of [
    ['quiet', '3 more characters are needed.'], ['Ada Lovelace', 'The password must not be your name'],
    ['football', 'This password is too common.'], ['aaaaaaaaaaaa', 'Weak'], ['quiet lantern river', 'Strong.'],
  ] as const) {
    await page.getByLabel('Password', { exact: true }).fill(password)
    await strength.getByText(said).waitFor()
  }
  t.equal(await page.getByRole('meter').evaluate((meter: HTMLMeterElement) => meter.value), 4)
})

nightly('15.2 after a reset, who has a second factor is asked for it', async (t) => {
  const usher = await serve(t)
  const { url, inbox, createUser, inject } = usher
  const sql = openSql(t, usher)
  const user = await createUser({ name: 'Ada' })
  const { secret } = (await inject('POST', '/api/auth/totp', { headers: user.headers })).json()
  const step = Math.floor(Date.now() / 30_000)
  const payload = { code: codeOf(secret, step - 1) }
  t.equal((await inject('POST', '/api/auth/totp/confirm', { headers: user.headers, payload })).statusCode, 200)
  // The reset would remove a newer one, and all that somebody has who has not confirmed the address.
  await sql`update users set email_verified = true where id = ${user.id}`
  await sql`update totp set confirmed_at = now() - interval '10 days', created_at = now() - interval '10 days'`
  await inject('POST', '/api/auth/password-reset', { payload: { email: user.email } })
  const watched = await openPage(t, await linkTo(inbox, user.email, 2))
  const { page } = watched
  await page.getByLabel('New password').fill(NEXT)
  await button(page, 'Set password').click()
  await page.getByRole('heading', { name: 'One more step' }).waitFor()
  await page.locator('[data-account]').getByText(user.email).waitFor()
  await page.getByLabel('Code', { exact: true }).fill(codeOf(secret, Math.floor(Date.now() / 30_000)))
  await button(page, 'Log in').click()
  await page.waitForURL(`${url}/account`)
  watch(t, watched, [401])
})

nightly('15.2 an invitation says who invites, to what and which account, and logs in', async (t) => {
  const { url, inbox, inject, admin } = await serve(t, { pages: { productName: 'Notes' } })
  const email = 'alan@example.com'
  const { id } = (await inject('POST', '/api/users', { headers: admin.headers, payload: { name: 'Alan', email } })).json()
  await inject('POST', `/api/users/${id}/invitation`, { headers: admin.headers })
  const watched = await openPage(t, await linkTo(inbox, email))
  const { page } = watched
  await page.getByRole('heading', { name: 'Welcome to Notes' }).waitFor()
  const { name } = (await inject('GET', `/api/users/${admin.id}`)).json()
  await page.getByText(`${name} has invited you to Notes.`).waitFor()
  await page.locator('[data-account]').getByText(email).waitFor()
  await page.getByLabel('New password').fill(NEXT)
  await button(page, 'Set password').click()
  await page.waitForURL(`${url}/account`)
  watch(t, watched)
})
