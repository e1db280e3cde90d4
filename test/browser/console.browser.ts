import { gzipSync } from 'node:zlib'
import type { Page } from 'playwright-core'
import t from 'tap'
import { createUsher } from '../helpers/app.ts'
import { checkLooks, look, looks, openPage } from '../helpers/browser.ts'
import { createMailer } from '../helpers/mail.ts'
import { createPost } from '../helpers/graphql.ts'
import { nightly } from '../helpers/nightly.ts'
import { fieldPart, filePart, post } from '../helpers/uploads.ts'
import { openSql } from '../helpers/sql.ts'

const evil = '<img src=x onerror=alert(1)> \u202eevil \u05d0'
const MAX_BYTES = 60 * 1024

const usher = await createUsher(t, { prefix: '/base', console: true, organizations: true, mailer: createMailer().mailer })
const { port } = new URL(await usher.app.listen({ port: 0, host: '127.0.0.1' }))
const url = `http://localhost:${port}/base/console`
const { admin } = usher
const user = await usher.createUser({ name: evil })
await createPost(usher, user)
await post(usher, [filePart('Text', 'a file.txt'), fieldPart('description', 'D')], user)
await usher.inject('POST', '/api/users', {
  headers: admin.headers, payload: { name: 'Robot', email: 'robot@example.com', kind: 'service' },
})
await openSql(t, usher)`insert into failed_deliveries (id, consumer, type, subject, data, created_at, attempts, error)
  values (gen_random_uuid(), 'handler of a very-long-name-without-a-space-that-could-break-a-table-on-a-phone', 'user.created',
    ${user.id}, ${JSON.stringify({ userId: user.id })}::text::jsonb, now(), 9, 'The consumer did not answer')`

/** Logs the admin in with the keyboard. */
async function logIn (page: Page): Promise<void> {
  await page.getByLabel('E-mail address').fill(admin.email)
  await page.getByLabel('Password', { exact: true }).fill(admin.password)
  await page.keyboard.press('Enter')
}

const organization = (await usher.inject('POST', '/api/organizations', {
  headers: admin.headers, payload: { name: evil, slug: 'a'.repeat(40) },
})).json().id
await usher.inject('POST', `/api/organizations/${organization}/members`, {
  headers: admin.headers, payload: { userId: user.id, role: 'member' },
})
await usher.inject('POST', `/api/organizations/${organization}/invitations`, {
  headers: admin.headers, payload: { email: 'somebody.with.a.long.address@a-long-domain-of-mails.example.com', role: 'admin' },
})

const paths = [
  '', '/users', '/users/new', `/users/${user.id}`, `/users/${user.id}/sign-in`, `/users/${user.id}/sessions`,
  `/users/${user.id}/keys`, `/users/${user.id}/files`, `/users/${user.id}/log`, `/users/${user.id}/organizations`,
  '/organizations', `/organizations/${organization}`, `/organizations/${organization}/members`, `/organizations/${organization}/invitations`,
  '/posts', '/uploads', '/log', '/deliveries', '/keys', '/providers',
  '/settings', '/nothing',
]

nightly('18.2 every page is accessible, fits, and is small', async (t) => {
  const { page, problems, foreign } = await openPage(t, url)
  t.equal(new URL(page.url()).pathname, '/base/login')
  await logIn(page)
  await page.getByRole('heading', { name: 'Overview' }).waitFor()
  const assets = new Map<string, number>()
  page.on('response', (response) => {
    if (response.url().includes('/assets/')) {
      response.body().then((body) => assets.set(response.url(), gzipSync(body).length), () => {})
    }
  })
  for (const path of ['/login?done=out', ...paths]) {
    await page.goto(`${url}${path}`)
    await checkLooks(t, page, `console${path.replaceAll(/\W+/g, '-')}`)
    for (const { colorScheme } of looks) {
      await page.emulateMedia({ colorScheme })
      const { brightness } = await look(page)
      t.ok(colorScheme === 'light' ? brightness > 200 : brightness < 60, `${path} ${colorScheme}`)
    }
    const bytes = gzipSync(await page.content()).length + [...assets.values()].reduce((sum, size) => sum + size, 0)
    t.ok(bytes <= MAX_BYTES, `${path} has ${bytes} bytes`)
  }
  t.same(foreign, [])
  // The page that does not exist is one.
  t.same(problems.filter((problem) => !problem.includes('404')), [])
})

