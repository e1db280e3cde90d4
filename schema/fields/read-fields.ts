import type { Field, Fields } from './fields.ts'
import { checkSchema } from '../http/validator.ts'

const MAX_FIELDS = 32
/** The maximum size of a text or of JSON, in bytes. */
const BYTES = 65_536
const INT32 = 2 ** 31
const NAME = /^[a-z][A-Za-z0-9]{0,39}$/

// Columns that PostgreSQL adds to every table, and what every object has.
const RESERVED = new Set([
  'ctid', 'xmin', 'xmax', 'cmin', 'cmax', 'tableoid', 'oid', ...Object.getOwnPropertyNames(Object.prototype),
])

/** What fields are added to. */
export interface FieldKind<Read extends string, Write extends string> {
  /** The name of the option. */
  readonly option: string
  /** What its records are called. */
  readonly records: string
  /** The names of other members of the records and of requests about them, and of columns. */
  readonly reserved: readonly string[]
  /** Who may read a field, by the value of `x-read`: what descriptions call them, or undefined for all readers. */
  readonly readers: Readonly<Record<Read, string | undefined>>
  /** Who may write a field, by the value of `x-write`: what descriptions call them. */
  readonly writers: Readonly<Record<Write, string>>
  readonly defaults: { readonly read: Read, readonly write: Write }
}

/** A field with who may read and write it. */
export interface FieldFor<Read extends string, Write extends string> extends Field {
  readonly read: Read
  readonly write: Write
}

// Keywords that refer to other schemas. Each schema is compiled several times, and would be known already.
const REFERENCES = ['$id', '$ref', '$defs', '$anchor', '$dynamicRef', '$dynamicAnchor', 'definitions']
// Their values are data, not schemas.
const DATA = new Set(['default', 'enum', 'const', 'example', 'examples'])
// Their values are schemas by name.
const MAPS = new Set(['properties', 'patternProperties', 'dependentSchemas'])

const columns = {
  string: 'text', integer: 'bigint', number: 'double precision', boolean: 'boolean', json: 'jsonb',
} as const

type Schema = Record<string, unknown>

/**
 * Returns the fields of an option, which is a TypeBox object. Throws an `Error` that names the option and the field.
 */
export function readFields<Read extends string, Write extends string> (
  given: unknown, kind: FieldKind<Read, Write>
): readonly FieldFor<Read, Write>[] {
  const problem = (message: string) => new Error(`usher: ${kind.option} ${message}`)
  if (!isObject(given) || given.type !== 'object' || !isObject(given.properties)) {
    throw problem('must be an object of TypeBox: Type.Object({ … })')
  }
  const { type, properties, required = [], title, description, additionalProperties, ...others } = given
  const [unknown] = Object.keys(others)
  if (unknown !== undefined) throw problem(`has the unknown keyword ${unknown}`)
  const entries = Object.entries(properties)
  if (entries.length > MAX_FIELDS) throw problem(`may have at most ${MAX_FIELDS} fields`)
  return Object.freeze(entries.map(([name, schema]) =>
    readField(kind, name, schema, (required as string[]).includes(name))))
}

const isReserved = ({ reserved }: Pick<FieldKind<never, never>, 'reserved'>, name: string): boolean =>
  RESERVED.has(name) || reserved.includes(name) || name.startsWith('usher')

const inputs: Readonly<Record<Field['type'], Schema>> = {
  string: { type: ['string', 'null'], text: 'block', maxBytes: BYTES },
  integer: { type: ['integer', 'null'], minimum: Number.MIN_SAFE_INTEGER, maximum: Number.MAX_SAFE_INTEGER },
  number: { type: ['number', 'null'] },
  boolean: { type: ['boolean', 'null'] },
  json: { storedJson: { bytes: BYTES, schema: {} } },
}

/**
 * Returns the fields of a host as far as columns of its table tell about them, for whoever does not know the option:
 * names and types, but neither what values the host allows, nor defaults. Columns that cannot be fields are left out.
 */
export function fieldsOfColumns (
  kind: Pick<FieldKind<never, never>, 'reserved'>, given: readonly { name: string, type: string }[]
): Fields {
  return given.flatMap(({ name, type: column }) => {
    const type = (Object.keys(columns) as Field['type'][]).find((one) => columns[one] === column)
    if (!type || !NAME.test(name) || isReserved(kind, name)) return []
    const unknown = { default: undefined, title: undefined, description: undefined }
    return [Object.freeze({ name, type, column, bytes: BYTES, graphql: 'JSON', input: inputs[type], output: {}, ...unknown })]
  })
}

