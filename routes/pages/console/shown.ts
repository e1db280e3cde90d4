import type { UserRow } from '../../../db/tables/index.ts'
import type { UserRecords } from '../../../plugins/users/user-records.ts'
import { describeUserAgent } from '../../../schema/strings/user-agent.ts'
import { badge, button, pagination, time } from '../components.ts'
import { attributes, html, type Html, type HtmlValue } from '../html.ts'
import { addressOf, type Context } from './context.ts'

const LANGUAGE = 'en'
const numbers = new Intl.NumberFormat(LANGUAGE)
const UNITS = ['bytes', 'KiB', 'MiB', 'GiB', 'TiB', 'PiB']

/** Returns an instant, or a dash. */
export const showTime = (instant: Date | null): Html => instant === null ? html`–` : time(instant, LANGUAGE)

/** Returns a number with separators. */
export const showNumber = (value: number): string => numbers.format(value)

/** Returns a size in a unit that people read, such as 1.4 MiB. */
export function showBytes (bytes: number): string {
  const exponent = Math.min(Math.floor(Math.log2(Math.max(bytes, 1)) / 10), UNITS.length - 1)
  const value = bytes / 1024 ** exponent
  return `${value.toLocaleString(LANGUAGE, { maximumFractionDigits: value < 10 && exponent > 0 ? 1 : 0 })} ${UNITS[exponent]}`
}

/** Returns seconds in words, such as 3 hours. */
export function showDuration (seconds: number): string {
  const [count, unit] = seconds < 5400
    ? [Math.round(seconds / 60), 'minute']
    : seconds < 129_600 ? [Math.round(seconds / 3600), 'hour'] : [Math.round(seconds / 86_400), 'day']
  return `${showNumber(count)} ${unit}${count === 1 ? '' : 's'}`
}

/** Returns a text that somebody has entered. It has its own direction, and cannot change that of what surrounds it. */
export const showText = (text: string): Html => html`<bdi>${text}</bdi>`

/** Returns a link to a user, by the name or, if that is not known, the id; a dash without a user. */
export function linkToUser ({ path }: Pick<Context, 'path'>, id: string | null, names: ReadonlyMap<string, string>): HtmlValue {
  if (id === null) return '–'
  const name = names.get(id)
  return html`<a href="${path}/users/${id}">${name === undefined ? html`<code>${id}</code>` : showText(name)}</a>`
}

/** Reads the names of users, by their ids. Those who are deleted are left out. */
export async function readNames (
  { caller, actor }: Context, users: UserRecords, ids: readonly (string | null | undefined)[]
): Promise<ReadonlyMap<string, string>> {
  const known = [...new Set(ids.filter((id) => id != null))].filter((id) => caller.allows('users:read', { ownerId: id }))
  const rows = await Promise.all([...known, actor.id].map((id) => users.read(id, caller.client)))
  return new Map(rows.filter((row) => row !== undefined).map(({ id, name }) => [id, name]))
}

/** Returns what is notable about a user. */
export function showState ({ role, kind, disabled, emailVerified }: Partial<UserRow>): Html {
  return html`${role === 'admin' && badge('admin', 'info')} ${kind === 'service' && badge('service')} ${
    disabled && badge('disabled', 'error')} ${emailVerified === false && kind !== 'service' && badge('address not verified', 'warning')}`
}

/** Returns the way through a list. */
export function showPages ({ path, query }: Context, section: string, next: string | null): Html | '' {
  const { after, done: _, ...rest } = query
  if (after === undefined && next === null) return ''
  const to = (cursor?: string) => addressOf(`${path}${section}`, { ...rest, after: cursor })
  return pagination({
    label: 'Pages',
    first: after === undefined ? undefined : { href: to(), text: 'First page' },
    next: next === null ? undefined : { href: to(next), text: 'Next page' },
  })
}

/** Returns a form of one button, which is sent to an address. */
export function buttonForm (
  action: string, text: string,
  { fields = {}, kind = 'plain', label }: {
    fields?: Readonly<Record<string, string>>
    kind?: 'primary' | 'plain' | 'danger'
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

/** What may be done along with the deletion of an API key. */
export const REVOKE_LINKS = {
  name: 'revokeLinks', text: 'Also revoke the links to files that were created with it',
} as const

/** Returns fields that nobody sees. */
export const hiddenFields = (fields: Readonly<Record<string, string>>): Html =>
  html`${Object.entries(fields).map(([name, value]) => html`<input type="hidden" name="${name}" value="${value}">`)}`

/** Returns what a `User-Agent` says, in words if it is that of a browser, shortened otherwise. */
export function showAgent (userAgent: string): string {
  if (userAgent === '') return 'unknown'
  const { browser, system } = describeUserAgent(userAgent)
  if (browser && system && userAgent.startsWith('Mozilla/')) return `${browser} on ${system}`
  return userAgent.length > 60 ? `${userAgent.slice(0, 60)}…` : userAgent
}
