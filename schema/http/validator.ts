import type { Static, TObject } from '@sinclair/typebox'
import { Ajv, type ErrorObject, type KeywordDefinition, type SchemaValidateFunction, type ValidateFunction } from 'ajv'
import addFormats from 'ajv-formats'
import type { DataValidateFunction } from 'ajv/dist/types/index.js'
import type { FastifySchemaCompiler } from 'fastify'
import { isAsciiAddress, toAsciiAddress } from '../strings/address.ts'
import { isColor } from '../options/color.ts'
import { isCommonPassword } from '../sign-in/passwords/common-passwords.ts'
import { isCursor, isPlace } from './cursor.ts'
import { InvalidInput } from './errors.ts'
import { isBlank } from '../strings/text.ts'
import { problemOfJson } from '../strings/json.ts'
import { normalizePassword } from '../sign-in/passwords/passwords.ts'

const trimmed = (text: string): string => isBlank(text) ? '' : text.trim()

// Returns a keyword that replaces a text. The other keywords for strings see the new one.
function replacing (keyword: string, replace: (text: string) => string): KeywordDefinition {
  const validate: SchemaValidateFunction = (_: boolean, text: string, __, at) => {
    at!.parentData[at!.parentDataProperty] = replace(text)
    return true
  }
  const kind = { type: 'string', schemaType: 'boolean', modifying: true, before: 'maxLength', errors: false } as const
  return { keyword, ...kind, validate }
}

// Usher has its own validators, so the host's validator options have no effect: all problems are reported, bodies are
// not coerced (contract 1.9), and unknown members are kept and ignored.
const bodies = createAjv({ allErrors: true })
// Query strings and paths consist of text, so numbers are coerced. Ajv coerces "Infinity" to a number; with
// strictNumbers it would not compare that number with a maximum.
const texts = createAjv({ allErrors: true, coerceTypes: true, strictNumbers: false })

/**
 * Returns a validator for a schema of a route, whose error is an `InvalidInput`. The schema is compiled for the first
 * request, because compiling all of them would take a third of the start.
 */
export const validatorCompiler: FastifySchemaCompiler<object> = ({ schema, httpPart }) => {
  let validate: ValidateFunction | undefined
  return (data: unknown) => {
    validate ??= (httpPart === 'body' ? bodies : texts).compile(schema)
    return validate(data) ? { value: data } : { error: new InvalidInput(...describe(schema, validate.errors!)) }
  }
}

/** Returns what is wrong with a part of a request, for examples. */
export function problemsIn (schema: object, data: object, part: 'body' | 'querystring'): string[] {
  const validate = (part === 'body' ? bodies : texts).compile(schema)
  return validate(data) ? [] : describe(schema, validate.errors!)
}

/**
 * Creates a function that validates input which does not come from a route, such as GraphQL arguments. It returns a
 * copy with trimmed texts and defaults, and throws `InvalidInput` if the input is invalid. The schema is compiled when
 * the function is first called.
 */
export function createParser<Schema extends TObject> (schema: Schema): (input: unknown) => Static<Schema> {
  let validate: ValidateFunction | undefined
  return (input) => {
    const value = copyObjects(input)
    validate ??= bodies.compile(schema)
    if (!validate(value)) throw new InvalidInput(...describe(schema, validate.errors!))
    return value as Static<Schema>
  }
}

/**
 * Compiles the schema of a member `name` of a body, to find out whether it is valid, and checks that a value matches
 * it, if there is one. Throws an `Error` with a sentence.
 */
export function checkSchema (name: string, schema: object, value?: unknown): void {
  const body = { type: 'object', properties: { [name]: schema } }
  const validate = bodies.compile(body)
  if (value !== undefined && !validate(copyObjects({ [name]: value }))) {
    throw new Error(`its default: ${describe(body, validate.errors!).join('; ')}`)
  }
}

// The validator writes defaults and trimmed texts into its argument, at every level. Values that are no objects are not
// changed.
function copyObjects (value: unknown): unknown {
  if (Array.isArray(value)) return value.map(copyObjects)
  if (value === null || typeof value !== 'object') return value
  return Object.fromEntries(Object.entries(value).map(([name, member]) => [name, copyObjects(member)]))
}

function createAjv (options: object): Ajv {
  // Compiling the meta-schema would take longer than everything else at start. It is not needed: TypeBox has created
  // the schemas, and strict mode still rejects unknown keywords.
  const settings = {
    meta: false, validateSchema: false, verbose: true, useDefaults: true, strict: true, strictRequired: false,
  }
  const ajv = new Ajv({ ...options, ...settings })
  // ajv-formats is CommonJS: its default export sits one level deeper for ES modules.
  addFormats.default(ajv, {
    mode: 'fast', formats: ['date-time', 'uri', 'date', 'time', 'uuid', 'ipv4', 'ipv6', 'hostname'],
  })
  ajv.addFormat('cursor', isCursor)
  ajv.addFormat('post-cursor', isPlace)
  ajv.addFormat('user-cursor', /^[\w-]{30,1400}$/)
  ajv.addFormat('color', isColor)
  ajv.addFormat('base64url', /^[\w-]+$/)
  ajv.addFormat('email', isAsciiAddress)
  ajv.addKeyword(replacing('trim', trimmed))
  ajv.addKeyword(replacing('asciiDomain', toAsciiAddress))
  ajv.addKeyword(replacing('normalized', normalizePassword))
  ajv.addKeyword({ keyword: 'text', type: 'string', schemaType: 'string', validate: isText, errors: false })
  ajv.addKeyword({
    keyword: 'maxBytes',
    type: 'string',
    schemaType: 'number',
    validate: (limit: number, text: string) => text.length <= limit && Buffer.byteLength(text) <= limit,
  })
  ajv.addKeyword({ keyword: 'storedJson', schemaType: 'object', compile: compileJson, errors: true })
  // Only chooses the message for null.
  ajv.addKeyword({ keyword: 'notNull', schemaType: 'boolean' })
  ajv.addKeyword({
    keyword: 'uncommon',
    type: 'string',
    schemaType: 'boolean',
    validate: (_: boolean, text: string) => !isCommonPassword(text),
  })
  return ajv
}

