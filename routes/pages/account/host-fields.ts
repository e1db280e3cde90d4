import { noRoles } from '../../../schema/options/roles.ts'
import { labelOf, writableFields, type UserField, type UserFields } from '../../../schema/users/user-fields.ts'
import { checkbox, field } from '../components.ts'
import { membersOf } from '../console/user-form.ts'
import { attributes, html, type Html } from '../html.ts'

// JSON is for programs: no form shows it.
const isShown = ({ type }: UserField): boolean => type !== 'json'

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

/** Returns the fields of a form for fields of the host. */
export function showHostFields (
  fields: UserFields, { values = {}, errors = {} }: Typed = {},
  more: Readonly<Record<string, boolean>> = {}
): Html {
  return html`${fields.map((one) => {
    const { name, type, input, description } = one
    const { options, hasLines } = membersOf({ userFields: [one], roles: noRoles }).at(-1)!
    const [label, error] = [labelOf(one), errors[name]]
    const value = values[name] ?? one.default
    const data = { 'data-host': type, ...more }
    if (type === 'boolean') {
      return html`<div class="field">${checkbox(label, {
        id: name,
        name,
        checked: value === true || value === 'on',
        value: 'on',
        autocomplete: 'off',
        ...data,
        'aria-describedby': `${description === undefined ? '' : `${name}-hint `}${name}-error`,
      })}
${description !== undefined && html`<p class="hint" id="${name}-hint">${description}</p>`}
<p class="field-error" role="alert" id="${name}-error">${error}</p></div>`
    }
    const isNumber = type === 'integer' || type === 'number'
    return field({
      name,
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
export const showHostFacts = (fields: UserFields): Html | undefined => fields.length === 0
  ? undefined
  : html`${fields.map((one) => html`<dt${attributes({ 'data-fact-of': one.name, hidden: true })}>${labelOf(one)}</dt>
<dd${attributes({ 'data-fact': one.name, 'data-words': Array.isArray(one.input['enum']), hidden: true })}></dd>`)}`

// The values of an enumeration that are words are shown as such: `dark-mode` is “Dark mode”.
function wordsOf (value: string): string {
  if (!/^[a-z]{3,}(?:[-_ ][a-z]+)*$/.test(value)) return value
  const words = value.replaceAll(/[-_]/g, ' ')
  return `${words.slice(0, 1).toUpperCase()}${words.slice(1)}`
}

// The widest limits of integers are those of JavaScript, of which users need not know.
function numberIn (input: UserField['input'], keyword: string): number | undefined {
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
