import { STATUS_CODES } from 'node:http'
import packageJson from 'fastify-usher/package.json' with { type: 'json' }

type Json = Record<string, unknown>

interface Operation {
  parameters?: { required: boolean, schema: Json }[]
  responses: Record<string, Json>
}

/** What the document says of the service as a whole (contract 8), wherever it is mounted. */
export function describeApi ({ prefix, publicUrl }: { prefix: string, publicUrl?: string | undefined }) {
  const { origin, pathname = '' } = publicUrl ? new URL(publicUrl) : {} as Partial<URL>
  const base = `${pathname.replace(/\/+$/, '')}${prefix}`
  return {
    openapi: '3.1.0',
    info: { title: 'Usher', version: packageJson.version, license: { name: 'MIT', identifier: 'MIT' }, description: describe(base) },
    // The page's own origin first: it is the one that a browser lets the page call without asking.
    servers: [{ url: base || '/' }, ...origin ? [{ url: `${origin}${base}`, description: 'The public address' }] : []],
    tags: [
      { name: 'auth', description: 'Login, sessions, passwords and tokens' },
      { name: 'users', description: 'User records' },
      { name: 'audit', description: 'The account log' },
      { name: 'uploads', description: 'Files' },
      { name: 'redirect', description: 'A redirect' },
      { name: 'health', description: 'Liveness and readiness' },
    ],
    components: {
      securitySchemes: {
        bearer: { type: 'http' as const, scheme: 'bearer', bearerFormat: 'JWT', description: 'The `token` of a login' },
        session: { type: 'apiKey' as const, in: 'cookie', name: 'usher_session', description: 'The cookie of a login' },
      },
    },
  }
}

const describe = (base: string) => `User accounts, sessions, uploads and posts.

Log in at \`POST /api/auth/login\` and send the \`token\` as \`Authorization: Bearer\`. A 400 carries
\`{ "errors": [string] }\`, any other failure \`{ "error": string, "code"?: string }\`.

Posts, and whatever relates them to users, are served by **GraphQL** at [\`${base}/graphql\`](${base}/graphql):
queries and mutations by POST, subscriptions by a WebSocket, GraphiQL for a browser. Its schema is
[\`schema.graphql\`](${base}/docs/schema.graphql).`

/** A name for an operation, for the generators of clients: `GET /api/users/:id` is `getUsersById`. */
export function operationIdOf (method: string, path: string): string {
  const words = path.replace(/^\/api\//, '').replaceAll(':', 'by-').split(/\W+/).filter(Boolean)
  return method.toLowerCase() + words.map((word) => word[0]!.toUpperCase() + word.slice(1)).join('')
}

/**
 * A document of @fastify/swagger as it is published: schemas that have a title become components, named after
 * it, and the keywords that only Usher's validator knows are gone.
 */
export function finishDocument (document: Json): Json {
  const schemas: Json = {}
  for (const path of Object.values(document.paths as Json)) {
    for (const operation of Object.values(path as Record<string, Operation>)) finishOperation(operation)
  }
  const paths = publish(document.paths, schemas)
  // Not the schemas that it found: they are a host's.
  return { ...document, paths, components: { ...document.components as Json, schemas } }
}

const HEADERS: Readonly<Record<string, readonly [name: string, description: string]>> = {
  201: ['Location', 'The path of what was made'],
  302: ['Location', 'Where to go'],
  401: ['WWW-Authenticate', 'RFC 6750'],
  429: ['Retry-After', 'Seconds'],
  503: ['Retry-After', 'Seconds'],
}

function finishOperation ({ parameters = [], responses }: Operation): void {
  // What has a default may be left out.
  for (const parameter of parameters) if ('default' in parameter.schema) parameter.required = false
  for (const [status, response] of Object.entries(responses)) {
    const [name, description] = HEADERS[status] ?? []
    if (name) response.headers = { [name]: { description, schema: { type: 'string' } } }
    // One schema serves all failures.
    if (Number(status) >= 400) response.description = STATUS_CODES[status]
  }
}

const validatorKeywords = new Set(['text', 'trim', 'uncommon'])

function publish (node: unknown, schemas: Json): unknown {
  if (Array.isArray(node)) return node.map((item) => publish(item, schemas))
  if (typeof node !== 'object' || node === null) return node
  // A property may be called like a keyword; then its value is a schema, not a word or a number.
  const entries = Object.entries(node).filter(([key, value]) => typeof value === 'object' || !validatorKeywords.has(key))
  const published: Json = Object.fromEntries(entries.map(([key, value]) =>
    // As many characters as octets, at most.
    key === 'maxOctets' && typeof value === 'number' ? ['maxLength', value] : [key, publish(value, schemas)]))
  if (typeof published.title !== 'string') return published
  schemas[published.title] = published
  return { $ref: `#/components/schemas/${published.title}` }
}
