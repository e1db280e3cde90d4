import type { UserRow } from '../../../db/tables/index.ts'
import type { Options } from '../../../schema/options/options.ts'
import type { Action, ReadAction } from '../../../schema/options/policy.ts'
import { alert, button, page, pageTitle } from '../components.ts'
import { FONT_POLICY } from '../font.ts'
import { attributes, html, trusted, type Html, type HtmlValue } from '../html.ts'
import type { Section, View } from './context.ts'
import { icon } from './icons.ts'
import { showAvatar, showText } from './shown.ts'
import type { ConsoleText, Words } from './words.ts'

type Page = readonly [section: Section, address: string, name: ConsoleText]

/** The parts of the console, in the order of its navigation. */
const groups: readonly { title?: ConsoleText, pages: readonly Page[] }[] = [
  { pages: [['overview', '', 'navOverview']] },
  {
    title: 'groupContent',
    pages: [
      ['users', '/users', 'ofUsers'], ['organizations', '/organizations', 'ofOrganizations'],
      ['posts', '/posts', 'ofPosts'], ['uploads', '/uploads', 'filesTitle'],
    ],
  },
  { title: 'groupActivity', pages: [['log', '/log', 'ofAudit'], ['deliveries', '/deliveries', 'navDeliveries']] },
  {
    title: 'groupService',
    pages: [
      ['keys', '/keys', 'keysTitle'], ['providers', '/providers', 'navProviders'], ['settings', '/settings', 'navSettings'],
    ],
  },
]

/** What a page says once after a change, by the parameter `done`. */
const notices: Readonly<Record<string, ConsoleText>> = {
  saved: 'doneSaved',
  created: 'doneCreated',
  invited: 'doneInvited',
  'not-invited': 'doneNotInvited',
  deleted: 'doneDeleted',
  disabled: 'doneDisabled',
  enabled: 'doneEnabled',
  'sessions-ended': 'doneSessionsEnded',
  'session-ended': 'sessionEnded',
  'passkey-removed': 'passkeyRemoved',
  'identity-removed': 'identityRemoved',
  'factor-removed': 'doneFactorRemoved',
  'verification-sent': 'doneVerification',
  'reset-sent': 'doneReset',
  'key-deleted': 'keyDeleted',
  'post-deleted': 'donePostDeleted',
  'file-deleted': 'fileDeleted',
  'organization-deleted': 'doneOrganizationDeleted',
  'member-added': 'doneMemberAdded',
  'member-removed': 'doneMemberRemoved',
  'invitation-withdrawn': 'doneWithdrawn',
  retried: 'doneRetried',
  discarded: 'doneDiscarded',
  out: 'doneOut',
}

const noticeOf = ({ t }: Words, done: string | undefined): Html | undefined =>
  done !== undefined && Object.hasOwn(notices, done) ? alert(t[notices[done]!], 'success') : undefined

/** Who is in the console, and until when. */
export interface Visitor {
  user: Pick<UserRow, 'id' | 'name' | 'email'>
  expiresAt: Date
  /** Returns whether the visitor may see a part of the console. */
  mayOpen (section: Section): boolean
}

/** What the parts of the console show first, which may need an action of the policy. */
export const actionOfSection = {
  overview: 'service:read',
  users: 'users:list',
  organizations: 'organizations:read',
  posts: 'posts:read',
  uploads: 'uploads:list',
  log: 'audit:read',
  deliveries: 'deliveries:list',
  keys: 'api-keys:list',
  providers: 'service:read',
  settings: 'service:read',
} as const satisfies Record<Section, Action | ReadAction>

