import { STATUS_CODES } from 'node:http'
import { isDeepStrictEqual } from 'node:util'
import packageJson from 'fastify-usher/package.json' with { type: 'json' }
import { InvalidCredentials, Unauthenticated } from '../sign-in/login.ts'
import {
  BodyStalled, DatabaseUnavailable, Forbidden, InternalError, NotAcceptable, NotFound, PayloadTooLarge,
  PreconditionFailed, RangeNotSatisfiable, TooManyRequests, UnsupportedMediaType,
} from './errors.ts'
import { Gone, IDEMPOTENT, IdempotencyKeyReused } from './idempotency.ts'
import { ChecksumMismatch, UploadTakenOver } from '../uploads/resumable-upload.ts'
import { StorageFull } from '../uploads/upload.ts'
import { EmailTaken } from '../users/users.ts'
import type { Options } from '../options/options.ts'
import type { Part } from '../options/parts.ts'
import { FAILURES, HEADERS, OPTIONAL_BODY } from './reply.ts'
import { problemsIn } from './validator.ts'

type Json = Record<string, unknown>

interface Tag { name: string, description: string }

// What most readers come for is first. The others follow in this order, too, and those that are not listed at the end.
const ORDER = [
  'auth', 'users', 'uploads', 'organizations', 'passkeys', 'second-factor', 'api-keys', 'providers', 'audit', 'admin', 'health',
]
function placeOf ({ name }: Tag): number {
  const place = ORDER.indexOf(name)
  return place === -1 ? ORDER.length : place
}

type Response = Json & { headers?: Json, content?: Record<string, { schema?: Json, example?: Json }> }

type Body = Json & { properties?: Record<string, Json> }

interface Operation {
  parameters?: (Json & { name: string, in: string, required: boolean, schema: Json })[]
  [IDEMPOTENT]?: boolean
  [HEADERS]?: Record<string, string[]>
  [OPTIONAL_BODY]?: boolean
  [FAILURES]?: Readonly<Record<string, Json>>
  requestBody?: { required?: boolean, content?: Record<string, { schema?: Body }> }
  security?: object[]
  responses: Record<string, Response>
}

/**
 * Returns the parts of the OpenAPI document that describe the service as a whole (contract 8), for its public path and
 * URL, and its tags.
 */
export function describeApi (
  { publicPath: base, publicUrl, without }: Pick<Options, 'publicPath' | 'publicUrl' | 'without'>, tags: Tag[]
) {
  const origin = publicUrl && new URL(publicUrl).origin
  return {
    openapi: '3.1.0',
    info: {
      title: 'Usher',
      version: packageJson.version,
      license: { name: 'MIT', identifier: 'MIT' },
      description: describe(base, without),
    },
    // The first server is the default of the API reference. It is the page's own origin, because browsers let the page
    // send requests to it without CORS.
    servers: [{ url: base || '/' }, ...origin ? [{ url: `${origin}${base}`, description: 'The public URL' }] : []],
    tags: tags.toSorted((one, other) => placeOf(one) - placeOf(other)),
    components: {
      securitySchemes: {
        bearer: {
          type: 'http' as const,
          scheme: 'bearer',
          description: 'The `token` in the response to a login, or an API key',
        },
        session: {
          type: 'apiKey' as const, in: 'cookie', name: 'usher_session', description: 'The cookie that a login sets',
        },
      },
    },
  }
}

function describe (base: string, without: readonly Part[]): string {
  const has = (part: Part) => !without.includes(part)
  const parts = [
    'User accounts', 'sessions', ...has('uploads') ? ['uploads'] : [],
    ...has('posts') && has('graphql') ? ['posts'] : [],
  ]
  const paragraphs = [`${parts.slice(0, -1).join(', ')} and ${parts.at(-1)}.`, general]
  if (has('graphql')) paragraphs.push(describeGraphql(base, has('posts')))
  return paragraphs.join('\n\n')
}

const general = `\
Log in at \`POST /api/auth/login\` and send the \`token\` as \`Authorization: Bearer\`. The body of a 400 response is
\`{ "errors": [string] }\`, that of any other failure \`{ "error": string, "code"?: string }\`.`

const withPosts = [
  'Posts, and their relations to users,',
  'queries and\nmutations by POST, subscriptions over a WebSocket or as server-sent events',
]
const withoutPosts = ['Users', 'queries by POST']

function describeGraphql (base: string, hasPosts: boolean): string {
  const [what, how] = hasPosts ? withPosts : withoutPosts
  return `${what} are available by **GraphQL** at [\`${base}/graphql\`](${base}/graphql): ${how}. In a browser, the address shows
GraphiQL. The schema is [\`schema.graphql\`](${base}/docs/schema.graphql).`
}

