import { once } from 'node:events'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import type { Page } from 'playwright-core'
import t, { type Test } from 'tap'
import { openPage } from '../helpers/browser.ts'
import { startDatabase } from '../helpers/database.ts'
import { startNode, stopNode } from '../helpers/node.ts'
import { findPort } from '../helpers/port.ts'
import { openSql } from '../helpers/sql.ts'

// The values of EventSource.readyState (HTML, 9.2.2).
const [OPEN, CLOSED] = [1, 2]
const POSTS = new URLSearchParams({ query: 'subscription { postCreated { title cursor } }' })

t.test('7.7 an EventSource reconnects by itself and gets missed posts exactly once, in order', async (t) => {
  const { url: databaseUrl, dataDir: cwd } = await startDatabase(t)
  const elsewhere = await servePage(t)
  const settings = {
    DATABASE_URL: databaseUrl,
    ADMIN_EMAIL: 'author@example.com',
    ADMIN_PASSWORD: 'horse battery staple',
    HOST: '127.0.0.1',
    PORT: String(await findPort()),
    CORS_ORIGIN: `http://127.0.0.1:${elsewhere}`,
  }
  let node = await startNode(t, { cwd, settings })
  const { url } = node
  const sql = openSql(t, { options: { databaseUrl, schema: 'usher' } })
  const expected: string[] = []
  const tell = async (...titles: string[]) => {
    for (const title of titles) {
      await sql`insert into posts (id, author_id, title, content) select gen_random_uuid(), id, ${title}, '' from users`
    }
    expected.push(...titles)
  }

  const { page } = await openPage(t, `${url}/docs`)
  const pages: Record<string, Page> = {
    'the node\'s own page': page, 'a page of another origin': await page.context().browser()!.newPage(),
  }
  await pages['a page of another origin']!.goto(`http://127.0.0.1:${elsewhere}`)
  for (const page of Object.values(pages)) t.equal(await listen(page, url), OPEN)
  const hear = async () => {
    for (const page of Object.values(pages)) {
      await page.waitForFunction(([count]) => (globalThis as any).heard.length >= count!, [expected.length])
    }
  }

  await t.test('7.7 a page of a forbidden origin gets nothing and does not reconnect', async (t) => {
    const stranger = await page.context().browser()!.newPage()
    await stranger.goto(`http://localhost:${elsewhere}`)
    t.equal(await listen(stranger, url), CLOSED)
    await stranger.close()
  })

  for (const signal of ['SIGKILL', 'SIGTERM'] as const) {
    // In the first round the page has not received any event.
    await stopNode(node, signal)
    await tell(`${signal}, one`, `${signal}, two`)
    node = await startNode(t, { cwd, settings })
    await hear()
    await tell(`after ${signal}`)
    await hear()
  }
  for (const [whose, page] of Object.entries(pages)) {
    const heard = await page.evaluate(() => (globalThis as any).heard as { title: string, isId: boolean }[])
    t.strictSame(heard, expected.map((title) => ({ title, isId: true })), whose)
  }
})

/**
 * Makes a page record the events that it receives. Resolves with the readyState when the EventSource is open or has
 * given up.
 */
function listen (page: Page, url: string): Promise<number> {
  return page.evaluate((address) => new Promise<number>((resolve) => {
    const heard: { title: string, isId: boolean }[] = (globalThis as any).heard = []
    const source = new EventSource(address)
    source.onopen = source.onerror = () => resolve(source.readyState)
    source.addEventListener('next', ({ data, lastEventId }) => {
      const { title, cursor } = JSON.parse(data).data.postCreated
      heard.push({ title, isId: cursor === lastEventId })
    })
  }), `${url}/graphql?${POSTS}`)
}

/** Serves an empty page and returns its port. `127.0.0.1` and `localhost` are different origins. */
async function servePage (t: Test): Promise<number> {
  const server = createServer((_, response) =>
    response.setHeader('content-type', 'text/html').end('<!doctype html><link rel="icon" href="data:,">'))
  t.teardown(() => server.close())
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  return (server.address() as AddressInfo).port
}
