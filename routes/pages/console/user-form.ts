import type { UserRow } from '../../../db/tables/index.ts'
import { InvalidInput } from '../../../schema/http/errors.ts'
import { namesOfRoles } from '../../../schema/options/roles.ts'
import { failureTexts } from '../../../schema/options/page-texts.ts'
import { inputText } from '../../../schema/translations/describe-input.ts'
import { formMembers, hasLines, members, type MemberForm } from '../../../schema/users/members.ts'
import type { UserExtension } from '../../../schema/users/extend-user.ts'
import { labelOf as labelOfField, type Field as HostField } from '../../../schema/fields/fields.ts'
import { field, table, type Field } from '../components.ts'
import { attributes, html, type Html } from '../html.ts'
import type { Form, Outcome } from './context.ts'
import { inWords, textOfRole } from './shown.ts'
import type { ConsoleText, Words } from './words.ts'

/** A member of a user, or of an organisation, that a form has. */
export interface Member extends Omit<MemberForm, 'type'> {
  readonly name: string
  readonly type: HostField['type'] | 'email' | 'role' | 'date' | 'date-time'
  readonly hint?: string
  readonly hasLines?: boolean
}

// A shorter text has no line breaks, as far as its value does not show the opposite.
const LONG = 100

const isLong = (input: HostField['input']): boolean =>
  hasLines(input) && !input['enum'] && !input['format'] && Number(input['maxLength'] ?? Infinity) > LONG

const own = formMembers.map((name): Member =>
  ({ name, type: 'string', hasLines: isLong(members[name].input), ...members[name].form }))

/** Returns the members of a user that an admin edits: Usher's, and the fields of the host. */
export function membersOf ({ userFields, roles }: UserExtension): readonly Member[] {
  const ofUsher = own.map((member) => member.type === 'role' ? { ...member, options: namesOfRoles(roles).toReversed() } : member)
  return [...ofUsher, ...userFields.map(toMember)]
}

/** Returns a field of the host as forms have it. */
export const toMember = ({ name, type, input, title, description }: HostField): Member => ({
  name,
  label: labelOfField({ name, title }),
  type: input['format'] === 'date' || input['format'] === 'date-time' ? input['format'] : type,
  hasLines: isLong(input),
  ...Array.isArray(input['enum']) && { options: input['enum'].filter((value) => value !== null).map(String) },
  ...description !== undefined && { hint: description },
})

/** Returns the values of a record as the form has them. */
export function valuesOf (members: readonly Member[], record: object): Record<string, string> {
  return Object.fromEntries(members.map(({ name, type }) => {
    const value: unknown = Reflect.get(record, name)
    if (value === null || value === undefined) return [name, '']
    if (type === 'date-time') return [name, inputOfInstant(String(value))]
    return [name, type === 'json' ? JSON.stringify(value, null, 2) : String(value)]
  }))
}

// A browser has a field for times without a zone, which are those of UTC here. It leaves out seconds that are zero.
const isInstant = (text: string): boolean => /^\d{4}-\d\d-\d\dT/.test(text) && !Number.isNaN(Date.parse(text))
const inputOfInstant = (text: string): string =>
  isInstant(text) ? new Date(text).toISOString().slice(0, 19).replace(/:00$/, '') : text
const instantOfInput = (text: string): string => isInstant(`${text}Z`) ? new Date(`${text}Z`).toISOString() : text

// Browsers send line breaks as CRLF.
const normalize = (text: string): string => text.replaceAll('\r\n', '\n')

/** The prefix of the fields with what the form had when it was sent to the browser. */
export const FORMER = 'was.'

/**
 * Returns the members that somebody has changed in the form, as the API takes them. Throws `InvalidInput` for JSON that
 * is none.
 * @param former what the form had before; without it, all that is not empty
 */
export function changesOf (
  words: Words, members: readonly Member[], typed: Form, former: Form = {}
): Record<string, unknown> {
  const changes: Record<string, unknown> = {}
  for (const member of members) {
    const { name } = member
    const given = member.type === 'boolean' ? readSwitch(typed[name], former[name]) : typed[name]
    if (given === undefined || normalize(given) === normalize(former[name] ?? '')) continue
    changes[name] = readValue(words, member, normalize(given))
  }
  return changes
}

/** Returns what the form had when it was sent to the browser. */
export const formerOf = (members: readonly Member[], typed: Form): Form =>
  Object.fromEntries(members.map(({ name }) => [name, typed[`${FORMER}${name}`]]))

// A box that is not checked is not sent. One that was not checked before either stays without a value.
const readSwitch = (given: string | undefined, former: string | undefined): string | undefined =>
  given ?? (former === 'true' ? 'false' : former)

function readValue (words: Words, { name, type, required }: Member, text: string): unknown {
  if (required || type === 'role') return text
  if (text === '') return null
  if (type === 'boolean') return text === 'true'
  // What is no number is rejected by the schema, with the sentence of the API.
  if (type === 'integer' || type === 'number') return Number.isFinite(Number(text)) ? Number(text) : text
  if (type === 'date-time') return instantOfInput(text)
  if (type !== 'json') return text
  try {
    return JSON.parse(text) as unknown
  } catch {
    throw new InvalidInput(words.format('wrongJson', { name }))
  }
}