/**
 * Returns a document of @fastify/swagger in the form in which it is published: schemas that have a title become
 * components with that name, as do the responses that many operations share, and the keywords that only Usher's
 * validator knows are removed.
 */
export function finishDocument (document: Json): Json {
  const schemas: Json = {}
  for (const operation of operationsOf(document.paths)) finishOperation(operation)
  const paths = publish(document.paths, schemas)
  const responses: Json = {}
  for (const operation of operationsOf(paths)) shareResponses(operation, responses)
  // The schemas that @fastify/swagger found are left out, because they are those of the host.
  return { ...document, paths, components: { ...document.components as Json, responses, schemas } }
}

const operationsOf = (paths: unknown): Operation[] =>
  Object.values(paths as Record<string, Record<string, Operation>>).flatMap((path) => Object.values(path))

// Responses to conditions and failures say the same in most operations: a generated client has one type for each.
function shareResponses ({ responses }: Operation, shared: Json): void {
  for (const [status, response] of Object.entries(responses)) {
    if (Number(status) < 400 && status !== '304') continue
    const name = nameOfResponse(status, response)
    const alike = Object.keys(shared).filter((other) => other.replace(/\d+$/, '') === name)
    const key = alike.find((other) => isDeepStrictEqual(shared[other], response)) ??
      `${name}${alike.length > 0 ? alike.length + 1 : ''}`
    shared[key] = response
    responses[status] = { $ref: `#/components/responses/${key}` }
  }
}

// The name of the status, followed by what distinguishes the response from the usual one with it.
function nameOfResponse (status: string, { headers = {}, content = {} }: Response): string {
  const { schema, example } = Object.values(content)[0] ?? {}
  const title = `${schema?.$ref ?? ''}`.split('/').at(-1)!
  const unusual = Object.keys(headers).filter((name) => name !== byStatus[status]?.[0]).sort()
  return [
    reasonOf(status),
    ...example?.code === new InvalidCredentials().code ? [' of Login'] : [],
    ...['', 'Error', 'Errors'].includes(title) ? [] : [` ${title}`],
    ...unusual.length > 0 ? [` with ${unusual.join(' and ')}`] : [],
  ].join('').replaceAll(/(?:^|\W)(\w)/g, (_, letter: string) => letter.toUpperCase())
}

// That of tus, and those of functions of the host (4XX), have no registered name.
const reasonOf = (status: string): string =>
  STATUS_CODES[status] ?? (status === '460' ? 'Checksum Mismatch' : 'Rejected by Host')

// The headers of responses, by their names.
const descriptions: Readonly<Record<string, string>> = {
  'Accept-Encoding': '`identity`, if the body of the request was encoded',
  'Accept-Patch': 'The media types that the body of a change may have',
  'Accept-Ranges': '`bytes`: ranges can be requested',
  'Content-Disposition': 'The name of the file, and whether a browser may show it',
  'Content-Location': 'The path of the record of the finished upload',
  'Content-Range': 'Which bytes these are, and how many there are',
  ETag: 'The entity tag of the current version',
  'Idempotency-Replayed': '`true` for a repetition',
  'Last-Modified': 'When the file was uploaded',
  Link: 'The path of the next page, with `rel="next"`, if there is one',
  'Login-Required': '`true` if the confirmation needs a session of the user',
  'Password-Required': '`true` if the confirmation must have a password',
  'Preference-Applied': '`handling=strict`, if the request has preferred it',
  'Retry-After': 'Seconds until the client may try again',
  'Set-Cookie': 'The session cookie, or that of a sign-up or of a login that has begun. Without a value, it removes the one that the client has',
  'Tus-Checksum-Algorithm': 'The algorithms that `Upload-Checksum` may name',
  'Tus-Extension': 'The extensions of tus that are supported',
  'Tus-Max-Size': 'How many bytes an upload may have',
  'Tus-Resumable': 'The version of tus',
  'Tus-Version': 'The versions of tus that are supported',
  'Upload-Expires': 'Until when the upload may be continued',
  'Upload-Length': 'How many bytes the upload will have',
  'Upload-Metadata': 'What was sent when the upload began',
  'Upload-Offset': 'How many bytes of the upload are stored durably',
  'WWW-Authenticate': 'The challenge of RFC 6750, or of RFC 9470',
}

