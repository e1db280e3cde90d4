import { existsSync, readFileSync } from 'node:fs'
import { glob, readFile } from 'node:fs/promises'
import { posix } from 'node:path'
import { setImmediate } from 'node:timers/promises'
import { tabs } from './components.ts'
import { html, type Html } from './html.ts'
import { plainText, renderMarkdown, sectionsOf } from './markdown.ts'

const INDEX = 'README.md'
// That of the repository, or that of the package, where this module is below dist/.
const folder = ['../../docs/', '../../../docs/'].map((path) => new URL(path, import.meta.url))
  .find((url) => existsSync(new URL(INDEX, url)))

/** Whether the folder of the documents is installed. */
export const hasGuide = folder !== undefined

/** Returns the text of a document; undefined where their folder is not installed. */
export const readDocument = (name: string): string | undefined =>
  folder && readFileSync(new URL(name, folder), 'utf8')

/** A document of the guide: its path below that of the guide, which begins with a slash unless it is empty. */
export interface GuideDocument { readonly path: string, readonly type: string, readonly content: string }

/**
 * Returns the documents of Usher as pages, with an index by purpose, and what its search looks into. There are no
 * pages where their folder is not installed.
 */
export async function createGuide (): Promise<GuideDocument[]> {
  const texts = await readDocuments()
  const pages: GuideDocument[] = []
  const sections: object[] = []
  for (const [name, text] of texts) {
    // Rendering all of them takes the time of hundreds of requests, which are not kept waiting.
    await setImmediate()
    pages.push({ path: pathOf(name), type: 'text/html; charset=utf-8', content: `${renderPage(name, texts)}` })
    for (const [index, { id, title, text: own }] of sectionsOf(text).entries()) {
      const heading = index === 0 ? { heading: '', id: '' } : { heading: title, id }
      sections.push({ page: pathOf(name).slice(1), title: titleOf(text), ...heading, words: wordsOf(own) })
    }
  }
  return [
    ...pages, { path: '/search.json', type: 'application/json; charset=utf-8', content: JSON.stringify(sections) },
  ]
}

async function readDocuments (): Promise<Map<string, string>> {
  const texts = new Map<string, string>()
  if (folder === undefined) return texts
  for await (const name of glob('**/*.md', { cwd: folder })) {
    texts.set(name.replaceAll('\\', '/'), await readFile(new URL(name, folder), 'utf8'))
  }
  return texts
}

const pathOf = (name: string): string => name === INDEX ? '' : `/${name.replace(/\.md$/, '')}`
const titleOf = (markdown: string): string => plainText(/^# (.+)$/m.exec(markdown)![1]!)
// Each once, because the search asks only whether a section has them.
const wordsOf = (text: string): string =>
  [...new Set(text.toLowerCase().match(/[\p{L}\d_]{3,}/gu))].join(' ')

/** Returns links to the parts of a document, which stand beside it where there is room. */
const showContents = (text: string): Html => tabs('On this page', sectionsOf(text).filter(({ level }) => level === 2)
  .map(({ id, title }) => ({ href: `#${id}`, text: title })), { side: true })

function renderPage (name: string, texts: ReadonlyMap<string, string>): Html {
  const isIndex = name === INDEX
  // Links are relative to the page, so that it works below a prefix. The index is beside the folder of the others.
  const guide = isIndex ? 'guide' : posix.relative(posix.dirname(pathOf(name)), '/') || '.'
  const docs = isIndex ? '.' : `${guide}/..`
  const index = isIndex ? 'guide' : `${docs}/guide`
  const resolve = (target: string): string | undefined => {
    if (/^https?:\/\//.test(target) || target.startsWith('#')) return target
    const [file = '', fragment] = target.split('#')
    const found = posix.join(posix.dirname(name), file)
    if (!texts.has(found)) return undefined
    return `${found === INDEX ? index : `${guide}${pathOf(found)}`}${fragment === undefined ? '' : `#${fragment}`}`
  }
  const file = (name: string) => `${docs}/static/${name}`
  const text = texts.get(name)!
  return html`<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="color-scheme" content="light dark">
<title>${titleOf(text)} · Usher</title>
<link rel="icon" type="image/svg+xml" href="${file('favicon.svg')}">
<link rel="stylesheet" href="${file('design.css')}">
<link rel="stylesheet" href="${file('docs.css')}">
<script type="module" src="${file('search.js')}"></script>
</head>
<body class="page guide" data-guide="${guide}">
<a class="skip" href="#main">Skip to the content</a>
<header class="page-header"><a class="brand" href="${index}">Usher</a><nav aria-label="Documents"><a href="${index}">All documents</a> · <a href="${
  isIndex ? '../docs' : `${docs}/../docs`}">API reference</a></nav></header>
<main class="page-main" id="main" tabindex="-1">
<form role="search" id="search" hidden><label class="visually-hidden" for="words">Search the documents</label><input${
  html` id="words" type="search" placeholder="Search the documents" autocomplete="off"`}></form>
<div id="results" hidden><p class="hint" id="count" role="status"></p><ul class="list"></ul></div>
<div class="split">
${showContents(text)}
<div>
${renderMarkdown(text, resolve)}
</div>
</div>
</main>
</body>
</html>
`
}
