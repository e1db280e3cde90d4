import type { FastifyReply } from 'fastify'
import fp from 'fastify-plugin'

/**
 * Keeps a host from rewriting responses: its reply serializer, and `preSerialization` hooks that wrap all payloads in an
 * envelope, would break the contract. Its other hooks see requests and responses as usual.
 */
export default fp(async function responseIsolation (app) {
  app.setReplySerializer(undefined as never)
  app.addHook('onRequest', (_, reply, done) => {
    reply.send = sendIsolated
    done()
  })
}, { name: 'usher-response-isolation' })

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
