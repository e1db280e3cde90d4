import type { TObject } from '@sinclair/typebox'
import { Ajv, type ErrorObject, type SchemaValidateFunction, type ValidateFunction } from 'ajv'
import addFormats from 'ajv-formats'
import type { FastifySchemaCompiler } from 'fastify'
import { isCommonPassword } from './common-passwords.ts'
import { isCursor } from './cursor.ts'
import { InvalidInput } from './errors.ts'

const trim: SchemaValidateFunction = (_: boolean, text: string, __, at) => {
  at!.parentData[at!.parentDataProperty] = text.trim()
  return true
}

// Usher validates by a compiler of its own, whatever options a host gave its validator: every problem is
// reported, bodies are not coerced (contract 1.9), unknown members stay and are ignored.
const bodies = createAjv({ allErrors: true })
// Query strings and paths are text by nature, so numbers are read from them. Ajv would take "Infinity" for a
// number and, when strict, not hold it against a maximum.
const texts = createAjv({ allErrors: true, coerceTypes: true, strictNumbers: false })

/** Compiles a route's schemas; a failed validation is an `InvalidInput`. */
export const validatorCompiler: FastifySchemaCompiler<object> = ({ schema, httpPart }) => {
  const validate = (httpPart === 'body' ? bodies : texts).compile(schema)
  return (data: unknown) => validate(data)
    ? { value: data }
    : { error: new InvalidInput(...describe(schema, validate.errors!)) }
}

/**
 * A check for input that does not come through a route, such as GraphQL arguments; compiled for the first. Throws
 * `InvalidInput`.
 */
export function createCheck (schema: TObject): (data: unknown) => void {
  let validate: ValidateFunction | undefined
  return (data) => {
    validate ??= bodies.compile(schema)
    if (!validate(data)) throw new InvalidInput(...describe(schema, validate.errors!))
  }
}

function createAjv (options: object): Ajv {
  // Without the meta-schema, whose compilation costs more than all else at start: TypeBox has made the schemas, and
  // what is strict still refuses an unknown keyword.
  const ajv = new Ajv({ ...options, meta: false, validateSchema: false, verbose: true, useDefaults: true, strict: true, strictRequired: false })
  // ajv-formats is CommonJS: its default export sits one level deeper for ES modules.
  addFormats.default(ajv, { mode: 'fast', formats: ['email', 'date-time', 'uri'] })
  ajv.addFormat('cursor', isCursor)
  ajv.addKeyword({
    keyword: 'trim',
    type: 'string',
    schemaType: 'boolean',
    modifying: true,
    // The first of the rules on text.
    before: 'maxLength',
    errors: false,
    validate: trim,
  })
  ajv.addKeyword({ keyword: 'text', type: 'string', schemaType: 'string', validate: isText, errors: false })
  ajv.addKeyword({
    keyword: 'maxOctets',
    type: 'string',
    schemaType: 'number',
    validate: (limit: number, text: string) => text.length <= limit && Buffer.byteLength(text) <= limit,
  })
  ajv.addKeyword({ keyword: 'uncommon', type: 'string', schemaType: 'boolean', validate: (_: boolean, text: string) => !isCommonPassword(text) })
  return ajv
}

// PostgreSQL's text refuses NUL, UTF-8 has no lone surrogates, and the other control characters serve nobody.
function isText (kind: 'line' | 'block', text: string): boolean {
  // eslint-disable-next-line no-control-regex
  const controls = kind === 'line' ? /[\u0000-\u001f\u007f-\u009f]/ : /[\u0000-\u0008\u000b\u000c\u000e-\u001f\u007f-\u009f]/
  return !controls.test(text) && text.isWellFormed()
}

// One sentence a field: the first of its problems, fields in the order of the schema.
function describe (schema: object, errors: readonly ErrorObject[]): string[] {
  const order = Object.keys((schema as TObject).properties)
  const sentences = new Map<string, string>()
  for (const error of errors) {
    const field = fieldOf(error)
    if (!sentences.has(field) || error.keyword === 'text') sentences.set(field, `${field} ${problem(error)}`)
  }
  const place = (field: string) => order.indexOf(field.split('.')[0]!)
  return [...sentences].sort(([a], [b]) => place(a) - place(b)).map(([, sentence]) => sentence)
}

function fieldOf ({ instancePath, keyword, params }: ErrorObject): string {
  const path = instancePath.split('/').slice(1)
  if (keyword === 'required') path.push(params.missingProperty)
  return path.length > 0 ? path.join('.') : 'body'
}

function problem ({ keyword, params, parentSchema, message }: ErrorObject): string {
  switch (keyword) {
    case 'required': return 'is required'
    case 'type': return `must be ${/^[aeiou]/.test(params.type) ? 'an' : 'a'} ${params.type}`
    case 'text': return 'must not contain control characters'
    case 'minLength': return params.limit === 1 ? 'must not be blank' : `must be at least ${params.limit} characters`
    case 'maxLength': return `must be at most ${params.limit} characters`
    case 'maxOctets': return `must be at most ${parentSchema!.maxOctets} bytes`
    case 'uncommon': return 'is too common'
    case 'format': return `must be ${formats[params.format]}`
    case 'minimum':
    case 'maximum': return `must be between ${parentSchema!.minimum} and ${parentSchema!.maximum}`
    case 'additionalProperties': return `has no ${params.additionalProperty}`
    case 'enum': return `must be one of ${params.allowedValues.join(', ')}`
    default: return message!
  }
}

const formats: Readonly<Record<string, string>> = {
  email: 'an email address',
  cursor: 'a cursor of a page before',
  uri: 'an absolute URL',
}
