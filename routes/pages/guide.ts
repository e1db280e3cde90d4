import { existsSync, readFileSync } from 'node:fs'
import { glob, readFile } from 'node:fs/promises'
import { posix } from 'node:path'
import { setImmediate } from 'node:timers/promises'
import { docsPage, LENS } from './docs-page.ts'
import { attributes, html, type Html, type HtmlValue } from './html.ts'
import { plainText, renderMarkdown, sectionsOf, type Highlight } from './markdown.ts'

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
export async function createGuide (hasGraphql: boolean): Promise<GuideDocument[]> {
  const texts = await readDocuments()
  if (texts.size === 0) return []
  const guide = { texts, index: readIndex(texts), hasGraphql, highlight: await loadHighlight() }
  const pages: GuideDocument[] = []
  const sections: object[] = []
  for (const [name, text] of texts) {
    // Rendering all of them takes the time of hundreds of requests, which are not kept waiting.
    await setImmediate()
    pages.push({ path: pathOf(name), type: 'text/html; charset=utf-8', content: `${renderPage(name, guide)}` })
    for (const [place, { id, title, text: own }] of sectionsOf(text).entries()) {
      const heading = place === 0 ? { heading: '', id: '' } : { heading: title, id }
      sections.push({ page: pathOf(name).slice(1), title: titleOf(text), ...heading, text: own })
    }
  }
  return [
    ...pages, { path: '/search.json', type: 'application/json; charset=utf-8', content: JSON.stringify(sections) },
  ]
}

// Without its library, a dev dependency that the build bundles, code has no colors.
const loadHighlight = (): Promise<Highlight> =>
  import('./highlight.ts').then(({ highlight }) => highlight, () => () => undefined)

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

interface Link { readonly label: string, readonly name: string }

/** Documents that serve one purpose, as the index lists them. */
interface Purpose { readonly title: string, readonly links: readonly Link[] }

interface Index {
  /** What readers want to do, each with the documents for it. */
  readonly wishes: readonly Purpose[]
  /** What there is besides. */
  readonly areas: readonly Purpose[]
}

const capitalize = (text: string): string => `${text.slice(0, 1).toUpperCase()}${text.slice(1)}`

