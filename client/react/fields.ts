/// <reference lib="dom" />
/** A field of a host, as far as a form shows it: a JSON schema, or a schema of TypeBox. */
export interface FieldSchema {
  readonly type?: unknown
  readonly title?: string
  readonly description?: string
  readonly enum?: readonly unknown[]
  readonly anyOf?: readonly object[]
  readonly format?: string
  readonly maxLength?: number
  readonly minimum?: number
  readonly maximum?: number
  readonly default?: unknown
  /** Only what the `owner` may write is shown. */
  readonly 'x-write'?: unknown
}

/** The fields of a host. Arrays and objects, and what only admins write, are not shown. */
export interface FieldsSchema { readonly properties: Readonly<Record<string, object>> }

/** A field of a form. */
export interface HostField {
  readonly name: string
  readonly label: string
  readonly hint: string | undefined
  readonly kind: 'text' | 'lines' | 'number' | 'boolean' | 'choice'
  readonly options: readonly string[]
  /** Attributes of the element. */
  readonly attributes: Readonly<Record<string, unknown>>
  readonly preset: unknown
}

// A longer text has several lines.
const LINE = 200
const TYPES: Readonly<Record<string, string>> = { email: 'email', uri: 'url', date: 'date', time: 'time' }

/** Returns the fields that a user may write and a form can show. */
export function readFields ({ properties }: FieldsSchema): HostField[] {
  return Object.entries(properties).flatMap(([name, given]) => {
    const schema = given as FieldSchema
    const kind = schema['x-write'] === 'owner' ? kindOf(schema) : undefined
    if (!kind) return []
    const { title = name, description, format = '', maxLength, minimum, maximum, default: preset } = schema
    const ofNumber = { type: 'number', step: schema.type === 'integer' ? 1 : 'any', min: minimum, max: maximum }
    const ofText = { maxLength, ...kind === 'text' && { type: TYPES[format] ?? 'text' } }
    const attributes = kind === 'number' ? ofNumber : kind === 'text' || kind === 'lines' ? ofText : {}
    return { name, label: title, hint: description, kind, options: optionsOf(schema), attributes, preset }
  })
}

function kindOf (schema: FieldSchema): HostField['kind'] | undefined {
  if (optionsOf(schema).length > 0) return 'choice'
  switch (schema.type) {
    case 'boolean': return 'boolean'
    case 'integer':
    case 'number': return 'number'
    case 'string': return (schema.maxLength ?? 0) > LINE ? 'lines' : 'text'
    default: return undefined
  }
}

// TypeBox writes an enumeration as a union of literals.
const optionsOf = ({ enum: values, anyOf = [] }: FieldSchema): string[] =>
  (values ?? anyOf.map((one) => (one as { const?: unknown }).const)).filter((value) => typeof value === 'string')

/**
 * Returns the values of a form that differ from the former ones, for a request. Null stands for no value.
 * @param form the values of the form by name
 */
export function readValues (
  fields: readonly HostField[], form: FormData, former: Readonly<Record<string, unknown>> = {}
): Record<string, unknown> {
  const values = fields.map(({ name, kind, preset }) => {
    const text = String(form.get(name) ?? '')
    const value = kind === 'boolean' ? form.has(name) : text === '' ? null : kind === 'number' ? Number(text) : text
    const before = former[name] ?? preset ?? (kind === 'boolean' ? false : null)
    return value === before ? [] : [name, value]
  })
  return Object.fromEntries(values.filter(({ length }) => length > 0) as [string, unknown][])
}
