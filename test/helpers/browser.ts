import { chromium, type Browser, type BrowserContextOptions, type Page } from 'playwright-core'
import type { Test } from 'tap'
import { createUsher } from './app.ts'
import { startNode } from './node.ts'

const ARGS = ['--no-sandbox', '--disable-gpu', '--disable-quic', '--no-first-run', '--disable-background-networking', '--disable-component-update', '--disable-sync']

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

/** Opens a page with a new profile, and records what the page does from its first request on. Starts Chromium unless it is given. */
export async function openPage (t: Test, url: string, browser?: Browser, options?: BrowserContextOptions): Promise<Watched> {
  const context = await (browser ?? await startBrowser(t)).newContext({ viewport: { width: 1280, height: 900 }, ...options })
  t.teardown(() => context.close())
  const page = await context.newPage()
  page.setDefaultTimeout(20_000)
  const watched: Watched = { page, foreign: [], problems: [] }
  const note = (asked: string) => {
    const { protocol, host } = new URL(asked)
    if (/^(https?|wss?):$/.test(protocol) && host !== new URL(url).host) watched.foreign.push(asked)
  }
  page.on('request', (request) => note(request.url()))
  page.on('websocket', (socket) => note(socket.url()))
  page.on('console', (message) => { if (['error', 'warning'].includes(message.type())) watched.problems.push(message.text()) })
  page.on('pageerror', (error) => watched.problems.push(`${error}`))
  await page.goto(url)
  return watched
}

export interface Served {
  url: string
  admin: { email: string, headers: { authorization: string } }
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
