import { readFile } from 'node:fs/promises'
import { build } from 'esbuild'
import Fastify from 'fastify'
import type { Page } from 'playwright-core'
import t, { type Test } from 'tap'
import type { UsherClient } from '../../client/index.ts'
import usher from '../../app.ts'
import { withUsers } from '../helpers/app.ts'
import { openProfile } from '../helpers/browser.ts'
import { createCuttingProxy } from '../helpers/cutting-proxy.ts'
import { testDatabaseUrl, uniqueSchema } from '../helpers/database.ts'
import { TEST_TIMEOUT_MS } from '../helpers/deadlines.ts'
import { createPost } from '../helpers/graphql.ts'
import { temporaryFolder } from '../helpers/temporary-folder.ts'

// The client of the page of the example.
declare const client: UsherClient

const admin = { email: 'admin@example.com', password: 'horse battery staple' }
const root = new URL('../..', import.meta.url).pathname
const page = await readFile(`${root}examples/browser/index.html`, 'utf8')
const bundling = {
  // The package is not built in tests.
  alias: {
    'usher-client': `${root}client/index.ts`,
    'usher-client/posts': `${root}client/posts.ts`,
    'usher-client/react': `${root}client/react.ts`,
  },
  bundle: true,
  format: 'esm',
  write: false,
} as const
const { outputFiles: [script] } = await build({ entryPoints: [`${root}examples/browser/main.js`], ...bundling })
const [, greeting = ''] = /```tsx\n([^]*?)```/.exec(await readFile(`${root}docs/client.md`, 'utf8')) ?? []
const { outputFiles: [reactScript] } = await build({
  stdin: {
    contents: `${greeting.replace('createUsherClient()', "createUsherClient({ baseUrl: '/accounts' })")}
      import { createElement } from 'react'
      import { createRoot } from 'react-dom/client'
      Object.assign(globalThis, { client })
      createRoot(document.body).render(createElement(Greeting))`,
    loader: 'tsx',
    resolveDir: root,
  },
  jsx: 'automatic',
  define: { 'process.env.NODE_ENV': '"development"' },
  ...bundling,
})

/** Starts a host that serves the example. Records the requests that it has answered. */
async function startHost (t: Test, options: { schema: string, uploadsDir: string }) {
  const app = Fastify({ forceCloseConnections: true })
  const given = { ...options, databaseUrl: await testDatabaseUrl(), prefix: '/accounts', poolSize: 4, admin }
  const answered: string[] = []
  app.addHook(
    'onResponse', async ({ method, url }, { statusCode }) => { answered.push(`${method} ${url} ${statusCode}`) }
  )
  app.get('/', (_, reply) => reply.type('text/html').send(page))
  app.get('/main.js', (_, reply) => reply.type('text/javascript').send(script!.text))
  app.get('/react', (_, reply) => reply.type('text/html').send('<script type="module" src="react.js"></script>'))
  app.get('/react.js', (_, reply) => reply.type('text/javascript').send(reactScript!.text))
  await app.register(usher, given)
  t.teardown(() => app.close())
  const url = await app.listen({ port: 0, host: '127.0.0.1' })
  const count = (request: string) => answered.filter((line) => line.startsWith(request)).length
  return { ...await withUsers(app, given), url, count }
}

