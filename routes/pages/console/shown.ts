import type { FastifyInstance } from 'fastify'
import type { UserRow } from '../../../db/tables/index.ts'
import type { OrganizationOperations } from '../../../plugins/organizations/organizations.ts'
import type { UserRecords } from '../../../plugins/users/user-records.ts'
import { OrganizationNotFound } from '../../../schema/organizations/organizations.ts'
import { describeUserAgent } from '../../../schema/strings/user-agent.ts'
import type { Options } from '../../../schema/options/options.ts'
import { badge, button, buttonLink, pagination } from '../components.ts'
import { hasGuide } from '../guide.ts'
import { attributes, html, type Html, type HtmlValue } from '../html.ts'
import { addressOf, type Context } from './context.ts'
import type { ConsoleText, Words } from './words.ts'

/** Returns a text that somebody has entered. It has its own direction, and cannot change that of what surrounds it. */
export const showText = (text: string): Html => html`<bdi>${text}</bdi>`

/** Returns the first letters of a name, in a circle. */
export function showAvatar (name: string, { large = false } = {}): Html {
  const words = name.trim().split(/\s+/)
  const first = (word = ''): string => Array.from(word).find((letter) => /[\p{L}\p{N}]/u.test(letter)) ?? ''
  const letters = `${first(words[0])}${words.length > 1 ? first(words.at(-1)) : ''}`
  return html`<span class="${large ? 'avatar large' : 'avatar'}" aria-hidden="true">${letters.toUpperCase() || '?'}</span>`
}

/** Returns a link to a user, by the name or, if that is not known, the id; a dash without a user. */
export function linkToUser ({ path }: Pick<Context, 'path'>, id: string | null, names: ReadonlyMap<string, string>): HtmlValue {
  if (id === null) return '–'
  const name = names.get(id)
  return html`<a href="${path}/users/${id}">${name === undefined ? html`<code>${id.slice(0, 8)}…</code>` : showText(name)}</a>`
}

/** Reads the names of users, by their ids, in one statement. Those who are deleted are left out. */
export async function readNames (
  { caller }: Context, users: UserRecords, ids: readonly (string | null | undefined)[]
): Promise<ReadonlyMap<string, string>> {
  const known = [...new Set(ids.filter((id) => id != null))].filter((id) => caller.allows('users:read', { ownerId: id }))
  const rows = await Promise.all(known.map((id) => users.read(id, caller.client)))
  return new Map(rows.filter((row) => row !== undefined).map(({ id, name }) => [id, name]))
}

/** Returns the id of somebody who is known by an id or by an address; what was given, if nobody has that address. */
export async function findUserId ({ caller }: Context, users: Pick<FastifyInstance['usherUsers'], 'find'>, given: string): Promise<string> {
  const text = given.trim()
  return text.includes('@') ? (await users.find(caller, text))?.id ?? text : text.toLowerCase()
}

/** Returns a link to an organisation, by the name or, if that is not known, the id. */
export function linkToOrganization ({ path }: Pick<Context, 'path'>, id: string, names: ReadonlyMap<string, string>): Html {
  const name = names.get(id)
  return name === undefined
    ? html`<code>${id.slice(0, 8)}…</code>`
    : html`<a href="${path}/organizations/${id}">${showText(name)}</a>`
}

/**
 * Reads the names of organisations, by their ids, in one statement. Those that are deleted, or that the visitor may not
 * see, are left out.
 */
export async function readOrganizationNames (
  { caller }: Context, organizations: OrganizationOperations | undefined, ids: readonly (string | null)[]
): Promise<ReadonlyMap<string, string>> {
  if (!organizations) return new Map()
  const known = [...new Set(ids.filter((id) => id !== null))]
  const rows = await Promise.all(known.map((id) => organizations.get(caller, id).catch((error: unknown) => {
    if (!(error instanceof OrganizationNotFound)) throw error
  })))
  return new Map(rows.filter((row) => row !== undefined).map(({ id, name }) => [id, name]))
}

