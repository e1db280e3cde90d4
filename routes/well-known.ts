import type { FastifyPluginAsync } from 'fastify'
import { KeySet } from '../schema/auth.ts'
import { failures } from '../schema/reply.ts'

/** GET /.well-known/jwks.json (contract 4.9). */
const wellKnown: FastifyPluginAsync = async (app) => {
  const { keySet } = app.usherTokens

  app.get('/.well-known/jwks.json', {
    schema: { tags: ['auth'], summary: 'The public keys of access tokens', response: { 200: KeySet, ...failures() } },
  }, async (_, reply) => {
    reply.header('cache-control', 'public, max-age=300')
    return keySet
  })
}

export default wellKnown
