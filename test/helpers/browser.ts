// Functions that tests pass to `page.evaluate` run in the browser.
/// <reference lib="dom" />
/// <reference lib="dom.iterable" />
import { mkdirSync, readFileSync } from 'node:fs'
import { createRequire } from 'node:module'
import { chromium, type Browser, type BrowserContext, type BrowserContextOptions, type Page } from 'playwright-core'
import root, { type Test } from 'tap'
import { createUsher } from './app.ts'
import { TEST_TIMEOUT_MS } from './deadlines.ts'
import { startNode } from './node.ts'

const ARGS = [
  '--no-sandbox', '--disable-gpu', '--disable-quic', '--no-first-run', '--disable-background-networking',
  '--disable-component-update', '--disable-sync',
]

const DESKTOP = { width: 1280, height: 900 }
const PHONE = { width: 360, height: 780 }

const { LOOKS, SHOTS } = process.env

const allLooks = ([['phone', PHONE], ['desktop', DESKTOP]] as const).flatMap(([device, viewport]) =>
  (['light', 'dark'] as const).map((colorScheme) => ({ name: `${colorScheme}, ${device}`, colorScheme, viewport })))

/**
 * The ways in which a page is looked at: light, on a phone. With the variable `LOOKS=all`, which `npm run test:release`
 * sets, also dark, and on a desktop.
 */
export const looks = LOOKS === 'all' || SHOTS ? allLooks : allLooks.slice(0, 1)

/** Two of all, for pages that take a browser seconds: colors do not change the layout, nor devices the colors. */
export const oppositeLooks = allLooks.filter(({ name }) => ['light, desktop', 'dark, phone'].includes(name))

const axe = readFileSync(createRequire(import.meta.url).resolve('axe-core/axe.min.js'), 'utf8')

export interface Watched {
  page: Page
  /** The requests to an origin other than the page's. */
  foreign: string[]
  /**
   * Errors and warnings of the console, including violations of the content security policy, and uncaught exceptions.
   */
  problems: string[]
}

// Profiles are separate, so the tests of a process can share a browser.
let browser: Promise<Browser> | undefined

async function startBrowser (): Promise<Browser> {
  const started = await chromium.launch({ executablePath: process.env['CHROMIUM'] ?? '/usr/bin/chromium', args: ARGS })
  root.teardown(() => started.close())
  return started
}

/** Opens a new profile of the browser that the tests of the process share. It is closed when the test ends. */
export async function openProfile (t: Test, options: BrowserContextOptions = {}): Promise<BrowserContext> {
  const context = await (await (browser ??= startBrowser())).newContext({ viewport: DESKTOP, ...options })
  t.teardown(() => context.close())
  return context
}

/** Opens a page with a new profile, and records what the page does from its first request on. */
export async function openPage (t: Test, url: string, options?: BrowserContextOptions): Promise<Watched> {
  const context = await openProfile(t, options)
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

/**
 * Lets pages that are opened from now on see a browser that offers no passkeys in fields. There, the authenticator of
 * these tests approves of the offer before the test can do anything else.
 */
export async function withoutOffers (page: Page): Promise<void> {
  await page.addInitScript(() => Object.assign(PublicKeyCredential, { isConditionalMediationAvailable: undefined }))
}

/** Adds an authenticator whose user approves of everything at once. */
export async function addAuthenticator (page: Page) {
  const session = await page.context().newCDPSession(page)
  await session.send('WebAuthn.enable', { enableUI: false })
  const { authenticatorId } = await session.send('WebAuthn.addVirtualAuthenticator', {
    options: {
      protocol: 'ctap2',
      transport: 'internal',
      hasResidentKey: true,
      hasUserVerification: true,
      isUserVerified: true,
      automaticPresenceSimulation: true,
    },
  })
  return {
    /** Whether the user can prove to be the one whose device it is. */
    verify: (isUserVerified: boolean) => session.send('WebAuthn.setUserVerified', { authenticatorId, isUserVerified }),
    count: async () => (await session.send('WebAuthn.getCredentials', { authenticatorId })).credentials.length,
  }
}

/** Opens a row of the page of what a user logs in with, unless it is open. */
export async function openRow (page: Page, id: 'password' | 'passkeys' | 'totp' | 'identities'): Promise<void> {
  const row = page.locator(`#${id}-section`)
  await row.waitFor()
  if (await row.getAttribute('open') === null) await row.locator('summary').first().click()
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

/** Returns what axe finds in a page: violations of the rules of accessibility, each with the HTML of its element. */
export async function violationsIn (page: Page): Promise<string[]> {
  // Both are evaluated by the debugger, because the policy of the pages forbids scripts of others.
  if (!await page.evaluate(() => 'axe' in globalThis)) await page.evaluate(axe)
  return page.evaluate(async () => {
    const { axe } = globalThis as never as {
      axe: { run (options: object): Promise<{ violations: { id: string, nodes: { html: string }[] }[] }> }
    }
    const { violations } = await axe.run({ resultTypes: ['violations'] })
    return violations.flatMap(({ id, nodes }) => nodes.map(({ html }) => `${id}: ${html}`))
  })
}

/**
 * Checks in each look that axe finds nothing in a page, and that it does not scroll sideways. With the variable SHOTS,
 * it also stores what the page looks like in that folder.
 */
export async function checkLooks (t: Test, page: Page, name: string): Promise<void> {
  const size = page.viewportSize()!
  for (const { name: look, colorScheme, viewport } of looks) {
    await page.setViewportSize(viewport)
    await page.emulateMedia({ colorScheme })
    t.strictSame(await violationsIn(page), [], `${name}, ${look}`)
    t.ok(await page.evaluate(() => document.documentElement.scrollWidth <= innerWidth), `${name}, ${look}: fits`)
    if (!SHOTS) continue
    const folder = `${SHOTS}/${look.replace(', ', '-')}`
    mkdirSync(folder, { recursive: true })
    const isDialog = await page.locator('dialog[open]').count() > 0
    await page.screenshot({ path: `${folder}/${name}.png`, fullPage: !isDialog })
  }
  await page.setViewportSize(size)
  await page.emulateMedia({ colorScheme: 'light' })
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
