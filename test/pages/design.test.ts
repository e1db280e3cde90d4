import { readFileSync } from 'node:fs'
import { gzipSync } from 'node:zlib'
import t from 'tap'
import { field, readDesign, table } from '../../routes/pages/components.ts'
import { renderDesignPage } from '../../routes/pages/design-page.ts'
import { attributes, html, type HtmlValue } from '../../routes/pages/html.ts'
import { lineColorOn, luminanceOf } from '../../schema/options/color.ts'

const evil = '"><script>alert(1)</script>\''

t.test('15.2 what is put into a page is text, unless a component has made it', async (t) => {
  const escaped = '&quot;&gt;&lt;script&gt;alert(1)&lt;/script&gt;&#39;'
  t.equal(`${html`<p title="${evil}">${evil}</p>`}`, `<p title="${escaped}">${escaped}</p>`)
  t.equal(`${html`<ul>${['a', '<b>'].map((name) => html`<li>${name}</li>`)}</ul>`}`, '<ul><li>a</li><li>&lt;b&gt;</li></ul>')
  t.equal(`${html`${0}${null}${undefined}${false}${''}${[]}`}`, '0')
  t.equal(`${html`<p${attributes({ id: evil, hidden: true, title: false, lang: null, tabindex: -1 })}></p>`}`,
    `<p id="${escaped}" hidden tabindex="-1"></p>`)
  const field1 = `${field({ name: 'a', label: evil, value: evil, hint: evil, error: evil })}`
  t.notMatch(field1, '<script>')
  t.match(field1, 'aria-describedby="a-hint a-error" aria-invalid="true"')
  t.notMatch(`${table({ caption: evil, columns: [{ title: evil, cell: () => evil }], rows: [1] })}`, '<script>')
})

t.test('15.2 a template with a value where it would not be safe does not work at all', async (t) => {
  const unsafe: ((value: HtmlValue) => unknown)[] = [
    (value) => html`<a href=${value}>x</a>`,
    (value) => html`<a ${value}>x</a>`,
    (value) => html`<${value}>`,
    (value) => html`<script>${value}</script>`,
    (value) => html`<style>p { color: ${value} }</style>`,
  ]
  for (const render of unsafe) t.throws(() => render('x'), /A template has a value/)
})

t.test('15.2 the design has at most 12 KiB, and works from right to left', async (t) => {
  const css = readDesign('#1d4ed8')
  t.ok(gzipSync(css).length <= 12 * 1024, `${gzipSync(css).length} bytes`)
  t.notMatch(css, /\{\{|(margin|padding|border)-(left|right)|\b(left|right):|text-align: (left|right)/)
  t.match(css, '--color: #1d4ed8;')
  t.match(css, '--on-color: #ffffff;')
  const scripts = readFileSync(new URL('../../routes/pages/ui.js', import.meta.url), 'utf8')
  t.notMatch(scripts, /innerHTML|eval|style\./)
})

t.test('15.2 the page of all components has no inline script or style, and shows hostile names as text', async (t) => {
  const page = `${renderDesignPage({ assets: 'assets/', icon: 'icon.svg' })}`
  t.notMatch(page, /<style| style=| on\w+=|<script>|https?:/)
  t.match(page, '&lt;script&gt;alert(1)')
})

t.test('15.2 the focus has the color of the host, or the nearest one that can be seen', async (t) => {
  t.equal(lineColorOn('#eceef1', '#1d4ed8'), '#1d4ed8')
  t.strictSame([lineColorOn('#eceef1', '#ffee00'), lineColorOn('#22262d', '#1d4ed8')], ['#8c8300', '#3f69de'])
  for (const color of ['#000', '#fff', '#7f7f7f', '#fe0', '#00f', '#0a0']) {
    for (const background of ['#eceef1', '#22262d']) {
      const line = lineColorOn(background, color)
      const [lighter, darker] = [luminanceOf(line), luminanceOf(background)].sort((one, other) => other - one)
      t.ok((lighter! + 0.05) / (darker! + 0.05) >= 3, `${color} on ${background}: ${line}`)
    }
  }
})
