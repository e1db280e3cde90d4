import { Type, type TSchema } from '@sinclair/typebox'

/** The body of every failure except 400 (contract 1.3). */
export const ErrorReply = Type.Object({
  error: Type.String({ description: 'What went wrong, for humans' }),
  code: Type.Optional(Type.String({ description: 'A stable identifier, for programs' })),
}, { title: 'Error', description: 'The request failed' })

/** The body of a 400 response: all problems at once (contract 1.2). */
export const ErrorsReply = Type.Object({
  errors: Type.Array(Type.String(), { description: 'One sentence per problem, in the order of the schema' }),
  code: Type.Optional(Type.String({
    description: 'A stable identifier of a problem that the schema does not describe, such as `BREACHED_PASSWORD`',
  })),
}, { title: 'Errors', description: 'The input is invalid' })

/** A 204 response, which has no body. */
export const NoContent = Type.Null({ description: 'Done; the response has no body' })

/** A 304 response, which has no body. */
export const NotModified =
  Type.Null({ description: 'The client has the current version already; the response has no body' })

/** A redirect, which has no body. */
export const Redirect = Type.Null({ description: 'The header `Location` has the address to go to' })

type Failure =
  400 | 401 | 403 | 404 | 405 | 406 | 408 | 409 | 410 | 412 | 413 | 415 | 416 | 422 | 423 | 429 | 460 | 500 | 503 | 507

/**
 * Returns the response schemas for the statuses with which a route may fail. Every route gets 500 and 503 in addition.
 */
export function failures<Status extends Failure> (...statuses: Status[]) {
  return Object.fromEntries([...statuses, 500, 503]
    .map((status) => [status, status === 400 ? ErrorsReply : ErrorReply])) as
    { [S in Exclude<Status, 400> | 500 |
      503]: typeof ErrorReply } & (400 extends Status ? { 400: typeof ErrorsReply } : unknown)
}

/**
 * Returns the schema of a response that is available in several media types. Fastify compiles a serializer for each of
 * them; the route selects one with `reply.type()`.
 */
export function content<Types extends Record<string, TSchema>> (description: string, types: Types) {
  const entries = Object.entries(types).map(([type, schema]) => [type, { schema }])
  return { description, content: Object.fromEntries(entries) as { [T in keyof Types]: { schema: Types[T] } } }
}

/**
 * The member of a route's schema that names the headers of its responses by their status, besides those that follow
 * from the rest of the schema.
 */
export const HEADERS = 'x-headers'

/**
 * The member of a route's schema, and of its operation in the OpenAPI document, that has an example for statuses which
 * mean something else for each operation. The responses that operations share have one example for all.
 */
export const FAILURES = 'x-failures'

/** Returns failures as examples, for `FAILURES`. */
export const examples = (...failures: readonly { statusCode?: number, message: string, code: string }[]) =>
  Object.fromEntries(failures.map(({ statusCode, message, code }) => [`${statusCode}`, { error: message, code }]))

/** The member of a route's schema that says that a request may have no body, although the schema describes one. */
export const OPTIONAL_BODY = 'x-optional-body'

/** The header of the 403 responses of a route that may need a recent authentication (RFC 9470), for `HEADERS`. */
export const STEP_UP = { 403: ['WWW-Authenticate'] }
