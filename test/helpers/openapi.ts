import { STATUS_CODES } from 'node:http'
import { join, parse, relative, sep } from 'node:path'
import { Ajv2020, type ValidateFunction } from 'ajv/dist/2020.js'
import addFormats from 'ajv-formats'
import Fastify, { type FastifyInstance } from 'fastify'
import { describeRoutes } from '../../routes/pages/reference.ts'
import { isNightly } from './nightly.ts'

/** What a client gets. A body that is not at hand, such as that of a stream, is left out. */
export interface Answer {
  method: string
  /** Relative to the prefix of the mount. */
  url: string
  status: number
  headers: Readonly<Record<string, unknown>>
  body?: string | Buffer | undefined
}

/** Returns what is wrong with a response by the OpenAPI document: one sentence, or undefined. */
export type Check = (answer: Answer) => string | undefined

interface Media { schema?: object }
interface Reply { headers?: Record<string, object>, content?: Record<string, Media> }
interface Reference { $ref: string }
interface Operation { responses: Record<string, Reply | Reference> }
interface Document {
  paths: Record<string, Record<string, Operation>>
  components: { schemas: Record<string, object>, responses: Record<string, Reply> }
}

/** Returns a response of a document, also if the document shares it between operations. */
export const resolveReply = <Shared extends object>(
  { components }: { components: { responses: Record<string, Shared> } }, reply: Shared | Reference
): Shared => '$ref' in reply ? components.responses[reply.$ref.split('/').at(-1)!]! : reply

/** A document of some operations. */
interface Description {
  document: Document
  /** Returns what is wrong with a body by the schema at a JSON pointer of the document. */
  problemOfBody (pointer: string, body: string | Buffer): string | undefined
}

interface Described {
  path: string
  method: string
  operation: Operation
  description: Description
}

// Those that tell HTTP software and browsers what to do with any response. The document must have the others, which are
// for the client.
const GENERAL = new Set([
  'connection', 'content-length', 'content-type', 'date', 'keep-alive', 'transfer-encoding', 'cache-control', 'vary',
  'content-security-policy', 'cross-origin-resource-policy', 'referrer-policy', 'x-content-type-options',
])
// Clients that have disconnected do not get it.
const DISCONNECTED = 499
const ID = 'openapi'
// The addresses whose operations are described. GraphQL, pages and the reference itself are not.
const DESCRIBED = /^\/(api(?!\/auth\/pages\/)|health|\.well-known)(\/|$)/

// Folders, suites and files of tests that get the responses of other tests once more. Creating a document takes as long
// as several tests.
const REPEATED = new Set([
  'browser.ts', 'client', 'database', 'graphql', 'host-api', 'idempotency', 'live', 'mount', 'oldest-node.ts', 'posts',
  'release', 'system', 'throttle',
])

/**
 * Whether apps of this process check their responses: unless its tests repeat what others check. In the nightly list,
 * all do.
 */
export const isChecked = isNightly || !REPEATED.has(nameOf(relative(join(import.meta.dirname, '..'), process.argv[1]!)))

// A suite is named after the first of its folders.
function nameOf (file: string): string {
  const [folder, name] = file.split(sep)
  return folder === 'suites' ? parse(name!).name : folder!
}

// By routes. Apps with other options have mostly the same ones, and describing one takes longer than checking ten
// responses.
const descriptions = new Map<string, Promise<Description>>()

/**
 * Returns the check for the mount of an app with a prefix, by the document that GET /docs/json serves.
 * @param options.hasHost whether a host may add headers that no operation has
 */
export async function openDocument (app: FastifyInstance, prefix: string, { hasHost = false } = {}): Promise<Check> {
  const scope = findScopes(app).find(({ usherOptions }) => usherOptions.prefix === prefix)
  if (!scope) throw new Error(`no Usher at ${prefix}`)
  const routes = scope.usherReference.routes.map((route) => ({ ...route, key: JSON.stringify(route) }))
  const added = routes.filter(({ key }) => !descriptions.has(key))
  const addedDescription = added.length > 0 ? describe(scope, added) : undefined
  for (const { key } of added) descriptions.set(key, addedDescription!)
  const described = routes.map(async ({ method, url, key }) => {
    const description = await descriptions.get(key)!
    const at = { path: url.replaceAll(/:(\w+)/g, '{$1}'), method: `${method}`.toLowerCase() }
    return { ...at, description, operation: description.document.paths[at.path]![at.method]! }
  })
  return createCheck(await Promise.all(described), hasHost)
}

