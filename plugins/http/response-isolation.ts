import type { FastifyReply } from 'fastify'
import fp from 'fastify-plugin'

/**
 * Keeps a host from rewriting Usher's responses: its reply serializer, and `preSerialization` hooks that wrap all
 * payloads in an envelope, would break the contract. Its other hooks see requests and responses as usual. What a hook
 * of the host sends itself, before Usher's handler, remains as the host sends it: the host's hooks see it, and no
 * schema of Usher changes it.
 */
export default fp(async function responseIsolation (app) {
  app.setReplySerializer(undefined as never)
  app.addHook('onRoute', (route) => {
    const { handler } = route
    route.handler = function (request, reply) {
      reply.send = sendIsolated
      return handler.call(this, request, reply)
    }
  })
  // Does not run for text, which is what Usher sends.
  app.addHook('preSerialization', (_, reply, payload, done) => {
    if (!isResponding(reply)) reply.serializer(JSON.stringify)
    done(null, payload)
  })
}, { name: 'usher-response-isolation' })

/** Returns whether Usher's handler is responding, rather than a hook of the host before it. */
export const isResponding = (reply: FastifyReply): boolean => reply.send === sendIsolated

/** Sends data as JSON text, because Fastify runs no `preSerialization` hooks for text. */
export function sendIsolated (this: FastifyReply, payload?: unknown): FastifyReply {
  const { send } = Object.getPrototypeOf(this) as FastifyReply
  if (!isData(payload)) return send.call(this, payload)
  if (!this.hasHeader('content-type')) this.header('content-type', 'application/json; charset=utf-8')
  return send.call(this, this.serialize(payload))
}

// Streams, errors, text and bytes are not data.
function isData (payload: unknown): payload is Record<string, unknown> {
  if (typeof payload !== 'object' || payload === null) return false
  const prototype = Object.getPrototypeOf(payload)
  return prototype === Object.prototype || prototype === null || Array.isArray(payload)
}
