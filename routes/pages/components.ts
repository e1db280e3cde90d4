import { readFileSync } from 'node:fs'
import { lineColorOn, textColorOn } from '../../schema/options/color.ts'
import { attributes, html, type Html, type HtmlValue } from './html.ts'

/**
 * The components of all pages (contract 15.2): functions that return HTML, styled by design.css. Texts are given by
 * the page, in the language of its reader. /console/design shows all of them in development.
 */

// Of the backgrounds of design.css the ones on which a line has the least contrast, in light and dark.
const SUNKEN = { light: '#eceef1', dark: '#22262d' }

/** Returns the style of all pages, with a color for buttons (which needs no escaping, being hexadecimal). */
export function readDesign (color: string): string {
  return readFileSync(new URL('design.css', import.meta.url), 'utf8')
    .replaceAll('{{color}}', color).replaceAll('{{textOnColor}}', textColorOn(color))
    .replace('{{focusOnLight}}', lineColorOn(SUNKEN.light, color)).replace('{{focusOnDark}}', lineColorOn(SUNKEN.dark, color))
}

type Attributes = Parameters<typeof attributes>[0]
type Tone = 'info' | 'success' | 'warning' | 'error'

const classes = (...names: (string | false | undefined)[]): string => names.filter(Boolean).join(' ')

export interface PageShell {
  language: string
  direction: 'ltr' | 'rtl'
  /** What the tab says before the name of the product. */
  title: string
  productName: string
  /** Addresses relative to the page, or paths. */
  icon: string
  stylesheets: readonly string[]
  scripts: readonly string[]
  /** What the link to the content says that a keyboard reaches first. */
  skip: string
  /** Where the name of the product leads, if anywhere. */
  home?: string
  /** An image in place of the name, which it is called by. */
  logo?: string
  /** What is in the header beside the name, at its end. */
  header?: HtmlValue
  /** What is beside the content on wide screens, below the header. */
  side?: HtmlValue
  footer?: HtmlValue
  /** `narrow` is for forms, `medium` for reading, `wide` for tables. */
  width?: 'narrow' | 'medium' | 'wide'
  content: Html
}

// A character may be a pair of surrogates.
const initialOf = (name: string, language: string): string =>
  (Array.from(name.trim())[0] ?? '').toLocaleUpperCase(language)

/** Returns a whole page. */
export function page (shell: PageShell): Html {
  const { language, direction, title, productName, icon, stylesheets, scripts, skip, home, logo, content } = shell
  const mark = logo === undefined
    ? html`<span class="monogram" aria-hidden="true">${initialOf(productName, language)}</span><bdi>${productName}</bdi>`
    : html`<img src="${logo}" alt="${productName}">`
  return html`<!doctype html>
<html lang="${language}" dir="${direction}">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="color-scheme" content="light dark">
<title>${title} · ${productName}</title>
<link rel="icon" href="${icon}">
${stylesheets.map((href) => html`<link rel="stylesheet" href="${href}">\n`)}${
  scripts.map((src) => html`<script type="module" src="${src}"></script>\n`)}</head>
<body class="${classes('page', shell.width ?? 'narrow', Boolean(shell.side) && 'with-side')}">
<a class="skip" href="#main">${skip}</a>
<header class="page-header">${home === undefined
  ? html`<span class="brand">${mark}</span>`
  : html`<a class="brand" href="${home}">${mark}</a>`}${shell.header}</header>
${shell.side}
<main class="page-main" id="main" tabindex="-1">
${content}
</main>
${shell.footer && html`<footer class="page-footer">${shell.footer}</footer>\n`}</body>
</html>
`
}

