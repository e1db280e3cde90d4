import t, { type Test } from 'tap'
import { codeOf } from '../../plugins/sign-in/totp/codes.ts'
import { createUsher } from '../helpers/app.ts'
import { checkLooks, openPage } from '../helpers/browser.ts'
import { createMailer } from '../helpers/mail.ts'
import { findPort } from '../helpers/port.ts'
import { startProvider } from '../helpers/provider.ts'
import { openSql } from '../helpers/sql.ts'
import { until } from '../helpers/until.ts'
import { fieldPart, filePart, post } from '../helpers/uploads.ts'

// `npm run test:release` names also a language that is written from right to left.
const { LANGUAGES = 'en', SHOTS } = process.env
const PASSWORD = 'quiet lantern river'

async function serve (t: Test) {
  const inbox = createMailer()
  const [fake, other] = [await startProvider(t), await startProvider(t)]
  fake.misbehave({ user: { sub: 'ada', email: 'ada@example.com', email_verified: true, name: 'Ada' } })
  const port = await findPort()
  const usher = await createUsher(t, {
    prefix: '/accounts',
    publicUrl: `http://localhost:${port}`,
    mailer: inbox.mailer,
    signUp: true,
    loginMail: true,
    providers: {
      example: { ...fake.options, name: 'Example', signUp: true }, other: { ...other.options, name: 'Other', signUp: true },
    },
    pages: {
      productName: 'Notes & <More>',
      appUrl: 'https://app.example.com/',
      termsUrl: 'https://example.com/terms',
      privacyUrl: 'https://example.com/privacy',
    },
  })
  await usher.app.listen({ port, host: '127.0.0.1' })
  return {
    ...usher,
    inbox,
    sql: openSql(t, usher),
    url: `http://localhost:${port}${usher.prefix}`,
    /** Resolves with the latest link to a page in a mail to an address. */
    async link (email: string, path: string): Promise<string> {
      const links = () => inbox.mails.filter(({ to }) => to === email)
        .map(({ text }) => new RegExp(`^http:\\S+${path}#token=\\S+$`, 'm').exec(text)?.[0])
      await until(`a link to ${path}`, () => links().some(Boolean))
      return links().findLast(Boolean)!
    },
  }
}

