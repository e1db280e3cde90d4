import type { PageText } from '../../../../../schema/options/page-texts.ts'
import { attributes, html, type Html } from '../../../html.ts'
import type { Template, View } from '../view.ts'
import { icon, type Icon } from '../../icons.ts'
import { confirmationDialog, stepUpDialog } from './dialogs.ts'

/** All pages of an account: their paths below the prefix, and their titles. */
const accountPages = [
  ['/account', 'profileTitle'],
  ['/account/security', 'securityTitle'],
  ['/account/sessions', 'sessionsTitle'],
  ['/account/keys', 'keysTitle'],
  ['/account/organizations', 'organizationsTitle'],
  ['/account/files', 'filesTitle'],
  ['/account/data', 'dataTitle'],
] as const satisfies readonly (readonly [path: string, title: PageText])[]

export type AccountPath = typeof accountPages[number][0]

/** Returns the pages of an account that a mount has. */
export const listAccountPages = (
  { hasFiles, hasOrganizations }: { hasFiles: boolean, hasOrganizations: boolean }
) => accountPages.filter(([path]) =>
  (hasFiles || path !== '/account/files') && (hasOrganizations || path !== '/account/organizations'))

/**
 * Returns a page of an account: who is logged in, the way to the other pages, and its own content, which a script fills
 * and shows. Nothing here is about a user before.
 */
export const accountPage = (path: AccountPath, content: Template): Template => (view) => {
  const { t, v } = view
  const pages = listAccountPages({ hasFiles: v.hasFiles === true, hasOrganizations: v.organizationRoles !== undefined })
  return html`<div class="split">
<div class="beside">
<div class="who" id="who">
<span class="avatar" id="avatar" aria-hidden="true"></span>
<p class="main"><bdi class="strong" id="who-name"></bdi><bdi class="muted" id="who-email"></bdi></p>
</div>
<div class="actions">${v.hasConsole && html`<a class="button plain small" id="to-console" href="${v.root}console" hidden>${t.accountConsole}</a>`}
<button type="button" class="plain small" id="log-out" hidden>${t.logOut}</button></div>
<nav class="tabs side" aria-label="${t.accountTitle}"><ul>
${pages.map(([href, title]) => html`<li><a${attributes({
  href: `${v.root}${href.slice(1)}`, 'aria-current': href === path && 'page',
})}>${t[title]}</a></li>\n`)}</ul></nav>
</div>
<div>
<h1 id="title" tabindex="-1">${v.title}</h1>
<noscript><p class="alert error">${t.needsJavaScript}</p></noscript>
<p class="alert error late" id="scripts-missing">${t.scriptsMissing}</p>
<p id="loading" class="muted" hidden><span class="spinner"></span> ${t.loading}</p>
<p role="alert" class="alert error" id="failure" tabindex="-1"></p>
<div class="actions" id="retry" hidden><a class="button" href="${v.root}${path.slice(1)}">${t.tryAgain}</a></div>
<div id="account" hidden>
${content(view)}
</div>
</div>
</div>
${stepUpDialog(view)}
${confirmationDialog(view)}
`
}

/** Returns a part of a page with a heading of its own. */
export const part = (
  id: string, title: string, content: Html, { hint, danger, attributes: more = {} }:
  { hint?: string, danger?: boolean, attributes?: Parameters<typeof attributes>[0] } = {}
): Html => html`<section${attributes({
  class: danger ? 'card danger' : 'card', 'aria-labelledby': `${id}-title`, id: `${id}-section`, ...more,
})}>
<h2 id="${id}-title" tabindex="-1">${title}</h2>
${hint && html`<p class="hint">${hint}</p>`}
${content}
</section>`

/**
 * Returns a row for a part of a page: what it is, its state, which a script adds, and what opens it. Its content is
 * below the row while it is open.
 */
export const setting = (
  id: string, title: string, { icon: name, hint, action, attributes: more = {} }:
  { icon: Icon, hint?: string, action: string, attributes?: Parameters<typeof attributes>[0] }, content: Html
): Html => html`<details${attributes({ class: 'setting', id: `${id}-section`, ...more })}>
<summary class="row"><span class="picture">${icon(name)}</span>
<div class="main"><h2 class="title" id="${id}-title" tabindex="-1">${title}</h2>${hint && html`<p class="hint">${hint}</p>`}</div>
<span class="badge" id="${id}-state"></span><span class="button plain small">${action}</span></summary>
<div class="body">
${content}
</div>
</details>`

/** Returns a row that leads to another page. */
export const settingLink = (
  id: string, title: string,
  { icon: name, href, hint, action }: { icon: Icon, href: string, hint: string, action: string }
): Html => html`<div class="setting" id="${id}-section" data-rest><div class="row"><span class="picture">${icon(name)}</span>
<div class="main"><h2 class="title" id="${id}-title">${title}</h2><p class="hint">${hint}</p></div>
<span class="badge" id="${id}-state"></span><a class="button plain small" href="${href}" aria-describedby="${id}-title">${action}</a></div></div>`

/** Returns the actions of a row, which open beside it. A script gives the button the name of the row. */
export const menu = ({ t }: View, content: Html): Html => html`<details class="menu">
<summary data-menu aria-label="${t.rowActions}">${icon('more')}</summary>
<div class="items">${content}</div></details>`

/** Returns the place for what cannot be done, and for what has been done. */
export const outcomes = (id: string): Html => html`<p role="alert" class="alert error" id="${id}-alert"></p>
<p role="status" class="status" id="${id}-status" tabindex="-1"></p>`

/** The pages are as wide as their content needs, and say what they are for below the title. */
export const lead = (text: View['t'][PageText]): Html => html`<p class="lead">${text}</p>`