/** Returns the heading of a page, with what can be done on it, and the way to where it belongs. */
export function pageTitle (
  title: string, { crumbs = [], crumbsLabel = '', image, hint, actions }: {
    /** The pages above this one. */
    crumbs?: readonly { href: string, text: string }[]
    /** The name of the way, for screen readers. */
    crumbsLabel?: string
    /** What stands before the heading. */
    image?: HtmlValue
    /** What there is to know, below the heading. */
    hint?: HtmlValue
    actions?: HtmlValue
  } = {}
): Html {
  return html`${crumbs.length > 0 && html`<nav aria-label="${crumbsLabel}"><ol class="crumbs">${
    crumbs.map(({ href, text }) => html`<li><a href="${href}">${text}</a></li>`)}</ol></nav>`}
<div class="page-title">${image || hint
  ? html`<div class="heading">${image}<div><h1 tabindex="-1">${title}</h1>${hint}</div></div>`
  : html`<h1 tabindex="-1">${title}</h1>`}${actions && html`<div class="actions">${actions}</div>`}</div>`
}

/** Returns a part of a page with a border. `id` is that of its heading with `-title` after it. */
export function card (
  content: HtmlValue, { id, title, hint, danger, level = 2, attributes: more = {} }: {
    id?: string
    title?: string
    hint?: HtmlValue
    /** Whether its actions destroy something. */
    danger?: boolean
    level?: 2 | 3
    attributes?: Attributes
  } = {}
): Html {
  const titleId = id && `${id}-title`
  const heading = attributes({ id: titleId, tabindex: -1 })
  return html`<section${attributes({
    class: classes('card', danger && 'danger'), id, 'aria-labelledby': title === undefined ? undefined : titleId, ...more,
  })}>
${title !== undefined && html`<header>${level === 2
  ? html`<h2${heading}>${title}</h2>`
  : html`<h3${heading}>${title}</h3>`}${hint && html`<p class="hint">${hint}</p>`}</header>`}
${content}
</section>`
}

export interface Field {
  /** The `name` of the field, which is also its `id` unless that is given. */
  name: string
  id?: string
  label: string
  type?: 'text' | 'email' | 'password' | 'search' | 'number' | 'date' | 'datetime-local' | 'url' | 'textarea'
  value?: string | undefined
  hint?: HtmlValue
  /** What is wrong with the value. Scripts set it later, so there is a place for it in any case. */
  error?: string | undefined
  required?: boolean
  /** The options of a choice, which make it a select. */
  options?: readonly { value: string, text: string }[]
  /** Attributes such as `autocomplete` and `maxlength`. */
  attributes?: Attributes
}

/** Returns a field with its label, its hint, and the place of its error, which screen readers read with it. */
export function field ({ name, id = name, label, type = 'text', value, hint, error, required, options, ...rest }: Field): Html {
  const shared = {
    id,
    name,
    required,
    'aria-describedby': classes(hint !== undefined && `${id}-hint`, `${id}-error`),
    'aria-invalid': error ? 'true' : undefined,
    ...rest.attributes,
  }
  return html`<div class="field">
<label for="${id}">${label}</label>
${hint !== undefined && html`<p class="hint" id="${id}-hint">${hint}</p>`}
${options
  ? html`<select${attributes(shared)}>${options.map((option) => html`<option${attributes({
    value: option.value, selected: option.value === value,
  })}>${option.text}</option>`)}</select>`
  : type === 'textarea'
    ? html`<textarea${attributes(shared)}>\n${value}</textarea>`
    : html`<input${attributes({ ...shared, type, value })}>`}
<p class="field-error" id="${id}-error">${error}</p>
</div>`
}

/** Returns a box to check, with its label. */
export function checkbox (label: HtmlValue, given: Attributes): Html {
  return html`<label class="check"><input type="checkbox"${attributes(given)}> ${label}</label>`
}

type ButtonKind = 'primary' | 'plain' | 'danger' | 'link'

