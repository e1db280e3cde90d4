import type { Page } from 'playwright-core'
import t from 'tap'
import { codeOf } from '../../plugins/sign-in/totp/codes.ts'
import { look, openPage, oppositeLooks, served } from '../helpers/browser.ts'

const FAILED_401 = 'Failed to load resource: the server responded with a status of 401 (Unauthorized)'

t.test('15.3 /docs of the node', async (t) => {
  const { url, admin } = await served['the node']!(t)

  await t.test('8 an operation can be sent with a pasted token, with or without Bearer, which a reload keeps', async (t) => {
    const { page, foreign, problems } = await openPage(t, `${url}/docs`)
    const openDialog = () => page.getByRole('button', { name: 'Authorize' }).first().click()
    const close = async (name: string) => {
      await page.locator('.modal-ux').getByRole('button', { name }).first().click()
      await page.locator('.modal-ux').getByRole('button', { name: 'Close' }).first().click()
    }
    for (const token of [admin.headers.authorization, admin.headers.authorization.replace('Bearer ', ' ')]) {
      await openDialog()
      await page.getByLabel('bearer').first().fill(token)
      await close('Apply credentials')
      t.strictSame(await readProtected(page), ['200', admin.email])
      if (token.startsWith('Bearer')) {
        await page.reload()
        t.strictSame(await readProtected(page), ['200', admin.email])
      }
      await openDialog()
      await close('Remove authorization')
    }
    await page.reload()
    t.strictSame(await readProtected(page), ['401', undefined])
    t.strictSame({ foreign, problems }, { foreign: [], problems: [FAILED_401] })
  })

  await t.test('15.3 16.4 logging in asks for the code of a second factor', async (t) => {
    const send = async (path: string, body: object, headers: object) => (await fetch(`${url}${path}`, {
      method: 'POST', headers: { 'content-type': 'application/json', ...headers }, body: JSON.stringify(body),
    })).json() as Promise<{ secret: string }>
    const user = { name: 'Grace', email: 'grace@example.com', password: 'quiet lantern river' }
    await send('/api/users', user, admin.headers)
    const { token } = await send('/api/auth/login', user, {}) as unknown as { token: string }
    const headers = { authorization: `Bearer ${token}` }
    const { secret } = await send('/api/auth/totp', {}, headers)
    const used = Math.floor(Date.now() / 30_000)
    await send('/api/auth/totp/confirm', { code: codeOf(secret, used) }, headers)

    const { page, problems } = await openPage(t, `${url}/docs/`)
    await page.getByRole('textbox', { name: 'E-mail address' }).fill(user.email)
    await page.getByRole('textbox', { name: 'Password' }).fill(user.password)
    await page.getByRole('button', { name: 'Log in', exact: true }).click()
    await page.getByRole('textbox', { name: 'Code' }).fill(codeOf(secret, used + 1))
    await page.getByRole('button', { name: 'Log in', exact: true }).click()
    await page.getByText(`Logged in as ${user.email}`).waitFor()
    t.notOk(await page.getByRole('textbox', { name: 'Code' }).isVisible())
    t.strictSame(problems, [FAILED_401])
  })

  await t.test('15.3 a login that is sent from the reference authorizes it, and a session that has ended is reported', async (t) => {
    const { page } = await openPage(t, `${url}/docs`)
    const login = page.locator('#operations-auth-logIn')
    await open(login)
    await login.locator('textarea').first().fill(JSON.stringify({ email: admin.email, password: admin.password }))
    await login.getByRole('button', { name: 'Execute' }).click()
    await page.getByText(`Logged in as ${admin.email}`).waitFor()
    t.strictSame(await readProtected(page), ['200', admin.email])

    const sessions = await (await fetch(`${url}/api/auth/sessions`, { headers: admin.headers })).json() as
      { id: string, current: boolean }[]
    for (const { id } of sessions.filter(({ current }) => !current)) {
      await fetch(`${url}/api/auth/sessions/${id}`, { method: 'DELETE', headers: admin.headers })
    }
    await page.reload()
    await page.getByText('Your session has ended. Log in again.').waitFor()
    t.ok(await page.getByRole('textbox', { name: 'E-mail address' }).isVisible())
  })
})

