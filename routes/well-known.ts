import type { FastifyPluginAsync } from 'fastify'
import { LEAD_SECONDS } from '../db/signing-keys.ts'
import { KeySet } from '../schema/auth.ts'
import { failures } from '../schema/reply.ts'

/** Adds GET /.well-known/jwks.json (contract 4.9). */
const wellKnown: FastifyPluginAsync = async (app) => {
  const { usherTokens: tokens } = app

  app.get('/.well-known/jwks.json', {
    schema: { tags: ['auth'], summary: 'List the public keys that verify access tokens', response: { 200: KeySet, ...failures() } },
  }, async (_, reply) => {
    // A new key is published this long before it signs, so a client that caches the key set knows each key in time.
    reply.header('cache-control', `public, max-age=${LEAD_SECONDS}`)
    return tokens.keySet
  })
}

export default wellKnown