/** Returns a button. It is busy with `aria-busy="true"`, which scripts set while they wait (ui.js). */
export function button (
  text: HtmlValue, { kind = 'primary', type = 'submit', small, wide, busy, attributes: more = {} }: {
    kind?: ButtonKind
    type?: 'submit' | 'button'
    small?: boolean
    wide?: boolean
    busy?: boolean
    attributes?: Attributes
  } = {}
): Html {
  return html`<button${attributes({
    type,
    class: classes(kind !== 'primary' && kind, small && 'small', wide && 'wide') || undefined,
    'aria-busy': busy ? 'true' : undefined,
    'aria-disabled': busy ? 'true' : undefined,
    ...more,
  })}>${text}</button>`
}

/** Returns a link that looks like a button. */
export function buttonLink (
  href: string, text: HtmlValue, { kind = 'primary', small, wide, attributes: more = {} }: {
    kind?: ButtonKind
    small?: boolean
    wide?: boolean
    attributes?: Attributes
  } = {}
): Html {
  return html`<a${attributes({
    class: classes('button', kind !== 'primary' && kind, small && 'small', wide && 'wide'), href, ...more,
  })}>${text}</a>`
}

/** Returns buttons beside each other. */
export const actions = (...content: HtmlValue[]): Html => html`<div class="actions">${content}</div>`

/**
 * Returns what the user has to know about. Errors and warnings are read by screen readers at once, the others when the
 * user pauses.
 */
export function alert (content: HtmlValue, tone: Tone = 'info', more: Attributes = {}): Html {
  const role = tone === 'error' || tone === 'warning' ? 'alert' : 'status'
  return html`<div${attributes({ class: `alert ${tone}`, role, ...more })}>${content}</div>`
}

/** Returns a word about the state of something. */
export function badge (text: string, tone?: Tone): Html {
  return html`<span class="${classes('badge', tone)}">${text}</span>`
}

/** Returns a list of rows. */
export const list = (rows: readonly Html[], more: Attributes = {}): Html =>
  html`<ul${attributes({ class: 'list', ...more })}>${rows}</ul>`

/** Returns a row of a list: a title, what there is to know, and what can be done. */
export function listRow (
  { title, badges, hint, actions: buttons }:
  { title: HtmlValue, badges?: HtmlValue, hint?: HtmlValue, actions?: HtmlValue }
): Html {
  return html`<li><div class="row"><div class="main"><p class="title">${title}${badges}</p>${
    hint && html`<p class="hint">${hint}</p>`}</div>${buttons && html`<div class="actions">${buttons}</div>`}</div></li>`
}

/** Returns names with their values. */
export function facts (entries: readonly (readonly [name: string, value: HtmlValue])[]): Html {
  return html`<dl class="facts">${entries.map(([name, value]) => html`<dt>${name}</dt><dd>${value}</dd>`)}</dl>`
}

export interface Column<Row> {
  title: string
  cell: (row: Row) => HtmlValue
  /** Whether its values are numbers, which end where the column ends. */
  isNumber?: boolean
  /** Whether it names the row. */
  isHeader?: boolean
  /** The class of its cells. */
  kind?: string
  /** Whether only screen readers have its title, because its cells say what they are. */
  hidesTitle?: boolean
}

/** Returns a table. On phones each row is a block, whose cells say what they are. */
export function table<Row> (
  { caption, columns, rows, hidesCaption }: {
    caption: string
    columns: readonly Column<Row>[]
    rows: readonly Row[]
    /** Whether only screen readers have the caption, because a heading says the same. */
    hidesCaption?: boolean
  }
): Html {
  const cellOf = (row: Row) => ({ title, cell, isNumber, isHeader, kind, hidesTitle }: Column<Row>) => isHeader
    ? html`<th${attributes({ scope: 'row', class: kind })}>${cell(row)}</th>`
    : html`<td${attributes({
      class: classes(isNumber && 'number', kind) || undefined, 'data-label': hidesTitle ? undefined : title,
    })}><div>${cell(row)}</div></td>`
  return html`<div class="table"><table>
<caption${attributes({ class: hidesCaption && 'visually-hidden' })}>${caption}</caption>
<thead><tr>${columns.map(({ title, isNumber, kind, hidesTitle }) =>
  html`<th${attributes({ scope: 'col', class: classes(isNumber && 'number', kind) || undefined })}>${
    hidesTitle ? html`<span class="visually-hidden">${title}</span>` : title}</th>`)}</tr></thead>
<tbody>${rows.map((row) => html`<tr>${columns.map(cellOf(row))}</tr>`)}</tbody>
</table></div>`
}