function readField<Read extends string, Write extends string> (
  kind: FieldKind<Read, Write>, name: string, given: unknown, isRequired: boolean
): FieldFor<Read, Write> {
  const { option, readers, writers, defaults } = kind
  const problem = (message: string, cause?: unknown) => new Error(`usher: ${option}.${name} ${message}`, { cause })
  if (!NAME.test(name)) {
    throw problem('is not a name of a field: it must begin with a small letter and have up to 40 letters and digits')
  }
  if (isReserved(kind, name)) throw problem('is reserved by Usher: choose another name')
  if (!isObject(given)) throw problem('must be a schema')
  const { 'x-read': read = defaults.read, 'x-write': write = defaults.write, default: preset, ...rest } = asEnum(given)
  if (!isIn(readers, read)) throw problem(`has an x-read that is not ${oneOf(readers)}`)
  if (!isIn(writers, write)) throw problem(`has an x-write that is not ${oneOf(writers)}`)
  if (isRequired && preset === undefined) {
    throw problem(`must be optional or have a default, because existing ${kind.records} have no value`)
  }
  const type = typeOf(rest)
  if (!type) throw problem('must be a string, an integer, a number, a boolean, an array or an object')
  const schema = attempt(() => bound(type, clean(rest) as Schema))
  const input = {
    ...inputOf(type, schema),
    description: describe(rest.description, `Only ${writers[write]} may set it, for others it is ignored. Null stands for no value`),
  }
  attempt(() => checkSchema(name, input))
  if (preset !== undefined) attempt(() => checkSchema(name, input, preset))
  return Object.freeze({
    name,
    type,
    column: columns[type],
    graphql: {
      string: 'String', integer: isInt32(schema) ? 'Int' : 'Float', number: 'Float', boolean: 'Boolean', json: 'JSON',
    }[type],
    bytes: type === 'json'
      ? BYTES
      : type === 'string' ? Math.min(schema.maxBytes as number, 4 * Number(schema.maxLength ?? BYTES)) : 8,
    read,
    write,
    default: preset,
    title: textOf(rest.title),
    description: textOf(rest.description),
    input,
    output: {
      ...schema,
      hostField: type,
      description: describe(rest.description, absence(readers[read])),
      ...preset !== undefined && { default: preset },
    },
  })

  function attempt<Result> (run: () => Result): Result {
    try {
      return run()
    } catch (error) {
      throw problem(`is not a valid field: ${(error as Error).message}`, error)
    }
  }
}

const textOf = (value: unknown): string | undefined => typeof value === 'string' ? value : undefined

// TypeBox writes an enumeration as a union of literals, which would report an error for each of them.
function asEnum (schema: Schema): Schema {
  const { anyOf, const: literal, ...rest } = schema
  if (Array.isArray(anyOf) && anyOf.length > 0 && anyOf.every((one) => typeof one.const === 'string')) {
    return { ...rest, type: 'string', enum: anyOf.map((one) => one.const) }
  }
  return typeof literal === 'string' && anyOf === undefined ? { ...rest, type: 'string', enum: [literal] } : schema
}

function typeOf ({ type }: Schema): Field['type'] | undefined {
  if (type === 'array' || type === 'object') return 'json'
  return type === 'string' || type === 'integer' || type === 'number' || type === 'boolean' ? type : undefined
}

// Returns a schema without what has no meaning there: symbols of TypeBox, and titles, which would be the names of
// components in OpenAPI.
function clean (node: unknown, isMap = false): unknown {
  if (Array.isArray(node)) return node.map((one) => clean(one))
  if (!isObject(node)) return node
  const reference = isMap ? undefined : REFERENCES.find((keyword) => keyword in node)
  if (reference) throw new Error(`the keyword ${reference} is not supported`)
  const kept = Object.entries(node).filter(([key]) => isMap || key !== 'title')
  return Object.fromEntries(
    kept.map(([key, value]) => [key, !isMap && DATA.has(key) ? value : clean(value, !isMap && MAPS.has(key))])
  )
}

function bound (type: Field['type'], schema: Schema): Schema {
  if (type === 'string') {
    return { text: 'block', ...schema, maxBytes: Math.min(Number(schema.maxBytes ?? BYTES), BYTES) }
  }
  if (type !== 'integer') return schema
  const { minimum = Number.MIN_SAFE_INTEGER, maximum = Number.MAX_SAFE_INTEGER } = schema
  return {
    ...schema,
    minimum: Math.max(Number(minimum), Number.MIN_SAFE_INTEGER),
    maximum: Math.min(Number(maximum), Number.MAX_SAFE_INTEGER),
  }
}

const isInt32 = ({ minimum, maximum }: Schema): boolean => (minimum as number) >= -INT32 && (maximum as number) < INT32

function inputOf (type: Field['type'], schema: Schema): Schema {
  const nullable = { type: [schema.type, 'null'] }
  // The validator checks the size of JSON before anything else, and stops at the first error in it.
  if (type === 'json') return { ...nullable, storedJson: { bytes: BYTES, schema } }
  return { ...schema, ...nullable, ...Array.isArray(schema.enum) && { enum: [...schema.enum, null] } }
}

const absence = (readers: string | undefined): string =>
  `Absent if it has no value${readers === undefined ? '' : `, and for readers other than ${readers}`}`

const describe = (given: unknown, rule: string): string =>
  [given, rule].filter((sentence) => typeof sentence === 'string' && sentence !== '').join('. ')

function isIn<Name extends string> (audiences: Readonly<Record<Name, unknown>>, name: unknown): name is Name {
  return typeof name === 'string' && Object.hasOwn(audiences, name)
}

const oneOf = (audiences: object): string => Object.keys(audiences).join(', ').replace(/, (\w+)$/, ' or $1')

function isObject (value: unknown): value is Schema {
  return typeof value === 'object' && value !== null && !Array.isArray(value)
}