t.test('18.2 without JavaScript, an admin logs in, reads, and changes a user', async (t) => {
  const { page } = await openPage(t, `${url}/users/${user.id}`, { javaScriptEnabled: false })
  await logIn(page)
  await page.getByRole('button', { name: 'Open the console' }).click()
  await page.getByLabel('Name', { exact: true }).fill('Somebody else')
  await page.getByRole('button', { name: 'Save' }).click()
  await page.getByText('Saved.').waitFor()
  t.equal(await page.getByLabel('Name', { exact: true }).inputValue(), 'Somebody else')
})

t.test('18.3 a session whose user was authenticated recently opens the console by itself, and another one after a login', async (t) => {
  const { page } = await openPage(t, `http://localhost:${port}/base/login`)
  await logIn(page)
  await page.waitForURL('**/account')
  await page.getByRole('link', { name: 'Open the admin console' }).click()
  await page.getByRole('heading', { name: 'Overview' }).waitFor()
  await page.getByRole('button', { name: 'Log out' }).click()
  await page.getByText('You are logged out of the console.').waitFor()
  await openSql(t, usher)`update sessions set auth_time = now() - interval '11 minutes' where user_id = ${admin.id}`
  await page.goto(`${url}/users`)
  await page.getByText('For this, log in once more.').waitFor()
  t.equal(await page.locator('#logged-in').isVisible(), false)
  await logIn(page)
  await page.getByRole('heading', { name: 'Users' }).waitFor()
  t.equal(new URL(page.url()).pathname, '/base/console/users')
  // Going back leads neither to the page that opens the console, nor around in a circle.
  await page.goBack()
  await page.waitForURL('**/login?confirm**')
})

t.test('18.3 a link from another site leads into the console that is open', async (t) => {
  const { page } = await openPage(t, url)
  await logIn(page)
  await page.getByRole('heading', { name: 'Overview' }).waitFor()
  const sql = openSql(t, usher)
  const count = async () => (await sql`select from sessions where user_id = ${admin.id} and is_console`).length
  const before = await count()
  await page.goto(`data:text/html,<a href="${url}/users">a link</a>`)
  await page.getByRole('link').click()
  await page.getByRole('heading', { name: 'Users' }).waitFor()
  t.equal(await count(), before)
})

t.test('18.2 a list is searched while its reader types, and its address says what it shows', async (t) => {
  const { page, problems } = await openPage(t, `${url}/users`)
  await logIn(page)
  await page.getByRole('heading', { name: 'Users' }).waitFor()
  await page.getByRole('searchbox').pressSequentially('robot')
  await page.getByText('1 user', { exact: true }).waitFor()
  t.equal(await page.locator('tbody tr').count(), 1)
  t.equal(new URL(page.url()).search, '?q=robot')
  t.equal(await page.evaluate(() => document.activeElement?.id), 'q', 'the reader goes on typing')
  await page.getByLabel('Selection', { exact: true }).check()
  t.equal(await page.getByLabel('Select Robot').isChecked(), true, 'all rows are selected, also of what was found')
  await page.getByRole('searchbox').fill('')
  await page.getByText('1 user', { exact: true }).waitFor({ state: 'detached' })
  t.same(problems, [])
})

t.test('18.2 the filters of a list open below their button, which stays where it is', async (t) => {
  const { page } = await openPage(t, `${url}/users`)
  await logIn(page)
  await page.getByRole('heading', { name: 'Users' }).waitFor()
  const filters = page.locator('summary', { hasText: 'Filters' })
  const before = await filters.boundingBox()
  t.equal(await page.getByLabel('Role').isVisible(), false)
  await filters.click()
  t.same(await filters.boundingBox(), before)
  await page.getByLabel('Role').selectOption('admin')
  await page.getByRole('button', { name: 'Apply' }).click()
  await page.waitForURL(/role=admin/)
  t.equal(await page.getByLabel('Role').isVisible(), true, 'they stay open while they apply')
})

t.test('18.4 without JavaScript, users are selected on a phone, and disabled after a question', async (t) => {
  const other = await usher.createUser({ name: 'Selected' })
  const { page } = await openPage(t, `${url}/users`, { javaScriptEnabled: false, viewport: { width: 390, height: 844 } })
  await logIn(page)
  await page.getByRole('button', { name: 'Open the console' }).click()
  t.equal(await page.getByRole('link', { name: 'Settings' }).isVisible(), false)
  await page.getByRole('button', { name: 'Menu' }).click()
  await page.getByRole('link', { name: 'Users', exact: true }).click()
  t.equal(await page.getByRole('button', { name: 'Disable' }).isVisible(), false, 'nothing is selected')
  await page.getByLabel('Select Selected').check()
  await page.getByRole('button', { name: 'Disable' }).click()
  await page.getByRole('heading', { name: 'Disable 1 user?' }).waitFor()
  await page.getByRole('button', { name: 'Disable' }).click()
  await page.getByText('1 of 1 done').waitFor()
  const { body } = await usher.inject('GET', `/api/users/${other.id}`, { headers: admin.headers })
  t.equal(JSON.parse(body).disabled, true)
})

