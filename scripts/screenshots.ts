// Takes pictures of pages in four variants (phone and desktop, light and dark):
//
//     node scripts/screenshots.ts FOLDER http://localhost:3000/console/design [URL…]
//
// It needs Chromium (scripts/install-browser.sh) and a running node. With LANGUAGE=ar, the pages are in that language.
// With EMAIL and PASSWORD, it logs in before. VARIANTS=phone-light,desktop-dark takes only these, and VIEWPORT=yes only
// what a window shows.
import { mkdirSync } from 'node:fs'
import { join } from 'node:path'
import { chromium } from 'playwright-core'

const { EMAIL, PASSWORD, VARIANTS, VIEWPORT } = process.env
const [folder, ...urls] = process.argv.slice(2)
if (folder === undefined || urls.length === 0) throw new Error('usage: node scripts/screenshots.ts FOLDER URL…')
mkdirSync(folder, { recursive: true })

const browser = await chromium.launch({
  executablePath: process.env.CHROMIUM ?? '/usr/bin/chromium', args: ['--no-sandbox', '--disable-gpu'],
})
try {
  const context = await browser.newContext({ locale: process.env.LANGUAGE ?? 'en', reducedMotion: 'reduce' })
  const page = await context.newPage()
  if (EMAIL !== undefined && PASSWORD !== undefined) {
    await page.goto(new URL('/login', urls[0]).href)
    const form = page.locator('form:has(input[type=password])').first()
    await form.locator('[name=email]').fill(EMAIL)
    await form.locator('[name=password]').fill(PASSWORD)
    await Promise.all([page.waitForEvent('framenavigated'), form.locator('button:not([type=button])').first().click()])
    await page.waitForLoadState()
  }
  for (const url of urls) {
    await page.goto(url)
    await page.waitForLoadState('networkidle')
    const name = new URL(url).pathname.replace(/\W+/g, '-').replace(/^-|-$/g, '') || 'home'
    for (const [device, viewport] of [
      ['phone', { width: 390, height: 844 }], ['desktop', { width: 1280, height: 900 }],
    ] as const) {
      for (const colorScheme of ['light', 'dark'] as const) {
        if (VARIANTS && !VARIANTS.split(',').includes(`${device}-${colorScheme}`)) continue
        await page.setViewportSize(viewport)
        await page.emulateMedia({ colorScheme })
        await page.screenshot({ path: join(folder, `${name}-${device}-${colorScheme}.png`), fullPage: !VIEWPORT })
      }
    }
  }
} finally {
  await browser.close()
}
