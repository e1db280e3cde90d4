import type { FastifyInstance } from 'fastify'
import type { UserRow } from '../../../db/tables/index.ts'
import type { OrganizationOperations } from '../../../plugins/organizations/organizations.ts'
import type { UserRecords } from '../../../plugins/users/user-records.ts'
import { InvalidInput } from '../../../schema/http/errors.ts'
import { OrganizationNotFound } from '../../../schema/organizations/organizations.ts'
import { describeUserAgent } from '../../../schema/strings/user-agent.ts'
import { badge, button, pagination } from '../components.ts'
import { attributes, html, type Html, type HtmlValue } from '../html.ts'
import { addressOf, type Context, type Form } from './context.ts'
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

/** Throws `InvalidInput` unless the box of a form was checked that destroys something. */
export function requireConfirmed ({ words: { t } }: Context, { confirmed }: Form): void {
  if (confirmed !== 'yes') throw new InvalidInput(t.checkFirst)
}

/** Returns what a role is called. One of the host has its name only. */
export const textOfRole = (t: Words['t'], role: string): string =>
  role === 'admin' ? t.roleAdmin : role === 'user' ? t.roleUser : role

/** Returns what is notable about a user. Nothing is, of one who is as most are. */
export function showState ({ t }: Words, { role = 'user', kind, disabled, emailVerified }: Partial<UserRow>): Html {
  return html`${role !== 'user' && badge(textOfRole(t, role), 'info')}${kind === 'service' && badge(t.kindService)}${
    disabled && badge(t.stateDisabled, 'error')}${
    emailVerified === false && kind !== 'service' && html`<span class="note">${t.stateUnverified}</span>`}`
}

/** Returns the way through a list. */
export function showPages ({ path, query, words: { t } }: Context, section: string, next: string | null): Html | '' {
  const { after, done: _, ...rest } = query
  if (after === undefined && next === null) return ''
  const to = (cursor?: string) => addressOf(`${path}${section}`, { ...rest, after: cursor })
  return pagination({
    label: t.pagesLabel,
    first: after === undefined ? undefined : { href: to(), text: t.firstPage },
    next: next === null ? undefined : { href: to(next), text: t.nextPage },
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

/** Returns a form whose button destroys something, and works once a box is checked. */
export function dangerForm (
  action: string,
  { id, text, confirmation, explanation, fields = {}, option }: {
    id: string
    text: string
    confirmation: string
    explanation?: HtmlValue
    fields?: Readonly<Record<string, string>>
    /** What may be done as well, if its box is checked. */
    option?: { name: string, text: string } | undefined
  }
): Html {
  return html`<details class="confirm"><summary>${text} …</summary><form method="post" action="${action}">${
    explanation && html`<p class="hint">${explanation}</p>`}${hiddenFields(fields)}
<label class="check"><input type="checkbox"${attributes({ name: 'confirmed', value: 'yes', required: true, id })}> ${confirmation}</label>${option && html`
<label class="check"><input type="checkbox"${attributes({ name: option.name, value: 'yes' })}> ${option.text}</label>`}
${button(text, { kind: 'danger', small: true })}</form></details>`
}

/** Returns what may be done along with the deletion of an API key. */
export const revokeLinks = ({ t }: Words) => ({ name: 'revokeLinks', text: t.keyRevokeLinks })

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

/** Returns options of a choice. */
export const choice = (...options: [value: string, text: string][]) => options.map(([value, text]) => ({ value, text }))