/** Returns functions that render pages of the console around their content. */
export function createLayout (
  { pages: { productName, enabled }, without, organizations, publicPath }:
  Pick<Options, 'pages' | 'without' | 'organizations' | 'publicPath'>,
  { path, assets }: { path: string, assets: string }
) {
  const absent: readonly string[] = [...without, ...organizations ? [] : ['organizations']]
  const present = groups.map(({ title, pages }) => ({
    title, pages: pages.filter(([name]) => !absent.includes(name)),
  })).filter(({ pages }) => pages.length > 0)
  const hasAccount = enabled && !without.includes('pages')
  const files = {
    icon: `${assets}icon.svg`, stylesheets: [`${assets}design.css`, `${assets}console.css`], scripts: [`${assets}ui.js`, `${assets}console.js`],
  }
  const shellOf = (words: Words) => ({
    language: words.language,
    direction: words.direction,
    productName: words.format('consoleName', { product: productName }),
    ...files,
    skip: words.t.skipToContent,
  })

  // On a phone, the navigation is opened by a button, without a script.
  function navigation (words: Words, current: Section | undefined, { user, expiresAt, mayOpen }: Visitor): Html {
    const { t } = words
    const open = present.map(({ title, pages }) => ({ title, pages: pages.filter(([section]) => mayOpen(section)) }))
    const link = ([section, address, name]: Page) => html`<li><a${attributes({
      href: `${path}${address}`, 'aria-current': section === current && 'page',
    })}>${icon(section)}${t[name]}</a></li>\n`
    return html`<nav class="side" id="side" aria-label="${t.navLabel}" popover>
<div>${open.filter(({ pages }) => pages.length > 0).map(({ title, pages }) => html`${
  title && html`<p class="group">${t[title]}</p>`}<ul>${pages.map(link)}</ul>\n`)}</div>
<div class="visitor">${showAvatar(user.name)}<p><span class="strong">${showText(user.name)}</span><span class="muted">${showText(user.email)}</span></p>
<p class="muted until">${words.phrase('sessionUntil', { time: words.clock(expiresAt) })}</p>
<div class="actions">${hasAccount && html`<a href="${publicPath}/account">${t.toAccount}</a>`}<form class="inline" method="post" action="${path}/logout">${
  button(t.logOut, { kind: 'plain', small: true })}</form></div></div>
</nav>`
  }

  function frame (
    words: Words, title: string, current: Section | undefined, visitor: Visitor | undefined, content: Html
  ): Html {
    return page({
      ...shellOf(words),
      title,
      home: path,
      width: 'wide',
      header: visitor && html`<button type="button" class="plain small menu" popovertarget="side">${icon('menu')}${words.t.navMenu}</button>`,
      side: visitor && navigation(words, current, visitor),
      content,
    })
  }

  return {
    /** Returns the address of the first part that a visitor may see, or undefined if there is none. */
    firstPageOf ({ mayOpen }: Pick<Visitor, 'mayOpen'>): string | undefined {
      const [, address] = present.flatMap(({ pages }) => pages).find(([section]) => mayOpen(section)) ?? []
      return address
    },

    headers: {
      'content-security-policy': [
        "default-src 'none'", "script-src 'self'", "style-src 'self'", FONT_POLICY, "img-src 'self'",
        "connect-src 'self'", "base-uri 'none'", "form-action 'self'", "frame-ancestors 'none'", "require-trusted-types-for 'script'",
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
      words: Words, { section, title, crumbs = [], image, hint, actions, content }: View, visitor: Visitor,
      { done, failure }: { done?: string | undefined, failure?: HtmlValue } = {}
    ): Html {
      const heading = pageTitle(title, { crumbs, crumbsLabel: words.t.crumbsLabel, image, hint, actions })
      return frame(words, title, section, visitor, html`${heading}\n${noticeOf(words, done)}${failure}${content}`)
    },

    /** Returns a page that says what went wrong. */
    message: (words: Words, title: string, text: HtmlValue, visitor: Visitor | undefined): Html =>
      frame(words, title, undefined, visitor, html`<h1 tabindex="-1">${title}</h1><p>${text}</p><p><a href="${path}">${words.t.toConsole}</a></p>`),

    /** Returns a page for somebody who is not in the console. */
    visitor: (words: Words, title: string, content: Html, done?: string): Html =>
      page({ ...shellOf(words), title, width: 'narrow', content: html`${noticeOf(words, done)}${content}` }),
  }
}

/** Returns links to other views of the same thing, as pages of their own. */
export const pills = (
  label: string, items: readonly { href: string, text: HtmlValue, isCurrent: boolean }[]
): Html => html`<nav class="pills" aria-label="${label}"><ul>${items.map(({ href, text, isCurrent }) =>
  html`<li><a${attributes({ href, 'aria-current': isCurrent && 'page' })}>${text}</a></li>`)}</ul></nav>`

export const separator = trusted(' <span aria-hidden="true">·</span> ')