// PostgreSQL's type text rejects NUL, UTF-8 cannot encode lone surrogates, and other control characters have no use in
// texts.
function isText (kind: 'line' | 'block', text: string): boolean {
  const controls = kind === 'line'
    // eslint-disable-next-line no-control-regex
    ? /[\u0000-\u001f\u007f-\u009f]/
    // eslint-disable-next-line no-control-regex
    : /[\u0000-\u0008\u000b\u000c\u000e-\u001f\u007f-\u009f]/
  return !controls.test(text) && text.isWellFormed()
}

let nested: Ajv | undefined

// A separate validator stops at the first error, because a large value could have an error in each of its thousands of
// members.
function compileJson ({ bytes, schema }: { bytes: number, schema: object }): DataValidateFunction {
  nested ??= createAjv({ allErrors: false })
  const validate = nested.compile(schema)
  const check: DataValidateFunction = (value: unknown, at) => {
    if (value === null) return true
    const message = problemOfJson(value, bytes)
    if (!message && validate(value)) return true
    const { instancePath = '' } = at ?? {}
    check.errors = message
      ? [{ keyword: 'storedJson', message, params: {}, instancePath }]
      : validate.errors!.map((error) => ({ ...error, instancePath: `${instancePath}${error.instancePath}` }))
    return false
  }
  return check
}

// Returns one sentence for each invalid field, in the order of the schema. It describes the field's first problem,
// unless the field has control characters: that problem takes precedence.
function describe (schema: object, errors: readonly ErrorObject[]): string[] {
  const order = Object.keys((schema as TObject).properties)
  const sentences = new Map<string, string>()
  for (const error of errors) {
    const field = fieldOf(error)
    if (!sentences.has(field) || error.keyword === 'text') sentences.set(field, `${field} ${problem(error)}`)
  }
  const indexOf = (field: string) => order.indexOf(field.split('.')[0]!)
  return [...sentences].sort(([a], [b]) => indexOf(a) - indexOf(b)).map(([, sentence]) => sentence)
}

function fieldOf ({ instancePath, keyword, params }: ErrorObject): string {
  const path = instancePath.split('/').slice(1)
  if (keyword === 'required') path.push(params.missingProperty)
  return path.length > 0 ? path.join('.') : 'body'
}

function problem ({ keyword, params, parentSchema, message, data }: ErrorObject): string {
  if (data === null && parentSchema!.notNull) return 'must not be null'
  switch (keyword) {
    case 'required': return 'is required'
    case 'type':
      return `must be ${/^[aeiou]/.test(params.type) ? 'an' : 'a'} ${String(params.type).replace(',', ' or ')}`
    case 'text': return 'must not contain control characters'
    case 'minLength': return params.limit === 1 ? 'must not be blank' : `must be at least ${params.limit} characters`
    case 'minItems': return params.limit === 1 ? 'must not be empty' : `must have at least ${params.limit} items`
    case 'maxItems': return `must have at most ${params.limit} items`
    case 'minProperties': return `must have at least ${params.limit} members`
    case 'maxProperties': return `must have at most ${params.limit} members`
    case 'maxLength': return `must be at most ${params.limit} characters`
    case 'maxBytes': return `must be at most ${parentSchema!.maxBytes} bytes`
    case 'uncommon': return 'is too common'
    case 'format': return `must be ${formats[params.format] ?? `a valid ${params.format}`}`
    case 'minimum':
    case 'maximum': return `must be ${rangeOf(parentSchema as Range)}`
    case 'additionalProperties': return `has no member ${params.additionalProperty}`
    case 'enum': return `must be one of ${params.allowedValues.filter((value: unknown) => value !== null).join(', ')}`
    default: return message!
  }
}

interface Range { minimum?: number, maximum?: number }

// Integers of hosts are bounded by those that JavaScript can have, which says nothing where another bound does.
function rangeOf ({ minimum = -Infinity, maximum = Infinity }: Range): string {
  const [hasMinimum, hasMaximum] = [minimum > Number.MIN_SAFE_INTEGER, maximum < Number.MAX_SAFE_INTEGER]
  if (hasMinimum && !hasMaximum) return `at least ${minimum}`
  if (hasMaximum && !hasMinimum) return `at most ${maximum}`
  return `between ${minimum} and ${maximum}`
}

const formats: Readonly<Record<string, string>> = {
  email: 'an email address',
  cursor: 'a cursor from a previous page',
  'post-cursor': 'the cursor of a post',
  'user-cursor': 'a cursor from a previous page',
  uri: 'an absolute URL',
  color: 'a color such as #1d4ed8',
  base64url: 'base64url without padding',
}
