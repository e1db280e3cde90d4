/** A schema of OpenAPI 3.1, as far as the page shows it. */
export interface Schema {
  $ref?: string
  type?: string | readonly string[]
  title?: string
  description?: string
  required?: readonly string[]
  properties?: Readonly<Record<string, Schema>>
  additionalProperties?: Schema | boolean
  items?: Schema
  anyOf?: readonly Schema[]
  enum?: readonly unknown[]
  const?: unknown
  format?: string
  pattern?: string
  default?: unknown
  examples?: readonly unknown[]
  contentMediaType?: string
  minLength?: number
  maxLength?: number
  minimum?: number
  maximum?: number
  minItems?: number
  maxItems?: number
}

const ID = '019a3f6e-7c1d-7b52-9a40-3f2f1c8f5d21'

// What members of records are like, by their names.
const values: Readonly<Record<string, unknown>> = {
  name: 'Ada Lovelace',
  email: 'ada@example.com',
  token: 'eyJhbGciOiJFZERTQSJ9…',
  tokenType: 'Bearer',
  expiresIn: 900,
  role: 'user',
  emailVerified: true,
  current: true,
  filename: 'report.pdf',
  mediaType: 'application/pdf',
  size: 48213,
  fileUrl: `/api/uploads/${ID}`,
  url: 'https://example.com/',
  description: 'A greeting',
  version: '2',
  slug: 'analytical-engines',
  userAgent: 'Mozilla/5.0 (X11; Linux x86_64) Firefox/140.0',
  ip: '203.0.113.7',
  next: null,
}

/** Returns a value that a schema describes, for an example of a response. */
export function createSample (schema: Schema, schemas: Readonly<Record<string, Schema>>, name = '', depth = 0): unknown {
  if (depth > 6) return null
  const {
    $ref, type, enum: choices, const: only, anyOf, items, properties, examples = [], default: given, format,
  } = schema
  const inner = (other: Schema, of: string) => createSample(other, schemas, of, depth + 1)
  if ($ref) return inner(schemas[$ref.slice($ref.lastIndexOf('/') + 1)] ?? {}, name)
  if (anyOf) return inner(anyOf[0]!, name)
  if (examples.length > 0) return examples[0]
  if (only !== undefined) return only
  const types = typeof type === 'string' ? [type] : type ?? []
  if (items) return [inner(items, name)]
  if (properties && types.includes('object')) {
    return Object.fromEntries(Object.entries(properties).map(([member, own]) => [member, inner(own, member)]))
  }
  if (Object.hasOwn(values, name) && (choices?.includes(values[name]) ?? true)) return values[name]
  if (choices) return choices[0]
  if (given !== undefined) return given
  if (format === 'date-time') return '2026-01-31T09:30:00.000Z'
  if (/^id$|Id$/.test(name)) return ID
  if (types.includes('boolean')) return false
  if (types.includes('integer') || types.includes('number')) return schema.minimum ?? 1
  return types.includes('string') ? 'text' : types.includes('object') ? {} : null
}