const byStatus: Readonly<Record<string, readonly [name: string, description?: string]>> = {
  201: ['Location', 'The path of the created resource'],
  302: ['Location', 'The address to go to'],
  303: ['Location', 'The address to go to'],
  304: ['ETag'],
  307: ['Location', 'The address of the bytes, which works for some seconds'],
  401: ['WWW-Authenticate'],
  415: ['Accept-Encoding'],
  429: ['Retry-After'],
  503: ['Retry-After'],
}

const parameter = (name: string, description: string) =>
  ({ name, in: 'header', description, required: false, schema: { type: 'string' } })
// Those of all reads that have an entity tag.
const CONDITIONS = [
  parameter(
    'If-None-Match',
    'Entity tags that the client has. If one of them is the current one, the response is 304 without a body'
  ),
  parameter('If-Match', 'Entity tags. The response is 412 if none of them is the current one'),
]
// Those of reads that can be limited to a range.
const RANGES = [
  parameter('Range', 'The bytes to read, such as `bytes=0-1023`'),
  parameter(
    'If-Range',
    'The entity tag or date of the version that the client has. If it is not the current one, the response is 200'
  ),
  parameter('If-Modified-Since', 'A date. The response is 304 without a body if nothing has changed since'),
  parameter('If-Unmodified-Since', 'A date. The response is 412 if anything has changed since'),
]
const PREFER = parameter('Prefer', '`handling=strict` rejects unknown parameters')
// The records that have an entity tag, by the titles of their schemas.
const TAGGED = new Set(['User', 'Upload', 'UploadRecord'])

// A failure with each status.
const failures = [
  new Unauthenticated(), new Forbidden(), new NotFound(), new NotAcceptable('application/json'), new BodyStalled(),
  new EmailTaken(), new PreconditionFailed(), new PayloadTooLarge(), new UnsupportedMediaType('application/json'),
  new RangeNotSatisfiable(), new TooManyRequests(1), new Gone(), new IdempotencyKeyReused(), new InternalError(),
  new DatabaseUnavailable(), new StorageFull(), new UploadTakenOver(), new ChecksumMismatch(),
]

function exampleOf (status: number, isLogin: boolean): Json | undefined {
  if (status === 400) return { errors: ['name is required', 'email must be an email address'] }
  const failure = status === 401 && isLogin
    ? new InvalidCredentials()
    : failures.find(({ statusCode }) => statusCode === status)
  return failure && { error: failure.message, code: failure.code }
}

/** Returns what the validator says about a request that lacks what is required, or that has what is not allowed. */
function mistakesIn ({ parameters = [], requestBody }: Operation): string[] {
  const [{ schema } = {}] = Object.values(requestBody?.content ?? {})
  const members = Object.entries(schema?.properties ?? {})
  const body = schema?.properties ? schema : { type: 'object', properties: {} }
  const ofOtherType = Object.fromEntries(members.map(([name, { type }]) => [name, type === 'object' ? 1 : {}]))
  const query = parameters.filter((parameter) => parameter.in === 'query').map(({ name, schema }) => [name, schema] as const)
  const ofQuery = { type: 'object', properties: Object.fromEntries(query) }
  const mistakes = [
    () => problemsIn(body, {}, 'body'), () => problemsIn(body, ofOtherType, 'body'),
    () => problemsIn(ofQuery, Object.fromEntries(query.map(([name]) => [name, '?'])), 'querystring'),
  ]
  for (const find of mistakes) {
    const found = find()
    if (found.length > 0) return found.slice(0, 2)
  }
  return ['body is not valid JSON']
}

function finishOperation (operation: Operation): void {
  const { parameters = [], responses, [HEADERS]: headers = {} } = operation
  delete operation[HEADERS]
  if (operation[OPTIONAL_BODY] && operation.requestBody) operation.requestBody.required = false
  delete operation[OPTIONAL_BODY]
  if ('400' in responses) operation[FAILURES] = { 400: { errors: mistakesIn(operation) }, ...operation[FAILURES] }
  const takes = (name: string) => parameters.some((parameter) => parameter.name === name)
  // A read that needs no login rejects a token that is not valid.
  const isLogin = (operation.security ?? []).length === 0 && operation.requestBody !== undefined
  // Without this, generated clients and the reference could not tell public operations from undocumented ones.
  operation.security ??= []
  // A parameter with a default may be left out, although the schema lists it as required.
  for (const parameter of parameters) if ('default' in parameter.schema) parameter.required = false
  for (const [status, response] of Object.entries(responses)) {
    const [name, description] = byStatus[status] ?? []
    if (name) addHeader(response, name, description)
    if (isTagged(status, operation)) addHeader(response, 'ETag')
    if (['200', '304'].includes(status) && takes('after')) addHeader(response, 'Link')
    for (const header of headers[status] ?? []) addHeader(response, header)
    if (status === '200' && takes('fields')) addParts(response)
    // All failures have the same schema and thus its description, so the text of the status replaces it.
    if (!(Number(status) >= 400)) continue
    response.description = reasonOf(status)
    const example = exampleOf(Number(status), isLogin)
    for (const media of Object.values(response.content ?? {})) if (example) media.example = example
  }
  const isStrict = Object.values(headers).flat().includes('Preference-Applied')
  const added = [
    ...'304' in responses ? CONDITIONS : [], ...'206' in responses ? RANGES : [], ...isStrict ? [PREFER] : [],
  ]
  if (added.length > 0) operation.parameters = [...parameters, ...added]
  if (operation[IDEMPOTENT]) describeKey(operation)
}

