import t from 'tap'
import { createUsher } from '../helpers/app.ts'
import { openPage } from '../helpers/browser.ts'
import { createMailer } from '../helpers/mail.ts'

t.test('4.7 a mail link opens a page that sets the password, also under a prefix', async (t) => {
  const inbox = createMailer()
  const usher = await createUsher(t, { prefix: '/accounts', mailer: inbox.mailer })
  const { app, inject, createUser, login } = usher
  await app.listen({ port: 0, host: '127.0.0.1' })
  const user = await createUser()
  await inject('POST', '/api/auth/password-reset', { payload: { email: user.email } })
  const [mail] = await inbox.of(user.email, 1)
  const link = /^http:\S+$/m.exec(mail!.text)![0]
  const { page, foreign, problems } = await openPage(t, link)
  t.notMatch(page.url(), 'token', 'the address does not keep it')

  const status = page.getByRole('status')
  await page.getByLabel('New password').fill('password1')
  await page.getByRole('button', { name: 'Set password' }).click()
  await status.getByText('Password is too common.').waitFor()
  await page.getByLabel('Show password').check()
  t.equal(await page.getByLabel('New password').getAttribute('type'), 'text')
  await page.getByLabel('New password').fill('a password of tomorrow')
  await page.getByRole('button', { name: 'Set password' }).click()
  await status.getByText('Your password is set. You can log in with it now.').waitFor()
  await login({ email: user.email, password: 'a password of tomorrow' })
  // The browser's console reports each response that is not successful.
  t.strictSame({ foreign, problems }, { foreign: [], problems: ['Failed to load resource: the server responded with a status of 400 (Bad Request)'] })

  const late = await openPage(t, link)
  await late.page.getByLabel('New password').fill('a password of the day after')
  await late.page.getByRole('button', { name: 'Set password' }).click()
  await late.page.getByRole('status').getByText('This link has expired or was used already. Request a new one.').waitFor()

  const bare = await openPage(t, link.split('#')[0]!)
  await bare.page.getByRole('status').getByText('Open this page with the link from your e-mail.').waitFor()
  t.strictSame([bare.foreign, bare.problems], [[], []])
})
