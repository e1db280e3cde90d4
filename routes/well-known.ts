import type { FastifyPluginAsync } from 'fastify'
import { LEAD_SECONDS } from '../db/signing-keys.ts'
import { KeySet } from '../schema/auth.ts'
import { failures } from '../schema/reply.ts'

/** GET /.well-known/jwks.json (contract 4.9). */
const wellKnown: FastifyPluginAsync = async (app) => {
  const { usherTokens: tokens } = app

  app.get('/.well-known/jwks.json', {
    schema: { tags: ['auth'], summary: 'The public keys of access tokens', response: { 200: KeySet, ...failures() } },
  }, async (_, reply) => {
    // Whoever keeps it no longer than that has each key before it signs.
    reply.header('cache-control', `public, max-age=${LEAD_SECONDS}`)
    return tokens.keySet
  })
}

export default wellKnown
