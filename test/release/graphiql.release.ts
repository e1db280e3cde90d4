import { setTimeout } from 'node:timers/promises'
import type { Page } from 'playwright-core'
import t from 'tap'
import { look, openPage, oppositeLooks, served, violationsIn } from '../helpers/browser.ts'

t.test('7 /graphql of the node: GraphiQL queries, mutates and subscribes', async (t) => {
  const { url, admin } = await served['the node']!(t)
  const { page, foreign, problems } = await openPage(t, `${url}/graphql`)

  await t.test('7.2 a query typed into the editor gets a result', async (t) => {
    await type(page, 'Operation Editor', 'query { users { nodes { email } } }')
    await page.getByRole('button', { name: /^Prettify query/ }).click()
    await page.getByRole('region', { name: 'Operation Editor' }).getByText('nodes').waitFor()
    t.match(await run(page, admin.email), admin.email)
  })

  await t.test('7.4 a mutation succeeds with the token in the headers pane and fails without it', async (t) => {
    await type(
      page, 'Operation Editor', 'mutation { createPost(input: { title: "Typed", content: "text" }) { title } }'
    )
    await run(page, 'UNAUTHENTICATED')
    await page.getByRole('button', { name: 'Headers' }).click()
    await type(page, 'Headers', JSON.stringify(admin.headers))
    t.match(await run(page, '"Typed"'), '"createPost"')
  })

  await t.test('7.7 a subscription receives a post that is created meanwhile', async (t) => {
    const socket = page.waitForEvent('websocket')
    await type(page, 'Operation Editor', 'subscription { postCreated { title } }')
    await execute(page)
    t.equal((await socket).url(), `${url.replace('http:', 'ws:')}/graphql`)
    const received = answer(page, '"Meanwhile"')
    // The page does not show when the server has started the subscription, so the test creates posts until one
    // arrives.
    const body =
      JSON.stringify({ query: 'mutation { createPost(input: { title: "Meanwhile", content: "text" }) { id } }' })
    const headers = { ...admin.headers, 'content-type': 'application/json' }
    for (let waiting = true; waiting;) {
      await fetch(`${url}/graphql`, { method: 'POST', headers, body })
      waiting = await Promise.race([received.then(() => false), setTimeout(250, true)])
    }
    t.match(await received, '"postCreated"')
  })

  t.strictSame({ foreign, problems }, { foreign: [], problems: [] })
})

t.test('15.3 GraphiQL of a host: the starter operations can be sent once the user is logged in, also after a reload', async (t) => {
  const { url, admin } = await served['a host']!(t)
  const { page, foreign, problems } = await openPage(t, `${url}/graphql`)
  await page.locator('#sign-in summary', { hasText: 'Log in' }).click()
  await page.getByRole('textbox', { name: 'E-mail address' }).fill(admin.email)
  await page.getByRole('textbox', { name: 'Password' }).fill(admin.password)
  await page.getByRole('button', { name: 'Log in', exact: true }).click()
  await page.locator('#sign-in summary bdi').waitFor()
  for (const [tab, expected] of [
    ['Users', '"nodes"'], ['Me', admin.email], ['CreatePost', '"My first post"'],
  ] as const) {
    await openTab(page, tab)
    await run(page, tab === 'CreatePost' ? '"Hello"' : expected)
  }
  const sent: { type: string, payload?: unknown }[] = []
  page.on('websocket', (socket) => socket.on('framesent', ({ payload }) => { sent.push(JSON.parse(`${payload}`)) }))
  const subscriptions = () => sent.filter(({ type }) => type === 'subscribe').length
  await openTab(page, 'PostCreated')
  await subscribe(page, subscriptions)
  const running = page.getByRole('button', { name: /^Stop query/ })
  await running.waitFor()
  const status = page.locator('#sign-in [role=status]')
  await openTab(page, 'Me')
  t.equal(
    await status.innerText(), 'Leaving the tab PostCreated has stopped its operation. Execute it again to continue.'
  )
  await openTab(page, 'PostCreated')
  t.equal(await status.innerText(), '')
  await subscribe(page, subscriptions)
  await running.waitFor()
  await page.getByRole('button', { name: 'New tab' }).click()
  t.match(await status.innerText(), /^Leaving the tab PostCreated/)
  t.equal(await running.count(), 0, 'no subscription writes into the new tab')
  t.match(sent[0], { type: 'connection_init', payload: { authorization: /^Bearer \S+$/ } })
  const stored = await page.evaluate(() => JSON.stringify([{ ...localStorage }, { ...sessionStorage }]))
  t.notMatch(stored, /eyJ/, 'no token is stored')

  await page.reload()
  await page.locator('#sign-in summary bdi').waitFor()
  await openTab(page, 'Me')
  await run(page, admin.email)
  await page.locator('#sign-in summary:visible').click()
  await page.getByRole('button', { name: 'Log out', exact: true }).click()
  await page.locator('#sign-in summary', { hasText: 'Log in' }).waitFor()
  await run(page, 'null')
  t.strictSame({ foreign, problems }, { foreign: [], problems: [] })
})

