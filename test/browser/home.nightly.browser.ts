import t from 'tap'
import { look, looks, openPage, violationsIn } from '../helpers/browser.ts'
import { startNode } from '../helpers/node.ts'

t.test('15.1 / of the node is accessible and fits, and leads to the other pages', async (t) => {
  const { url } = await startNode(t, { cwd: t.testdir() })
  for (const { name, ...options } of looks) {
    const { page, foreign, problems } = await openPage(t, `${url}/`, options)
    t.equal(await page.getByRole('heading').innerText(), 'Usher')
    const { brightness, excess } = await look(page)
    t.equal(brightness < 128, options.colorScheme === 'dark', `${name}: ${brightness}`)
    t.equal(excess, 0, name)
    t.strictSame(await violationsIn(page), [], name)
    t.strictSame({ foreign, problems }, { foreign: [], problems: [] }, name)
  }

  // test/release/docs.release.ts and graphiql.release.ts use these pages.
  const { page, foreign, problems } = await openPage(t, `${url}/`)
  for (const [link, path, content] of [
    ['API reference', '/docs', '#operations-auth-getCurrentUser'], ['GraphiQL', '/graphql', '.graphiql-query-editor'],
    ['Log in', '/login', '#password-form'],
  ] as const) {
    await page.getByRole('link', { name: link }).click()
    await page.locator(content).first().waitFor()
    t.equal(page.url(), `${url}${path}`)
    t.equal((await look(page)).excess, 0, link)
    await page.goto(`${url}/`)
  }
  t.strictSame({ foreign, problems }, { foreign: [], problems: [] })
})