function linksIn (text: string, texts: ReadonlyMap<string, string>): Link[] {
  return [...text.matchAll(/\[([^\]]+)\]\(([^)#\s]+)[^)]*\)/g)]
    .map(([, label, target]) => ({ label: capitalize(plainText(label!)), name: posix.normalize(target!) }))
    .filter(({ name }) => texts.has(name))
}

/** Reads the index, whose first section is a table of what readers want to do. */
function readIndex (texts: ReadonlyMap<string, string>): Index {
  const [, ...sections] = texts.get(INDEX)!.split(/^## /m)
  const [wishes = '', ...areas] = sections
  return {
    wishes: [...wishes.matchAll(/^\| (\S.*?) \| (.+) \|$/gm)]
      .map(([, title, links]) => ({ title: capitalize(plainText(title!)), links: linksIn(links!, texts) })),
    areas: areas.map((section) => ({ title: section.slice(0, section.indexOf('\n')), links: linksIn(section, texts) })),
  }
}

/** Returns all documents by purpose, each once: those that the index leaves out are below what they belong to. */
function readTree ({ wishes, areas }: Index, texts: ReadonlyMap<string, string>): Purpose[] {
  const seen = new Set<string>([INDEX])
  const unseen = (links: readonly Link[]) => links.filter(({ name }) => !seen.has(name) && seen.add(name))
  const ofAreas = areas.map(({ title, links }) => ({ title, links: unseen(links) }))
  const ofWishes = wishes.map(({ title, links }) => ({ title, links: unseen(links) }))
  const isLarge = ({ links }: Purpose) => links.length > 2
  const start = { title: 'Start here', links: ofWishes.filter((wish) => !isLarge(wish)).flatMap(({ links }) => links) }
  const purposes = [start, ...ofWishes.filter(isLarge), ...ofAreas]
  const others = [...texts].filter(([name]) => !seen.has(name))
    .map(([name, text]) => ({ name, label: titleOf(text) }))
    .toSorted((one, other) => one.label.localeCompare(other.label))
  const folderOf = ({ name }: Link) => posix.dirname(name)
  const isBeside = (other: Link) => (link: Link) => folderOf(other) !== '.' && folderOf(link) === folderOf(other)
  return purposes.map(({ title, links }, index) => {
    const isLast = index === purposes.length - 1
    return { title, links: [...links, ...unseen(others.filter((other) => isLast || links.some(isBeside(other))))] }
  })
}

/** Returns links to the parts of a document, which stand beside it where there is room. */
function renderParts (text: string): HtmlValue {
  const parts = sectionsOf(text).filter(({ level }) => level === 2)
  if (parts.length < 2) return undefined
  return html`<nav class="toc" aria-labelledby="toc"><p id="toc">On this page</p><ul>${
    parts.map(({ id, title }) => html`<li><a href="#${id}">${title}</a></li>`)}</ul></nav>`
}

function renderHome ({ wishes, areas }: Index, link: (link: Link) => Html): Html {
  const card = ({ title, links }: Purpose) => html`<div class="card"><h3>${title}</h3><ul class="list">${
    links.map((each) => html`<li>${link(each)}</li>`)}</ul></div>`
  return html`<article><h1>Documents</h1>
<p class="lead">What you want to do, and the documents for it.</p>
<h2>I want to …</h2>
<div class="cards">${wishes.map(card)}</div>
<h2>By subject</h2>
<div class="cards">${areas.map(card)}</div></article>`
}

const search = html`<dialog id="search" aria-label="Search the documents">
<form role="search">${LENS}<label class="visually-hidden" for="words">Search the documents</label><input${attributes({
  id: 'words', type: 'search', placeholder: 'Search the documents', autocomplete: 'off',
})}><button type="button" class="plain small" data-close>Close</button></form>
<div id="results"><p class="hint" id="count" role="status"></p><ul></ul></div>
</dialog>`

interface Guide {
  readonly texts: ReadonlyMap<string, string>
  readonly index: Index
  readonly hasGraphql: boolean
  readonly highlight: Highlight
}

function renderPage (name: string, { texts, index, hasGraphql, highlight }: Guide): Html {
  const isIndex = name === INDEX
  // Links are relative to the page, so that it works below a prefix. The index is beside the folder of the others.
  const guide = isIndex ? 'guide' : posix.relative(posix.dirname(pathOf(name)), '/') || '.'
  const docs = isIndex ? '.' : `${guide}/..`
  const home = isIndex ? 'guide' : `${docs}/guide`
  const addressOf = (name: string) => name === INDEX ? home : `${guide}${pathOf(name)}`
  const resolve = (target: string): string | undefined => {
    if (/^https?:\/\//.test(target) || target.startsWith('#')) return target
    const [file = '', fragment] = target.split('#')
    const found = posix.join(posix.dirname(name), file)
    if (!texts.has(found)) return undefined
    return `${addressOf(found)}${fragment === undefined ? '' : `#${fragment}`}`
  }
  const link = (to: Link) => html`<a${attributes({
    href: addressOf(to.name), 'aria-current': to.name === name ? 'page' : undefined,
  })}>${to.label}</a>`
  const text = texts.get(name)!
  return docsPage({
    title: isIndex ? 'Documents · Usher' : `${titleOf(text)} · Usher`,
    current: 'guide',
    kind: isIndex ? 'home' : undefined,
    places: { docs, base: `${docs}/..`, hasGraphql, hasGuide },
    data: { 'data-guide': guide },
    modules: ['search.js'],
    end: html`<button type="button" class="bar-button bar-end bar-lens" data-search aria-label="Search the documents" hidden>${
      LENS}<span>Search</span><kbd aria-hidden="true">/</kbd></button>`,
    contents: {
      label: 'Documents',
      links: html`<ul>
<li>${link({ name: INDEX, label: 'All documents' })}</li>
${readTree(index, texts).map(({ title, links }) => html`<li><span class="group">${title}</span><ul>
${links.map((each) => html`<li>${link(each)}</li>\n`)}</ul></li>\n`)}</ul>`,
    },
    side: isIndex ? undefined : renderParts(text),
    content: html`${isIndex ? renderHome(index, link) : html`<article>${renderMarkdown(text, { resolve, highlight })}</article>`}
${search}`,
  })
}
