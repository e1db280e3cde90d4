// The pages and the client in a browser that has nothing which one of `browserslist` in package.json lacks.
import type { Page } from 'playwright-core'
import t from 'tap'
import { newFeatures as removed } from '../../scripts/new-features.ts'
import { createUsher } from '../helpers/app.ts'
import { addAuthenticator, openProfile, openRow } from '../helpers/browser.ts'
import { createMailer } from '../helpers/mail.ts'

const button = (page: Page, name: string) => page.getByRole('button', { name, exact: true })

/** Removes them from a window, and says how many were there. */
function removeNew (paths: string[][]): void {
  let count = 0
  const remove = (holder: unknown, name: string) => {
    if (typeof holder !== 'object' && typeof holder !== 'function') return
    if (holder === null || !Object.hasOwn(holder, name)) return
    if (Reflect.deleteProperty(holder, name)) count++
  }
  for (const path of paths) {
    const last = path.at(-1)!.replace(/_static$/, '')
    const holder = path.slice(0, -1).reduce<any>((value, name) => {
      try {
        return value?.[name]
      } catch {
        return undefined
      }
    }, window)
    if (path[0] === 'Window' || path.length === 1) remove(window, last)
    remove(holder, last)
    // `Response.json` is new, the method of that name is not.
    if (typeof holder === 'function' && !path.at(-1)!.endsWith('_static')) remove(holder.prototype, last)
  }
  Object.assign(window, { removedCount: count })
}

t.test('15.5 the pages work in the oldest browsers: sign-up, its link, login, account, passkey, logout', async (t) => {
  const paths = removed.map((path) => path.join('.'))
  for (const name of ['AbortSignal.timeout_static', 'AbortSignal.any_static', 'Promise.withResolvers', 'URL.canParse_static', 'Set.union']) {
    t.ok(paths.includes(name), name)
  }
  const inbox = createMailer()
  const { app, prefix } = await createUsher(t, { prefix: '/accounts', mailer: inbox.mailer, signUp: true })
  const { port } = new URL(await app.listen({ port: 0, host: '127.0.0.1' }))
  const url = `http://localhost:${port}${prefix}`
  const context = await openProfile(t)
  await context.addInitScript(removeNew, removed as string[][])
  const page = await context.newPage()
  page.setDefaultTimeout(60_000)
  const problems: string[] = []
  page.on('pageerror', (error) => problems.push(`${error}`))
  page.on('console', (message) => { if (message.type() === 'error') problems.push(message.text()) })
  await addAuthenticator(page)

  await page.goto(`${url}/sign-up`)
  t.strictSame(await page.evaluate(() => ['timeout' in AbortSignal, 'withResolvers' in Promise]), [false, false])
  t.ok(await page.evaluate(() => (globalThis as never as { removedCount: number }).removedCount) > 300)
  await page.getByLabel('Name').fill('Ada')
  await page.getByLabel('E-mail address').fill('ada@example.com')
  await page.getByLabel('Password', { exact: true }).fill('violet engine notes')
  await button(page, 'Create account').click()
  await page.getByText('An e-mail is on its way to ada@example.com.').waitFor()
  await page.goto(/^http:\S+#token=\S+$/m.exec((await inbox.of('ada@example.com', 1)).at(-1)!.text)![0].replace('127.0.0.1', 'localhost'))
  await page.locator('form button:not([type=button])').click()
  await page.waitForURL(`${url}/account`)
  for (const path of ['sessions', 'keys', 'files', 'data']) {
    await page.goto(`${url}/account/${path}`)
    await page.locator('#account').waitFor()
  }
  await page.goto(`${url}/account/security`)
  await openRow(page, 'passkeys')
  await button(page, 'Add a passkey').click()
  await page.getByText('The passkey is added.').waitFor()
  t.notOk(await page.locator('#scripts-missing').count())
  await page.goto(`${url}/account`)
  await page.getByLabel('Name', { exact: true }).fill('Ada Lovelace')
  await page.locator('#profile button').click()
  await page.locator('#profile [role=status]:not(:empty)').waitFor()
  await button(page, 'Log out').click()
  await page.getByText('You are logged out.').waitFor()
  await button(page, 'Log in with a passkey').click()
  await page.waitForURL(`${url}/account`)
  t.strictSame(problems, [])
})

t.test('15.5 a page whose scripts are blocked says so, instead of being empty', async (t) => {
  const { app, prefix } = await createUsher(t, { prefix: '/accounts' })
  const url = `${await app.listen({ port: 0, host: '127.0.0.1' })}${prefix}`
  const context = await openProfile(t)
  await context.route(/\.js$/, (route) => route.abort())
  const page = await context.newPage()
  page.setDefaultTimeout(60_000)
  for (const path of ['account', 'set-password#token=abc', 'docs']) {
    await page.goto(`${url}/${path}`)
    const sentence = page.getByText('The scripts of this page have not loaded.')
    await sentence.waitFor()
    t.ok(await sentence.isVisible(), path)
    if (process.env['SHOTS']) await page.screenshot({ path: `${process.env['SHOTS']}/blocked-${path.split('#')[0]}.png` })
  }
})
