import t from 'tap'
import { openPage, served } from '../helpers/browser.ts'

for (const [place, serve] of Object.entries(served)) {
  t.test(`8 /docs of ${place}: an operation can be sent from the reference and gets a response`, async (t) => {
    const { url, admin } = await serve(t)
    const { page, foreign, problems } = await openPage(t, `${url}/docs`)

    await page.getByRole('button', { name: 'Authorize' }).first().click()
    await page.getByLabel('bearer').first().fill(admin.headers.authorization.replace('Bearer ', ''))
    await page.locator('.modal-ux').getByRole('button', { name: 'Apply credentials' }).first().click()
    await page.locator('.modal-ux').getByRole('button', { name: 'Close' }).first().click()

    const operation = page.locator('#operations-auth-getProtected')
    await operation.locator('.opblock-summary-control').click()
    await operation.getByRole('button', { name: 'Try it out' }).click()
    await operation.getByRole('button', { name: 'Execute' }).click()
    const answer = operation.locator('.live-responses-table .response')
    t.equal(await answer.locator('.response-col_status').innerText(), '200')
    t.match(await answer.locator('.response-col_description').innerText(), admin.email)
    t.strictSame({ foreign, problems }, { foreign: [], problems: [] })
  })
}
