import { createHash } from 'node:crypto'
import { parse as parseQuery } from 'node:querystring'
import type { FastifyError, FastifyInstance, FastifyReply, FastifyRequest } from 'fastify'
import { GraphQLError, type FormattedExecutionResult } from 'graphql'
import { setRetryAfter, translate } from '../../plugins/http/errors.ts'
import { addVary } from '../../plugins/http/vary.ts'
import { challengeOf } from '../../schema/sign-in/login.ts'
import { preferredType } from '../../schema/http/media-type.ts'
import { revalidate, sendNotModified } from '../http/conditional-request.ts'
import { createContext } from './context.ts'
import { rootOf, type FailedExecution } from './execution/format.ts'
import { readOperation, typeOf } from './execution/operation.ts'
import { payloadOf } from './execution/serialize.ts'

/** The media type of responses whose status tells whether an operation was executed (GraphQL over HTTP). */
export const RESPONSE_TYPE = 'application/graphql-response+json'
const JSON_TYPE = 'application/json'

// A hash of more bytes would take milliseconds.
const LARGEST_TAGGED_BYTES = 1024 * 1024

/**
 * Returns an operation in a query string in the form that the body of a POST has. Its variables and extensions are
 * JSON (GraphQL over HTTP); empty parameters count as absent. Throws a `GraphQLError`.
 */
export function readQueryString (url: string): object {
  const [, search = ''] = url.split(/\?(.*)/s)
  const { query, operationName, variables, extensions } = parseQuery(search)
  return {
    query,
    operationName,
    variables: parseMember('variables', variables),
    extensions: parseMember('extensions', extensions),
  }
}

function parseMember (name: string, value: unknown): unknown {
  if (value === undefined || value === '') return undefined
  try {
    return JSON.parse(String(value))
  } catch {
    throw new GraphQLError(`${name} must be JSON`, { extensions: { code: 'BAD_REQUEST' } })
  }
}

/**
 * Returns the handler of operations by GET (contract 7.9), which must be queries. A result without errors has an
 * entity tag. The handler rejects with what `statusByGet` expects.
 */
export function createGetHandler (app: FastifyInstance) {
  return async function respond (request: FastifyRequest, reply: FastifyReply): Promise<void> {
    const operation = readOperation(app.graphql.schema, readQueryString(request.url), request.headers)
    const type = typeOf(app, operation)
    // Links and images of any page can send a GET.
    if (type === 'mutation') {
      reply.header('allow', 'POST')
      throw new GraphQLError('Mutations must be sent by POST', { extensions: { code: 'METHOD_NOT_ALLOWED' } })
    }
    if (type === 'subscription') {
      const extensions = { code: 'BAD_REQUEST' }
      throw new GraphQLError('Subscriptions need a WebSocket or server-sent events', { extensions })
    }
    const { query, variables, operationName } = operation
    const result = await reply.graphql(query, createContext(app, request, operation), variables, operationName)
    const payload = payloadOf(result)
    if (!result.errors) {
      setHeaders(request, reply)
      const isKnown = payload.length <= LARGEST_TAGGED_BYTES && revalidate(request, reply, tagOf(payload))
      if (isKnown) return void sendNotModified(request, reply)
    }
    // Not returned: awaiting a reply throws if the client disconnects before it is sent.
    reply.send(payload)
  }
}

const tagOf = (payload: string | Buffer): string =>
  `"${createHash('sha256').update(payload).digest('base64url').slice(0, 22)}"`

// Returns whether the client wants the status to tell whether the operation was executed.
function setHeaders ({ headers: { accept } }: FastifyRequest, reply: FastifyReply): boolean {
  const type = preferredType(accept, [JSON_TYPE, RESPONSE_TYPE]) ?? JSON_TYPE
  reply.type(`${type}; charset=utf-8`).header('cache-control', 'private, no-cache')
  addVary(reply, 'Accept')
  addVary(reply, 'Authorization')
  return type === RESPONSE_TYPE
}

// What is wrong with the request rather than with the operation gets its status as any media type.
const statuses: Readonly<Record<string, number>> = {
  BAD_REQUEST: 400, METHOD_NOT_ALLOWED: 405, PRECONDITION_FAILED: 412,
}

/**
 * Returns the status of a failure by GET, and sets the headers. As `application/json` it is 200, like that of a POST,
 * unless the request is no operation. As `application/graphql-response+json` it is an error if nothing was executed,
 * and the response then has no `data`.
 */
export function statusByGet (
  { data, errors }: FailedExecution, response: FormattedExecutionResult, request: FastifyRequest, reply: FastifyReply
): number {
  const isStrict = setHeaders(request, reply)
  reply.header('cache-control', 'no-store')
  if (data !== undefined) return 200
  if (isStrict) delete response.data
  const status = statuses[String(response.errors![0]!.extensions!['code'])]
  if (status !== undefined || !isStrict) return status ?? 200
  const cause = rootOf(errors![0]!)
  if (cause instanceof GraphQLError) return 400
  const { statusCode, retryAfter } = translate(cause as FastifyError) as FastifyError & { retryAfter?: number }
  if (statusCode === 401) reply.header('www-authenticate', challengeOf(cause as FastifyError))
  if (statusCode === 429 || statusCode === 503) setRetryAfter(reply, retryAfter)
  return statusCode!
}