/** Returns the fields of the form, with what is wrong with each. */
export function showFields (
  words: Words, members: readonly Member[], values: Form, error?: Outcome['error']
): Html {
  const sentences = sentencesOf(error)
  return html`${members.map((member) => {
    const { name, type, options, hint, required } = member
    const [label, error] = [labelOf(words, member), errorOf(words, name, sentences)]
    if (type === 'boolean') return toggle({ name, label, hint, error, isOn: values[name] === 'true' })
    return field({
      name,
      label,
      type: inputTypeOf(member, values[name] ?? ''),
      value: values[name],
      ...type === 'date-time' ? { hint: html`${hint} ${words.t.inUtc}` } : hint !== undefined && { hint },
      error,
      required,
      ...options && {
        options: [
          ...type === 'role' ? [] : [{ value: '', text: '–' }],
          ...options.map((value) => ({ value, text: type === 'role' ? textOfRole(words.t, value) : inWords(value) })),
        ],
      },
      attributes: {
        autocomplete: 'off', step: type === 'date-time' && 1, ...type === 'email' && { inputmode: 'email', spellcheck: 'false' },
      },
    })
  })}`
}

// What a browser would not show is a text.
function inputTypeOf ({ type, hasLines }: Member, value: string): NonNullable<Field['type']> {
  if (type === 'email') return 'email'
  if (type === 'json' || hasLines || value.includes('\n')) return 'textarea'
  if (type === 'date' && /^(\d{4}-\d\d-\d\d)?$/.test(value)) return 'date'
  if (type === 'date-time' && (value === '' || isInstant(`${value}Z`))) return 'datetime-local'
  return 'text'
}

function toggle (
  { name, label, hint, error, isOn }:
  { name: string, label: string, hint: string | undefined, error: string | undefined, isOn: boolean }
): Html {
  return html`<div class="field"><label class="check"><input type="checkbox" role="switch"${attributes({
    id: name, name, value: 'true', checked: isOn, autocomplete: 'off', 'aria-describedby': `${name}-error`,
  })}> ${label}</label>${hint !== undefined && html`<p class="hint">${hint}</p>`}<p class="field-error" id="${name}-error">${error}</p></div>`
}

// Usher's own members are called by the language of the page, and those of the host as the host calls them.
const labels: Readonly<Record<string, ConsoleText>> = { name: 'name', email: 'email', role: 'role' }

/** Returns what a member is called. */
export const labelOf = ({ t }: Words, { name, label }: Pick<Member, 'name' | 'label'>): string =>
  Object.hasOwn(labels, name) ? t[labels[name]!] : label

function errorOf ({ t, language }: Words, name: string, sentences: readonly string[]): string | undefined {
  const sentence = sentences.find((sentence) => sentence.startsWith(`${name} `))
  if (sentence === undefined) return undefined
  const text = Object.hasOwn(failureTexts, sentence) ? failureTexts[sentence] : undefined
  return (text && t[text]) ?? inputText(sentence, t, language) ?? sentence
}

/** Returns the sentences about fields of an error. */
export const sentencesOf = (error: Outcome['error']): readonly string[] => error?.errors ?? []

/** What the form shows after somebody else has changed the user meanwhile. */
export interface Merged {
  values: Form
  /** What both have changed, or only the other one. */
  conflicts: readonly { name: string, label: string, former: string, now: string, typed: string, isBoth: boolean }[]
}

/**
 * Merges what was typed with what somebody else has changed meanwhile: a member that only the other one has changed has
 * the new value, and every other one has what was typed.
 */
export function merge (members: readonly Member[], typed: Form, user: Partial<UserRow>): Merged {
  const [former, now] = [formerOf(members, typed), valuesOf(members, user)]
  const values: Record<string, string> = {}
  const conflicts: Merged['conflicts'][number][] = []
  for (const { name, label, type } of members) {
    const [before, after, given] =
      [normalize(former[name] ?? ''), normalize(now[name] ?? ''), normalize((type === 'boolean' ? readSwitch(typed[name], former[name]) : typed[name] ?? former[name]) ?? '')]
    values[name] = given === before ? after : given
    if (after === before) continue
    const isBoth = given !== before && given !== after
    conflicts.push({ name, label, former: before, now: after, typed: given, isBoth })
  }
  return { values, conflicts }
}

/** Returns what somebody else has changed beside what was typed. */
export function showConflicts (words: Words, conflicts: Merged['conflicts']): Html {
  const { t } = words
  return conflicts.length === 0
    ? html`<p>${t.conflictNone}</p>`
    : table({
      caption: t.conflictTable,
      columns: [
        { title: t.conflictField, cell: (conflict) => labelOf(words, conflict), isHeader: true },
        { title: t.conflictFormer, cell: ({ former }) => html`<bdi>${former || '–'}</bdi>` },
        { title: t.conflictNow, cell: ({ now }) => html`<bdi>${now || '–'}</bdi>` },
        {
          title: t.conflictTyped,
          cell: ({ typed, former }) => typed === former ? t.conflictUnchanged : html`<bdi>${typed || '–'}</bdi>`,
        },
        { title: t.conflictForm, cell: ({ isBoth }) => isBoth ? t.conflictKeepsTyped : t.conflictKeepsNow },
      ],
      rows: conflicts,
    })
}