t.test('15.4 three tabs of a browser share a session', async (t) => {
  const shared = { schema: uniqueSchema('client browser'), uploadsDir: temporaryFolder() }
  const [host, next] = [await startHost(t, shared), await startHost(t, shared)]
  const member = await host.createUser({ name: 'Ada' })
  const proxy = await createCuttingProxy(t, host.url)
  const context = await openProfile(t)
  // Tabs of a busy machine answer late. The time in which they may (client/tabs.ts) is forty times as long here.
  await context.addInitScript(() => {
    const { setTimeout } = window
    window.setTimeout = ((run: () => void, ms?: number) =>
      setTimeout(run, ms === 50 ? 2000 : ms)) as typeof window.setTimeout
  })
  const tabs: Page[] = []
  const inTabs = <Result>(run: (tab: Page) => Promise<Result>) => Promise.all(tabs.map(run))
  const status = (text: string) => inTabs((tab) => tab.locator('#status', { hasText: text }).waitFor())
  const titles = (tab: Page) => tab.locator('#posts li').allTextContents()
  const shown = (title: string) => inTabs((tab) => tab.locator('#posts li', { hasText: title }).waitFor())
  const openTab = async () => {
    const tab = await context.newPage()
    tab.setDefaultTimeout(TEST_TIMEOUT_MS)
    await tab.goto(proxy.url)
    tabs.push(tab)
  }
  await openTab()
  await openTab()
  const [tab] = tabs as [Page]

  await t.test('15.4 a login is one of all tabs, also of those that open later', async (t) => {
    await status('Log in')
    await tab.bringToFront()
    await tab.getByLabel('E-mail address').fill(member.email)
    await tab.getByLabel('Password', { exact: true }).fill(member.password)
    await tab.getByRole('button', { name: 'Log in' }).click()
    await status('Logged in as Ada')
    await openTab()
    await status('Logged in as Ada')
    // Clicks wait for frames, which tabs in the background rarely get.
    await tab.bringToFront()
    t.equal(host.count('POST /accounts/api/auth/refresh 200'), 0, 'the third tab has got the token of the others')
    t.strictSame(await tab.evaluate(() => [localStorage.length, sessionStorage.length]), [0, 0])
  })

  await t.test('15.4 three tabs refresh once', async (t) => {
    // A token that is issued in the same second is the same one.
    const issuedAt =
      await tab.evaluate(async () => JSON.parse(atob((await client.session.token())!.split('.')[1]!)).iat as number)
    await tab.waitForFunction((issuedAt) => Date.now() / 1000 > issuedAt + 1, issuedAt, { polling: 100 })
    const before = await tab.evaluate(() => client.session.token())
    const tokens = await inTabs((tab) =>
      tab.evaluate((rejected) => Promise.all([1, 2, 3].map(() => client.session.renew(rejected))), before))
    t.equal(new Set(tokens.flat()).size, 1)
    t.not(tokens[0]![0], before)
    t.equal(host.count('POST /accounts/api/auth/refresh 200'), 1)
  })

  await t.test('15.4 a write whose response was cut off is made once', async (t) => {
    proxy.loseResponse(/^POST \/accounts\/graphql[^]*idempotency-key/i)
    await tab.getByLabel('Title').fill('Once')
    await tab.getByRole('button', { name: 'Post' }).click()
    await shown('Once')
    await createPost(host, member, 'Twice')
    await shown('Twice')
    t.equal(proxy.lost, 1)
    t.strictSame(await inTabs(titles), tabs.map(() => ['Once', 'Twice']))
  })

  await t.test('15.4 a list that has not changed is revalidated with 304', async (t) => {
    t.strictSame(await tab.locator('#users li').allTextContents(), ['Ada', 'Admin'])
    const [response] =
      await Promise.all([tab.waitForResponse(/api\/users/), tab.getByRole('button', { name: 'Reload users' }).click()])
    t.equal(response.status(), 304)
    t.strictSame(await tab.locator('#users li').allTextContents(), ['Ada', 'Admin'])
  })

  await t.test('15.4 posts are resumed after a restart, without gaps and duplicates', async (t) => {
    await host.app.close()
    await createPost(next, member, 'During')
    proxy.moveTo(next.url)
    await shown('During')
    await createPost(next, member, 'After')
    await shown('After')
    t.strictSame(await inTabs(titles), tabs.map(() => ['Once', 'Twice', 'During', 'After']))
  })

  await t.test('15.4 a session that is ended elsewhere is reported in all tabs', async () => {
    await next.inject('DELETE', `/api/users/${member.id}/sessions`, { headers: next.admin.headers })
    await status('The session is over')
  })

  await t.test('15.4 a logout ends the session in all tabs', async () => {
    await tab.getByLabel('E-mail address').fill(member.email)
    await tab.getByLabel('Password', { exact: true }).fill(member.password)
    await tab.getByRole('button', { name: 'Log in' }).click()
    await status('Logged in as Ada')
    await tab.getByRole('button', { name: 'Log out' }).click()
    await inTabs((tab) => tab.getByRole('button', { name: 'Log in' }).waitFor())
  })
})

t.test('15.4 the hook for React of docs/client.md shows the session in every tab', async (t) => {
  const host = await startHost(t, { schema: uniqueSchema('client react'), uploadsDir: temporaryFolder() })
  const { email, password } = await host.createUser({ name: 'Ada' })
  const context = await openProfile(t)
  const [tab, other] = [await context.newPage(), await context.newPage()]
  for (const page of [tab, other]) {
    page.setDefaultTimeout(TEST_TIMEOUT_MS)
    await page.goto(`${host.url}/react`)
    await page.getByText('Log in').waitFor()
  }
  await tab.evaluate((credentials) => client.login(credentials), { email, password })
  for (const page of [tab, other]) await page.getByText('Hello Ada').waitFor()
  await other.reload()
  await other.getByText('Hello Ada').waitFor()
  await other.evaluate(() => client.logout())
  for (const page of [tab, other]) await page.getByText('Log in').waitFor()
})
