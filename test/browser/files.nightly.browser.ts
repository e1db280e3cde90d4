import t from 'tap'
import { createUsher } from '../helpers/app.ts'
import { openPage, violationsIn } from '../helpers/browser.ts'
import { fieldPart, filePart, post } from '../helpers/uploads.ts'

t.test('15.2 /account/files lists files in pages, changes who may open them, shares and deletes them', async (t) => {
  const usher = await createUsher(t, { prefix: '/accounts' })
  const { port } = new URL(await usher.app.listen({ port: 0, host: '127.0.0.1' }))
  const user = await usher.createUser()
  for (let index = 0; index < 21; index++) {
    await post(usher, [filePart('Text', `file ${index}.txt`), fieldPart('description', 'D')], user)
  }
  const { page } = await openPage(t, `http://localhost:${port}/accounts/account/files`)
  await page.getByLabel('E-mail address').fill(user.email)
  await page.getByLabel('Password', { exact: true }).fill(user.password)
  await page.getByRole('button', { name: 'Log in', exact: true }).first().click()
  const files = page.locator('#files > li')
  await page.getByRole('link', { name: 'file 20.txt' }).waitFor()
  t.equal(await files.count(), 20)
  await page.getByRole('button', { name: 'Show more' }).click()
  await page.getByRole('link', { name: 'file 0.txt' }).waitFor()
  t.equal(await files.count(), 21)
  t.notOk(await page.getByRole('button', { name: 'Show more' }).isVisible())

  const first = files.first()
  const openMenu = () => first.locator('[data-menu]').click()
  await openMenu()
  await first.getByRole('button', { name: 'Make private' }).click()
  await first.locator('[data-visibility]', { hasText: /^Private$/ }).waitFor()
  t.equal(await first.getByRole('link').count(), 0, 'a private file has no link that nobody could follow')
  await openMenu()
  await first.getByRole('button', { name: 'Links' }).click()
  await first.getByText('There is no link to this file.').waitFor()
  await first.getByLabel('For whom').fill('Grace')
  await first.getByLabel('It works for').selectOption('3600')
  await first.getByRole('button', { name: 'Create a link' }).click()
  await first.getByText('Copy this link now').waitFor()
  const url = await first.locator('code').textContent()
  t.match(url, /^http:\/\/localhost:\d+\/accounts\/api\/uploads\/[\w-]+\?link=[\w-]{43}$/)
  t.equal((await fetch(url!)).status, 200)
  t.strictSame(await violationsIn(page), [])
  await first.getByRole('button', { name: 'Revoke' }).click()
  await page.getByText('The link is revoked.').waitFor()
  t.equal((await fetch(url!)).status, 404)

  await openMenu()
  await first.getByRole('button', { name: 'Delete' }).click()
  await page.locator('#confirmation-yes').click()
  await page.getByText('The file is deleted.').waitFor()
  t.equal(await files.count(), 20)
  const left = await usher.inject('GET', '/api/uploads', { headers: user.headers })
  t.equal(left.json().length, 20)
})

t.test('15.2 without uploads, /account has no files', async (t) => {
  const { inject } = await createUsher(t, { without: ['uploads'] })
  t.equal((await inject('GET', '/account/files')).statusCode, 404)
  t.notMatch((await inject('GET', '/account')).body, 'account/files')
})
