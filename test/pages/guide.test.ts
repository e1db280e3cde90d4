import { globSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import t from 'tap'
import { highlight } from '../../routes/pages/highlight.ts'
import { renderMarkdown } from '../../routes/pages/markdown.ts'
import { createUsher } from '../helpers/app.ts'

const folder = join(import.meta.dirname, '../../docs')
const names = globSync('**/*.md', { cwd: folder })

t.test('8 GET /docs/guide: every document is a page, and each link leads to a page and a heading', async (t) => {
  const { inject, prefix } = await createUsher(t, { prefix: '/accounts' })
  const pages = new Map<string, string>()
  for (const name of names) {
    const path = name === 'README.md' ? '/docs/guide' : `/docs/guide/${name.replace(/\.md$/, '')}`
    const { statusCode, headers, body } = await inject('GET', path)
    t.strictSame([statusCode, headers['content-type']], [200, 'text/html; charset=utf-8'], path)
    t.match(headers['content-security-policy'], "default-src 'none'; script-src 'self'")
    pages.set(path, body)
    // What is in code may look like marks.
    const text = body.replaceAll(/<pre[^>]*>[^]*?<\/pre>|<code>[^]*?<\/code>/g, '')
    t.strictSame([...text.matchAll(/^.*(?:\]\(|\*\*|```|^\s*\||^#+ |&lt;img|`).*$/gm)].map(([line]) => line), [], name)
  }
  t.ok(pages.size > 60, `${pages.size}`)
  const broken: string[] = []
  let count = 0
  for (const [path, body] of pages) {
    for (const [, href] of body.matchAll(/<(?:a|link|script) [^>]*(?:href|src)="([^"]+)"/g)) {
      if (/^https?:/.test(href!)) continue
      count++
      const { pathname, hash } = new URL(href!, `http://localhost${prefix}${path}`)
      const target = pathname.slice(prefix.length)
      // GraphiQL is no page of this app unless a browser asks.
      if (hash === '#main' || target === '/graphql') continue
      const found = pages.get(target) ?? (await inject('GET', target))
      if (typeof found !== 'string') {
        if (found.statusCode !== 200 || !pathname.startsWith(prefix)) broken.push(`${path}: ${href}`)
      } else if (hash !== '' && !found.includes(` id="${hash.slice(1)}"`)) broken.push(`${path}: ${href}`)
    }
  }
  t.ok(count > 900, `${count}`)
  t.strictSame(broken, [])
  t.match((await inject('GET', '/docs')).body, '<a href="./docs/guide">Documents</a>')
  const home = pages.get('/docs/guide')!
  const linked = [...home.matchAll(/<a href="(guide[^"#]*)"/g)].map(([, href]) => href)
  t.strictSame([...pages.keys()].filter((path) => !linked.includes(path.slice('/docs/'.length))), [], 'the tree has all of them')
  t.match(home, /<h3>Add accounts to my Fastify app<\/h3><ul class="list"><li><a href="guide\/host">Building on Usher<\/a>/)
  t.match(pages.get('/docs/guide/host'), '<a href="./host" aria-current="page">Building on Usher</a>')
  for (const path of ['/docs/guide/', '/docs/guide/none', '/docs/guide/..%2fREADME', '/docs/guide/README.md', '/docs/guide/nginx.conf']) {
    t.equal((await inject('GET', path)).statusCode, 404, path)
  }

  const sections = (await inject('GET', '/docs/guide/search.json')).json<{ page: string, heading: string, id: string, text: string }[]>()
  const headings = names.flatMap((name) =>
    [...readFileSync(join(folder, name), 'utf8').replaceAll(/^```[^]*?^```/gm, '').matchAll(/^#+ .+$/gm)])
  t.equal(sections.length, headings.length)
  t.ok(sections.some(({ page, id, text }) => page === 'operations/import' && id === 'hashes-of-passwords' && /\(bcrypt\)/.test(text)))
})

t.test('8 a part that is left out has no documents either', async (t) => {
  const { inject } = await createUsher(t, { without: ['docs'] })
  t.equal((await inject('GET', '/docs/guide')).statusCode, 404)
})

t.test('8 documents are rendered as what they are', async (t) => {
  const resolve = (target: string) => target.startsWith('x') ? undefined : `to:${target}`
  const render = (text: string) => `${renderMarkdown(text, { resolve, highlight })}`.replaceAll('\n', '')
  t.equal(render('A `<b>` **c `d`** *e* [f `g`](h) [i](x.ts) a*b*c'),
    '<p>A <code>&lt;b&gt;</code> <strong>c <code>d</code></strong> <em>e</em> <a href="to:h">f <code>g</code></a> i a<em>b</em>c</p>')
  t.equal(render('- a\n  b\n- c\n\n  d\n\n1. e\n2. f\ng\n\nh'),
    '<ul><li><p>ab</p></li><li><p>c</p><p>d</p></li></ul><ol><li><p>e</p></li><li><p>fg</p></li></ol><p>h</p>')
  t.equal(render('| | a |\n|---|---|\n| `b \\| c` | d |'),
    '<div class="scroll" tabindex="0"><table><thead><tr><td></td><th scope="col">a</th></tr></thead><tbody><tr><td><code>b | c</code></td><td>d</td></tr></tbody></table></div>')
  const code = (content: string) =>
    `<div class="code"><button type="button" class="copy" data-copy hidden>Copy</button><pre tabindex="0"><code>${content}</code></pre></div>`
  t.equal(render('```text\n# <a>\n```\n## A `b` c'), `${code('# &lt;a&gt;')}<h2 id="a-b-c">A <code>b</code> c</h2>`)
  t.equal(render('```sh\n# <a>\n```'), code('<span class="hljs-comment"># &lt;a&gt;</span>'))
  t.equal(render("```js\nconst a = 'b'\n```"),
    code('<span class="hljs-keyword">const</span> a = <span class="hljs-string">&#x27;b&#x27;</span>'))
})
