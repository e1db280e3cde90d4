import type { InjectOptions, LightMyRequestResponse } from 'fastify'
import t from 'tap'
import type { Schema } from '../attack/operations.ts'
import { createUsher } from '../helpers/app.ts'
import { createMailer } from '../helpers/mail.ts'
import { startProvider } from '../helpers/provider.ts'
import { END, fieldPart, filePart, FORM, upload } from '../helpers/uploads.ts'

// What the OpenAPI document allows is accepted, and what it does not allow is named: each text, list and number of each
// operation is sent at its limit and beyond it. A limit of the service that is smaller than the documented one shows as
// an error, or as a value that is not stored as it was sent.

type Value = string | number | boolean | null | Value[] | { [name: string]: Value }
interface Parameter { name: string, in: 'query' | 'path' | 'header', required?: boolean, schema: Schema }
interface Described { parameters?: Parameter[], requestBody?: { content: Record<string, { schema: Schema }> } }

/** A member of a request that has a limit. */
interface Limited {
  /** As errors name it, such as `credential.response.signature`. */
  readonly name: string
  readonly atLimit: readonly Value[]
  readonly beyond: Value
}

const UNKNOWN = '0190a0b0-0000-7000-8000-000000000000'

const fake = await startProvider(t)
const usher = await createUsher(t, {
  mailer: createMailer().mailer,
  signUp: true,
  loginMail: true,
  console: true,
  publicUrl: 'https://example.com',
  providers: { issuer: fake.options },
  throttle: Object.fromEntries([
    'account', 'address', 'refresh', 'reset', 'signUp', 'secondFactor', 'loginMail', 'mail', 'verifiedMail',
  ].map((name) => [name, { burst: 100_000, perMinute: 100_000 }])),
})
const { components: { schemas }, paths } = (await usher.inject('GET', '/docs/json')).json() as {
  components: { schemas: Record<string, Schema> }, paths: Record<string, Record<string, Described>>
}
const [file, subject] = await Promise.all([upload(usher, 'a file'), usher.createUser()])

function resolve (schema: Schema): Schema {
  const { $ref, anyOf = [] } = schema
  if ($ref !== undefined) return resolve(schemas[$ref.split('/').at(-1)!]!)
  // Others are what clients may send instead: an empty text, or null.
  return anyOf[0] ? resolve(anyOf[0]) : schema
}

/** A text of so many characters that a format allows. */
function textOf (length: number, name: string, { format, pattern }: Schema): string {
  if (format === 'email') {
    const domain = `${'d'.repeat(60)}.${'d'.repeat(60)}.${'d'.repeat(60)}.example`
    return `${'a'.repeat(Math.max(length - domain.length - 1, 1))}@${domain}`
  }
  if (name === 'returnTo') return `/${'a'.repeat(length - 1)}`
  if (pattern !== undefined) return 'a'.repeat(length)
  return (format === undefined ? 'ä' : 'A').repeat(length)
}

/** A value that is valid as far as the schema says. */
function exampleOf (schema: Schema, name = ''): Value {
  const { type, format, properties = {}, required = [], enum: values, minimum } = resolve(schema)
  if (values) return values[0] as Value
  if (type === 'object') {
    return Object.fromEntries(required.map((name) => [name, exampleOf(properties[name]!, name)]))
  }
  if (type === 'array') return []
  if (type === 'integer') return minimum ?? 1
  if (type === 'boolean') return true
  if (format === 'email') return 'somebody@example.com'
  if (format === 'date-time') return '2100-01-01T00:00:00.000Z'
  return /password/i.test(name) ? 'a long enough passphrase' : 'AAAA'
}

/**
 * The members with limits in a body or of a parameter.
 * @param isAscii whether they are in a form or a header, which have only ASCII
 */
