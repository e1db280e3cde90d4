import type { Schema } from './operations.ts'
import type { Random } from './random.ts'

/** Texts that often break parsers, databases and terminals. */
export const hostileTexts: readonly string[] = [
  '', ' ', '\0', 'a\0b', '\ud800', '\udfff\ud800', '\u202e\u0007', '\ufeff', '\u0000', '\x7f', '\u2028\u2029',
  '👩‍👩‍👧‍👦', 'İ', 'ß', 'ﬀ', '\u0307',
  "'; drop table users; --", '" or 1=1 --', '{{7*7}}', '../../../../etc/passwd', '..%2f..%2f',
  '<script>alert(1)</script>', '%s%s%n', '\\u0000', '__proto__', 'constructor', 'toString', 'hasOwnProperty', 'null',
  'undefined', 'NaN', 'Infinity', '-0', '1e309', '0x10', '١٢٣', 'a'.repeat(201), 'é'.repeat(300), 'x'.repeat(5000),
  '\n'.repeat(50), '\r\nset-cookie: a=b', 'a@b', `${'a'.repeat(250)}@example.com`, '"@"@example.com',
]

/** JSON that is valid but unexpected. */
export const hostileJson: readonly string[] = [
  'null', 'true', '0', '-1', '1e400', '9007199254740993', '""', '[]', '[[[[[[[[[[]]]]]]]]]]', '{}', '{"":0}',
  '{"__proto__":{"role":"admin"}}', '{"constructor":{"prototype":{"role":"admin"}}}', '{"a":{"a":{"a":{"a":{}}}}}',
  '"\\ud800"', '"\\u0000"',
]

// These are texts, because JSON.stringify does not support such deep nesting.
const brokenJson: readonly string[] = [
  `${'['.repeat(5000)}${']'.repeat(5000)}`, `${'{"a":'.repeat(5000)}1${'}'.repeat(5000)}`,
  '', '{', '{"name":', '{"name":"a",}', '{name:"a"}', "{'name':'a'}", '\ufeff{}', '{}{}', 'NaN', '{"a":1e}', '"\\x"',
  '[1,', '\0',
]

/** Returns a value that matches a schema, or sometimes one that does not. */
export function generateValue (random: Random, schema: Schema, name = ''): unknown {
  if (random.chance(0.1)) return JSON.parse(random.pick(hostileJson))
  if (schema.enum) return random.chance(0.8) ? random.pick(schema.enum) : random.pick(hostileTexts)
  switch (Array.isArray(schema.type) ? random.pick(schema.type) : schema.type) {
    case 'object': return generateObject(random, schema)
    case 'array': return Array.from({ length: random.below(4) }, () => generateValue(random, schema.items ?? {}))
    case 'integer':
    case 'number': return generateNumber(random, schema)
    case 'boolean': return random.chance(0.5)
    case 'string': return generateText(random, schema, name)
    default: return random.pick(hostileTexts)
  }
}

function generateObject (random: Random, { properties = {}, required = [] }: Schema): Record<string, unknown> {
  const object: Record<string, unknown> = {}
  for (const [name, schema] of Object.entries(properties)) {
    if (random.chance(required.includes(name) ? 0.95 : 0.4)) object[name] = generateValue(random, schema, name)
  }
  if (random.chance(0.1)) {
    object[random.pick([
      'id', 'createdAt', 'passwordHash', 'password_hash', '__proto__x', 'emailVerified', 'disabled',
    ])] = random.pick(hostileTexts)
  }
  return object
}

function generateNumber (random: Random, { minimum = 0, maximum = 1000 }: Schema): unknown {
  if (random.chance(0.8)) return minimum + random.below(maximum - minimum + 1)
  return random.pick([minimum - 1, maximum + 1, -1, 0.5, 1e308, Number.MAX_SAFE_INTEGER, '10', ' 10', null])
}

function generateText (random: Random, { minLength = 0, maxLength = 200 }: Schema, name: string): unknown {
  if (random.chance(0.2)) return random.pick(hostileTexts)
  if (random.chance(0.05)) return 'y'.repeat(Math.min(maxLength + 1, 70_000))
  if (/email/i.test(name)) return `may-${random.word(12)}@example.org`
  return random.word(Math.max(minLength, 1 + random.below(Math.min(maxLength, 24))))
}

/** Returns the text of a JSON body, sometimes broken. */
export function writeJson (random: Random, value: unknown): string {
  if (random.chance(0.03)) return random.pick(brokenJson)
  const text = JSON.stringify(value) ?? ''
  return random.chance(0.05) ? random.mutate(text) : text
}