t.test('18.1 a question is a dialog, which deletes a user whose address is typed', async (t) => {
  const other = await usher.createUser({ name: 'Deleted by a dialog' })
  const { page, problems } = await openPage(t, `${url}/users`)
  await logIn(page)
  await page.getByRole('heading', { name: 'Users' }).waitFor()
  await page.getByRole('button', { name: 'Actions: Deleted by a dialog' }).click()
  await page.getByRole('link', { name: 'Delete', exact: true }).click()
  const dialog = page.getByRole('dialog', { name: 'Delete Deleted by a dialog for good' })
  await dialog.waitFor()
  await checkLooks(t, page, 'console-dialog')
  await page.keyboard.press('Escape')
  await dialog.waitFor({ state: 'detached' })
  t.equal(new URL(page.url()).pathname, '/base/console/users', 'the list is still there')
  await page.getByRole('button', { name: 'Actions: Deleted by a dialog' }).click()
  await page.getByRole('link', { name: 'Delete', exact: true }).click()
  const submit = dialog.getByRole('button', { name: 'Delete' })
  t.equal(await submit.isEnabled(), false)
  await dialog.getByRole('textbox').fill(`${other.email}x`)
  t.equal(await submit.isEnabled(), false, 'nothing else suffices')
  await dialog.getByRole('textbox').fill(other.email)
  await submit.click()
  await page.waitForURL(/done=deleted/)
  t.equal((await usher.inject('GET', `/api/users/${other.id}`, { headers: admin.headers })).statusCode, 404)
  t.same(problems, [])
})

t.test('18.4 with a script, what is done with several users is asked in a dialog', async (t) => {
  const other = await usher.createUser({ name: 'Selected for a dialog' })
  const { page, problems } = await openPage(t, `${url}/users`)
  await logIn(page)
  // The script adds this box.
  await page.getByLabel('Selection', { exact: true }).waitFor()
  await page.getByLabel('Select Selected for a dialog').check()
  await page.getByRole('button', { name: 'Disable', exact: true }).click()
  const dialog = page.getByRole('dialog', { name: 'Disable 1 user?' })
  await dialog.getByRole('link', { name: 'Cancel' }).click()
  await dialog.waitFor({ state: 'detached' })
  t.equal(await page.getByLabel('Select Selected for a dialog').isChecked(), true, 'the selection is still there')
  await page.getByRole('button', { name: 'Disable', exact: true }).click()
  await dialog.getByRole('button', { name: 'Disable' }).click()
  await page.getByText('1 of 1 done').waitFor()
  const { body } = await usher.inject('GET', `/api/users/${other.id}`, { headers: admin.headers })
  t.equal(JSON.parse(body).disabled, true)
  t.same(problems, [])
})

t.test('18.2 on a phone, each row of a list is at most 72 pixels high, and its menu opens without a script', async (t) => {
  const { page } = await openPage(t, `${url}/users`, { javaScriptEnabled: false, viewport: { width: 390, height: 844 } })
  await logIn(page)
  await page.getByRole('button', { name: 'Open the console' }).click()
  for (const path of ['/users', '/posts', '/uploads', '/keys', '/deliveries', '/organizations', '/log']) {
    await page.goto(`${url}${path}`)
    const heights = await page.locator('tbody tr').evaluateAll((rows) => rows.map((row) => row.getBoundingClientRect().height))
    t.ok(Math.max(0, ...heights) <= 72, `${path}: ${Math.max(0, ...heights)}`)
  }
  await page.goto(`${url}/users`)
  t.equal(await page.getByRole('link', { name: 'Delete', exact: true }).count(), 0, 'nothing red in a row')
  await page.getByRole('button', { name: 'Actions: Robot' }).click()
  await page.getByRole('link', { name: 'Delete', exact: true }).click()
  await page.getByRole('heading', { name: 'Delete Robot for good' }).waitFor()
})

t.test('18.1 an id is copied, and its button says so', async (t) => {
  const { page } = await openPage(t, `${url}/users/${user.id}`, { permissions: ['clipboard-read', 'clipboard-write'] })
  await logIn(page)
  await page.getByRole('button', { name: 'Copy' }).click()
  await page.getByRole('button', { name: 'Copied' }).waitFor()
  t.equal(await page.evaluate(() => navigator.clipboard.readText()), user.id)
})
