import { members } from './members.ts'
import { noFields, type FieldAudience, type UserField, type UserFields } from './user-fields.ts'
import { checkSchema } from '../http/validator.ts'

const MAX_FIELDS = 32
/** The maximum size of a text or of JSON, in bytes. */
const BYTES = 65_536
const INT32 = 2 ** 31
const NAME = /^[a-z][A-Za-z0-9]{0,39}$/

// Members of users and of requests about them, in REST and GraphQL, and columns, also those that PostgreSQL adds to
// every table.
const RESERVED = new Set([
  ...Object.keys(members), 'emailChangedAt', 'passwordHash', 'token', 'posts', 'uploads', 'sessions', 'etag', 'rowVersion', 'context', 'undoableBy', 'ctid',
  'xmin', 'xmax', 'cmin', 'cmax', 'tableoid', 'oid', 'cookie', 'signUpId', 'logIn',
  ...Object.getOwnPropertyNames(Object.prototype),
])
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
 * Returns the fields of the option `userFields`, which is a TypeBox object. Throws an `Error` that names the option and
 * the field.
 */
export function readUserFields (given: unknown): UserFields {
  if (given === undefined) return noFields
  if (!isObject(given) || given.type !== 'object' || !isObject(given.properties)) {
    throw new Error('usher: userFields must be an object of TypeBox: Type.Object({ … })')
  }
  const { type, properties, required = [], title, description, additionalProperties, ...others } = given
  const [unknown] = Object.keys(others)
  if (unknown !== undefined) throw new Error(`usher: userFields has the unknown keyword ${unknown}`)
  const entries = Object.entries(properties)
  if (entries.length > MAX_FIELDS) throw new Error(`usher: userFields may have at most ${MAX_FIELDS} fields`)
  return Object.freeze(entries.map(([name, schema]) => readField(name, schema, (required as string[]).includes(name))))
}

const inputs: Readonly<Record<UserField['type'], Schema>> = {
  string: { type: ['string', 'null'], text: 'block', maxBytes: BYTES },
  integer: { type: ['integer', 'null'], minimum: Number.MIN_SAFE_INTEGER, maximum: Number.MAX_SAFE_INTEGER },
  number: { type: ['number', 'null'] },
  boolean: { type: ['boolean', 'null'] },
  json: { storedJson: { bytes: BYTES, schema: {} } },
}

/**
 * Returns the fields of a host as far as columns of users tell about them, for whoever does not know the option
 * `userFields`: names and types, but neither what values the host allows, nor defaults. Columns that cannot be fields
 * are left out.
 */
export function fieldsOfColumns (given: readonly { name: string, type: string }[]): UserFields {
  return given.flatMap(({ name, type: column }) => {
    const type = (Object.keys(columns) as UserField['type'][]).find((one) => columns[one] === column)
    if (!type || !NAME.test(name) || RESERVED.has(name) || name.startsWith('usher')) return []
    const unknown = { default: undefined, title: undefined, description: undefined }
    return [Object.freeze({
      name, type, column, bytes: BYTES, graphql: 'JSON', read: 'admin', write: 'admin', input: inputs[type], output: {}, ...unknown,
    })]
  })
}

function readField (name: string, given: unknown, isRequired: boolean): UserField {
  const problem = (message: string, cause?: unknown) => new Error(`usher: userFields.${name} ${message}`, { cause })
  if (!NAME.test(name)) {
    throw problem('is not a name of a field: it must begin with a small letter and have up to 40 letters and digits')
  }
  if (RESERVED.has(name) || name.startsWith('usher')) throw problem('is reserved by Usher: choose another name')
  if (!isObject(given)) throw problem('must be a schema')
  const { 'x-read': read = 'owner', 'x-write': write = 'admin', default: preset, ...rest } = asEnum(given)
  if (!['anyone', 'owner', 'admin'].includes(read as string)) {
    throw problem('has an x-read that is not anyone, owner or admin')
  }
  if (!['owner', 'admin'].includes(write as string)) throw problem('has an x-write that is not owner or admin')
  if (isRequired && preset === undefined) {
    throw problem('must be optional or have a default, because existing users have no value')
  }
  const type = typeOf(rest)
  if (!type) throw problem('must be a string, an integer, a number, a boolean, an array or an object')
  const schema = attempt(() => bound(type, clean(rest) as Schema))
  const input = {
    ...inputOf(type, schema),
    description: describe(rest.description, { read: undefined, write: write as FieldAudience }),
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
    read: read as UserField['read'],
    write: write as UserField['write'],
    default: preset,
    title: textOf(rest.title),
    description: textOf(rest.description),
    input,
    output: {
      ...schema,
      userField: type,
      description: describe(rest.description, { read: read as FieldAudience, write: undefined }),
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

function typeOf ({ type }: Schema): UserField['type'] | undefined {
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

function bound (type: UserField['type'], schema: Schema): Schema {
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

function inputOf (type: UserField['type'], schema: Schema): Schema {
  const nullable = { type: [schema.type, 'null'] }
  // The validator checks the size of JSON before anything else, and stops at the first error in it.
  if (type === 'json') return { ...nullable, storedJson: { bytes: BYTES, schema } }
  return { ...schema, ...nullable, ...Array.isArray(schema.enum) && { enum: [...schema.enum, null] } }
}

const audiences: Readonly<Record<FieldAudience, string>> = {
  anyone: 'anyone', owner: 'the user and admins', admin: 'admins',
}

function describe (
  given: unknown, { read, write }: { read: FieldAudience | undefined, write: FieldAudience | undefined }
): string {
  const sentences = [
    given,
    read && `Absent if it has no value${read === 'anyone' ? '' : `, and for readers other than ${audiences[read]}`}`,
    write && `Only ${audiences[write]} may set it, for others it is ignored. Null stands for no value`,
  ]
  return sentences.filter((sentence) => typeof sentence === 'string' && sentence !== '').join('. ')
}

function isObject (value: unknown): value is Schema {
  return typeof value === 'object' && value !== null && !Array.isArray(value)
}