t.test('15.3 /docs of a host', async (t) => {
  const { url, admin } = await served['a host']!(t)

  await t.test('15.3 logging in authorizes the page, survives a reload, and ends with logging out', async (t) => {
    const { page, foreign, problems } = await openPage(t, `${url}/docs/`)
    await page.getByRole('textbox', { name: 'E-mail address' }).fill(admin.email)
    await page.getByRole('textbox', { name: 'Password' }).fill('not the password')
    await page.getByRole('button', { name: 'Log in', exact: true }).click()
    await page.getByText('The e-mail address or the password is wrong.').waitFor()
    t.strictSame(problems.splice(0), [FAILED_401])

    await page.getByRole('textbox', { name: 'Password' }).fill(admin.password)
    await page.getByRole('button', { name: 'Log in', exact: true }).click()
    await page.getByText(`Logged in as ${admin.email}`).waitFor()
    t.strictSame(await readProtected(page), ['200', admin.email])
    const stored = await page.evaluate(() => JSON.stringify([{ ...localStorage }, { ...sessionStorage }]))
    t.notMatch(stored, /eyJ/, 'no token is stored')

    await page.reload()
    await page.getByText(`Logged in as ${admin.email}`).waitFor()
    t.strictSame(await readProtected(page), ['200', admin.email])
    await page.getByRole('button', { name: 'Log out', exact: true }).click()
    await page.getByRole('textbox', { name: 'E-mail address' }).waitFor()
    await page.reload()
    await page.getByRole('textbox', { name: 'E-mail address' }).waitFor()
    t.strictSame(await readProtected(page), ['401', undefined])
    t.strictSame({ foreign, problems }, { foreign: [], problems: [FAILED_401] })
  })
})

t.test('15.3 a login at /login, which the reference leads to, authorizes it and GraphiQL', async (t) => {
  const { url, admin } = await served['a host']!(t)
  const { page, problems } = await openPage(t, `${url}/docs`)
  await page.getByRole('link', { name: 'More ways to log in' }).click()
  await page.getByLabel('E-mail address').first().fill(admin.email)
  await page.getByLabel('Password', { exact: true }).fill(admin.password)
  await page.getByRole('button', { name: 'Log in', exact: true }).click()
  await page.waitForURL(`${url}/docs`)
  await page.getByText(`Logged in as ${admin.email}`).waitFor()
  t.strictSame(await readProtected(page), ['200', admin.email])

  await page.goto(`${url}/graphql`)
  await page.getByText(`Logged in as ${admin.email}`).waitFor()
  t.strictSame(await page.evaluate(() => Object.keys(localStorage).filter((key) => key.startsWith('usher'))), [])
  await page.getByRole('button', { name: 'Log out', exact: true }).click()
  await page.goto(`${url}/login`)
  await page.getByLabel('E-mail address').first().waitFor()
  t.notOk(await page.locator('#logged-in').isVisible(), 'logging out ends the session of all pages')
  t.strictSame(problems, [])
})

t.test('15.3 /docs fits, light on a desktop and dark on a phone', async (t) => {
  const { url } = await served['a host']!(t)
  for (const { name, ...options } of oppositeLooks) {
    if (options.colorScheme === 'dark') options.viewport = { ...options.viewport, width: 360 }
    const { page, problems } = await openPage(t, `${url}/docs`, options)
    // All of them would take minutes. These have the widest parameters, bodies, media types and headers.
    for (const id of ['users-listUsers', 'users-createUser', 'uploads-createUpload']) {
      const operation = page.locator(`#operations-${id}`)
      await operation.locator('.opblock-summary-control').click()
      await operation.locator('.responses-table .response').last().waitFor()
    }
    const names = await page.locator('#operations-users-listUsers .parameters-col_name')
      .evaluateAll((cells) => cells.map((cell) => cell.scrollWidth - cell.clientWidth))
    t.ok(names.length > 5 && names.every((excess) => excess <= 0), `${name}: names of parameters fit: ${names}`)
    const { brightness, excess } = await look(page)
    t.equal(brightness < 128, options.colorScheme === 'dark', `${name}: ${brightness}`)
    t.equal(excess, 0, name)
    t.strictSame(problems, [], name)
  }
})

// Returns the status of GET /api/protected, and the user's address.
async function readProtected (page: Page): Promise<[status: string, email: string | undefined]> {
  const operation = page.locator('#operations-auth-getCurrentUser')
  await open(operation)
  await operation.getByRole('button', { name: 'Execute' }).click()
  const answer = operation.locator('.live-responses-table .response')
  const [status, text] = [await answer.locator('.response-col_status')
    .innerText(), await answer.locator('.response-col_description').innerText()]
  await operation.getByRole('button', { name: 'Clear' }).click()
  return [status.trim(), /\S+@example\.com/.exec(text)?.[0].replaceAll('"', '').replace(/,$/, '')]
}

async function open (operation: ReturnType<Page['locator']>): Promise<void> {
  await operation.locator('.opblock-summary-control').waitFor()
  if (await operation.locator('.opblock-summary-control[aria-expanded=false]').count() > 0) {
    await operation.locator('.opblock-summary-control').click()
  }
  const tryIt = operation.getByRole('button', { name: 'Try it out' })
  await operation.locator('.try-out').waitFor()
  if (await tryIt.count() > 0) await tryIt.click()
}
