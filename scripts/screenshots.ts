// Takes pictures of pages in four variants (phone and desktop, light and dark):
//
//     node scripts/screenshots.ts FOLDER http://localhost:3000/console/design [URL…]
//
// It needs Chromium (scripts/install-browser.sh) and a running node. With LANGUAGE=ar, the pages are in that language.
import { mkdirSync } from 'node:fs'
import { join } from 'node:path'
import { chromium } from 'playwright-core'

const [folder, ...urls] = process.argv.slice(2)
if (folder === undefined || urls.length === 0) throw new Error('usage: node scripts/screenshots.ts FOLDER URL…')
mkdirSync(folder, { recursive: true })

const browser = await chromium.launch({
  executablePath: process.env.CHROMIUM ?? '/usr/bin/chromium', args: ['--no-sandbox', '--disable-gpu'],
})
try {
  const context = await browser.newContext({ locale: process.env.LANGUAGE ?? 'en', reducedMotion: 'reduce' })
  const page = await context.newPage()
  for (const url of urls) {
    await page.goto(url)
    const name = new URL(url).pathname.replace(/\W+/g, '-').replace(/^-|-$/g, '') || 'home'
    for (const [device, viewport] of [
      ['phone', { width: 390, height: 844 }], ['desktop', { width: 1280, height: 900 }],
    ] as const) {
      for (const colorScheme of ['light', 'dark'] as const) {
        await page.setViewportSize(viewport)
        await page.emulateMedia({ colorScheme })
        await page.screenshot({ path: join(folder, `${name}-${device}-${colorScheme}.png`), fullPage: true })
      }
    }
  }
} finally {
  await browser.close()
}
