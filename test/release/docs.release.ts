// Functions that are passed to `evaluate` run in the browser.
/// <reference lib="dom" />
/// <reference lib="dom.iterable" />
import type { Locator, Page } from 'playwright-core'
import t from 'tap'
import { codeOf } from '../../plugins/sign-in/totp/codes.ts'
import { look, openPage, oppositeLooks, served, violationsIn } from '../helpers/browser.ts'

const FAILED_401 = 'Failed to load resource: the server responded with a status of 401 (Unauthorized)'

t.test('15.3 /docs of the node', async (t) => {
  const { url, admin } = await served['the node']!(t)

  await t.test('8 an operation can be sent with a pasted token, with or without Bearer, which a reload keeps', async (t) => {
    const { page, foreign, problems } = await openPage(t, `${url}/docs`)
    const removal = page.getByRole('button', { name: 'Remove the token' })
    for (const token of [admin.headers.authorization, admin.headers.authorization.replace('Bearer ', ' ')]) {
      await open(page, '#token')
      await page.getByLabel('Token', { exact: true }).fill(token)
      await page.getByRole('button', { name: 'Use this token' }).click()
      await page.getByText('Requests carry the token that you have given.').waitFor()
      t.strictSame(await readProtected(page), ['200', admin.email])
      if (token.startsWith('Bearer')) {
        await page.reload()
        t.strictSame(await readProtected(page), ['200', admin.email])
        await open(page, '#token')
      }
      await removal.click()
    }
    t.strictSame(await readProtected(page), ['401', undefined])
    t.equal(await page.locator('#operation-getCurrentUser .answer .badge.error').innerText(), '401 Unauthorized')
    await page.reload()
    t.strictSame(await readProtected(page), ['401', undefined])
    t.strictSame({ foreign, problems }, { foreign: [], problems: [FAILED_401, FAILED_401] })
  })

  await t.test('15.3 the filter finds operations, and an address opens one', async (t) => {
    const { page, problems } = await openPage(t, `${url}/docs#operation-createUpload`)
    const shown = page.locator('.index ul a:visible')
    await page.locator('.index [aria-current]', { hasText: 'Create upload' }).waitFor()
    const heading = (await page.getByRole('link', { name: 'Create upload', exact: true }).last().boundingBox())!
    t.ok(heading.y >= 56 && heading.y < 300, `${heading.y}: below the bar`)
    await page.keyboard.press('/')
    await page.keyboard.type('PasskeyS delete')
    t.strictSame(await shown.evaluateAll((all) => all.map((link) => link.getAttribute('href'))), [
      '#operation-removePasskey', '#operation-removeUserPasskey',
    ])
    t.match(await page.locator('#found').innerText(), /^2 of \d+ operations$/)
    await page.keyboard.press('Enter')
    await page.waitForURL(`${url}/docs#operation-removePasskey`)
    await page.locator('.index [aria-current]', { hasText: 'Remove passkey' }).waitFor()
    await page.getByRole('searchbox', { name: 'Find an operation' }).fill('')
    t.ok(await shown.count() > 80)
    t.strictSame(problems, [])
  })

  await t.test('15.3 a file is uploaded and fetched back, and each request is shown as a command', async (t) => {
    const { page, problems } = await openPage(t, `${url}/docs`)
    await logIn(page, admin)
    const upload = await open(page, '#operation-createUpload')
    await upload.getByLabel('file').setInputFiles({ name: 'a.txt', mimeType: 'text/plain', buffer: Buffer.from('Hello') })
    t.equal(await upload.getByLabel('description').inputValue(), 'A greeting')
    t.equal(await send(upload), '200')
    const { fileUrl } = JSON.parse(await upload.locator('.answer pre').first().innerText()) as { fileUrl: string }
    t.match(await upload.getByRole('group', { name: 'curl' }).innerText(), /-H "Authorization: Bearer \$TOKEN".*-F 'file=@a\.txt'/s)
    const users = await open(page, '#operation-listUsers')
    await page.context().grantPermissions(['clipboard-read', 'clipboard-write'])
    await users.getByLabel('limit').fill('7')
    await users.getByRole('button', { name: 'Copy' }).click()
    await users.getByRole('button', { name: 'Copied' }).waitFor()
    t.match(await page.evaluate(() => navigator.clipboard.readText()), `curl -X GET '${url}/api/users?limit=7'`)
    await users.getByLabel('Accept').selectOption('application/vnd.api.v2+json')
    await users.getByLabel('limit').fill('1')
    t.equal(await send(users), '200')
    t.match(await users.locator('.answer pre').first().innerText(), '"version": "2"')
    const redirect = await open(page, '#operation-redirect')
    await redirect.getByRole('button', { name: 'Send' }).click()
    await redirect.getByText('A redirect, which browsers do not show to scripts.').waitFor()
    t.ok(fileUrl.startsWith('/'))
    t.strictSame(problems, [])
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
    await logInButton(page).click()
    await page.getByRole('textbox', { name: 'E-mail address' }).fill(user.email)
    await page.getByRole('textbox', { name: 'Password' }).fill(user.password)
    await page.getByRole('button', { name: 'Log in', exact: true }).click()
    await page.locator('#sign-in [name=code]').fill(codeOf(secret, used + 1))
    await page.getByRole('button', { name: 'Log in', exact: true }).click()
    await seeUser(page, user.email)
    t.notOk(await page.locator('#sign-in [name=code]').isVisible())
    t.strictSame(problems, [FAILED_401])
  })

  await t.test('15.3 a login that is sent from the reference authorizes it, and a session that has ended is reported', async (t) => {
    const { page } = await openPage(t, `${url}/docs`)
    const login = await open(page, '#operation-logIn')
    await login.getByLabel('Body').fill(JSON.stringify({ email: admin.email, password: admin.password }))
    await login.getByRole('button', { name: 'Send' }).click()
    await seeUser(page, admin.email)
    t.strictSame(await readProtected(page), ['200', admin.email])

    const sessions = await (await fetch(`${url}/api/auth/sessions`, { headers: admin.headers })).json() as
      { id: string, current: boolean }[]
    for (const { id } of sessions.filter(({ current }) => !current)) {
      await fetch(`${url}/api/auth/sessions/${id}`, { method: 'DELETE', headers: admin.headers })
    }
    await page.reload()
    await page.getByText('Your session has ended. Log in again.').waitFor()
    t.ok(await logInButton(page).isVisible())
  })
})