function limitsOf (given: Schema, isAscii: boolean, path: readonly string[] = []): Limited[] {
  const schema = resolve(given)
  const { maxLength, maxItems, maximum, minimum, properties = {}, items } = schema
  const name = path.join('.')
  const last = path.at(-1) ?? ''
  const of = (atLimit: readonly Value[], beyond: Value): Limited => ({ name, atLimit, beyond })
  const limits: Limited[] = []
  if (last === 'Idempotency-Key') {
    // A structured field (RFC 9651): 255 characters, of which each may need a second one, between quotation marks.
    const text = (length: number) => `"${String.raw`\"`.repeat(length)}"`
    if (text(255).length !== maxLength) throw new Error('the limit of Idempotency-Key is another one')
    limits.push(of([text(255), 'k'.repeat(255)], text(256)))
  } else if (maxLength !== undefined) {
    // Texts of a format have only ASCII anyway.
    const isInBytes = schema.description?.endsWith(`At most ${maxLength} bytes in UTF-8`) && schema.format === undefined
    const text = (length: number) => isAscii || isInBytes ? 'a'.repeat(length) : textOf(length, last, schema)
    // Characters outside the Basic Multilingual Plane are one each.
    const isFree = !isAscii && !isInBytes && schema.format === undefined && schema.pattern === undefined && last !== 'returnTo'
    limits.push(of([text(maxLength), ...isFree ? ['😀'.repeat(maxLength)] : []], text(maxLength + 1)))
  }
  if (maximum !== undefined) limits.push(of([maximum], maximum + 1))
  if (minimum !== undefined) limits.push(of([minimum], minimum - 1))
  if (maxItems !== undefined && items) {
    const list = (length: number) =>
      Array.from({ length }, () => textOf(resolve(items).maxLength ?? 4, last, resolve(items)))
    limits.push(of([list(maxItems)], list(maxItems + 1)))
  }
  const inside = Object.entries(properties).flatMap(([name, inner]) => limitsOf(inner, isAscii, [...path, name]))
  return [...limits, ...inside]
}

/** A body with one more member, and what the objects around it require. */
function withMember (schema: Schema, body: Value, [name, ...rest]: readonly string[], value: Value): Value {
  if (name === undefined) return value
  const object = body as { [name: string]: Value }
  const { properties = {} } = resolve(schema)
  if (rest.length === 0) return { ...object, [name]: value }
  const around = properties[name]!
  return { ...object, [name]: withMember(around, object[name] ?? exampleOf(around, name), rest, value) }
}

const idOf = (path: string): string => {
  if (path.startsWith('/api/users/')) return subject.id
  if (path.startsWith('/api/uploads/{id}')) return file.id
  return path.includes('/providers/') ? 'issuer' : UNKNOWN
}

/** Sends a request with one member more than it needs. */
type Send = (path: readonly string[], value: Value) => Promise<LightMyRequestResponse>

/** The limited members of an operation, with the functions that send it. */
function variantsOf (path: string, method: string, { parameters = [], requestBody }: Described): [Limited, Send][] {
  const address = path.replace('{id}', idOf(path)).replaceAll(/\{\w+\}/g, UNKNOWN)
  const { headers: { authorization }, cookie } = usher.admin
  const isResumable = path === '/api/uploads/resumable'
  const tus: Record<string, string> = isResumable ? { 'tus-resumable': '1.0.0', 'upload-length': '100' } : {}
  const send = (url: string, headers: Record<string, string>, payload?: InjectOptions['payload']) =>
    usher.inject(method.toUpperCase() as InjectOptions['method'], url, {
      headers: { authorization, cookie, origin: 'https://example.com', ...headers },
      ...payload !== undefined && { payload },
    })
  const [type = '', body] = Object.entries(requestBody?.content ?? {})[0] ?? []
  const example = body && exampleOf(body.schema)
  const write = (value: Value): InjectOptions['payload'] => {
    if (type === FORM_TYPE) return new URLSearchParams(value as Record<string, string>).toString()
    if (type !== MULTIPART) return JSON.stringify(value)
    const { file, ...fields } = value as Record<string, string>
    return Buffer.concat([...Object.entries(fields).map(([name, text]) => fieldPart(name, text)), filePart(file!), END])
  }
  const contentType: Record<string, string> = body ? { 'content-type': type === MULTIPART ? FORM : type } : {}
  const required = new URLSearchParams(parameters.filter((one) => one.in === 'query' && one.required)
    .map(({ name, schema }) => [name, `${exampleOf(schema, name)}`]))
  return [
    ...(body ? limitsOf(body.schema, type === FORM_TYPE) : []).map((limited): [Limited, Send] => [
      limited, (path, value) => send(address, contentType, write(withMember(body!.schema, example!, path, value))),
    ]),
    ...parameters.flatMap(({ name, in: place, schema }) => limitsOf(schema, place === 'header', [name]).map((
      limited
    ): [Limited, Send] => [
      limited,
      (_, value) => {
        if (place === 'header') {
          return send(address, { ...contentType, ...tus, [name]: `${value}` }, body && write(example!))
        }
        const query = new URLSearchParams([...required, [name, `${value}`]])
        return send(`${address}?${query}`, contentType, body && write(example!))
      },
    ])),
  ]
}

const FORM_TYPE = 'application/x-www-form-urlencoded'
const MULTIPART = 'multipart/form-data'

// A browser that follows a link learns at a page that a member is too long (16.5), or goes on without it.
const isOfBrowser = (path: string): boolean => /\/providers\/\{id\}\/(start|callback)$/.test(path)

/** What of a result that was stored is not as it was sent. */
function changedOf ({ statusCode, body }: LightMyRequestResponse, name: string, value: Value): unknown {
  if (statusCode > 201 || !body.startsWith('{')) return
  const stored = (JSON.parse(body) as Record<string, unknown>)[name]
  return stored === undefined || stored === value ? undefined : stored
}

let limits = 0
for (const [path, methods] of Object.entries(paths)) {
  for (const [method, described] of Object.entries(methods)) {
    const variants = variantsOf(path, method, described)
    if (variants.length === 0) continue
    limits += variants.length
    t.test(`1.4 ${method.toUpperCase()} ${path} accepts what is documented, and names what is beyond it`, async (t) => {
      for (const [{ name, atLimit, beyond }, send] of variants) {
        for (const value of atLimit) {
          const response = await send(name.split('.'), value)
          const sentence = response.statusCode === 400 && response.json().errors.find((error: string) =>
            error.startsWith(`${name} `) && !/is invalid|is not valid|has expired|is no action$/.test(error))
          t.notOk(response.statusCode >= 500 || [413, 414, 431].includes(response.statusCode) || sentence,
            `${name}: ${response.statusCode} ${response.body.slice(0, 200)}`)
          t.equal(changedOf(response, name, value), undefined, `${name} is stored as it was sent`)
        }
        const { statusCode, body, headers } = await send(name.split('.'), beyond)
        if (isOfBrowser(path)) {
          t.match(headers.location, path.endsWith('start') ? fake.issuer : /\?error=PROVIDER_REJECTED/, name)
          continue
        }
        t.match([statusCode, body], [400, new RegExp(`"${name} must (be|have) `)], `${name} beyond its limit`)
      }
    })
  }
}
t.ok(limits > 100, 'the document has limits')
