import { readFile } from 'node:fs/promises'
import { createRequire } from 'node:module'
import t from 'tap'
import { look, looks, openPage } from '../helpers/browser.ts'
import { startNode } from '../helpers/node.ts'

const axe = await readFile(createRequire(import.meta.url).resolve('axe-core/axe.min.js'), 'utf8')

t.test('15.1 / of the node is accessible and fits, light and dark, on a desktop and on a phone', async (t) => {
  const { url } = await startNode(t, { cwd: t.testdir() })
  for (const { name, ...options } of looks) {
    const { page, foreign, problems } = await openPage(t, `${url}/`, options)
    t.equal(await page.getByRole('heading').innerText(), 'Usher')
    const { brightness, excess } = await look(page)
    t.equal(brightness < 128, options.colorScheme === 'dark', `${name}: ${brightness}`)
    t.equal(excess, 0, name)
    // The content security policy forbids other scripts. This one does not count as a script of the page.
    const violations = await page.evaluate<{ id: string }[]>(`${axe}; axe.run().then(({ violations }) => violations)`)
    t.strictSame(violations.map(({ id }) => id), [], name)
    for (const [link, path] of [['API reference', '/docs'], ['GraphiQL', '/graphql'], ['Log in', '/login']] as const) {
      t.equal(await page.getByRole('link', { name: link })
        .evaluate((element) => (element as HTMLAnchorElement).href), `${url}${path}`)
    }
    t.strictSame({ foreign, problems }, { foreign: [], problems: [] }, name)
  }
})
