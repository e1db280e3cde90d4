import { randomUUID } from 'node:crypto'
import type { Page } from 'playwright-core'
import t, { type Test } from 'tap'
import type { UsherOptions } from '../../app.ts'
import { createUsher, type LoggedIn } from '../helpers/app.ts'
import { checkLooks, openPage } from '../helpers/browser.ts'
import { organizationOptions, withOrganizations } from '../helpers/organizations.ts'
import { until } from '../helpers/until.ts'

const PASSWORD = 'quiet lantern river'
const newEmail = () => `${randomUUID()}@example.com`
const button = (page: Page, name: string) => page.getByRole('button', { name, exact: true })

/** Starts a service with an organisation. */
async function serve (given: UsherOptions = {}) {
  const { options, mails } = organizationOptions({ prefix: '/accounts', ...given })
  const usher = await createUsher(t, options)
  const { createVerified, found, tokenTo } = withOrganizations(t, usher, mails)
  const url = `${await usher.app.listen({ port: 0, host: '127.0.0.1' })}${usher.prefix}`
  const owner = await createVerified('Olga Owner')
  const id = await found(owner)

  return {
    usher,
    mails,
    url,
    createVerified,

    /** Sends an invitation, and returns the address to which its mail links. */
    async invite (email: string, role = 'member'): Promise<string> {
      const payload = { email, role }
      await usher.inject('POST', `/api/organizations/${id}/invitations`, { headers: owner.headers, payload })
      return `${url}/join#token=${await tokenTo(email)}`
    },

    roleOf: async (user: LoggedIn): Promise<string | undefined> =>
      (await usher.inject('GET', '/api/auth/organizations', { headers: user.headers })).json()[0]?.role,
  }
}

const { usher, url, createVerified, invite, roleOf } = await serve()

async function logIn (page: Page, { email, password }: { email: string, password: string }): Promise<void> {
  await page.getByLabel('E-mail address').fill(email)
  await page.getByLabel('Password', { exact: true }).fill(password)
  await button(page, 'Log in').click()
}

/** Opens the page of an invitation in a browser in which a user is logged in. */
async function openAs (t: Test, user: LoggedIn, link: string) {
  const watched = await openPage(t, `${url}/login`)
  await logIn(watched.page, user)
  await watched.page.waitForURL(`${url}/account`)
  await watched.page.goto(link)
  return watched
}

t.test('19.5 an invitation asks who has no account for a name and a password, and logs them in', async (t) => {
  const email = newEmail()
  const { page, problems, foreign } = await openPage(t, await invite(email, 'admin'))
  await page.getByText('Olga Owner has invited you to join Analytical Engines.').waitFor()
  await page.getByText(email).waitFor()
  await page.getByText('Admin', { exact: true }).waitFor()
  t.equal(page.url(), `${url}/join`, 'the address bar does not keep the token')
  await page.getByLabel('Name').fill('Ada')
  await button(page, 'Join').click()
  t.equal(page.url(), `${url}/join`, 'without a password, nobody could log in')
  await page.getByLabel('Password', { exact: true }).fill('password')
  await page.getByText('This password is too common.').waitFor()
  await checkLooks(t, page, 'join-newcomer')
  await button(page, 'Join').click()
  await page.locator('#password-error', { hasText: 'This password is too common.' }).waitFor()
  await page.getByLabel('Password', { exact: true }).fill(PASSWORD)
  await button(page, 'Join').click()
  await page.waitForURL(`${url}/account`)
  t.equal(await roleOf(await usher.login({ email, password: PASSWORD })), 'admin')
  t.strictSame([foreign, problems.filter((problem) => !problem.includes('400'))], [[], []])
})

t.test('19.5 where users log in by mail, who joins may leave the password out, and is led to such a login', async (t) => {
  const { mails, url, invite } = await serve({ loginMail: true })
  const email = newEmail()
  const { page, problems } = await openPage(t, await invite(email))
  await page.getByLabel('Name').fill('Ada')
  await page.getByText('You can leave it out, and log in by e-mail.').waitFor()
  await checkLooks(t, page, 'join-by-mail')
  await button(page, 'Join').click()
  await page.getByText('You are a member now. You can log in.').waitFor()
  await page.getByRole('link', { name: 'Log in' }).click()
  await page.waitForURL(`${url}/login/mail`)
  t.equal(await page.locator('#mail-email').inputValue(), email)
  await button(page, 'Send e-mail').click()
  const codeIn = (text = '') => /^\d{4} \d{4}$/m.exec(text)?.[0]
  await until('the code', () => codeIn(mails.get(email)) !== undefined)
  await page.getByLabel('Code from the e-mail').fill(codeIn(mails.get(email))!)
  await page.locator('#mail-code-form').getByRole('button', { name: 'Log in' }).click()
  await page.waitForURL(`${url}/account`)
  await page.goto(`${url}/account/organizations`)
  await page.getByText('Analytical Engines').waitFor()
  t.strictSame(problems, [])
})

t.test('19.5 an invitation for the address of an account leads to the login and back, and is accepted by a button', async (t) => {
  const user = await createVerified('Alan Accepting')
  const { page, problems } = await openPage(t, await invite(user.email))
  await page.getByText('An account has this address. Log in to it to join.').waitFor()
  await checkLooks(t, page, 'join-account')
  await page.getByRole('link', { name: 'Log in' }).click()
  await logIn(page, user)
  await page.waitForURL(`${url}/join`)
  await page.getByText('You are logged in as Alan Accepting.').waitFor()
  await checkLooks(t, page, 'join')
  await button(page, 'Join').click()
  await page.waitForURL(`${url}/account`)
  t.equal(await roleOf(user), 'member')
  t.strictSame(problems, [])
})

t.test('19.5 an invitation for another address than that of the user who is logged in offers to log out', async (t) => {
  const [user, other] = [await createVerified(), await createVerified()]
  const { page } = await openAs(t, other, await invite(user.email))
  await page.getByText(`You are logged in as ${other.email}. The invitation is for ${user.email}.`).waitFor()
  t.equal(await button(page, 'Join').isVisible(), false)
  await checkLooks(t, page, 'join-other')
  await button(page, 'Log out and go on').click()
  await page.getByRole('link', { name: 'Log in' }).click()
  await logIn(page, user)
  await page.waitForURL(`${url}/join`)
  await button(page, 'Join').click()
  await page.waitForURL(`${url}/account`)
  t.equal(await roleOf(user), 'member')
  t.equal(await roleOf(other), undefined)
})

t.test('19.5 an invitation that is void, and one that cannot be accepted, say why', async (t) => {
  const user = await createVerified()
  const link = await invite(user.email)
  const { page } = await openAs(t, user, link)
  await button(page, 'Join').waitFor()
  await usher.inject('POST', '/api/auth/invitations/accept', {
    headers: user.headers, payload: { token: /token=(.+)/.exec(link)![1] },
  })
  await button(page, 'Join').click()
  await page.getByText('This invitation is not valid any more').waitFor()
  await checkLooks(t, page, 'join-void')
  await page.goto(`${url}/login`)
  await page.goto(`${url}/join`)
  await page.getByText('Open this page with the link from your e-mail.').waitFor()

  const unverified = await usher.createUser()
  const second = await openAs(t, unverified, await invite(unverified.email))
  await button(second.page, 'Join').click()
  await second.page.getByText('or yours is not confirmed.').waitFor()
})