/** Returns what a role is called. One of the host has its name only. */
export const textOfRole = (t: Words['t'], role: string): string =>
  role === 'admin' ? t.roleAdmin : role === 'user' ? t.roleUser : role

/** Returns a choice of the host in words: `as-the-system` is “As the system”. */
export function inWords (value: string): string {
  if (!/^[a-z][a-z0-9]*([-_][a-z0-9]+)*$/.test(value)) return value
  const words = value.replaceAll(/[-_]/g, ' ')
  return `${words.slice(0, 1).toUpperCase()}${words.slice(1)}`
}

/** Returns what is notable about a user. Nothing is, of one who is as most are. */
export function showState ({ t }: Words, { role = 'user', kind, disabled, emailVerified }: Partial<UserRow>): Html {
  return html`${role !== 'user' && badge(textOfRole(t, role), 'info')}${kind === 'service' && badge(t.kindService)}${
    disabled && badge(t.stateDisabled, 'error')}${
    emailVerified === false && kind !== 'service' && html`<span class="note">${t.stateUnverified}</span>`}`
}

function rangeOf (
  words: Words, { place, count, total }: { place: number, count: number, total: string | undefined }
): string {
  const range = { first: words.number(place), last: words.number(place + count - 1) }
  return total === undefined ? words.format('pageRange', range) : words.format('pageRangeOf', { ...range, total })
}

const PLACE = /^[1-9]\d{0,8}$/

/**
 * Returns the way through a list, and which of its rows the page has. Nothing but the address of a page knows how many
 * are before it, because the next page begins after a row.
 * @param count how many rows the page has
 * @param total how many the list has, where that is known
 */
export function showPages (
  { path, query, words, words: { t } }: Context, section: string,
  { next, count, total }: { next: string | null, count: number, total?: string | undefined }
): Html | '' {
  const { after, from = '', done: _, ...rest } = query
  if (after === undefined && next === null) return ''
  const address = `${path}${section}`
  const first = after === undefined ? undefined : { href: addressOf(address, rest), text: t.firstPage }
  const place = after === undefined ? 1 : Number(PLACE.exec(from)?.[0] ?? 0)
  const following = place > 0 ? `${place + count}` : undefined
  return pagination({
    label: t.pagesLabel,
    ...place > 0 && count > 0 && { text: rangeOf(words, { place, count, total }) },
    first,
    next: next === null
      ? undefined
      : { href: addressOf(address, { ...rest, after: next, from: following }), text: t.nextPage },
  })
}

/** Returns a form of one button, which is sent to an address. */
export function buttonForm (
  action: string, text: string,
  { fields = {}, kind = 'plain', label }: {
    fields?: Readonly<Record<string, string>>
    kind?: 'primary' | 'plain' | 'danger' | 'link'
    /** What the button does, for whoever does not see what stands beside it. */
    label?: string | undefined
  } = {}
): Html {
  return html`<form class="inline" method="post" action="${action}">${hiddenFields(fields)}${
    button(text, { kind, small: true, ...label !== undefined && { attributes: { 'aria-label': label } } })}</form>`
}

/** Returns what may be done along with the deletion of an API key. */
export const revokeLinks = ({ t }: Words) => ({ name: 'revokeLinks', text: t.keyRevokeLinks })

/** Returns an id, an address or a key, with a button that copies it where a script can (console.js). */
export const showCopied = ({ t }: Words, text: string): Html => html`<span class="copied"><code>${text}</code>${button(t.copy, {
  kind: 'plain', type: 'button', small: true, attributes: { hidden: true, 'data-copies': text, 'data-done': t.copyDone },
})}</span>`

/** Returns fields that nobody sees. */
export const hiddenFields = (fields: Readonly<Record<string, string>>): Html =>
  html`${Object.entries(fields).map(([name, value]) => html`<input type="hidden" name="${name}" value="${value}">`)}`