function addHeader (response: Response, name: string, description = descriptions[name]): void {
  response.headers = { ...response.headers, [name]: { description, schema: { type: 'string' } } }
}

// The parameter `fields` chooses members, so the records of a list may have some of them only.
function addParts ({ content = {} }: Operation['responses'][string]): void {
  for (const media of Object.values(content)) if (media.schema) media.schema = withParts(media.schema)
}

function withParts (schema: Json): Json {
  const { title, items, properties = {} } =
    schema as { title?: string, items?: Json, properties?: Record<string, Json> }
  if (items && typeof items.title === 'string') return { ...schema, items: { anyOf: [items, partOf(items)] } }
  if (title !== undefined) return schema
  const withPartsOf = Object.entries(properties).map(([name, value]) => [name, withParts(value)])
  return { ...schema, properties: Object.fromEntries(withPartsOf) }
}

const partOf = (schema: Json): Json => ({
  ...schema,
  title: `${schema.title}Part`,
  description: 'The members that the parameter `fields` has named',
  required: ['id'],
})

// Describes the headers of an operation whose requests may have an idempotency key (contract 10.4).
function describeKey (operation: Operation): void {
  const name = 'Idempotency-Key'
  const description =
    'Makes the request repeatable for 24 hours: repeating it returns the same result and has no second effect'
  operation.parameters = [...operation.parameters ?? [], {
    name, in: 'header', required: false, description, schema: { type: 'string', maxLength: 512 },
  }]
  for (const [status, response] of Object.entries(operation.responses)) {
    if (status.startsWith('2')) addHeader(response, 'Idempotency-Replayed')
    if (status === '409') addHeader(response, 'Retry-After', 'Seconds, if a request with the key is in progress')
  }
  delete operation[IDEMPOTENT]
}

function isTagged (status: string, { responses }: Operation): boolean {
  if (Number(status) > 304) return false
  const media = Object.values(responses[status]!.content ?? {})
  return '304' in responses || media.some(({ schema }) => TAGGED.has(`${schema?.title}`))
}

const validatorKeywords = new Set(['text', 'trim', 'asciiDomain', 'normalized', 'uncommon', 'notNull', 'hostField'])
// Their values are data. Its members may have the names of keywords.
const dataKeywords = new Set(['default', 'enum', 'example', 'examples'])

// Returns the schema of stored JSON as it is published. Only Usher's validator has a keyword for it.
function publishJson ({ storedJson, ...rest }: Json): Json {
  return { ...(storedJson as { schema: Json }).schema, ...rest }
}

function publish (node: unknown, schemas: Json): unknown {
  if (Array.isArray(node)) return node.map((item) => publish(item, schemas))
  if (typeof node !== 'object' || node === null) return node
  if ('storedJson' in node && Array.isArray((node as Json).type)) return publish(publishJson(node as Json), schemas)
  // A property of an object may have the name of a keyword. Its value is then a schema, and not a string or a number.
  const entries = Object.entries(node)
    .filter(([key, value]) => typeof value === 'object' || !validatorKeywords.has(key))
  const { maxLength = Infinity } = node as { maxLength?: number }
  const published: Json = Object.fromEntries(entries.map(([key, value]) =>
    // JSON Schema cannot limit bytes. A text of n bytes has at most n characters.
    key === 'maxBytes' && typeof value === 'number'
      ? ['maxLength', Math.min(value, maxLength)]
      : [key, dataKeywords.has(key) ? value : publish(value, schemas)]))
  if (typeof published.title !== 'string') return published
  schemas[published.title] = published
  return { $ref: `#/components/schemas/${published.title}` }
}