t.test('15.3 GraphiQL fits, light on a desktop and dark on a phone', async (t) => {
  const { url } = await served['a host']!(t)
  for (const { name, ...options } of oppositeLooks) {
    const { page, problems } = await openPage(t, `${url}/graphql`, options)
    await run(page, '"nodes"')
    const { brightness, excess } = await look(page)
    t.equal(brightness < 128, options.colorScheme === 'dark', `${name}: ${brightness}`)
    t.equal(excess, 0, name)
    const { x, y, width, height } = (await page.getByRole('region', { name: 'Result Window' }).boundingBox())!
    t.ok(width > 300 && height > 200 && x >= 0 && y >= 0 && x + width <= options.viewport.width && y +
      height <= options.viewport.height, `${name}: ${[x, y, width, height]}`)
    const editor = (await page.getByRole('region', { name: 'Operation Editor' }).boundingBox())!
    t.ok(options.viewport.width < 640 ? y >= editor.y + editor.height : x >= editor.x + editor.width, `${name}: below or beside the query`)
    // What remains is the library's: tabs that contain buttons, and the colors of its editor.
    t.strictSame((await violationsIn(page)).filter((found) => !/^(nested-interactive: <li|color-contrast: <span class="mtk)/.test(found)), [], name)
    t.strictSame(problems, [], name)
  }
})

async function openTab (page: Page, name: string): Promise<void> {
  await page.locator('.graphiql-tab-button', { hasText: name }).click()
  await page.locator('.graphiql-tab-active', { hasText: name }).waitFor()
}

async function type (page: Page, pane: string, text: string): Promise<void> {
  await page.getByRole('region', { name: pane }).locator('.view-lines:visible').click()
  await page.keyboard.press('ControlOrMeta+A')
  // Typing letter by letter would make the editor add closing brackets.
  await page.keyboard.insertText(text)
}

const execute = (page: Page): Promise<void> => page.getByRole('button', { name: /^Execute query/ }).click()

// GraphiQL parses an operation some time after it was typed or its tab was opened. Until then, the button executes the
// former one.
async function run (page: Page, expected: string): Promise<string> {
  for (;;) {
    await execute(page)
    const found = await Promise.race([answer(page, expected), setTimeout(2000)])
    if (found !== undefined) return found
  }
}

// The same for a subscription, of which `count` tells how many the page has started. While one runs, there is no button
// that executes.
async function subscribe (page: Page, count: () => number): Promise<void> {
  for (const before = count(); count() === before;) {
    await page.getByRole('button', { name: /^Execute query/ }).click({ timeout: 2000 }).catch((error: Error) => {
      if (error.name !== 'TimeoutError') throw error
    })
    const until = performance.now() + 2000
    while (count() === before && performance.now() < until) await setTimeout(20)
  }
}

// The editor displays spaces as non-breaking spaces.
async function answer (page: Page, expected: string): Promise<string> {
  const pane = page.getByRole('region', { name: 'Result Window' }).locator('.view-lines')
  await pane.getByText(expected).first().waitFor()
  return pane.innerText()
}