// The scope of the routes is encapsulated, so no decorator of the app leads to it.
function findScopes (app: FastifyInstance): FastifyInstance[] {
  const symbol = Object.getOwnPropertySymbols(app).find(({ description }) => description === 'fastify.children')
  const children: FastifyInstance[] = Reflect.get(app, symbol!)
  return [...Object.hasOwn(app, 'usherReference') ? [app] : [], ...children.flatMap(findScopes)]
}

async function describe (scope: FastifyInstance, routes: FastifyInstance['usherReference']['routes']) {
  const { usherOptions, usherReference: { tags } } = scope
  const app = Fastify()
  await describeRoutes(app, { usherOptions, usherReference: { routes, tags } })
  await app.ready()
  const document = app.swagger() as object as Document
  const ajv = new Ajv2020({ strict: false, validateSchema: false })
  addFormats.default(ajv)
  ajv.addSchema(document, ID)
  const validators = new Map<string, ValidateFunction>()
  return {
    document,
    problemOfBody (pointer: string, body: string | Buffer): string | undefined {
      let validate = validators.get(pointer)
      if (!validate) validators.set(pointer, validate = ajv.compile({ $ref: `${ID}#${pointer}` }))
      if (!validate(JSON.parse(`${body}`))) return ajv.errorsText(validate.errors, { dataVar: 'body' })
    },
  }
}

function createCheck (described: Described[], hasHost: boolean): Check {
  const routes = [...Map.groupBy(described, ({ path }) => path)]
    // Those without parameters come first, as in the router.
    .sort(([one], [other]) => one.split('{').length - other.split('{').length)
    .map(([path, operations]) => ({ path, operations, pattern: patternOf(path) }))
  const replies = described.flatMap(({ operation, description: { document } }) =>
    Object.values(operation.responses).map((reply) => resolveReply(document, reply)))
  const known = new Set(replies.flatMap(namesOf))

  // A request to which no operation belongs gets one of these, in the shape of every failure.
  function problemOfRejection ({ status, body }: Answer): string | undefined {
    if (![400, 404, 405].includes(status)) return 'the document has no such operation'
    const name = status === 400 ? 'Errors' : 'Error'
    if (body === undefined || body === '') return
    const { description } = described.find(({ description }) => name in description.document.components.schemas)!
    return description.problemOfBody(`/components/schemas/${name}`, body)
  }

  function problemOf (answer: Answer, { path, method: verb, operation, description }: Described): string | undefined {
    const { method, status, headers, body = '' } = answer
    const name = status in operation.responses ? `${status}` : `${status}`[0] + 'XX'
    const given = operation.responses[name]
    if (!given) return 'the status is not declared'
    const reply = resolveReply(description.document, given)
    const declared = namesOf(reply)
    const mayLack = (name: string) => GENERAL.has(name) || (hasHost && !known.has(name))
    const undeclared = Object.keys(headers).filter((name) => !declared.includes(name) && !mayLack(name))
    if (undeclared.length > 0) return `undeclared headers: ${undeclared.join(', ')}`
    // HTTP permits no body for these, so Node sends none.
    if (status === 204 || status === 304) return reply.content && 'there is no body'
    if (!reply.content) return body.length > 0 ? 'the body is not declared' : undefined
    const type = `${headers['content-type']}`.split(';', 1)[0]!.trim()
    const range = type in reply.content ? type : '*/*'
    const media = reply.content[range]
    if (!media) return `the media type ${type} is not declared`
    if (method === 'HEAD' || answer.body === undefined || !media.schema || !/json$/.test(type)) return
    const place = '$ref' in given ? given.$ref.slice(1) : `/paths/${escape(path)}/${verb}/responses/${name}`
    const pointer = `${place}/content/${escape(range)}/schema`
    return description.problemOfBody(pointer, body)
  }

  return (answer) => {
    const path = answer.url.split('?', 1)[0]!
    if (!DESCRIBED.test(path) || answer.status === DISCONNECTED) return
    const method = answer.method === 'HEAD' ? 'get' : answer.method.toLowerCase()
    const route = routes.find(({ pattern }) => pattern.test(path))
    const operation = route?.operations.find((operation) => operation.method === method)
    const problem = operation ? problemOf(answer, operation) : problemOfRejection(answer)
    const name = `${answer.method} ${route?.path ?? path} ${answer.status} ${STATUS_CODES[answer.status]}`
    return problem && `${name}: ${problem}`
  }
}

const namesOf = ({ headers = {} }: Reply): string[] => Object.keys(headers).map((name) => name.toLowerCase())

const patternOf = (path: string): RegExp =>
  new RegExp(`^${path.replaceAll('.', '\\.').replaceAll(/\{\w+\}/g, '[^/]*')}$`)

// As part of a JSON pointer in a URI (RFC 6901 6).
const escape = (text: string): string => encodeURIComponent(text.replaceAll('~', '~0').replaceAll('/', '~1'))
