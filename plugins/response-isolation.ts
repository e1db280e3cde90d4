import type { FastifyReply } from 'fastify'
import fp from 'fastify-plugin'

/**
 * Answers that a host does not rewrite: its reply serializer, and `preSerialization` hooks that put all payloads
 * into an envelope of its own, would break the contract. Its other hooks see requests and answers as usual.
 */
export default fp(async function responseIsolation (app) {
  app.setReplySerializer(undefined as never)
  app.addHook('onRequest', (_, reply, done) => {
    reply.send = sendIsolated
    done()
  })
}, { name: 'usher-response-isolation' })

/** Sends data as JSON text, which passes those hooks by. */
export function sendIsolated (this: FastifyReply, payload?: unknown): FastifyReply {
  const { send } = Object.getPrototypeOf(this) as FastifyReply
  if (!isData(payload)) return send.call(this, payload)
  if (!this.hasHeader('content-type')) this.header('content-type', 'application/json; charset=utf-8')
  return send.call(this, this.serialize(payload))
}

// Rather than a stream, an error, text or bytes.
function isData (payload: unknown): payload is Record<string, unknown> {
  if (typeof payload !== 'object' || payload === null) return false
  const prototype = Object.getPrototypeOf(payload)
  return prototype === Object.prototype || prototype === null || Array.isArray(payload)
}
