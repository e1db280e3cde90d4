import { copyButton } from './docs-page.ts'
import { attributes, html, trusted, type Html } from './html.ts'

/** Turns the target of a link into an address, or into undefined if there is nothing to open. */
export type ResolveLink = (target: string) => string | undefined

/** Returns the HTML of a source in a language, or undefined if that is unknown. */
export type Highlight = (source: string, language: string) => string | undefined

interface Context { readonly resolve: ResolveLink, readonly highlight: Highlight }

/** A part of a document, from one heading to the next. */
export interface Section {
  readonly id: string
  /** That of its heading: 1 for the title of the document. */
  readonly level: number
  readonly title: string
  readonly text: string
}

/** Returns the fragment that leads to a heading, as GitHub forms it. */
export const slugOf = (heading: string): string =>
  heading.toLowerCase().replaceAll(/[^\w\- ]/g, '').replaceAll(' ', '-')

/** Returns a text of Markdown without its marks. */
export const plainText = (text: string): string =>
  text.replaceAll(/!?\[([^\]]*)\]\([^)]*\)/g, '$1').replaceAll(/\*\*|`/g, '')

/**
 * Returns the sections of a document, the first of which has the title of the document. Blocks of code and the marks of
 * tables are left out.
 */
export function sectionsOf (markdown: string): Section[] {
  const parts = markdown.replaceAll(/^```[^]*?^```/gm, '').split(/^(?=#+ )/m).filter((part) => part.trim() !== '')
  return parts.map((part) => {
    const [heading = '', ...lines] = part.split('\n')
    const title = heading.replace(/^#+ /, '')
    const text = plainText(lines.join(' ')).replaceAll(/(?:[|\s]|-{3,})+/g, ' ').trim()
    return { id: slugOf(title), level: heading.indexOf(' '), title: plainText(title), text }
  })
}

/**
 * Returns a document as HTML. It knows what the documents of Usher use of Markdown: headings, paragraphs, lists,
 * tables, blocks of code, code, emphasis, links, and images, of which it shows the text.
 */
export const renderMarkdown = (markdown: string, context: Context): Html => blocks(markdown.split('\n'), context)

const FENCE = /^```(\w*)/
const HEADING = /^(#{1,4}) (.+)$/
const ITEM = /^(?:- |(\d+)\. )/
const startsBlock = (line: string): boolean => [FENCE, HEADING, ITEM, /^\|/].some((start) => start.test(line))

function blocks (lines: readonly string[], context: Context): Html {
  const { resolve } = context
  const found: Html[] = []
  let at = 0
  // Returns the lines from here to the first one for which the condition is not true.
  const take = (condition: (line: string) => boolean): string[] => {
    const from = at
    while (at < lines.length && condition(lines[at]!)) at++
    return lines.slice(from, at)
  }
  while (at < lines.length) {
    const line = lines[at]!
    const heading = HEADING.exec(line)
    const fence = FENCE.exec(line)
    if (line.trim() === '') at++
    else if (fence) {
      at++
      const code = take((next) => !FENCE.test(next))
      at++
      found.push(codeBlock(code.join('\n'), fence[1]!, context))
    } else if (heading) {
      at++
      const [, { length: level }, text] = heading as unknown as [string, string, string]
      const content = inline(text, resolve)
      const id = attributes({ id: slugOf(text) })
      found.push(level === 1
        ? html`<h1>${content}</h1>\n`
        : level === 2 ? html`<h2${id}>${content}</h2>\n` : level === 3 ? html`<h3${id}>${content}</h3>\n` : html`<h4${id}>${content}</h4>\n`)
    } else if (line.startsWith('|')) found.push(table(take((next) => next.startsWith('|')), resolve))
    else if (ITEM.test(line)) found.push(list(take(isOfList(ITEM.exec(line)![1] !== undefined)), context))
    else {
      at++
      const rest = take((next) => next.trim() !== '' && !startsBlock(next))
      found.push(html`<p>${inline([line, ...rest].join('\n'), resolve)}</p>\n`)
    }
  }
  return html`${found}`
}

function codeBlock (code: string, language: string, { highlight }: Context): Html {
  const highlighted = highlight(code, language)
  return html`<div class="code">${copyButton}<pre tabindex="0"><code>${
    highlighted === undefined ? code : trusted(highlighted)}</code></pre></div>\n`
}

// An item goes on with the lines that follow it, and after an empty line with those that are indented.
function isOfList (isNumbered: boolean): (line: string) => boolean {
  let wasEmpty = false
  return (line) => {
    const item = ITEM.exec(line)
    const isOwn = item ? (item[1] !== undefined) === isNumbered : /^\s/.test(line) || (!wasEmpty && !startsBlock(line))
    const isOf = line.trim() === '' || isOwn
    wasEmpty = line.trim() === ''
    return isOf
  }
}

function list (lines: readonly string[], context: Context): Html {
  const items: string[][] = []
  for (const line of lines) {
    if (ITEM.test(line)) items.push([line.replace(ITEM, '')])
    else items.at(-1)!.push(line.replace(/^ {1,3}/, ''))
  }
  const content = items.map((item) => html`<li>${blocks(item, context)}</li>\n`)
  return ITEM.exec(lines[0]!)![1] === undefined ? html`<ul>${content}</ul>\n` : html`<ol>${content}</ol>\n`
}

function table (lines: readonly string[], resolve: ResolveLink): Html {
  const rows = lines.map((line) => line.replace(/^\| ?/, '').replace(/\|\s*$/, '').split(/(?<!\\)\|/)
    .map((cell) => inline(cell.trim().replaceAll('\\|', '|'), resolve)))
  const [head = [], , ...body] = rows
  const hasHead = head.some((cell) => `${cell}` !== '')
  return html`<div class="scroll" tabindex="0"><table>${hasHead && html`<thead><tr>${head.map((cell) =>
    `${cell}` === '' ? html`<td></td>` : html`<th scope="col">${cell}</th>`)}</tr></thead>`}<tbody>${body.map((row) =>
    html`<tr>${row.map((cell) => html`<td>${cell}</td>`)}</tr>\n`)}</tbody></table></div>\n`
}

const MARKS = /``(.+?)``|`([^`]+)`|\*\*(.+?)\*\*|\*([^\s*][^*]*)\*|!\[([^\]]*)\]\([^)]*\)|\[((?:`[^`]*`|[^\]])+)\]\(([^)\s]+)\)/gs

function inline (text: string, resolve: ResolveLink): Html {
  const parts: Html[] = []
  let end = 0
  for (const match of text.matchAll(MARKS)) {
    const [whole, double, code = double, strong, emphasis, image, label, target] = match
    parts.push(html`${text.slice(end, match.index)}`)
    if (code !== undefined) parts.push(html`<code>${code}</code>`)
    else if (strong !== undefined) parts.push(html`<strong>${inline(strong, resolve)}</strong>`)
    else if (emphasis !== undefined) parts.push(html`<em>${inline(emphasis, resolve)}</em>`)
    else if (image !== undefined) parts.push(html`<em>${image}</em>`)
    else {
      const href = resolve(target!)
      parts.push(href === undefined ? inline(label!, resolve) : html`<a href="${href}">${inline(label!, resolve)}</a>`)
    }
    end = match.index + whole.length
  }
  return html`${parts}${text.slice(end)}`
}
