import type { Options } from '../../../schema/options/options.ts'
import { alert, button, page, pageTitle, tabs } from '../components.ts'
import { html, type Html, type HtmlValue } from '../html.ts'
import { sections, type Section, type View } from './context.ts'
import { showTime } from './shown.ts'

const names: Readonly<Record<Section, string>> = {
  overview: 'Overview',
  users: 'Users',
  posts: 'Posts',
  uploads: 'Files',
  log: 'Account log',
  deliveries: 'Failed deliveries',
  keys: 'API keys',
  providers: 'Providers',
  settings: 'Settings',
}

/** What a page says once after a change, by the parameter `done`. */
const notices: Readonly<Record<string, string>> = {
  saved: 'Saved.',
  created: 'The user was created.',
  invited: 'The invitation is on its way.',
  'not-invited': 'The user exists. The invitation could not be sent.',
  deleted: 'The user was deleted.',
  disabled: 'The user is disabled, and every session has ended.',
  enabled: 'The user is enabled.',
  'sessions-ended': 'Every session of the user has ended.',
  'session-ended': 'The session has ended.',
  'passkey-removed': 'The passkey was removed.',
  'identity-removed': 'The identity was unlinked.',
  'factor-removed': 'The authenticator app was removed.',
  'verification-sent': 'A link to verify the address is on its way.',
  'reset-sent': 'If the address may get it, a link to set a password is on its way.',
  'key-deleted': 'The key was deleted.',
  'post-deleted': 'The post was deleted.',
  'file-deleted': 'The file was deleted.',
  retried: 'It is delivered again.',
  discarded: 'It was discarded.',
  out: 'You are logged out of the console.',
}

const noticeOf = (done: string | undefined): Html | undefined =>
  done !== undefined && Object.hasOwn(notices, done) ? alert(notices[done]!, 'success') : undefined

interface Admitted { expiresAt: Date }

/** Returns functions that render pages of the console around their content. */
export function createLayout (
  { pages: { productName }, without }: Pick<Options, 'pages' | 'without'>, { path, assets }: { path: string, assets: string }
) {
  const present = sections.filter(([name]) => !(without as readonly string[]).includes(name))
  const files = {
    icon: `${assets}icon.svg`, stylesheets: [`${assets}design.css`, `${assets}console.css`], scripts: [`${assets}ui.js`, `${assets}console.js`],
  }
  const shell = { language: 'en', direction: 'ltr', productName: `${productName} console`, ...files, skip: 'Skip to the content' } as const

  function frame (title: string, current: Section | undefined, admitted: Admitted | undefined, content: Html): Html {
    return page({
      ...shell,
      title,
      home: path,
      width: 'wide',
      header: admitted && html`<span class="end"><span class="muted session">until ${showTime(admitted.expiresAt)}</span>
<form class="inline" method="post" action="${path}/logout">${button('Log out', { kind: 'plain', small: true })}</form></span>`,
      content: html`${admitted && tabs('Console', present.map(([name, address]) => ({
        href: `${path}${address}`, text: names[name], isCurrent: name === current,
      })))}${content}`,
    })
  }

  return {
    headers: {
      'content-security-policy': [
        "default-src 'none'", "script-src 'self'", "style-src 'self'", "img-src 'self'", "connect-src 'self'",
        "base-uri 'none'", "form-action 'self'", "frame-ancestors 'none'", "require-trusted-types-for 'script'",
        "trusted-types 'none'",
      ].join('; '),
      'referrer-policy': 'same-origin',
      'cache-control': 'no-store',
      'cross-origin-opener-policy': 'same-origin',
      'cross-origin-resource-policy': 'same-origin',
      'x-content-type-options': 'nosniff',
    },

    /** Returns a page of the console. */
    page (
      { section, title, crumbs = [], actions, content }: View, admitted: Admitted, done?: string, failure?: HtmlValue
    ): Html {
      return frame(title, section, admitted, html`${pageTitle(title, { crumbs, crumbsLabel: 'Where you are', actions })}
${noticeOf(done)}${failure}${content}`)
    },

    /** Returns a page that says what went wrong. */
    message: (title: string, text: HtmlValue, admitted: Admitted | undefined): Html => frame(title, undefined, admitted, html`
<h1 tabindex="-1">${title}</h1><p>${text}</p><p><a href="${path}">To the console</a></p>`),

    /** Returns a page for somebody who is not in the console. */
    visitor: (title: string, content: Html, done?: string): Html =>
      page({ ...shell, title, width: 'narrow', content: html`${noticeOf(done)}${content}` }),
  }
}
