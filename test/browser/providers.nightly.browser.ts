import type { Page } from 'playwright-core'
import t from 'tap'
import { createUsher } from '../helpers/app.ts'
import { openPage, openRow, violationsIn } from '../helpers/browser.ts'
import { findPort } from '../helpers/port.ts'
import { startProvider } from '../helpers/provider.ts'

const button = (page: Page, name: string) => page.getByRole('button', { name, exact: true })

t.test('16.5 in a browser: a login by a link and one by a form of another site, linking, unlinking, and a failure in words', async (t) => {
  const [fake, apple] = [await startProvider(t), await startProvider(t)]
  // The redirect URL has the port, so it must be known before.
  const port = await findPort()
  const usher = await createUsher(t, {
    prefix: '/accounts',
    publicUrl: `http://localhost:${port}`,
    providers: {
      fake: { ...fake.options, name: 'Fake', signUp: true },
      apple: { ...apple.options, name: 'Apple', trustEmail: undefined, signUp: true },
    },
  })
  await usher.app.listen({ port, host: '127.0.0.1' })
  const url = `http://localhost:${port}/accounts`
  fake.misbehave({ user: { sub: 'ada', email: 'ada@example.com', email_verified: true, name: 'Ada' } })
  apple.misbehave({ user: { sub: 'grace', email: 'grace@example.com', email_verified: true } })

  const { page } = await openPage(t, `${url}/login`)
  t.strictSame(await violationsIn(page), [])
  await page.getByRole('link', { name: 'Continue with Fake' }).click()
  await page.waitForURL(`${url}/account`)
  await page.waitForFunction(() => document.querySelector<HTMLInputElement>('#email')!.value === 'ada@example.com')
  await page.goto(`${url}/account/security`)
  await openRow(page, 'identities')
  await page.getByText('Fake: ada@example.com').waitFor()
  t.strictSame(await violationsIn(page), [])

  // The browser returns to the address at which it is now.
  const returned = page.waitForEvent('framenavigated', (frame) => frame.url() === `${url}/account/security`)
  await button(page, 'Link Apple').click()
  await returned
  await openRow(page, 'identities')
  await page.getByText('Apple: grace@example.com').waitFor()
  await page.locator('li', { hasText: 'Apple: grace@example.com' }).getByRole('button').click()
  await page.locator('#confirmation-yes').click()
  await page.getByText('The account is unlinked.').waitFor()
  t.equal(await page.getByText('Apple: grace@example.com').count(), 0)

  const second = await openPage(t, `${url}/login`)
  await second.page.getByRole('link', { name: 'Continue with Apple' }).click()
  await second.page.waitForURL(`${url}/account`)
  await second.page.goto(`${url}/account/security`)
  await openRow(second.page, 'identities')
  await second.page.getByText('Apple: grace@example.com').waitFor()
  await button(second.page, 'Link Fake').click()
  await second.page.getByText('This is linked to another account already.').waitFor()
  t.equal(second.page.url(), `${url}/account/security`)
})
