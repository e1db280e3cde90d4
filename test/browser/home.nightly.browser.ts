import t from 'tap'
import { look, looks, openPage, violationsIn } from '../helpers/browser.ts'
import { startNode } from '../helpers/node.ts'

t.test('15.1 / of the node is accessible and fits, and leads to the other pages', async (t) => {
  const { url } = await startNode(t, { cwd: t.testdir() })
  for (const { name, ...options } of looks) {
    const { page, foreign, problems } = await openPage(t, `${url}/`, options)
    t.equal(await page.getByRole('heading', { level: 1 }).innerText(), 'Usher')
    await page.getByRole('status').getByText('You are not logged in.').waitFor()
    const { brightness, excess } = await look(page)
    t.equal(brightness < 128, options.colorScheme === 'dark', `${name}: ${brightness}`)
    t.equal(excess, 0, name)
    t.strictSame(await violationsIn(page), [], name)
    t.strictSame({ foreign, problems }, { foreign: [], problems: [] }, name)
  }

  await t.test('15.1 / says who is logged in, and links what they may open', async (t) => {
    const admin = { email: 'admin@example.com', password: 'horse battery staple' }
    const settings = { ADMIN_EMAIL: admin.email, ADMIN_PASSWORD: admin.password, CONSOLE: 'true' }
    const { url } = await startNode(t, { cwd: t.testdir(), settings })
    const { page, foreign, problems } = await openPage(t, `${url}/login`)
    await page.locator('#email').fill(admin.email)
    await page.locator('#password').fill(admin.password)
    await page.getByRole('button', { name: 'Log in', exact: true }).click()
    await page.waitForURL(`${url}/account`)
    await page.goto(`${url}/`)
    await page.getByRole('status').getByText(`(${admin.email})`).waitFor()
    t.strictSame(await page.locator('main a:visible').evaluateAll((links) => links.map((link) => link.getAttribute('href'))), [
      'account', 'console', 'docs', 'graphql',
    ])
    t.strictSame(await violationsIn(page), [])
    t.strictSame({ foreign, problems }, { foreign: [], problems: [] })
  })

  // test/release/docs.release.ts and graphiql.release.ts use these pages.
  const { page, foreign, problems } = await openPage(t, `${url}/`)
  for (const [link, path, content] of [
    ['API reference', '/docs', '.operation'], ['GraphiQL', '/graphql', '.graphiql-query-editor'],
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
