// Functions that tests pass to `page.evaluate` run in the browser.
/// <reference lib="dom" />
/// <reference lib="dom.iterable" />
import { chromium, type Page } from 'playwright-core'
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

/** Opens a page in Chromium with a new profile, and records what the page does from its first request on. */
export async function openPage (t: Test, url: string): Promise<Watched> {
  const browser = await chromium.launch({ executablePath: process.env.CHROMIUM ?? '/usr/bin/chromium', args: ARGS })
  t.teardown(() => browser.close())
  const page = await browser.newPage({ viewport: { width: 1280, height: 900 } })
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
