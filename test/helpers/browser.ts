// Functions that tests pass to `page.evaluate` run in the browser.
/// <reference lib="dom" />
/// <reference lib="dom.iterable" />
import { chromium, type Browser, type BrowserContextOptions, type Page } from 'playwright-core'
import root, { type Test } from 'tap'
import { createUsher } from './app.ts'
import { TEST_TIMEOUT_MS } from './deadlines.ts'
import { startNode } from './node.ts'

const ARGS = [
  '--no-sandbox', '--disable-gpu', '--disable-quic', '--no-first-run', '--disable-background-networking',
  '--disable-component-update', '--disable-sync',
]

const DESKTOP = { width: 1280, height: 900 }
const PHONE = { width: 390, height: 844 }

/** The ways in which a page is looked at: light and dark, on a desktop and on a phone. */
export const looks = ([['desktop', DESKTOP], ['phone', PHONE]] as const).flatMap(([device, viewport]) =>
  (['light', 'dark'] as const).map((colorScheme) => ({ name: `${colorScheme}, ${device}`, colorScheme, viewport })))

/** Two of them, for pages that take a browser seconds: colors do not change the layout, nor devices the colors. */
export const oppositeLooks = looks.filter(({ name }) => ['light, desktop', 'dark, phone'].includes(name))

export interface Watched {
  page: Page
  /** The requests to an origin other than the page's. */
  foreign: string[]
  /**
   * Errors and warnings of the console, including violations of the content security policy, and uncaught exceptions.
   */
  problems: string[]
}

/** Starts Chromium. It is stopped when the test ends. */
export async function startBrowser (t: Test): Promise<Browser> {
  const browser = await chromium.launch({ executablePath: process.env.CHROMIUM ?? '/usr/bin/chromium', args: ARGS })
  t.teardown(() => browser.close())
  return browser
}

// Pages have profiles of their own, so those of a file can share a browser.
let shared: Promise<Browser> | undefined

/**
 * Opens a page with a new profile, and records what the page does from its first request on. Unless it is given, the
 * browser is the one that the tests of the process share.
 */
export async function openPage (
  t: Test, url: string, options: BrowserContextOptions = {}, browser?: Browser
): Promise<Watched> {
  const context = await (browser ?? await (shared ??= startBrowser(root))).newContext({ viewport: DESKTOP, ...options })
  t.teardown(() => context.close())
  const page = await context.newPage()
  page.setDefaultTimeout(TEST_TIMEOUT_MS)
  const watched: Watched = { page, foreign: [], problems: [] }
  const note = (asked: string) => {
    const { protocol, host } = new URL(asked)
    if (/^(https?|wss?):$/.test(protocol) && host !== new URL(url).host) watched.foreign.push(asked)
  }
  page.on('request', (request) => note(request.url()))
  page.on('websocket', (socket) => note(socket.url()))
  page.on(
    'console', (message) => { if (['error', 'warning'].includes(message.type())) watched.problems.push(message.text()) }
  )
  page.on('pageerror', (error) => watched.problems.push(`${error}`))
  await page.goto(url)
  return watched
}

/** Returns the brightness of the colour behind a page, from 0 to 255, and by how many pixels the page is too wide. */
export function look (page: Page): Promise<{ brightness: number, excess: number }> {
  return page.evaluate(() => {
    const colours = [document.body, document.documentElement]
      .map((element) => getComputedStyle(element).backgroundColor)
    const [red = 0, green = 0, blue = 0] = colours.find((colour) => colour !== 'rgba(0, 0, 0, 0)')!
      .match(/\d+/g)!.map(Number)
    return { brightness: (red + green + blue) / 3, excess: document.documentElement.scrollWidth - innerWidth }
  })
}

export interface Served {
  url: string
  admin: { email: string, password: string, headers: { authorization: string } }
}

/** Starts Usher in two forms: as a node in a separate process, and inside a host under a prefix. */
export const served: Readonly<Record<string, (t: Test) => Promise<Served>>> = {
  async 'the node' (t) {
    const admin = { email: 'admin@example.com', password: 'horse battery staple' }
    const settings = { ADMIN_EMAIL: admin.email, ADMIN_PASSWORD: admin.password }
    const { url, login } = await startNode(t, { cwd: t.testdir(), settings })
    const { token } = await login(admin)
    return { url, admin: { ...admin, headers: { authorization: `Bearer ${token}` } } }
  },

  async 'a host' (t) {
    const { app, admin, prefix } = await createUsher(t, { prefix: '/accounts' })
    return { url: `${await app.listen({ port: 0 })}${prefix}`, admin }
  },
}
