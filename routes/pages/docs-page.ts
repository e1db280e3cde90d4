import { attributes, html, type Html, type HtmlValue } from './html.ts'

/** Where a page finds what it needs, relative to its own address. */
export interface DocsPlaces {
  /** The folder of the documents and files. */
  docs: string
  /** What the paths of the service are relative to. */
  base: string
  hasGraphql: boolean
  /** Whether the documents of Usher are there. */
  hasGuide: boolean
}

interface DocsPage {
  title: string
  /** What the page is, among those that the bar links. */
  current: 'reference' | 'guide'
  places: DocsPlaces
  /** A class of the body besides. */
  kind?: string | undefined
  /** The attributes of the body, which scripts read. */
  data?: Parameters<typeof attributes>[0]
  /** The files of scripts, which are classic ones, and of modules. */
  scripts?: readonly string[]
  modules?: readonly string[]
  /** What is at the end of the bar. */
  end: HtmlValue
  /** What the list beside the content is called, and what it has above its links. */
  contents: { label: string, top?: HtmlValue, links: HtmlValue }
  /** What stands at the other side of the content where there is room. */
  side?: HtmlValue
  content: HtmlValue
}

/** Lines, a lens and a cross, as large as text. */
const icon = (path: string): Html => html`<svg viewBox="0 0 20 20" width="20" height="20" fill="none" stroke="currentColor" stroke-width="1.75" stroke-linecap="round" aria-hidden="true"><path d="${path}"/></svg>`
export const MENU = icon('M3 5h14M3 10h14M3 15h14')
export const LENS = icon('M14 14l3.5 3.5M15.5 9a6.5 6.5 0 1 1-13 0 6.5 6.5 0 0 1 13 0z')
const CROSS = icon('M5 5l10 10M15 5L5 15')

/** Returns a button that copies the block of code beside it. Scripts show it. */
export const copyButton = html`<button type="button" class="copy" data-copy hidden>Copy</button>`

/**
 * Returns a page of the reference or of the documents: a bar, a list of what there is, and the content. The list stands
 * beside the content where there is room, and opens over it elsewhere, also without scripts.
 */
export function docsPage (
  { title, current, kind, places, data = {}, scripts = [], modules = [], end, contents, side, content }: DocsPage
): Html {
  const { docs, base, hasGraphql, hasGuide } = places
  const file = (name: string) => `${docs}/static/${name}`
  const pages = [
    { href: `${base}/docs`, text: 'API reference', isCurrent: current === 'reference' },
    ...hasGuide ? [{ href: `${docs}/guide`, text: 'Documents', isCurrent: current === 'guide' }] : [],
    ...hasGraphql ? [{ href: `${base}/graphql`, text: 'GraphiQL', isCurrent: false }] : [],
  ]
  const links = pages.map(({ href, text, isCurrent }) =>
    html`<a${attributes({ href, 'aria-current': isCurrent ? 'true' : undefined })}>${text}</a>`)
  return html`<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="color-scheme" content="light dark">
<title>${title}</title>
<link rel="icon" type="image/svg+xml" href="${file('favicon.svg')}">
${['design.css', 'bar.css', 'docs.css'].map((name) => html`<link rel="stylesheet" href="${file(name)}">\n`)}${
  modules.map((name) => html`<script type="module" src="${file(name)}"></script>\n`)}</head>
<body${attributes({ class: ['docs', current, kind].filter(Boolean).join(' '), ...data })}>
<a class="skip" href="#main">Skip to the content</a>
<header class="bar">
<button type="button" class="bar-button bar-menu" popovertarget="contents" aria-label="${contents.label}">${MENU}</button>
<a class="bar-brand" href="${base}/docs">Usher</a>
<nav class="bar-links" aria-label="Developers">${links}</nav>
${end}
</header>
<div class="frame">
<nav class="drawer" id="contents" popover aria-label="${contents.label}">
<div class="drawer-top">${contents.top}<button type="button" class="plain small drawer-close" popovertarget="contents" popovertargetaction="hide" aria-label="Close">${CROSS}</button></div>
<p class="drawer-links">${links}</p>
${contents.links}
</nav>
<main${attributes({ id: 'main', tabindex: -1, class: side ? 'with-side' : undefined })}>
${content}
${side}
</main>
</div>
${scripts.map((name) => html`<script src="${file(name)}"></script>\n`)}</body>
</html>
`
}