/** Returns links to the parts of something, beside the content on wide screens if `side` is set. */
export function tabs (
  label: string, items: readonly { href: string, text: HtmlValue, isCurrent?: boolean, attributes?: Attributes }[],
  { side = false } = {}
): Html {
  return html`<nav class="${classes('tabs', side && 'side')}" aria-label="${label}"><ul>${items.map((item) =>
    html`<li><a${attributes({
      href: item.href, 'aria-current': item.isCurrent ? 'page' : undefined, ...item.attributes,
    })}>${item.text}</a></li>`)}</ul></nav>`
}

/** Returns what stands where there is nothing yet, and what to do about it. */
export function emptyState (
  { title, text, actions: buttons, attributes: more = {} }: {
    title: string
    text?: HtmlValue
    actions?: HtmlValue
    attributes?: Attributes
  }
): Html {
  return html`<div${attributes({ class: 'empty', ...more })}><p class="strong">${title}</p>${
    text && html`<p class="muted">${text}</p>`}${buttons && html`<div class="actions">${buttons}</div>`}</div>`
}

/**
 * Returns a dialog. ui.js opens it by a button with `data-opens="<id>"`, and closes it by one with `data-closes`;
 * Escape closes it, too. Without scripts it can be open from the beginning.
 */
export function dialog (
  content: HtmlValue, { id, title, open }: { id: string, title: string, open?: boolean }
): Html {
  return html`<dialog${attributes({ id, open, 'aria-labelledby': `${id}-title` })}>
<h2 id="${id}-title" tabindex="-1">${title}</h2>
${content}
</dialog>`
}

/** Returns the place for short words about what has been done, for `toast` of ui.js. */
export const toasts = (given: readonly string[] = []): Html =>
  html`<div class="toasts" role="status">${given.map((text) => html`<div class="toast">${text}</div>`)}</div>`

/** Returns the way through a list: to its first page and its next one, where there are such. */
export function pagination (
  { label, text, first, next }: {
    label: string
    /** Which part of the list the page has. */
    text?: string
    first?: { href: string, text: string } | undefined
    next?: { href: string, text: string } | undefined
  }
): Html {
  return html`<nav class="pagination" aria-label="${label}">${
    first ? buttonLink(first.href, first.text, { kind: 'plain', small: true }) : html`<span></span>`}${text && html`<span class="muted">${text}</span>`}${
    next && buttonLink(next.href, next.text, { kind: 'plain', small: true, attributes: { rel: 'next' } })}</nav>`
}

/** Returns a figure with its name, for overviews. */
export function stat (name: string, value: HtmlValue, hint?: HtmlValue): Html {
  return html`<div class="card stat"><span class="muted">${name}</span><span class="value">${value}</span>${
    hint && html`<span class="hint">${hint}</span>`}</div>`
}

/** Returns an instant as a date and time of the reader's language, in UTC. */
export const exactTime = (instant: Date, language: string): string =>
  `${new Intl.DateTimeFormat(language, { dateStyle: 'medium', timeStyle: 'short', timeZone: 'UTC' }).format(instant)}\u00a0UTC`

/** Returns an instant as a date and time of the reader's language; ui.js changes it to the reader's time zone. */
export function time (instant: Date | string, language: string): Html {
  const date = new Date(instant)
  return html`<time datetime="${date.toISOString()}">${exactTime(date, language)}</time>`
}