t.test('15.3 /docs of a host', async (t) => {
  const { url, admin } = await served['a host']!(t)

  await t.test('15.3 logging in authorizes the page, survives a reload, and ends with logging out', async (t) => {
    const { page, foreign, problems } = await openPage(t, `${url}/docs/`)
    await logInButton(page).click()
    await page.getByRole('textbox', { name: 'E-mail address' }).fill(admin.email)
    await page.getByRole('textbox', { name: 'Password' }).fill('not the password')
    await page.getByRole('button', { name: 'Log in', exact: true }).click()
    await page.getByText('The e-mail address or the password is wrong.').waitFor()
    t.strictSame(problems.splice(0), [FAILED_401])

    await page.getByRole('textbox', { name: 'Password' }).fill(admin.password)
    await page.getByRole('button', { name: 'Log in', exact: true }).click()
    await seeUser(page, admin.email)
    t.strictSame(await readProtected(page), ['200', admin.email])
    const stored = await page.evaluate(() => JSON.stringify([{ ...localStorage }, { ...sessionStorage }]))
    t.notMatch(stored, /eyJ/, 'no token is stored')

    await page.reload()
    await seeUser(page, admin.email)
    t.strictSame(await readProtected(page), ['200', admin.email])
    // The form is there before the session has ended.
    const ended = page.waitForResponse(/\/auth\/logout$/)
    await logOut(page)
    await ended
    await logInButton(page).waitFor()
    await page.reload()
    await logInButton(page).waitFor()
    t.strictSame(await readProtected(page), ['401', undefined])
    t.strictSame({ foreign, problems }, { foreign: [], problems: [FAILED_401] })
  })
})

t.test('15.3 a login at /login, which the reference leads to, authorizes it and GraphiQL', async (t) => {
  const { url, admin } = await served['a host']!(t)
  const { page, problems } = await openPage(t, `${url}/docs`)
  await logInButton(page).click()
  await page.getByRole('link', { name: 'More ways to log in' }).click()
  await page.getByLabel('E-mail address').first().fill(admin.email)
  await page.getByLabel('Password', { exact: true }).fill(admin.password)
  await page.getByRole('button', { name: 'Log in', exact: true }).click()
  await page.waitForURL(`${url}/docs`)
  await seeUser(page, admin.email)
  t.strictSame(await readProtected(page), ['200', admin.email])

  await page.goto(`${url}/graphql`)
  await seeUser(page, admin.email)
  t.strictSame(await page.evaluate(() => Object.keys(localStorage).filter((key) => key.startsWith('usher'))), [])
  await logOut(page)
  await page.goto(`${url}/login`)
  await page.getByLabel('E-mail address').first().waitFor()
  t.notOk(await page.locator('#logged-in').isVisible(), 'logging out ends the session of all pages')
  t.strictSame(problems, [])
})

