import t from 'tap'
import type { Page } from 'playwright-core'
import { createUsher, type LoggedIn } from '../helpers/app.ts'
import { checkLooks, openPage } from '../helpers/browser.ts'
import { newSlug, organizationOptions, withOrganizations } from '../helpers/organizations.ts'

const button = (page: Page, name: string) => page.getByRole('button', { name, exact: true })

const { options, mails } = organizationOptions({ prefix: '/accounts' })
const usher = await createUsher(t, options)
const { inject } = usher
const { createVerified, tokenTo } = withOrganizations(t, usher, mails)
const url = `${await usher.app.listen({ port: 0, host: '127.0.0.1' })}${usher.prefix}`

t.test('19.2 /account/organizations founds, invites, gives another role, renames, leaves and deletes', async (t) => {
  const [owner, user] = [await createVerified('Olga Owner'), await createVerified('Mia Member')]
  const organizationsOf = async ({ headers }: LoggedIn): Promise<{ name: string, role: string }[]> =>
    (await inject('GET', '/api/auth/organizations', { headers })).json()

  const { page, problems } = await openPage(t, `${url}/account/organizations`)
  await page.getByLabel('E-mail address').fill(owner.email)
  await page.getByLabel('Password', { exact: true }).fill(owner.password)
  await button(page, 'Log in').click()
  await page.getByText('You are a member of no organisation.').waitFor()
  await page.locator('#found-name').fill('Engines')
  await page.locator('#found-slug').fill(newSlug())
  await button(page, 'Create').click()
  await page.getByText('Engines is created. You are its owner.').waitFor()
  t.match(await organizationsOf(owner), [{ name: 'Engines', role: 'owner' }])

  const openPart = (name: string) => page.locator('#parts').getByRole('link', { name }).click()
  await openPart('Invitations')
  await page.locator('#invited-email').fill(user.email)
  await button(page, 'Invite').click()
  await page.getByText(`An invitation is on its way to ${user.email}.`).waitFor()
  await page.locator('#invitations > li', { hasText: user.email }).waitFor()
  await checkLooks(t, page, 'account-organizations')
  await inject('POST', '/api/auth/invitations/accept', {
    headers: user.headers, payload: { token: await tokenTo(user.email) },
  })
  await openPart('Members')
  await checkLooks(t, page, 'account-members')
  await page.locator('#search').fill('mia')
  await button(page, 'Search').click()
  await page.locator('#members > li').nth(1).waitFor({ state: 'detached' })
  const row = page.locator('#members > li', { hasText: 'Mia Member' })
  await row.locator('[data-menu]').click()
  await row.locator('select').selectOption('owner')
  await page.getByText('Mia Member has another role now.').waitFor()
  t.match(await organizationsOf(user), [{ role: 'owner' }])
  await row.locator('[data-menu]').click()
  await row.locator('select').selectOption('member')
  await page.waitForFunction(() => document.activeElement?.id === 'chosen-status')

  await openPart('Settings')
  await checkLooks(t, page, 'account-organization')
  await page.locator('#change-name').fill('Engines & Co')
  await button(page, 'Save').click()
  await page.getByText('The names of the organisation are saved.').waitFor()
  t.match(await organizationsOf(user), [{ name: 'Engines & Co', role: 'member' }])

  await page.locator('[data-leave]').click()
  await page.locator('#confirmation-yes').click()
  await page.locator('#chosen-alert', { hasText: 'An organisation needs an owner who can log in.' }).waitFor()
  await openPart('Members')
  await row.locator('[data-menu]').click()
  await row.locator('[data-remove]').click()
  await page.locator('#confirmation-yes').click()
  await page.getByText('Mia Member is no member any more.').waitFor()
  t.strictSame(await organizationsOf(user), [])

  await openPart('Settings')
  await button(page, 'Delete the organisation').click()
  await page.locator('#deletion-typed').fill('Engines')
  t.equal(await page.locator('#deletion-form button.danger').isDisabled(), true)
  await page.locator('#deletion-typed').fill('engines & co')
  await page.locator('#deletion-form button.danger').click()
  await page.getByText('Engines & Co is deleted.').waitFor()
  t.strictSame(await organizationsOf(owner), [])
  // The browser writes a line for each response that is a failure.
  t.strictSame(problems.filter((problem) => !/40[19]/.test(problem)), [])
})

t.test('19.4 /account/organizations shows a member what a member may do, and lets them leave', async (t) => {
  const [owner, user] = [await createVerified('Olga Owner'), await createVerified('Mia Member')]
  const { found, add } = withOrganizations(t, usher, mails)
  await add(await found(owner), user)
  const { page } = await openPage(t, `${url}/account/organizations`)
  await page.getByLabel('E-mail address').fill(user.email)
  await page.getByLabel('Password', { exact: true }).fill(user.password)
  await button(page, 'Log in').click()
  await page.locator('[data-open]').click()
  await page.locator('#members > li', { hasText: 'Olga Owner' }).waitFor()
  for (const part of ['#invitations-section', '#change-section', '#remove-section', '#members select', '#members [data-remove]']) {
    t.equal(await page.locator(part).first().isVisible(), false, part)
  }
  await page.locator('[data-leave]').click()
  await page.locator('#confirmation-yes').click()
  await page.getByText('You have left Analytical Engines.').waitFor()
  await page.getByText('You are a member of no organisation.').waitFor()
})