/** Returns what a `User-Agent` says, in words if it is that of a browser, shortened otherwise. */
export function showAgent (words: Words, userAgent: string): string {
  if (userAgent === '') return words.t.unknownDevice
  const { browser, system } = describeUserAgent(userAgent)
  if (browser && system && userAgent.startsWith('Mozilla/')) return words.format('deviceOn', { browser, system })
  return userAgent.length > 60 ? `${userAgent.slice(0, 60)}…` : userAgent
}

const methods: Readonly<Record<string, ConsoleText>> = {
  pwd: 'methodPassword', otp: 'methodCode', pop: 'methodPasskey', email: 'methodMail', fed: 'methodProvider', mfa: 'methodTwo',
}
// That somebody was there is what a passkey means.
const UNSAID = 'user'

/** Returns how a user was authenticated, in words. A host may have methods of its own. */
export const showMethods = (words: Words, amr: readonly string[]): string => words.list(amr
  .filter((method) => method !== UNSAID)
  .map((method) => Object.hasOwn(methods, method) ? words.t[methods[method]!] : method))

/** Returns the form with which a list is searched. A script sends it while its reader types (console.js). */
export function searchForm (
  { path, words: { t } }: Context, address: string,
  { label, search, filters, isFiltered = false, keeps = {} }: {
    /** What is searched, for screen readers. */
    label: string
    search?: { label: string, value: string, placeholder: string, minlength?: number }
    /** Further fields, behind a button unless there is nothing to search. The button stays where it is. */
    filters?: HtmlValue
    isFiltered?: boolean
    /** Parameters that stay as they are. */
    keeps?: Readonly<Record<string, string | undefined>>
  }
): Html {
  const kept = Object.fromEntries(Object.entries(keeps).filter((entry): entry is [string, string] => Boolean(entry[1])))
  return html`<form class="filters" method="get" action="${path}${address}" role="search" aria-label="${label}"${
    search && html` data-live="results"`}>${hiddenFields(kept)}
${search && html`<div class="search"><label class="visually-hidden" for="q">${search.label}</label>
<input${attributes({
  id: 'q',
  name: 'q',
  type: 'search',
  value: search.value,
  placeholder: `${search.label}: ${search.placeholder}`,
  minlength: search.minlength,
  maxlength: 100,
  autocomplete: 'off',
  spellcheck: 'false',
})}>${button(t.search, { kind: 'plain' })}</div>`}
${filters && html`${search && html`<details class="more"${isFiltered && html` open`}><summary>${t.filters}</summary></details>`}
<div class="fields">${filters}
<div class="actions">${button(t.apply, { kind: 'plain' })}<a href="${path}${address}">${t.searchReset}</a></div></div>`}
</form>`
}

/** Returns a function that leads to a document of the guide, where there is one. */
export const createGuideLink = ({ publicPath, without }: Pick<Options, 'publicPath' | 'without'>) =>
  (document: string, text: string): Html | false => hasGuide && !without.includes('docs') &&
    buttonLink(`${publicPath}/docs/guide/${document}`, text, { kind: 'plain', small: true })

/** Returns a choice between few things that need a sentence each. */
export function cards (
  { name, label, value, options }: {
    name: string
    label: string
    value: string
    options: readonly { value: string, text: string, hint: string }[]
  }
): Html {
  return html`<fieldset class="field cards"><legend>${label}</legend><div>${options.map((option) => html`<label><input${attributes({
    type: 'radio', name, value: option.value, checked: option.value === value, autocomplete: 'off',
  })}><span><span class="strong">${option.text}</span><span class="muted">${option.hint}</span></span></label>`)}</div></fieldset>`
}

/** Returns options of a choice. */
export const choice = (...options: [value: string, text: string][]) => options.map(([value, text]) => ({ value, text }))