for (const language of LANGUAGES.split(',')) {
  t.test(`15.2 each page in each state, in ${language}`, async (t) => {
    const service = await serve(t)
    const { url, sql, link, inject } = service
    const watched = await openPage(t, `${url}/login`, { locale: language })
    const { page } = watched
    page.on('pageerror', (error) => t.fail(`${error}`))
    if (SHOTS) page.setDefaultTimeout(15_000)
    let count = 0
    const look = (state: string) => checkLooks(t, page, `${language}-${`${count++}`.padStart(2, '0')}-${state}`)
    async function open (address: string): Promise<void> {
      // Otherwise only the fragment might change.
      await page.goto('about:blank')
      await page.goto(address)
    }
    const see = (selector: string) => page.locator(selector).first().waitFor()
    const text = (selector: string) => page.locator(selector).filter({ hasText: /\S/ }).first().waitFor()
    const press = (selector: string) => page.locator(selector).first().click()

    // Login.
    await see('#by-mail')
    await look('login')
    await page.fill('#email', 'nobody@example.com')
    await page.fill('#password', 'wrong')
    await press('#password-form button:not([type=button])')
    await text('#alert')
    await look('login-wrong')
    await page.route('**/api/auth/login', (route) => route.fulfill({
      status: 429, headers: { 'retry-after': '150' }, json: { error: 'Too many requests', code: 'TOO_MANY_REQUESTS' },
    }))
    await press('#password-form button:not([type=button])')
    await page.waitForFunction(() => /2|3|٣/.test(document.querySelector('#alert')!.textContent!))
    await look('login-wait')
    await page.unroute('**/api/auth/login')
    for (const notice of ['out', 'ended', 'deleted']) {
      await open(`${url}/login?${notice}`)
      await look(`login-${notice}`)
    }

    // Forgotten password.
    const user = await service.createUser({ name: 'Ada Lovelace' })
    await open(`${url}/forgot-password`)
    await look('forgot')
    await page.fill('#email', user.email)
    await press('form button:not([type=button])')
    await see('#sent')
    await look('forgot-sent')
    const before = await page.locator('[role=status]').textContent()
    await press('#send-again')
    await page.waitForFunction((text) => document.querySelector('[role=status]')!.textContent !== text, before)
    await press('#send-again')
    await page.locator('#send-again').waitFor({ state: 'hidden' })
    await look('forgot-sent-again')
    await open(`${url}/forgot-password?sent`)
    await look('forgot-sent-plain')
    await open(await link(user.email, '/set-password'))
    await see('#password')
    await look('set-password')
    await page.fill('#password', 'password1')
    await press('form button:not([type=button])')
    await text('#password-error')
    await look('set-password-error')
    await page.fill('#password', PASSWORD)
    await press('form button:not([type=button])')
    await page.waitForURL('**/account')
    await page.context().clearCookies()
    user.password = PASSWORD
    await open(await link(user.email, '/set-password'))
    await see('[data-state=invalid]')
    await look('set-password-used')
    await open(`${url}/set-password`)
    await see('[data-state=missing]')
    await look('set-password-missing')

    // Sign-up.
    await open(`${url}/sign-up`)
    await look('sign-up')
    const given = { name: 'Grace', email: 'grace.brewster.hopper@very-long-example-domain.example.com', password: 'password1' }
    const fillSignUp = async () => {
      for (const [name, value] of Object.entries(given)) await page.fill(`#${name}`, value)
      await press('form button:not([type=button])')
    }
    await fillSignUp()
    await text('#password-error')
    await look('sign-up-error')
    given.password = PASSWORD
    await fillSignUp()
    await see('#sent')
    await look('sign-up-sent')
    await open(`${url}/sign-up?sent`)
    await look('sign-up-sent-plain')
    await open(await link(given.email, '/sign-up/confirm'))
    await see('[data-own]')
    await look('confirm-sign-up-own')
    await page.context().clearCookies()
    await page.reload()
    await see('[data-foreign]')
    await page.fill('#name', 'Grace')
    await page.fill('#password', 'password1')
    await press('form > button')
    await text('#password-error')
    await look('confirm-sign-up-foreign')
    await page.fill('#password', PASSWORD)
    await press('form > button')
    await page.waitForURL('**/account')
    await page.context().clearCookies()

    // Login by mail.
    await open(`${url}/login/mail`)
    await look('login-mail')
    await page.fill('#mail-email', user.email)
    await press('#mail-form button:not([type=button])')
    await see('#mail-code')
    await page.fill('#mail-code', '0000 0000')
    await press('#mail-code-form button:not([type=button])')
    await text('#mail-code-alert')
    await look('login-mail-code')
    await open(await link(user.email, '/login/mail/confirm'))
    await see('#mail-link-form')
    await look('login-mail-link')
    await page.context().clearCookies()
    await sql`update users set email_verified = false`
    await page.reload()
    await see('#mail-removes')
    await look('login-mail-link-elsewhere')
    await open(`${url}/login/mail/confirm#token=${'x'.repeat(43)}`)
    await see('[data-state=invalid]')
    await look('login-mail-link-used')
    await open(`${url}/login/mail/confirm`)
    await see('[data-state=missing]')
    await look('login-mail-link-missing')

    // Account.
    Object.assign(user, await service.login(user))
    for (let file = 0; file < 3; file++) {
      await post(service, [filePart('Text', `a file ${file}.txt`), fieldPart('description', 'D')], user)
    }
    await open(`${url}/login`)
    await page.fill('#email', user.email)
    await page.fill('#password', user.password)
    await press('#password-form button:not([type=button])')
    await page.waitForURL('**/account')
    await see('#account')
    await look('account')
    await page.fill('#email', 'countess@example.com')
    await press('#profile > button')
    await text('#profile [role=status]')
    await look('account-email-pending')
    await page.fill('#email', 'grace.brewster.hopper@very-long-example-domain.example.com')
    await page.route('**/api/users/*', (route) => route.fulfill({ status: 409, json: { error: 'x', code: 'EMAIL_TAKEN' } }))
    await press('#profile > button')
    await text('#email-error')
    await page.unroute('**/api/users/*')
    await press('#verify')
    await text('#verification-status')
    await look('account-errors')
    for (const part of ['sessions', 'keys', 'data', 'security']) {
      await open(`${url}/account/${part}`)
      await see('#account')
      await look(`account-${part}`)
    }
    await press('#password-section > summary')
    await page.fill('#current-password', 'wrong')
    await page.fill('#password', PASSWORD + PASSWORD)
    await press('#password-form button:not([type=button])')
    await text('#current-password-error')
    await text('#strength-text')
    await look('account-password-error')
    await sql`update sessions set auth_time = now() - interval '1 day' where user_id = ${user.id}`
    await press('#totp-section > summary')
    await press('#totp-start')
    await page.waitForFunction(() => document.querySelector<HTMLDialogElement>('#step-up')!.open)
    await page.fill('#step-up-password', 'wrong')
    await press('#step-up-password-form button:not([type=button])')
    await text('#step-up-password-alert')
    await look('step-up-password')
    await page.fill('#step-up-password', user.password)
    await press('#step-up-password-form button:not([type=button])')
    await see('#totp-set-up')
    await look('account-totp')
    const secret = (await page.locator('#totp-secret').textContent())!.replaceAll(' ', '')
    const step = Math.floor(Date.now() / 30_000)
    await page.fill('#totp-code', codeOf(secret, step))
    await press('#totp-set-up button')
    await see('#recovery-codes')
    await look('account-recovery-codes')
    await press('#recovery-done')
    await inject('POST', '/api/auth/login', { payload: user })
    await open(`${url}/account/keys`)
    await see('#key-new')
    await press('#key-new')
    await page.fill('#key-name', 'Deployment')
    await press('#key-form summary')
    await page.locator('#key-actions input').first().check()
    await look('account-key-form')
    await press('#key-form button:not([type=button])')
    await see('#key-shown')
    await look('account-key-shown')
    await open(`${url}/account/files`)
    await see('#files > li')
    await press('#files > li .menu > summary')
    await look('account-menu')
    await press('#files > li [data-share]')
    await page.locator('#files > li form [name=name]').first().fill('Grace')
    await page.locator('#files > li form button').first().click()
    await see('[data-created] code')
    await look('account-files')
    await press('#files > li:first-child .menu > summary')
    await press('#files > li:first-child [data-delete]')
    await see('#confirmation')
    await look('confirmation')
    await page.keyboard.press('Escape')
    await sql`update sessions set auth_time = now() - interval '1 day' where user_id = ${user.id}`
    await open(`${url}/account/data`)
    await see('#export')
    await press('#delete-account')
    await page.fill('#deletion-typed', 'somebody@example.com')
    await look('account-delete')
    await page.keyboard.press('Escape')
    await press('#export')
    await page.waitForFunction(() => document.querySelector<HTMLDialogElement>('#step-up')!.open)
    await press('#step-up summary')
    await look('step-up-code')
    await page.keyboard.press('Escape')
    await press('#log-out')
    // The page that is left has fields and messages of the same names.
    await page.waitForURL('**/login?out')
    await text('[role=status]')
    await page.fill('#email', user.email)
    await page.fill('#password', user.password)
    await press('#password-form button:not([type=button])')
    await see('#code')
    await page.fill('#code', '000000')
    await press('#code-form button:not([type=button])')
    await text('#code-alert')
    await press('#recovery summary')
    await look('second-factor')
    await page.fill('#code', codeOf(secret, step + 1))
    await press('#code-form button:not([type=button])')
    await page.waitForURL('**/account')
    await see('#account')
    await open(`${url}/login`)
    await see('#logged-in')
    await look('login-logged-in')
    await page.route('**/api/auth/refresh', (route) => route.abort())
    await open(`${url}/account`)
    await text('#failure')
    await look('account-unreachable')
    await page.unroute('**/api/auth/refresh')
    await page.context().clearCookies()

    // Links of mails.
    const { token } = (await inject('POST', '/api/auth/login', { payload: given })).json()
    const headers = { authorization: `Bearer ${token}` }
    const { id } = (await inject('GET', '/api/protected', { headers })).json().user
    await sql`update users set email_verified = false where id = ${id}`
    await inject('POST', `/api/users/${id}/email-verification`, { headers })
    await open(await link(given.email, '/verify-email'))
    await see('[data-state=form]')
    await look('verify-email')
    // This browser has no session of the user.
    await page.fill('#password', PASSWORD)
    await press('form button:not([type=button])')
    await see('[data-state=done]')
    await look('verify-email-done')
    await open(await link(user.email, '/undo'))
    await see('[data-state=form]')
    await look('undo')
    await press('form button:not([type=button])')
    await see('[data-state=done]')
    await look('undo-done')
  })
}
