import type { FastifyError, FastifyInstance, FastifyReply, FastifyRequest } from 'fastify'
import { GraphQLError } from 'graphql'
import { setRetryAfter, translate } from '../../../../plugins/http/errors.ts'
import { sendIsolated } from '../../../../plugins/http/response-isolation.ts'
import { EventStream } from '../../../../plugins/streams/event-stream.ts'
import { EVENT_STREAM, RECONNECT, RETRY_AFTER_SECONDS } from '../../../../plugins/streams/event-streams.ts'
import type { Network } from '../../../../schema/http/network.ts'
import { preferredType } from '../../../../schema/http/media-type.ts'
import { readQueryString, RESPONSE_TYPE } from '../../by-get.ts'
import { createContext } from '../../context.ts'
import { formatExecution, rootOf } from '../../execution/format.ts'
import { checkSubscription, readOperation, typeOf, type CheckedSubscription } from '../../execution/operation.ts'
import { textOf } from '../../execution/serialize.ts'
import type { Sink } from '../sink.ts'
import { isTemporary } from '../subscription.ts'
import type { Subscriptions } from '../subscriptions.ts'

const TYPES = ['application/json', RESPONSE_TYPE, 'text/html', EVENT_STREAM]
const COMPLETE = 'event: complete\ndata:\n\n'

/** Returns whether a client prefers server-sent events to a single response. */
export function wantsEvents ({ headers }: FastifyRequest): boolean {
  const { accept } = headers
  return accept !== undefined && preferredType(accept, TYPES) === EVENT_STREAM
}

/**
 * Adds GraphQL over server-sent events, in the distinct connections mode of graphql-sse: `next` events, and `complete`
 * if no more follow. The id of an event of a subscription is the cursor of its post. A client that reconnects with it,
 * as browsers do automatically, receives the events that it has missed. A stream begins with an id, so this works
 * before the first event, too.
 *
 * @returns the handler of requests for event streams
 */
export function addEventStreams (app: FastifyInstance, subscriptions: Subscriptions) {
  const { usherAccess: { actors }, usherStreams: { events } } = app

  const subscribe = (operation: CheckedSubscription, request: FastifyRequest): Promise<EventStream> =>
    events.open(request, async (stream, networks) => {
      const reader = actors.in(request)
      const { 'last-event-id': lastEventId } = request.headers as Record<string, string | undefined>
      return subscriptions.subscribe(
        { ...operation, reader, request, lastEventId: lastEventId || undefined }, createSink(stream, networks)
      )
    })

  async function run (request: FastifyRequest, reply: FastifyReply): Promise<EventStream | string> {
    const body = request.method === 'GET' ? readQueryString(request.url) : request.body
    const operation = readOperation(app.graphql.schema, body, request.headers)
    if (typeOf(app, operation) === 'subscription') return subscribe(checkSubscription(app, request, operation), request)
    if (request.method === 'GET') {
      // A browser would repeat them whenever the stream ends.
      const extensions = { code: 'BAD_REQUEST' }
      throw new GraphQLError('An event stream by GET is only for subscriptions', { extensions })
    }
    const { query, variables, operationName } = operation
    return whole(await reply.graphql(query, createContext(app, request, operation), variables, operationName))
  }

  return async function respond (request: FastifyRequest, reply: FastifyReply): Promise<void> {
    events.describe(reply)
    const result = await run(request, reply).catch((error) => describeError(error, request, reply))
    if (!(result instanceof EventStream)) return void sendIsolated.call(reply, result)
    events.send(result, request, reply)
  }
}

function createSink (stream: EventStream, networks: readonly Network[]): Sink {
  return {
    networks,
    transport: 'sse',
    get waiting () { return stream.unread },
    begin: (cursor) => stream.write(`${RECONNECT}${id(cursor)}\n`),
    deliver: (event, cursor) => stream.write(`${id(cursor)}${next(event)}`),
    complete () {
      stream.write(COMPLETE)
      stream.end()
    },
    drain: () => stream.drain(),
    fail (errors) {
      stream.write(whole({ data: null, errors }))
      stream.end()
    },
  }
}

// Returns the body of the response to a request that has failed.
function describeError (error: GraphQLError, request: FastifyRequest, reply: FastifyReply): string | object {
  // Clients give up after an error, but reconnect if a stream ends without one. The failure is temporary, so they
  // should reconnect.
  if (isTemporary(error)) return `${RECONNECT}\n`
  const failure = formatExecution({ errors: [error] }, request.log)
  request.server.usherGraphql.countErrors(failure.errors!)
  if (request.method === 'POST') return whole(failure)
  // A browser reconnects after any event stream, whatever its events say, unless the status is an error.
  const cause = rootOf(error)
  const statusCode = cause instanceof GraphQLError ? 400 : translate(cause as FastifyError).statusCode!
  if (statusCode === 429) setRetryAfter(reply, RETRY_AFTER_SECONDS)
  reply.code(statusCode).type('application/json')
  return failure
}

const id = (cursor: string | undefined) => cursor === undefined ? '' : `id: ${cursor}\n`
const next = (result: string) => `event: next\ndata: ${result}\n\n`
const whole = (result: object) => `${next(textOf(result))}${COMPLETE}`
