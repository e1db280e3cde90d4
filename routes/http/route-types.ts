import type { IncomingMessage, ServerResponse } from 'node:http'
import type { TypeBoxTypeProvider } from '@fastify/type-provider-typebox'
import type {
  ContextConfigDefault, FastifyReply, FastifyRequest, FastifySchema, RawServerDefault, RouteGenericInterface,
} from 'fastify'

/** A request to a route with this schema: its body, query and parameters have the types of the schema. */
export type RequestOf<Schema extends FastifySchema> =
  FastifyRequest<RouteGenericInterface, RawServerDefault, IncomingMessage, Schema, TypeBoxTypeProvider>

/** The reply of a route with this schema: `send` accepts what the schema describes. */
export type ReplyOf<Schema extends FastifySchema> =
  FastifyReply<
    RouteGenericInterface, RawServerDefault, IncomingMessage, ServerResponse, ContextConfigDefault, Schema,
    TypeBoxTypeProvider
  >
