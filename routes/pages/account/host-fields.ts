import { labelOf, type Field, type Fields } from '../../../schema/fields/fields.ts'
import {
  readableFields, writableFields as writableByMembers, type OrganizationFields,
} from '../../../schema/organizations/organization-fields.ts'
import { writableFields, type UserFields } from '../../../schema/users/user-fields.ts'
import { checkbox, field } from '../components.ts'
import { toMember } from '../console/user-form.ts'
import { attributes, html, type Html } from '../html.ts'

// JSON is for programs: no form shows it.
const isShown = ({ type }: Field): boolean => type !== 'json'

/** Returns the fields of the host that somebody may set who signs up. */
export const signUpFields = (fields: UserFields): UserFields => writableFields(fields, 'owner').filter(isShown)

/** Returns the fields of the host that users see on their own page: those that they write, and the others. */
export function accountFields (fields: UserFields): { written: UserFields, shown: UserFields } {
  // What an owner may write but not read would look as if it had no value.
  const known = fields.filter((one) => isShown(one) && one.read !== 'admin')
  const written = writableFields(known, 'owner')
  return { written, shown: known.filter((one) => !written.includes(one)) }
}

const inputTypes: Readonly<Record<string, 'email' | 'url' | 'date'>> = { email: 'email', uri: 'url', url: 'url', date: 'date' }

/** What a form has that was sent, by field: what was typed, and what is wrong with it. */
export interface Typed {
  values?: Readonly<Record<string, unknown>>
  errors?: Readonly<Record<string, string>>
}

/**
 * Returns the fields of a form for fields of the host.
 * @param prefix what their ids begin with, where a page has several forms
 */
export function showHostFields (
  fields: Fields, { values = {}, errors = {} }: Typed = {}, more: Readonly<Record<string, boolean>> = {}, prefix = ''
): Html {
  return html`${fields.map((one) => {
    const { name, type, input, description } = one
    const id = `${prefix}${name}`
    const { options, hasLines } = toMember(one)
    const [label, error] = [labelOf(one), errors[name]]
    const value = values[name] ?? one.default
    const data = { 'data-host': type, ...more }
    if (type === 'boolean') {
      return html`<div class="field">${checkbox(label, {
        id,
        name,
        checked: value === true || value === 'on',
        value: 'on',
        autocomplete: 'off',
        ...data,
        'aria-describedby': `${description === undefined ? '' : `${id}-hint `}${id}-error`,
      })}
${description !== undefined && html`<p class="hint" id="${id}-hint">${description}</p>`}
<p class="field-error" role="alert" id="${id}-error">${error}</p></div>`
    }
    const isNumber = type === 'integer' || type === 'number'
    return field({
      name,
      id,
      label,
      type: isNumber ? 'number' : hasLines ? 'textarea' : inputTypes[`${input['format']}`] ?? 'text',
      value: value === undefined ? '' : `${value}`,
      error,
      ...description !== undefined && { hint: description },
      ...options && { options: [{ value: '', text: '–' }, ...options.map((value) => ({ value, text: wordsOf(value) }))] },
      attributes: {
        autocomplete: 'off',
        ...isNumber && { step: type === 'integer' ? 1 : 'any', min: numberIn(input, 'minimum'), max: numberIn(input, 'maximum') },
        ...data,
      },
    })
  })}`
}

/** Returns the places for what a user sees and does not write. */
export const showHostFacts = (fields: Fields): Html | undefined => fields.length === 0
  ? undefined
  : html`${fields.map((one) => html`<dt${attributes({ 'data-fact-of': one.name, hidden: true })}>${labelOf(one)}</dt>
<dd${attributes({ 'data-fact': one.name, 'data-words': Array.isArray(one.input['enum']), hidden: true })}></dd>`)}`

/** Returns the host's fields on the page of organisations: in the forms that found and change one, and as facts. */
export function showOrganizationFields (fields: OrganizationFields) {
  // As on the page of a user.
  const known = readableFields(fields, false).filter(isShown)
  const written = writableByMembers(known, false)
  const show = (form: string) => written.length === 0 ? undefined : showHostFields(written, {}, {}, `${form}-`)
  return {
    newOrganizationFields: show('found'), organizationFields: show('change'), organizationFacts: showHostFacts(known),
  }
}

// The values of an enumeration that are words are shown as such: `dark-mode` is “Dark mode”.
function wordsOf (value: string): string {
  if (!/^[a-z]{3,}(?:[-_ ][a-z]+)*$/.test(value)) return value
  const words = value.replaceAll(/[-_]/g, ' ')
  return `${words.slice(0, 1).toUpperCase()}${words.slice(1)}`
}

// The widest limits of integers are those of JavaScript, of which users need not know.
function numberIn (input: Field['input'], keyword: string): number | undefined {
  const value = input[keyword]
  return typeof value === 'number' && Math.abs(value) < Number.MAX_SAFE_INTEGER ? value : undefined
}

/** Returns the body of a form with the fields of the host as the API takes them, without those that are empty. */
export function readHostFields (fields: UserFields, body: Record<string, unknown>): Record<string, unknown> {
  const read = { ...body }
  for (const { name, type } of signUpFields(fields)) {
    const value = read[name]
    if (typeof value !== 'string') continue
    if (value === '') delete read[name]
    else if (type === 'boolean') read[name] = value === 'on'
    // What is no number is rejected by the schema, with the sentence of the API.
    else if (type !== 'string' && Number.isFinite(Number(value))) read[name] = Number(value)
  }
  return read
}