t.test('15.3 /docs is accessible and fits, light on a desktop and dark on a phone', async (t) => {
  const { url } = await served['a host']!(t)
  for (const { name, ...options } of oppositeLooks) {
    if (options.colorScheme === 'dark') options.viewport = { ...options.viewport, width: 360 }
    const { page, foreign, problems } = await openPage(t, `${url}/docs`, options)
    const isPhone = options.colorScheme === 'dark'
    await logInButton(page).waitFor()
    t.equal(await page.locator('#find').isVisible(), !isPhone, 'the list is beside the content, or over it')
    t.equal(await page.locator('#operation-listUsers .optional').getAttribute('open') === null, isPhone, 'optional parameters are folded on a phone')
    if (isPhone) {
      await page.getByRole('button', { name: 'Find an operation' }).click()
      await page.keyboard.type('create user')
      t.strictSame(await violationsIn(page), [], 'the list')
      await page.locator('.index a:visible', { hasText: /^POST Create user$/ }).click()
      await page.locator('#find').waitFor({ state: 'hidden' })
      const path = (await page.locator('#operation-createUser .path').boundingBox())!
      const code = (await page.locator('#operation-createUser .request').boundingBox())!
      t.ok(path.y >= 0 && path.y < options.viewport.height && path.height < 40 && code.y > path.y, 'in one line, with the example below')
    }
    for (const state of ['folded', 'open']) {
      const { brightness, excess } = await look(page)
      t.equal(brightness < 128, options.colorScheme === 'dark', `${name}: ${brightness}`)
      t.equal(excess, 0, `${name}, ${state}`)
      t.strictSame(await violationsIn(page), [], `${name}, ${state}`)
      await page.evaluate(() => { for (const details of document.querySelectorAll('details')) details.open = true })
    }
    t.strictSame({ foreign, problems }, { foreign: [], problems: [] }, name)
  }
})

t.test('8 /docs/guide is an index with a search, accessible and fitting, light on a desktop and dark on a phone', async (t) => {
  const { url } = await served['a host']!(t)
  for (const { name, ...options } of oppositeLooks) {
    const { page, foreign, problems } = await openPage(t, `${url}/docs`, options)
    const isPhone = options.colorScheme === 'dark'
    if (isPhone) await page.getByRole('button', { name: 'Operations' }).click()
    await page.locator('a:visible', { hasText: /^Documents$/ }).click()
    await page.waitForURL(`${url}/docs/guide`)
    await page.locator('[data-search]').waitFor()
    await page.keyboard.press('/')
    await page.getByRole('searchbox').fill('bcrypt hashes of passw')
    await page.getByRole('status').getByText(/^\d+ results?$/).waitFor()
    t.strictSame(await violationsIn(page), [], `${name}, search`)
    const found = page.getByRole('link', { name: /^Hashes of passwords Moving users to Usher, and away from it/ })
    t.strictSame((await found.locator('mark').allInnerTexts()).slice(0, 1), ['passwordHash'], 'with the words that were found')
    await found.click()
    await page.waitForURL(`${url}/docs/guide/operations/import#hashes-of-passwords`)
    for (const path of ['', '/contract', '/settings', '/operations/import', '/troubleshooting']) {
      await page.goto(`${url}/docs/guide${path}`)
      t.strictSame(await violationsIn(page), [], `${name}, ${path}`)
      t.equal((await look(page)).excess, 0, `${name}, ${path}`)
    }
    if (isPhone) {
      await page.getByRole('button', { name: 'Documents', exact: true }).click()
      t.strictSame(await violationsIn(page), [], `${name}, tree`)
      await page.keyboard.press('Escape')
    }
    await page.getByRole('button', { name: 'Search the documents' }).click()
    await page.getByRole('searchbox').fill('xylophone')
    await page.getByText('Nothing has all of these words.').waitFor()
    t.strictSame({ foreign, problems }, { foreign: [], problems: [] }, name)
  }
})

const logInButton = (page: Page): Locator => page.locator('#sign-in summary', { hasText: 'Log in' })

async function logOut (page: Page): Promise<void> {
  await page.locator('#sign-in summary:visible').click()
  await page.getByRole('button', { name: 'Log out', exact: true }).click()
}

/** Waits until the bar has the name of a user, whose address is below it. */
async function seeUser (page: Page, email: string): Promise<void> {
  await page.locator('#sign-in b', { hasText: email }).waitFor({ state: 'attached' })
  await page.locator('#sign-in summary bdi').waitFor()
}

async function logIn (page: Page, { email, password }: { email: string, password: string }): Promise<void> {
  await logInButton(page).click()
  await page.getByRole('textbox', { name: 'E-mail address' }).fill(email)
  await page.getByRole('textbox', { name: 'Password' }).fill(password)
  await page.getByRole('button', { name: 'Log in', exact: true }).click()
  await seeUser(page, email)
}

// Returns the status of GET /api/protected, and the user's address.
async function readProtected (page: Page): Promise<[status: string, email: string | undefined]> {
  const operation = await open(page, '#operation-getCurrentUser')
  const status = await send(operation)
  const text = await operation.locator('.answer pre').first().innerText()
  return [status, /[^"\s]+@example\.com/.exec(text)?.[0]]
}

/** Sends an operation, and returns the status of the response. */
async function send (operation: Locator): Promise<string> {
  await operation.locator('.answer').evaluate((answer) => answer.replaceChildren())
  await operation.getByRole('button', { name: 'Send' }).click()
  const status = operation.locator('.answer .panel-head .badge')
  await status.waitFor()
  return /^\d+/.exec(await status.innerText())?.[0] ?? await status.innerText()
}

/** Opens something on the page that is collapsed, with what it is in. */
async function open (page: Page, selector: string): Promise<Locator> {
  const details = page.locator(selector)
  await details.evaluate((element) => {
    for (let at: Element | null = element; at; at = at.parentElement) {
      if (at instanceof HTMLDetailsElement) at.open = true
    }
  })
  return details
}
